//! What NovaCron's placement interface is asked: a VM with its wishes, and nodes to judge.
//!
//! Its OpenAPI file and its Go structs disagree; both forms are read and Go's is written.

use super::free::Json;
use super::go::{amount, fault, go_struct, id, ids, is_zero, no_entries, no_items};
use super::labels::{label_name, to_labels};
use super::time::Time;
use crate::fault::{Fault, code};
use crate::json::{Value, shorten};
use crate::read::{At, Read, suggestion};
use crate::words::{Choice, choice};
use cluster::{
    Amounts, Dim, GpuAmount, GpuRequest, Host, HostState, Location, MAX_AMOUNT, MAX_GPUS, Name,
    Price, PriceKind, TaintEffect, Vm, VmKey,
};
use serde::Serialize;
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// Asks for a node for a VM.
#[derive(Clone, Debug, Default, PartialEq, Serialize, ToSchema)]
#[serde(default)]
#[schema(as = novacron::PlacementRequest)]
pub struct PlacementRequest {
    pub vm_id: String,
    pub vm_spec: VmSpec,
    pub constraints: Option<Vec<Constraint>>,
    pub preferences: Option<Vec<Preference>>,
    /// `balanced`, `consolidated`, `performance`, `efficiency` or `cost_optimized`; also
    /// `{"name": ...}`. Left out: `balanced`.
    pub strategy: String,
    #[serde(skip_serializing_if = "no_items")]
    pub exclude_nodes: Option<Vec<String>>,
    /// `reserve: true` holds the place that is found.
    #[serde(skip_serializing_if = "no_entries")]
    pub context: Option<BTreeMap<String, Json>>,
}

/// What the VM needs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, ToSchema)]
#[serde(default)]
#[schema(as = novacron::VMSpec)]
pub struct VmSpec {
    pub cpu_cores: i64,
    pub memory_mb: i64,
    /// Also read as `disk_gb`.
    pub storage_gb: i64,
    /// Also read as `network_requirements`, a list of networks.
    pub network: NetworkRequirements,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu: Option<GpuRequirements>,
    #[serde(skip_serializing_if = "no_entries")]
    pub labels: Option<BTreeMap<String, String>>,
    #[serde(skip_serializing_if = "no_entries")]
    pub metadata: Option<BTreeMap<String, Json>>,
}

/// What the VM needs of networks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
#[serde(default)]
#[schema(as = novacron::NetworkRequirements)]
pub struct NetworkRequirements {
    #[serde(skip_serializing_if = "is_zero")]
    pub bandwidth_mbps: i64,
    #[serde(skip_serializing_if = "is_zero")]
    pub latency_ms: i64,
    #[serde(skip_serializing_if = "no_items")]
    pub networks: Option<Vec<String>>,
    #[serde(skip_serializing_if = "is_zero")]
    pub public_ip: bool,
}

go_struct!(NetworkRequirements {
    bandwidth_mbps = "bandwidth_mbps",
    latency_ms = "latency_ms",
    networks = "networks",
    public_ip = "public_ip",
});

/// What the VM needs of GPUs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
#[serde(default)]
#[schema(as = novacron::GPURequirements)]
pub struct GpuRequirements {
    pub count: i64,
    #[serde(skip_serializing_if = "is_zero")]
    pub model: String,
    #[serde(skip_serializing_if = "is_zero")]
    pub memory_mb: i64,
    #[serde(skip_serializing_if = "is_zero")]
    pub shared: bool,
}

impl GpuRequirements {
    /// Whole GPUs of this kind, behind one switch or not. NovaCron says of a shared GPU only that it
    /// may be shared, not how much of it is used, so it is given whole as well.
    pub fn to_request(&self) -> Option<GpuRequest> {
        let most = MAX_GPUS as u16;
        let count = u16::try_from(self.count).ok().filter(|count| (1..=most).contains(count))?;
        let mut request = GpuRequest::new(GpuAmount::Whole(count));
        // A model that is not a name is no GPU's; it was refused where rules are read.
        request.models = Name::new(&self.model).into_iter().collect();
        request.min_memory_mib = u32::try_from(self.memory_mb).unwrap_or(u32::MAX);
        Some(request)
    }
}

