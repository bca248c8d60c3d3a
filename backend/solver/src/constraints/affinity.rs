//! Together with, or apart from, VMs, groups and named hosts.

use crate::bits::{Bits, Mask};
use crate::domains::LevelIx;
use crate::groups::GroupIx;
use crate::problem::Problem;
use cluster::{AffinityKind, HostIx};
use smallvec::SmallVec;

/// An affinity rule with its subject looked up.
#[derive(Debug)]
pub(crate) struct Rule {
    pub(crate) kind: AffinityKind,
    /// The subject is named hosts, not VMs.
    pub(crate) about_hosts: bool,
    pub(crate) level: LevelIx,
    pub(crate) near: Near,
    /// A `Together` rule that the VM may start: it is a member and there is no other yet.
    pub(crate) open: bool,
    /// `None` when the rule is required.
    pub(crate) weight: Option<u16>,
}

/// The domains that the subject is in.
#[derive(Debug)]
pub(crate) enum Near {
    Group(GroupIx),
    /// In order, each once.
    Domains(SmallVec<[u32; 4]>),
}

impl Near {
    pub(crate) fn nobody() -> Self {
        Near::Domains(SmallVec::new())
    }
}

impl Rule {
    /// Whether the rule holds on a host.
    pub(crate) fn holds(&self, problem: &Problem, host: HostIx) -> bool {
        let domain = problem.domains.of(self.level, host);
        match self.kind {
            AffinityKind::Together => {
                domain.is_some_and(|domain| self.open || self.is_near(problem, domain))
            }
            AffinityKind::Apart => domain.is_none_or(|domain| !self.is_near(problem, domain)),
        }
    }

    /// Removes the hosts where the rule does not hold; says how many.
    pub(crate) fn narrow(&self, problem: &Problem, mask: &mut Mask, union: &mut Bits) -> u32 {
        let domains = &problem.domains;
        match self.kind {
            AffinityKind::Apart => {
                let mut removed = 0;
                self.for_each_domain(problem, |domain| {
                    removed += domains.remove_from(mask, self.level, domain);
                });
                removed
            }
            AffinityKind::Together if self.open => {
                domains.somewhere(self.level).map_or(0, |somewhere| mask.retain(somewhere))
            }
            AffinityKind::Together => {
                union.clear();
                self.for_each_domain(problem, |domain| domains.add_to(union, self.level, domain));
                mask.retain(union)
            }
        }
    }

    /// Calls `each` for every domain that the subject is in, each once.
    pub(crate) fn for_each_domain(&self, problem: &Problem, mut each: impl FnMut(u32)) {
        match &self.near {
            Near::Group(group) => {
                let members = problem.groups.members(*group, self.level);
                members.iter().for_each(|(domain, _)| each(domain));
            }
            Near::Domains(domains) => domains.iter().for_each(|&domain| each(domain)),
        }
    }

    fn is_near(&self, problem: &Problem, domain: u32) -> bool {
        match &self.near {
            Near::Group(group) => problem.groups.members(*group, self.level).get(domain) > 0,
            Near::Domains(domains) => domains.binary_search(&domain).is_ok(),
        }
    }
}
