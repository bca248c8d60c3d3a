//! Whether a host could give a VM its parts at all: every set of nodes is tried.
//!
//! Needed to tell a right refusal from a wrong one. Slow and plain; nobody waits for it.

use super::Holder;
use super::hardware::Reading;
use cluster::{
    Amounts, CoreClass, Cores, Dim, GpuAmount, GpuGrouping, GpuRequest, GpuShare, Hardware, Near,
    NumaPolicy, Reason, Siblings, Topology,
};

/// The first of `INSIDE_REASONS` that keeps the VM off a host on which others have these parts.
pub(crate) fn lacking(
    hardware: &Hardware,
    cpu_overcommit_permille: u64,
    holders: &[Holder<'_>],
    request: &Topology,
    demand: &Amounts,
) -> Option<Reason> {
    let reading = Reading::new(hardware);
    let room = Room { reading: &reading, permille: cpu_overcommit_permille.max(1), holders };
    let wanted = request.architecture;
    let known = |name| hardware.cpu_features.contains(name);
    if wanted.is_some_and(|wanted| hardware.architecture != Some(wanted))
        || !request.cpu_features.iter().all(known)
    {
        return Some(Reason::Architecture);
    }
    let heat: u64 = holders.iter().map(|holder| u64::from(holder.bindings.watts)).sum();
    let limit = u64::from(hardware.thermal_limit_watts);
    if limit > 0 && request.watts > 0 && heat + u64::from(request.watts) > limit {
        return Some(Reason::Heat);
    }
    let gpus = request.gpus.as_ref().map(|gpus| room.gpus(gpus, demand.get(Dim::MEMORY_MIB)));
    if gpus.as_ref().is_some_and(|gpus| !gpus.suffice(None, &[])) {
        return Some(Reason::Gpus);
    }
    let wishes = room.wishes(request);
    if wishes.iter().any(|wish| wish.free.iter().map(|(_, free)| free).sum::<u64>() < wish.count) {
        return Some(Reason::Devices);
    }
    let near_gpus: Vec<&Wish> = wishes.iter().filter(|wish| wish.near == Near::Gpus).collect();
    let accepts = |cores: &[u16]| {
        let near_cores = wishes.iter().filter(|wish| wish.near == Near::Cores);
        near_cores.into_iter().all(|wish| wish.within(cores) >= wish.count)
            && gpus.as_ref().is_none_or(|gpus| {
                gpus.suffice(gpus.request.near_cores.then_some(cores), &near_gpus)
            })
    };
    (!room.stands(request, demand, &accepts)).then_some(Reason::Numa)
}

struct Room<'a> {
    reading: &'a Reading<'a>,
    permille: u64,
    holders: &'a [Holder<'a>],
}

/// A count of devices, and how many are free on which node.
struct Wish {
    near: Near,
    count: u64,
    free: Vec<(Option<u16>, u64)>,
}

impl Wish {
    fn within(&self, nodes: &[u16]) -> u64 {
        let near = |node: Option<u16>| node.is_some_and(|node| nodes.contains(&node));
        self.free.iter().filter(|(node, _)| near(*node)).map(|(_, free)| free).sum()
    }
}

/// What each GPU can give towards a request: its node, its group, and units.
struct Gpus<'a> {
    request: &'a GpuRequest,
    count: u64,
    each: Vec<(Option<u16>, Option<u16>, u64)>,
}

