//! Where a VM that takes one or several NUMA nodes does least harm.
//!
//! The worth of a host's free nodes is what they could give to each shape of the mix if only that
//! shape came, in CPU, weighted by how often it comes; a VM goes where that falls least. The first
//! of VMs that must stay together goes where there is room for more of them. The mix is learned
//! from the arrivals. Costs are kept by (shape, host) and renewed for the hosts that changed.

use super::learning::Learning;
use super::mix::Mix;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// Free CPU and memory of one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    pub cpu: u32,
    pub memory: u32,
}

/// The nodes of a host.
pub type Nodes = SmallVec<[Node; 2]>;

/// What one VM takes on each of `parts` different nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Part {
    pub cpu: u32,
    pub memory: u32,
    pub parts: u8,
}

/// Shapes remembered; beyond it all are forgotten and met anew.
const MOST_SHAPES: usize = 1024;

/// Changes remembered for shapes that have not come since; beyond it the shapes are met anew.
const MOST_CHANGES: usize = 1 << 16;

/// VMs that must stay together want room for so many of their kind.
const TOGETHER: u64 = 16;

/// What each missing place of them costs, as a multiple of the VM's own CPU.
const MISSING: i64 = 3;

/// Weights of the mix sum up to this, so that worth is in thousandths of CPU.
const ALL: u64 = 1000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Company {
    Alone,
    /// More of the same will follow that have to be on the same host.
    FirstOfMany,
}

/// A host and the nodes to take a part on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seat {
    pub host: usize,
    pub nodes: SmallVec<[u8; 2]>,
}

#[derive(Debug)]
pub struct NumaFleet {
    hosts: Vec<Nodes>,
    /// Shapes with weights.
    weights: Vec<(Part, u64)>,
    worth: Vec<i64>,
    learning: Learning<Part>,
    shapes: FxHashMap<Part, Costs>,
    /// Hosts in the order in which they changed.
    changed: Vec<u32>,
}

/// What one shape costs on each host.
#[derive(Debug, Default)]
struct Costs {
    by_host: Vec<Option<Cost>>,
    /// How far `changed` has been read.
    read: usize,
}

#[derive(Clone, Debug)]
struct Cost {
    loss: i64,
    /// How many of the shape fit.
    room: u64,
    nodes: SmallVec<[u8; 2]>,
}

impl NumaFleet {
    pub fn new(hosts: Vec<Nodes>) -> Self {
        let worth = vec![0; hosts.len()];
        let learning = Learning::default();
        Self {
            hosts,
            weights: Vec::new(),
            worth,
            learning,
            shapes: FxHashMap::default(),
            changed: Vec::new(),
        }
    }

    /// Chooses a host among those that `may` take the VM, and takes the room there.
    pub fn place(
        &mut self,
        part: &Part,
        company: Company,
        may: impl Fn(usize) -> bool,
    ) -> Option<Seat> {
        if let Some(mix) = self.learning.observe(*part) {
            self.weights = weights(mix);
            self.shapes.clear();
            self.changed.clear();
            self.worth = self.hosts.iter().map(|nodes| worth(&self.weights, nodes)).collect();
        }
        let seat = self.choose(part, company, may)?;
        self.take(part, &seat);
        Some(seat)
    }

    /// The first host that `may` take the VM, and its first nodes with room, for comparison.
    pub fn place_first(&mut self, part: &Part, may: impl Fn(usize) -> bool) -> Option<Seat> {
        let first = |host: usize| -> Option<Seat> {
            let fitting = self.hosts[host].iter().enumerate().filter(|(_, node)| part.fits(node));
            let nodes: SmallVec<[u8; 2]> =
                fitting.map(|(node, _)| node as u8).take(part.parts.into()).collect();
            (nodes.len() == usize::from(part.parts)).then_some(Seat { host, nodes })
        };
        let seat = (0..self.hosts.len()).filter(|host| may(*host)).find_map(first)?;
        self.take(part, &seat);
        Some(seat)
    }

    pub fn nodes(&self, host: usize) -> &[Node] {
        &self.hosts[host]
    }

