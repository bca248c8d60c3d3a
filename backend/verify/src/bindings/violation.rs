//! What can be wrong with bindings, with the facts that show it.

use cluster::{Name, VmKey};
use serde::Serialize;
use std::fmt;

/// What a check of bindings found; empty means accepted.
pub type BindingViolations = Vec<BindingViolation>;

/// One part that a VM should not have, or should have and does not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BindingViolation {
    pub vm: VmKey,
    #[serde(flatten)]
    pub kind: BindingViolationKind,
}

/// What is wrong. The first block is about one VM alone, the second about VMs beside each other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum BindingViolationKind {
    /// A list is not ascending, or names something twice.
    Disorder {
        list: &'static str,
    },
    /// The host has no such part.
    Unknown {
        list: &'static str,
        row: u16,
    },
    Architecture,
    CpuFeature {
        feature: Name,
    },
    WrongWatts {
        asked: u32,
        bound: u32,
    },
    /// A thread of another class, or a class that was not asked for.
    CoreClass {
        cpu: Option<u16>,
    },
    /// Exclusive threads for a VM that shares.
    NotShared,
    /// Shared CPU for a VM with exclusive cores.
    NotExclusive,
    /// The other threads of a core are not what was asked for.
    Siblings {
        core: u32,
    },
    ThreadCount {
        node: u16,
        due: u64,
        threads: u64,
    },
    /// In vCPUs for exclusive cores, else in millis.
    CpuSum {
        asked: u64,
        bound: u64,
    },
    MemorySum {
        asked: u64,
        bound: u64,
    },
    PageSize {
        asked: u32,
        bound: u32,
    },
    PageSum {
        asked: u64,
        bound: u64,
    },
    NotSingle {
        nodes: usize,
    },
    SplitWays {
        asked: u8,
        nodes: usize,
    },
    SplitUneven {
        part: &'static str,
        least: u32,
        most: u32,
    },
    GpuCount {
        asked: u32,
        bound: u32,
    },
    /// Whole instead of shared, another share, or a piece of another profile.
    GpuShare {
        gpu: u16,
    },
    IllegalPiece {
        gpu: u16,
        start: u8,
    },
    GpuModel {
        gpu: u16,
        model: Name,
    },
    GpuMemory {
        gpu: u16,
        asked: u64,
        has: u64,
    },
    ComputeCapability {
        gpu: u16,
        asked: u16,
        has: u16,
    },
    Driver {
        gpu: u16,
    },
    PcieBandwidth {
        gpu: u16,
        asked: u32,
        has: u32,
    },
    NotOneSwitch,
    NotOneClique,
    GpuNotNear {
        gpu: u16,
    },
    FunctionCount {
        asked: u32,
        bound: u32,
    },
    NotRdma {
        nic: u16,
    },
    NicNotNear {
        nic: u16,
    },
    AcceleratorCount {
        of: Name,
        asked: u64,
        bound: u64,
    },
    AcceleratorNotNear {
        row: u16,
    },

    ThreadTwice {
        cpu: u16,
        with: VmKey,
    },
    /// A thread that has to stay idle for one of them.
    SiblingTaken {
        cpu: u16,
        with: VmKey,
    },
    SharedCpuOver {
        node: u16,
        used: u64,
        has: u64,
    },
    MemoryOver {
        node: u16,
        used: u64,
        has: u64,
    },
    HugePagesOver {
        node: u16,
        size_kib: u32,
        used: u64,
        has: u64,
    },
    GpuOver {
        gpu: u16,
        milli: u32,
    },
    WholeGpuShared {
        gpu: u16,
    },
    GpuCutAndShared {
        gpu: u16,
    },
    PiecesOverlap {
        gpu: u16,
        start: u8,
    },
    FunctionTwice {
        nic: u16,
        function: u16,
        with: VmKey,
    },
    AcceleratorsOver {
        row: u16,
        used: u64,
        has: u64,
    },
    WattsOver {
        used: u64,
        has: u64,
    },
}

impl fmt::Display for BindingViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "vm {}: {}", self.vm, self.kind)
    }
}

