//! Who has which parts of a host, as far as VMs are bound to any.

use super::{Ledger, LedgerError};
use crate::bindings::{Guest, Holder, newcomer, shared};
use crate::reading::cpu_overcommit_permille;
use crate::{BindingViolations, Violation, ViolationKind, Violations};
use cluster::{Amounts, Bindings, Host, HostIx, Vm, VmKey};
use rustc_hash::FxHashMap;
use std::sync::Arc;

#[derive(Debug, Default)]
pub(super) struct Parts {
    /// By host, in the order in which they came.
    bound: FxHashMap<HostIx, Vec<(VmKey, Arc<Bindings>)>>,
}

impl Parts {
    /// A VM that is bound on the host.
    pub(super) fn first(&self, host: HostIx) -> Option<&VmKey> {
        self.bound.get(&host)?.first().map(|(vm, _)| vm)
    }

    /// What others than this VM have of the host.
    fn others(&self, host: HostIx, vm: &VmKey) -> Vec<Holder<'_>> {
        let bound = self.bound.get(&host).map_or(&[][..], Vec::as_slice);
        let others = bound.iter().filter(|(holder, _)| holder != vm);
        others.map(|(vm, bindings)| Holder { vm, bindings }).collect()
    }
}

impl Ledger {
    /// Records the parts of a host that a VM on it has.
    pub fn bind(
        &mut self,
        host: HostIx,
        vm: &VmKey,
        bindings: &Arc<Bindings>,
    ) -> Result<(), LedgerError> {
        let bound = self.parts.bound.entry(host).or_default();
        if bound.iter().any(|(holder, _)| holder == vm) {
            return Err(LedgerError::StillBound(vm.clone()));
        }
        bound.push((vm.clone(), Arc::clone(bindings)));
        Ok(())
    }

    /// Takes them back, exactly as they were recorded.
    pub fn unbind(
        &mut self,
        host: HostIx,
        vm: &VmKey,
        bindings: &Bindings,
    ) -> Result<(), LedgerError> {
        let not_bound = || LedgerError::NotBound(vm.clone());
        let bound = self.parts.bound.get_mut(&host).ok_or_else(not_bound)?;
        let same = |(holder, had): &(VmKey, Arc<Bindings>)| holder == vm && **had == *bindings;
        let row = bound.iter().position(same).ok_or_else(not_bound)?;
        bound.remove(row);
        if bound.is_empty() {
            self.parts.bound.remove(&host);
        }
        Ok(())
    }

    /// Everything that is wrong with these parts of `host` for this VM: they have to be what it
    /// asks for, and nobody else's.
    pub fn check_bindings(
        &self,
        vm: &Vm,
        ix: HostIx,
        host: &Host,
        committed: &Amounts,
        bindings: Option<&Bindings>,
    ) -> Violations {
        let found = match (vm.topology.as_deref(), bindings) {
            (None, None) => return Violations::new(),
            (Some(_), None) => vec![ViolationKind::NoBindings],
            (None, Some(_)) => vec![ViolationKind::UnaskedBindings],
            (Some(request), Some(bindings)) => {
                let guest = Guest { vm: &vm.key, request, demand: committed, bindings };
                let others = self.parts.others(ix, &vm.key);
                let overcommit = cpu_overcommit_permille(host);
                kinds(newcomer(&host.hardware, overcommit, &others, &guest))
            }
        };
        let about =
            |kind| Violation { vm: Some(vm.key.clone()), host: Some(host.id.clone()), kind };
        found.into_iter().map(about).collect()
    }

    /// The first of these parts that is not there or that another VM has too.
    pub fn shared_parts(
        &self,
        vm: &VmKey,
        ix: HostIx,
        host: &Host,
        bindings: &Bindings,
    ) -> Option<Violation> {
        let mut holders = self.parts.others(ix, vm);
        holders.push(Holder { vm, bindings });
        let found = shared(&host.hardware, cpu_overcommit_permille(host), &holders);
        let own = found.into_iter().filter(|violation| violation.vm == *vm).collect();
        let kind = kinds(own).into_iter().next()?;
        Some(Violation { vm: Some(vm.clone()), host: Some(host.id.clone()), kind })
    }
}

fn kinds(found: BindingViolations) -> Vec<ViolationKind> {
    found.into_iter().map(|violation| ViolationKind::Bindings { found: violation.kind }).collect()
}
