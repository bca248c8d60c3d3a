//! A few integers per host that rule out most hosts, and what is left in which pieces.
//!
//! Whatever a request needs at least is one row of `Needs`; the most that a host can give is the
//! same row of its `Summary`. A host with less in any row cannot take the VM; one with as much in
//! every row may.

use super::bind::Ask;
use super::devices::{Devices, GpuUse};
use cluster::{
    Amounts, Architecture, CoreClass, Cores, GpuAmount, GpuGrouping, NumaPolicy, Siblings, Topology,
};
use std::ops::Range;

/// Rows of a summary.
const ROWS: usize = 20;

const X86_64: usize = 0;
const AARCH64: usize = 1;
const WATTS: usize = 2;
const NODES: usize = 3;
/// Shared millis, then exclusive vCPUs with siblings own, idle and any: the most on one node.
const NODE_CPU: usize = 4;
/// The same, all nodes together.
const HOST_CPU: usize = 8;
const NODE_MEMORY: usize = 12;
const HOST_MEMORY: usize = 13;
const UNUSED_GPUS: usize = 14;
const SWITCH_GPUS: usize = 15;
const CLIQUE_GPUS: usize = 16;
const GPU_MILLI: usize = 17;
const FUNCTIONS: usize = 18;
const RDMA_FUNCTIONS: usize = 19;

/// The most that a host can give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary([u32; ROWS]);

/// The least that a request needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Needs([u32; ROWS]);

impl Summary {
    pub const ROWS: usize = ROWS;

    pub fn new(devices: &Devices) -> Self {
        let layout = devices.layout();
        let mut rows = [0; ROWS];
        match layout.hardware.architecture {
            Some(Architecture::X86_64) => rows[X86_64] = 1,
            Some(Architecture::Aarch64) => rows[AARCH64] = 1,
            None => {}
        }
        rows[WATTS] = devices.watts;
        rows[NODES] = devices.nodes.len() as u32;
        for (at, cores) in KINDS_OF_CORES.into_iter().enumerate() {
            for class in [CoreClass::Performance, CoreClass::Efficiency] {
                let rooms =
                    (0..devices.nodes.len()).map(|node| devices.cpu_room(node, class, cores));
                let most = rooms.clone().max().unwrap_or(0);
                rows[NODE_CPU + at] = rows[NODE_CPU + at].max(most);
                let sum = rooms.fold(0, u32::saturating_add);
                rows[HOST_CPU + at] = rows[HOST_CPU + at].max(sum);
            }
        }
        let memory = devices.nodes.iter().map(|node| node.memory_mib);
        rows[NODE_MEMORY] = memory.clone().max().unwrap_or(0);
        rows[HOST_MEMORY] = memory.fold(0, u32::saturating_add);
        if devices.nodes.is_empty() {
            // Nothing is known, so nothing can be ruled out.
            rows[HOST_CPU] = u32::MAX;
            rows[HOST_MEMORY] = u32::MAX;
        }
        let unused = devices.unused_gpus();
        let most =
            |sets: &[u64]| sets.iter().map(|set| (set & unused).count_ones()).max().unwrap_or(0);
        rows[UNUSED_GPUS] = unused.count_ones();
        rows[SWITCH_GPUS] = most(&layout.switches);
        rows[CLIQUE_GPUS] = most(&layout.cliques);
        let shares = devices.gpus.iter().filter(|used| used.slices == 0);
        rows[GPU_MILLI] = shares.map(|used| u32::from(1000 - used.milli)).max().unwrap_or(0);
        for (nic, shape) in layout.hardware.nics.iter().enumerate() {
            let free = devices.free_functions(nic);
            rows[FUNCTIONS] += free;
            rows[RDMA_FUNCTIONS] += if shape.rdma { free } else { 0 };
        }
        Self(rows)
    }

    /// One integer per row, for callers that keep columns.
    pub fn rows(&self) -> &[u32; ROWS] {
        &self.0
    }

    /// Whether there are certainly too few GPUs.
    pub(super) fn lacks_gpus(&self, needs: &Needs) -> bool {
        self.lacks(needs, UNUSED_GPUS..FUNCTIONS)
    }

    /// Whether there is certainly too little on the nodes.
    pub(super) fn lacks_nodes(&self, needs: &Needs) -> bool {
        self.lacks(needs, NODES..UNUSED_GPUS)
    }

    fn lacks(&self, needs: &Needs, rows: Range<usize>) -> bool {
        self.0[rows.clone()].iter().zip(&needs.0[rows]).any(|(most, least)| most < least)
    }

    /// Whether the host may have what is needed. `false` is certain, `true` is not.
    pub fn may_hold(&self, needs: &Needs) -> bool {
        self.0.iter().zip(&needs.0).all(|(most, least)| most >= least)
    }
}

const KINDS_OF_CORES: [Cores; 4] = [
    Cores::Shared,
    Cores::Exclusive(Siblings::Own),
    Cores::Exclusive(Siblings::Idle),
    Cores::Exclusive(Siblings::Any),
];