impl fmt::Display for BindingViolationKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use BindingViolationKind as Kind;
        match self {
            Kind::Disorder { list } => write!(f, "{list} is not in ascending order"),
            Kind::Unknown { list, row } => write!(f, "{list}: the host has no {row}"),
            Kind::Architecture => f.write_str("the host has another architecture"),
            Kind::CpuFeature { feature } => write!(f, "the CPU lacks {feature}"),
            Kind::WrongWatts { asked, bound } => write!(f, "{bound} watts bound, {asked} asked"),
            Kind::CoreClass { cpu: Some(cpu) } => {
                write!(f, "thread {cpu} is of another core class")
            }
            Kind::CoreClass { cpu: None } => f.write_str("another core class was asked for"),
            Kind::NotShared => f.write_str("has exclusive threads but asked for shared cores"),
            Kind::NotExclusive => f.write_str("has shared CPU but asked for exclusive cores"),
            Kind::Siblings { core } => {
                write!(f, "the threads of core {core} break the rule on siblings")
            }
            Kind::ThreadCount { node, due, threads } => {
                write!(f, "{threads} threads on NUMA node {node}, {due} are due")
            }
            Kind::CpuSum { asked, bound } => write!(f, "{bound} of CPU bound, {asked} asked"),
            Kind::MemorySum { asked, bound } => {
                write!(f, "{bound} MiB of memory bound, {asked} asked")
            }
            Kind::PageSize { asked, bound } => {
                write!(f, "huge pages of {bound} KiB bound, of {asked} KiB asked")
            }
            Kind::PageSum { asked, bound } => write!(f, "{bound} huge pages bound, {asked} asked"),
            Kind::NotSingle { nodes } => write!(f, "on {nodes} NUMA nodes instead of one"),
            Kind::SplitWays { asked, nodes } => {
                write!(f, "on {nodes} NUMA nodes, {asked} with cores on each were asked")
            }
            Kind::SplitUneven { part, least, most } => {
                write!(f, "{part} is split unevenly: {least} on one NUMA node, {most} on another")
            }
            Kind::GpuCount { asked, bound } => write!(f, "{bound} GPUs bound, {asked} asked"),
            Kind::GpuShare { gpu } => write!(f, "has another share of GPU {gpu} than was asked"),
            Kind::IllegalPiece { gpu, start } => {
                write!(f, "a piece of GPU {gpu} cannot begin at slice {start}")
            }
            Kind::GpuModel { gpu, model } => {
                write!(f, "GPU {gpu} is of model {model}, which was not asked for")
            }
            Kind::GpuMemory { gpu, asked, has } => {
                write!(f, "GPU {gpu} gives {has} MiB of memory, {asked} asked")
            }
            Kind::ComputeCapability { gpu, asked, has } => {
                write!(f, "GPU {gpu} has compute capability {has}, {asked} asked (tenths)")
            }
            Kind::Driver { gpu } => write!(f, "the driver of GPU {gpu} is out of range"),
            Kind::PcieBandwidth { gpu, asked, has } => {
                write!(f, "GPU {gpu} is reached with {has} Mbit/s, {asked} asked")
            }
            Kind::NotOneSwitch => f.write_str("the GPUs are not behind one switch"),
            Kind::NotOneClique => f.write_str("the GPUs are not in one NVLink clique"),
            Kind::GpuNotNear { gpu } => write!(f, "GPU {gpu} is not near the VM's cores"),
            Kind::FunctionCount { asked, bound } => {
                write!(f, "{bound} NIC functions bound, {asked} asked")
            }
            Kind::NotRdma { nic } => write!(f, "NIC {nic} has no RDMA"),
            Kind::NicNotNear { nic } => write!(f, "NIC {nic} is not near what it has to be near"),
            Kind::AcceleratorCount { of, asked, bound } => {
                write!(f, "{bound} of {of} bound, {asked} asked")
            }
            Kind::AcceleratorNotNear { row } => {
                write!(f, "accelerator {row} is not near what it has to be near")
            }
            Kind::ThreadTwice { cpu, with } => write!(f, "thread {cpu} belongs to vm {with} too"),
            Kind::SiblingTaken { cpu, with } => {
                write!(f, "thread {cpu} has to stay idle, for this or for vm {with}")
            }
            Kind::SharedCpuOver { node, used, has } => {
                write!(f, "{used} millis of shared CPU on NUMA node {node}, which has {has}")
            }
            Kind::MemoryOver { node, used, has } => {
                write!(f, "{used} MiB of memory used on NUMA node {node}, which has {has}")
            }
            Kind::HugePagesOver { node, size_kib, used, has } => write!(
                f,
                "{used} huge pages of {size_kib} KiB used on NUMA node {node}, which has {has}"
            ),
            Kind::GpuOver { gpu, milli } => {
                write!(f, "{milli} thousandths of GPU {gpu} are given away")
            }
            Kind::WholeGpuShared { gpu } => write!(f, "GPU {gpu} is somebody's alone and shared"),
            Kind::GpuCutAndShared { gpu } => write!(f, "GPU {gpu} is cut into pieces and shared"),
            Kind::PiecesOverlap { gpu, start } => {
                write!(f, "the piece of GPU {gpu} from slice {start} overlaps another")
            }
            Kind::FunctionTwice { nic, function, with } => {
                write!(f, "function {function} of NIC {nic} belongs to vm {with} too")
            }
            Kind::AcceleratorsOver { row, used, has } => {
                write!(f, "{used} of accelerator {row} are given away, there are {has}")
            }
            Kind::WattsOver { used, has } => {
                write!(f, "{used} watts of heat, {has} can be carried away")
            }
        }
    }
}
