//! The parts of a host that a VM has, in JSON. Positions are those in the host's `hardware`.

use crate::fault::code;
use crate::host::is_default;
use crate::json::{Value, shorten};
use crate::read::{At, Read};
use crate::schema::NameSchema;
use crate::words::{CoreClassWord, Word};
use cluster::{
    AcceleratorBinding, Bindings, GpuBinding, GpuShare, MAX_ACCELERATORS, MAX_FUNCTIONS, MAX_GPUS,
    MAX_MIG_SLICES, MAX_NICS, MAX_NUMA_NODES, MAX_THREADS, Name, NodeBinding, PciFunction,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What a VM has of its host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BindingsView {
    /// Hardware threads that are the VM's alone, as Linux writes lists: `0-3,8`. Threads are
    /// counted node after node, and the threads of a core one after another.
    pub cpuset: String,
    /// Threads that nobody may run on, because the VM wants its siblings idle.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub idle_cpuset: String,
    /// Of the cores, exclusive or shared.
    #[serde(default, skip_serializing_if = "is_default")]
    #[schema(required = false)]
    pub core_class: CoreClassWord,
    /// What lies on each NUMA node.
    #[schema(max_items = 16)]
    pub numa: Vec<NodeBindingView>,
    /// Size of the huge pages, if there are any.
    #[serde(default, skip_serializing_if = "is_default")]
    pub hugepage_kib: u32,
    pub gpus: Vec<GpuBindingView>,
    /// Virtual functions of NICs.
    pub pci: Vec<PciFunctionView>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub accelerators: Vec<AcceleratorBindingView>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub watts: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NodeBindingView {
    pub node: u16,
    /// Of exclusive cores.
    #[serde(default, skip_serializing_if = "is_default")]
    pub vcpus: u16,
    /// Of shared cores.
    #[serde(default, skip_serializing_if = "is_default")]
    pub shared_millis: u32,
    /// Beside the huge pages.
    #[serde(default)]
    #[schema(required = false)]
    pub memory_mib: u32,
    #[serde(default, skip_serializing_if = "is_default")]
    pub hugepages: u32,
}

/// A GPU, or a part of one: `milli` is 1000 and `whole` true for all of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GpuBindingView {
    pub gpu: u16,
    /// Nobody else uses it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub whole: bool,
    /// Thousandths of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 1000)]
    pub milli: Option<u16>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mig: Option<MigBindingView>,
}

/// A piece of a GPU: the profile's position in the GPU's list, and the slice that it begins at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MigBindingView {
    pub profile: u8,
    pub start: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PciFunctionView {
    pub nic: u16,
    pub function: u16,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AcceleratorBindingView {
    pub accelerator: u16,
    pub count: u16,
}

/// What is left inside a host, in which pieces, and who has the rest.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct InsideView {
    /// By node.
    pub numa: Vec<NodeHoleView>,
    /// Cores of which no thread is taken, on all nodes.
    pub free_cores: u32,
    /// The most of them on one node: the largest hole.
    pub largest_node_cores: u32,
    /// GPUs that nobody uses.
    pub free_gpus: u32,
    /// GPUs of which somebody has a part, and a part is free.
    pub partly_free_gpus: u32,
    /// The most unused GPUs behind one PCIe switch.
    pub largest_switch_gpus: u32,
    /// The most unused GPUs in one NVLink clique.
    pub largest_clique_gpus: u32,
    /// Free thousandths of GPUs that are shared already, and the largest piece of them.
    pub gpu_milli_in_pieces: u32,
    pub largest_gpu_piece_milli: u32,
    /// Free slices of GPUs that are cut already.
    pub mig_slices_in_pieces: u32,
    /// Unused GPUs on nodes without a free core.
    pub stranded_gpus: u32,
    /// VMs that have parts of this host.
    pub bound: Vec<BoundView>,
}

/// What is left on one NUMA node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NodeHoleView {
    pub free_cores: u32,
    /// Those of cores that are partly taken included.
    pub free_threads: u32,
    /// Beside huge pages.
    pub free_memory_mib: u32,
    pub free_gpus: u32,
}

/// A VM and what it has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BoundView {
    #[schema(value_type = NameSchema)]
    pub vm_id: Name,
    #[schema(value_type = NameSchema)]
    pub tenant: Name,
    pub bindings: BindingsView,
}

impl From<&Bindings> for BindingsView {
    fn from(bindings: &Bindings) -> Self {
        let node = |bound: &NodeBinding| NodeBindingView {
            node: bound.node,
            vcpus: bound.vcpus,
            shared_millis: bound.shared_millis,
            memory_mib: bound.memory_mib,
            hugepages: bound.hugepages,
        };
        let function = |at: &PciFunction| PciFunctionView { nic: at.nic, function: at.function };
        let accelerator = |bound: &AcceleratorBinding| AcceleratorBindingView {
            accelerator: bound.row,
            count: bound.count,
        };
        Self {
            cpuset: bindings.cpuset(),
            idle_cpuset: bindings.idle_cpuset(),
            core_class: Word(bindings.core_class),
            numa: bindings.nodes.iter().map(node).collect(),
            hugepage_kib: bindings.hugepage_kib,
            gpus: bindings.gpus.iter().map(GpuBindingView::from).collect(),
            pci: bindings.functions.iter().map(function).collect(),
            accelerators: bindings.accelerators.iter().map(accelerator).collect(),
            watts: bindings.watts,
        }
    }
}

