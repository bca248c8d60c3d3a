//! What is inside a host: NUMA nodes, the PCIe tree, GPUs, NICs and other accelerators.
//!
//! Devices are known by their place in their list. `hardware_check` says what a description may
//! hold; what is free of it is `solver::topology`'s to know.

use crate::Name;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// The devices of a host and how they hang together. Empty for hosts that report none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Hardware {
    pub numa_nodes: Vec<NumaNode>,
    pub pcie_ports: Vec<PciePort>,
    pub gpus: Vec<Gpu>,
    pub accelerators: Vec<Accelerator>,
    pub nics: Vec<Nic>,
    pub architecture: Option<Architecture>,
    /// Instruction set extensions of every core, as the operating system spells them: `avx512f`.
    pub cpu_features: Vec<Name>,
    /// Heat that can be carried away; 0 means that no limit is known.
    pub thermal_limit_watts: u32,
}

/// One NUMA node with the cores and memory that are near each other.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct NumaNode {
    pub socket: u16,
    /// Performance cores, or all cores where there is one class.
    pub cores: u16,
    /// Of each performance core. Efficiency cores have one.
    pub threads_per_core: u8,
    /// Efficiency cores, beside `cores`.
    pub efficiency_cores: u16,
    /// All memory of the node, what is set aside as huge pages included.
    pub memory_mib: u32,
    pub hugepages: Vec<HugePages>,
}

/// Pages of one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct HugePages {
    pub size_kib: u32,
    pub count: u32,
}

#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
pub enum CoreClass {
    #[default]
    Performance,
    Efficiency,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Architecture {
    X86_64,
    Aarch64,
}

/// A root complex, switch or slot. `parent` is an index into the same list, lower than its own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PciePort {
    pub kind: PortKind,
    pub parent: Option<u16>,
    pub numa_node: Option<u16>,
    pub bandwidth_mbps: u32,
}

#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
pub enum PortKind {
    RootComplex,
    #[default]
    Switch,
    Slot,
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
    pub driver: Option<DriverVersion>,
    /// What it can be cut into; empty where it cannot.
    pub mig_profiles: Vec<MigProfile>,
    /// It has no memory of its own and works in that of the VM.
    pub unified_memory: bool,
}

impl Gpu {
    /// A GPU of which no more than this is known.
    pub fn new(model: Name, memory_mib: u32) -> Self {
        Self {
            model,
            memory_mib,
            compute_capability_tenths: 0,
            pcie_port: None,
            numa_node: None,
            nvlink_group: None,
            driver: None,
            mig_profiles: Vec::new(),
            unified_memory: false,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct DriverVersion {
    pub major: u16,
    pub minor: u16,
    pub patch: u16,
}

impl std::fmt::Display for DriverVersion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

/// A way to cut a piece out of a GPU: so many neighbouring slices, from certain slices on.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct MigProfile {
    pub name: Name,
    pub slices: u8,
    /// Slices at which a piece may begin, ascending.
    pub starts: Vec<u8>,
    pub memory_mib: u32,
}

/// A network card and how many guests can have a function of it to themselves.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Nic {
    /// SR-IOV functions; 1 for a card that can only be handed over as a whole.
    pub functions: u16,
    pub rdma: bool,
    pub bandwidth_mbps: u32,
    pub pcie_port: Option<u16>,
    pub numa_node: Option<u16>,
}

/// Any other countable device: NVMe drive, FPGA, neural engine.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Accelerator {
    pub kind: Name,
    pub count: u16,
    pub pcie_port: Option<u16>,
    pub numa_node: Option<u16>,
}

impl NumaNode {
    /// Hardware threads of the node.
    pub fn threads(&self) -> u32 {
        u32::from(self.cores) * u32::from(self.threads_per_core) + u32::from(self.efficiency_cores)
    }

    /// Memory beside the huge pages.
    pub fn ordinary_mib(&self) -> u32 {
        let pages = self.hugepages.iter().map(|pages| pages.mib_rounded_up()).sum::<u64>();
        u64::from(self.memory_mib).saturating_sub(pages) as u32
    }
}

