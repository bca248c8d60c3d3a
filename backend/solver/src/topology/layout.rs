//! What a host has, worked out once from its description. Equal hosts can share one.

use cluster::{CoreClass, Hardware, HardwareError, MAX_NUMA_NODES};

/// A set of NUMA nodes. Devices whose node is not known are on `UNKNOWN_NODE`, near to nothing.
pub(super) type NodeSet = u32;
pub(super) const UNKNOWN_NODE: usize = MAX_NUMA_NODES;
/// The nodes that something can be near to.
pub(super) const KNOWN_NODES: NodeSet = (1 << MAX_NUMA_NODES) - 1;
pub(super) const EVERYWHERE: NodeSet = KNOWN_NODES | 1 << UNKNOWN_NODE;

/// The devices of a host in the shape that `bind` needs.
#[derive(Debug, PartialEq, Eq)]
pub struct Layout {
    pub(super) hardware: Hardware,
    /// Millis of shared demand that one thread carries.
    pub(super) shared_millis_per_thread: u32,
    /// By node and core class.
    pub(super) pools: Vec<[Pool; 2]>,
    pub(super) gpus: Vec<GpuSite>,
    /// GPUs behind one switch; each GPU is in exactly one set.
    pub(super) switches: Vec<u64>,
    /// GPUs that reach each other over NVLink; each GPU is in exactly one set.
    pub(super) cliques: Vec<u64>,
    /// GPUs by node, those of no known node last.
    pub(super) gpus_on: [u64; MAX_NUMA_NODES + 1],
    pub(super) nic_nodes: Vec<u8>,
    pub(super) accelerator_nodes: Vec<u8>,
}

/// Equal cores of one node. Their threads have consecutive numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pool {
    pub first_thread: u32,
    pub cores: u32,
    pub threads_per_core: u32,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct GpuSite {
    pub node: u8,
    pub switch: u8,
    pub pcie_mbps: u32,
    pub profiles: Vec<Cut>,
    /// Slices that any profile can reach.
    pub slices: u16,
}

/// A MIG profile: how many slices, and where it may begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cut {
    pub slices: u8,
    pub starts: u16,
}

impl Layout {
    /// `cpu_overcommit_permille` is the host's: how much shared demand a free thread carries.
    pub fn new(hardware: &Hardware, cpu_overcommit_permille: u64) -> Result<Self, HardwareError> {
        hardware.check()?;
        let site = |numa_node, port| {
            hardware.node_of(numa_node, port).map_or(UNKNOWN_NODE as u8, |node| node as u8)
        };
        let switches = groups(hardware.gpus.iter().map(|gpu| hardware.switch_of(gpu.pcie_port)));
        let cliques = groups(hardware.gpus.iter().map(|gpu| gpu.nvlink_group));
        let mut gpus_on = [0; MAX_NUMA_NODES + 1];
        let mut gpus = Vec::with_capacity(hardware.gpus.len());
        for (row, gpu) in hardware.gpus.iter().enumerate() {
            let node = site(gpu.numa_node, gpu.pcie_port);
            gpus_on[usize::from(node)] |= 1 << row;
            let switch = switches.iter().position(|set| set >> row & 1 == 1).unwrap_or(0) as u8;
            let cut = |profile: &cluster::MigProfile| Cut {
                slices: profile.slices,
                starts: profile.starts.iter().fold(0, |starts, &start| starts | 1 << start),
            };
            let profiles: Vec<Cut> = gpu.mig_profiles.iter().map(cut).collect();
            let slices = profiles.iter().fold(0, |slices, cut| slices | cut.reach());
            let pcie_mbps = hardware.pcie_mbps(gpu.pcie_port).unwrap_or(0);
            gpus.push(GpuSite { node, switch, pcie_mbps, profiles, slices });
        }
        let nics = hardware.nics.iter().map(|nic| site(nic.numa_node, nic.pcie_port));
        let others = hardware.accelerators.iter();
        let others = others.map(|device| site(device.numa_node, device.pcie_port));
        Ok(Self {
            shared_millis_per_thread: cpu_overcommit_permille.clamp(1, 1_000_000) as u32,
            pools: (0..hardware.numa_nodes.len()).map(|node| pools(hardware, node)).collect(),
            gpus,
            switches,
            cliques,
            gpus_on,
            nic_nodes: nics.collect(),
            accelerator_nodes: others.collect(),
            hardware: hardware.clone(),
        })
    }

    /// Whether it is the layout of such a host.
    pub(super) fn describes(&self, hardware: &Hardware, cpu_overcommit_permille: u64) -> bool {
        u64::from(self.shared_millis_per_thread) == cpu_overcommit_permille.clamp(1, 1_000_000)
            && self.hardware == *hardware
    }

    pub(super) fn pool(&self, node: usize, class: CoreClass) -> Pool {
        self.pools[node][class as usize]
    }

    /// GPUs on any of these nodes.
    pub(super) fn gpus_within(&self, nodes: NodeSet) -> u64 {
        nodes_of(nodes).fold(0, |set, node| set | self.gpus_on[node])
    }

    /// The nodes of these GPUs.
    pub(super) fn nodes_of_gpus(&self, gpus: u64) -> NodeSet {
        let nodes = self.gpus_on.iter().enumerate().filter(|(_, on)| *on & gpus != 0);
        nodes.fold(0, |set, (node, _)| set | 1 << node)
    }
}

impl Cut {
    /// The slices that a piece from `start` on has.
    pub(super) fn piece(self, start: u8) -> u16 {
        ((((1_u32 << self.slices) - 1) << start) & 0xffff) as u16
    }

    fn reach(self) -> u16 {
        bits(u64::from(self.starts)).fold(0, |set, start| set | self.piece(start as u8))
    }
}

/// The rows of a set, ascending.
pub(super) fn bits(mut set: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let row = (set != 0).then(|| set.trailing_zeros() as usize)?;
        set &= set - 1;
        Some(row)
    })
}

pub(super) fn nodes_of(set: NodeSet) -> impl Iterator<Item = usize> {
    bits(u64::from(set))
}

fn pools(hardware: &Hardware, node: usize) -> [Pool; 2] {
    let shape = &hardware.numa_nodes[node];
    let first_thread = hardware.cpus_of(node).start;
    let (cores, threads_per_core) = (u32::from(shape.cores), u32::from(shape.threads_per_core));
    let performance = Pool { first_thread, cores, threads_per_core: threads_per_core.max(1) };
    let efficiency = Pool {
        first_thread: first_thread + cores * threads_per_core,
        cores: u32::from(shape.efficiency_cores),
        threads_per_core: 1,
    };
    [performance, efficiency]
}

/// Rows with the same key, in order of their first; a row without a key is alone.
fn groups(keys: impl Iterator<Item = Option<u16>>) -> Vec<u64> {
    let mut groups: Vec<(Option<u16>, u64)> = Vec::new();
    for (row, key) in keys.enumerate() {
        match groups.iter_mut().find(|(of, _)| key.is_some() && *of == key) {
            Some((_, set)) => *set |= 1 << row,
            None => groups.push((key, 1 << row)),
        }
    }
    groups.into_iter().map(|(_, set)| set).collect()
}