impl Gpus<'_> {
    /// Whether enough are near each other, on `allowed` nodes, with `wishes` near them.
    fn suffice(&self, allowed: Option<&[u16]>, wishes: &[&Wish]) -> bool {
        let mut groups: Vec<Option<u16>> = self.each.iter().map(|(_, group, _)| *group).collect();
        groups.sort_unstable();
        groups.dedup();
        groups.into_iter().any(|group| {
            let usable: Vec<(Option<u16>, u64)> = self
                .each
                .iter()
                .filter(|(node, of, units)| {
                    let here = |allowed: &[u16]| node.is_some_and(|node| allowed.contains(&node));
                    *of == group && *units > 0 && allowed.is_none_or(here)
                })
                .map(|(node, _, units)| (*node, *units))
                .collect();
            let sum = |among: &dyn Fn(Option<u16>) -> bool| -> u64 {
                usable.iter().filter(|(node, _)| among(*node)).map(|(_, units)| units).sum()
            };
            if sum(&|_| true) < self.count {
                return false;
            }
            if wishes.is_empty() {
                return true;
            }
            let mut nodes: Vec<Option<u16>> = usable.iter().map(|(node, _)| *node).collect();
            nodes.sort_unstable();
            nodes.dedup();
            // More nodes have more devices; there are at most as many as units are taken.
            let size = nodes.len().min(self.count as usize);
            subsets(&nodes, size).into_iter().any(|on| {
                let known: Vec<u16> = on.iter().copied().flatten().collect();
                sum(&|node| on.contains(&node)) >= self.count
                    && wishes.iter().all(|wish| wish.within(&known) >= wish.count)
            })
        })
    }
}

