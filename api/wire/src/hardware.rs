//! What is inside a host, in JSON. Positions in lists are checked, so that nothing hangs in the air.

use crate::fault::code;
use crate::json::Value;
use crate::read::{At, Read, Step};
use crate::schema::NameSchema;
use cluster::{Accelerator, Gpu, Hardware, Name, NumaNode, PciePort};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use utoipa::ToSchema;

/// Devices of one kind in one host.
const MAX_DEVICES: usize = 256;

/// The devices of a host and how they hang together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HardwareSpec {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(max_items = 256)]
    pub numa_nodes: Vec<NumaNodeSpec>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(max_items = 256)]
    pub pcie_ports: Vec<PciePortSpec>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(max_items = 256)]
    pub gpus: Vec<GpuSpec>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(max_items = 256)]
    pub accelerators: Vec<AcceleratorSpec>,
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
    pub memory_mib: u32,
}

/// A root complex, switch or slot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PciePortSpec {
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
            accelerators: hardware.accelerators.iter().map(AcceleratorSpec::from).collect(),
        }
    }
}

impl From<&NumaNode> for NumaNodeSpec {
    fn from(node: &NumaNode) -> Self {
        let NumaNode { socket, cores, threads_per_core, memory_mib, .. } = *node;
        Self { socket, cores, threads_per_core, memory_mib }
    }
}

impl From<&PciePort> for PciePortSpec {
    fn from(port: &PciePort) -> Self {
        let PciePort { parent, numa_node, bandwidth_mbps, .. } = *port;
        Self { parent, numa_node, bandwidth_mbps }
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
        }
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

impl Read for Hardware {
    fn read<'v>(value: &'v Value<'v>, at: &mut At<'v>) -> Option<Self> {
        let mut fields = at.fields(value)?;
        let hardware = Hardware {
            numa_nodes: fields.list("numa_nodes", MAX_DEVICES),
            pcie_ports: fields.list("pcie_ports", MAX_DEVICES),
            gpus: fields.list("gpus", MAX_DEVICES),
            accelerators: fields.list("accelerators", MAX_DEVICES),
            ..Hardware::default()
        };
        // A list with a faulty item has lost it, so positions would be off.
        if fields.at.is_faultless() {
            check_positions(&hardware, fields.at);
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
        let memory_mib = fields.required_integer("memory_mib", 0..=U32);
        fields.finish();
        Some(NumaNode {
            socket,
            cores: cores?,
            threads_per_core,
            memory_mib: memory_mib?,
            ..NumaNode::default()
        })
    }
}

impl Read for PciePort {
    fn read<'v>(value: &'v Value<'v>, at: &mut At<'v>) -> Option<Self> {
        let mut fields = at.fields(value)?;
        let parent = fields.integer("parent", 0..=U16);
        let numa_node = fields.integer("numa_node", 0..=U16);
        let bandwidth_mbps = fields.required_integer("bandwidth_mbps", 0..=U32);
        fields.finish();
        Some(PciePort { parent, numa_node, bandwidth_mbps: bandwidth_mbps?, ..PciePort::default() })
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
        fields.finish();
        Some(Gpu {
            compute_capability_tenths: capability.unwrap_or(0),
            pcie_port,
            numa_node,
            nvlink_group,
            ..Gpu::new(model?, memory_mib?)
        })
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
