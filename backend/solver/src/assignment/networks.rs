//! Rules about pairs of VMs and the ways between them, compiled: which domains reach each other,
//! over which links, and who is whose partner.
//!
//! VMs of a rule are of three kinds: of its first group only, of its second only, of both. Two are
//! partners unless both are of the first only, or both of the second only. VMs that are of the same
//! kinds in the same rules are of one *sort*: whatever is asked about one is true of all.

use super::tallies::Domains;
use cluster::assignment::{Fabric, Problem, Rule};
use rustc_hash::FxHashMap;

/// Kinds of a rule's VMs.
pub(super) const KINDS: usize = 3;
const FIRST: u8 = 0;
const SECOND: u8 = 1;
const BOTH: u8 = 2;

/// The sort of VMs that no such rule speaks of.
const NOBODY: u32 = 0;

/// In place of a row of a fabric's ends: the domain is joined to none.
const NO_NODE: u32 = u32::MAX;

#[derive(Clone, Debug, Default)]
pub(crate) struct Networks {
    pub(super) rules: Vec<Pairs>,
    /// By VM; empty if there is no rule at all.
    sort_of: Vec<u32>,
    /// Rules of each sort, and as which kind.
    sorts: Vec<Vec<(u32, u8)>>,
    /// Sorts that may feel it when one of a sort comes: those of rules over the same fabrics.
    felt_by: Vec<Vec<u32>>,
    /// What each link can carry, one fabric after the other.
    pub(super) carries: Vec<i64>,
    pub(super) counters: usize,
}

/// One rule.
#[derive(Clone, Debug)]
pub(crate) struct Pairs {
    domains: Domains,
    /// Where its counters begin: one for each kind in each domain, then those for hosts in none.
    offset: usize,
    pub(super) bandwidth: i64,
    fabric: u32,
    /// The row of each domain in `ways`.
    nodes: Vec<u32>,
    ends: usize,
    /// By two ends: the links on the way, if there is a way that is fast enough.
    ways: Vec<Option<Box<[u32]>>>,
    /// Whether one of a kind has anybody to be paired with.
    paired: [bool; KINDS],
}

impl Networks {
    pub(crate) fn compile(problem: &Problem) -> Self {
        let mut made = Self::default();
        let mut first_link = Vec::new();
        for fabric in &problem.fabrics {
            first_link.push(made.carries.len() as u32);
            made.carries.extend(fabric.links.iter().map(|&most| most.min(i64::MAX as u64) as i64));
        }
        let mut of_vm: Vec<Vec<(u32, u8)>> = vec![Vec::new(); problem.vms.len()];
        for rule in &problem.rules {
            let &Rule::Network { group, to, scope, over, latency, bandwidth } = rule else {
                continue;
            };
            let row = made.rules.len() as u32;
            let mut sizes = [0usize; KINDS];
            for (vm, kind) in kinds(problem, group, to) {
                of_vm[vm as usize].push((row, kind));
                sizes[kind as usize] += 1;
            }
            let others = |kind| partners(kind).map(|other| sizes[other as usize]).sum::<usize>();
            let domains = Domains::of(problem, scope);
            let mut pairs = Pairs {
                offset: made.counters,
                bandwidth: bandwidth as i64,
                fabric: over,
                nodes: vec![NO_NODE; domains.count],
                ends: 0,
                ways: Vec::new(),
                // One of both is not its own partner.
                paired: [others(FIRST) > 0, others(SECOND) > 0, others(BOTH) > 1],
                domains,
            };
            made.counters += (pairs.domains.count + 1) * KINDS;
            pairs.lay(
                &problem.fabrics[over as usize],
                first_link[over as usize],
                latency.unwrap_or(u64::MAX),
            );
            made.rules.push(pairs);
        }
        if !made.rules.is_empty() {
            made.sort(of_vm);
        }
        made
    }

