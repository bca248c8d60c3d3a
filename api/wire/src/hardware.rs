//! What is inside a host, in JSON. Positions in lists are checked, so that nothing hangs in the air.

use crate::fault::code;
use crate::host::is_default;
use crate::json::{Value, shorten};
use crate::read::{At, Read, Step};
use crate::schema::NameSchema;
use crate::words::{ArchitectureWord, PortKindWord, Word};
use cluster::{
    Accelerator, DriverVersion, Gpu, Hardware, HugePages, MAX_ACCELERATORS, MAX_CPU_FEATURES,
    MAX_FUNCTIONS, MAX_GPUS, MAX_MIG_PROFILES, MAX_MIG_SLICES, MAX_NICS, MAX_NUMA_NODES,
    MAX_PAGE_SIZES, MAX_PCIE_PORTS, MigProfile, Name, Nic, NumaNode, PciePort,
};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use utoipa::ToSchema;

/// The devices of a host and how they hang together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HardwareSpec {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(max_items = 16)]
    pub numa_nodes: Vec<NumaNodeSpec>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(max_items = 256)]
    pub pcie_ports: Vec<PciePortSpec>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(max_items = 64)]
    pub gpus: Vec<GpuSpec>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(max_items = 64)]
    pub nics: Vec<NicSpec>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(max_items = 64)]
    pub accelerators: Vec<AcceleratorSpec>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub architecture: Option<ArchitectureWord>,
    /// Instruction set extensions of every core: `avx512f`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<NameSchema>, max_items = 256)]
    pub cpu_features: Vec<Name>,
    /// Heat that can be carried away. Left out: no limit is known.
    #[serde(default, skip_serializing_if = "is_default")]
    pub thermal_limit_watts: u32,
}

impl HardwareSpec {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Cores and memory that are near each other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NumaNodeSpec {
    /// Left out: 0.
    #[schema(required = false)]
    pub socket: u16,
    pub cores: u16,
    /// Left out: 1.
    #[schema(minimum = 1, required = false)]
    pub threads_per_core: u8,
    /// Beside `cores`, with one thread each.
    #[serde(default, skip_serializing_if = "is_default")]
    pub efficiency_cores: u16,
    /// All memory of the node, what is set aside as huge pages included.
    pub memory_mib: u32,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(max_items = 4)]
    pub hugepages: Vec<HugePagesSpec>,
}

/// Pages of one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HugePagesSpec {
    #[schema(minimum = 4)]
    pub size_kib: u32,
    pub count: u32,
}

/// A root complex, switch or slot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PciePortSpec {
    /// Left out: `switch`.
    #[serde(default, skip_serializing_if = "is_default")]
    #[schema(required = false)]
    pub kind: PortKindWord,
    /// Position in the same list; parents come before their children.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<u16>,
    /// Position in `numa_nodes`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub numa_node: Option<u16>,
    pub bandwidth_mbps: u32,
}

/// One physical GPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GpuSpec {
    #[schema(value_type = NameSchema)]
    pub model: Name,
    pub memory_mib: u32,
    /// Compute capability times ten: 8.6 is 86. Left out: 0, not known.
    #[schema(required = false)]
    pub compute_capability_tenths: u16,
    /// Position in `pcie_ports`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pcie_port: Option<u16>,
    /// Position in `numa_nodes`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub numa_node: Option<u16>,
    /// GPUs with the same number reach each other over NVLink.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nvlink_group: Option<u16>,
    /// `550.54.14`; parts that are left out are 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    /// What it can be cut into.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(max_items = 32)]
    pub mig_profiles: Vec<MigProfileSpec>,
    /// It has no memory of its own and works in that of the VM.
    #[serde(default, skip_serializing_if = "is_default")]
    pub unified_memory: bool,
}

/// A way to cut a piece out of a GPU: so many neighbouring slices, from certain slices on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MigProfileSpec {
    #[schema(value_type = NameSchema)]
    pub name: Name,
    #[schema(minimum = 1, maximum = 16)]
    pub slices: u8,
    /// Slices at which a piece may begin, ascending.
    #[schema(min_items = 1, max_items = 16)]
    pub starts: Vec<u8>,
    pub memory_mib: u32,
}

