//! What the model checks of parts of hosts: they exist, and nobody has what somebody else has.

use crate::model::Model;
use crate::violation::{Checked, Law, ensure};
use cluster::{GpuShare, Host, Name};
use std::collections::{BTreeMap, BTreeSet};

impl Model {
    /// Every VM that was placed for certain parts has some; no thread, function or thousandth of a
    /// GPU is there twice, and no node gives more memory than it has.
    pub(crate) fn check_parts(&self, host: &Name) -> Checked {
        let Some(home) = self.hosts.get(host) else { return Ok(()) };
        let hardware = &home.host.hardware;
        let threads: u32 = hardware.numa_nodes.iter().map(|node| node.threads()).sum();
        let (mut cpus, mut functions) = (BTreeSet::new(), BTreeSet::new());
        let (mut gpus, mut memory) = (BTreeMap::new(), BTreeMap::new());
        for (key, guest) in self.on(host) {
            let due = guest.vm.topology.is_some() && !guest.adopted;
            ensure(!due || guest.bindings.is_some(), Law::Rules, || {
                format!("{key} was placed for parts of {host} and has none")
            })?;
            let Some(parts) = guest.bindings.as_deref() else { continue };
            let mut alone = true;
            for cpu in parts.cpus.iter().chain(&parts.idle_cpus) {
                alone &= u32::from(*cpu) < threads && cpus.insert(*cpu);
            }
            for at in &parts.functions {
                let card = hardware.nics.get(usize::from(at.nic));
                let known = card.is_some_and(|card| at.function < card.functions);
                alone &= known && functions.insert((at.nic, at.function));
            }
            for bound in &parts.gpus {
                let used: &mut u32 = gpus.entry(bound.gpu).or_default();
                *used += match bound.share {
                    GpuShare::Whole => 1000,
                    GpuShare::Milli(milli) => milli.into(),
                    // Simulated GPUs cannot be cut.
                    GpuShare::Mig { .. } => 1001,
                };
                alone &= usize::from(bound.gpu) < hardware.gpus.len() && *used <= 1000;
            }
            for node in &parts.nodes {
                let used: &mut u32 = memory.entry(node.node).or_default();
                *used += node.memory_mib;
                let shape = hardware.numa_nodes.get(usize::from(node.node));
                alone &= shape.is_some_and(|shape| *used <= shape.memory_mib);
            }
            ensure(alone, Law::Capacity, || {
                format!("{key} has parts of {host} that are not there or somebody else's")
            })?;
        }
        Ok(())
    }

    /// Whether VMs have parts of the host that this description may not have.
    pub(crate) fn takes_parts_away(&self, host: &Host) -> bool {
        let Some(home) = self.hosts.get(&host.id) else { return false };
        let other = home.host.hardware != host.hardware
            || home.host.cpu_overcommit_permille() != host.cpu_overcommit_permille();
        other && self.on(&host.id).any(|(_, guest)| guest.bindings.is_some())
    }
}
