//! Each domain with one of these has one of those.

use super::{Facts, Kind, RuleRow};
use crate::ViolationKind;
use crate::reading::vm_in;
use cluster::{Dependency, Name, Vm};

pub(super) fn check(
    row: RuleRow,
    name: &Name,
    rule: &Dependency,
    vm: &Vm,
    facts: &impl Facts,
) -> Option<ViolationKind> {
    let Dependency { vms, on, level } = rule;
    if !vm_in(vms, vm) {
        return None;
    }
    let domain = facts.domain(level);
    let there = || {
        vm_in(on, vm)
            || facts.near(row, Kind::Second, level) > 0
            || facts.near(row, Kind::Both, level) > 0
    };
    if domain.is_some() && there() {
        return None;
    }
    let (constraint, level) = (name.clone(), level.clone());
    Some(ViolationKind::Dependency { constraint, level, domain })
}
