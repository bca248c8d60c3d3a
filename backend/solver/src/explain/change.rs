//! Changes that take obstacles away, and what each costs.
//!
//! Costs are a total order over sets of changes, and every change costs something, so that a
//! cheapest set has nothing in it that could be left out and no number that could be smaller.

use super::obstacle::{Case, Obstacle};
use super::parts::{Part, cheapest};
use crate::problem::Problem;
use cluster::{
    Affinity, Dim, HostIx, HostState, Level, Name, Selector, Spread, Strength, Subject, Taint,
    Toleration, TolerationOp, Vm,
};

/// One change: to the request, or to what is around it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Ask for less of a dimension.
    Demand {
        dim: Dim,
        from: u64,
        to: u64,
    },
    /// Take any pool instead of this one.
    AnyPool {
        pool: Name,
    },
    DropSelector(Selector),
    Tolerate(Taint),
    DropDatastore(Name),
    /// Take the host off the list of excluded ones.
    AllowHost(Name),
    /// Wish for the rule instead of requiring it.
    PreferAffinity(Affinity),
    RaiseSkew {
        rule: Spread,
        to: u32,
    },
    PreferSpread(Spread),
    /// The `by` VMs in the domain no longer keep the subject away.
    WaiveRepulsion {
        subject: Subject,
        level: Level,
        domain: Name,
        by: u32,
    },
    /// The rule of a policy does not count for this VM.
    WaivePolicy {
        policy: String,
        rule: String,
    },
    /// The installed constraint, or those over the fabric of this name, do not count for this VM.
    WaiveConstraint {
        name: Name,
    },
    /// Ask for less of a host's parts.
    Relax(Part),
    /// The host takes VMs again.
    Reopen {
        host: Name,
        from: HostState,
    },
}

/// What changes cost, in parts of which `WHOLE` is all of a VM's demand in one dimension.
pub type Cost = u128;

/// Fine enough that one unit of the largest amount, which is below 2^31, still counts.
pub const WHOLE: Cost = 1 << 40;

/// Given to a rule that is wished for instead of required: the middle of 1 to 1000.
const WISH: Strength = Strength::Preferred(500);

impl Change {
    pub fn cost(&self) -> Cost {
        let thousandths = |n: Cost| n * WHOLE / 1000;
        match self {
            Change::Demand { from, to, .. } => {
                let cut = Cost::from(from.saturating_sub(*to)) * WHOLE / Cost::from((*from).max(1));
                // A VM that gets nothing of a dimension is hardly the VM that was asked for.
                if *to == 0 { cut + thousandths(3000) } else { cut }
            }
            Change::AllowHost(_) => thousandths(500),
            Change::RaiseSkew { rule, to } => {
                thousandths(250) * (1 + Cost::from(to.saturating_sub(rule.max_skew)))
            }
            Change::AnyPool { .. }
            | Change::DropSelector(_)
            | Change::Tolerate(_)
            | Change::PreferAffinity(_)
            | Change::PreferSpread(_) => thousandths(1000),
            Change::DropDatastore(_)
            | Change::WaivePolicy { .. }
            | Change::WaiveConstraint { .. } => thousandths(2000),
            Change::Relax(part) => thousandths(part.cost_thousandths()),
            // Each of them was promised that rule.
            Change::WaiveRepulsion { by, .. } => thousandths(1000) * (1 + Cost::from(*by)),
            Change::Reopen { from, .. } => thousandths(match from {
                HostState::Available | HostState::Cordoned => 2000,
                HostState::Draining => 3000,
                HostState::Maintenance => 4000,
                HostState::Down => 8000,
            }),
        }
    }

    /// Whether the change is to something else than the request.
    pub fn is_outside(&self) -> bool {
        matches!(
            self,
            Change::WaiveRepulsion { .. }
                | Change::WaivePolicy { .. }
                | Change::WaiveConstraint { .. }
                | Change::Reopen { .. }
        )
    }

    /// The same change with its number one unit nearer to what was asked for.
    pub fn one_less(&self) -> Option<Change> {
        match self {
            Change::Demand { dim, from, to } if to < from => {
                Some(Change::Demand { dim: *dim, from: *from, to: to + 1 })
            }
            Change::RaiseSkew { rule, to } if *to > rule.max_skew => {
                Some(Change::RaiseSkew { rule: rule.clone(), to: to - 1 })
            }
            _ => None,
        }
    }

    /// The same change with its number halfway to that of one that is too small, or to what was
    /// asked for; `None` if there is nothing between.
    pub(super) fn halfway(&self, too_small: Option<&Change>) -> Option<Change> {
        match (self, too_small) {
            (Change::Demand { dim, from, to }, least) => {
                let least = match least {
                    Some(Change::Demand { to, .. }) => *to,
                    _ => *from,
                };
                let middle = to + least.saturating_sub(*to) / 2;
                (middle > *to).then_some(Change::Demand { dim: *dim, from: *from, to: middle })
            }
            (Change::RaiseSkew { rule, to }, least) => {
                let least = match least {
                    Some(Change::RaiseSkew { to, .. }) => *to,
                    _ => rule.max_skew,
                };
                let middle = to - to.saturating_sub(least) / 2;
                (middle < *to).then(|| Change::RaiseSkew { rule: rule.clone(), to: middle })
            }
            _ => None,
        }
    }

