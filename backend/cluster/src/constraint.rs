//! Constraints that an operator installs: named, for the whole cluster, beside what VMs carry.
//!
//! The exact meaning of each is written in `backend/ARCHITECTURE.md` under "Installed
//! constraints"; `solver` and `verify` implement it independently of each other.

use crate::{Host, Labels, Level, Name, Selector, Vm};
use serde::{Deserialize, Serialize};

/// Most constraints that a cluster may have: every request is held against each of them.
pub const MAX_CONSTRAINTS: usize = 256;
/// Most links of one fabric, and most domains that they may join: routes are kept for every pair.
pub const MAX_LINKS: usize = 1_024;
pub const MAX_LINKED_DOMAINS: usize = 256;

/// A constraint under the name that it was installed with.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Constraint {
    pub name: Name,
    pub rule: ConstraintRule,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ConstraintRule {
    Fence(Fence),
    MinDomains(MinDomains),
    Limit(Limit),
    Exclusive(Exclusive),
    Dependency(Dependency),
    Links(Links),
    Network(Network),
    Spare(Spare),
}

/// Which VMs a constraint speaks of: those that meet every condition; without any, all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct VmSet {
    pub tenant: Option<Name>,
    /// A group of `tenant`, which must be given with it.
    pub group: Option<Name>,
    /// Conditions on the VM's own labels.
    pub labels: Vec<Selector>,
}

/// Which hosts a constraint speaks of: those that meet every condition; without any, all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct HostSet {
    pub pool: Option<Name>,
    pub within: Vec<Within>,
    pub labels: Vec<Selector>,
}

/// In one of these domains of a level.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Within {
    pub level: Level,
    pub names: Vec<Name>,
}

/// These VMs run on these hosts only: for licences, and for what the law says of data.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Fence {
    pub vms: VmSet,
    pub hosts: HostSet,
    /// The hosts take no other VMs either.
    pub reserved: bool,
}

/// The VMs cover at least so many domains of a level.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct MinDomains {
    pub vms: VmSet,
    pub level: Level,
    /// At least 2.
    pub min: u32,
}

/// At most so many of the VMs in one domain of a level.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Limit {
    pub vms: VmSet,
    pub level: Level,
    /// At least 1.
    pub max: u32,
}

/// The VMs share their hosts with no others.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Exclusive {
    pub vms: VmSet,
    pub sharing: Sharing,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Sharing {
    /// Members may be beside each other.
    #[default]
    Members,
    /// Each has its host for itself.
    Nobody,
}

/// Each domain of a level with one of `vms` has one of `on`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Dependency {
    pub vms: VmSet,
    pub on: VmSet,
    pub level: Level,
}

/// A fabric: how the domains of a level are joined. Limits nobody by itself.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Links {
    pub level: Level,
    pub links: Vec<Link>,
}

/// A link that is the same in both directions.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Link {
    pub a: Name,
    pub b: Name,
    pub latency_us: u32,
    pub bandwidth_mbps: u32,
}

/// What each pair of one of `vms` and one of `to` needs of the fabric `over`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Network {
    pub vms: VmSet,
    pub to: VmSet,
    /// The name of a `Links` constraint.
    pub over: Name,
    pub max_latency_us: Option<u32>,
    /// Set aside for the pair on every link of its route; 0 for none.
    pub bandwidth_mbps: u32,
}

/// Room that is kept free for the day when it is needed.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Spare {
    pub hosts: HostSet,
    /// In each domain of this level by itself; `None` over all the hosts together.
    pub each: Option<Level>,
    pub keep: Keep,
    /// VMs that may use it.
    pub except: Option<VmSet>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Keep {
    /// This share of what is allocatable of each dimension, 1 to 999.
    Permille(u32),
    /// As much of each dimension as the largest so many hosts have together.
    Hosts(u32),
}

