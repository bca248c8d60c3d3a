//! A decision: where a VM goes and why, or why nowhere.

use crate::{Bindings, Dim, Name, Revision, VmKey};
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;
use std::sync::Arc;

/// How a host is chosen among those that may take the VM.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
pub enum Strategy {
    /// Highest weighted score.
    #[default]
    Balanced,
    /// Lowest host index.
    FirstFit,
    /// Fullest host after placing.
    BestFit,
    /// Emptiest host after placing.
    WorstFit,
    /// First fit, batch sorted by size, largest first.
    FirstFitDecreasing,
    /// Best fit, batch sorted by size, largest first.
    BestFitDecreasing,
    /// The next host after the one that was used last.
    RoundRobin,
    /// Lowest load before placing.
    LeastLoaded,
    /// Weighted score that prefers hosts and domains with few VMs.
    Spread,
    /// Weighted score that prefers hosts that are in use already.
    Consolidate,
    /// Fewest VMs, those of others included.
    FewestVms,
    /// Where the free room loses least of its worth to the mix of VMs that come.
    LeastFragmentation,
}

impl Strategy {
    pub const ALL: [Strategy; 12] = [
        Strategy::Balanced,
        Strategy::FirstFit,
        Strategy::BestFit,
        Strategy::WorstFit,
        Strategy::FirstFitDecreasing,
        Strategy::BestFitDecreasing,
        Strategy::RoundRobin,
        Strategy::LeastLoaded,
        Strategy::Spread,
        Strategy::Consolidate,
        Strategy::FewestVms,
        Strategy::LeastFragmentation,
    ];

    /// The strategy's name in requests and policies.
    pub fn name(self) -> &'static str {
        match self {
            Strategy::Balanced => "balanced",
            Strategy::FirstFit => "first_fit",
            Strategy::BestFit => "best_fit",
            Strategy::WorstFit => "worst_fit",
            Strategy::FirstFitDecreasing => "ffd",
            Strategy::BestFitDecreasing => "bfd",
            Strategy::RoundRobin => "round_robin",
            Strategy::LeastLoaded => "least_loaded",
            Strategy::Spread => "spread",
            Strategy::Consolidate => "consolidate",
            Strategy::FewestVms => "fewest_vms",
            Strategy::LeastFragmentation => "least_fragmentation",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|strategy| strategy.name() == name)
    }
}

/// One part of the score.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Term {
    Fit,
    Affinity,
    Load,
    Locality,
    Cost,
}

impl Term {
    pub const ALL: [Term; 5] = [Term::Fit, Term::Affinity, Term::Load, Term::Locality, Term::Cost];

    pub fn name(self) -> &'static str {
        match self {
            Term::Fit => "fit",
            Term::Affinity => "affinity",
            Term::Load => "load",
            Term::Locality => "locality",
            Term::Cost => "cost",
        }
    }

    pub fn row(self) -> usize {
        self as usize
    }
}

/// The weighted parts of a score; their sum is the score.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Breakdown {
    /// By `Term`.
    pub terms: [i64; 5],
    /// What the active policies give or take.
    pub policy: i64,
}

impl Breakdown {
    /// A score in which no policy has a say.
    pub fn of_terms(terms: [i64; 5]) -> Self {
        Self { terms, policy: 0 }
    }

    pub fn get(&self, term: Term) -> i64 {
        self.terms[term.row()]
    }

    pub fn total(&self) -> i64 {
        self.terms.iter().sum::<i64>() + self.policy
    }
}

/// Why a host was left out. A host counts under the first reason that applies, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Reason {
    HostState,
    Pool,
    Selector,
    Taint,
    Datastore,
    ExcludedHost,
    HostAffinity,
    /// An installed constraint fences the VM in, or the host off.
    Fence,
    Affinity,
    AntiAffinity,
    Spread,
    MinDomains,
    Limit,
    Exclusive,
    Dependency,
    Network,
    Spare,
    /// A filter of an active policy.
    Policy,
    Capacity(Dim),
    /// Architecture or CPU features.
    Architecture,
    /// The thermal limit.
    Heat,
    /// GPUs of the kind and number, near each other.
    Gpus,
    /// NIC functions or accelerators.
    Devices,
    /// Cores and memory on NUMA nodes, and what has to be near them.
    Numa,
}

/// The order in which reasons are tried; `Capacity` follows, by dimension, then `INSIDE_REASONS`.
pub const REASON_ORDER: [Reason; 18] = [
    Reason::HostState,
    Reason::Pool,
    Reason::Selector,
    Reason::Taint,
    Reason::Datastore,
    Reason::ExcludedHost,
    Reason::HostAffinity,
    Reason::Fence,
    Reason::Affinity,
    Reason::AntiAffinity,
    Reason::Spread,
    Reason::MinDomains,
    Reason::Limit,
    Reason::Exclusive,
    Reason::Dependency,
    Reason::Network,
    Reason::Spare,
    Reason::Policy,
];