/// A network card.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NicSpec {
    /// SR-IOV functions; 1 for a card that can only be handed over as a whole.
    #[schema(maximum = 256)]
    pub functions: u16,
    #[serde(default, skip_serializing_if = "is_default")]
    pub rdma: bool,
    /// Left out: 0, not known.
    #[serde(default, skip_serializing_if = "is_default")]
    pub bandwidth_mbps: u32,
    /// Position in `pcie_ports`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pcie_port: Option<u16>,
    /// Position in `numa_nodes`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub numa_node: Option<u16>,
}

/// Any other countable device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AcceleratorSpec {
    #[schema(value_type = NameSchema)]
    pub kind: Name,
    pub count: u16,
    /// Position in `pcie_ports`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pcie_port: Option<u16>,
    /// Position in `numa_nodes`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub numa_node: Option<u16>,
}

impl From<&Hardware> for HardwareSpec {
    fn from(hardware: &Hardware) -> Self {
        Self {
            numa_nodes: hardware.numa_nodes.iter().map(NumaNodeSpec::from).collect(),
            pcie_ports: hardware.pcie_ports.iter().map(PciePortSpec::from).collect(),
            gpus: hardware.gpus.iter().map(GpuSpec::from).collect(),
            nics: hardware.nics.iter().map(NicSpec::from).collect(),
            accelerators: hardware.accelerators.iter().map(AcceleratorSpec::from).collect(),
            architecture: hardware.architecture.map(Word),
            cpu_features: hardware.cpu_features.clone(),
            thermal_limit_watts: hardware.thermal_limit_watts,
        }
    }
}

impl From<&NumaNode> for NumaNodeSpec {
    fn from(node: &NumaNode) -> Self {
        let NumaNode { socket, cores, threads_per_core, efficiency_cores, memory_mib, .. } = *node;
        let hugepages = node.hugepages.iter().copied().map(HugePagesSpec::from).collect();
        Self { socket, cores, threads_per_core, efficiency_cores, memory_mib, hugepages }
    }
}

impl From<HugePages> for HugePagesSpec {
    fn from(HugePages { size_kib, count }: HugePages) -> Self {
        Self { size_kib, count }
    }
}

impl From<&PciePort> for PciePortSpec {
    fn from(port: &PciePort) -> Self {
        let PciePort { kind, parent, numa_node, bandwidth_mbps } = *port;
        Self { kind: Word(kind), parent, numa_node, bandwidth_mbps }
    }
}

impl From<&Gpu> for GpuSpec {
    fn from(gpu: &Gpu) -> Self {
        Self {
            model: gpu.model.clone(),
            memory_mib: gpu.memory_mib,
            compute_capability_tenths: gpu.compute_capability_tenths,
            pcie_port: gpu.pcie_port,
            numa_node: gpu.numa_node,
            nvlink_group: gpu.nvlink_group,
            driver: gpu.driver.map(|version| version.to_string()),
            mig_profiles: gpu.mig_profiles.iter().map(MigProfileSpec::from).collect(),
            unified_memory: gpu.unified_memory,
        }
    }
}

impl From<&MigProfile> for MigProfileSpec {
    fn from(profile: &MigProfile) -> Self {
        let MigProfile { name, slices, starts, memory_mib } = profile.clone();
        Self { name, slices, starts, memory_mib }
    }
}

impl From<&Nic> for NicSpec {
    fn from(nic: &Nic) -> Self {
        let Nic { functions, rdma, bandwidth_mbps, pcie_port, numa_node } = *nic;
        Self { functions, rdma, bandwidth_mbps, pcie_port, numa_node }
    }
}

impl From<&Accelerator> for AcceleratorSpec {
    fn from(device: &Accelerator) -> Self {
        Self {
            kind: device.kind.clone(),
            count: device.count,
            pcie_port: device.pcie_port,
            numa_node: device.numa_node,
        }
    }
}

const U8: u64 = u8::MAX as u64;
const U16: u64 = u16::MAX as u64;
const U32: u64 = u32::MAX as u64;
/// 1 TiB, more than any machine has in one page.
const MAX_PAGE_KIB: u64 = 1 << 30;
const MAX_PAGES: u64 = 1 << 30;

