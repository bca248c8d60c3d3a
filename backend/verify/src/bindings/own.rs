//! Whether one VM has what it asked for. Others on the host do not matter here.

use super::hardware::Reading;
use super::violation::BindingViolationKind as Kind;
use super::{BindingViolations, Guest, Holder, report};
use cluster::{
    Bindings, CoreClass, Cores, Dim, Gpu, GpuAmount, GpuGrouping, GpuRequest, GpuShare, Near,
    NumaPolicy, Siblings,
};
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn check(reading: &Reading<'_>, guest: &Guest<'_>, found: &mut BindingViolations) {
    if !check_existence(reading, &Holder::from(*guest), found) {
        // Nothing more can be said of parts that do not exist.
        return;
    }
    host(reading, guest, found);
    if !floats(reading, guest) {
        cores(reading, guest, found);
        amounts(guest, found);
        policy(guest, found);
    }
    let near = Nearby::of(reading, guest.bindings);
    match &guest.request.gpus {
        Some(request) => gpus(reading, guest, request, &near, found),
        None if guest.bindings.gpus.is_empty() => {}
        None => {
            let bound = guest.bindings.gpus.len() as u32;
            report(found, guest.vm, Kind::GpuCount { asked: 0, bound });
        }
    }
    devices(reading, guest, &near, found);
}

/// Whether the lists are in order and every part of them exists.
pub(super) fn check_existence(
    reading: &Reading<'_>,
    holder: &Holder<'_>,
    found: &mut BindingViolations,
) -> bool {
    if let Some(list) = disorder(holder.bindings) {
        report(found, holder.vm, Kind::Disorder { list });
    }
    let stranger = stranger(reading, holder.bindings);
    if let Some((list, row)) = stranger {
        report(found, holder.vm, Kind::Unknown { list, row });
    }
    stranger.is_none()
}

/// A host that lists no nodes has nothing to bind cores and memory to, unless it is asked to.
fn floats(reading: &Reading<'_>, guest: &Guest<'_>) -> bool {
    let request = guest.request;
    reading.hardware.numa_nodes.is_empty()
        && request.cores == Cores::Shared
        && request.core_class.is_none()
        && request.numa == NumaPolicy::Preferred
        && request.hugepages.is_none()
}

fn disorder(bindings: &Bindings) -> Option<&'static str> {
    let lists = [
        ("cpus", bindings.cpus.windows(2).all(|pair| pair[0] < pair[1])),
        ("idle_cpus", bindings.idle_cpus.windows(2).all(|pair| pair[0] < pair[1])),
        ("nodes", bindings.nodes.windows(2).all(|pair| pair[0].node < pair[1].node)),
        ("gpus", bindings.gpus.windows(2).all(|pair| pair[0] < pair[1])),
        ("functions", bindings.functions.windows(2).all(|pair| pair[0] < pair[1])),
        ("accelerators", bindings.accelerators.windows(2).all(|pair| pair[0].row < pair[1].row)),
    ];
    lists.into_iter().find(|(_, ordered)| !ordered).map(|(list, _)| list)
}

fn stranger(reading: &Reading<'_>, bindings: &Bindings) -> Option<(&'static str, u16)> {
    let hardware = reading.hardware;
    let beyond = |row: u16, len: usize| usize::from(row) >= len;
    let cpus = bindings.cpus.iter().chain(&bindings.idle_cpus).copied();
    let mut cpus = cpus.filter(|cpu| beyond(*cpu, reading.threads.len()));
    let mut nodes = bindings.nodes.iter().map(|bound| bound.node);
    let mut gpus = bindings.gpus.iter().map(|bound| bound.gpu);
    let mut rows = bindings.accelerators.iter().map(|bound| bound.row);
    let function = bindings.functions.iter().find(|at| {
        let nic = hardware.nics.get(usize::from(at.nic));
        nic.is_none_or(|nic| at.function >= nic.functions)
    });
    None.or_else(|| cpus.next().map(|row| ("cpus", row)))
        .or_else(|| {
            nodes.find(|row| beyond(*row, hardware.numa_nodes.len())).map(|row| ("nodes", row))
        })
        .or_else(|| gpus.find(|row| beyond(*row, hardware.gpus.len())).map(|row| ("gpus", row)))
        .or_else(|| function.map(|at| ("functions", at.nic)))
        .or_else(|| {
            let row = rows.find(|row| beyond(*row, hardware.accelerators.len()));
            row.map(|row| ("accelerators", row))
        })
}

