//! Rules about room that stays unused on several hosts together.
//!
//! Sums, not counts: on the hosts of a rule, what is in use of each resource and how many of the
//! VMs that the rule binds ask for it.

use super::state::Change;
use cluster::assignment::{Problem, Rule};

#[derive(Clone, Debug, Default)]
pub(crate) struct Spares {
    rules: Vec<Spare>,
    /// Rules that each host is part of; empty if there is no rule at all.
    of_host: Vec<Vec<u32>>,
    resources: usize,
}

#[derive(Clone, Debug)]
pub(crate) struct Spare {
    pub(crate) hosts: Vec<u32>,
    /// What may be in use of each resource while one who asks for it is bound; `None` if nothing
    /// is kept of it.
    pub(crate) usable: Vec<Option<i64>>,
    /// The VMs that it binds.
    pub(crate) binds: Vec<bool>,
}

/// What is in use on the hosts of each rule, and by how many VMs that it binds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sums {
    used: Vec<i64>,
    asking: Vec<u32>,
    broken: u64,
}

impl Spares {
    pub(crate) fn compile(problem: &Problem) -> Self {
        let resources = problem.resources.len();
        let mut made = Self { resources, ..Self::default() };
        for rule in &problem.rules {
            let Rule::Spare { group, hosts, keep } = rule else { continue };
            let mut hosts: Vec<u32> = hosts.iter().map(|host| host.0).collect();
            hosts.sort_unstable();
            hosts.dedup();
            let whole = |resource: usize| -> i64 {
                hosts.iter().map(|&h| problem.hosts[h as usize].capacity[resource] as i64).sum()
            };
            let usable = keep.iter().enumerate();
            let usable = usable
                .map(|(resource, &keep)| (keep > 0).then(|| whole(resource) - keep as i64))
                .collect();
            let mut binds = vec![false; problem.vms.len()];
            problem.groups[*group as usize].iter().for_each(|vm| binds[vm.0 as usize] = true);
            made.rules.push(Spare { usable, hosts, binds });
        }
        if !made.rules.is_empty() {
            made.of_host = vec![Vec::new(); problem.hosts.len()];
            for (row, rule) in (0..).zip(&made.rules) {
                rule.hosts.iter().for_each(|&host| made.of_host[host as usize].push(row));
            }
        }
        made
    }

    pub(crate) fn all(&self) -> &[Spare] {
        &self.rules
    }

    /// The rules that a host is part of.
    #[inline]
    pub(crate) fn of(&self, host: u32) -> &[u32] {
        self.of_host.get(host as usize).map_or(&[], Vec::as_slice)
    }

    fn slot(&self, rule: u32, resource: usize) -> usize {
        rule as usize * self.resources + resource
    }
}

impl Sums {
    pub(crate) fn none(spares: &Spares) -> Self {
        let slots = spares.rules.len() * spares.resources;
        Self { used: vec![0; slots], asking: vec![0; slots], broken: 0 }
    }

    pub(crate) fn broken(&self) -> u64 {
        self.broken
    }

    pub(crate) fn used(&self, spares: &Spares, rule: u32, resource: usize) -> i64 {
        self.used[spares.slot(rule, resource)]
    }

    pub(crate) fn is_bound(&self, spares: &Spares, rule: u32, resource: usize) -> bool {
        self.asking[spares.slot(rule, resource)] > 0
    }

    /// A VM comes (`times` is 1) or goes (-1).
    #[inline]
    pub(crate) fn count(
        &mut self,
        spares: &Spares,
        vm: u32,
        demand: &[i32],
        host: u32,
        times: i64,
    ) {
        for &row in spares.of(host) {
            let rule = &spares.rules[row as usize];
            let binds = i64::from(rule.binds[vm as usize]);
            for (resource, &usable) in rule.usable.iter().enumerate() {
                let (Some(usable), true) = (usable, demand[resource] > 0) else { continue };
                let slot = spares.slot(row, resource);
                let lacks = |sums: &Self| match sums.asking[slot] {
                    0 => 0,
                    _ => (sums.used[slot] - usable).max(0) as u64,
                };
                let before = lacks(self);
                self.used[slot] += times * i64::from(demand[resource]);
                self.asking[slot] = (i64::from(self.asking[slot]) + times * binds) as u32;
                self.broken = self.broken + lacks(self) - before;
            }
        }
    }

    /// Whether nothing is taken from what is kept when a VM comes.
    #[inline]
    pub(crate) fn may_arrive(&self, spares: &Spares, vm: u32, demand: &[i32], host: u32) -> bool {
        spares.of(host).iter().all(|&row| {
            let rule = &spares.rules[row as usize];
            rule.usable.iter().enumerate().all(|(resource, usable)| {
                let Some(usable) = usable else { return true };
                let slot = spares.slot(row, resource);
                demand[resource] == 0
                    || !rule.binds[vm as usize] && self.asking[slot] == 0
                    || self.used[slot] + i64::from(demand[resource]) <= *usable
            })
        })
    }

    /// Whether rules that hold now hold after these changes at once.
    pub(crate) fn hold_after<'m>(
        &self,
        spares: &Spares,
        demand: impl Fn(u32) -> &'m [i32],
        changes: &[Change],
    ) -> bool {
        if spares.rules.is_empty() {
            return true;
        }
        let mut after = self.clone();
        for change in changes {
            after.count(spares, change.vm, demand(change.vm), change.from, -1);
            after.count(spares, change.vm, demand(change.vm), change.to, 1);
        }
        after.broken == 0
    }
}
