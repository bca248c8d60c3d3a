//! What a VM asks of the inside of its host, in JSON.

use crate::fault::code;
use crate::fields::Fields;
use crate::hardware::{HugePagesSpec, read_driver};
use crate::host::is_default;
use crate::json::Value;
use crate::read::{At, Read};
use crate::schema::NameSchema;
use crate::words::{
    ArchitectureWord, CoreClassWord, GpuGroupingWord, NearWord, SiblingsWord, Word, choice,
};
use cluster::{
    AcceleratorRequest, Cores, GpuAmount, GpuRequest, MAX_ACCELERATOR_KINDS, MAX_CPU_FEATURES,
    MAX_FUNCTIONS, MAX_GPU_MODELS, MAX_GPUS, MAX_NUMA_NODES, Name, Near, NicRequest, NumaPolicy,
    Siblings, Topology,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Parts of the host that the VM needs. An empty object asks for a place on NUMA nodes and for
/// nothing else; left out, the VM floats over the whole host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TopologySpec {
    /// Whether anybody else runs on the VM's cores.
    #[serde(default, skip_serializing_if = "is_default")]
    #[schema(required = false)]
    pub cores: CoresWord,
    /// What happens on the other threads of exclusive cores. Left out: `own`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub siblings: Option<SiblingsWord>,
    /// Left out: performance cores if they do, else efficiency cores.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub core_class: Option<CoreClassWord>,
    #[serde(default, skip_serializing_if = "is_default")]
    #[schema(required = false)]
    pub numa: NumaWord,
    /// With `numa` `split`: how many nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 2, maximum = 16)]
    pub numa_nodes: Option<u8>,
    /// The part of the VM's memory that lies in huge pages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hugepages: Option<HugePagesSpec>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpus: Option<GpuRequestSpec>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nic: Option<NicRequestSpec>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(max_items = 16)]
    pub accelerators: Vec<AcceleratorRequestSpec>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub architecture: Option<ArchitectureWord>,
    /// Instruction set extensions, all of them: `avx512f`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<NameSchema>, max_items = 256)]
    pub cpu_features: Vec<Name>,
    /// Heat that the VM gives off at most.
    #[serde(default, skip_serializing_if = "is_default")]
    pub watts: u32,
}

/// GPUs: exactly one of `count`, `milli` and `mig`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GpuRequestSpec {
    /// This many whole GPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 64)]
    pub count: Option<u16>,
    /// Thousandths of one GPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 1000)]
    pub milli: Option<u16>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mig: Option<MigRequestSpec>,
    /// Any of these; left out: every model will do.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<NameSchema>, max_items = 16)]
    pub models: Vec<Name>,
    /// Of each GPU, of the share, or of each piece.
    #[serde(default, skip_serializing_if = "is_default")]
    pub min_memory_mib: u32,
    /// Compute capability times ten: 8.6 is 86.
    #[serde(default, skip_serializing_if = "is_default")]
    pub min_compute_capability_tenths: u16,
    /// `550.54.14`; parts that are left out are 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_driver: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_driver: Option<String>,
    /// On the narrowest part of the way to the root.
    #[serde(default, skip_serializing_if = "is_default")]
    pub min_pcie_mbps: u32,
    /// How near the GPUs have to be to each other.
    #[serde(default, skip_serializing_if = "is_default")]
    #[schema(required = false)]
    pub together: GpuGroupingWord,
    /// Every GPU on a NUMA node on which the VM has cores.
    #[serde(default, skip_serializing_if = "is_default")]
    pub near_cores: bool,
}

/// Pieces of GPUs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MigRequestSpec {
    #[schema(value_type = NameSchema)]
    pub profile: Name,
    /// Left out: 1.
    #[schema(minimum = 1, maximum = 64, required = false)]
    pub count: u16,
}

/// Functions of NICs, each for the VM alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NicRequestSpec {
    #[schema(minimum = 1, maximum = 256)]
    pub functions: u16,
    #[serde(default, skip_serializing_if = "is_default")]
    pub rdma: bool,
    #[serde(default, skip_serializing_if = "is_default")]
    #[schema(required = false)]
    pub near: NearWord,
}

/// Devices of another kind, each for the VM alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AcceleratorRequestSpec {
    #[schema(value_type = NameSchema)]
    pub kind: Name,
    #[schema(minimum = 1)]
    pub count: u16,
    #[serde(default, skip_serializing_if = "is_default")]
    #[schema(required = false)]
    pub near: NearWord,
}

