//! What a VM asks of the inside of a host. The meaning of each field is in `ARCHITECTURE.md`,
//! "Inside a host".

use crate::{
    Architecture, CoreClass, DriverVersion, HugePages, MAX_CPU_FEATURES, MAX_FUNCTIONS, MAX_GPUS,
    MAX_NUMA_NODES, Name,
};
use serde::{Deserialize, Serialize};

/// GPU models of one request, of which any will do.
pub const MAX_GPU_MODELS: usize = 16;
/// Kinds of accelerators in one request.
pub const MAX_ACCELERATOR_KINDS: usize = 16;

/// A request for certain parts of a host. How much CPU and memory is the VM's demand.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Topology {
    pub cores: Cores,
    /// `None`: performance cores if they do, else efficiency cores; never both.
    pub core_class: Option<CoreClass>,
    pub numa: NumaPolicy,
    /// The part of the VM's memory that lies in huge pages.
    pub hugepages: Option<HugePages>,
    pub gpus: Option<GpuRequest>,
    pub nic: Option<NicRequest>,
    pub accelerators: Vec<AcceleratorRequest>,
    pub architecture: Option<Architecture>,
    /// All of them.
    pub cpu_features: Vec<Name>,
    /// Heat that the VM gives off at most.
    pub watts: u32,
}

/// Whether anybody else runs on the VM's cores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Cores {
    /// It floats on the threads of its nodes that nobody has for himself.
    #[default]
    Shared,
    /// One hardware thread for each 1000 millis of demand, rounded up, that no other VM runs on.
    Exclusive(Siblings),
}