impl ConstraintRule {
    /// The type's name on the wire.
    pub fn type_name(&self) -> &'static str {
        match self {
            ConstraintRule::Fence(_) => "fence",
            ConstraintRule::MinDomains(_) => "min_domains",
            ConstraintRule::Limit(_) => "limit",
            ConstraintRule::Exclusive(_) => "exclusive",
            ConstraintRule::Dependency(_) => "dependency",
            ConstraintRule::Links(_) => "links",
            ConstraintRule::Network(_) => "network",
            ConstraintRule::Spare(_) => "spare",
        }
    }

    /// The sets of VMs that it speaks of: whom it is about, and whom they are held against.
    pub fn vm_sets(&self) -> [Option<&VmSet>; 2] {
        match self {
            ConstraintRule::Fence(Fence { vms, .. })
            | ConstraintRule::MinDomains(MinDomains { vms, .. })
            | ConstraintRule::Limit(Limit { vms, .. })
            | ConstraintRule::Exclusive(Exclusive { vms, .. }) => [Some(vms), None],
            ConstraintRule::Dependency(Dependency { vms, on, .. }) => [Some(vms), Some(on)],
            ConstraintRule::Network(Network { vms, to, .. }) => [Some(vms), Some(to)],
            ConstraintRule::Spare(Spare { except, .. }) => [except.as_ref(), None],
            ConstraintRule::Links(_) => [None, None],
        }
    }

    /// The level whose domains it counts or joins.
    pub fn level(&self) -> Option<&Level> {
        match self {
            ConstraintRule::MinDomains(MinDomains { level, .. })
            | ConstraintRule::Limit(Limit { level, .. })
            | ConstraintRule::Dependency(Dependency { level, .. })
            | ConstraintRule::Links(Links { level, .. }) => Some(level),
            ConstraintRule::Spare(Spare { each, .. }) => each.as_ref(),
            ConstraintRule::Fence(_)
            | ConstraintRule::Exclusive(_)
            | ConstraintRule::Network(_) => None,
        }
    }
}

impl VmSet {
    pub fn contains(&self, vm: &Vm) -> bool {
        self.tenant.as_ref().is_none_or(|tenant| *tenant == vm.key.tenant)
            && self.group.as_ref().is_none_or(|group| is_member(vm, group))
            && all_match(&self.labels, &vm.labels)
    }
}

impl HostSet {
    pub fn contains(&self, host: &Host) -> bool {
        let inside = |within: &Within| {
            host.domain(&within.level).is_some_and(|domain| within.names.contains(domain))
        };
        self.pool.as_ref().is_none_or(|pool| host.pool.as_ref() == Some(pool))
            && self.within.iter().all(inside)
            && all_match(&self.labels, &host.labels)
    }
}

fn all_match(selectors: &[Selector], labels: &Labels) -> bool {
    selectors.iter().all(|selector| selector.matches(labels))
}

fn is_member(vm: &Vm, group: &Name) -> bool {
    vm.groups.contains(group) || vm.spreads.iter().any(|spread| spread.group == *group)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Amounts, SelectorOp, Spread, Strength, VmKey};

    fn name(text: &str) -> Name {
        Name::new(text).expect("a valid name")
    }

    #[test]
    fn a_vm_is_in_a_set_when_it_meets_every_condition() {
        let key = VmKey { tenant: name("acme"), id: name("vm") };
        let mut vm = Vm::new(key, Amounts::zero());
        vm.labels.insert(name("os"), name("macos"));
        vm.spreads.push(Spread {
            group: name("web"),
            level: Level::Zone,
            max_skew: 1,
            strength: Strength::Preferred(1),
        });
        let os = |value: &str| Selector { key: name("os"), op: SelectorOp::In(vec![name(value)]) };
        let check = |tenant: Option<&str>, group: Option<&str>, os_is: Option<&str>, expect| {
            let labels = os_is.map(os).into_iter().collect();
            let set = VmSet { tenant: tenant.map(name), group: group.map(name), labels };
            assert_eq!(set.contains(&vm), expect, "{set:?}");
        };
        check(None, None, None, true);
        check(Some("acme"), None, None, true);
        check(Some("other"), None, None, false);
        check(Some("acme"), Some("web"), Some("macos"), true);
        check(Some("acme"), Some("db"), None, false);
        check(None, None, Some("linux"), false);
    }

    #[test]
    fn a_host_is_in_a_set_when_it_meets_every_condition() {
        let mut host = Host::new(name("h"), Amounts::zero());
        host.pool = Some(name("gold"));
        host.location.zone = Some(name("a"));
        let within = |level, names: &[&str]| Within {
            level,
            names: names.iter().map(|text| name(text)).collect(),
        };
        let check = |set: HostSet, expect| assert_eq!(set.contains(&host), expect, "{set:?}");
        check(HostSet::default(), true);
        check(HostSet { pool: Some(name("gold")), ..HostSet::default() }, true);
        check(HostSet { pool: Some(name("silver")), ..HostSet::default() }, false);
        let zones =
            HostSet { within: vec![within(Level::Zone, &["b", "a"])], ..HostSet::default() };
        check(zones, true);
        let racks = HostSet { within: vec![within(Level::Rack, &["r1"])], ..HostSet::default() };
        check(racks, false);
    }
}
