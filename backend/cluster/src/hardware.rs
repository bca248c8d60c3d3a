//! What is inside a host: NUMA nodes, PCIe ports, GPUs and other accelerators.

use crate::Name;
use serde::{Deserialize, Serialize};

/// The devices of a host and how they hang together. Empty for hosts that report none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Hardware {
    pub numa_nodes: Vec<NumaNode>,
    pub pcie_ports: Vec<PciePort>,
    pub gpus: Vec<Gpu>,
    pub accelerators: Vec<Accelerator>,
}

/// One NUMA node with the cores and memory that are near each other.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct NumaNode {
    pub socket: u16,
    pub cores: u16,
    pub threads_per_core: u8,
    pub memory_mib: u32,
}

/// A root complex, switch or slot. `parent` is an index into the same list, lower than its own.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PciePort {
    pub parent: Option<u16>,
    pub numa_node: Option<u16>,
    pub bandwidth_mbps: u32,
}

/// One physical GPU.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Gpu {
    pub model: Name,
    pub memory_mib: u32,
    /// Compute capability times ten: 8.6 is 86.
    pub compute_capability_tenths: u16,
    pub pcie_port: Option<u16>,
    pub numa_node: Option<u16>,
    /// GPUs with the same number reach each other over NVLink.
    pub nvlink_group: Option<u16>,
}

/// Any other countable device: FPGA, neural engine, network function.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Accelerator {
    pub kind: Name,
    pub count: u16,
    pub pcie_port: Option<u16>,
    pub numa_node: Option<u16>,
}
