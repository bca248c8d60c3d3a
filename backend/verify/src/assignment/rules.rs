//! Rules of an assignment, each read as `cluster::assignment::Rule` words it.

use super::{AssignmentViolation, InUse, links};
use cluster::assignment::{NO_DOMAIN, Problem, Rule, Scope};
use cluster::{HostIx, VmIx};
use std::collections::{BTreeMap, BTreeSet};

/// An assignment, looked at for one rule.
struct Look<'a> {
    problem: &'a Problem,
    hosts: &'a [HostIx],
    scope: Scope,
}

impl Look<'_> {
    /// The different members of a group.
    fn group(&self, group: u32) -> BTreeSet<VmIx> {
        self.problem.groups[group as usize].iter().copied().collect()
    }

    /// Where a VM is, if that is in a domain.
    fn domain(&self, vm: VmIx) -> Option<u32> {
        let domain = self.problem.domain(self.scope, self.hosts[vm.0 as usize]);
        (domain != NO_DOMAIN).then_some(domain)
    }

    /// How many members each domain has that has any.
    fn counts(&self, group: u32) -> BTreeMap<u32, usize> {
        let mut counts = BTreeMap::new();
        for domain in self.group(group).into_iter().filter_map(|vm| self.domain(vm)) {
            *counts.entry(domain).or_insert(0) += 1;
        }
        counts
    }

    /// Members that are in no domain.
    fn homeless(&self, group: u32, rule: usize) -> Vec<AssignmentViolation> {
        let lost = self.group(group).into_iter().filter(|vm| self.domain(*vm).is_none());
        lost.map(|vm| AssignmentViolation::Homeless { rule, vm: vm.0 }).collect()
    }

    /// For each VM of a group that is in a domain: how many others of another group are there.
    fn neighbours(&self, group: u32, others: u32) -> Vec<(VmIx, u32, usize)> {
        let (counts, members) = (self.counts(others), self.group(others));
        let found = self.group(group).into_iter().filter_map(|vm| {
            let domain = self.domain(vm)?;
            let there = counts.get(&domain).copied().unwrap_or(0);
            Some((vm, domain, there - usize::from(members.contains(&vm))))
        });
        found.collect()
    }
}

pub(super) fn broken(
    problem: &Problem,
    hosts: &[HostIx],
    in_use: &InUse,
    rule: usize,
    what: &Rule,
) -> Vec<AssignmentViolation> {
    let (group, scope) = what.subject();
    let look = Look { problem, hosts, scope };
    let mut faults = Vec::new();
    match what {
        Rule::Apart { .. } => crowded(&look, group, 1, rule, &mut faults),
        Rule::Limit { most, .. } => crowded(&look, group, *most as usize, rule, &mut faults),
        Rule::Spread { domains: needed, .. } => {
            let found = look.counts(group).len();
            if found < *needed as usize {
                faults.push(AssignmentViolation::TooFewDomains { rule, found, needed: *needed });
            }
        }
        Rule::Dependency { needs, .. } => {
            faults = look.homeless(group, rule);
            let served = look.counts(*needs);
            let unserved =
                look.counts(group).into_keys().filter(|domain| !served.contains_key(domain));
            faults.extend(unserved.map(|domain| AssignmentViolation::Unserved { rule, domain }));
        }
        Rule::Together { .. } => {
            faults = look.homeless(group, rule);
            let found = look.counts(group).len();
            if found > 1 {
                faults.push(AssignmentViolation::Scattered { rule, found });
            }
        }
        Rule::Fence { hosts: inside, .. } => {
            for vm in look.group(group) {
                let host = hosts[vm.0 as usize];
                if !inside.contains(&host) {
                    let (vm, host) = (vm.0, host.0);
                    faults.push(AssignmentViolation::Outside { rule, vm, host });
                }
            }
        }
        Rule::Away { from, .. } => {
            let near = look.neighbours(group, *from).into_iter().filter(|found| found.2 > 0);
            faults.extend(near.map(|(vm, domain, others)| AssignmentViolation::TooNear {
                rule,
                vm: vm.0,
                domain,
                others,
            }));
        }
        Rule::Beside { with, .. } => {
            faults = look.homeless(group, rule);
            let alone = look.neighbours(group, *with).into_iter().filter(|found| found.2 == 0);
            faults.extend(alone.map(|(vm, domain, _)| AssignmentViolation::Lonely {
                rule,
                vm: vm.0,
                domain,
            }));
        }
        Rule::Skew { of, most, among, .. } => {
            faults = look.homeless(group, rule);
            let counts = look.counts(*of);
            let members = |domain: &u32| counts.get(domain).copied().unwrap_or(0);
            for domain in look.counts(group).keys() {
                let far = |other: &&u32| members(domain) > members(other) + *most as usize;
                if let Some(other) = among.iter().find(far) {
                    faults.push(AssignmentViolation::Uneven {
                        rule,
                        domain: *domain,
                        members: members(domain),
                        fewest: members(other),
                    });
                }
            }
        }
        Rule::Spare { hosts: kept, keep, .. } => {
            faults = spared(&look, in_use, (rule, group), kept, keep);
        }
        Rule::Network { .. } => faults = links::too_far(problem, hosts, rule, what),
        Rule::Clash { crowds, hosts: kept } => {
            let kept: BTreeSet<HostIx> = kept.iter().copied().collect();
            let of_host = Look { scope: Scope::Host, ..look };
            let on_hosts: BTreeMap<u32, BTreeMap<u32, usize>> =
                crowds.iter().map(|crowd| (crowd.group, of_host.counts(crowd.group))).collect();
            let on = |host: HostIx, group: u32| on_hosts[&group].get(&host.0).copied().unwrap_or(0);
            let clashes = kept.into_iter().filter(|&host| {
                crowds.iter().all(|crowd| on(host, crowd.group) >= crowd.members as usize)
            });
            faults.extend(clashes.map(|host| AssignmentViolation::Clash { rule, host: host.0 }));
        }
    }
    faults
}

fn crowded(
    look: &Look<'_>,
    group: u32,
    most: usize,
    rule: usize,
    faults: &mut Vec<AssignmentViolation>,
) {
    let crowded = look.counts(group).into_iter().filter(|(_, members)| *members > most);
    let fault = |(domain, members)| AssignmentViolation::Crowded { rule, domain, members };
    faults.extend(crowded.map(fault));
}

fn spared(
    look: &Look<'_>,
    in_use: &InUse,
    (rule, group): (usize, u32),
    hosts: &[HostIx],
    keep: &[u64],
) -> Vec<AssignmentViolation> {
    let kept: BTreeSet<HostIx> = hosts.iter().copied().collect();
    let members = look.group(group);
    let mut faults = Vec::new();
    for (resource, &keep) in keep.iter().enumerate() {
        let asks = |vm: &VmIx| {
            kept.contains(&look.hosts[vm.0 as usize]) && look.problem.demand(*vm)[resource] > 0
        };
        if keep == 0 || !members.iter().any(asks) {
            continue;
        }
        let unused = kept.iter().map(|host| {
            let row = host.0 as usize;
            look.problem.hosts[row].capacity[resource].saturating_sub(in_use.here[row][resource])
        });
        let unused = unused.sum();
        if unused < keep {
            let resource = resource as u32;
            faults.push(AssignmentViolation::NotSpared { rule, resource, unused, keep });
        }
    }
    faults
}