impl Read for Hardware {
    fn read<'v>(value: &'v Value<'v>, at: &mut At<'v>) -> Option<Self> {
        let mut fields = at.fields(value)?;
        let hardware = Hardware {
            numa_nodes: fields.list("numa_nodes", MAX_NUMA_NODES),
            pcie_ports: fields.list("pcie_ports", MAX_PCIE_PORTS),
            gpus: fields.list("gpus", MAX_GPUS),
            nics: fields.list("nics", MAX_NICS),
            accelerators: fields.list("accelerators", MAX_ACCELERATORS),
            architecture: fields.optional("architecture"),
            cpu_features: fields.list("cpu_features", MAX_CPU_FEATURES),
            thermal_limit_watts: fields.integer("thermal_limit_watts", 0..=U32).unwrap_or(0),
        };
        // A list with a faulty item has lost it, so positions would be off.
        if fields.at.is_faultless() {
            check_positions(&hardware, fields.at);
        }
        if fields.at.is_faultless()
            && let Err(error) = hardware.check()
        {
            let hint = "correct the description";
            fields.at.fault(code::CONFLICTING_FIELDS, error.to_string(), hint);
        }
        fields.finish();
        Some(hardware)
    }
}

/// Every position must point at something that is listed.
fn check_positions(hardware: &Hardware, at: &mut At<'_>) {
    let (nodes, ports) = (hardware.numa_nodes.len(), hardware.pcie_ports.len());
    let mut check = |list: &'static str, row: usize, field, position: Option<u16>, end: usize| {
        let Some(position) = position.filter(|position| usize::from(*position) >= end) else {
            return;
        };
        at.within(Step::Field(Cow::Borrowed(list)), |at| {
            at.within(Step::Item(row), |at| {
                let message = format!("{position} points at nothing, {end} can be pointed at");
                let hint = "send a position, from 0, of something listed before";
                at.fault_in(field, code::UNKNOWN_REFERENCE, message, hint);
            });
        });
    };
    for (row, port) in hardware.pcie_ports.iter().enumerate() {
        check("pcie_ports", row, "parent", port.parent, row);
        check("pcie_ports", row, "numa_node", port.numa_node, nodes);
    }
    for (row, gpu) in hardware.gpus.iter().enumerate() {
        check("gpus", row, "pcie_port", gpu.pcie_port, ports);
        check("gpus", row, "numa_node", gpu.numa_node, nodes);
    }
    for (row, nic) in hardware.nics.iter().enumerate() {
        check("nics", row, "pcie_port", nic.pcie_port, ports);
        check("nics", row, "numa_node", nic.numa_node, nodes);
    }
    for (row, device) in hardware.accelerators.iter().enumerate() {
        check("accelerators", row, "pcie_port", device.pcie_port, ports);
        check("accelerators", row, "numa_node", device.numa_node, nodes);
    }
}

impl Read for NumaNode {
    fn read<'v>(value: &'v Value<'v>, at: &mut At<'v>) -> Option<Self> {
        let mut fields = at.fields(value)?;
        let socket = fields.integer("socket", 0..=U16).unwrap_or(0);
        let cores = fields.required_integer("cores", 0..=U16);
        let threads_per_core = fields.integer("threads_per_core", 1..=U8).unwrap_or(1);
        let efficiency_cores = fields.integer("efficiency_cores", 0..=U16).unwrap_or(0);
        let memory_mib = fields.required_integer("memory_mib", 0..=U32);
        let hugepages = fields.list("hugepages", MAX_PAGE_SIZES);
        fields.finish();
        Some(NumaNode {
            socket,
            cores: cores?,
            threads_per_core,
            efficiency_cores,
            memory_mib: memory_mib?,
            hugepages,
        })
    }
}

impl Read for HugePages {
    fn read<'v>(value: &'v Value<'v>, at: &mut At<'v>) -> Option<Self> {
        let mut fields = at.fields(value)?;
        let size_kib = fields.required_integer("size_kib", 4..=MAX_PAGE_KIB);
        let count = fields.required_integer("count", 0..=MAX_PAGES);
        fields.finish();
        Some(HugePages { size_kib: size_kib?, count: count? })
    }
}

impl Read for PciePort {
    fn read<'v>(value: &'v Value<'v>, at: &mut At<'v>) -> Option<Self> {
        let mut fields = at.fields(value)?;
        let kind = fields.or_default("kind");
        let parent = fields.integer("parent", 0..=U16);
        let numa_node = fields.integer("numa_node", 0..=U16);
        let bandwidth_mbps = fields.required_integer("bandwidth_mbps", 0..=U32);
        fields.finish();
        Some(PciePort { kind, parent, numa_node, bandwidth_mbps: bandwidth_mbps? })
    }
}

