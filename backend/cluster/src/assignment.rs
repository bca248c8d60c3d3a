//! Assignment problems: which host for each of many VMs at once, and what is best.
//!
//! Plain data that readers of files and the engine fill in, that `solver` compiles to dense
//! tables and that `verify` reads for itself. Hosts, VMs and groups are rows of their tables.
//! What each rule and goal means is said here once, and nowhere else.

mod rule;

pub use rule::{MAX_KEPT, Rule, Scope};

use crate::{HostIx, MAX_AMOUNT, VmIx};
use serde::{Deserialize, Serialize};

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
    /// What is to be small: the sum of all of them.
    pub goals: Vec<Goal>,
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
    /// The only hosts that may take it; all of them if there is no list.
    pub allowed: Option<Vec<HostIx>>,
}

/// What is wished for. Each is a number that is better when smaller; weights are part of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Goal {
    /// For each host with a VM its `idle`; for each VM `span` of its host x its demand of
    /// `resource` / the host's capacity of it, rounded half up. A host without the resource
    /// takes nothing for VMs.
    Energy { resource: u32, hosts: Vec<Power> },
    /// `weight` x the highest utilisation of any resource of any host, rounded up. Resources
    /// that a host does not have are left out.
    Peak { weight: u64 },
    /// For each host and resource, `weights` x what is used above `safe`.
    Overload { weights: Vec<u64>, safe: Vec<Vec<u64>> },
    /// For each host, `weight` x what `target` x the free amount of `plenty` exceeds the free
    /// amount of `scarce` by: that much could never be used in the wanted proportion.
    Stranded { plenty: u32, scarce: u32, target: u64, weight: u64 },
    /// For each VM that is not on its initial host, its entry of `vms` and what `between` says;
    /// and `busiest` for the group that counts most of them. Without an initial host nothing
    /// moves.
    Moves { vms: Vec<u64>, between: Option<Distances>, busiest: Option<Busiest> },
}

/// What a host takes in milliwatts, or in any other unit that all hosts share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Power {
    /// With any VM at all.
    pub idle: u64,
    /// What is added until the resource is used up.
    pub span: u64,
}

/// Cost of moving any VM from one host to another: `weight` x an entry for each pair, row by row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Distances {
    pub weight: u64,
    pub pairs: Vec<u32>,
}

/// `weight` x the most VMs that moved in any one group, where each VM counts in one group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Busiest {
    pub weight: u64,
    pub group_of: Vec<u32>,
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
        for (row, vm) in self.vms.iter().enumerate() {
            within(|| format!("vms[{row}].shape"), vm.shape, self.shapes.len())?;
            if let Some(host) = vm.initial {
                within(|| format!("vms[{row}].initial"), host.0, hosts)?;
            }
            for host in vm.allowed.iter().flatten() {
                within(|| format!("vms[{row}].allowed"), host.0, hosts)?;
            }
        }
        for (row, members) in self.groups.iter().enumerate() {
            for vm in members {
                within(|| format!("groups[{row}]"), vm.0, vms)?;
            }
        }
        for (row, rule) in self.rules.iter().enumerate() {
            rule.check(row, self)?;
        }
        self.goals.iter().enumerate().try_for_each(|(row, goal)| self.check_goal(row, goal))
    }

    fn check_goal(&self, row: usize, goal: &Goal) -> Result<(), ProblemError> {
        let (resources, hosts, vms) = (self.resources.len(), self.hosts.len(), self.vms.len());
        let name = |part: &str| format!("goals[{row}].{part}");
        match goal {
            Goal::Energy { resource, hosts: powers } => {
                within(|| name("resource"), *resource, resources)?;
                length(|| name("hosts"), powers.len(), hosts)?;
            }
            Goal::Peak { .. } => {}
            Goal::Overload { weights, safe } => {
                length(|| name("weights"), weights.len(), resources)?;
                length(|| name("safe"), safe.len(), hosts)?;
                safe.iter().try_for_each(|safe| amounts(|| name("safe"), safe, resources))?;
            }
            Goal::Stranded { plenty, scarce, target, .. } => {
                within(|| name("plenty"), *plenty, resources)?;
                within(|| name("scarce"), *scarce, resources)?;
                amounts(|| name("target"), &[*target], 1)?;
            }
            Goal::Moves { vms: costs, between, busiest } => {
                length(|| name("vms"), costs.len(), vms)?;
                if let Some(distances) = between {
                    length(|| name("between.pairs"), distances.pairs.len(), hosts * hosts)?;
                }
                if let Some(busiest) = busiest {
                    length(|| name("busiest.group_of"), busiest.group_of.len(), vms)?;
                    for &group in &busiest.group_of {
                        within(|| name("busiest.group_of"), group, self.groups.len())?;
                    }
                }
            }
        }
        let worst = self.worst(goal);
        if worst <= MAX_GOAL {
            return Ok(());
        }
        Err(ProblemError::Goal { field: format!("goals[{row}]"), worst })
    }

    /// No assignment within capacity is worth more than this.
    fn worst(&self, goal: &Goal) -> u128 {
        let whole =
            |host: &Host| host.capacity.iter().map(|&found| u128::from(found)).sum::<u128>();
        let vms = self.vms.len() as u128;
        match goal {
            Goal::Energy { hosts, .. } => {
                let powers =
                    hosts.iter().map(|power| u128::from(power.idle) + u128::from(power.span));
                powers.sum::<u128>() + vms
            }
            Goal::Peak { weight } => u128::from(*weight),
            Goal::Overload { weights, .. } => {
                let heaviest = u128::from(weights.iter().copied().max().unwrap_or(0));
                heaviest * self.hosts.iter().map(whole).sum::<u128>()
            }
            Goal::Stranded { target, weight, .. } => {
                let factor = u128::from(*target) * u128::from(*weight);
                factor * self.hosts.iter().map(whole).sum::<u128>()
            }
            Goal::Moves { vms: costs, between, busiest } => {
                let far = between.as_ref().map_or(0, |distances| {
                    let farthest = distances.pairs.iter().copied().max().unwrap_or(0);
                    u128::from(distances.weight) * u128::from(farthest)
                });
                let busiest = busiest.as_ref().map_or(0, |busiest| u128::from(busiest.weight));
                costs.iter().map(|&cost| u128::from(cost)).sum::<u128>() + vms * (far + busiest)
            }
        }
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
