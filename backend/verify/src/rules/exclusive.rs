//! Hosts that certain VMs have for themselves.

use super::{Facts, Kind, RuleRow};
use crate::ViolationKind;
use crate::reading::vm_in;
use cluster::{Exclusive, Level, Name, Sharing, Vm};

pub(super) fn check(
    row: RuleRow,
    name: &Name,
    rule: &Exclusive,
    vm: &Vm,
    facts: &impl Facts,
) -> Option<ViolationKind> {
    let members = facts.near(row, Kind::First, &Level::Host);
    let others = facts.vms_on_host().saturating_sub(members);
    let is_member = vm_in(&rule.vms, vm);
    let shared = match (is_member, rule.sharing) {
        (false, _) => members > 0,
        (true, Sharing::Members) => others > 0,
        (true, Sharing::Nobody) => members > 0 || others > 0,
    };
    let constraint = name.clone();
    shared.then_some(ViolationKind::Exclusive { constraint, is_member, members, others })
}
