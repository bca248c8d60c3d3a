//! Checks and prices a whole assignment from the problem's own words.
//!
//! Plain loops over `cluster::assignment::Problem`: every rule is read as it is written there, and
//! every goal is added up from nothing.

mod rules;

use cluster::assignment::{Goal, Problem};
use cluster::{HostIx, VmIx};
use std::collections::{BTreeMap, BTreeSet};

/// What is wrong with an assignment.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AssignmentViolation {
    #[error("{found} hosts are named for {vms} VMs")]
    Length { found: usize, vms: usize },
    #[error("VM {vm} is on host {host}, there are {hosts}")]
    NoSuchHost { vm: u32, host: u32, hosts: usize },
    #[error("VM {vm} may not be on host {host}")]
    NotAllowed { vm: u32, host: u32 },
    #[error("host {host} has {capacity} of resource {resource}, {used} are used")]
    OverCapacity { host: u32, resource: u32, used: u64, capacity: u64 },
    #[error("host {host} has {capacity} of resource {resource}, {used} are used while VMs move")]
    OverWhileMoving { host: u32, resource: u32, used: u64, capacity: u64 },
    #[error("rule {rule}: {members} members are in domain {domain}")]
    Crowded { rule: usize, domain: u32, members: usize },
    #[error("rule {rule}: members are in {found} domains, {needed} are needed")]
    TooFewDomains { rule: usize, found: usize, needed: u32 },
    #[error("rule {rule}: domain {domain} has a member and nothing that it depends on")]
    Unserved { rule: usize, domain: u32 },
    #[error("rule {rule}: members are in {found} domains, all have to be in one")]
    Scattered { rule: usize, found: usize },
    #[error("rule {rule}: VM {vm} is on host {host}, outside the fence")]
    Outside { rule: usize, vm: u32, host: u32 },
    #[error("rule {rule}: VM {vm} is in no domain")]
    Homeless { rule: usize, vm: u32 },
    #[error("rule {rule}: VM {vm} shares domain {domain} with {others} that it must be away from")]
    TooNear { rule: usize, vm: u32, domain: u32, others: usize },
    #[error("rule {rule}: VM {vm} has nobody to be with in domain {domain}")]
    Lonely { rule: usize, vm: u32, domain: u32 },
    #[error("rule {rule}: domain {domain} has {members} members, another has {fewest}")]
    Uneven { rule: usize, domain: u32, members: usize, fewest: usize },
    #[error("rule {rule}: {unused} of resource {resource} are unused, {keep} are to be kept")]
    NotSpared { rule: usize, resource: u32, unused: u64, keep: u64 },
}

/// A sound assignment's worth, goal by goal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AssignmentWorth {
    pub goals: Vec<i64>,
}

impl AssignmentWorth {
    pub fn objective(&self) -> i64 {
        self.goals.iter().sum()
    }
}

/// Everything that is wrong with an assignment, or what it is worth.
///
/// The problem itself is sound: `Problem::check` has been asked.
pub fn assignment(
    problem: &Problem,
    hosts: &[HostIx],
) -> Result<AssignmentWorth, Vec<AssignmentViolation>> {
    let faults = rows(problem, hosts);
    if !faults.is_empty() {
        return Err(faults);
    }
    let mut faults = capacities(problem, hosts);
    for (vm, &host) in (0..).zip(hosts) {
        let allowed = problem.vms[vm as usize].allowed.as_ref();
        if allowed.is_some_and(|allowed| !allowed.contains(&host)) {
            faults.push(AssignmentViolation::NotAllowed { vm, host: host.0 });
        }
    }
    for (row, rule) in problem.rules.iter().enumerate() {
        faults.extend(rules::broken(problem, hosts, row, rule));
    }
    if !faults.is_empty() {
        return Err(faults);
    }
    let goals = problem.goals.iter().map(|goal| worth(problem, hosts, goal)).collect();
    Ok(AssignmentWorth { goals })
}

fn rows(problem: &Problem, hosts: &[HostIx]) -> Vec<AssignmentViolation> {
    if hosts.len() != problem.vms.len() {
        let (found, vms) = (hosts.len(), problem.vms.len());
        return vec![AssignmentViolation::Length { found, vms }];
    }
    let known = problem.hosts.len();
    let strange = (0..).zip(hosts).filter(|(_, host)| host.0 as usize >= known);
    let fault = |(vm, host): (u32, &HostIx)| AssignmentViolation::NoSuchHost {
        vm,
        host: host.0,
        hosts: known,
    };
    strange.map(fault).collect()
}

