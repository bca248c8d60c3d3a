//! Checks and prices a whole assignment from the problem's own words.
//!
//! Plain loops over `cluster::assignment::Problem`: every rule is read as it is written there, and
//! every goal is added up from nothing.

mod goals;
mod links;
mod rules;

use cluster::assignment::Problem;
use cluster::{HostIx, VmIx};
use std::collections::HashMap;
use std::sync::Arc;

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
    #[error("rule {rule}: VM {vm} and VM {other} have no way that is fast enough")]
    TooFar { rule: usize, vm: u32, other: u32 },
    #[error("link {link} of fabric {fabric} can carry {carries}, {load} are asked for")]
    Overloaded { fabric: usize, link: u32, load: u128, carries: u64 },
    #[error("rule {rule}: host {host} has all that no host can have at once")]
    Clash { rule: usize, host: u32 },
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
    let in_use = InUse::of(problem, hosts);
    let mut faults = capacities(problem, &in_use);
    faults.extend(not_allowed(problem, hosts));
    for (row, rule) in problem.rules.iter().enumerate() {
        faults.extend(rules::broken(problem, hosts, &in_use, row, rule));
    }
    faults.extend(links::overloaded(problem, hosts));
    if !faults.is_empty() {
        return Err(faults);
    }
    let worth = |goal| goals::worth(problem, hosts, &in_use, goal);
    Ok(AssignmentWorth { goals: problem.goals.iter().map(worth).collect() })
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

/// VMs on hosts that are not on their list. A list that many VMs share is looked through once.
fn not_allowed(problem: &Problem, hosts: &[HostIx]) -> Vec<AssignmentViolation> {
    let mut lists: HashMap<*const [HostIx], Vec<bool>> = HashMap::new();
    let mut faults = Vec::new();
    for ((vm, row), host) in (0..).zip(&problem.vms).zip(hosts) {
        let Some(allowed) = &row.allowed else { continue };
        let listed = lists.entry(Arc::as_ptr(allowed)).or_insert_with(|| {
            let mut listed = vec![false; problem.hosts.len()];
            allowed.iter().for_each(|host| listed[host.0 as usize] = true);
            listed
        });
        if !listed[host.0 as usize] {
            faults.push(AssignmentViolation::NotAllowed { vm, host: host.0 });
        }
    }
    faults
}

/// What is used on each host.
struct InUse {
    /// By the VMs that are on it.
    here: Vec<Vec<u64>>,
    /// By those that left it.
    left: Vec<Vec<u64>>,
    /// By those that are on it and by VMs that are no rows.
    in_all: Vec<Vec<u64>>,
    /// Whether it has a VM, row or not.
    active: Vec<bool>,
}

impl InUse {
    fn of(problem: &Problem, hosts: &[HostIx]) -> Self {
        let nothing = vec![vec![0; problem.resources.len()]; problem.hosts.len()];
        let (mut here, mut left) = (nothing.clone(), nothing);
        let mut active = vec![false; problem.hosts.len()];
        for (vm, &host) in (0..).zip(hosts) {
            let initial = problem.vms[vm as usize].initial;
            active[host.0 as usize] = true;
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
        let mut in_all = here.clone();
        for (host, standing) in problem.standing.iter().enumerate() {
            active[host] |= standing.vms > 0;
            in_all[host].iter_mut().zip(&standing.used).for_each(|(all, used)| *all += used);
        }
        Self { here, left, in_all, active }
    }
}

fn capacities(problem: &Problem, in_use: &InUse) -> Vec<AssignmentViolation> {
    let mut faults = Vec::new();
    for (host, row) in (0..).zip(&problem.hosts) {
        for (resource, &capacity) in (0..).zip(&row.capacity) {
            let used = in_use.here[host as usize][resource as usize];
            let moving = used + in_use.left[host as usize][resource as usize];
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
