//! Room that is kept free. A dimension of which nothing is kept is not looked at.

use super::Facts;
use crate::ViolationKind;
use crate::reading::vm_in;
use cluster::{Amounts, Keep, Name, Spare, Vm};

pub(super) fn check(
    name: &Name,
    rule: &Spare,
    vm: &Vm,
    demand: &Amounts,
    facts: &impl Facts,
    found: &mut Vec<ViolationKind>,
) {
    if rule.except.as_ref().is_some_and(|except| vm_in(except, vm)) {
        return;
    }
    for (dimension, asked) in demand.iter() {
        let Some(scope) = facts.scope(rule, dimension) else { return };
        let kept = kept(rule.keep, scope.allocatable);
        if kept > 0 && u128::from(scope.free) < u128::from(kept) + u128::from(asked) {
            found.push(ViolationKind::Spare {
                constraint: name.clone(),
                domain: rule.each.as_ref().and_then(|level| facts.domain(level)),
                dimension,
                asked,
                free: scope.free,
                kept,
            });
        }
    }
}

/// What has to stay free of what these hosts can promise.
fn kept(keep: Keep, mut allocatable: Vec<u64>) -> u64 {
    match keep {
        Keep::Permille(permille) => {
            let sum: u128 = allocatable.iter().map(|amount| u128::from(*amount)).sum();
            let share = sum * u128::from(permille);
            u64::try_from(share.div_ceil(1000)).unwrap_or(u64::MAX)
        }
        Keep::Hosts(hosts) => {
            allocatable.sort_unstable_by(|one, other| other.cmp(one));
            allocatable.iter().take(hosts as usize).sum()
        }
    }
}