go_struct!(GpuRequirements {
    count = "count",
    model = "model",
    memory_mb = "memory_mb",
    shared = "shared",
});

/// A condition on nodes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, ToSchema)]
#[serde(default)]
#[schema(as = novacron::Constraint)]
pub struct Constraint {
    /// `affinity`, `anti_affinity`, `resource_limit`, `network_latency`, `compliance`, `cost` or
    /// `availability`.
    #[serde(rename = "type")]
    pub kind: String,
    /// `hard`, `soft` or `preferred`.
    pub enforcement: String,
    pub parameters: Option<BTreeMap<String, Json>>,
    #[serde(skip_serializing_if = "is_zero")]
    pub weight: f64,
}

go_struct!(Constraint {
    kind = "type",
    enforcement = "enforcement",
    parameters = "parameters",
    weight = "weight",
});

/// A wish about nodes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, ToSchema)]
#[serde(default)]
#[schema(as = novacron::Preference)]
pub struct Preference {
    /// `low_latency`, `high_bandwidth`, `low_cost`, `local_storage` or `gpu_optimized`.
    #[serde(rename = "type")]
    pub kind: String,
    pub weight: f64,
    pub parameters: Option<BTreeMap<String, Json>>,
}

go_struct!(Preference { kind = "type", weight = "weight", parameters = "parameters" });

/// A request and the nodes to judge for it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, ToSchema)]
#[schema(as = novacron::EvaluateRequest)]
pub struct EvaluateRequest {
    pub request: PlacementRequest,
    #[schema(max_items = 20000)]
    pub nodes: Option<Vec<Node>>,
}

/// A node with what it has and what of it is free.
#[derive(Clone, Debug, Default, PartialEq, Serialize, ToSchema)]
#[serde(default)]
#[schema(as = novacron::Node)]
pub struct Node {
    pub id: String,
    pub name: String,
    #[serde(skip_serializing_if = "is_zero")]
    pub region: String,
    #[serde(skip_serializing_if = "is_zero")]
    pub zone: String,
    #[serde(skip_serializing_if = "is_zero")]
    pub rack: String,
    pub capacity: NodeCapacity,
    pub available: NodeCapacity,
    /// `ready`, `not_ready`, `maintenance` or `terminating`. Only `ready` takes VMs.
    pub state: String,
    /// From 0 to 1.
    pub health: f64,
    /// For an hour.
    #[serde(skip_serializing_if = "is_zero")]
    pub cost: f64,
    #[serde(skip_serializing_if = "no_entries")]
    pub labels: Option<BTreeMap<String, String>>,
    #[serde(skip_serializing_if = "no_items")]
    pub taints: Option<Vec<Taint>>,
    #[serde(skip_serializing_if = "no_entries")]
    pub metadata: Option<BTreeMap<String, Json>>,
    pub last_updated: Time,
}

go_struct!(Node {
    id = "id",
    name = "name",
    region = "region",
    zone = "zone",
    rack = "rack",
    capacity = "capacity",
    available = "available",
    state = "state",
    health = "health",
    cost = "cost",
    labels = "labels",
    taints = "taints",
    metadata = "metadata",
    last_updated = "last_updated",
});

/// Amounts on a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
#[serde(default)]
#[schema(as = novacron::NodeCapacity)]
pub struct NodeCapacity {
    pub cpu_cores: i64,
    pub memory_mb: i64,
    pub storage_gb: i64,
    pub network_mbps: i64,
    #[serde(skip_serializing_if = "no_items")]
    pub gpus: Option<Vec<Gpu>>,
}

go_struct!(NodeCapacity {
    cpu_cores = "cpu_cores",
    memory_mb = "memory_mb",
    storage_gb = "storage_gb",
    network_mbps = "network_mbps",
    gpus = "gpus",
});

