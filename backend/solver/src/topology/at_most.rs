//! How many VMs of one kind a host's free parts could hold at most.
//!
//! Each kind of part is added up by itself, as if it did not matter where it is beside the others;
//! only VMs on one NUMA node are counted node by node. Taking parts never takes less than is asked,
//! so that no order of binding gets beyond it.

use super::bind::Ask;
use super::devices::Devices;
use cluster::{Amounts, GpuAmount, NumaPolicy, Topology};

/// No more VMs that ask for this can be bound to what is free.
pub(crate) fn at_most(devices: &Devices, request: &Topology, demand: &Amounts) -> u64 {
    let by_nodes = by_nodes(devices, request, demand);
    let by_gpus = match request.gpus.as_ref().map(|gpus| &gpus.amount) {
        Some(GpuAmount::Whole(count)) => {
            times(devices.unused_gpus().count_ones().into(), (*count).into())
        }
        Some(GpuAmount::Milli(milli)) => {
            devices.gpus_free_milli().map(|free| times(free.into(), (*milli).into())).sum()
        }
        Some(GpuAmount::Mig { .. }) | None => u64::MAX,
    };
    let by_functions = request.nic.as_ref().map_or(u64::MAX, |nic| {
        let nics = 0..devices.layout().hardware.nics.len();
        let free: u64 = nics.map(|nic| u64::from(devices.free_functions(nic))).sum();
        times(free, nic.functions.into())
    });
    let by_heat = times(devices.watts.into(), request.watts.into());
    by_nodes.min(by_gpus).min(by_functions).min(by_heat)
}

fn by_nodes(devices: &Devices, request: &Topology, demand: &Amounts) -> u64 {
    let ask = Ask::new(devices, request, demand);
    if ask.floats() {
        return u64::MAX;
    }
    let offers: Vec<_> = ask.classes().map(|class| ask.offers(class)).collect();
    let [cpu, memory, pages] = ask.need.map(u64::from);
    // Of each node, or of all of them together: CPU by class, memory and pages for all classes.
    let holds = |nodes: &[usize]| {
        let sum = |offer: &super::nodes::Offers, part: usize| -> u64 {
            nodes.iter().map(|&node| u64::from(offer.by_node[node][part])).sum()
        };
        let by_cpu =
            offers.iter().fold(0u64, |all, offer| all.saturating_add(times(sum(offer, 0), cpu)));
        let shared = |part, need| offers.first().map_or(0, |offer| times(sum(offer, part), need));
        by_cpu.min(shared(1, memory)).min(shared(2, pages))
    };
    let nodes: Vec<usize> = (0..devices.nodes.len()).collect();
    match request.numa {
        NumaPolicy::Single => {
            nodes.iter().fold(0u64, |all, &node| all.saturating_add(holds(&[node])))
        }
        NumaPolicy::Preferred | NumaPolicy::Split(_) => holds(&nodes),
    }
}

/// How often `need` is in `free`; without bounds if nothing is needed.
fn times(free: u64, need: u64) -> u64 {
    free.checked_div(need).unwrap_or(u64::MAX)
}
