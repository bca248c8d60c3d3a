//! Parts of hosts in a fleet's problem: what must be true of any set of VMs that a host can bind.
//!
//! Each kind of part adds up, wherever it is inside the host, and becomes a resource; hosts that
//! cannot bind a VM even beside nobody but those who stay are off its list. All of it is necessary
//! and none of it is enough: `bind` asks the binder about what was found. A VM that stays where it
//! is keeps its bindings; one that is there without any floats, and is bound only if it moves.

use super::{Rows, taken};
use crate::topology::{Devices, Layouts, try_bind};
use cluster::{
    Amounts, Bindings, Cores, Dim, GpuAmount, GpuShare, Hardware, HostIx, MAX_AMOUNT, Name,
    NumaNode, Topology, Vm,
};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// The insides of a fleet's hosts, and the VMs that ask for some of them.
#[derive(Clone, Debug)]
pub(super) struct Parts {
    /// What those leave of each host who stay there whatever happens.
    pub(super) devices: Vec<Devices>,
    /// Hosts of one number have as much in the same places.
    pub(super) alike: Vec<u32>,
    speeds: Vec<u64>,
    /// By VM; `None` for those who ask for nothing or stay whatever happens.
    pub(super) guests: Vec<Option<Guest>>,
    /// What those have who stay.
    pub(super) fixed: Vec<Option<Arc<Bindings>>>,
}

/// A VM that may have to be bound.
#[derive(Clone, Debug)]
pub(super) struct Guest {
    vm: Arc<Vm>,
    /// Guests of one number ask for the same.
    pub(super) shape: u32,
    pub(super) home: Option<HostIx>,
    /// What it has at home, and keeps if it stays.
    pub(super) kept: Option<Arc<Bindings>>,
}

/// What adds up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Threads that nobody else runs on.
    Threads,
    /// On NUMA nodes, beside huge pages.
    Memory,
    /// Of a size in KiB.
    Pages(u32),
    /// Thousandths.
    Gpus,
    GpusOf(Name),
    Functions,
    RdmaFunctions,
    Accelerators(Name),
    Watts,
}

impl Parts {
    /// `None` if no VM asks for parts.
    pub(super) fn read(rows: &Rows<'_>) -> Option<Self> {
        rows.vms.iter().find(|vm| vm.topology.is_some())?;
        let mut layouts = Layouts::default();
        let nothing = layouts.nothing();
        let hosts = rows.snapshot.hosts.iter();
        let laid: Vec<_> =
            hosts.map(|host| layouts.of(host).unwrap_or_else(|| nothing.clone())).collect();
        let mut devices: Vec<Devices> =
            laid.iter().map(|laid| Devices::new(Arc::clone(&laid.layout))).collect();
        let mut shapes: FxHashMap<_, u32> = FxHashMap::default();
        let (mut guests, mut fixed) = (Vec::new(), Vec::new());
        for (row, &vm) in rows.vms.iter().enumerate() {
            let (home, kept) = (rows.home[row], rows.bindings[row].clone());
            let Some(topology) = vm.topology.as_deref().filter(|_| !rows.stays[row]) else {
                if let (Some(home), Some(bindings)) = (home, &kept) {
                    // What is not there any more cannot be taken from anybody.
                    let _ = devices[home.0 as usize].take(bindings);
                }
                guests.push(None);
                fixed.push(kept);
                continue;
            };
            let demand = [Dim::CPU_MILLIS, Dim::MEMORY_MIB].map(|dim| vm.demand.get(dim));
            let next = shapes.len() as u32;
            let shape = *shapes.entry((topology, demand, vm.cpu_unit)).or_insert(next);
            guests.push(Some(Guest { vm: Arc::clone(vm), shape, home, kept }));
            fixed.push(None);
        }
        let speeds: Vec<u64> = rows.snapshot.hosts.iter().map(|it| it.speed_permille()).collect();
        let mut numbers: FxHashMap<Arc<[u32]>, u32> = FxHashMap::default();
        let alike = devices.iter().zip(&laid).zip(&speeds).map(|((devices, laid), &speed)| {
            let key = devices.state_key(laid.number, u32::try_from(speed).unwrap_or(u32::MAX));
            let next = numbers.len() as u32;
            *numbers.entry(key).or_insert(next)
        });
        let alike = alike.collect();
        Some(Self { devices, alike, speeds, guests, fixed })
    }

    /// Whether a VM may have to be bound.
    pub(super) fn asks(&self, vm: usize) -> bool {
        self.guests[vm].is_some()
    }