/// A GPU of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
#[serde(default)]
#[schema(as = novacron::GPU)]
pub struct Gpu {
    pub id: String,
    pub model: String,
    pub memory_mb: i64,
    pub in_use: bool,
}

go_struct!(Gpu { id = "id", model = "model", memory_mb = "memory_mb", in_use = "in_use" });

/// A mark on a node that keeps VMs away.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
#[serde(default)]
#[schema(as = novacron::Taint)]
pub struct Taint {
    pub key: String,
    pub value: String,
    /// `NoSchedule`, `PreferNoSchedule` or `NoExecute`.
    pub effect: String,
}

go_struct!(Taint { key = "key", value = "value", effect = "effect" });

/// How a node is chosen among those that will do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PlacementStrategy {
    #[default]
    Balanced,
    Consolidated,
    Performance,
    Efficiency,
    CostOptimized,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ConstraintKind {
    Affinity,
    AntiAffinity,
    ResourceLimit,
    NetworkLatency,
    Compliance,
    Cost,
    Availability,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Enforcement {
    /// Must hold.
    #[default]
    Hard,
    /// Counts by how far it holds.
    Soft,
    /// Counts if it holds.
    Preferred,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PreferenceKind {
    LowLatency,
    HighBandwidth,
    LowCost,
    LocalStorage,
    GpuOptimized,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NodeState {
    Ready,
    NotReady,
    Maintenance,
    Terminating,
}

// The last three are the names in NovaCron's OpenAPI file; `affinity` there is a constraint here.
choice!(PlacementStrategy:
    "balanced" = Balanced, "consolidated" = Consolidated, "performance" = Performance,
    "efficiency" = Efficiency, "cost_optimized" = CostOptimized, "bin_packing" = Consolidated,
    "load_balancing" = Performance, "spread" = Performance);
choice!(ConstraintKind:
    "affinity" = Affinity, "anti_affinity" = AntiAffinity, "resource_limit" = ResourceLimit,
    "network_latency" = NetworkLatency, "compliance" = Compliance, "cost" = Cost,
    "availability" = Availability);
choice!(Enforcement: "hard" = Hard, "soft" = Soft, "preferred" = Preferred);
choice!(PreferenceKind:
    "low_latency" = LowLatency, "high_bandwidth" = HighBandwidth, "low_cost" = LowCost,
    "local_storage" = LocalStorage, "gpu_optimized" = GpuOptimized);
choice!(NodeState:
    "ready" = Ready, "not_ready" = NotReady, "maintenance" = Maintenance,
    "terminating" = Terminating);

/// A word of a fixed choice that is at `path`.
fn word<T: Choice>(path: &str, text: &str) -> Result<T, Fault> {
    T::from_word(text).ok_or_else(|| {
        let words: Vec<&str> = T::WORDS.iter().map(|(word, _)| *word).collect();
        let message = format!("{:?} is not one of the choices", shorten(text));
        fault(path, code::UNKNOWN_CHOICE, message, suggestion(text, &words))
    })
}

impl Read for PlacementRequest {
    fn read<'v>(value: &'v Value<'v>, at: &mut At<'v>) -> Option<Self> {
        let mut fields = at.fields(value)?;
        let read = Self {
            vm_id: fields.or_default("vm_id"),
            vm_spec: fields.or_default("vm_spec"),
            constraints: fields.or_default("constraints"),
            preferences: fields.or_default("preferences"),
            strategy: fields.with("strategy", strategy_name).unwrap_or_default(),
            exclude_nodes: fields.or_default("exclude_nodes"),
            context: fields.or_default("context"),
        };
        fields.ignore_others();
        Some(read)
    }
}

/// A string, or an object with a name.
fn strategy_name<'v>(value: &'v Value<'v>, at: &mut At<'v>) -> Option<String> {
    if !matches!(value, Value::Object(_)) {
        return String::read(value, at);
    }
    let mut fields = at.fields(value)?;
    let name = fields.or_default("name");
    fields.ignore_others();
    Some(name)
}

impl Read for VmSpec {
    fn read<'v>(value: &'v Value<'v>, at: &mut At<'v>) -> Option<Self> {
        let mut fields = at.fields(value)?;
        let (storage_gb, disk_gb) = (fields.optional("storage_gb"), fields.optional("disk_gb"));
        let mut network: NetworkRequirements = fields.or_default("network");
        let named: Option<Vec<String>> = fields.or_default("network_requirements");
        let mut read = Self {
            cpu_cores: fields.or_default("cpu_cores"),
            memory_mb: fields.or_default("memory_mb"),
            gpu: fields.or_default("gpu"),
            labels: fields.or_default("labels"),
            metadata: fields.or_default("metadata"),
            ..Self::default()
        };
        fields.ignore_others();
        if let (Some(storage), Some(disk)) = (storage_gb, disk_gb)
            && storage != disk
        {
            let message = format!("disk_gb is {disk} and storage_gb is {storage}");
            at.fault_in("disk_gb", code::CONFLICTING_FIELDS, message, "send one of them");
        }
        read.storage_gb = storage_gb.or(disk_gb).unwrap_or(0);
        if no_items(&network.networks) && named.is_some() {
            network.networks = named;
        }
        read.network = network;
        Some(read)
    }
}