/// `Cores` without what is on the siblings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CoresKind {
    #[default]
    Shared,
    Exclusive,
}

/// `NumaPolicy` without the number of nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NumaKind {
    #[default]
    Preferred,
    Single,
    Split,
}

choice!(CoresKind: "shared" = Shared, "exclusive" = Exclusive);
choice!(NumaKind: "preferred" = Preferred, "single" = Single, "split" = Split);
pub(crate) type CoresWord = Word<CoresKind>;
pub(crate) type NumaWord = Word<NumaKind>;

impl From<&Topology> for TopologySpec {
    fn from(topology: &Topology) -> Self {
        let (cores, siblings) = match topology.cores {
            Cores::Shared => (CoresKind::Shared, None),
            Cores::Exclusive(siblings) => (CoresKind::Exclusive, Some(Word(siblings))),
        };
        let (numa, numa_nodes) = match topology.numa {
            NumaPolicy::Preferred => (NumaKind::Preferred, None),
            NumaPolicy::Single => (NumaKind::Single, None),
            NumaPolicy::Split(nodes) => (NumaKind::Split, Some(nodes)),
        };
        let nic = topology.nic.as_ref().map(|nic| NicRequestSpec {
            functions: nic.functions,
            rdma: nic.rdma,
            near: Word(nic.near),
        });
        let accelerators = topology.accelerators.iter().map(|asked| AcceleratorRequestSpec {
            kind: asked.kind.clone(),
            count: asked.count,
            near: Word(asked.near),
        });
        Self {
            cores: Word(cores),
            siblings,
            core_class: topology.core_class.map(Word),
            numa: Word(numa),
            numa_nodes,
            hugepages: topology.hugepages.map(HugePagesSpec::from),
            gpus: topology.gpus.as_ref().map(GpuRequestSpec::from),
            nic,
            accelerators: accelerators.collect(),
            architecture: topology.architecture.map(Word),
            cpu_features: topology.cpu_features.clone(),
            watts: topology.watts,
        }
    }
}

impl From<&GpuRequest> for GpuRequestSpec {
    fn from(request: &GpuRequest) -> Self {
        let mut spec = Self {
            models: request.models.clone(),
            min_memory_mib: request.min_memory_mib,
            min_compute_capability_tenths: request.min_compute_capability_tenths,
            min_driver: request.min_driver.map(|version| version.to_string()),
            max_driver: request.max_driver.map(|version| version.to_string()),
            min_pcie_mbps: request.min_pcie_mbps,
            together: Word(request.together),
            near_cores: request.near_cores,
            ..Self::default()
        };
        match &request.amount {
            GpuAmount::Whole(count) => spec.count = Some(*count),
            GpuAmount::Milli(milli) => spec.milli = Some(*milli),
            GpuAmount::Mig { profile, count } => {
                spec.mig = Some(MigRequestSpec { profile: profile.clone(), count: *count });
            }
        }
        spec
    }
}

const U16: u64 = u16::MAX as u64;
const U32: u64 = u32::MAX as u64;

impl Read for Topology {
    fn read<'v>(value: &'v Value<'v>, at: &mut At<'v>) -> Option<Self> {
        let mut fields = at.fields(value)?;
        let topology = Topology {
            cores: read_cores(&mut fields),
            core_class: fields.optional("core_class"),
            numa: read_numa(&mut fields),
            hugepages: fields.optional("hugepages"),
            gpus: fields.optional("gpus"),
            nic: fields.optional("nic"),
            accelerators: fields.list("accelerators", MAX_ACCELERATOR_KINDS),
            architecture: fields.optional("architecture"),
            cpu_features: fields.list("cpu_features", MAX_CPU_FEATURES),
            watts: fields.integer("watts", 0..=U32).unwrap_or(0),
        };
        // What is wrong with one field has been said; this is about fields that do not go together.
        if fields.at.is_faultless()
            && let Err(error) = topology.check()
        {
            let hint = "correct the request";
            fields.at.fault(code::CONFLICTING_FIELDS, error.to_string(), hint);
        }
        fields.finish();
        Some(topology)
    }
}

