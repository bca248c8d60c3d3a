//! What a description of hardware may hold. Whoever keeps a host asks this first, so that
//! everything behind it can rely on positions and sums.

use crate::{Hardware, MigProfile, Name};

/// Every set of NUMA nodes can be tried: 2^16 of them.
pub const MAX_NUMA_NODES: usize = 16;
/// Hardware threads of one host.
pub const MAX_THREADS: u32 = 4096;
pub const MAX_PAGE_SIZES: usize = 4;
pub const MAX_PCIE_PORTS: usize = 256;
/// A set of GPUs is one machine word.
pub const MAX_GPUS: usize = 64;
pub const MAX_MIG_PROFILES: usize = 32;
/// Slices that a GPU can be cut into.
pub const MAX_MIG_SLICES: u8 = 16;
pub const MAX_NICS: usize = 64;
/// Virtual functions of one NIC.
pub const MAX_FUNCTIONS: u16 = 256;
/// Rows of the list of accelerators.
pub const MAX_ACCELERATORS: usize = 64;
pub const MAX_CPU_FEATURES: usize = 256;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HardwareError {
    #[error("{list} has {count} entries, at most {limit} are allowed")]
    TooMany { list: &'static str, count: u64, limit: u64 },
    #[error("{list}[{row}].{field} is {position}, which points at nothing")]
    Dangling { list: &'static str, row: usize, field: &'static str, position: u16 },
    #[error("numa_nodes[{row}] has cores without threads; threads_per_core must be at least 1")]
    NoThreads { row: usize },
    #[error("numa_nodes[{row}].hugepages lists pages of {size_kib} KiB twice, or of no size")]
    PageSize { row: usize, size_kib: u32 },
    #[error("numa_nodes[{row}] has more huge pages than its {memory_mib} MiB of memory")]
    PagesOverMemory { row: usize, memory_mib: u32 },
    #[error("gpus[{row}].mig_profiles: {name} is listed twice, has no slices or no place to begin")]
    MigProfile { row: usize, name: Name },
}

impl Hardware {
    /// Whether every list is within its limit and every position points at something.
    pub fn check(&self) -> Result<(), HardwareError> {
        at_most("numa_nodes", self.numa_nodes.len(), MAX_NUMA_NODES)?;
        at_most("pcie_ports", self.pcie_ports.len(), MAX_PCIE_PORTS)?;
        at_most("gpus", self.gpus.len(), MAX_GPUS)?;
        at_most("nics", self.nics.len(), MAX_NICS)?;
        at_most("accelerators", self.accelerators.len(), MAX_ACCELERATORS)?;
        at_most("cpu_features", self.cpu_features.len(), MAX_CPU_FEATURES)?;
        self.check_nodes()?;
        self.check_positions()?;
        for (row, gpu) in self.gpus.iter().enumerate() {
            at_most("mig_profiles", gpu.mig_profiles.len(), MAX_MIG_PROFILES)?;
            check_profiles(row, &gpu.mig_profiles)?;
        }
        for nic in &self.nics {
            at_most("functions", usize::from(nic.functions), usize::from(MAX_FUNCTIONS))?;
        }
        Ok(())
    }

    fn check_nodes(&self) -> Result<(), HardwareError> {
        let mut threads = 0;
        for (row, node) in self.numa_nodes.iter().enumerate() {
            threads += u64::from(node.threads());
            if node.cores > 0 && node.threads_per_core == 0 {
                return Err(HardwareError::NoThreads { row });
            }
            at_most("hugepages", node.hugepages.len(), MAX_PAGE_SIZES)?;
            let mut kib = 0_u64;
            for (at, pages) in node.hugepages.iter().enumerate() {
                let before = &node.hugepages[..at];
                let twice = before.iter().any(|other| other.size_kib == pages.size_kib);
                if twice || pages.size_kib == 0 {
                    return Err(HardwareError::PageSize { row, size_kib: pages.size_kib });
                }
                let more = u64::from(pages.size_kib) * u64::from(pages.count);
                kib = kib.saturating_add(more);
            }
            if kib > u64::from(node.memory_mib) * 1024 {
                let memory_mib = node.memory_mib;
                return Err(HardwareError::PagesOverMemory { row, memory_mib });
            }
        }
        if threads > u64::from(MAX_THREADS) {
            let limit = u64::from(MAX_THREADS);
            return Err(HardwareError::TooMany { list: "threads", count: threads, limit });
        }
        Ok(())
    }

    fn check_positions(&self) -> Result<(), HardwareError> {
        let (nodes, ports) = (self.numa_nodes.len(), self.pcie_ports.len());
        let check = |list, row, field, position: Option<u16>, end: usize| match position {
            Some(position) if usize::from(position) >= end => {
                Err(HardwareError::Dangling { list, row, field, position })
            }
            _ => Ok(()),
        };
        for (row, port) in self.pcie_ports.iter().enumerate() {
            check("pcie_ports", row, "parent", port.parent, row)?;
            check("pcie_ports", row, "numa_node", port.numa_node, nodes)?;
        }
        let gpus = self.gpus.iter().map(|gpu| (gpu.pcie_port, gpu.numa_node));
        let nics = self.nics.iter().map(|nic| (nic.pcie_port, nic.numa_node));
        let others = self.accelerators.iter().map(|device| (device.pcie_port, device.numa_node));
        let devices = gpus.enumerate().map(|device| ("gpus", device));
        let devices = devices.chain(nics.enumerate().map(|device| ("nics", device)));
        let devices = devices.chain(others.enumerate().map(|device| ("accelerators", device)));
        for (list, (row, (port, node))) in devices {
            check(list, row, "pcie_port", port, ports)?;
            check(list, row, "numa_node", node, nodes)?;
        }
        Ok(())
    }
}

fn check_profiles(row: usize, profiles: &[MigProfile]) -> Result<(), HardwareError> {
    for (at, profile) in profiles.iter().enumerate() {
        let fits = |&start: &u8| u16::from(start) + u16::from(profile.slices) <= 16;
        let placed = !profile.starts.is_empty() && profile.starts.iter().all(fits);
        let ascending = profile.starts.is_sorted_by(|a, b| a < b);
        let twice = profiles[..at].iter().any(|other| other.name == profile.name);
        if !placed || !ascending || twice || profile.slices == 0 {
            return Err(HardwareError::MigProfile { row, name: profile.name.clone() });
        }
    }
    Ok(())
}

fn at_most(list: &'static str, count: usize, limit: usize) -> Result<(), HardwareError> {
    if count > limit {
        return Err(HardwareError::TooMany { list, count: count as u64, limit: limit as u64 });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Gpu, HugePages, Nic, NumaNode, PciePort};

    fn check(change: impl FnOnce(&mut Hardware), expect: &str) {
        let node = NumaNode {
            cores: 4,
            threads_per_core: 2,
            memory_mib: 1024,
            hugepages: vec![HugePages { size_kib: 2048, count: 8 }],
            ..NumaNode::default()
        };
        let mut gpu = Gpu::new(Name::new("A100").unwrap(), 40_960);
        gpu.mig_profiles.push(MigProfile {
            name: Name::new("3g.20gb").unwrap(),
            slices: 4,
            starts: vec![0, 4],
            memory_mib: 20_480,
        });
        let mut hardware = Hardware {
            numa_nodes: vec![node.clone(), node],
            pcie_ports: vec![PciePort::default(); 2],
            gpus: vec![gpu],
            nics: vec![Nic { functions: 8, ..Nic::default() }],
            ..Hardware::default()
        };
        hardware.check().expect("valid before it is changed");
        change(&mut hardware);
        assert_eq!(hardware.check().unwrap_err().to_string(), expect);
    }

    #[test]
    fn names_what_is_over_its_limit() {
        check(
            |hardware| hardware.numa_nodes = vec![NumaNode::default(); 17],
            "numa_nodes has 17 entries, at most 16 are allowed",
        );
        check(
            |hardware| hardware.numa_nodes[0].cores = 3000,
            "threads has 6008 entries, at most 4096 are allowed",
        );
        check(
            |hardware| hardware.nics[0].functions = 257,
            "functions has 257 entries, at most 256 are allowed",
        );
    }

    #[test]
    fn names_what_hangs_in_the_air() {
        check(
            |hardware| hardware.pcie_ports[1].parent = Some(1),
            "pcie_ports[1].parent is 1, which points at nothing",
        );
        check(
            |hardware| hardware.gpus[0].pcie_port = Some(2),
            "gpus[0].pcie_port is 2, which points at nothing",
        );
        check(
            |hardware| hardware.nics[0].numa_node = Some(2),
            "nics[0].numa_node is 2, which points at nothing",
        );
    }

    #[test]
    fn refuses_nodes_and_profiles_that_cannot_be() {
        check(
            |hardware| hardware.numa_nodes[1].threads_per_core = 0,
            "numa_nodes[1] has cores without threads; threads_per_core must be at least 1",
        );
        check(
            |hardware| hardware.numa_nodes[0].hugepages[0].count = 513,
            "numa_nodes[0] has more huge pages than its 1024 MiB of memory",
        );
        check(
            |hardware| hardware.gpus[0].mig_profiles[0].starts = vec![0, 13],
            "gpus[0].mig_profiles: 3g.20gb is listed twice, has no slices or no place to begin",
        );
    }
}