impl Read for EvaluateRequest {
    fn read<'v>(value: &'v Value<'v>, at: &mut At<'v>) -> Option<Self> {
        let mut fields = at.fields(value)?;
        let request = fields.required("request");
        let nodes = fields.with("nodes", |value, at| at.list(value, Node::MOST));
        fields.ignore_others();
        Some(Self { request: request?, nodes })
    }
}

impl PlacementRequest {
    /// The strategy by name; nothing is balanced.
    pub fn known_strategy(&self) -> Result<PlacementStrategy, Fault> {
        match self.strategy.as_str() {
            "" => Ok(PlacementStrategy::Balanced),
            name => word("strategy", name),
        }
    }

    /// What the VM takes, and the nodes it must not use. Constraints and preferences are left to
    /// whoever knows the nodes; so are GPUs.
    pub fn to_vm(&self) -> Result<Vm, Fault> {
        let spec = &self.vm_spec;
        let within = |fault: Fault| fault.within("vm_spec");
        let demand = Amounts::zero()
            .with(Dim::CPU_MILLIS, amount("cpu_cores", spec.cpu_cores, 1000).map_err(within)?)
            .with(Dim::MEMORY_MIB, amount("memory_mb", spec.memory_mb, 1).map_err(within)?)
            .with(Dim::DISK_GIB, amount("storage_gb", spec.storage_gb, 1).map_err(within)?)
            .with(
                Dim::NET_MBPS,
                amount("network.bandwidth_mbps", spec.network.bandwidth_mbps, 1).map_err(within)?,
            );
        let mut vm = Vm::new(VmKey::in_default_tenant(id("vm_id", &self.vm_id)?), demand);
        vm.labels = to_labels("vm_spec.labels", &spec.labels)?;
        vm.excluded_hosts = ids("exclude_nodes", &self.exclude_nodes)?;
        Ok(vm)
    }
}

impl Constraint {
    pub fn known_kind(&self) -> Result<ConstraintKind, Fault> {
        word("type", &self.kind)
    }

    /// How strictly it is meant; a constraint that does not say must hold.
    pub fn known_enforcement(&self) -> Result<Enforcement, Fault> {
        match self.enforcement.as_str() {
            "" => Ok(Enforcement::Hard),
            name => word("enforcement", name),
        }
    }
}

impl Preference {
    pub fn known_kind(&self) -> Result<PreferenceKind, Fault> {
        word("type", &self.kind)
    }
}

impl Node {
    /// Most nodes that are judged at once.
    pub const MOST: usize = 20_000;