/// What is used on each host: by the VMs that are on it, and by those that left it.
fn usage(problem: &Problem, hosts: &[HostIx]) -> (Vec<Vec<u64>>, Vec<Vec<u64>>) {
    let nothing = vec![vec![0; problem.resources.len()]; problem.hosts.len()];
    let (mut here, mut left) = (nothing.clone(), nothing);
    for (vm, &host) in (0..).zip(hosts) {
        let initial = problem.vms[vm as usize].initial;
        for (resource, demand) in problem.demand(VmIx(vm)).iter().enumerate() {
            here[host.0 as usize][resource] += demand;
            if let Some(initial) = initial
                && initial != host
                && problem.resources[resource].transient
            {
                left[initial.0 as usize][resource] += demand;
            }
        }
    }
    (here, left)
}

fn capacities(problem: &Problem, hosts: &[HostIx]) -> Vec<AssignmentViolation> {
    let (here, left) = usage(problem, hosts);
    let mut faults = Vec::new();
    for (host, row) in (0..).zip(&problem.hosts) {
        for (resource, &capacity) in (0..).zip(&row.capacity) {
            let used = here[host as usize][resource as usize];
            let moving = used + left[host as usize][resource as usize];
            if used > capacity {
                faults.push(AssignmentViolation::OverCapacity { host, resource, used, capacity });
            } else if moving > capacity {
                let used = moving;
                faults.push(AssignmentViolation::OverWhileMoving {
                    host,
                    resource,
                    used,
                    capacity,
                });
            }
        }
    }
    faults
}

fn worth(problem: &Problem, hosts: &[HostIx], goal: &Goal) -> i64 {
    let (here, _) = usage(problem, hosts);
    let capacity = |host: usize, resource: usize| problem.hosts[host].capacity[resource];
    let free = |host: usize, resource: u32| {
        let resource = resource as usize;
        i128::from(capacity(host, resource)) - i128::from(here[host][resource])
    };
    let every_host = 0..problem.hosts.len();
    let worth: i128 = match goal {
        Goal::Energy { resource, hosts: powers } => {
            let active: BTreeSet<usize> = hosts.iter().map(|host| host.0 as usize).collect();
            let idle: i128 = active.iter().map(|&host| i128::from(powers[host].idle)).sum();
            let work = (0..).zip(hosts).map(|(vm, host)| {
                let host = host.0 as usize;
                let whole = i128::from(capacity(host, *resource as usize));
                let part = i128::from(problem.demand(VmIx(vm))[*resource as usize]);
                let span = i128::from(powers[host].span);
                if whole == 0 { 0 } else { (2 * span * part + whole) / (2 * whole) }
            });
            idle + work.sum::<i128>()
        }
        Goal::Peak { weight } => {
            let all =
                every_host.flat_map(|host| (0..problem.resources.len()).map(move |r| (host, r)));
            let worth = all.filter(|&(host, resource)| capacity(host, resource) > 0).map(
                |(host, resource)| {
                    let product = u128::from(*weight) * u128::from(here[host][resource]);
                    product.div_ceil(u128::from(capacity(host, resource)))
                },
            );
            worth.max().unwrap_or(0) as i128
        }
        Goal::Overload { weights, safe } => {
            let above = |host: usize, resource: usize| {
                i128::from(here[host][resource].saturating_sub(safe[host][resource]))
            };
            let of_host = |host: usize| -> i128 {
                let resources = weights.iter().enumerate();
                resources.map(|(r, &weight)| i128::from(weight) * above(host, r)).sum()
            };
            every_host.map(of_host).sum()
        }
        Goal::Stranded { plenty, scarce, target, weight } => {
            let lost = |host| i128::from(*target) * free(host, *plenty) - free(host, *scarce);
            i128::from(*weight) * every_host.map(|host| lost(host).max(0)).sum::<i128>()
        }
        Goal::Moves { vms, between, busiest } => {
            let mut cost = 0;
            let mut in_group: BTreeMap<u32, i128> = BTreeMap::new();
            for (vm, &host) in hosts.iter().enumerate() {
                let Some(initial) = problem.vms[vm].initial.filter(|&initial| initial != host)
                else {
                    continue;
                };
                cost += i128::from(vms[vm]);
                if let Some(distances) = between {
                    let pair = initial.0 as usize * problem.hosts.len() + host.0 as usize;
                    cost += i128::from(distances.weight) * i128::from(distances.pairs[pair]);
                }
                if let Some(busiest) = busiest {
                    *in_group.entry(busiest.group_of[vm]).or_insert(0) += 1;
                }
            }
            let most = in_group.into_values().max().unwrap_or(0);
            cost + busiest.as_ref().map_or(0, |busiest| i128::from(busiest.weight) * most)
        }
    };
    // `Problem::check` limits every goal to 2^56.
    worth as i64
}