    fn sort(&mut self, of_vm: Vec<Vec<(u32, u8)>>) {
        let mut known: FxHashMap<Vec<(u32, u8)>, u32> = FxHashMap::default();
        known.insert(Vec::new(), NOBODY);
        self.sorts.push(Vec::new());
        for kinds in of_vm {
            let next = self.sorts.len() as u32;
            let sort = *known.entry(kinds).or_insert_with_key(|kinds| {
                self.sorts.push(kinds.clone());
                next
            });
            self.sort_of.push(sort);
        }
        let over = |sort: &[(u32, u8)]| -> Vec<u32> {
            sort.iter().map(|&(rule, _)| self.rules[rule as usize].fabric).collect()
        };
        let fabrics: Vec<Vec<u32>> = self.sorts.iter().map(|sort| over(sort)).collect();
        let meets = |one: usize, other: &usize| {
            fabrics[one].iter().any(|fabric| fabrics[*other].contains(fabric))
        };
        let sorts = 0..self.sorts.len();
        self.felt_by = sorts
            .clone()
            .map(|one| {
                let felt = sorts.clone().filter(|other| meets(one, other));
                felt.map(|other| other as u32).collect()
            })
            .collect();
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    #[inline]
    pub(crate) fn sort_of(&self, vm: u32) -> u32 {
        self.sort_of.get(vm as usize).copied().unwrap_or(NOBODY)
    }

    /// Rules of a VM, and as which kind it is part of each.
    #[inline]
    pub(super) fn of(&self, vm: u32) -> &[(u32, u8)] {
        self.sorts.get(self.sort_of(vm) as usize).map_or(&[], Vec::as_slice)
    }

    /// All sorts, or those that feel it when a VM comes.
    pub(crate) fn felt_by(&self, vm: Option<u32>) -> Vec<u32> {
        match vm {
            Some(vm) => self.felt_by.get(self.sort_of(vm) as usize).cloned().unwrap_or_default(),
            None => (1..self.sorts.len() as u32).collect(),
        }
    }
}

impl Pairs {
    /// Takes in the routes that are fast enough.
    fn lay(&mut self, fabric: &Fabric, first_link: u32, slowest: u64) {
        let number = |domains: &Domains, domain| domains.number(domain).map(|row| row as usize);
        let fast = fabric.routes.iter().filter(|route| route.latency <= slowest);
        let mut known = Vec::new();
        for route in fast {
            let (a, b) = route.between;
            let ends = (number(&self.domains, a), number(&self.domains, b));
            // A domain without a host has nobody to reach.
            let (Some(a), Some(b)) = ends else { continue };
            for domain in [a, b] {
                if self.nodes[domain] == NO_NODE {
                    self.nodes[domain] = self.ends as u32;
                    self.ends += 1;
                }
            }
            known.push((self.nodes[a] as usize, self.nodes[b] as usize, &route.links));
        }
        self.ways = vec![None; self.ends * self.ends];
        for (a, b, links) in known {
            let links: Box<[u32]> = links.iter().map(|link| first_link + link).collect();
            self.ways[a * self.ends + b] = Some(links.clone());
            self.ways[b * self.ends + a] = Some(links);
        }
    }

    pub(super) fn domain(&self, host: u32) -> u32 {
        self.domains.of_host[host as usize]
    }

    pub(super) fn is_lost(&self, kind: u8, domain: u32) -> bool {
        domain as usize == self.domains.count && self.paired[kind as usize]
    }

    pub(super) fn is_one_domain(&self, a: u32, b: u32) -> bool {
        a == b && (a as usize) < self.domains.count
    }

    pub(super) fn slot(&self, kind: u8, domain: u32) -> usize {
        self.offset + domain as usize * KINDS + kind as usize
    }

    /// The links between two domains that are not one; `None` if they do not reach each other.
    pub(super) fn way(&self, a: u32, b: u32) -> Option<&[u32]> {
        let node = |domain: u32| self.nodes.get(domain as usize).filter(|&&node| node != NO_NODE);
        let (&a, &b) = (node(a)?, node(b)?);
        self.ways[a as usize * self.ends + b as usize].as_deref()
    }
}

/// The kinds that one of a kind is paired with.
pub(super) fn partners(kind: u8) -> impl Iterator<Item = u8> {
    (0..KINDS as u8).filter(move |&other| kind == BOTH || other != kind)
}

/// The different VMs of two groups, and of which kind each is.
fn kinds(problem: &Problem, group: u32, to: u32) -> Vec<(u32, u8)> {
    let mut found: FxHashMap<u32, u8> = FxHashMap::default();
    problem.groups[group as usize].iter().for_each(|vm| {
        found.insert(vm.0, FIRST);
    });
    for vm in &problem.groups[to as usize] {
        let kind = found.entry(vm.0).or_insert(SECOND);
        *kind = if *kind == FIRST { BOTH } else { *kind };
    }
    found.into_iter().collect()
}
