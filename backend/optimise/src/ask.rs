//! What is asked of an optimisation.

use crate::{Method, Prices};
use cluster::{HostIx, Name, Placed, Snapshot, Vm};
use solver::objective::{Setting, Wish};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Which VMs are looked for a host for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    /// Only those to come; whoever is placed stays.
    #[default]
    Pending,
    /// Also the placed VMs of a group.
    Group { tenant: Name, group: Name },
    /// Also the placed VMs on hosts of a pool.
    Pool(Name),
    /// Also the placed VMs on these hosts.
    Hosts(HashSet<Name>),
    /// Also every placed VM.
    Cluster,
}

#[derive(Clone, Debug, Default)]
pub struct Ask {
    pub scope: Scope,
    /// VMs that have no host yet.
    pub arrivals: Vec<Arc<Vm>>,
    pub wishes: Vec<Wish>,
    pub setting: Setting,
    pub method: Method,
    pub seed: u64,
    pub threads: u32,
    /// Whether a clock ends the search and not a number of steps.
    pub timed: bool,
    /// Placed VMs that may be moved at most.
    pub max_moves: Option<usize>,
    pub prices: Prices,
    /// A front of at most so many trade-offs instead of one answer.
    pub points: Option<usize>,
}

impl Scope {
    /// Whether a placed VM is not looked at.
    pub(crate) fn leaves_alone<'a>(&'a self, snapshot: &'a Snapshot) -> impl Fn(&Placed) -> bool {
        let pools: HashMap<&Name, Option<&Name>> =
            snapshot.hosts.iter().map(|host| (&host.id, host.pool.as_ref())).collect();
        move |placed: &Placed| match self {
            Self::Pending => true,
            Self::Cluster => false,
            Self::Group { tenant, group } => {
                placed.vm.key.tenant != *tenant || !groups(&placed.vm).contains(group)
            }
            Self::Hosts(hosts) => !hosts.contains(&placed.host),
            Self::Pool(pool) => pools.get(&placed.host).copied().flatten() != Some(pool),
        }
    }
}

/// Groups that a VM says it is in, by its groups and its spreads.
fn groups(vm: &Vm) -> HashSet<&Name> {
    vm.groups.iter().chain(vm.spreads.iter().map(|spread| &spread.group)).collect()
}

/// The host of a row.
pub(crate) fn host_name(snapshot: &Snapshot, host: HostIx) -> Option<&Name> {
    snapshot.hosts.get(host.0 as usize).map(|host| &host.id)
}