/// What happens on the other threads of a VM's exclusive cores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Siblings {
    /// The VM has whole cores, with every thread of them.
    #[default]
    Own,
    /// The VM has one thread of each core; the others stay idle.
    Idle,
    /// They may belong to somebody else.
    Any,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum NumaPolicy {
    /// On one node if it fits, else on as few as will do.
    #[default]
    Preferred,
    /// Cores, memory and huge pages on one node.
    Single,
    /// On this many nodes; cores, memory and huge pages in equal parts, to the unit.
    Split(u8),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct GpuRequest {
    pub amount: GpuAmount,
    /// Any of these; empty means that every model will do.
    pub models: Vec<Name>,
    /// Of each GPU, of the share, or of each piece.
    pub min_memory_mib: u32,
    pub min_compute_capability_tenths: u16,
    pub min_driver: Option<DriverVersion>,
    pub max_driver: Option<DriverVersion>,
    /// On the narrowest part of the way to the root.
    pub min_pcie_mbps: u32,
    pub together: GpuGrouping,
    /// Every GPU on a NUMA node on which the VM has cores.
    pub near_cores: bool,
}

impl GpuRequest {
    /// This amount of whatever GPU there is.
    pub fn new(amount: GpuAmount) -> Self {
        Self {
            amount,
            models: Vec::new(),
            min_memory_mib: 0,
            min_compute_capability_tenths: 0,
            min_driver: None,
            max_driver: None,
            min_pcie_mbps: 0,
            together: GpuGrouping::Any,
            near_cores: false,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum GpuAmount {
    /// This many GPUs that nobody else uses.
    Whole(u16),
    /// Thousandths of one GPU.
    Milli(u16),
    /// This many pieces of a profile.
    Mig { profile: Name, count: u16 },
}

/// How near a VM's GPUs have to be to each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum GpuGrouping {
    #[default]
    Any,
    SameSwitch,
    NvlinkClique,
}

/// Functions of NICs, each for the VM alone.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct NicRequest {
    pub functions: u16,
    pub rdma: bool,
    pub near: Near,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct AcceleratorRequest {
    pub kind: Name,
    pub count: u16,
    pub near: Near,
}

/// Which NUMA nodes a device may be on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Near {
    #[default]
    Any,
    /// One on which the VM has cores.
    Cores,
    /// One on which the VM has a GPU.
    Gpus,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TopologyError {
    #[error("{field} is {value}; from {least} to {most} is allowed")]
    Range { field: &'static str, value: u64, least: u64, most: u64 },
    #[error("{field} has {count} entries, at most {limit} are allowed")]
    TooMany { field: &'static str, count: usize, limit: usize },
    #[error("accelerators lists {0} twice; write one entry with the sum")]
    KindTwice(Name),
    #[error("{field} asks to be near GPUs, but the VM asks for none")]
    NearNothing { field: &'static str },
    #[error("min_driver {min} is above max_driver {max}")]
    DriverRange { min: DriverVersion, max: DriverVersion },
}

impl Topology {
    /// Whether the request can be meant.
    pub fn check(&self) -> Result<(), TopologyError> {
        if let NumaPolicy::Split(ways) = self.numa {
            within("numa.split", u64::from(ways), 2, MAX_NUMA_NODES as u64)?;
        }
        if let Some(pages) = self.hugepages {
            within("hugepages.size_kib", u64::from(pages.size_kib), 4, 1 << 30)?;
            within("hugepages.count", u64::from(pages.count), 1, 1 << 30)?;
        }
        if let Some(gpus) = &self.gpus {
            gpus.check()?;
        }
        let near_nothing = |near| near == Near::Gpus && self.gpus.is_none();
        if let Some(nic) = &self.nic {
            within("nic.functions", u64::from(nic.functions), 1, u64::from(MAX_FUNCTIONS))?;
            if near_nothing(nic.near) {
                return Err(TopologyError::NearNothing { field: "nic.near" });
            }
        }
        at_most("accelerators", self.accelerators.len(), MAX_ACCELERATOR_KINDS)?;
        for (row, device) in self.accelerators.iter().enumerate() {
            within("accelerators.count", u64::from(device.count), 1, u64::from(u16::MAX))?;
            if self.accelerators[..row].iter().any(|other| other.kind == device.kind) {
                return Err(TopologyError::KindTwice(device.kind.clone()));
            }
            if near_nothing(device.near) {
                return Err(TopologyError::NearNothing { field: "accelerators.near" });
            }
        }
        at_most("cpu_features", self.cpu_features.len(), MAX_CPU_FEATURES)
    }
}

impl GpuRequest {
    fn check(&self) -> Result<(), TopologyError> {
        match &self.amount {
            GpuAmount::Whole(count) => {
                within("gpus.count", u64::from(*count), 1, MAX_GPUS as u64)?;
            }
            GpuAmount::Milli(milli) => within("gpus.milli", u64::from(*milli), 1, 1000)?,
            GpuAmount::Mig { count, .. } => {
                within("gpus.mig.count", u64::from(*count), 1, MAX_GPUS as u64)?;
            }
        }
        at_most("gpus.models", self.models.len(), MAX_GPU_MODELS)?;
        match (self.min_driver, self.max_driver) {
            (Some(min), Some(max)) if min > max => Err(TopologyError::DriverRange { min, max }),
            _ => Ok(()),
        }
    }
}

fn within(field: &'static str, value: u64, least: u64, most: u64) -> Result<(), TopologyError> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    Err(TopologyError::Range { field, value, least, most })
}

fn at_most(field: &'static str, count: usize, limit: usize) -> Result<(), TopologyError> {
    if count > limit {
        return Err(TopologyError::TooMany { field, count, limit });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(request: Topology, expect: &str) {
        assert_eq!(request.check().unwrap_err().to_string(), expect);
    }

    #[test]
    fn refuses_what_cannot_be_meant_and_says_what_can() {
        let name = |text| Name::new(text).unwrap();
        assert_eq!(Topology::default().check(), Ok(()));
        check(
            Topology { numa: NumaPolicy::Split(1), ..Topology::default() },
            "numa.split is 1; from 2 to 16 is allowed",
        );
        check(
            Topology { gpus: Some(GpuRequest::new(GpuAmount::Milli(1001))), ..Topology::default() },
            "gpus.milli is 1001; from 1 to 1000 is allowed",
        );
        check(
            Topology {
                nic: Some(NicRequest { functions: 1, rdma: true, near: Near::Gpus }),
                ..Topology::default()
            },
            "nic.near asks to be near GPUs, but the VM asks for none",
        );
        let fpga = AcceleratorRequest { kind: name("fpga"), count: 1, near: Near::Any };
        check(
            Topology { accelerators: vec![fpga.clone(), fpga], ..Topology::default() },
            "accelerators lists fpga twice; write one entry with the sum",
        );
        let version = |major| Some(DriverVersion { major, minor: 1, patch: 0 });
        let mut gpus = GpuRequest::new(GpuAmount::Whole(1));
        (gpus.min_driver, gpus.max_driver) = (version(550), version(535));
        check(
            Topology { gpus: Some(gpus), ..Topology::default() },
            "min_driver 550.1.0 is above max_driver 535.1.0",
        );
    }
}
