//! On tiny hosts every binding can be tried: `bind` refuses only what cannot be.
//!
//! The verifier says which combinations hold. Cores and memory, GPUs, and other devices are tried
//! apart, because all that one of them needs to know of another is on which nodes it is.

use crate::{Bound, key};
use cluster::{
    Amounts, Bindings, CoreClass, Cores, GpuAmount, GpuBinding, GpuShare, Hardware, Near,
    NodeBinding, Topology,
};
use fixture::{Dice, hardware};
use solver::topology::{Devices, Layout, Needs, Summary, bind};
use std::collections::BTreeSet;
use std::sync::Arc;
use verify::Guest;

/// Millis of shared CPU that a thread carries.
const PERMILLE: u64 = 2;

#[test]
fn a_refusal_means_that_no_binding_exists() {
    let (mut bound, mut refused) = (0, 0);
    for seed in 0..6_000 {
        let mut dice = Dice::new(seed);
        let hardware = hardware::tiny(&mut dice);
        let mut devices = Devices::new(Arc::new(Layout::new(&hardware, PERMILLE).unwrap()));
        let mut guests = Vec::new();
        for number in 0..dice.below(3) {
            let (request, demand) = hardware::tiny_request(&mut dice);
            if let Ok(bindings) = bind(&devices, &request, &demand) {
                devices.take(&bindings).unwrap();
                guests.push(Bound { vm: key(number), request, demand, bindings });
            }
        }
        let (request, demand) = hardware::tiny_request(&mut dice);
        let world = World { hardware: &hardware, guests: &guests };
        match bind(&devices, &request, &demand) {
            Ok(bindings) => {
                bound += 1;
                let faults = world.faults(&request, &demand, &bindings);
                assert!(faults.is_empty(), "seed {seed}: {faults:?} {bindings:?}");
            }
            Err(why) => {
                refused += 1;
                let found = world.fits(&request, &demand);
                assert!(!found, "seed {seed}: fits, but was refused: {why}\n{request:?}");
                assert!(why.deficit() > 0, "seed {seed}: {why}");
            }
        }
        if world.fits(&request, &demand) {
            let needs = Needs::new(&request, &demand);
            assert!(Summary::new(&devices).may_hold(&needs), "seed {seed}: wrongly ruled out");
        }
    }
    assert!(bound > 1_500 && refused > 1_500, "{bound} bound, {refused} refused");
}

struct World<'a> {
    hardware: &'a Hardware,
    guests: &'a [Bound],
}

