//! Assignment problems: which host for each of many VMs at once, and what is best.
//!
//! Plain data that readers of files and the engine fill in, that `solver` compiles to dense
//! tables and that `verify` reads for itself. Hosts, VMs and groups are rows of their tables.
//! What each rule and goal means is said here once, and nowhere else.

mod fabric;
mod goal;
mod goal_check;
mod rule;

pub use fabric::{Fabric, Route};
pub use goal::{
    Balance, Busiest, Curves, Distances, End, Far, Goal, Near, Outages, PARTS, Pair, Power, Rates,
    Sites, Traffic, Watched,
};
pub use rule::{Crowd, MAX_KEPT, MAX_LOAD, Rule, Scope};

use crate::{HostIx, MAX_AMOUNT, VmIx};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The whole question. An answer is a host for every VM.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    pub resources: Vec<Resource>,
    /// Names of the levels above hosts, such as rack or zone.
    pub levels: Vec<String>,
    pub hosts: Vec<Host>,
    /// What VMs ask for: an amount for each resource.
    pub shapes: Vec<Vec<u64>>,
    pub vms: Vec<Vm>,
    /// Members of each group.
    pub groups: Vec<Vec<VmIx>>,
    pub rules: Vec<Rule>,
    /// What network rules speak of.
    #[serde(default)]
    pub fabrics: Vec<Fabric>,
    /// What is to be small: the sum of all of them.
    pub goals: Vec<Goal>,
    /// What VMs that are no rows use of each host, beyond its `capacity`; none if it is empty.
    /// Goals count it, rules and capacity do not.
    pub standing: Vec<Standing>,
}

/// VMs on a host that are not asked about: they stay, whatever the answer is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Standing {
    /// An amount for each resource.
    pub used: Vec<u64>,
    pub vms: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resource {
    pub name: String,
    /// A VM that leaves its initial host goes on taking this from it as well as from the new one.
    pub transient: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Host {
    /// An amount for each resource.
    pub capacity: Vec<u64>,
    /// The host's domain at each level, or `NO_DOMAIN`. Domains have numbers of their own at every
    /// level.
    pub domains: Vec<u32>,
}

/// In place of a domain: the host is in none of the level.
pub const NO_DOMAIN: u32 = u32::MAX;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Vm {
    pub shape: u32,
    /// Where it runs now.
    pub initial: Option<HostIx>,
    /// The only hosts that may take it; all of them if there is no list. VMs with equal lists may
    /// share one: lists of large fleets are long.
    pub allowed: Option<Arc<[HostIx]>>,
}

/// What is wrong with a problem, by the field to look at.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProblemError {
    #[error("{field} has {found} entries, {expected} are needed")]
    Length { field: String, found: usize, expected: usize },
    #[error("{field} names row {found}, there are {rows}")]
    Row { field: String, found: u64, rows: usize },
    #[error("{field} is {found}, at most {most} is allowed; use a larger unit")]
    Amount { field: String, found: u64, most: u64 },
    #[error("{field} falls from {from} to {to}")]
    Falls { field: String, from: u64, to: u64 },
    #[error("{field} joins {a} and {b}, which are joined already or the same")]
    Route { field: String, a: u32, b: u32 },
    #[error("{field} could add up to {worst}, at most {MAX_LOAD} is allowed; use a larger unit")]
    Load { field: String, worst: u128 },
    #[error("{field} could add up to {worst}, at most {MAX_GOAL} is allowed; use smaller weights")]
    Goal { field: String, worst: u128 },
}

/// No goal may ever be worth more, so that sums and differences of all of them fit in 64 bits.
pub const MAX_GOAL: u128 = 1 << 56;

impl Problem {
    /// The domain of a host within a scope; `NO_DOMAIN` if it has none.
    pub fn domain(&self, scope: Scope, host: HostIx) -> u32 {
        match scope {
            Scope::Host => host.0,
            Scope::Level(level) => self.hosts[host.0 as usize].domains[level as usize],
        }
    }

    /// What a VM asks for, by resource.
    pub fn demand(&self, vm: VmIx) -> &[u64] {
        &self.shapes[self.vms[vm.0 as usize].shape as usize]
    }

    /// What VMs that are no rows use of a resource of a host.
    pub fn standing(&self, host: usize, resource: usize) -> u64 {
        self.standing.get(host).map_or(0, |standing| standing.used[resource])
    }

    /// All that a host has of a resource, what is in use by others than rows included.
    pub fn whole(&self, host: usize, resource: usize) -> u64 {
        self.hosts[host].capacity[resource] + self.standing(host, resource)
    }

    /// Whether the host has VMs that are no rows.
    pub fn is_on(&self, host: usize) -> bool {
        self.standing.get(host).is_some_and(|standing| standing.vms > 0)
    }

    /// Whether every row that is named exists and every table is as long as it has to be.
    pub fn check(&self) -> Result<(), ProblemError> {
        let (hosts, vms) = (self.hosts.len(), self.vms.len());
        for (row, host) in self.hosts.iter().enumerate() {
            amounts(|| format!("hosts[{row}].capacity"), &host.capacity, self.resources.len())?;
            let field = || format!("hosts[{row}].domains");
            length(field, host.domains.len(), self.levels.len())?;
        }
        for (row, shape) in self.shapes.iter().enumerate() {
            amounts(|| format!("shapes[{row}]"), shape, self.resources.len())?;
        }
        // Lists that VMs share are looked at once.
        let mut checked = rustc_hash::FxHashSet::default();
        for (row, vm) in self.vms.iter().enumerate() {
            within(|| format!("vms[{row}].shape"), vm.shape, self.shapes.len())?;
            if let Some(host) = vm.initial {
                within(|| format!("vms[{row}].initial"), host.0, hosts)?;
            }
            let list = vm.allowed.as_ref().filter(|list| checked.insert(Arc::as_ptr(list)));
            for host in list.iter().flat_map(|list| list.iter()) {
                within(|| format!("vms[{row}].allowed"), host.0, hosts)?;
            }
        }
        for (row, members) in self.groups.iter().enumerate() {
            for vm in members {
                within(|| format!("groups[{row}]"), vm.0, vms)?;
            }
        }
        for (row, fabric) in self.fabrics.iter().enumerate() {
            fabric.check(row)?;
        }
        for (row, rule) in self.rules.iter().enumerate() {
            rule.check(row, self)?;
        }
        self.check_standing()?;
        self.goals.iter().enumerate().try_for_each(|(row, goal)| goal.check(row, self))
    }
}

