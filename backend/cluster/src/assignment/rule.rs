//! Rules of an assignment: what must hold besides capacity and each VM's own list of hosts.
//!
//! All of them speak of where VMs are in the end, not of the way there. Groups are rows of
//! `Problem::groups`; a VM that a group lists twice is one member. What each rule says of hosts
//! that are in no domain of its level is part of its meaning.

use super::{Problem, ProblemError, length, within};
use crate::{HostIx, MAX_AMOUNT};
use serde::{Deserialize, Serialize};

/// Where members are counted: on each host, or in each domain of a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Scope {
    Host,
    Level(u32),
}

/// Most that may have to stay unused of a resource, so that sums over many hosts fit in 64 bits.
pub const MAX_KEPT: u64 = MAX_AMOUNT << 24;

/// Most that all pairs of one rule may take of a link, for the same reason.
pub const MAX_LOAD: u128 = 1 << 56;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Rule {
    /// No domain has two members. Hosts in no domain are not limited.
    Apart { group: u32, scope: Scope },
    /// Members are in at least this many domains. A host in no domain adds none.
    Spread { group: u32, scope: Scope, domains: u32 },
    /// Each domain with a member of `group` has a member of `needs`, and every member of `group` is
    /// in a domain.
    Dependency { group: u32, needs: u32, scope: Scope },
    /// One domain has all members.
    Together { group: u32, scope: Scope },
    /// Members are on these hosts only.
    Fence { group: u32, hosts: Vec<HostIx> },
    /// No domain has more than `most` members. Hosts in no domain are not limited.
    Limit { group: u32, scope: Scope, most: u32 },
    /// No member of `group` shares its domain with another VM that is of `from`. Hosts in no domain
    /// are shared freely.
    Away { group: u32, from: u32, scope: Scope },
    /// Every member of `group` shares its domain with another VM that is of `with`.
    Beside { group: u32, with: u32, scope: Scope },
    /// A domain with a member of `group` has at most `most` more members of `of` than each of the
    /// domains `among` has; every member of `group` is in a domain.
    Skew { group: u32, of: u32, scope: Scope, most: u32, among: Vec<u32> },
    /// While a member of `group` that asks for a resource is on one of `hosts`, this much of it
    /// is unused on them together; for each resource, 0 for those that are not looked at.
    Spare { group: u32, hosts: Vec<HostIx>, keep: Vec<u64> },
    /// Every two VMs of which one is of `group` and the other of `to` are in one domain, or in two
    /// that the fabric `over` joins by a route of at most this latency. On every link of its route
    /// such a pair takes `bandwidth`; pairs of all rules over the fabric together take no more than
    /// the link can carry. Whoever has somebody to be paired with is in a domain.
    Network { group: u32, to: u32, scope: Scope, over: u32, latency: Option<u64>, bandwidth: u64 },
    /// None of `hosts` has all of these crowds.
    Clash { crowds: Vec<Crowd>, hosts: Vec<HostIx> },
}

/// So many members of a group, or more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Crowd {
    pub group: u32,
    pub members: u32,
}

impl Rule {
    /// The group that is told where to be, and where it is counted.
    pub fn subject(&self) -> (u32, Scope) {
        match *self {
            Self::Apart { group, scope }
            | Self::Spread { group, scope, .. }
            | Self::Dependency { group, scope, .. }
            | Self::Together { group, scope }
            | Self::Limit { group, scope, .. }
            | Self::Away { group, scope, .. }
            | Self::Beside { group, scope, .. }
            | Self::Skew { group, scope, .. }
            | Self::Network { group, scope, .. } => (group, scope),
            Self::Clash { ref crowds, .. } => {
                (crowds.first().map_or(u32::MAX, |crowd| crowd.group), Scope::Host)
            }
            Self::Fence { group, .. } | Self::Spare { group, .. } => (group, Scope::Host),
        }
    }

    /// The group that the first one is held against.
    pub fn object(&self) -> Option<u32> {
        match *self {
            Self::Dependency { needs: other, .. }
            | Self::Away { from: other, .. }
            | Self::Beside { with: other, .. }
            | Self::Skew { of: other, .. }
            | Self::Network { to: other, .. } => Some(other),
            _ => None,
        }
    }

    /// All groups that it speaks of.
    pub fn groups(&self) -> Vec<u32> {
        match self {
            Self::Clash { crowds, .. } => crowds.iter().map(|crowd| crowd.group).collect(),
            _ => [self.subject().0].into_iter().chain(self.object()).collect(),
        }
    }

    /// Hosts that the rule speaks of by name.
    pub fn hosts(&self) -> Option<&[HostIx]> {
        match self {
            Self::Fence { hosts, .. } | Self::Spare { hosts, .. } | Self::Clash { hosts, .. } => {
                Some(hosts)
            }
            _ => None,
        }
    }

    /// What people call it.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Apart { .. } => "apart",
            Self::Spread { .. } => "spread",
            Self::Dependency { .. } => "dependency",
            Self::Together { .. } => "together",
            Self::Fence { .. } => "fence",
            Self::Limit { .. } => "limit",
            Self::Away { .. } => "away",
            Self::Beside { .. } => "beside",
            Self::Skew { .. } => "skew",
            Self::Spare { .. } => "spare",
            Self::Network { .. } => "network",
            Self::Clash { .. } => "clash",
        }
    }

    /// Whether every row that is named exists and every table is as long as it has to be.
    pub(super) fn check(&self, row: usize, problem: &Problem) -> Result<(), ProblemError> {
        let name = |part: &str| format!("rules[{row}].{part}");
        let (group, scope) = self.subject();
        if let Self::Clash { crowds, .. } = self {
            length(|| name("crowds"), crowds.len(), crowds.len().max(1))?;
            for crowd in crowds {
                within(|| name("crowds"), crowd.group, problem.groups.len())?;
            }
        }
        within(|| name("group"), group, problem.groups.len())?;
        if let Some(object) = self.object() {
            let part = match self {
                Self::Dependency { .. } => "needs",
                Self::Away { .. } => "from",
                Self::Beside { .. } => "with",
                Self::Network { .. } => "to",
                _ => "of",
            };
            within(|| name(part), object, problem.groups.len())?;
        }
        if let Scope::Level(level) = scope {
            within(|| name("scope"), level, problem.levels.len())?;
        }
        for host in self.hosts().unwrap_or_default() {
            within(|| name("hosts"), host.0, problem.hosts.len())?;
        }
        match self {
            Self::Spare { keep, .. } => {
                length(|| name("keep"), keep.len(), problem.resources.len())?;
                match keep.iter().find(|&&keep| keep > MAX_KEPT) {
                    Some(&found) => {
                        Err(ProblemError::Amount { field: name("keep"), found, most: MAX_KEPT })
                    }
                    None => Ok(()),
                }
            }
            Self::Network { to, over, bandwidth, .. } => {
                within(|| name("over"), *over, problem.fabrics.len())?;
                let members = |group: u32| problem.groups[group as usize].len() as u128;
                let worst = members(group) * members(*to) * u128::from(*bandwidth);
                match worst <= MAX_LOAD {
                    true => Ok(()),
                    false => Err(ProblemError::Load { field: name("bandwidth"), worst }),
                }
            }
            _ => Ok(()),
        }
    }
}
