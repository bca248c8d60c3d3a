//! The nouns of the product: what a host is, what a VM asks for, what a decision says.
//!
//! Plain data with checked constructors. No I/O, no clock, no randomness, and no opinion
//! about where anything should go: that is `solver`'s, and whether it may is `verify`'s too.
//! Everything that is compared is an integer with its unit in its name.

mod amounts;
pub mod assignment;
mod constraint;
mod decision;
mod goal_kind;
mod goal_setting;
mod hardware;
mod hardware_check;
mod host;
mod index;
mod labels;
mod name;
mod plan;
mod rules;
mod shards;
mod snapshot;
mod topology;
mod topology_bindings;
mod topology_request;
mod vm;

pub use amounts::{Amounts, Dim, DimensionError, Dimensions, MAX_AMOUNT, MAX_DIMENSIONS};
pub use constraint::{
    Constraint, ConstraintRule, Dependency, Exclusive, Fence, HostSet, Keep, Limit, Link, Links,
    MAX_CONSTRAINTS, MAX_LINKED_DOMAINS, MAX_LINKS, MinDomains, Network, Sharing, Spare, VmSet,
    Within,
};
pub use decision::{
    Alternative, Breakdown, Decision, INSIDE_REASONS, PolicyRejection, REASON_ORDER, Reason,
    Rejections, Strategy, Term, Verdict,
};
pub use goal_kind::GoalKind;
pub use goal_setting::{Setting as GoalSetting, SettingError as GoalSettingError};
pub use hardware::{
    Accelerator, Architecture, CoreClass, DriverVersion, Gpu, Hardware, HugePages, MigProfile, Nic,
    NumaNode, PciePort, PortKind,
};
pub use hardware_check::{
    HardwareError, MAX_ACCELERATORS, MAX_CPU_FEATURES, MAX_FUNCTIONS, MAX_GPUS, MAX_MIG_PROFILES,
    MAX_MIG_SLICES, MAX_NICS, MAX_NUMA_NODES, MAX_PAGE_SIZES, MAX_PCIE_PORTS, MAX_THREADS,
};
pub use host::{Foreign, Host, HostState, Power, Price, PriceKind, RegionLatency};
pub use index::{Column, Generation, HostIx, Index, Revision, VmIx};
pub use labels::Labels;
pub use name::{MAX_NAME_BYTES, Name, NameError};
pub use plan::{Claim, Plan, Step, Wave};
pub use rules::{
    Affinity, AffinityKind, Selector, SelectorOp, Spread, Strength, Subject, Taint, TaintEffect,
    Toleration, TolerationOp,
};
pub use shards::Shards;
pub use snapshot::{Placed, Snapshot};
pub use topology::{Level, Location};
pub use topology_bindings::{
    AcceleratorBinding, Bindings, GpuBinding, GpuShare, NodeBinding, PciFunction,
};
pub use topology_request::{
    AcceleratorRequest, Cores, GpuAmount, GpuGrouping, GpuRequest, MAX_ACCELERATOR_KINDS,
    MAX_GPU_MODELS, Near, NicRequest, NumaPolicy, Siblings, Topology, TopologyError,
};
pub use vm::{
    CpuUnit, DataRef, DataSite, Hints, Migratability, PriorityClass, Qos, RestartPolicy, Vm, VmKey,
};