impl Room<'_> {
    fn gpus<'r>(&self, request: &'r GpuRequest, vm_memory_mib: u64) -> Gpus<'r> {
        let hardware = self.reading.hardware;
        let mut each = Vec::new();
        for (row, gpu) in hardware.gpus.iter().enumerate() {
            let (mut milli, mut slices) = (0_u64, 0_u32);
            let held = self.holders.iter().flat_map(|holder| &holder.bindings.gpus);
            for bound in held.filter(|bound| usize::from(bound.gpu) == row) {
                match bound.share {
                    GpuShare::Whole => milli += 1000,
                    GpuShare::Milli(share) => milli += u64::from(share),
                    GpuShare::Mig { profile, start } => {
                        let cut = gpu.mig_profiles.get(usize::from(profile));
                        let length = cut.map_or(0, |cut| u32::from(cut.slices.min(16)));
                        slices |= ((1 << length) - 1) << start.min(15);
                    }
                }
            }
            let cut = match &request.amount {
                GpuAmount::Mig { profile, .. } => {
                    gpu.mig_profiles.iter().find(|cut| cut.name == *profile)
                }
                _ => None,
            };
            let (units, memory) = match &request.amount {
                GpuAmount::Whole(_) => {
                    (u64::from(milli == 0 && slices == 0), gpu.memory_mib.into())
                }
                GpuAmount::Milli(share) => {
                    let fits = slices == 0 && milli + u64::from(*share) <= 1000;
                    (u64::from(fits), u64::from(gpu.memory_mib) * u64::from(*share) / 1000)
                }
                GpuAmount::Mig { .. } => {
                    let mut used = slices;
                    let mut pieces = 0;
                    for start in cut.map_or(&[][..], |cut| &cut.starts) {
                        let length = cut.map_or(0, |cut| cut.slices.min(16));
                        let piece = ((1_u32 << length) - 1) << (*start).min(15);
                        if used & piece == 0 {
                            used |= piece;
                            pieces += 1;
                        }
                    }
                    let pieces = if milli == 0 { pieces } else { 0 };
                    (pieces, cut.map_or(0, |cut| u64::from(cut.memory_mib)))
                }
            };
            let memory = match gpu.unified_memory {
                true => u64::from(gpu.memory_mib).min(vm_memory_mib),
                false => memory,
            };
            let driver = gpu.driver;
            let fit = (request.models.is_empty() || request.models.contains(&gpu.model))
                && memory >= u64::from(request.min_memory_mib)
                && gpu.compute_capability_tenths >= request.min_compute_capability_tenths
                && request.min_driver.is_none_or(|min| driver.is_some_and(|has| has >= min))
                && request.max_driver.is_none_or(|max| driver.is_some_and(|has| has <= max))
                && self.reading.mbps(gpu.pcie_port) >= request.min_pcie_mbps;
            let lone = Some(u16::MAX - row as u16);
            let group = match request.together {
                GpuGrouping::Any => None,
                GpuGrouping::SameSwitch => self.reading.switch(gpu.pcie_port).or(lone),
                GpuGrouping::NvlinkClique => gpu.nvlink_group.or(lone),
            };
            let node = self.reading.node(gpu.numa_node, gpu.pcie_port);
            each.push((node, group, if fit { units } else { 0 }));
        }
        let count = match &request.amount {
            GpuAmount::Whole(count) | GpuAmount::Mig { count, .. } => u64::from(*count),
            GpuAmount::Milli(_) => 1,
        };
        Gpus { request, count, each }
    }

    fn wishes(&self, request: &Topology) -> Vec<Wish> {
        let hardware = self.reading.hardware;
        let mut wishes = Vec::new();
        if let Some(nic) = &request.nic {
            let cards = hardware.nics.iter().enumerate().filter(|(_, card)| card.rdma || !nic.rdma);
            let free = cards.map(|(row, card)| {
                let held = self.holders.iter().flat_map(|holder| &holder.bindings.functions);
                let taken = held.filter(|at| usize::from(at.nic) == row).count() as u64;
                let node = self.reading.node(card.numa_node, card.pcie_port);
                (node, u64::from(card.functions).saturating_sub(taken))
            });
            let free = free.collect();
            wishes.push(Wish { near: nic.near, count: u64::from(nic.functions), free });
        }
        for asked in &request.accelerators {
            let listed = hardware.accelerators.iter().enumerate();
            let free =
                listed.filter(|(_, device)| device.kind == asked.kind).map(|(row, device)| {
                    let held = self.holders.iter().flat_map(|holder| &holder.bindings.accelerators);
                    let held = held.filter(|bound| usize::from(bound.row) == row);
                    let taken: u64 = held.map(|bound| u64::from(bound.count)).sum();
                    let node = self.reading.node(device.numa_node, device.pcie_port);
                    (node, u64::from(device.count).saturating_sub(taken))
                });
            let free = free.collect();
            wishes.push(Wish { near: asked.near, count: u64::from(asked.count), free });
        }
        wishes
    }

    /// Whether cores, memory and pages are there on nodes that `accepts` takes for the cores.
    fn stands(
        &self,
        request: &Topology,
        demand: &Amounts,
        accepts: &dyn Fn(&[u16]) -> bool,
    ) -> bool {
        let nodes = self.reading.hardware.numa_nodes.len() as u16;
        let asks_nothing = request.cores == Cores::Shared
            && request.numa == NumaPolicy::Preferred
            && request.core_class.is_none()
            && request.hugepages.is_none();
        if nodes == 0 {
            return asks_nothing && accepts(&[]);
        }
        let millis = demand.get(Dim::CPU_MILLIS);
        let cpu = match request.cores {
            Cores::Shared => millis,
            Cores::Exclusive(_) => millis.div_ceil(1000),
        };
        let (size_kib, pages) =
            request.hugepages.map_or((0, 0), |all| (all.size_kib, u64::from(all.count)));
        let in_pages = u64::from(size_kib) * pages / 1024;
        let need = [cpu, demand.get(Dim::MEMORY_MIB).saturating_sub(in_pages), pages];
        let classes = match request.core_class {
            Some(class) => vec![class],
            None => vec![CoreClass::Performance, CoreClass::Efficiency],
        };
        let all: Vec<u16> = (0..nodes).collect();
        classes.into_iter().any(|class| {
            let has: Vec<[u64; 3]> = all
                .iter()
                .map(|node| {
                    let cpu = self.cpu(*node, class, request.cores);
                    let (memory, pages) = self.memory(*node, size_kib);
                    [cpu, memory, pages]
                })
                .collect();
            let at = |node: &u16| &has[usize::from(*node)];
            let with_cores = |on: &[u16]| accepts(if cpu == 0 { &[] } else { on });
            match request.numa {
                NumaPolicy::Single => all
                    .iter()
                    .any(|node| (0..3).all(|of| at(node)[of] >= need[of]) && with_cores(&[*node])),
                NumaPolicy::Split(ways) => subsets(&all, usize::from(ways)).iter().any(|on| {
                    let ways = u64::from(ways);
                    let fits = |of: usize| {
                        let (least, more) = (need[of] / ways, need[of] % ways);
                        let larger = on.iter().filter(|node| at(node)[of] > least).count() as u64;
                        on.iter().all(|node| at(node)[of] >= least) && larger >= more
                    };
                    cpu >= ways && (0..3).all(fits) && with_cores(on)
                }),
                NumaPolicy::Preferred => {
                    let sum = |of: usize| has.iter().map(|has| has[of]).sum::<u64>();
                    if (0..3).any(|of| sum(of) < need[of]) {
                        return false;
                    }
                    let usable: Vec<u16> =
                        all.iter().copied().filter(|node| at(node)[0] > 0).collect();
                    // With more nodes more is near; a node without a part of the VM has no cores.
                    let size = (usable.len() as u64).min(cpu) as usize;
                    subsets(&usable, size).iter().any(|on| {
                        on.iter().map(|node| at(node)[0]).sum::<u64>() >= cpu && with_cores(on)
                    })
                }
            }
        })
    }

    /// Millis of shared CPU, or vCPUs of exclusive cores, that a node can still give.
    fn cpu(&self, node: u16, class: CoreClass, cores: Cores) -> u64 {
        let mut claimed = vec![false; self.reading.threads.len()];
        let mut promised = 0;
        for holder in self.holders {
            for cpu in holder.bindings.cpus.iter().chain(&holder.bindings.idle_cpus) {
                if let Some(claimed) = claimed.get_mut(usize::from(*cpu)) {
                    *claimed = true;
                }
            }
            let here = holder.bindings.nodes.iter().filter(|bound| bound.node == node);
            if holder.bindings.core_class == class {
                promised += here.map(|bound| u64::from(bound.shared_millis)).sum::<u64>();
            }
        }
        let threads = self.reading.threads.iter().enumerate();
        let here = threads.filter(|(_, thread)| thread.node == node && thread.class == class);
        let (mut free, mut by_core) = (0, std::collections::BTreeMap::new());
        for (cpu, thread) in here {
            let is_free = !claimed[cpu];
            free += u64::from(is_free);
            let core = by_core.entry(thread.core).or_insert((0_u64, 0_u64));
            core.0 += 1;
            core.1 += u64::from(is_free);
        }
        let whole = by_core.values().filter(|(all, free)| all == free).count() as u64;
        let per_core = by_core.values().map(|(all, _)| *all).next().unwrap_or(1).max(1);
        // Threads that nobody needs for what is promised to those who share.
        let spare = free.saturating_sub(promised.div_ceil(self.permille));
        match cores {
            Cores::Shared => (free * self.permille).saturating_sub(promised),
            Cores::Exclusive(Siblings::Any) => spare,
            Cores::Exclusive(Siblings::Own) => whole.min(spare / per_core) * per_core,
            Cores::Exclusive(Siblings::Idle) => whole.min(spare / per_core),
        }
    }

    /// Ordinary memory and pages of one size that are left on a node.
    fn memory(&self, node: u16, size_kib: u32) -> (u64, u64) {
        let shape = &self.reading.hardware.numa_nodes[usize::from(node)];
        let in_pages = |pages: &cluster::HugePages| {
            (u64::from(pages.size_kib) * u64::from(pages.count)).div_ceil(1024)
        };
        let set_aside: u64 = shape.hugepages.iter().map(in_pages).sum();
        let mut memory = u64::from(shape.memory_mib).saturating_sub(set_aside);
        let listed = shape.hugepages.iter().find(|pages| pages.size_kib == size_kib);
        let mut pages = listed.map_or(0, |pages| u64::from(pages.count));
        for holder in self.holders {
            for bound in holder.bindings.nodes.iter().filter(|bound| bound.node == node) {
                memory = memory.saturating_sub(bound.memory_mib.into());
                if holder.bindings.hugepage_kib == size_kib {
                    pages = pages.saturating_sub(bound.hugepages.into());
                }
            }
        }
        (memory, pages)
    }
}

/// All subsets of this size.
fn subsets<T: Copy>(of: &[T], size: usize) -> Vec<Vec<T>> {
    if size == 0 {
        return vec![Vec::new()];
    }
    let Some((first, rest)) = of.split_first() else { return Vec::new() };
    let mut with: Vec<Vec<T>> = subsets(rest, size - 1);
    with.iter_mut().for_each(|set| set.insert(0, *first));
    with.extend(subsets(rest, size));
    with
}