    /// The host that this node is. GPUs, health and metadata are not part of it.
    pub fn to_host(&self) -> Result<Host, Fault> {
        let place = |path: &str, text: &str| match text {
            "" => Ok(None),
            text => label_name(text).map(Some).ok_or_else(|| {
                let message = format!("{:?} is too long", shorten(text));
                fault(path, code::STRING_TOO_LONG, message, "shorten it")
            }),
        };
        let mut host = Host::new(id("id", &self.id)?, self.capacity.amounts("capacity")?);
        host.labels = to_labels("labels", &self.labels)?;
        host.location = Location {
            region: place("region", &self.region)?,
            zone: place("zone", &self.zone)?,
            rack: place("rack", &self.rack)?,
            power_feed: None,
        };
        host.state = match self.known_state()? {
            NodeState::Ready => HostState::Available,
            NodeState::NotReady => HostState::Down,
            NodeState::Maintenance => HostState::Maintenance,
            NodeState::Terminating => HostState::Draining,
        };
        host.price = Price { kind: PriceKind::OnDemand, micros_per_hour: self.price_micros()? };
        for (row, taint) in self.taints.iter().flatten().enumerate() {
            host.taints.push(taint.to_taint(&format!("taints[{row}]"))?);
        }
        Ok(host)
    }

    /// What the VMs on the node take: what it has less what is available, never below zero.
    pub fn used(&self) -> Result<Amounts, Fault> {
        let capacity = self.capacity.amounts("capacity")?;
        Ok(capacity.saturating_sub(&self.available.amounts("available")?))
    }

    pub fn known_state(&self) -> Result<NodeState, Fault> {
        word("state", &self.state)
    }

    fn price_micros(&self) -> Result<u64, Fault> {
        let most = MAX_AMOUNT as f64;
        if (0.0..=most).contains(&self.cost) {
            return Ok((self.cost * 1e6) as u64);
        }
        let message = format!("{} is not a price", self.cost);
        Err(fault("cost", code::NEGATIVE_NUMBER, message, format!("send 0 to {most}")))
    }
}

impl NodeCapacity {
    /// The amounts that the cluster knows; GPUs are listed one by one and not among them.
    pub fn amounts(&self, path: &str) -> Result<Amounts, Fault> {
        let within = |fault: Fault| fault.within(path);
        Ok(Amounts::zero()
            .with(Dim::CPU_MILLIS, amount("cpu_cores", self.cpu_cores, 1000).map_err(within)?)
            .with(Dim::MEMORY_MIB, amount("memory_mb", self.memory_mb, 1).map_err(within)?)
            .with(Dim::DISK_GIB, amount("storage_gb", self.storage_gb, 1).map_err(within)?)
            .with(Dim::NET_MBPS, amount("network_mbps", self.network_mbps, 1).map_err(within)?))
    }
}

impl Taint {
    fn to_taint(&self, path: &str) -> Result<cluster::Taint, Fault> {
        let name = |field: &str, text: &str| -> Result<Name, Fault> {
            label_name(text).ok_or_else(|| {
                let message = format!("{:?} is too long", shorten(text));
                fault(format!("{path}.{field}"), code::STRING_TOO_LONG, message, "shorten it")
            })
        };
        let effect = match self.effect.as_str() {
            "NoSchedule" => TaintEffect::NoSchedule,
            "NoExecute" => TaintEffect::NoExecute,
            "PreferNoSchedule" => TaintEffect::PreferNoSchedule,
            other => {
                let known = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
                let message = format!("{:?} is not one of the choices", shorten(other));
                let path = format!("{path}.effect");
                return Err(fault(path, code::UNKNOWN_CHOICE, message, suggestion(other, &known)));
            }
        };
        let value = match self.value.as_str() {
            "" => None,
            value => Some(name("value", value)?),
        };
        Ok(cluster::Taint { key: name("key", &self.key)?, value, effect })
    }
}
