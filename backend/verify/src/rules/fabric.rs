//! The route between each two joined domains.
//!
//! Of all routes the one with the least latency, then the fewest links, then the first by the
//! names along it from the end whose name comes first. Whole routes are compared and improved
//! until nothing gets better, which leaves no room for a slip in the choice among equals.

use cluster::{Level, Link, Links, Name};
use std::collections::BTreeMap;

#[derive(Debug)]
pub(crate) struct Fabric {
    pub(crate) level: Level,
    pub(crate) links: Vec<Link>,
    routes: BTreeMap<(Name, Name), Route>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Route {
    pub(crate) latency_us: u64,
    /// Rows of `Fabric::links`.
    pub(crate) links: Vec<usize>,
}

/// Latency, number of links, and the nodes along the way.
type Way = (u64, usize, Vec<usize>);

impl Fabric {
    pub(crate) fn new(links: &Links) -> Self {
        let Links { level, links } = links.clone();
        let mut names: Vec<&Name> = links.iter().flat_map(|link| [&link.a, &link.b]).collect();
        names.sort();
        names.dedup();
        let node = |name: &Name| names.iter().position(|known| *known == name).unwrap_or(0);
        let ends: Vec<(usize, usize)> =
            links.iter().map(|link| (node(&link.a), node(&link.b))).collect();
        let mut routes = BTreeMap::new();
        for to in 0..names.len() {
            let ways = ways(&links, &ends, names.len(), to);
            for (from, way) in ways.into_iter().enumerate().take(to) {
                let Some((latency_us, _, nodes)) = way else { continue };
                let joins = |pair: &[usize]| {
                    let (a, b) = (pair[0], pair[1]);
                    ends.iter().position(|end| *end == (a, b) || *end == (b, a)).unwrap_or(0)
                };
                let links = nodes.windows(2).map(joins).collect();
                let pair = (names[from].clone(), names[to].clone());
                routes.insert(pair, Route { latency_us, links });
            }
        }
        Self { level, links, routes }
    }

    /// The route between two different domains; `None` when they are not joined.
    pub(crate) fn route(&self, one: &Name, other: &Name) -> Option<&Route> {
        let (first, last) = if one < other { (one, other) } else { (other, one) };
        self.routes.get(&(first.clone(), last.clone()))
    }
}

/// The best way from every node to `to`.
fn ways(links: &[Link], ends: &[(usize, usize)], nodes: usize, to: usize) -> Vec<Option<Way>> {
    let mut best: Vec<Option<Way>> = vec![None; nodes];
    best[to] = Some((0, 0, vec![to]));
    let mut better = true;
    while better {
        better = false;
        for (link, &(a, b)) in links.iter().zip(ends) {
            for (near, far) in [(a, b), (b, a)] {
                let Some((latency_us, hops, along)) = &best[near] else { continue };
                let longer = (latency_us + u64::from(link.latency_us), hops + 1);
                let known = best[far].as_ref().map(|(latency_us, hops, _)| (*latency_us, *hops));
                if known.is_some_and(|known| known < longer) {
                    continue;
                }
                let mut nodes = vec![far];
                nodes.extend(along);
                let way = (longer.0, longer.1, nodes);
                if best[far].as_ref().is_none_or(|known| way < *known) {
                    best[far] = Some(way);
                    better = true;
                }
            }
        }
    }
    best
}