    fn take(&mut self, part: &Part, seat: &Seat) {
        for node in &seat.nodes {
            let node = &mut self.hosts[seat.host][usize::from(*node)];
            node.cpu -= part.cpu;
            node.memory -= part.memory;
        }
        self.worth[seat.host] = worth(&self.weights, &self.hosts[seat.host]);
        self.changed.push(seat.host as u32);
        if self.changed.len() > MOST_CHANGES {
            self.shapes.clear();
            self.changed.clear();
        }
    }

    fn choose(
        &mut self,
        part: &Part,
        company: Company,
        may: impl Fn(usize) -> bool,
    ) -> Option<Seat> {
        if self.shapes.len() >= MOST_SHAPES && !self.shapes.contains_key(part) {
            self.shapes.clear();
        }
        let costs = self.shapes.entry(*part).or_default();
        let cost = |host: usize| cost(&self.weights, &self.hosts[host], self.worth[host], part);
        if costs.by_host.is_empty() {
            costs.by_host = (0..self.hosts.len()).map(cost).collect();
        } else {
            self.changed[costs.read..]
                .iter()
                .for_each(|host| costs.by_host[*host as usize] = cost(*host as usize));
        }
        costs.read = self.changed.len();
        let total = |known: &Cost| match company {
            Company::Alone => known.loss,
            Company::FirstOfMany => {
                let missing = TOGETHER.saturating_sub(known.room) as i64;
                known.loss
                    + missing * MISSING * i64::from(part.cpu) * i64::from(part.parts) * ALL as i64
            }
        };
        let fitting = costs
            .by_host
            .iter()
            .enumerate()
            .filter_map(|(host, cost)| Some((host, cost.as_ref()?)));
        let (host, known) = fitting
            .filter(|(host, _)| may(*host))
            .min_by_key(|(host, cost)| (total(cost), *host))?;
        Some(Seat { host, nodes: known.nodes.clone() })
    }
}

impl Part {
    fn fits(&self, node: &Node) -> bool {
        node.cpu >= self.cpu && node.memory >= self.memory
    }

    /// How many VMs of this shape the nodes could take.
    fn room(&self, nodes: &[Node]) -> u64 {
        let on_node = |node: &Node| {
            u64::from((node.cpu / self.cpu.max(1)).min(node.memory / self.memory.max(1)))
        };
        let parts: u64 = nodes.iter().map(on_node).sum();
        let each = u64::from(self.parts);
        if each == 1 {
            return parts;
        }
        // A VM takes every node once at most: n of them fit if the nodes, each counted n times at
        // most, have enough parts.
        let mut room = parts / each;
        while room > 0
            && nodes.iter().map(|node| on_node(node).min(room)).sum::<u64>() < room * each
        {
            room -= 1;
        }
        room
    }
}

fn weights(mix: &Mix<Part>) -> Vec<(Part, u64)> {
    let total: u128 = mix.entries().iter().map(|(_, weight)| u128::from(*weight)).sum();
    let scaled = |(part, weight): &(Part, u64)| {
        let cpu = u128::from(part.cpu) * u128::from(part.parts);
        (*part, (u128::from(*weight) * u128::from(ALL) * cpu / total.max(1)) as u64)
    };
    mix.entries().iter().map(scaled).filter(|(_, weight)| *weight > 0).collect()
}

fn worth(weights: &[(Part, u64)], nodes: &[Node]) -> i64 {
    weights.iter().map(|(part, weight)| (part.room(nodes) * weight) as i64).sum()
}