impl HugePages {
    /// Memory in these pages, whole MiB only.
    pub fn mib(&self) -> u64 {
        u64::from(self.size_kib) * u64::from(self.count) / 1024
    }

    fn mib_rounded_up(&self) -> u64 {
        (u64::from(self.size_kib) * u64::from(self.count)).div_ceil(1024)
    }
}

impl Hardware {
    /// The numbers of a node's hardware threads.
    ///
    /// Threads are counted through the host: node after node, in a node the performance cores and
    /// then the efficiency cores, and the threads of a core one after another.
    pub fn cpus_of(&self, node: usize) -> Range<u32> {
        let first = self.numa_nodes.iter().take(node).map(NumaNode::threads).sum::<u32>();
        first..first + self.numa_nodes.get(node).map_or(0, NumaNode::threads)
    }

    /// The NUMA node of a device: its own, or that of the nearest port above it that has one.
    pub fn node_of(&self, numa_node: Option<u16>, port: Option<u16>) -> Option<u16> {
        numa_node.or_else(|| self.path(port).find_map(|(_, port)| port.numa_node))
    }

    /// The port through which a device reaches others: the nearest one that is not a slot.
    pub fn switch_of(&self, port: Option<u16>) -> Option<u16> {
        self.path(port).find(|(_, port)| port.kind != PortKind::Slot).map(|(row, _)| row)
    }

    /// The narrowest part of a device's way to the root; `None` for devices without a port.
    pub fn pcie_mbps(&self, port: Option<u16>) -> Option<u32> {
        self.path(port).map(|(_, port)| port.bandwidth_mbps).min()
    }

    /// From a port up to its root. Ends at a parent that is not before its child.
    fn path(&self, port: Option<u16>) -> impl Iterator<Item = (u16, &PciePort)> {
        let mut next = port;
        std::iter::from_fn(move || {
            let row = next?;
            let port = self.pcie_ports.get(usize::from(row))?;
            next = port.parent.filter(|&parent| parent < row);
            Some((row, port))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_take_node_switch_and_bandwidth_from_the_ports_above_them() {
        let port = |kind, parent, numa_node, bandwidth_mbps| PciePort {
            kind,
            parent,
            numa_node,
            bandwidth_mbps,
        };
        let hardware = Hardware {
            pcie_ports: vec![
                port(PortKind::RootComplex, None, Some(1), 900),
                port(PortKind::Switch, Some(0), None, 400),
                port(PortKind::Slot, Some(1), None, 500),
            ],
            ..Hardware::default()
        };
        assert_eq!(hardware.node_of(None, Some(2)), Some(1));
        assert_eq!(hardware.node_of(Some(0), Some(2)), Some(0));
        assert_eq!(hardware.switch_of(Some(2)), Some(1));
        assert_eq!(hardware.switch_of(Some(0)), Some(0));
        assert_eq!(hardware.pcie_mbps(Some(2)), Some(400));
        assert_eq!(hardware.pcie_mbps(None), None);
        assert_eq!(hardware.node_of(None, Some(9)), None);
    }

    #[test]
    fn threads_are_counted_through_the_host() {
        let node = NumaNode { cores: 4, threads_per_core: 2, ..NumaNode::default() };
        let mixed = NumaNode { efficiency_cores: 3, ..node.clone() };
        let hardware = Hardware { numa_nodes: vec![mixed, node], ..Hardware::default() };
        assert_eq!(hardware.cpus_of(0), 0..11);
        assert_eq!(hardware.cpus_of(1), 11..19);
        assert!(hardware.cpus_of(2).is_empty());
    }

    #[test]
    fn huge_pages_are_part_of_a_nodes_memory() {
        let pages = |size_kib, count| HugePages { size_kib, count };
        let node = NumaNode {
            memory_mib: 1000,
            hugepages: vec![pages(2048, 100), pages(64, 1)],
            ..NumaNode::default()
        };
        assert_eq!(node.ordinary_mib(), 799);
        assert_eq!(pages(64, 17).mib(), 1);
    }
}