impl World<'_> {
    fn accepts(&self, request: &Topology, demand: &Amounts, bindings: &Bindings) -> bool {
        self.faults(request, demand, bindings).is_empty()
    }

    fn faults(
        &self,
        request: &Topology,
        demand: &Amounts,
        bindings: &Bindings,
    ) -> verify::BindingViolations {
        let vm = key(99);
        let mut all: Vec<Guest<'_>> = self.guests.iter().map(Bound::guest).collect();
        all.push(Guest { vm: &vm, request, demand, bindings });
        verify::bindings(self.hardware, PERMILLE, &all)
    }

    /// Whether any binding would be accepted.
    fn fits(&self, request: &Topology, demand: &Amounts) -> bool {
        let cores = self.cores_on(request, demand);
        let gpus = self.gpus_on(request, demand);
        cores.iter().any(|cores| gpus.iter().any(|gpus| self.near(request, cores, gpus)))
    }

    /// The sets of nodes with cores that some valid binding of cores and memory has.
    fn cores_on(&self, request: &Topology, demand: &Amounts) -> BTreeSet<Vec<u16>> {
        let stripped =
            Topology { gpus: None, nic: None, accelerators: Vec::new(), ..request.clone() };
        let nodes = self.hardware.numa_nodes.len();
        let pages = request.hugepages.map_or(0, |pages| pages.count);
        let in_pages = request.hugepages.map_or(0, |pages| pages.mib());
        let memory = demand.get(cluster::Dim::MEMORY_MIB).saturating_sub(in_pages) as u32;
        let millis = demand.get(cluster::Dim::CPU_MILLIS) as u32;
        let cpu = match request.cores {
            Cores::Shared => millis,
            Cores::Exclusive(_) => millis.div_ceil(1000),
        };
        let mut found = BTreeSet::new();
        for core_class in [CoreClass::Performance, CoreClass::Efficiency] {
            for cpu in parts(cpu, nodes) {
                let Some(threads) = self.threads(&stripped, core_class, &cpu) else { continue };
                for memory in parts(memory, nodes) {
                    for pages in parts(pages, nodes) {
                        let mut bindings = Bindings {
                            core_class,
                            hugepage_kib: request.hugepages.map_or(0, |pages| pages.size_kib),
                            ..threads.clone()
                        };
                        bindings.nodes = node_bindings(request, &cpu, &memory, &pages);
                        if self.accepts(&stripped, demand, &bindings) {
                            let with_cores = bindings.nodes.iter().filter(|node| node.has_cores());
                            found.insert(with_cores.map(|node| node.node).collect());
                        }
                    }
                }
            }
        }
        found
    }

    /// Threads that hold so many vCPUs on each node, if any do.
    fn threads(&self, request: &Topology, core_class: CoreClass, cpu: &[u32]) -> Option<Bindings> {
        if request.cores == Cores::Shared {
            return Some(Bindings::default());
        }
        let relaxed =
            Topology { numa: cluster::NumaPolicy::Preferred, hugepages: None, ..request.clone() };
        let vcpus: u32 = cpu.iter().sum();
        let demand = Amounts::cpu_memory(u64::from(vcpus) * 1000, 0);
        let none = vec![0; cpu.len()];
        let threads = self.hardware.cpus_of(self.hardware.numa_nodes.len()).start;
        // Each thread is not the VM's, or runs it, or stays idle for it.
        let kinds: u32 =
            if request.cores == Cores::Exclusive(cluster::Siblings::Idle) { 3 } else { 2 };
        for mut code in 0..kinds.pow(threads) {
            let mut bindings = Bindings { core_class, ..Bindings::default() };
            for thread in 0..threads as u16 {
                match code % kinds {
                    1 => bindings.cpus.push(thread),
                    2 => bindings.idle_cpus.push(thread),
                    _ => {}
                }
                code /= kinds;
            }
            if (bindings.cpus.len() as u32) < vcpus || bindings.cpus.len() as u32 > 2 * vcpus {
                continue;
            }
            bindings.nodes = node_bindings(request, cpu, &none, &none);
            if self.accepts(&relaxed, &demand, &bindings) {
                return Some(bindings);
            }
        }
        None
    }

    /// The sets of nodes of GPUs, `None` for an unknown one, that some valid choice of GPUs has.
    fn gpus_on(&self, request: &Topology, demand: &Amounts) -> BTreeSet<Vec<Option<u16>>> {
        let Some(gpus) = &request.gpus else { return BTreeSet::from([Vec::new()]) };
        let alone = Topology {
            gpus: Some(cluster::GpuRequest { near_cores: false, ..gpus.clone() }),
            ..Topology::default()
        };
        // The VM's memory matters for unified memory, where it lies does not.
        let memory = demand.get(cluster::Dim::MEMORY_MIB);
        let mut choices: Vec<GpuBinding> = Vec::new();
        for (row, gpu) in self.hardware.gpus.iter().enumerate() {
            let mut add = |share| choices.push(GpuBinding { gpu: row as u16, share });
            match &gpus.amount {
                GpuAmount::Whole(_) => add(GpuShare::Whole),
                GpuAmount::Milli(milli) => add(GpuShare::Milli(*milli)),
                GpuAmount::Mig { .. } => {
                    for (profile, cut) in gpu.mig_profiles.iter().enumerate() {
                        for &start in &cut.starts {
                            add(GpuShare::Mig { profile: profile as u8, start });
                        }
                    }
                }
            }
        }
        choices.sort_unstable();
        let mut found = BTreeSet::new();
        choose(&choices, usize::from(gpus.amount.count()), &mut Vec::new(), &mut |chosen| {
            // Where memory lies is not asked here, so that its sum is wrong.
            let vm = key(99);
            let bindings = Bindings { gpus: chosen.to_vec(), ..Bindings::default() };
            let demand = Amounts::cpu_memory(0, memory);
            let mut all: Vec<Guest<'_>> = self.guests.iter().map(Bound::guest).collect();
            all.push(Guest { vm: &vm, request: &alone, demand: &demand, bindings: &bindings });
            let faults = verify::bindings(self.hardware, PERMILLE, &all);
            let about_gpus = faults
                .iter()
                .any(|fault| !matches!(fault.kind, verify::BindingViolationKind::MemorySum { .. }));
            if !about_gpus {
                let place = |bound: &GpuBinding| {
                    let gpu = &self.hardware.gpus[usize::from(bound.gpu)];
                    self.hardware.node_of(gpu.numa_node, gpu.pcie_port)
                };
                let mut nodes: Vec<Option<u16>> = chosen.iter().map(place).collect();
                nodes.sort_unstable();
                nodes.dedup();
                found.insert(nodes);
            }
        });
        found
    }

    /// Whether GPUs and the free devices are near enough to each other and to the cores.
    fn near(&self, request: &Topology, cores: &[u16], gpus: &[Option<u16>]) -> bool {
        let at_cores = |node: &Option<u16>| node.is_some_and(|node| cores.contains(&node));
        let near_cores = request.gpus.as_ref().is_some_and(|gpus| gpus.near_cores);
        if near_cores && !gpus.iter().all(at_cores) {
            return false;
        }
        let allowed = |near: Near, node: Option<u16>| match near {
            Near::Any => true,
            Near::Cores => at_cores(&node),
            Near::Gpus => node.is_some() && gpus.contains(&node),
        };
        let functions = request.nic.as_ref().is_none_or(|asked| {
            let mut free = 0;
            for (row, nic) in self.hardware.nics.iter().enumerate() {
                let node = self.hardware.node_of(nic.numa_node, nic.pcie_port);
                if (nic.rdma || !asked.rdma) && allowed(asked.near, node) {
                    let taken = self.guests.iter().flat_map(|guest| &guest.bindings.functions);
                    let taken = taken.filter(|at| usize::from(at.nic) == row).count();
                    free += usize::from(nic.functions) - taken;
                }
            }
            free >= usize::from(asked.functions)
        });
        let accelerators = request.accelerators.iter().all(|asked| {
            let mut free = 0;
            for (row, device) in self.hardware.accelerators.iter().enumerate() {
                let node = self.hardware.node_of(device.numa_node, device.pcie_port);
                if device.kind == asked.kind && allowed(asked.near, node) {
                    let taken = self.guests.iter().flat_map(|guest| &guest.bindings.accelerators);
                    let taken = taken.filter(|bound| usize::from(bound.row) == row);
                    free += device.count - taken.map(|bound| bound.count).sum::<u16>();
                }
            }
            free >= asked.count
        });
        functions && accelerators
    }
}

