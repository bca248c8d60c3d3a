//! A VM that is placed, as one that looks for another host.

use cluster::{Name, Vm, VmKey};
use engine::State;

/// The VM under a name that is free, with the host where it is left out; and that host.
///
/// The VM itself stays in the tables: where its rules keep it apart from its own group, its
/// present rack or zone counts as taken until it has left.
pub(super) fn moving(state: &State, key: &VmKey) -> Option<(Vm, Name)> {
    let (_, entry) = state.find_vm(key)?;
    let host = state.host(entry.host)?.host.id.clone();
    let mut vm = entry.vm.as_ref().clone();
    // A VM that is placed cannot be placed again under its own name.
    let id = Name::new(&format!("{}:move", key.id)).unwrap_or_else(|_| vm.key.tenant.clone());
    vm.key = VmKey { id, ..vm.key };
    vm.excluded_hosts.push(host.clone());
    Some((vm, host))
}
