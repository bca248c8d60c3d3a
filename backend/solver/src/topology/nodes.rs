//! Which NUMA nodes a VM's cores and memory lie on.

use super::layout::{NodeSet, nodes_of};
use cluster::{MAX_NUMA_NODES, NumaPolicy};

/// CPU (vCPUs or millis), ordinary memory in MiB, huge pages.
pub(super) type Lot = [u32; 3];

/// What each node of a host can give, and what the VM needs in all.
#[derive(Clone, Debug)]
pub(super) struct Offers {
    pub by_node: [Lot; MAX_NUMA_NODES],
    pub nodes: usize,
    pub need: Lot,
    pub numa: NumaPolicy,
}

/// Nodes that were chosen, and how the VM lies on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stand {
    pub nodes: NodeSet,
    pub manner: Manner,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Manner {
    One,
    Even,
    /// Cores on these nodes, memory wherever it is.
    Spread,
}

impl Offers {
    /// The nodes that suit the policy, are accepted, and leave the least behind.
    ///
    /// `accept` gets the nodes with cores and says what choosing them costs, or that they will
    /// not do. More nodes are never worse to it, which is what lets a spread end early.
    pub(super) fn choose(&self, accept: &mut dyn FnMut(NodeSet) -> Option<u32>) -> Option<Stand> {
        if self.nodes == 0 {
            return None;
        }
        let all: NodeSet = (1 << self.nodes) - 1;
        match self.numa {
            NumaPolicy::Single => self.best(all, 1, Manner::One, accept),
            NumaPolicy::Split(ways) => {
                let part = self.part(u32::from(ways.max(1)));
                let usable = self.filter(all, |lot| (0..3).all(|of| lot[of] >= part.least[of]));
                self.best(usable, u32::from(ways), Manner::Even, accept)
            }
            NumaPolicy::Preferred => {
                let one = self.best(all, 1, Manner::One, accept);
                one.or_else(|| self.choose_spread(all, accept))
            }
        }
    }

    fn choose_spread(
        &self,
        all: NodeSet,
        accept: &mut dyn FnMut(NodeSet) -> Option<u32>,
    ) -> Option<Stand> {
        let total = |of: usize| nodes_of(all).map(|node| u64::from(self.by_node[node][of])).sum();
        let short = |of: usize| u64::from(self.need[of]) > total(of);
        if (0..3).any(short) {
            return None;
        }
        if self.need[0] == 0 {
            return accept(0).map(|_| Stand { nodes: 0, manner: Manner::Spread });
        }
        let usable = self.filter(all, |lot| lot[0] > 0);
        // The largest set has whatever a smaller one has.
        if usable.count_ones() <= self.need[0] {
            accept(usable)?;
        }
        let most = usable.count_ones().min(self.need[0]);
        (1..=most).find_map(|size| self.best(usable, size, Manner::Spread, accept))
    }

    fn filter(&self, nodes: NodeSet, keep: impl Fn(&Lot) -> bool) -> NodeSet {
        let kept = nodes_of(nodes).filter(|&node| keep(&self.by_node[node]));
        kept.fold(0, |set, node| set | 1 << node)
    }

    /// The best of all sets of one size.
    fn best(
        &self,
        usable: NodeSet,
        size: u32,
        manner: Manner,
        accept: &mut dyn FnMut(NodeSet) -> Option<u32>,
    ) -> Option<Stand> {
        let mut best: Option<((u32, u64, u64), NodeSet)> = None;
        for nodes in Subsets::new(usable, size) {
            if !self.holds(nodes, manner) {
                continue;
            }
            let with_cores = if self.need[0] == 0 { 0 } else { nodes };
            let Some(cost) = accept(with_cores) else { continue };
            let sum =
                |of: usize| nodes_of(nodes).map(|node| u64::from(self.by_node[node][of])).sum();
            let key = (cost, sum(0), sum(1));
            if best.is_none_or(|(least, _)| key < least) {
                best = Some((key, nodes));
            }
        }
        best.map(|(_, nodes)| Stand { nodes, manner })
    }

