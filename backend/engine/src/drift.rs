//! Drift: where the core's report of what runs differs from what the log says.

use crate::state::State;
use cluster::{Name, VmKey};
use std::collections::BTreeMap;

/// A VM as the core sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observed {
    pub vm: VmKey,
    pub host: Name,
}

/// One difference between what was observed and what is recorded.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Drift {
    /// Recorded on `host`, but nobody saw it there or elsewhere.
    Missing { vm: VmKey, host: Name },
    /// Runs on `host`, but was never placed or adopted.
    Unknown { vm: VmKey, host: Name },
    /// Recorded on one host and seen on another.
    Elsewhere { vm: VmKey, recorded: Name, observed: Name },
    /// Seen on two hosts at once.
    Twice { vm: VmKey, first: Name, second: Name },
}

/// Compares a full report of `hosts` with the state. VMs on hosts that were not reported are
/// left alone, and so are reservations that nobody has confirmed yet.
pub fn drift(state: &State, hosts: &[Name], observed: &[Observed]) -> Vec<Drift> {
    let mut found = Vec::new();
    let mut seen: BTreeMap<&VmKey, &Name> = BTreeMap::new();
    for Observed { vm, host } in observed {
        if let Some(first) = seen.insert(vm, host).filter(|first| *first != host) {
            let (first, second) = (first.clone(), host.clone());
            found.push(Drift::Twice { vm: vm.clone(), first, second });
        }
        match state.find_vm(vm).and_then(|(_, entry)| state.host(entry.host)) {
            None => found.push(Drift::Unknown { vm: vm.clone(), host: host.clone() }),
            Some(recorded) if recorded.host.id != *host => found.push(Drift::Elsewhere {
                vm: vm.clone(),
                recorded: recorded.host.id.clone(),
                observed: host.clone(),
            }),
            Some(_) => {}
        }
    }
    for host in hosts {
        let Some((_, entry)) = state.find_host(host) else { continue };
        for vm in entry.vms.iter().filter_map(|ix| state.vm(*ix)) {
            let is_held = vm.hold.is_some() || vm.vm.key.is_stand_in();
            if !is_held && !seen.contains_key(&vm.vm.key) {
                found.push(Drift::Missing { vm: vm.vm.key.clone(), host: host.clone() });
            }
        }
    }
    found.sort();
    found
}
