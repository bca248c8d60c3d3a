//! VMs in JSON: what a caller asks for, adopting, resizing, and what the service answers.

use crate::bindings::BindingsView;
use crate::fault::code;
use crate::fields::Fields;
use crate::host::is_default;
use crate::json::Value;
use crate::limits::{MAX_NAMES, MAX_RULES};
use crate::placement::AlternativeView;
use crate::quantities::{Quantities, pairs_within};
use crate::read::{At, Read};
use crate::rules::{AffinitySpec, DataSpec, SelectorSpec, SpreadSpec, TolerationSpec, label_map};
use crate::schema::{LabelsSchema, NameSchema};
use crate::topology::TopologySpec;
use crate::words::{
    CpuUnitWord, MigratabilityWord, PriorityWord, QosWord, RestartWord, Word, choice,
};
use cluster::{Amounts, Bindings, Dim, Dimensions, Generation, Hints, MAX_AMOUNT, Name, Vm, VmKey};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// A VM as callers describe it. Only `id` and `demand` are required.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct VmSpec {
    /// Unique within the tenant.
    #[schema(value_type = NameSchema)]
    pub id: Name,
    /// Left out: `default`.
    #[schema(value_type = NameSchema, required = false)]
    pub tenant: Name,
    pub demand: Quantities,
    /// Whether `cpu_millis` counts cores as they are or cores of the reference machine.
    #[serde(default, skip_serializing_if = "is_default")]
    pub cpu_unit: CpuUnitWord,
    /// Left out: hosts of every pool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<NameSchema>)]
    pub pool: Option<Name>,
    #[serde(default)]
    #[schema(required = false)]
    pub priority: PriorityWord,
    #[serde(default)]
    #[schema(required = false)]
    pub qos: QosWord,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(value_type = LabelsSchema)]
    pub labels: BTreeMap<Name, Name>,
    /// Groups of its tenant that the VM is a member of.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<NameSchema>, max_items = 256)]
    pub groups: Vec<Name>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(max_items = 64)]
    pub selectors: Vec<SelectorSpec>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(max_items = 64)]
    pub tolerations: Vec<TolerationSpec>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(max_items = 64)]
    pub affinity: Vec<AffinitySpec>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(max_items = 64)]
    pub spread: Vec<SpreadSpec>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<NameSchema>, max_items = 256)]
    pub preferred_hosts: Vec<Name>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<NameSchema>, max_items = 256)]
    pub excluded_hosts: Vec<Name>,
    /// Datastores that the host must reach, all of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<NameSchema>, max_items = 256)]
    pub datastores: Vec<Name>,
    /// Where the VM's data is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(max_items = 64)]
    pub data: Vec<DataSpec>,
    #[serde(default, skip_serializing_if = "is_default")]
    #[schema(required = false)]
    pub hints: HintsSpec,
    #[serde(default, skip_serializing_if = "is_default")]
    pub migratability: MigratabilityWord,
    /// May be taken back when capacity is needed.
    #[serde(default, skip_serializing_if = "is_default")]
    pub spot: bool,
    #[serde(default, skip_serializing_if = "is_default")]
    pub restart: RestartWord,
    /// Parts of the host that the VM needs. Left out: it floats over the whole host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topology: Option<TopologySpec>,
}

/// What the caller knows and the service cannot; never stronger than a rule.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HintsSpec {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_lifetime_s: Option<u64>,
    /// VMs of the same tenant to be near to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<NameSchema>, max_items = 256)]
    pub colocate_with: Vec<Name>,
    /// The region its users are in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<NameSchema>)]
    pub user_region: Option<Name>,
    /// Load comes in bursts: prefer hosts with headroom.
    #[serde(default, skip_serializing_if = "is_default")]
    pub bursty: bool,
}

/// A VM that runs already, with the host it runs on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AdoptSpec {
    #[serde(flatten)]
    pub vm: VmSpec,
    #[schema(value_type = NameSchema)]
    pub host_id: Name,
    /// The parts of the host that it has, if it asks for any and they are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bindings: Option<BindingsView>,
}

/// A new demand; dimensions that are left out stay as they are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ResizeSpec {
    pub demand: Quantities,
}

