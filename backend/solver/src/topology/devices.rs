//! What is free inside one host, and the two ways in which it changes.

use super::layout::{Layout, Pool, bits};
use cluster::{
    Bindings, CoreClass, Cores, GpuBinding, GpuShare, MAX_PAGE_SIZES, Name, NodeBinding,
    PciFunction, Siblings,
};
use std::sync::Arc;

/// The free parts of one host.
///
/// Two are equal if the same parts are free: taking bindings and giving them back, in whatever
/// order, leads back to where it began.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Devices {
    layout: Arc<Layout>,
    pub(super) nodes: Vec<NodeFree>,
    /// Threads that are somebody's alone or have to stay idle, a bit each.
    claimed: Vec<u64>,
    pub(super) gpus: Vec<GpuUse>,
    /// Taken functions of each NIC.
    functions: Vec<[u64; 4]>,
    pub(super) accelerators: Vec<u16>,
    pub(super) watts: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NodeFree {
    pub memory_mib: u32,
    /// In the order in which the node lists its page sizes.
    pub pages: [u32; MAX_PAGE_SIZES],
    pub pools: [PoolFree; 2],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PoolFree {
    /// Cores of which no thread is claimed.
    pub whole_cores: u32,
    /// Threads that are not claimed.
    pub threads: u32,
    /// What shared VMs have been promised of those threads.
    pub shared_millis: u32,
}

/// What is used of a GPU: shares or pieces, never both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct GpuUse {
    pub milli: u16,
    pub slices: u16,
}

/// The first part of some bindings that is not free, or not taken where it is to be given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clash {
    Cpu(u16),
    Node(u16),
    Gpu(u16),
    Function(PciFunction),
    Accelerator(u16),
    Watts,
    /// A list is not in ascending order.
    Order,
}

impl Devices {
    /// A host of which nothing is taken.
    pub fn new(layout: Arc<Layout>) -> Self {
        let hardware = &layout.hardware;
        let nodes = hardware.numa_nodes.iter().zip(&layout.pools).map(|(node, pools)| {
            let mut pages = [0; MAX_PAGE_SIZES];
            for (free, listed) in pages.iter_mut().zip(&node.hugepages) {
                *free = listed.count;
            }
            let free = |pool: &Pool| PoolFree {
                whole_cores: pool.cores,
                threads: pool.cores * pool.threads_per_core,
                shared_millis: 0,
            };
            let pools = [free(&pools[0]), free(&pools[1])];
            NodeFree { memory_mib: node.ordinary_mib(), pages, pools }
        });
        let threads = hardware.cpus_of(hardware.numa_nodes.len()).start as usize;
        let watts = match hardware.thermal_limit_watts {
            0 => u32::MAX,
            watts => watts,
        };
        Self {
            nodes: nodes.collect(),
            claimed: vec![0; threads.div_ceil(64)],
            gpus: vec![GpuUse::default(); hardware.gpus.len()],
            functions: vec![[0; 4]; hardware.nics.len()],
            accelerators: hardware.accelerators.iter().map(|device| device.count).collect(),
            watts,
            layout,
        }
    }

    pub fn layout(&self) -> &Arc<Layout> {
        &self.layout
    }

    /// Marks these parts as taken. Changes nothing if any of them is not free.
    pub fn take(&mut self, bindings: &Bindings) -> Result<(), Clash> {
        self.change(bindings, true)
    }

    /// Marks these parts as free again. Changes nothing if any of them is free already.
    pub fn give_back(&mut self, bindings: &Bindings) -> Result<(), Clash> {
        self.change(bindings, false)
    }

    /// Thousandths of a GPU that are free, in shares; nothing of one that is cut into pieces.
    pub fn gpu_free_milli(&self, gpu: usize) -> u16 {
        match self.gpus.get(gpu) {
            Some(used) if used.slices == 0 => 1000 - used.milli,
            _ => 0,
        }
    }