impl Needs {
    /// `demand` is the least that the VM takes on any host.
    pub fn new(request: &Topology, demand: &Amounts) -> Self {
        let mut rows = [0; ROWS];
        match request.architecture {
            Some(Architecture::X86_64) => rows[X86_64] = 1,
            Some(Architecture::Aarch64) => rows[AARCH64] = 1,
            None => {}
        }
        rows[WATTS] = request.watts;
        let [cpu, memory, _] = Ask::need(request, demand);
        let at = KINDS_OF_CORES.iter().position(|cores| *cores == request.cores).unwrap_or(0);
        rows[HOST_CPU + at] = cpu;
        rows[HOST_MEMORY] = memory;
        match request.numa {
            NumaPolicy::Preferred => {}
            NumaPolicy::Single => {
                rows[NODES] = 1;
                rows[NODE_CPU + at] = cpu;
                rows[NODE_MEMORY] = memory;
            }
            NumaPolicy::Split(ways) => {
                rows[NODES] = u32::from(ways);
                rows[NODE_CPU + at] = cpu.div_ceil(u32::from(ways.max(1)));
                rows[NODE_MEMORY] = memory.div_ceil(u32::from(ways.max(1)));
            }
        }
        if let Some(gpus) = &request.gpus {
            match gpus.amount {
                GpuAmount::Whole(count) => {
                    rows[UNUSED_GPUS] = u32::from(count);
                    match gpus.together {
                        GpuGrouping::Any => {}
                        GpuGrouping::SameSwitch => rows[SWITCH_GPUS] = u32::from(count),
                        GpuGrouping::NvlinkClique => rows[CLIQUE_GPUS] = u32::from(count),
                    }
                }
                GpuAmount::Milli(milli) => rows[GPU_MILLI] = u32::from(milli),
                GpuAmount::Mig { .. } => {}
            }
        }
        if let Some(nic) = &request.nic {
            rows[if nic.rdma { RDMA_FUNCTIONS } else { FUNCTIONS }] = u32::from(nic.functions);
        }
        Self(rows)
    }

    pub fn rows(&self) -> &[u32; ROWS] {
        &self.0
    }
}

/// What is left of a host, and in which pieces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fragmentation {
    pub nodes: Vec<NodeHole>,
    /// Cores that are wholly free, and the most of them on one node.
    pub free_cores: u32,
    pub largest_node_cores: u32,
    pub unused_gpus: u32,
    /// GPUs of which somebody has a part, and a part is free.
    pub partly_free_gpus: u32,
    /// The most unused GPUs behind one switch, and in one NVLink clique.
    pub largest_switch_gpus: u32,
    pub largest_clique_gpus: u32,
    /// Free thousandths of GPUs that somebody has a share of, and the largest of these pieces.
    pub gpu_milli_in_pieces: u32,
    pub largest_gpu_piece_milli: u32,
    /// Free slices of GPUs that are cut.
    pub mig_slices_in_pieces: u32,
    /// Unused GPUs on nodes on which no whole core is free.
    pub stranded_gpus: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeHole {
    pub free_cores: u32,
    /// Free threads, those of cores that are partly taken included.
    pub free_threads: u32,
    pub memory_mib: u32,
    pub unused_gpus: u32,
}

/// What is left of a host, and in which pieces.
pub fn fragmentation(devices: &Devices) -> Fragmentation {
    let layout = devices.layout();
    let unused = devices.unused_gpus();
    let mut found = Fragmentation { unused_gpus: unused.count_ones(), ..Default::default() };
    for (row, node) in devices.nodes.iter().enumerate() {
        let hole = NodeHole {
            free_cores: node.pools.iter().map(|pool| pool.whole_cores).sum(),
            free_threads: node.pools.iter().map(|pool| pool.threads).sum(),
            memory_mib: node.memory_mib,
            unused_gpus: (layout.gpus_on[row] & unused).count_ones(),
        };
        found.free_cores += hole.free_cores;
        found.largest_node_cores = found.largest_node_cores.max(hole.free_cores);
        if hole.free_cores == 0 {
            found.stranded_gpus += hole.unused_gpus;
        }
        found.nodes.push(hole);
    }
    let most = |sets: &[u64]| sets.iter().map(|set| (set & unused).count_ones()).max().unwrap_or(0);
    found.largest_switch_gpus = most(&layout.switches);
    found.largest_clique_gpus = most(&layout.cliques);
    for (row, used) in
        devices.gpus.iter().enumerate().filter(|(_, used)| **used != GpuUse::default())
    {
        if used.slices != 0 {
            let free = layout.gpus[row].slices & !used.slices;
            found.mig_slices_in_pieces += free.count_ones();
            found.partly_free_gpus += u32::from(free != 0);
        } else {
            let free = u32::from(1000 - used.milli);
            found.gpu_milli_in_pieces += free;
            found.partly_free_gpus += u32::from(free != 0);
            found.largest_gpu_piece_milli = found.largest_gpu_piece_milli.max(free);
        }
    }
    found
}