/// A VM as the service answers it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct VmView {
    #[serde(flatten)]
    pub spec: VmSpec,
    #[schema(value_type = NameSchema)]
    pub host_id: Name,
    /// What the VM takes on its host: its demand, after CPU normalisation.
    pub committed: Quantities,
    /// The parts of its host that it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bindings: Option<BindingsView>,
    /// The reservation that holds its place until it is confirmed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reservation_id: Option<String>,
    /// Was running already when the service learned of it.
    pub adopted: bool,
    /// Adopted beyond the host's room.
    pub over_capacity: bool,
    pub generation: u64,
    /// The cluster revision that this was read at.
    pub revision: u64,
}

impl VmView {
    pub fn new(
        placed: &cluster::Placed,
        reservation_id: Option<String>,
        generation: Generation,
        revision: cluster::Revision,
        dimensions: &Dimensions,
    ) -> Self {
        Self {
            spec: VmSpec::new(&placed.vm, dimensions),
            host_id: placed.host.clone(),
            committed: Quantities::full(&placed.committed, dimensions),
            bindings: placed.bindings.as_deref().map(BindingsView::from),
            reservation_id,
            adopted: placed.adopted,
            over_capacity: placed.over_capacity,
            generation: generation.0,
            revision: revision.0,
        }
    }
}

/// Whether a VM could grow or shrink where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResizeOutcome {
    Resized,
    DoesNotFit,
}

choice!(ResizeOutcome: "resized" = Resized, "does_not_fit" = DoesNotFit);
pub(crate) type ResizeOutcomeWord = Word<ResizeOutcome>;

/// What became of a resize, or what it would take.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ResizeAnswer {
    pub outcome: ResizeOutcomeWord,
    #[schema(value_type = NameSchema)]
    pub vm_id: Name,
    #[schema(value_type = NameSchema)]
    pub tenant: Name,
    #[schema(value_type = NameSchema)]
    pub host_id: Name,
    /// The demand in force after this answer.
    pub demand: Quantities,
    /// What the host lacks for the demand that was asked for.
    #[serde(default, skip_serializing_if = "Quantities::is_empty")]
    pub shortfall: Quantities,
    /// Hosts that could take the VM with the demand that was asked for, best first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub alternatives: Vec<AlternativeView>,
    pub generation: u64,
    pub revision: u64,
}

impl VmSpec {
    pub fn new(vm: &Vm, dimensions: &Dimensions) -> Self {
        Self {
            id: vm.key.id.clone(),
            tenant: vm.key.tenant.clone(),
            demand: Quantities::sparse(&vm.demand, dimensions),
            cpu_unit: Word(vm.cpu_unit),
            pool: vm.pool.clone(),
            priority: Word(vm.priority),
            qos: Word(vm.qos),
            labels: label_map(&vm.labels),
            groups: vm.groups.clone(),
            selectors: vm.selectors.iter().map(SelectorSpec::from).collect(),
            tolerations: vm.tolerations.iter().map(TolerationSpec::from).collect(),
            affinity: vm.affinities.iter().map(AffinitySpec::from).collect(),
            spread: vm.spreads.iter().map(SpreadSpec::from).collect(),
            preferred_hosts: vm.preferred_hosts.clone(),
            excluded_hosts: vm.excluded_hosts.clone(),
            datastores: vm.datastores.clone(),
            data: vm.data.iter().map(DataSpec::from).collect(),
            hints: HintsSpec::from(&vm.hints),
            migratability: Word(vm.migratability),
            spot: vm.spot,
            restart: Word(vm.restart),
            topology: vm.topology.as_deref().map(TopologySpec::from),
        }
    }
}

impl From<&Hints> for HintsSpec {
    fn from(hints: &Hints) -> Self {
        let Hints { expected_lifetime_s, colocate_with, user_region, bursty } = hints.clone();
        Self { expected_lifetime_s, colocate_with, user_region, bursty }
    }
}

/// A VM that runs already, as read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdoptRequest {
    pub vm: Vm,
    pub host: Name,
    pub bindings: Option<Bindings>,
}

/// The dimensions to change, as read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResizeRequest {
    pub changes: Vec<(Dim, u64)>,
}

