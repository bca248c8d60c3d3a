//! Full re-derivation of what VMs have inside their hosts.

use crate::bindings::{Guest, Holder, bindings, newcomer, shared};
use crate::certify::about;
use crate::reading::{cpu_overcommit_permille, demand_on};
use crate::world::World;
use crate::{BindingViolation, Report, ViolationKind, Violations};
use cluster::{Bindings, Name, Placed, Snapshot, Vm};
use std::collections::BTreeMap;

/// Checks the parts of every VM where it stands. Nobody shares what is somebody's alone, whoever
/// they are; what adopted VMs have instead of what they ask for is drift.
pub(crate) fn standing(snapshot: &Snapshot, report: &mut Report) {
    let mut by_host: BTreeMap<&Name, Vec<&Placed>> = BTreeMap::new();
    for placed in &snapshot.placed {
        by_host.entry(&placed.host).or_default().push(placed);
        let kind = match (&placed.vm.topology, &placed.bindings) {
            (Some(_), None) => ViolationKind::NoBindings,
            (None, Some(_)) => ViolationKind::UnaskedBindings,
            _ => continue,
        };
        let list = if placed.adopted { &mut report.drift } else { &mut report.violations };
        list.push(about(&placed.vm.key, &placed.host, kind));
    }
    for host in &snapshot.hosts {
        let placed = by_host.get(&host.id).map_or(&[][..], Vec::as_slice);
        let guests: Vec<Guest<'_>> = placed.iter().filter_map(|placed| guest(placed)).collect();
        let holders: Vec<Holder<'_>> = placed.iter().filter_map(|placed| holder(placed)).collect();
        let overcommit = cpu_overcommit_permille(host);
        let always = shared(&host.hardware, overcommit, &holders);
        let mut own = bindings(&host.hardware, overcommit, &guests);
        own.retain(|found| !always.contains(found));
        for BindingViolation { vm, kind } in own {
            let adopted = placed.iter().any(|placed| placed.adopted && placed.vm.key == vm);
            let list = if adopted { &mut report.drift } else { &mut report.violations };
            list.push(about(&vm, &host.id, ViolationKind::Bindings { found: kind }));
        }
        for BindingViolation { vm, kind } in always {
            let kind = ViolationKind::Bindings { found: kind };
            report.violations.push(about(&vm, &host.id, kind));
        }
    }
}

/// Whether the parts of a host are right for a VM beside the others there.
pub(crate) fn decided(
    world: &World<'_>,
    row: usize,
    vm: &Vm,
    bindings: Option<&Bindings>,
) -> Violations {
    let host = world.hosts[row];
    let kinds = match (vm.topology.as_deref(), bindings) {
        (None, None) => Vec::new(),
        (Some(_), None) => vec![ViolationKind::NoBindings],
        (None, Some(_)) => vec![ViolationKind::UnaskedBindings],
        (Some(request), Some(bindings)) => {
            let demand = demand_on(host, vm);
            let guest = Guest { vm: &vm.key, request, demand: &demand, bindings };
            let overcommit = cpu_overcommit_permille(host);
            let others = world.holders(row).iter().filter(|holder| *holder.vm != vm.key);
            let others: Vec<Holder<'_>> = others.cloned().collect();
            let found = newcomer(&host.hardware, overcommit, &others, &guest);
            found.into_iter().map(|found| ViolationKind::Bindings { found: found.kind }).collect()
        }
    };
    kinds.into_iter().map(|kind| about(&vm.key, &host.id, kind)).collect()
}

fn holder(placed: &Placed) -> Option<Holder<'_>> {
    Some(Holder { vm: &placed.vm.key, bindings: placed.bindings.as_deref()? })
}

fn guest(placed: &Placed) -> Option<Guest<'_>> {
    Some(Guest {
        vm: &placed.vm.key,
        request: placed.vm.topology.as_deref()?,
        demand: &placed.committed,
        bindings: placed.bindings.as_deref()?,
    })
}