/// What is tried last, in this order, and only for VMs that ask for parts of a host.
pub const INSIDE_REASONS: [Reason; 5] =
    [Reason::Architecture, Reason::Heat, Reason::Gpus, Reason::Devices, Reason::Numa];

impl Reason {
    /// The reason's name on the wire; capacity is named by its dimension, so `None` there.
    pub fn name(self) -> Option<&'static str> {
        Some(match self {
            Reason::HostState => "host_state",
            Reason::Pool => "pool",
            Reason::Selector => "selector",
            Reason::Taint => "taint",
            Reason::Datastore => "datastore",
            Reason::ExcludedHost => "excluded_host",
            Reason::HostAffinity => "host_affinity",
            Reason::Fence => "fence",
            Reason::Affinity => "affinity",
            Reason::AntiAffinity => "anti_affinity",
            Reason::Spread => "spread",
            Reason::MinDomains => "min_domains",
            Reason::Limit => "limit",
            Reason::Exclusive => "exclusive",
            Reason::Dependency => "dependency",
            Reason::Network => "network",
            Reason::Spare => "spare",
            Reason::Policy => "policy",
            Reason::Capacity(_) => return None,
            Reason::Architecture => "architecture",
            Reason::Heat => "heat",
            Reason::Gpus => "gpus",
            Reason::Devices => "devices",
            Reason::Numa => "numa",
        })
    }
}

/// How many hosts were left out for each reason, sorted by reason; zero counts are not listed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Rejections(pub SmallVec<[(Reason, u32); 4]>);

impl Rejections {
    pub fn add(&mut self, reason: Reason, hosts: u32) {
        if hosts == 0 {
            return;
        }
        match self.0.binary_search_by_key(&reason, |(reason, _)| *reason) {
            Ok(row) => self.0[row].1 += hosts,
            Err(row) => self.0.insert(row, (reason, hosts)),
        }
    }

    pub fn total(&self) -> u64 {
        self.0.iter().map(|(_, hosts)| u64::from(*hosts)).sum()
    }
}

/// How many hosts one filter of an active policy left out, and the reason it gives.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PolicyRejection {
    pub policy: String,
    pub rule: String,
    pub reason: String,
    pub hosts: u32,
}

/// A host that would have done too.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Alternative {
    pub host: Name,
    pub score: i64,
}

/// What was decided.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Verdict {
    Placed {
        host: Name,
        incarnation: u64,
        score: i64,
        breakdown: Breakdown,
        /// The parts of the host that the VM gets, if it asks for any.
        bindings: Option<Arc<Bindings>>,
    },
    /// No host can take the VM; `Decision::rejections` accounts for every host.
    Rejected,
}

/// The full record of one placement decision: enough to show it and to compute it again.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Decision {
    pub vm: VmKey,
    pub verdict: Verdict,
    pub strategy: Strategy,
    /// The next best hosts, best first.
    pub alternatives: SmallVec<[Alternative; 3]>,
    /// Hosts left out, by reason. Together with the hosts that could take it: every host.
    pub rejections: Rejections,
    /// The filters of policies that left most hosts out, most first.
    pub policy_rejections: Vec<PolicyRejection>,
    pub hosts_considered: u32,
    /// The cluster revision that the decision was made on.
    pub based_on: Revision,
    pub policy_revision: u64,
    pub demand_revision: u64,
}

impl Decision {
    pub fn host(&self) -> Option<&Name> {
        match &self.verdict {
            Verdict::Placed { host, .. } => Some(host),
            Verdict::Rejected => None,
        }
    }

    /// The parts of its host that the VM gets.
    pub fn bindings(&self) -> Option<&Arc<Bindings>> {
        match &self.verdict {
            Verdict::Placed { bindings, .. } => bindings.as_ref(),
            Verdict::Rejected => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strategies_are_found_by_their_names() {
        for strategy in Strategy::ALL {
            assert_eq!(Strategy::from_name(strategy.name()), Some(strategy));
        }
        assert_eq!(Strategy::from_name("magic"), None);
    }

    #[test]
    fn rejections_stay_sorted_and_add_up() {
        let mut rejections = Rejections::default();
        rejections.add(Reason::Capacity(Dim::MEMORY_MIB), 3);
        rejections.add(Reason::Pool, 2);
        rejections.add(Reason::Pool, 1);
        rejections.add(Reason::Taint, 0);
        assert_eq!(
            rejections.0.as_slice(),
            [(Reason::Pool, 3), (Reason::Capacity(Dim::MEMORY_MIB), 3)]
        );
        assert_eq!(rejections.total(), 6);
    }
}