impl Read for Vm {
    fn read<'v>(value: &'v Value<'v>, at: &mut At<'v>) -> Option<Self> {
        let mut fields = at.fields(value)?;
        let vm = read_vm(&mut fields);
        fields.read_only(&["bindings"]);
        fields.finish();
        vm
    }
}

impl Read for AdoptRequest {
    fn read<'v>(value: &'v Value<'v>, at: &mut At<'v>) -> Option<Self> {
        let mut fields = at.fields(value)?;
        let vm = read_vm(&mut fields);
        let host = fields.required("host_id");
        let bindings = fields.optional("bindings");
        if fields.has("bindings") && vm.as_ref().is_some_and(|vm| vm.topology.is_none()) {
            let message = "\"bindings\" are given for a VM without \"topology\"";
            let hint = "add what the VM asks for as \"topology\"";
            fields.at.fault_in("bindings", code::CONFLICTING_FIELDS, message, hint);
        }
        fields.finish();
        Some(AdoptRequest { vm: vm?, host: host?, bindings })
    }
}

/// Asks for the fields of a VM and leaves those of whatever is around it to the caller.
fn read_vm(fields: &mut Fields<'_, '_>) -> Option<Vm> {
    let id: Option<Name> = fields.required("id");
    let tenant = fields.optional("tenant");
    let demand: Option<Amounts> = fields.required("demand");
    // Stands in for what is missing; the fault that was noted refuses the body.
    let key = VmKey::in_default_tenant(id.or_else(|| Name::new("missing").ok())?);
    let mut vm = Vm::new(key, demand.unwrap_or_default());
    if let Some(tenant) = tenant {
        vm.key.tenant = tenant;
    }
    vm.cpu_unit = fields.or_default("cpu_unit");
    vm.pool = fields.optional("pool");
    vm.priority = fields.or_default("priority");
    vm.qos = fields.or_default("qos");
    vm.labels = fields.or_default("labels");
    vm.groups = fields.list("groups", MAX_NAMES);
    vm.selectors = fields.list("selectors", MAX_RULES);
    vm.tolerations = fields.list("tolerations", MAX_RULES);
    vm.affinities = fields.list("affinity", MAX_RULES);
    vm.spreads = fields.list("spread", MAX_RULES);
    vm.preferred_hosts = fields.list("preferred_hosts", MAX_NAMES);
    vm.excluded_hosts = fields.list("excluded_hosts", MAX_NAMES);
    vm.datastores = fields.list("datastores", MAX_NAMES);
    vm.data = fields.list("data", MAX_RULES);
    vm.hints = fields.or_default("hints");
    vm.migratability = fields.or_default("migratability");
    vm.spot = fields.or_default("spot");
    vm.restart = fields.or_default("restart");
    vm.topology = fields.optional("topology").map(Box::new);
    fields.read_only(&[
        "committed",
        "reservation_id",
        "adopted",
        "over_capacity",
        "generation",
        "revision",
    ]);
    Some(vm)
}

impl Read for Hints {
    fn read<'v>(value: &'v Value<'v>, at: &mut At<'v>) -> Option<Self> {
        let mut fields = at.fields(value)?;
        let hints = Hints {
            expected_lifetime_s: fields.integer("expected_lifetime_s", 0..=u64::MAX),
            colocate_with: fields.list("colocate_with", MAX_NAMES),
            user_region: fields.optional("user_region"),
            bursty: fields.or_default("bursty"),
        };
        fields.finish();
        Some(hints)
    }
}

impl Read for ResizeRequest {
    fn read<'v>(value: &'v Value<'v>, at: &mut At<'v>) -> Option<Self> {
        let mut fields = at.fields(value)?;
        let changes =
            fields.required_with("demand", |value, at| pairs_within(value, at, 0..=MAX_AMOUNT));
        if changes.as_ref().is_some_and(Vec::is_empty) && fields.at.is_faultless() {
            let message = "\"demand\" changes nothing";
            fields.at.fault_in("demand", code::TOO_FEW_ITEMS, message, "name a dimension");
        }
        fields.finish();
        Some(ResizeRequest { changes: changes? })
    }
}