    /// Makes the change to a VM. Changes outside of it leave the VM as it is.
    pub fn apply(&self, vm: &mut Vm) {
        match self {
            Change::Demand { dim, to, .. } => vm.demand.set(*dim, *to),
            Change::AnyPool { .. } => vm.pool = None,
            Change::DropSelector(gone) => vm.selectors.retain(|it| it != gone),
            Change::Tolerate(taint) => vm.tolerations.push(Toleration {
                key: Some(taint.key.clone()),
                op: TolerationOp::Equal(taint.value.clone()),
                effect: Some(taint.effect),
            }),
            Change::DropDatastore(gone) => vm.datastores.retain(|it| it != gone),
            Change::AllowHost(host) => vm.excluded_hosts.retain(|it| it != host),
            Change::PreferAffinity(rule) => {
                vm.affinities.iter_mut().filter(|it| *it == rule).for_each(|it| it.strength = WISH);
            }
            Change::RaiseSkew { rule, to } => {
                vm.spreads.iter_mut().filter(|it| *it == rule).for_each(|it| it.max_skew = *to);
            }
            Change::PreferSpread(rule) => {
                vm.spreads.iter_mut().filter(|it| *it == rule).for_each(|it| it.strength = WISH);
            }
            Change::Relax(part) => part.relax(&mut vm.topology),
            Change::WaiveRepulsion { .. }
            | Change::WaivePolicy { .. }
            | Change::WaiveConstraint { .. }
            | Change::Reopen { .. } => {}
        }
    }

    /// Whether a change outside the VM takes this obstacle on this host away.
    pub(super) fn waives(&self, obstacle: &Obstacle, on: &Name) -> bool {
        match (self, obstacle) {
            (Change::Reopen { host, .. }, Obstacle::HostState(_)) => host == on,
            (
                Change::WaiveRepulsion { subject, level, domain, .. },
                Obstacle::Repelled { subject: kept, level: at, domain: within, .. },
            ) => subject == kept && level == at && domain == within,
            (
                Change::WaivePolicy { policy, rule },
                Obstacle::Policy { policy: by, rule: fired, .. },
            ) => policy == by && rule == fired,
            (Change::WaiveConstraint { name }, Obstacle::Constraint { name: by, .. }) => name == by,
            _ => false,
        }
    }
}

/// The VM with these changes made to it.
pub fn changed(vm: &Vm, changes: &[Change]) -> Vm {
    let mut vm = vm.clone();
    changes.iter().for_each(|change| change.apply(&mut vm));
    vm
}

pub(super) fn total(changes: &[Change]) -> Cost {
    changes.iter().map(Change::cost).sum()
}

/// The least change that takes an obstacle on this host away; for parts, the least that may.
pub(super) fn remedy(
    problem: &Problem,
    case: &Case<'_>,
    vm: &Vm,
    ix: HostIx,
    obstacle: &Obstacle,
) -> Option<Change> {
    let host = problem.hosts.get(ix)?;
    Some(match obstacle {
        Obstacle::HostState(from) => Change::Reopen { host: host.id.clone(), from: *from },
        Obstacle::Pool { wanted, .. } => Change::AnyPool { pool: wanted.clone() },
        Obstacle::Selector { wanted, .. } => Change::DropSelector(wanted.clone()),
        Obstacle::Taint(taint) => Change::Tolerate(taint.clone()),
        Obstacle::Datastore(store) => Change::DropDatastore(store.clone()),
        Obstacle::ExcludedHost => Change::AllowHost(host.id.clone()),
        Obstacle::HostAffinity { rule, .. }
        | Obstacle::Affinity { rule, .. }
        | Obstacle::AntiAffinity { rule, .. } => Change::PreferAffinity(rule.clone()),
        Obstacle::Repelled { subject, level, domain, by } => Change::WaiveRepulsion {
            subject: subject.clone(),
            level: level.clone(),
            domain: domain.clone(),
            by: *by,
        },
        Obstacle::Spread { rule, domain: Some(_), skew, .. } => {
            Change::RaiseSkew { rule: rule.clone(), to: *skew }
        }
        Obstacle::Spread { rule, domain: None, .. } => Change::PreferSpread(rule.clone()),
        Obstacle::Policy { policy, rule, .. } => {
            Change::WaivePolicy { policy: policy.clone(), rule: rule.clone() }
        }
        Obstacle::Constraint { name, .. } => Change::WaiveConstraint { name: name.clone() },
        Obstacle::Parts { .. } => Change::Relax(cheapest(vm.topology.as_deref()?)?),
        Obstacle::Capacity { dim, .. } => Change::Demand {
            dim: *dim,
            from: vm.demand.get(*dim),
            to: case.most(problem, ix, *dim),
        },
    })
}
