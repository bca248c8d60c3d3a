//! At most so many of certain VMs in one domain. A host in no domain is not limited.

use super::{Facts, Kind, RuleRow};
use crate::ViolationKind;
use crate::reading::vm_in;
use cluster::{Limit, Name, Vm};

pub(super) fn check(
    row: RuleRow,
    name: &Name,
    limit: &Limit,
    vm: &Vm,
    facts: &impl Facts,
) -> Option<ViolationKind> {
    if !vm_in(&limit.vms, vm) {
        return None;
    }
    let domain = facts.domain(&limit.level)?;
    let members = facts.near(row, Kind::First, &limit.level);
    (members >= limit.max).then(|| ViolationKind::Limit {
        constraint: name.clone(),
        level: limit.level.clone(),
        domain,
        members,
        max: limit.max,
    })
}
