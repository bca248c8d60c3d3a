//! How domains are joined: the route between each two, and what is set aside on every link.
//!
//! A route has the least latency; among equals the fewest links; among those it is the first in
//! order of the names along it, read from the end whose name comes first. So there is exactly
//! one, and whoever works it out finds the same.

use cluster::{Link, Name};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A domain's row in the fabric, in order of names.
pub(crate) type Node = u16;

#[derive(Debug)]
pub(crate) struct Fabric {
    nodes: Vec<Name>,
    capacity: Vec<u64>,
    /// Set aside on each link.
    load: Vec<u64>,
    /// By pair of nodes.
    routes: Vec<Option<Route>>,
}

#[derive(Clone, Debug)]
pub(crate) struct Route {
    pub(crate) latency_us: u64,
    pub(crate) links: Box<[u16]>,
}

/// From one node: who is next, over which link, at which latency.
type Neighbours = Vec<Vec<(Node, u16, u32)>>;

/// Latency and number of links.
type Distance = (u64, u32);

const UNREACHED: Distance = (u64::MAX, u32::MAX);

impl Fabric {
    pub(crate) fn new(links: &[Link]) -> Self {
        let mut nodes: Vec<Name> =
            links.iter().flat_map(|link| [link.a.clone(), link.b.clone()]).collect();
        nodes.sort();
        nodes.dedup();
        let node = |name: &Name| nodes.binary_search(name).map_or(0, |row| row as Node);
        let mut neighbours: Neighbours = vec![Vec::new(); nodes.len()];
        for (row, link) in (0..).zip(links) {
            let (a, b) = (node(&link.a), node(&link.b));
            neighbours[usize::from(a)].push((b, row, link.latency_us));
            neighbours[usize::from(b)].push((a, row, link.latency_us));
        }
        neighbours.iter_mut().for_each(|all| all.sort_unstable());
        let count = nodes.len();
        let mut routes = vec![None; count * count];
        for to in 0..count {
            let distances = distances(&neighbours, to as Node);
            for from in 0..to {
                let route = walk(&neighbours, &distances, from as Node, to as Node);
                routes[from * count + to] = route.clone();
                routes[to * count + from] = route;
            }
        }
        let capacity = links.iter().map(|link| link.bandwidth_mbps.into()).collect();
        Self { nodes, capacity, load: vec![0; links.len()], routes }
    }

    /// The domains that links join, by row.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = (Node, &Name)> {
        (0..).zip(&self.nodes)
    }

    pub(crate) fn node(&self, domain: &Name) -> Option<Node> {
        self.nodes.binary_search(domain).ok().map(|row| row as Node)
    }

    /// The route between two different nodes, if they are joined at all.
    pub(crate) fn route(&self, from: Node, to: Node) -> Option<&Route> {
        self.routes[usize::from(from) * self.nodes.len() + usize::from(to)].as_ref()
    }

    pub(crate) fn links(&self) -> usize {
        self.load.len()
    }

    /// Whether a link has this much left.
    pub(crate) fn has(&self, link: u16, more: u64) -> bool {
        let link = usize::from(link);
        self.load[link].saturating_add(more) <= self.capacity[link]
    }

    pub(crate) fn clear(&mut self) {
        self.load.fill(0);
    }

    /// Sets bandwidth aside on every link of a route.
    pub(crate) fn set_aside(&mut self, from: Node, to: Node, mbps: u64) {
        self.on_route(from, to, |load| *load = load.saturating_add(mbps));
    }

    pub(crate) fn give_back(&mut self, from: Node, to: Node, mbps: u64) {
        self.on_route(from, to, |load| *load = load.saturating_sub(mbps));
    }

    fn on_route(&mut self, from: Node, to: Node, mut change: impl FnMut(&mut u64)) {
        let Self { load, routes, nodes, .. } = self;
        let route = &routes[usize::from(from) * nodes.len() + usize::from(to)];
        for &link in route.iter().flat_map(|route| &route.links) {
            change(&mut load[usize::from(link)]);
        }
    }
}

/// How far every node is from `to`.
fn distances(neighbours: &Neighbours, to: Node) -> Vec<Distance> {
    let mut best = vec![UNREACHED; neighbours.len()];
    best[usize::from(to)] = (0, 0);
    let mut open = BinaryHeap::from([Reverse(((0, 0), to))]);
    while let Some(Reverse((distance, node))) = open.pop() {
        if distance > best[usize::from(node)] {
            continue;
        }
        for &(next, _, latency_us) in &neighbours[usize::from(node)] {
            let further = (distance.0 + u64::from(latency_us), distance.1 + 1);
            if further < best[usize::from(next)] {
                best[usize::from(next)] = further;
                open.push(Reverse((further, next)));
            }
        }
    }
    best
}

/// Follows the distances down to `to`, through the first name wherever there is a choice.
fn walk(neighbours: &Neighbours, distances: &[Distance], from: Node, to: Node) -> Option<Route> {
    let (latency_us, hops) = distances[usize::from(from)];
    if (latency_us, hops) == UNREACHED {
        return None;
    }
    let mut links = Vec::with_capacity(hops as usize);
    let mut at = from;
    while at != to {
        let here = distances[usize::from(at)];
        let onward = neighbours[usize::from(at)].iter().find(|(next, _, latency_us)| {
            let there = distances[usize::from(*next)];
            there != UNREACHED && (there.0 + u64::from(*latency_us), there.1 + 1) == here
        });
        let &(next, link, _) = onward?;
        links.push(link);
        at = next;
    }
    Some(Route { latency_us, links: links.into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Name {
        Name::new(text).expect("a valid name")
    }

    fn fabric(links: &[(&str, &str, u32)]) -> Fabric {
        let links: Vec<Link> = links
            .iter()
            .map(|&(a, b, latency_us)| Link {
                a: name(a),
                b: name(b),
                latency_us,
                bandwidth_mbps: 100,
            })
            .collect();
        Fabric::new(&links)
    }

    #[test]
    fn a_route_is_the_fastest_then_the_shortest_then_the_first_by_name() {
        let check = |links: &[(&str, &str, u32)], from: &str, to: &str, expect: Option<&[u16]>| {
            let fabric = fabric(links);
            let (from, to) = (fabric.node(&name(from)), fabric.node(&name(to)));
            let (from, to) = (from.expect("a node"), to.expect("a node"));
            let found = fabric.route(from, to).map(|route| &*route.links);
            assert_eq!(found, expect);
            assert_eq!(
                fabric.route(to, from).map(|route| route.links.len()),
                found.map(<[_]>::len)
            );
        };
        check(&[("a", "b", 9), ("a", "c", 4), ("c", "b", 4)], "a", "b", Some(&[1, 2]));
        check(&[("a", "b", 8), ("a", "c", 4), ("c", "b", 4)], "a", "b", Some(&[0]));
        let square = [("a", "d", 1), ("a", "c", 1), ("d", "b", 1), ("c", "b", 1)];
        check(&square, "a", "b", Some(&[1, 3]));
        check(&[("a", "b", 0), ("c", "d", 0)], "a", "c", None);
    }

    #[test]
    fn what_is_set_aside_on_a_route_is_given_back() {
        let mut fabric = fabric(&[("a", "b", 1), ("b", "c", 1)]);
        fabric.set_aside(0, 2, 60);
        assert!(fabric.has(0, 40) && fabric.has(1, 40) && !fabric.has(0, 41));
        fabric.give_back(2, 0, 60);
        assert!(fabric.has(1, 100));
    }
}
