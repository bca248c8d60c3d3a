//! Goals of an assignment: what each of them counts, in integers.
//!
//! Rows of hosts, VMs, groups and domains are those of the problem. `check` in `goal_check` says
//! whether a goal's tables fit its problem.

use super::{Problem, Scope};
use crate::{HostIx, VmIx};
use serde::{Deserialize, Serialize};

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
    /// For each host with a VM what its curve says of its use of `resource`; and for so many of
    /// the hosts without one, the cheapest, what their curves begin with.
    Power { resource: u32, curves: Curves, keep_on: u32 },
    /// For each domain of `scope` what its hosts draw, as by `Power` without any that are kept on,
    /// above its entry of `limits`. Hosts in no domain, and domains beyond the list, have no limit.
    Heat { resource: u32, curves: Curves, scope: Scope, limits: Vec<u64> },
    /// For each host its fill by these rates.
    Share(Rates),
    /// For each host `weight` x the square of the distance of its fill from its class's target, in
    /// parts of `PARTS`, rounded down.
    Balance(Balance),
    /// For each VM the entry of `costs` for its class and its host's class.
    Table { costs: Vec<Vec<u64>>, vms: Vec<u32>, hosts: Vec<u32> },
    /// What it costs that VMs which talk to each other are apart.
    Traffic(Traffic),
    /// What is lost when domains fail.
    Outages(Outages),
}

/// Rates and weights are in parts of two to this power: products are shifted down by as much.
pub const PARTS: u32 = 20;

/// What hosts draw by how much they have in use. Uses count what VMs that are no rows use.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Curves {
    /// At equal distances from nothing in use to everything; straight lines between them, rounded
    /// up. Two points or more, none below the one before.
    pub points: Vec<Vec<u64>>,
    /// The curve of each host.
    pub of_host: Vec<u32>,
}

/// How full hosts are: the highest of rate x use over all resources, in parts of `PARTS`, rounded
/// down. Uses count what VMs that are no rows use.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rates {
    /// For each class of hosts, a rate for each resource.
    pub classes: Vec<Vec<u64>>,
    pub of_host: Vec<u32>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Balance {
    pub rates: Rates,
    /// The fill that hosts of each class are to have.
    pub targets: Vec<u64>,
    pub weight: u64,
}

/// For each pair `weight` x the distance of the two hosts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traffic {
    pub pairs: Vec<Pair>,
    /// The distance is the cost of the first of these whose scope has both hosts in one domain;
    /// without one, `far` says.
    pub near: Vec<Near>,
    pub far: Far,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pair {
    pub vm: VmIx,
    pub to: End,
    pub weight: u64,
}

/// Who a VM talks to: another VM, or one that is no row and stays on its host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum End {
    Vm(VmIx),
    Host(HostIx),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Near {
    pub scope: Scope,
    pub cost: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Far {
    Cost(u64),
    Sites(Sites),
}

/// Costs between sites, row by row, and the site of each host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sites {
    pub sites: u32,
    pub costs: Vec<u64>,
    pub of_host: Vec<u32>,
}

/// For each group and each domain of each scope, the group's weight x the domain's rate x the
/// square of how many members it has, in parts of `PARTS`, rounded down. Hosts in no domain, and
/// domains beyond the list of rates, lose nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outages {
    pub groups: Vec<Watched>,
    /// How often domains of a scope fail, by number; hosts by row.
    pub scopes: Vec<(Scope, Vec<u64>)>,
}

/// A group, and members of it that are no rows, by their hosts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Watched {
    pub group: u32,
    pub standing: Vec<HostIx>,
    pub weight: u64,
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

impl Goal {
    /// The goal as far as it is about these hosts, each once and in order; `None` where it is about
    /// more than what each host has. The spares that `Power` keeps on are left out.
    pub fn of_hosts(&self, hosts: &[u32]) -> Option<Self> {
        let pick = |of_host: &[u32]| hosts.iter().map(|&host| of_host[host as usize]).collect();
        let rates =
            |rates: &Rates| Rates { classes: rates.classes.clone(), of_host: pick(&rates.of_host) };
        Some(match self {
            Self::Energy { resource, hosts: powers } => Self::Energy {
                resource: *resource,
                hosts: hosts.iter().map(|&host| powers[host as usize]).collect(),
            },
            Self::Overload { weights, safe } => Self::Overload {
                weights: weights.clone(),
                safe: hosts.iter().map(|&host| safe[host as usize].clone()).collect(),
            },
            Self::Power { resource, curves, .. } => Self::Power {
                resource: *resource,
                curves: Curves { points: curves.points.clone(), of_host: pick(&curves.of_host) },
                keep_on: 0,
            },
            Self::Share(own) => Self::Share(rates(own)),
            Self::Balance(own) => {
                Self::Balance(Balance { rates: rates(&own.rates), ..own.clone() })
            }
            Self::Table { costs, vms, hosts: classes } => {
                Self::Table { costs: costs.clone(), vms: vms.clone(), hosts: pick(classes) }
            }
            Self::Peak { .. } | Self::Stranded { .. } => self.clone(),
            Self::Moves { .. } | Self::Heat { .. } | Self::Traffic(_) | Self::Outages(_) => {
                return None;
            }
        })
    }
}

impl Traffic {
    /// How far two hosts are from each other.
    pub fn distance(&self, problem: &Problem, a: HostIx, b: HostIx) -> u64 {
        let shared = |near: &&Near| {
            let domain = problem.domain(near.scope, a);
            domain != super::NO_DOMAIN && domain == problem.domain(near.scope, b)
        };
        if let Some(near) = self.near.iter().find(shared) {
            return near.cost;
        }
        match &self.far {
            Far::Cost(cost) => *cost,
            Far::Sites(fabric) => fabric.cost(a, b),
        }
    }
}

impl Sites {
    pub fn cost(&self, a: HostIx, b: HostIx) -> u64 {
        let site = |host: HostIx| self.of_host[host.0 as usize] as usize;
        self.costs[site(a) * self.sites as usize + site(b)]
    }
}
