//! Crowds that one host cannot have all of: how much of each a host has.

use super::state::Change;
use cluster::assignment::{Problem, Rule};
use std::collections::BTreeMap;

#[derive(Clone, Debug, Default)]
pub(crate) struct Clashes {
    rules: Vec<Clash>,
    /// Rules that each VM counts in, and the crowds of each; empty if there is no rule at all.
    of_vm: Vec<Vec<(u32, Vec<u32>)>>,
    counters: usize,
}

#[derive(Clone, Debug)]
pub(crate) struct Clash {
    /// In order.
    hosts: Vec<u32>,
    /// Members that each crowd has.
    needs: Vec<u32>,
    pub(crate) members: Vec<u32>,
    /// Where its counters begin: one for each crowd on each host.
    offset: usize,
}

/// How many of each crowd each host has.
#[derive(Clone, Debug, Default)]
pub(crate) struct Crowds {
    counts: Vec<u32>,
    /// Hosts with all crowds of a rule.
    broken: u64,
}

impl Clashes {
    pub(crate) fn compile(problem: &Problem) -> Self {
        let mut made = Self::default();
        let mut of_vm: BTreeMap<(u32, u32), Vec<u32>> = BTreeMap::new();
        for rule in &problem.rules {
            let Rule::Clash { crowds, hosts } = rule else { continue };
            let row = made.rules.len() as u32;
            let mut members = Vec::new();
            for (number, crowd) in (0..).zip(crowds) {
                for vm in &problem.groups[crowd.group as usize] {
                    let counted = of_vm.entry((vm.0, row)).or_default();
                    if !counted.contains(&number) {
                        counted.push(number);
                    }
                    members.push(vm.0);
                }
            }
            members.sort_unstable();
            members.dedup();
            let mut hosts: Vec<u32> = hosts.iter().map(|host| host.0).collect();
            hosts.sort_unstable();
            hosts.dedup();
            let needs: Vec<u32> = crowds.iter().map(|crowd| crowd.members).collect();
            let counters = hosts.len() * needs.len();
            made.rules.push(Clash { hosts, needs, members, offset: made.counters });
            made.counters += counters;
        }
        if !made.rules.is_empty() {
            made.of_vm = vec![Vec::new(); problem.vms.len()];
            for ((vm, rule), crowds) in of_vm {
                made.of_vm[vm as usize].push((rule, crowds));
            }
        }
        made
    }

    #[inline]
    fn of(&self, vm: u32) -> &[(u32, Vec<u32>)] {
        self.of_vm.get(vm as usize).map_or(&[], Vec::as_slice)
    }

    /// The rules that a VM on a host counts in.
    pub(crate) fn felt_on(&self, vm: u32, host: u32) -> impl Iterator<Item = &Clash> {
        let rules = self.of(vm).iter().map(|(rule, _)| &self.rules[*rule as usize]);
        rules.filter(move |rule| rule.first(host).is_some())
    }

    pub(crate) fn all(&self) -> &[Clash] {
        &self.rules
    }
}

impl Clash {
    /// The first of a host's counters.
    fn first(&self, host: u32) -> Option<usize> {
        let row = self.hosts.binary_search(&host).ok()?;
        Some(self.offset + row * self.needs.len())
    }

    pub(crate) fn hosts(&self) -> &[u32] {
        &self.hosts
    }
}

impl Crowds {
    pub(crate) fn none(clashes: &Clashes) -> Self {
        let mut made = Self { counts: vec![0; clashes.counters], broken: 0 };
        for rule in &clashes.rules {
            for &host in &rule.hosts {
                let first = rule.first(host).unwrap_or(rule.offset);
                made.broken += u64::from(made.has_all(rule, first));
            }
        }
        made
    }

    /// Becomes equal to others of the same rules.
    pub(crate) fn copy(&mut self, other: &Self) {
        self.counts.clone_from(&other.counts);
        self.broken = other.broken;
    }

    pub(crate) fn broken(&self) -> u64 {
        self.broken
    }

    fn has_all(&self, rule: &Clash, first: usize) -> bool {
        rule.needs.iter().zip(&self.counts[first..]).all(|(need, count)| count >= need)
    }

    /// A VM comes, or goes.
    #[inline]
    pub(crate) fn count(&mut self, clashes: &Clashes, vm: u32, host: u32, comes: bool) {
        for (row, crowds) in clashes.of(vm) {
            let rule = &clashes.rules[*row as usize];
            let Some(first) = rule.first(host) else { continue };
            let before = u64::from(self.has_all(rule, first));
            for &crowd in crowds {
                let count = &mut self.counts[first + crowd as usize];
                *count = if comes { *count + 1 } else { *count - 1 };
            }
            self.broken = self.broken + u64::from(self.has_all(rule, first)) - before;
        }
    }

    /// Whether a VM that is not placed could come.
    #[inline]
    pub(crate) fn may_arrive(&self, clashes: &Clashes, vm: u32, host: u32) -> bool {
        clashes.of(vm).iter().all(|(row, crowds)| {
            let rule = &clashes.rules[*row as usize];
            let Some(first) = rule.first(host) else { return true };
            let more = |crowd: u32| u32::from(crowds.contains(&crowd));
            let counts = (0..).zip(&self.counts[first..]).map(|(crowd, at)| at + more(crowd));
            !rule.needs.iter().zip(counts).all(|(&need, count)| count >= need)
        })
    }

    /// Whether rules that hold now hold after these changes at once.
    #[inline]
    pub(crate) fn hold_after(&self, clashes: &Clashes, changes: &[Change]) -> bool {
        clashes.rules.is_empty() || changes.iter().all(|it| self.holds(clashes, it, changes))
    }

    /// Whether the rules of a VM that moves hold where it goes.
    fn holds(&self, clashes: &Clashes, change: &Change, all: &[Change]) -> bool {
        clashes.of(change.vm).iter().all(|(row, _)| {
            let rule = &clashes.rules[*row as usize];
            let Some(first) = rule.first(change.to) else { return true };
            let mut counts: Vec<i64> =
                self.counts[first..][..rule.needs.len()].iter().map(|&it| i64::from(it)).collect();
            for other in all {
                let own = clashes.of(other.vm).iter().find(|(rule, _)| rule == row);
                let by = i64::from(other.to == change.to) - i64::from(other.from == change.to);
                for &crowd in own.iter().flat_map(|(_, crowds)| crowds) {
                    counts[crowd as usize] += by;
                }
            }
            !rule.needs.iter().zip(counts).all(|(&need, count)| count >= i64::from(need))
        })
    }
}