fn host(reading: &Reading<'_>, guest: &Guest<'_>, found: &mut BindingViolations) {
    let hardware = reading.hardware;
    let wanted = guest.request.architecture;
    if wanted.is_some() && wanted != hardware.architecture {
        report(found, guest.vm, Kind::Architecture);
    }
    for feature in &guest.request.cpu_features {
        if !hardware.cpu_features.contains(feature) {
            report(found, guest.vm, Kind::CpuFeature { feature: feature.clone() });
        }
    }
    let (asked, bound) = (guest.request.watts, guest.bindings.watts);
    if asked != bound {
        report(found, guest.vm, Kind::WrongWatts { asked, bound });
    }
}

/// Threads against the vCPUs of their nodes, the siblings rule and the core class.
fn cores(reading: &Reading<'_>, guest: &Guest<'_>, found: &mut BindingViolations) {
    let bindings = guest.bindings;
    if guest.request.core_class.is_some_and(|class| class != bindings.core_class) {
        report(found, guest.vm, Kind::CoreClass { cpu: None });
    }
    let siblings = match guest.request.cores {
        Cores::Exclusive(siblings) => siblings,
        Cores::Shared => {
            let vcpus = bindings.nodes.iter().any(|bound| bound.vcpus > 0);
            if !bindings.cpus.is_empty() || !bindings.idle_cpus.is_empty() || vcpus {
                report(found, guest.vm, Kind::NotShared);
            }
            return;
        }
    };
    if bindings.nodes.iter().any(|bound| bound.shared_millis > 0) {
        report(found, guest.vm, Kind::NotExclusive);
    }
    let mut by_core: BTreeMap<u32, (usize, usize)> = BTreeMap::new();
    let mut by_node: BTreeMap<u16, u64> = BTreeMap::new();
    for (list, cpus) in [&bindings.cpus, &bindings.idle_cpus].into_iter().enumerate() {
        for &cpu in cpus {
            let Some(thread) = reading.thread(cpu) else { continue };
            if thread.class != bindings.core_class {
                report(found, guest.vm, Kind::CoreClass { cpu: Some(cpu) });
            }
            let core = by_core.entry(thread.core).or_default();
            if list == 0 {
                core.0 += 1;
                *by_node.entry(thread.node).or_default() += 1;
            } else {
                core.1 += 1;
            }
        }
    }
    for (&core, &(running, idle)) in &by_core {
        let all = reading.siblings(core);
        let kept = match siblings {
            Siblings::Own => running == all && idle == 0,
            Siblings::Idle => running == 1 && idle == all - 1,
            Siblings::Any => idle == 0,
        };
        if !kept {
            report(found, guest.vm, Kind::Siblings { core });
        }
    }
    for bound in &bindings.nodes {
        let threads = by_node.remove(&bound.node).unwrap_or(0);
        let vcpus = u64::from(bound.vcpus);
        let per_core = match bindings.core_class {
            CoreClass::Efficiency => 1,
            CoreClass::Performance => {
                let shape = &reading.hardware.numa_nodes[usize::from(bound.node)];
                u64::from(shape.threads_per_core).max(1)
            }
        };
        let due = match siblings {
            Siblings::Own => vcpus.div_ceil(per_core) * per_core,
            Siblings::Idle | Siblings::Any => vcpus,
        };
        if threads != due {
            report(found, guest.vm, Kind::ThreadCount { node: bound.node, due, threads });
        }
    }
    for (node, threads) in by_node {
        report(found, guest.vm, Kind::ThreadCount { node, due: 0, threads });
    }
}

/// The sums over all nodes are the VM's demand.
fn amounts(guest: &Guest<'_>, found: &mut BindingViolations) {
    let (bindings, request) = (guest.bindings, guest.request);
    let sum = |of: fn(&cluster::NodeBinding) -> u64| bindings.nodes.iter().map(of).sum::<u64>();
    let millis = guest.demand.get(Dim::CPU_MILLIS);
    let (asked, bound) = match request.cores {
        Cores::Shared => (millis, sum(|bound| u64::from(bound.shared_millis))),
        Cores::Exclusive(_) => (millis.div_ceil(1000), sum(|bound| u64::from(bound.vcpus))),
    };
    if asked != bound {
        report(found, guest.vm, Kind::CpuSum { asked, bound });
    }
    let (size_kib, count) = request.hugepages.map_or((0, 0), |all| (all.size_kib, all.count));
    let in_pages = u64::from(size_kib) * u64::from(count) / 1024;
    let asked = guest.demand.get(Dim::MEMORY_MIB).saturating_sub(in_pages);
    let bound = sum(|bound| u64::from(bound.memory_mib));
    if asked != bound {
        report(found, guest.vm, Kind::MemorySum { asked, bound });
    }
    if bindings.hugepage_kib != size_kib {
        report(found, guest.vm, Kind::PageSize { asked: size_kib, bound: bindings.hugepage_kib });
    }
    let bound = sum(|bound| u64::from(bound.hugepages));
    if bound != u64::from(count) {
        report(found, guest.vm, Kind::PageSum { asked: u64::from(count), bound });
    }
}