fn read_cores(fields: &mut Fields<'_, '_>) -> Cores {
    let kind: CoresKind = fields.or_default("cores");
    let siblings: Option<Siblings> = fields.optional("siblings");
    match kind {
        CoresKind::Exclusive => Cores::Exclusive(siblings.unwrap_or_default()),
        CoresKind::Shared => {
            if siblings.is_some() {
                let message = "\"siblings\" is about exclusive cores";
                let hint = "add \"cores\": \"exclusive\", or leave it out";
                fields.at.fault_in("siblings", code::CONFLICTING_FIELDS, message, hint);
            }
            Cores::Shared
        }
    }
}

fn read_numa(fields: &mut Fields<'_, '_>) -> NumaPolicy {
    let kind: NumaKind = fields.or_default("numa");
    let nodes: Option<u8> = fields.integer("numa_nodes", 2..=MAX_NUMA_NODES as u64);
    let (given, split) = (fields.has("numa_nodes"), kind == NumaKind::Split);
    if given != split {
        let message = "\"numa_nodes\" goes with \"numa\": \"split\", and only with it";
        let hint = "give both or neither";
        fields.at.fault_in("numa_nodes", code::CONFLICTING_FIELDS, message, hint);
    }
    match kind {
        NumaKind::Preferred => NumaPolicy::Preferred,
        NumaKind::Single => NumaPolicy::Single,
        NumaKind::Split => NumaPolicy::Split(nodes.unwrap_or(2)),
    }
}

impl Read for GpuRequest {
    fn read<'v>(value: &'v Value<'v>, at: &mut At<'v>) -> Option<Self> {
        let mut fields = at.fields(value)?;
        let whole: Option<u16> = fields.integer("count", 1..=MAX_GPUS as u64);
        let milli: Option<u16> = fields.integer("milli", 1..=1000);
        let mig = fields.with("mig", read_mig);
        if fields.given(&["count", "milli", "mig"]).len() != 1 {
            let message = "exactly one of \"count\", \"milli\" and \"mig\" says how much";
            fields.at.fault(code::CONFLICTING_FIELDS, message, "give one of them");
        }
        let amount = match (whole, milli, mig) {
            (Some(count), _, _) => GpuAmount::Whole(count),
            (_, Some(milli), _) => GpuAmount::Milli(milli),
            (_, _, Some(mig)) => mig,
            // The fault that was noted refuses the body.
            _ => GpuAmount::Whole(1),
        };
        let request = GpuRequest {
            amount,
            models: fields.list("models", MAX_GPU_MODELS),
            min_memory_mib: fields.integer("min_memory_mib", 0..=U32).unwrap_or(0),
            min_compute_capability_tenths: fields
                .integer("min_compute_capability_tenths", 0..=U16)
                .unwrap_or(0),
            min_driver: fields.with("min_driver", read_driver),
            max_driver: fields.with("max_driver", read_driver),
            min_pcie_mbps: fields.integer("min_pcie_mbps", 0..=U32).unwrap_or(0),
            together: fields.or_default("together"),
            near_cores: fields.or_default("near_cores"),
        };
        fields.finish();
        Some(request)
    }
}

fn read_mig<'v>(value: &'v Value<'v>, at: &mut At<'v>) -> Option<GpuAmount> {
    let mut fields = at.fields(value)?;
    let profile = fields.required("profile");
    let count = fields.integer("count", 1..=MAX_GPUS as u64).unwrap_or(1);
    fields.finish();
    Some(GpuAmount::Mig { profile: profile?, count })
}

impl Read for NicRequest {
    fn read<'v>(value: &'v Value<'v>, at: &mut At<'v>) -> Option<Self> {
        let mut fields = at.fields(value)?;
        let functions = fields.required_integer("functions", 1..=u64::from(MAX_FUNCTIONS));
        let rdma = fields.or_default("rdma");
        let near: Near = fields.or_default("near");
        fields.finish();
        Some(NicRequest { functions: functions?, rdma, near })
    }
}

impl Read for AcceleratorRequest {
    fn read<'v>(value: &'v Value<'v>, at: &mut At<'v>) -> Option<Self> {
        let mut fields = at.fields(value)?;
        let kind = fields.required("kind");
        let count = fields.required_integer("count", 1..=U16);
        let near: Near = fields.or_default("near");
        fields.finish();
        Some(AcceleratorRequest { kind: kind?, count: count?, near })
    }
}
