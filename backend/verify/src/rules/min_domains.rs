//! At least so many domains: until they are covered, each newcomer covers one more.

use super::{Facts, Kind, RuleRow};
use crate::ViolationKind;
use crate::reading::vm_in;
use cluster::{MinDomains, Name, Vm};

pub(super) fn check(
    row: RuleRow,
    name: &Name,
    rule: &MinDomains,
    vm: &Vm,
    facts: &impl Facts,
) -> Option<ViolationKind> {
    let MinDomains { vms, level, min } = rule;
    if !vm_in(vms, vm) {
        return None;
    }
    let domain = facts.domain(level);
    if domain.is_some() && facts.near(row, Kind::First, level) == 0 {
        return None;
    }
    let covered = facts.covered(row, Kind::First, level, *min);
    (covered < *min).then(|| ViolationKind::MinDomains {
        constraint: name.clone(),
        level: level.clone(),
        domain,
        covered,
        min: *min,
    })
}
