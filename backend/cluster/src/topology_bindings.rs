//! The parts of a host that one VM has: what `bind` chose and what its release gives back.

use crate::{CoreClass, GpuAmount, Hardware};
use serde::{Deserialize, Serialize};

/// What a VM has of its host. Every list is in ascending order and names nothing twice, so that
/// equal bindings compare equal.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Bindings {
    /// Of the cores, exclusive or shared.
    pub core_class: CoreClass,
    /// Hardware threads that are the VM's alone, as `Hardware::cpus_of` counts them. Empty for
    /// shared cores.
    pub cpus: Vec<u16>,
    /// Threads that nobody may run on, because the VM wants its siblings idle.
    pub idle_cpus: Vec<u16>,
    pub nodes: Vec<NodeBinding>,
    /// 0 without huge pages.
    pub hugepage_kib: u32,
    pub gpus: Vec<GpuBinding>,
    pub functions: Vec<PciFunction>,
    pub accelerators: Vec<AcceleratorBinding>,
    pub watts: u32,
}

/// What lies on one NUMA node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct NodeBinding {
    pub node: u16,
    /// Of exclusive cores.
    pub vcpus: u16,
    /// Of shared cores.
    pub shared_millis: u32,
    /// Beside the huge pages.
    pub memory_mib: u32,
    pub hugepages: u32,
}

impl NodeBinding {
    /// Whether the VM has cores here, so that devices of this node are near to it.
    pub fn has_cores(&self) -> bool {
        self.vcpus > 0 || self.shared_millis > 0
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct GpuBinding {
    pub gpu: u16,
    pub share: GpuShare,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum GpuShare {
    Whole,
    Milli(u16),
    /// The piece from this slice on; the profile is a position in the GPU's own list.
    Mig {
        profile: u8,
        start: u8,
    },
}

/// A virtual function of a NIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PciFunction {
    pub nic: u16,
    pub function: u16,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct AcceleratorBinding {
    /// Position in the host's list of accelerators.
    pub row: u16,
    pub count: u16,
}

impl Bindings {
    /// The exclusive threads in the list format of Linux: `0-3,8`. The numbers are those of
    /// `Hardware::cpus_of`; an agent whose system counts siblings otherwise translates them.
    pub fn cpuset(&self) -> String {
        ranges(&self.cpus)
    }

    /// The threads that stay idle, in the same format.
    pub fn idle_cpuset(&self) -> String {
        ranges(&self.idle_cpus)
    }

    /// How close the VM's GPUs are: 3 one NVLink clique, 2 one switch, 1 one NUMA node, 0 apart.
    /// `None` for fewer than two GPUs.
    pub fn gpu_link(&self, hardware: &Hardware) -> Option<u8> {
        let mut rows: Vec<u16> = self.gpus.iter().map(|gpu| gpu.gpu).collect();
        rows.dedup();
        let gpus: Vec<_> = rows.iter().map(|&row| hardware.gpus.get(usize::from(row))).collect();
        let gpus: Vec<_> = gpus.into_iter().flatten().collect();
        let (first, others) = gpus.split_first().filter(|(_, others)| !others.is_empty())?;
        let same = |key: &dyn Fn(&crate::Gpu) -> Option<u16>| {
            key(first).is_some() && others.iter().all(|gpu| key(gpu) == key(first))
        };
        Some(if same(&|gpu| gpu.nvlink_group) {
            3
        } else if same(&|gpu| hardware.switch_of(gpu.pcie_port)) {
            2
        } else if same(&|gpu| hardware.node_of(gpu.numa_node, gpu.pcie_port)) {
            1
        } else {
            0
        })
    }
}

/// Runs of ascending numbers: `0-3,8`.
fn ranges(cpus: &[u16]) -> String {
    let mut text = String::new();
    let mut rest = cpus;
    while let Some(&first) = rest.first() {
        let run = rest.iter().zip(first..).take_while(|(cpu, next)| *cpu == next).count();
        let separator = if text.is_empty() { "" } else { "," };
        match run {
            1 => text.push_str(&format!("{separator}{first}")),
            _ => text.push_str(&format!("{separator}{first}-{}", rest[run - 1])),
        }
        rest = &rest[run..];
    }
    text
}

impl GpuAmount {
    /// GPUs, or pieces of them.
    pub fn count(&self) -> u16 {
        match self {
            GpuAmount::Whole(count) | GpuAmount::Mig { count, .. } => *count,
            GpuAmount::Milli(_) => 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Gpu, Name};

    #[test]
    fn a_cpuset_is_written_in_runs() {
        let check = |cpus: &[u16], expect: &str| {
            let bindings = Bindings { cpus: cpus.to_vec(), ..Bindings::default() };
            assert_eq!(bindings.cpuset(), expect);
        };
        check(&[], "");
        check(&[3], "3");
        check(&[0, 1, 2, 3, 8], "0-3,8");
        check(&[1, 4, 5], "1,4-5");
    }

    #[test]
    fn links_between_gpus_are_ranked() {
        let gpu = |node, group| {
            let mut gpu = Gpu::new(Name::new("H100").unwrap(), 81_920);
            (gpu.numa_node, gpu.nvlink_group) = (Some(node), group);
            gpu
        };
        let gpus = vec![gpu(0, Some(1)), gpu(1, Some(1)), gpu(0, None)];
        let hardware = Hardware { gpus, ..Hardware::default() };
        let check = |rows: &[u16], expect| {
            let gpus = rows.iter().map(|&gpu| GpuBinding { gpu, share: GpuShare::Whole });
            let bindings = Bindings { gpus: gpus.collect(), ..Bindings::default() };
            assert_eq!(bindings.gpu_link(&hardware), expect);
        };
        check(&[0], None);
        check(&[0, 1], Some(3));
        check(&[0, 2], Some(1));
        check(&[0, 1, 2], Some(0));
    }
}