/// The cheapest nodes for a shape; none if it does not fit. One part goes where it costs least,
/// several to the nodes with most CPU left.
fn cost(weights: &[(Part, u64)], nodes: &[Node], before: i64, part: &Part) -> Option<Cost> {
    let mut fitting: SmallVec<[u8; 8]> =
        (0..nodes.len()).filter(|node| part.fits(&nodes[*node])).map(|node| node as u8).collect();
    if part.parts == 0 || fitting.len() < usize::from(part.parts) {
        return None;
    }
    let room = part.room(nodes);
    let loss = |taken: &[u8]| {
        let mut left = Nodes::from(nodes);
        for node in taken {
            left[usize::from(*node)].cpu -= part.cpu;
            left[usize::from(*node)].memory -= part.memory;
        }
        before - worth(weights, &left)
    };
    if part.parts == 1 {
        let (loss, node) = fitting.iter().map(|node| (loss(&[*node]), *node)).min()?;
        return Some(Cost { loss, room, nodes: SmallVec::from_slice(&[node]) });
    }
    fitting.sort_by_key(|node| std::cmp::Reverse(nodes[usize::from(*node)].cpu));
    fitting.truncate(part.parts.into());
    fitting.sort_unstable();
    Some(Cost { loss: loss(&fitting), room, nodes: SmallVec::from_slice(&fitting) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fleet(hosts: &[[(u32, u32); 2]]) -> NumaFleet {
        let nodes = |host: &[(u32, u32); 2]| {
            host.iter().map(|(cpu, memory)| Node { cpu: *cpu, memory: *memory }).collect()
        };
        NumaFleet::new(hosts.iter().map(nodes).collect())
    }

    const ONE: Part = Part { cpu: 4, memory: 8, parts: 1 };
    const TWO: Part = Part { cpu: 16, memory: 32, parts: 2 };

    #[test]
    fn room_on_two_nodes_is_that_of_the_smaller() {
        let nodes = [Node { cpu: 64, memory: 1000 }, Node { cpu: 40, memory: 1000 }];
        assert_eq!((ONE.room(&nodes), TWO.room(&nodes)), (26, 2));
        let third = [nodes[0], nodes[1], Node { cpu: 32, memory: 64 }];
        assert_eq!(TWO.room(&third), 4);
    }

    #[test]
    fn one_node_is_used_up_before_two_are_unbalanced() {
        let mut fleet = fleet(&[[(32, 64), (32, 64)], [(32, 64), (4, 8)]]);
        for _ in 0..8 {
            fleet.weights = vec![(ONE, 2000), (TWO, 16_000)];
            fleet.worth = fleet.hosts.iter().map(|nodes| worth(&fleet.weights, nodes)).collect();
            let seat = fleet.choose(&ONE, Company::Alone, |_| true).unwrap();
            assert_eq!(seat.host, 1, "the other host could take a VM on two nodes");
            let node = &mut fleet.hosts[1][usize::from(seat.nodes[0])];
            (node.cpu, node.memory) = (node.cpu - 4, node.memory - 8);
            fleet.shapes.clear();
        }
    }

    #[test]
    fn the_first_of_many_goes_where_the_others_can_follow() {
        let mut fleet = fleet(&[[(8, 16), (0, 0)], [(64, 128), (64, 128)]]);
        assert_eq!(fleet.place(&ONE, Company::Alone, |_| true).unwrap().host, 0);
        assert_eq!(fleet.place(&ONE, Company::FirstOfMany, |_| true).unwrap().host, 1);
    }

    #[test]
    fn what_fits_where_it_may_is_placed_and_nothing_is_taken_twice() {
        let mut fleet = fleet(&[[(20, 40), (20, 40)], [(20, 40), (20, 40)]]);
        let mut placed = 0;
        while let Some(seat) = fleet.place(&ONE, Company::Alone, |host| host == 1) {
            assert_eq!(seat.host, 1);
            placed += 1;
        }
        assert_eq!(placed, 10);
        assert_eq!(fleet.nodes(0), [Node { cpu: 20, memory: 40 }; 2]);
        assert!(fleet.place(&TWO, Company::Alone, |_| true).is_some());
        assert!(fleet.place(&TWO, Company::Alone, |_| true).is_none());
    }

    #[test]
    fn kept_costs_are_those_of_a_fresh_look() {
        let mut fleet = fleet(&[[(40, 80), (24, 96)], [(64, 64), (64, 200)], [(16, 32), (48, 96)]]);
        for round in 0..40u32 {
            let part = [ONE, TWO, Part { cpu: 8, memory: 32, parts: 1 }][round as usize % 3];
            fleet.place(&part, Company::Alone, |_| true);
            let kept = fleet.choose(&part, Company::Alone, |_| true);
            fleet.shapes.clear();
            assert_eq!(kept, fleet.choose(&part, Company::Alone, |_| true), "round {round}");
        }
    }
}