fn policy(guest: &Guest<'_>, found: &mut BindingViolations) {
    let nodes = &guest.bindings.nodes;
    match guest.request.numa {
        NumaPolicy::Preferred => {}
        NumaPolicy::Single => {
            if nodes.len() > 1 {
                report(found, guest.vm, Kind::NotSingle { nodes: nodes.len() });
            }
        }
        NumaPolicy::Split(ways) => {
            let with_cores = nodes.iter().filter(|bound| bound.has_cores()).count();
            if with_cores != usize::from(ways) || nodes.len() != usize::from(ways) {
                report(found, guest.vm, Kind::SplitWays { asked: ways, nodes: nodes.len() });
                return;
            }
            type Part = fn(&cluster::NodeBinding) -> u32;
            let parts: [(&'static str, Part); 4] = [
                ("vcpus", |bound| u32::from(bound.vcpus)),
                ("shared_millis", |bound| bound.shared_millis),
                ("memory_mib", |bound| bound.memory_mib),
                ("hugepages", |bound| bound.hugepages),
            ];
            for (part, of) in parts {
                let least = nodes.iter().map(of).min().unwrap_or(0);
                let most = nodes.iter().map(of).max().unwrap_or(0);
                if most - least > 1 {
                    report(found, guest.vm, Kind::SplitUneven { part, least, most });
                }
            }
        }
    }
}

/// The nodes that devices can be near to.
struct Nearby {
    cores: BTreeSet<u16>,
    gpus: BTreeSet<u16>,
}

impl Nearby {
    fn of(reading: &Reading<'_>, bindings: &Bindings) -> Self {
        let cores = bindings.nodes.iter().filter(|bound| bound.has_cores());
        let gpus = bindings.gpus.iter().map(|bound| &reading.hardware.gpus[usize::from(bound.gpu)]);
        Self {
            cores: cores.map(|bound| bound.node).collect(),
            gpus: gpus.filter_map(|gpu| reading.node(gpu.numa_node, gpu.pcie_port)).collect(),
        }
    }

    fn holds(&self, near: Near, node: Option<u16>) -> bool {
        match near {
            Near::Any => true,
            Near::Cores => node.is_some_and(|node| self.cores.contains(&node)),
            Near::Gpus => node.is_some_and(|node| self.gpus.contains(&node)),
        }
    }
}

fn gpus(
    reading: &Reading<'_>,
    guest: &Guest<'_>,
    request: &GpuRequest,
    near: &Nearby,
    found: &mut BindingViolations,
) {
    let bound = &guest.bindings.gpus;
    let asked = match &request.amount {
        GpuAmount::Whole(count) | GpuAmount::Mig { count, .. } => u32::from(*count),
        GpuAmount::Milli(_) => 1,
    };
    if bound.len() as u32 != asked {
        report(found, guest.vm, Kind::GpuCount { asked, bound: bound.len() as u32 });
    }
    for bound in bound {
        let gpu = &reading.hardware.gpus[usize::from(bound.gpu)];
        for kind in shortcomings(reading, guest, request, bound.gpu, gpu, bound.share) {
            report(found, guest.vm, kind);
        }
        let node = reading.node(gpu.numa_node, gpu.pcie_port);
        if request.near_cores && !near.holds(Near::Cores, node) {
            report(found, guest.vm, Kind::GpuNotNear { gpu: bound.gpu });
        }
    }
    let rows: BTreeSet<u16> = bound.iter().map(|bound| bound.gpu).collect();
    let gpus = rows.iter().map(|row| &reading.hardware.gpus[usize::from(*row)]);
    let (places, kind): (Vec<Option<u16>>, Kind) = match request.together {
        GpuGrouping::Any => return,
        GpuGrouping::SameSwitch => {
            (gpus.map(|gpu| reading.switch(gpu.pcie_port)).collect(), Kind::NotOneSwitch)
        }
        GpuGrouping::NvlinkClique => {
            (gpus.map(|gpu| gpu.nvlink_group).collect(), Kind::NotOneClique)
        }
    };
    let one = places.iter().all(|place| place.is_some() && *place == places[0]);
    if rows.len() > 1 && !one {
        report(found, guest.vm, kind);
    }
}

/// What one GPU, or the share of it, is not.
fn shortcomings(
    reading: &Reading<'_>,
    guest: &Guest<'_>,
    request: &GpuRequest,
    row: u16,
    gpu: &Gpu,
    share: GpuShare,
) -> Vec<Kind> {
    let mut kinds = Vec::new();
    let mut memory = u64::from(gpu.memory_mib);
    match (&request.amount, share) {
        (GpuAmount::Whole(_), GpuShare::Whole) => {}
        (GpuAmount::Milli(asked), GpuShare::Milli(bound)) if *asked == bound => {
            memory = memory * u64::from(bound) / 1000;
        }
        (GpuAmount::Mig { profile: asked, .. }, GpuShare::Mig { profile, start }) => {
            match gpu.mig_profiles.get(usize::from(profile)) {
                Some(cut) if cut.name == *asked => {
                    memory = u64::from(cut.memory_mib);
                    if !cut.starts.contains(&start) {
                        kinds.push(Kind::IllegalPiece { gpu: row, start });
                    }
                }
                _ => kinds.push(Kind::GpuShare { gpu: row }),
            }
        }
        _ => kinds.push(Kind::GpuShare { gpu: row }),
    }
    if gpu.unified_memory {
        memory = u64::from(gpu.memory_mib).min(guest.demand.get(Dim::MEMORY_MIB));
    }
    if !request.models.is_empty() && !request.models.contains(&gpu.model) {
        kinds.push(Kind::GpuModel { gpu: row, model: gpu.model.clone() });
    }
    let asked = u64::from(request.min_memory_mib);
    if memory < asked {
        kinds.push(Kind::GpuMemory { gpu: row, asked, has: memory });
    }
    let (asked, has) = (request.min_compute_capability_tenths, gpu.compute_capability_tenths);
    if has < asked {
        kinds.push(Kind::ComputeCapability { gpu: row, asked, has });
    }
    let old = request.min_driver.is_some_and(|min| gpu.driver.is_none_or(|has| has < min));
    let new = request.max_driver.is_some_and(|max| gpu.driver.is_none_or(|has| has > max));
    if old || new {
        kinds.push(Kind::Driver { gpu: row });
    }
    let (asked, has) = (request.min_pcie_mbps, reading.mbps(gpu.pcie_port));
    if has < asked {
        kinds.push(Kind::PcieBandwidth { gpu: row, asked, has });
    }
    kinds
}

/// NIC functions and accelerators: as many as asked for, of the kind, and near enough.
fn devices(reading: &Reading<'_>, guest: &Guest<'_>, near: &Nearby, found: &mut BindingViolations) {
    let (hardware, bindings) = (reading.hardware, guest.bindings);
    let nic = guest.request.nic.as_ref();
    let (asked, bound) = (nic.map_or(0, |nic| nic.functions), bindings.functions.len() as u32);
    if u32::from(asked) != bound {
        report(found, guest.vm, Kind::FunctionCount { asked: u32::from(asked), bound });
    }
    for at in &bindings.functions {
        let card = &hardware.nics[usize::from(at.nic)];
        if nic.is_some_and(|nic| nic.rdma) && !card.rdma {
            report(found, guest.vm, Kind::NotRdma { nic: at.nic });
        }
        let node = reading.node(card.numa_node, card.pcie_port);
        if nic.is_some_and(|nic| !near.holds(nic.near, node)) {
            report(found, guest.vm, Kind::NicNotNear { nic: at.nic });
        }
    }
    let mut counts = BTreeMap::new();
    for bound in &bindings.accelerators {
        let device = &hardware.accelerators[usize::from(bound.row)];
        *counts.entry(&device.kind).or_insert(0_u64) += u64::from(bound.count);
        let asked = guest.request.accelerators.iter().find(|asked| asked.kind == device.kind);
        let node = reading.node(device.numa_node, device.pcie_port);
        if asked.is_some_and(|asked| !near.holds(asked.near, node)) {
            report(found, guest.vm, Kind::AcceleratorNotNear { row: bound.row });
        }
    }
    for asked in &guest.request.accelerators {
        let bound = counts.remove(&asked.kind).unwrap_or(0);
        if bound != u64::from(asked.count) {
            let (of, asked) = (asked.kind.clone(), u64::from(asked.count));
            report(found, guest.vm, Kind::AcceleratorCount { of, asked, bound });
        }
    }
    for (of, bound) in counts {
        report(found, guest.vm, Kind::AcceleratorCount { of: of.clone(), asked: 0, bound });
    }
}