fn node_bindings(
    request: &Topology,
    cpu: &[u32],
    memory: &[u32],
    pages: &[u32],
) -> Vec<NodeBinding> {
    let all = (0..cpu.len()).map(|row| {
        let (vcpus, shared_millis) = match request.cores {
            Cores::Shared => (0, cpu[row]),
            Cores::Exclusive(_) => (cpu[row] as u16, 0),
        };
        let (memory_mib, hugepages) = (memory[row], pages[row]);
        NodeBinding { node: row as u16, vcpus, shared_millis, memory_mib, hugepages }
    });
    all.filter(|bound| NodeBinding { node: 0, ..*bound } != NodeBinding::default()).collect()
}

/// All ways to write `sum` as a sum of `count` numbers.
fn parts(sum: u32, count: usize) -> Vec<Vec<u32>> {
    match count {
        0 => Vec::from_iter((sum == 0).then(Vec::new)),
        1 => vec![vec![sum]],
        _ => {
            let first = 0..=sum;
            let all = first.flat_map(|first| {
                parts(sum - first, count - 1).into_iter().map(move |mut rest| {
                    rest.push(first);
                    rest
                })
            });
            all.collect()
        }
    }
}

/// Calls `each` with every choice of `count` items.
fn choose(
    items: &[GpuBinding],
    count: usize,
    chosen: &mut Vec<GpuBinding>,
    each: &mut dyn FnMut(&[GpuBinding]),
) {
    if count == 0 {
        return each(chosen);
    }
    for (row, item) in items.iter().enumerate() {
        chosen.push(*item);
        choose(&items[row + 1..], count - 1, chosen, each);
        chosen.pop();
    }
}