    /// What a VM asks for and takes on a host.
    pub(super) fn asked(&self, vm: usize, host: usize) -> Option<(&Topology, Amounts)> {
        let guest = self.guests[vm].as_ref()?;
        let topology = guest.vm.topology.as_deref()?;
        Some((topology, taken(&guest.vm, self.speeds[host])))
    }

    /// Those of the hosts that could bind the VM beside nobody but those who stay.
    pub(super) fn narrow(
        &self,
        vm: usize,
        list: Option<Vec<HostIx>>,
        known: &mut FxHashMap<(u32, u32), bool>,
    ) -> Option<Vec<HostIx>> {
        let Some(guest) = &self.guests[vm] else { return list };
        let all = self.devices.len();
        let mut hosts = list.unwrap_or_else(|| (0..all as u32).map(HostIx).collect());
        hosts.retain(|&host| {
            let row = host.0 as usize;
            guest.home == Some(host)
                || *known.entry((guest.shape, self.alike[row])).or_insert_with(|| {
                    self.asked(vm, row).is_none_or(|(topology, demand)| {
                        try_bind(&self.devices[row], topology, &demand).is_some()
                    })
                })
        });
        (hosts.len() < all).then_some(hosts)
    }
}

impl Kind {
    /// All kinds that somebody asks for.
    pub(super) fn all(rows: &Rows<'_>) -> Vec<Kind> {
        let mut kinds: Vec<Kind> = Vec::new();
        let mut add = |kind: Kind| {
            if !kinds.contains(&kind) {
                kinds.push(kind);
            }
        };
        for topology in rows.vms.iter().filter_map(|vm| vm.topology.as_deref()) {
            add(Kind::Memory);
            if topology.cores != Cores::Shared {
                add(Kind::Threads);
            }
            if let Some(pages) = topology.hugepages {
                add(Kind::Pages(pages.size_kib));
            }
            if let Some(gpus) = &topology.gpus {
                add(Kind::Gpus);
                if let [model] = gpus.models.as_slice() {
                    add(Kind::GpusOf(model.clone()));
                }
            }
            if let Some(nic) = &topology.nic {
                add(Kind::Functions);
                if nic.rdma {
                    add(Kind::RdmaFunctions);
                }
            }
            for device in &topology.accelerators {
                add(Kind::Accelerators(device.kind.clone()));
            }
            if topology.watts > 0 {
                add(Kind::Watts);
            }
        }
        kinds
    }

    pub(super) fn name(&self) -> String {
        match self {
            Kind::Threads => "threads of their own".into(),
            Kind::Memory => "memory on NUMA nodes".into(),
            Kind::Pages(size_kib) => format!("huge pages of {size_kib} KiB"),
            Kind::Gpus => "thousandths of GPUs".into(),
            Kind::GpusOf(model) => format!("thousandths of GPUs {model}"),
            Kind::Functions => "functions of NICs".into(),
            Kind::RdmaFunctions => "functions of NICs with RDMA".into(),
            Kind::Accelerators(kind) => format!("accelerators {kind}"),
            Kind::Watts => "watts".into(),
        }
    }

    /// What a host has.
    pub(super) fn of(&self, hardware: &Hardware) -> u64 {
        let nodes = hardware.numa_nodes.iter();
        match self {
            Kind::Threads => nodes.map(|node| u64::from(node.threads())).sum(),
            // Who needs to know no node floats over a host that lists none.
            Kind::Memory if hardware.numa_nodes.is_empty() => MAX_AMOUNT,
            Kind::Memory => nodes.map(|node| u64::from(node.ordinary_mib())).sum(),
            Kind::Pages(size_kib) => {
                let of = |node: &NumaNode| -> u64 {
                    let same = node.hugepages.iter().filter(|pages| pages.size_kib == *size_kib);
                    same.map(|pages| u64::from(pages.count)).sum()
                };
                nodes.map(of).sum()
            }
            Kind::Gpus => 1000 * hardware.gpus.len() as u64,
            Kind::GpusOf(model) => {
                1000 * hardware.gpus.iter().filter(|gpu| gpu.model == *model).count() as u64
            }
            Kind::Functions | Kind::RdmaFunctions => {
                let any = *self == Kind::Functions;
                let nics = hardware.nics.iter().filter(|nic| any || nic.rdma);
                nics.map(|nic| u64::from(nic.functions)).sum()
            }
            Kind::Accelerators(kind) => {
                let same = hardware.accelerators.iter().filter(|device| device.kind == *kind);
                same.map(|device| u64::from(device.count)).sum()
            }
            Kind::Watts if hardware.thermal_limit_watts == 0 => MAX_AMOUNT,
            Kind::Watts => hardware.thermal_limit_watts.into(),
        }
        .min(MAX_AMOUNT)
    }