impl Read for Gpu {
    fn read<'v>(value: &'v Value<'v>, at: &mut At<'v>) -> Option<Self> {
        let mut fields = at.fields(value)?;
        let model = fields.required("model");
        let memory_mib = fields.required_integer("memory_mib", 0..=U32);
        let capability = fields.integer("compute_capability_tenths", 0..=U16);
        let pcie_port = fields.integer("pcie_port", 0..=U16);
        let numa_node = fields.integer("numa_node", 0..=U16);
        let nvlink_group = fields.integer("nvlink_group", 0..=U16);
        let driver = fields.with("driver", read_driver);
        let mig_profiles = fields.list("mig_profiles", MAX_MIG_PROFILES);
        let unified_memory = fields.or_default("unified_memory");
        fields.finish();
        Some(Gpu {
            compute_capability_tenths: capability.unwrap_or(0),
            pcie_port,
            numa_node,
            nvlink_group,
            driver,
            mig_profiles,
            unified_memory,
            ..Gpu::new(model?, memory_mib?)
        })
    }
}

/// A version of up to three numbers: `550.54.14`.
pub(crate) fn read_driver<'v>(value: &'v Value<'v>, at: &mut At<'v>) -> Option<DriverVersion> {
    let text = at.text(value)?;
    let parts: Option<Vec<u16>> = text.split('.').map(|part| part.parse().ok()).collect();
    match parts.as_deref() {
        Some([major, rest @ ..]) if rest.len() <= 2 => {
            let part = |row: usize| rest.get(row).copied().unwrap_or(0);
            Some(DriverVersion { major: *major, minor: part(0), patch: part(1) })
        }
        _ => {
            let message = format!("{:?} is not a version", shorten(text));
            at.fault(code::INVALID_VALUE, message, "send up to three numbers as in 550.54.14");
            None
        }
    }
}

impl Read for MigProfile {
    fn read<'v>(value: &'v Value<'v>, at: &mut At<'v>) -> Option<Self> {
        let mut fields = at.fields(value)?;
        let name = fields.required("name");
        let most = u64::from(MAX_MIG_SLICES);
        let slices = fields.required_integer("slices", 1..=most);
        let starts = fields.required_with("starts", |value, at| {
            let items = at.items(value, usize::from(MAX_MIG_SLICES))?;
            let mut starts = Vec::with_capacity(items.len());
            for (row, item) in items.iter().enumerate() {
                let start =
                    at.within(Step::Item(row), |at| at.integer(item, 0..=most.saturating_sub(1)));
                starts.extend(start.and_then(|start| u8::try_from(start).ok()));
            }
            Some(starts)
        });
        let memory_mib = fields.required_integer("memory_mib", 0..=U32);
        fields.finish();
        Some(MigProfile { name: name?, slices: slices?, starts: starts?, memory_mib: memory_mib? })
    }
}

impl Read for Nic {
    fn read<'v>(value: &'v Value<'v>, at: &mut At<'v>) -> Option<Self> {
        let mut fields = at.fields(value)?;
        let functions = fields.required_integer("functions", 0..=u64::from(MAX_FUNCTIONS));
        let rdma = fields.or_default("rdma");
        let bandwidth_mbps = fields.integer("bandwidth_mbps", 0..=U32).unwrap_or(0);
        let pcie_port = fields.integer("pcie_port", 0..=U16);
        let numa_node = fields.integer("numa_node", 0..=U16);
        fields.finish();
        Some(Nic { functions: functions?, rdma, bandwidth_mbps, pcie_port, numa_node })
    }
}

impl Read for Accelerator {
    fn read<'v>(value: &'v Value<'v>, at: &mut At<'v>) -> Option<Self> {
        let mut fields = at.fields(value)?;
        let kind = fields.required("kind");
        let count = fields.required_integer("count", 0..=U16);
        let pcie_port = fields.integer("pcie_port", 0..=U16);
        let numa_node = fields.integer("numa_node", 0..=U16);
        fields.finish();
        Some(Accelerator { kind: kind?, count: count?, pcie_port, numa_node })
    }
}