    fn holds(&self, nodes: NodeSet, manner: Manner) -> bool {
        let lots = || nodes_of(nodes).map(|node| &self.by_node[node]);
        match manner {
            Manner::One => lots().all(|lot| (0..3).all(|of| lot[of] >= self.need[of])),
            Manner::Even => {
                let ways = nodes.count_ones();
                let part = self.part(ways);
                let with_more = |of: usize| lots().filter(|lot| lot[of] > part.least[of]).count();
                self.need[0] >= ways
                    && lots().all(|lot| (0..3).all(|of| lot[of] >= part.least[of]))
                    && (0..3).all(|of| with_more(of) >= part.extra[of] as usize)
            }
            Manner::Spread => {
                let sum: u64 = lots().map(|lot| u64::from(lot[0])).sum();
                nodes.count_ones() <= self.need[0] && sum >= u64::from(self.need[0])
            }
        }
    }

    fn part(&self, ways: u32) -> Part {
        Part { least: self.need.map(|need| need / ways), extra: self.need.map(|need| need % ways) }
    }

    /// What lies on each node.
    pub(super) fn lots(&self, stand: Stand) -> [Lot; MAX_NUMA_NODES] {
        let mut lots = [[0; 3]; MAX_NUMA_NODES];
        match stand.manner {
            Manner::One => {
                for node in nodes_of(stand.nodes) {
                    lots[node] = self.need;
                }
            }
            Manner::Even => {
                let part = self.part(stand.nodes.count_ones().max(1));
                for of in [0, 1, 2] {
                    let mut order: Vec<usize> = nodes_of(stand.nodes).collect();
                    order.sort_by_key(|&node| std::cmp::Reverse(self.by_node[node][of]));
                    for (rank, node) in order.into_iter().enumerate() {
                        let more = u32::from((rank as u32) < part.extra[of]);
                        lots[node][of] = part.least[of] + more;
                    }
                }
            }
            Manner::Spread => self.spread(stand.nodes, &mut lots),
        }
        lots
    }

    fn spread(&self, nodes: NodeSet, lots: &mut [Lot; MAX_NUMA_NODES]) {
        let mut left = self.need[0].saturating_sub(nodes.count_ones());
        for node in nodes_of(nodes) {
            let more = left.min(self.by_node[node][0] - 1);
            lots[node][0] = 1 + more;
            left -= more;
        }
        let others: NodeSet = ((1 << self.nodes) - 1) & !nodes;
        for of in [1, 2] {
            let mut left = self.need[of];
            for node in nodes_of(nodes).chain(nodes_of(others)) {
                let here = left.min(self.by_node[node][of]);
                lots[node][of] = here;
                left -= here;
            }
        }
    }
}

/// The equal parts of a split: at least this much on each node, and one more on some.
struct Part {
    least: Lot,
    extra: Lot,
}

/// All subsets of one size, in ascending order of their numbers.
pub(super) struct Subsets {
    rows: [u8; MAX_NUMA_NODES + 1],
    next: Option<u32>,
    end: u32,
}

impl Subsets {
    pub(super) fn new(of: NodeSet, size: u32) -> Self {
        let mut rows = [0; MAX_NUMA_NODES + 1];
        for (row, node) in rows.iter_mut().zip(nodes_of(of)) {
            *row = node as u8;
        }
        let possible = size <= of.count_ones();
        Self { rows, next: possible.then(|| (1 << size) - 1), end: 1 << of.count_ones() }
    }
}

impl Iterator for Subsets {
    type Item = NodeSet;

    fn next(&mut self) -> Option<NodeSet> {
        let packed = self.next.filter(|&packed| packed < self.end)?;
        self.next = (packed != 0).then(|| {
            // The next larger number with as many bits set.
            let lowest = packed & packed.wrapping_neg();
            let carried = packed + lowest;
            carried | (((packed ^ carried) / lowest) >> 2)
        });
        let chosen = nodes_of(packed);
        Some(chosen.fold(0, |set, row| set | 1 << self.rows[row]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subsets_come_once_each() {
        let all: Vec<NodeSet> = Subsets::new(0b1011, 2).collect();
        assert_eq!(all, [0b0011, 0b1001, 0b1010]);
        assert_eq!(Subsets::new(0b11, 0).collect::<Vec<_>>(), [0]);
        assert_eq!(Subsets::new(0b11, 3).count(), 0);
        assert_eq!(Subsets::new(0x1_ffff, 8).count(), 24_310);
    }
}