    /// The least that a VM takes: anywhere, and with what it has at home. One that floats there
    /// takes nothing.
    pub(super) fn demand(&self, rows: &Rows<'_>, vm: usize, fastest: u64) -> u64 {
        let Some(topology) = rows.vms[vm].topology.as_deref() else { return 0 };
        let asked = self.asked(topology, &taken(rows.vms[vm], fastest)).min(MAX_AMOUNT);
        match (rows.home[vm], &rows.bindings[vm]) {
            (None, _) => asked,
            (Some(_), None) => 0,
            (Some(home), Some(bindings)) => {
                asked.min(self.bound(bindings, &rows.snapshot.hosts[home.0 as usize].hardware))
            }
        }
    }

    fn asked(&self, topology: &Topology, demand: &Amounts) -> u64 {
        let gpus = topology.gpus.as_ref();
        let milli = || match gpus.map(|gpus| &gpus.amount) {
            Some(GpuAmount::Whole(count)) => 1000 * u64::from(*count),
            Some(GpuAmount::Milli(milli)) => u64::from(*milli),
            // Pieces of different GPUs are not the same share.
            Some(GpuAmount::Mig { .. }) | None => 0,
        };
        match self {
            Kind::Threads if topology.cores == Cores::Shared => 0,
            Kind::Threads => demand.get(Dim::CPU_MILLIS).div_ceil(1000),
            Kind::Memory => {
                let in_pages = topology.hugepages.map_or(0, |pages| pages.mib());
                demand.get(Dim::MEMORY_MIB).saturating_sub(in_pages)
            }
            Kind::Pages(size_kib) => {
                let pages = topology.hugepages.filter(|pages| pages.size_kib == *size_kib);
                pages.map_or(0, |pages| pages.count.into())
            }
            Kind::Gpus => milli(),
            Kind::GpusOf(model) => match gpus.map(|gpus| gpus.models.as_slice()) {
                Some([only]) if only == model => milli(),
                _ => 0,
            },
            Kind::Functions | Kind::RdmaFunctions => {
                let any = *self == Kind::Functions;
                let nic = topology.nic.as_ref().filter(|nic| any || nic.rdma);
                nic.map_or(0, |nic| nic.functions.into())
            }
            Kind::Accelerators(kind) => {
                let same = topology.accelerators.iter().find(|device| device.kind == *kind);
                same.map_or(0, |device| device.count.into())
            }
            Kind::Watts => topology.watts.into(),
        }
    }

    /// What bindings take.
    fn bound(&self, bindings: &Bindings, hardware: &Hardware) -> u64 {
        let nodes = bindings.nodes.iter();
        let gpus = |wanted: &dyn Fn(u16) -> bool| -> u64 {
            let these = bindings.gpus.iter().filter(|bound| wanted(bound.gpu));
            these
                .map(|bound| match bound.share {
                    GpuShare::Whole => 1000,
                    GpuShare::Milli(milli) => milli.into(),
                    GpuShare::Mig { .. } => 0,
                })
                .sum()
        };
        match self {
            Kind::Threads => bindings.cpus.len() as u64,
            Kind::Memory => nodes.map(|node| u64::from(node.memory_mib)).sum(),
            Kind::Pages(size_kib) if bindings.hugepage_kib != *size_kib => 0,
            Kind::Pages(_) => nodes.map(|node| u64::from(node.hugepages)).sum(),
            Kind::Gpus => gpus(&|_| true),
            Kind::GpusOf(model) => gpus(&|gpu| {
                hardware.gpus.get(usize::from(gpu)).is_some_and(|gpu| gpu.model == *model)
            }),
            Kind::Functions => bindings.functions.len() as u64,
            Kind::RdmaFunctions => {
                let rdma = |nic: u16| hardware.nics.get(usize::from(nic)).is_some_and(|it| it.rdma);
                bindings.functions.iter().filter(|function| rdma(function.nic)).count() as u64
            }
            Kind::Accelerators(kind) => {
                let same = |row: u16| {
                    let device = hardware.accelerators.get(usize::from(row));
                    device.is_some_and(|device| device.kind == *kind)
                };
                let these = bindings.accelerators.iter().filter(|bound| same(bound.row));
                these.map(|bound| u64::from(bound.count)).sum()
            }
            Kind::Watts => bindings.watts.into(),
        }
    }
}
