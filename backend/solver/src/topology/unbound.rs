//! Why a VM cannot be bound on a host: what is missing, where, and how much of it.

use cluster::{Architecture, CoreClass, DriverVersion, Name, Siblings};
use std::fmt;

/// The first thing that is missing. `asked` and `most` are in the unit of what is missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unbound {
    pub missing: Missing,
    pub scope: Scope,
    pub asked: u64,
    /// The most that can be had there.
    pub most: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Missing {
    Architecture(Architecture),
    CpuFeature(Name),
    Watts,
    ExclusiveCores(CoreClass, Siblings),
    SharedCpuMillis(CoreClass),
    MemoryMib,
    HugePages {
        size_kib: u32,
    },
    GpuModel(Vec<Name>),
    GpuMemoryMib,
    /// Times ten.
    ComputeCapability,
    Driver {
        min: Option<DriverVersion>,
        max: Option<DriverVersion>,
    },
    PcieMbps,
    MigProfile(Name),
    Gpus,
    GpuMilli,
    MigPieces(Name),
    NicFunctions {
        rdma: bool,
    },
    Accelerators(Name),
    /// Each part is there, but not where the others are.
    Alignment,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    Host,
    OneNode,
    EachOf(u8),
    OneSwitch,
    OneClique,
    NearCores,
    NearGpus,
}

impl Unbound {
    /// How much more would have to be there.
    pub fn deficit(&self) -> u64 {
        self.asked.saturating_sub(self.most)
    }
}

impl fmt::Display for Unbound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { missing, scope, asked, most } = self;
        match missing {
            Missing::Architecture(Architecture::X86_64) => {
                return f.write_str("not an x86_64 host");
            }
            Missing::Architecture(Architecture::Aarch64) => {
                return f.write_str("not an aarch64 host");
            }
            Missing::CpuFeature(name) => return write!(f, "the CPU lacks {name}"),
            Missing::GpuModel(models) => {
                f.write_str("no GPU is of model ")?;
                for (row, model) in models.iter().enumerate() {
                    write!(f, "{}{model}", if row == 0 { "" } else { " or " })?;
                }
                return Ok(());
            }
            Missing::Driver { min, max } => {
                f.write_str("no GPU has a driver")?;
                if let Some(min) = min {
                    write!(f, " from {min}")?;
                }
                return max.map_or(Ok(()), |max| write!(f, " up to {max}"));
            }
            Missing::MigProfile(name) => return write!(f, "no GPU can be cut into {name}"),
            Missing::Alignment => {
                return write!(f, "everything is there, but not together{scope}");
            }
            _ => {}
        }
        write!(f, "{asked} {missing}{scope}; at most {most} can be had")
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Missing::Watts => f.write_str("watts of heat"),
            Missing::ExclusiveCores(class, siblings) => {
                let class = match class {
                    CoreClass::Performance => "",
                    CoreClass::Efficiency => "efficiency ",
                };
                let kind = match siblings {
                    Siblings::Own => "threads of whole cores",
                    Siblings::Idle => "cores with idle siblings",
                    Siblings::Any => "threads",
                };
                write!(f, "exclusive {class}{kind}")
            }
            Missing::SharedCpuMillis(CoreClass::Performance) => f.write_str("millis of shared CPU"),
            Missing::SharedCpuMillis(CoreClass::Efficiency) => {
                f.write_str("millis of shared efficiency cores")
            }
            Missing::MemoryMib => f.write_str("MiB of memory"),
            Missing::HugePages { size_kib } => write!(f, "huge pages of {size_kib} KiB"),
            Missing::GpuMemoryMib => f.write_str("MiB of memory in a GPU"),
            Missing::ComputeCapability => f.write_str("tenths of compute capability"),
            Missing::PcieMbps => f.write_str("Mbit/s to a GPU"),
            Missing::Gpus => f.write_str("whole GPUs"),
            Missing::GpuMilli => f.write_str("thousandths of a GPU"),
            Missing::MigPieces(name) => write!(f, "pieces of {name}"),
            Missing::NicFunctions { rdma: true } => f.write_str("RDMA functions"),
            Missing::NicFunctions { rdma: false } => f.write_str("NIC functions"),
            Missing::Accelerators(name) => write!(f, "of {name}"),
            Missing::Architecture(_)
            | Missing::CpuFeature(_)
            | Missing::GpuModel(_)
            | Missing::Driver { .. }
            | Missing::MigProfile(_)
            | Missing::Alignment => Ok(()),
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scope::Host => Ok(()),
            Scope::OneNode => f.write_str(" on one NUMA node"),
            Scope::EachOf(ways) => write!(f, " on each of {ways} NUMA nodes"),
            Scope::OneSwitch => f.write_str(" behind one PCIe switch"),
            Scope::OneClique => f.write_str(" in one NVLink clique"),
            Scope::NearCores => f.write_str(" on the NUMA nodes of the VM's cores"),
            Scope::NearGpus => f.write_str(" on the NUMA nodes of the VM's GPUs"),
        }
    }
}