    /// The same of every GPU.
    pub(crate) fn gpus_free_milli(&self) -> impl Iterator<Item = u16> + '_ {
        (0..self.gpus.len()).map(|gpu| self.gpu_free_milli(gpu))
    }

    pub(crate) fn gpu_models(&self) -> impl Iterator<Item = &Name> {
        self.layout.hardware.gpus.iter().map(|gpu| &gpu.model)
    }

    /// Whether some GPU is cut into pieces.
    pub(crate) fn has_pieces(&self) -> bool {
        self.gpus.iter().any(|used| used.slices != 0)
    }

    /// All that decides whether a request can be bound: amounts, but not which threads and
    /// functions they are made of. `layout` stands for the layout.
    pub(crate) fn state_key(&self, layout: u32, speed_permille: u32) -> Arc<[u32]> {
        let mut key = vec![layout, speed_permille, self.watts];
        for node in &self.nodes {
            key.push(node.memory_mib);
            key.extend(node.pages);
            for pool in &node.pools {
                key.extend([pool.whole_cores, pool.threads, pool.shared_millis]);
            }
        }
        let gpu = |used: &GpuUse| u32::from(used.milli) << 16 | u32::from(used.slices);
        key.extend(self.gpus.iter().map(gpu));
        key.extend((0..self.functions.len()).map(|nic| self.free_functions(nic)));
        key.extend(self.accelerators.iter().copied().map(u32::from));
        key.into()
    }

    /// How much CPU a node can still give: vCPUs of exclusive cores, millis of shared ones.
    pub(super) fn cpu_room(&self, node: usize, class: CoreClass, cores: Cores) -> u32 {
        let pool = self.nodes[node].pools[class as usize];
        let per_core = self.layout.pool(node, class).threads_per_core;
        let per_thread = self.layout.shared_millis_per_thread;
        // What shared VMs were promised has to be left to them.
        let spare = pool.threads.saturating_sub(pool.shared_millis.div_ceil(per_thread));
        let whole = pool.whole_cores.min(spare / per_core);
        match cores {
            Cores::Shared => {
                (pool.threads.saturating_mul(per_thread)).saturating_sub(pool.shared_millis)
            }
            Cores::Exclusive(Siblings::Any) => spare,
            Cores::Exclusive(Siblings::Own) => whole * per_core,
            Cores::Exclusive(Siblings::Idle) => whole,
        }
    }

    pub(super) fn pages(&self, node: usize, size_kib: u32) -> u32 {
        self.page_row(node, size_kib).map_or(0, |row| self.nodes[node].pages[row])
    }

    pub(super) fn is_claimed(&self, thread: u32) -> bool {
        self.claimed[thread as usize / 64] >> (thread % 64) & 1 == 1
    }

    pub(super) fn free_functions(&self, nic: usize) -> u32 {
        let taken = self.functions[nic].iter().map(|word| word.count_ones()).sum::<u32>();
        u32::from(self.layout.hardware.nics[nic].functions) - taken
    }

    pub(super) fn functions_of(&self, nic: usize) -> impl Iterator<Item = u16> {
        let taken = self.functions[nic];
        let all = 0..self.layout.hardware.nics[nic].functions;
        all.filter(move |&function| taken[usize::from(function) / 64] >> (function % 64) & 1 == 0)
    }

    fn page_row(&self, node: usize, size_kib: u32) -> Option<usize> {
        let sizes = &self.layout.hardware.numa_nodes[node].hugepages;
        sizes.iter().position(|pages| pages.size_kib == size_kib)
    }

    fn change(&mut self, bindings: &Bindings, take: bool) -> Result<(), Clash> {
        match self.clash(bindings, take) {
            Some(clash) => return Err(clash),
            None => self.apply(bindings, take),
        }
        Ok(())
    }

    fn clash(&self, bindings: &Bindings, take: bool) -> Option<Clash> {
        let Bindings { cpus, idle_cpus, nodes, gpus, functions, accelerators, .. } = bindings;
        let ordered = cpus.is_sorted_by(|a, b| a < b)
            && idle_cpus.is_sorted_by(|a, b| a < b)
            && !cpus.iter().any(|cpu| idle_cpus.binary_search(cpu).is_ok())
            && nodes.is_sorted_by(|a, b| a.node < b.node)
            && gpus.is_sorted_by(|a, b| a < b)
            && functions.is_sorted_by(|a, b| a < b)
            && accelerators.is_sorted_by(|a, b| a.row < b.row);
        if !ordered {
            return Some(Clash::Order);
        }
        let threads = self.claimed.len() * 64;
        for &cpu in cpus.iter().chain(idle_cpus) {
            let known = usize::from(cpu) < threads && self.pool_of(u32::from(cpu)).is_some();
            if !known || self.is_claimed(u32::from(cpu)) == take {
                return Some(Clash::Cpu(cpu));
            }
        }
        if let Some(node) = nodes.iter().find(|node| !self.node_can(bindings, node, take)) {
            return Some(Clash::Node(node.node));
        }
        if let Some(gpu) = self.gpu_clash(gpus, take) {
            return Some(Clash::Gpu(gpu));
        }
        for &function in functions {
            let nic = usize::from(function.nic);
            let known = self.layout.hardware.nics.get(nic);
            let known = known.is_some_and(|nic| function.function < nic.functions);
            let free = known && self.functions_of(nic).any(|free| free == function.function);
            if !known || free != take {
                return Some(Clash::Function(function));
            }
        }
        for bound in accelerators {
            let row = usize::from(bound.row);
            let listed = self.layout.hardware.accelerators.get(row).map(|device| device.count);
            let free = self.accelerators.get(row).copied().unwrap_or(0);
            let can = if take { free } else { listed.unwrap_or(0) - free };
            if bound.count > can {
                return Some(Clash::Accelerator(bound.row));
            }
        }
        (take && bindings.watts > self.watts).then_some(Clash::Watts)
    }

    /// Memory, pages and shared CPU of one node, and room for shared VMs beside exclusive ones.
    fn node_can(&self, bindings: &Bindings, bound: &NodeBinding, take: bool) -> bool {
        let node = usize::from(bound.node);
        let Some(free) = self.nodes.get(node) else { return false };
        let row = self.page_row(node, bindings.hugepage_kib);
        if row.is_none() && bound.hugepages > 0 {
            return false;
        }
        let shape = &self.layout.hardware.numa_nodes[node];
        let free_pages = row.map_or(0, |row| free.pages[row]);
        let pool = free.pools[bindings.core_class as usize];
        if !take {
            let used_pages = row.map_or(0, |row| shape.hugepages[row].count - free_pages);
            return bound.memory_mib <= shape.ordinary_mib() - free.memory_mib
                && bound.hugepages <= used_pages
                && bound.shared_millis <= pool.shared_millis;
        }
        let cpus = self.layout.hardware.cpus_of(node);
        let here = |cpu: &&u16| cpus.contains(&u32::from(**cpu));
        let claims = bindings.cpus.iter().chain(&bindings.idle_cpus).filter(here).count() as u64;
        let promised = u64::from(pool.shared_millis) + u64::from(bound.shared_millis);
        let threads = u64::from(pool.threads).saturating_sub(claims);
        bound.memory_mib <= free.memory_mib
            && bound.hugepages <= free_pages
            && promised <= threads * u64::from(self.layout.shared_millis_per_thread)
    }

    fn gpu_clash(&self, gpus: &[GpuBinding], take: bool) -> Option<u16> {
        let mut now = (u16::MAX, GpuUse::default());
        for bound in gpus {
            let Some(used) = self.gpus.get(usize::from(bound.gpu)) else { return Some(bound.gpu) };
            if now.0 != bound.gpu {
                now = (bound.gpu, *used);
            }
            match self.gpu_after(now.1, bound, take) {
                Some(after) => now.1 = after,
                None => return Some(bound.gpu),
            }
        }
        None
    }

    /// A GPU's use after this binding is taken or given back; `None` if that cannot be.
    fn gpu_after(&self, used: GpuUse, bound: &GpuBinding, take: bool) -> Option<GpuUse> {
        let milli = match bound.share {
            GpuShare::Whole => 1000,
            GpuShare::Milli(milli) => milli,
            GpuShare::Mig { profile, start } => {
                let cuts = &self.layout.gpus[usize::from(bound.gpu)].profiles;
                let cut = cuts.get(usize::from(profile))?;
                let legal = start < 16 && cut.starts >> start & 1 == 1;
                let piece = if legal { cut.piece(start) } else { return None };
                let fits =
                    if take { used.slices & piece == 0 } else { used.slices & piece == piece };
                let slices = used.slices ^ piece;
                return (fits && used.milli == 0).then_some(GpuUse { milli: 0, slices });
            }
        };
        let milli =
            if take { used.milli.checked_add(milli)? } else { used.milli.checked_sub(milli)? };
        (milli <= 1000 && used.slices == 0).then_some(GpuUse { milli, slices: 0 })
    }

    /// Does what `clash` has allowed.
    fn apply(&mut self, bindings: &Bindings, take: bool) {
        for &cpu in bindings.cpus.iter().chain(&bindings.idle_cpus) {
            self.flip_thread(u32::from(cpu), take);
        }
        let step = |amount: &mut u32, by: u32, more: bool| {
            if more { *amount += by } else { *amount -= by }
        };
        for bound in &bindings.nodes {
            let row = self.page_row(usize::from(bound.node), bindings.hugepage_kib);
            let node = &mut self.nodes[usize::from(bound.node)];
            step(&mut node.memory_mib, bound.memory_mib, !take);
            if let Some(row) = row {
                step(&mut node.pages[row], bound.hugepages, !take);
            }
            let pool = &mut node.pools[bindings.core_class as usize];
            step(&mut pool.shared_millis, bound.shared_millis, take);
        }
        for bound in &bindings.gpus {
            let row = usize::from(bound.gpu);
            if let Some(after) = self.gpu_after(self.gpus[row], bound, take) {
                self.gpus[row] = after;
            }
        }
        for function in &bindings.functions {
            let bit = 1 << (function.function % 64);
            self.functions[usize::from(function.nic)][usize::from(function.function) / 64] ^= bit;
        }
        for bound in &bindings.accelerators {
            let free = &mut self.accelerators[usize::from(bound.row)];
            *free = if take { *free - bound.count } else { *free + bound.count };
        }
        if self.layout.hardware.thermal_limit_watts > 0 {
            step(&mut self.watts, bindings.watts, !take);
        }
    }

    fn flip_thread(&mut self, thread: u32, take: bool) {
        let Some((node, class)) = self.pool_of(thread) else { return };
        let shape = self.layout.pools[node][class];
        let core = (thread - shape.first_thread) / shape.threads_per_core;
        let first = shape.first_thread + core * shape.threads_per_core;
        let whole = |devices: &Self| {
            (first..first + shape.threads_per_core).all(|thread| !devices.is_claimed(thread))
        };
        let before = whole(self);
        self.claimed[thread as usize / 64] ^= 1 << (thread % 64);
        let after = whole(self);
        let pool = &mut self.nodes[node].pools[class];
        pool.threads = if take { pool.threads - 1 } else { pool.threads + 1 };
        pool.whole_cores = pool.whole_cores + u32::from(after) - u32::from(before);
    }

    /// Node and core class of a thread.
    fn pool_of(&self, thread: u32) -> Option<(usize, usize)> {
        for (node, pools) in self.layout.pools.iter().enumerate() {
            for (class, pool) in pools.iter().enumerate() {
                let end = pool.first_thread + pool.cores * pool.threads_per_core;
                if (pool.first_thread..end).contains(&thread) {
                    return Some((node, class));
                }
            }
        }
        None
    }

    /// GPUs that nobody uses.
    pub(super) fn unused_gpus(&self) -> u64 {
        let unused = self.gpus.iter().enumerate().filter(|(_, used)| **used == GpuUse::default());
        unused.fold(0, |set, (row, _)| set | 1 << row)
    }

    /// Unused GPUs of the switch that this GPU is behind.
    pub(super) fn unused_beside(&self, gpu: usize) -> u32 {
        let switch = self.layout.switches[usize::from(self.layout.gpus[gpu].switch)];
        bits(switch).filter(|&row| self.gpus[row] == GpuUse::default()).count() as u32
    }
}

impl std::fmt::Display for Clash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Clash::Cpu(cpu) => write!(f, "thread {cpu}"),
            Clash::Node(node) => write!(f, "memory, pages or shared CPU of NUMA node {node}"),
            Clash::Gpu(gpu) => write!(f, "GPU {gpu}"),
            Clash::Function(at) => write!(f, "function {} of NIC {}", at.function, at.nic),
            Clash::Accelerator(row) => write!(f, "accelerator {row}"),
            Clash::Watts => write!(f, "heat"),
            Clash::Order => write!(f, "the order of a list"),
        }
    }
}
