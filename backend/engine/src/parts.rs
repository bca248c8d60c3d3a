//! Parts of hosts that VMs have already, when a host or a VM is about to change.
//!
//! Choosing parts for a new VM is the solver's, with its host. Here it is asked whether parts that
//! are named by others, or were given before, can be had.

use crate::check;
use crate::core::Core;
use crate::request::Refusal;
use crate::state::{HostEntry, VmEntry};
use cluster::{Amounts, Bindings, Host, HostIx, Vm};
use solver::topology::{Devices, Layout, bind};
use std::sync::Arc;
use verify::{BindingViolation, Guest};

impl Core {
    /// Whether an adopted VM can have the parts that it is said to have: they are there and
    /// nobody else has them. Whether they are what the VM asks for is not asked, as of any rule.
    pub(crate) fn check_parts_free(
        &self,
        vm: &Vm,
        host: HostIx,
        bindings: &Arc<Bindings>,
    ) -> Result<(), Refusal> {
        let Some(home) = self.state.host(host) else {
            return Err(check::invalid("host_id", "names a host that is not there"));
        };
        let refused = |problem: String| Refusal::PartsRefused {
            vm: vm.key.clone(),
            host: home.host.id.clone(),
            problem,
        };
        if vm.topology.is_none() {
            return Err(check::invalid("bindings", "are given for a VM without a topology"));
        }
        let mut devices = self.problem.devices(host).clone();
        let taken = devices.take(bindings);
        taken.map_err(|clash| refused(format!("{clash} is not there or not free")))?;
        match self.ledger.shared_parts(&vm.key, host, &home.host, bindings) {
            None => Ok(()),
            Some(violation) => Err(refused(violation.to_string())),
        }
    }

    /// The parts of a VM that is about to have another size, on the host that it is on.
    pub(crate) fn bound_anew(
        &self,
        entry: &VmEntry,
        vm: &Vm,
        committed: &Amounts,
    ) -> Result<Option<Arc<Bindings>>, Refusal> {
        let (Some(bindings), Some(topology)) = (&entry.bindings, &vm.topology) else {
            return Ok(None);
        };
        let Some(host) = self.state.host(entry.host) else {
            return Err(Refusal::UnknownVm(vm.key.clone()));
        };
        let refused = |reason: String| Refusal::DoesNotFit {
            vm: vm.key.clone(),
            host: host.host.id.clone(),
            reason,
        };
        let mut devices = self.problem.devices(entry.host).clone();
        devices.give_back(bindings).map_err(|clash| refused(format!("{clash} is not its own")))?;
        let found = bind(&devices, topology, committed);
        let found = Arc::new(found.map_err(|unbound| refused(unbound.to_string()))?);
        let parts = Some(found.as_ref());
        let checked = self.ledger.check_bindings(vm, entry.host, &host.host, committed, parts);
        match checked.into_iter().next() {
            None => Ok(Some(found)),
            Some(violation) => Err(Refusal::Unverified(violation.to_string())),
        }
    }

    /// A host may not lose parts that VMs on it have, nor may what they were promised of them
    /// become untrue.
    pub(crate) fn check_parts_kept(&self, host: &Host, entry: &HostEntry) -> Result<(), Refusal> {
        let bound: Vec<&VmEntry> = entry.vms.iter().filter_map(|ix| self.state.vm(*ix)).collect();
        if host.hardware == entry.host.hardware
            && host.cpu_overcommit_permille() == entry.host.cpu_overcommit_permille()
            || bound.iter().all(|vm| vm.bindings.is_none())
        {
            return Ok(());
        }
        let layout = Layout::new(&host.hardware, host.cpu_overcommit_permille())
            .map_err(|error| check::invalid("hardware", &error.to_string()))?;
        let mut devices = Devices::new(Arc::new(layout));
        for (vm, bindings) in bound.iter().filter_map(|vm| Some((vm, vm.bindings.as_ref()?))) {
            devices.take(bindings).map_err(|clash| {
                let problem = format!("VM {} has {clash}; move it first", vm.vm.key);
                check::invalid("hardware", &problem)
            })?;
        }
        let guests: Vec<Guest<'_>> = bound.iter().filter_map(|vm| guest(vm)).collect();
        let before =
            verify::bindings(&entry.host.hardware, entry.host.cpu_overcommit_permille(), &guests);
        let after = verify::bindings(&host.hardware, host.cpu_overcommit_permille(), &guests);
        match after.into_iter().find(|violation: &BindingViolation| !before.contains(violation)) {
            None => Ok(()),
            Some(broken) => {
                let problem = format!("breaks what a VM has: {broken}; move it first");
                Err(check::invalid("hardware", &problem))
            }
        }
    }
}

fn guest(entry: &VmEntry) -> Option<Guest<'_>> {
    Some(Guest {
        vm: &entry.vm.key,
        request: entry.vm.topology.as_deref()?,
        demand: &entry.committed,
        bindings: entry.bindings.as_deref()?,
    })
}