fn length(field: impl Fn() -> String, found: usize, expected: usize) -> Result<(), ProblemError> {
    if found == expected {
        return Ok(());
    }
    Err(ProblemError::Length { field: field(), found, expected })
}

fn within(field: impl Fn() -> String, found: u32, rows: usize) -> Result<(), ProblemError> {
    if (found as usize) < rows {
        return Ok(());
    }
    Err(ProblemError::Row { field: field(), found: found.into(), rows })
}

fn amounts(
    field: impl Fn() -> String,
    found: &[u64],
    resources: usize,
) -> Result<(), ProblemError> {
    length(&field, found.len(), resources)?;
    match found.iter().find(|&&found| found > MAX_AMOUNT) {
        Some(&found) => Err(ProblemError::Amount { field: field(), found, most: MAX_AMOUNT }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one_host() -> Problem {
        Problem {
            resources: vec![Resource { name: "cpu".into(), transient: false }],
            hosts: vec![Host { capacity: vec![8], domains: vec![] }],
            shapes: vec![vec![2]],
            vms: vec![Vm { shape: 0, initial: None, allowed: None }],
            groups: vec![vec![VmIx(0)]],
            ..Problem::default()
        }
    }

    fn check(damage: impl Fn(&mut Problem), expected: &str) {
        let mut problem = one_host();
        assert_eq!(problem.check(), Ok(()));
        damage(&mut problem);
        assert_eq!(problem.check().unwrap_err().to_string(), expected);
    }

    #[test]
    fn faults_are_named_by_field_and_value() {
        check(
            |problem| problem.hosts[0].capacity.push(1),
            "hosts[0].capacity has 2 entries, 1 are needed",
        );
        check(|problem| problem.vms[0].shape = 7, "vms[0].shape names row 7, there are 1");
        check(|problem| problem.groups[0].push(VmIx(1)), "groups[0] names row 1, there are 1");
        check(
            |problem| problem.shapes[0][0] = 1 << 31,
            "shapes[0] is 2147483648, at most 2147483647 is allowed; use a larger unit",
        );
        check(
            |problem| problem.rules.push(Rule::Apart { group: 0, scope: Scope::Level(0) }),
            "rules[0].scope names row 0, there are 0",
        );
        let rule = |problem: &mut Problem, rule| problem.rules.push(rule);
        check(
            |problem| rule(problem, Rule::Away { group: 0, from: 3, scope: Scope::Host }),
            "rules[0].from names row 3, there are 1",
        );
        check(
            |problem| rule(problem, Rule::Fence { group: 0, hosts: vec![HostIx(4)] }),
            "rules[0].hosts names row 4, there are 1",
        );
        let spare = |keep| Rule::Spare { group: 0, hosts: vec![HostIx(0)], keep };
        check(|problem| rule(problem, spare(vec![])), "rules[0].keep has 0 entries, 1 are needed");
        check(
            |problem| rule(problem, spare(vec![1 << 60])),
            "rules[0].keep is 1152921504606846976, at most 36028797002186752 is allowed; use a \
             larger unit",
        );
        let network = |over, bandwidth| Rule::Network {
            group: 0,
            to: 0,
            scope: Scope::Host,
            over,
            latency: None,
            bandwidth,
        };
        check(|problem| rule(problem, network(0, 1)), "rules[0].over names row 0, there are 0");
        let join = |problem: &mut Problem, between, links: &[u32]| {
            let route = |between| Route { between, latency: 1, links: links.to_vec() };
            problem.fabrics.push(Fabric { links: vec![1], routes: vec![route(between); 2] });
        };
        check(
            |problem| join(problem, (0, 1), &[2]),
            "fabrics[0].routes[0].links names row 2, there are 1",
        );
        check(
            |problem| join(problem, (0, 1), &[0]),
            "fabrics[0].routes[1] joins 0 and 1, which are joined already or the same",
        );
        check(
            |problem| {
                problem.fabrics.push(Fabric::default());
                rule(problem, network(0, 1 << 60));
            },
            "rules[0].bandwidth could add up to 1152921504606846976, at most 72057594037927936 is \
             allowed; use a larger unit",
        );
        let clash = |crowds| Rule::Clash { crowds, hosts: vec![HostIx(0)] };
        check(
            |problem| rule(problem, clash(vec![])),
            "rules[0].crowds has 0 entries, 1 are needed",
        );
        check(
            |problem| rule(problem, clash(vec![Crowd { group: 5, members: 1 }])),
            "rules[0].crowds names row 5, there are 1",
        );
        check(
            |problem| problem.goals.push(Goal::Energy { resource: 0, hosts: vec![] }),
            "goals[0].hosts has 0 entries, 1 are needed",
        );
        check(
            |problem| problem.goals.push(Goal::Peak { weight: 1 << 57 }),
            "goals[0] could add up to 144115188075855872, at most 72057594037927936 is allowed; \
             use smaller weights",
        );
    }
}