impl From<&GpuBinding> for GpuBindingView {
    fn from(bound: &GpuBinding) -> Self {
        let view = Self { gpu: bound.gpu, whole: false, milli: None, mig: None };
        match bound.share {
            GpuShare::Whole => Self { whole: true, ..view },
            GpuShare::Milli(milli) => Self { milli: Some(milli), ..view },
            GpuShare::Mig { profile, start } => {
                Self { mig: Some(MigBindingView { profile, start }), ..view }
            }
        }
    }
}

const U16: u64 = u16::MAX as u64;
const U32: u64 = u32::MAX as u64;

impl Read for Bindings {
    fn read<'v>(value: &'v Value<'v>, at: &mut At<'v>) -> Option<Self> {
        let mut fields = at.fields(value)?;
        let mut bindings = Bindings {
            core_class: fields.or_default("core_class"),
            cpus: fields.with("cpuset", read_cpuset).unwrap_or_default(),
            idle_cpus: fields.with("idle_cpuset", read_cpuset).unwrap_or_default(),
            nodes: fields.list("numa", MAX_NUMA_NODES),
            hugepage_kib: fields.integer("hugepage_kib", 0..=U32).unwrap_or(0),
            gpus: fields.list("gpus", MAX_GPUS.saturating_mul(usize::from(MAX_MIG_SLICES))),
            functions: fields.list("pci", MAX_NICS.saturating_mul(usize::from(MAX_FUNCTIONS))),
            accelerators: fields.list("accelerators", MAX_ACCELERATORS),
            watts: fields.integer("watts", 0..=U32).unwrap_or(0),
        };
        fields.finish();
        // Lists are sets here; whoever names something twice is told so when it is looked at.
        bindings.nodes.sort_unstable_by_key(|bound| bound.node);
        bindings.gpus.sort_unstable();
        bindings.functions.sort_unstable();
        bindings.accelerators.sort_unstable();
        Some(bindings)
    }
}

/// Reads what `Bindings::cpuset` writes, in any order.
fn read_cpuset<'v>(value: &'v Value<'v>, at: &mut At<'v>) -> Option<Vec<u16>> {
    let text = at.text(value)?;
    let cpu = |text: &str| text.parse::<u16>().ok().filter(|cpu| u32::from(*cpu) < MAX_THREADS);
    let mut cpus = Vec::new();
    for part in text.split(',').filter(|_| !text.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        match (cpu(first), cpu(last)) {
            (Some(first), Some(last)) if first <= last => cpus.extend(first..=last),
            _ => {
                let message = format!("{:?} is no thread and no range of threads", shorten(part));
                let hint = "write threads from 0 to 4095 as in 0-3,8";
                at.fault(code::INVALID_VALUE, message, hint);
                return None;
            }
        }
    }
    cpus.sort_unstable();
    Some(cpus)
}

impl Read for NodeBinding {
    fn read<'v>(value: &'v Value<'v>, at: &mut At<'v>) -> Option<Self> {
        let mut fields = at.fields(value)?;
        let node = fields.required_integer("node", 0..=U16);
        let vcpus = fields.integer("vcpus", 0..=U16).unwrap_or(0);
        let shared_millis = fields.integer("shared_millis", 0..=U32).unwrap_or(0);
        let memory_mib = fields.integer("memory_mib", 0..=U32).unwrap_or(0);
        let hugepages = fields.integer("hugepages", 0..=U32).unwrap_or(0);
        fields.finish();
        Some(NodeBinding { node: node?, vcpus, shared_millis, memory_mib, hugepages })
    }
}

impl Read for GpuBinding {
    fn read<'v>(value: &'v Value<'v>, at: &mut At<'v>) -> Option<Self> {
        let mut fields = at.fields(value)?;
        let gpu = fields.required_integer("gpu", 0..=U16);
        let whole: bool = fields.or_default("whole");
        let milli: Option<u16> = fields.integer("milli", 1..=1000);
        let mig = fields.with("mig", |value, at| {
            let mut fields = at.fields(value)?;
            let profile = fields.required_integer("profile", 0..=255);
            let start =
                fields.required_integer("start", 0..=u64::from(MAX_MIG_SLICES.saturating_sub(1)));
            fields.finish();
            Some(GpuShare::Mig { profile: profile?, start: start? })
        });
        if usize::from(whole).saturating_add(fields.given(&["milli", "mig"]).len()) != 1 {
            let message = "exactly one of \"whole\", \"milli\" and \"mig\" says how much";
            fields.at.fault(code::CONFLICTING_FIELDS, message, "give one of them");
        }
        fields.finish();
        let share = mig.or(milli.map(GpuShare::Milli)).unwrap_or(GpuShare::Whole);
        Some(GpuBinding { gpu: gpu?, share })
    }
}

impl Read for PciFunction {
    fn read<'v>(value: &'v Value<'v>, at: &mut At<'v>) -> Option<Self> {
        let mut fields = at.fields(value)?;
        let nic = fields.required_integer("nic", 0..=U16);
        let function = fields.required_integer("function", 0..=U16);
        fields.finish();
        Some(PciFunction { nic: nic?, function: function? })
    }
}

impl Read for AcceleratorBinding {
    fn read<'v>(value: &'v Value<'v>, at: &mut At<'v>) -> Option<Self> {
        let mut fields = at.fields(value)?;
        let row = fields.required_integer("accelerator", 0..=U16);
        let count = fields.required_integer("count", 1..=U16);
        fields.finish();
        Some(AcceleratorBinding { row: row?, count: count? })
    }
}
