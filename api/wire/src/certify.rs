//! Documents to be certified: a snapshot of a cluster and decisions taken on it, ours or not.
//!
//! ```json
//! {"snapshot": {"revision": 7,
//!               "dimensions": ["cpu_millis", "memory_mib", "gpu_slots"],
//!               "hosts": [{"id": "h1", "capacity": {"cpu_millis": 64000}}],
//!               "vms": [{"vm": {"id": "a", "demand": {"cpu_millis": 500}}, "host_id": "h1"}]},
//!  "decisions": [{"vm": {"id": "b", "demand": {"cpu_millis": 500}}, "host_id": "h1"},
//!                {"vm": {"id": "c", "demand": {"cpu_millis": 900}}, "answer": {"...": "..."}}]}
//! ```
//!
//! `answer` takes what the service answered, as it is, and then all of it is checked; a decision
//! of another scheduler says only `host_id`, where `null` claims that no host can take the VM.
//! A plan comes after the decisions, as waves of steps that run together:
//!
//! ```json
//! {"snapshot": {"...": "..."},
//!  "waves": [{"steps": [{"action": "move", "vm_id": "a", "from": "h1", "host_id": "h2"},
//!                       {"action": "release", "vm_id": "d"}]},
//!            {"steps": [{"action": "place", "vm": {"id": "e", "demand": {}}, "host_id": "h1"}]}]}
//! ```
//!
//! Whether any of it is true is `verify`'s to say.

use crate::bindings::BindingsView;
use crate::constraints::ConstraintSpec;
use crate::fault::code;
use crate::host::{HostSpec, is_default};
use crate::json::Value;
use crate::placement::PlacementAnswer;
use crate::quantities::Quantities;
use crate::read::{At, Read};
use crate::schema::NameSchema;
use crate::vm::VmSpec;
use crate::words::{Choice, Word, choice};
use cluster::{
    Amounts, Bindings, Claim, Constraint, CpuUnit, Decision, Dim, Dimensions, Host,
    MAX_CONSTRAINTS, Name, Placed, Plan, Revision, Snapshot, Step, Vm, VmKey, Wave,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;
use utoipa::ToSchema;

/// A snapshot, the decisions taken on it in the order in which they were taken, and the plan that
/// is to be carried out after them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DocumentSpec {
    /// Left out where a service is asked: its own state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<SnapshotSpec>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub decisions: Vec<ClaimSpec>,
    /// In order: each begins when the one before it is done.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waves: Vec<WaveSpec>,
}

/// Steps that run together, in any order. While it moves, a VM has its place on both hosts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WaveSpec {
    pub steps: Vec<StepSpec>,
}

/// One step of a plan: `place` takes `vm` and `host_id`, `move` takes `vm_id` and `host_id`,
/// `release` takes `vm_id`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StepSpec {
    pub action: ActionWord,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vm: Option<VmSpec>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<NameSchema>)]
    pub vm_id: Option<Name>,
    /// The tenant of `vm_id`. Left out: `default`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<NameSchema>)]
    pub tenant: Option<Name>,
    /// Where the VM comes to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<NameSchema>)]
    pub host_id: Option<Name>,
    /// The parts of the host that it gets there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bindings: Option<BindingsView>,
    /// Where a VM that is moved or released is; checked if it is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<NameSchema>)]
    pub from: Option<Name>,
}

/// What a step does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Place,
    Move,
    Release,
}

choice!(Action: "place" = Place, "move" = Move, "release" = Release);
pub(crate) type ActionWord = Word<Action>;

/// Whether the rules hold, and if not, what is broken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CertificateView {
    /// Whether nothing is violated.
    pub accepted: bool,
    pub violations: Vec<ViolationView>,
    /// Rules that bind at placement only and do not hold for a VM where it is: information.
    pub drift: Vec<ViolationView>,
    /// Such rules that hold before the plan and not after it.
    pub drift_after: Vec<ViolationView>,
    pub checked: CheckedView,
    /// The revision that was checked; left out for a snapshot that was sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<u64>,
}

/// One broken rule or false statement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ViolationView {
    /// `capacity`, `anti_affinity`, `unknown_host`, `wrong_source`, ...
    pub kind: String,
    /// The whole of it, for people.
    pub text: String,
    /// The place of the decision, from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<u64>,
    /// The place of the wave, from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wave: Option<u64>,
    /// The place of the step in its wave, from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<NameSchema>)]
    pub host: Option<Name>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vm: Option<VmKeyView>,
    /// What shows it: `asked` and `free`, `members` and `max_skew`, `stated` and `found`, ...
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub facts: BTreeMap<String, String>,
}

/// A VM's tenant and id.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct VmKeyView {
    #[schema(value_type = NameSchema)]
    pub tenant: Name,
    #[schema(value_type = NameSchema)]
    pub id: Name,
}

/// How much was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CheckedView {
    pub hosts: u64,
    pub vms: u64,
    pub decisions: u64,
    pub steps: u64,
}

/// Every host and every placed VM at one revision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SnapshotSpec {
    #[serde(default)]
    pub revision: u64,
    /// Names of all dimensions; the built-in ones may be left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<NameSchema>, max_items = 64)]
    pub dimensions: Vec<Name>,
    pub hosts: Vec<HostSpec>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub vms: Vec<PlacedSpec>,
    /// The constraints in force.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(max_items = 256)]
    pub constraints: Vec<NamedConstraintSpec>,
}

/// A constraint with its name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NamedConstraintSpec {
    #[schema(value_type = NameSchema)]
    pub name: Name,
    #[serde(flatten)]
    pub constraint: ConstraintSpec,
}

/// One VM on one host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PlacedSpec {
    pub vm: VmSpec,
    #[schema(value_type = NameSchema)]
    pub host_id: Name,
    /// What the VM takes. Left out: its demand, after CPU normalisation on this host.
    #[serde(default, skip_serializing_if = "Quantities::is_empty")]
    pub committed: Quantities,
    /// The parts of the host that it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bindings: Option<BindingsView>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub over_capacity: bool,
    #[serde(default, skip_serializing_if = "is_default")]
    pub adopted: bool,
    #[serde(default, skip_serializing_if = "is_default")]
    pub held: bool,
}

/// A decision: either `answer`, or `host_id`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ClaimSpec {
    pub vm: VmSpec,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<NameSchema>)]
    pub host_id: Option<Name>,
    /// With `host_id`: the parts of the host that the VM gets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bindings: Option<BindingsView>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<PlacementAnswer>,
}

/// `DocumentSpec` as read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    pub snapshot: Option<Snapshot>,
    pub decisions: Vec<Claim>,
    pub plan: Plan,
}

impl SnapshotSpec {
    pub fn new(snapshot: &Snapshot) -> Self {
        let dimensions = &snapshot.dimensions;
        let names = dimensions.iter().filter_map(|dim| Name::new(dimensions.name(dim)).ok());
        Self {
            revision: snapshot.revision.0,
            dimensions: names.collect(),
            hosts: snapshot.hosts.iter().map(|host| HostSpec::new(host, dimensions)).collect(),
            vms: snapshot.placed.iter().map(|placed| PlacedSpec::new(placed, dimensions)).collect(),
            constraints: snapshot.constraints.iter().map(|it| named(it)).collect(),
        }
    }
}

fn named(constraint: &Constraint) -> NamedConstraintSpec {
    let Constraint { name, rule } = constraint;
    NamedConstraintSpec { name: name.clone(), constraint: rule.into() }
}

impl PlacedSpec {
    pub fn new(placed: &Placed, dimensions: &Dimensions) -> Self {
        Self {
            vm: VmSpec::new(&placed.vm, dimensions),
            host_id: placed.host.clone(),
            committed: Quantities::full(&placed.committed, dimensions),
            bindings: placed.bindings.as_deref().map(BindingsView::from),
            over_capacity: placed.over_capacity,
            adopted: placed.adopted,
            held: placed.held,
        }
    }
}

impl Read for Document {
    fn read<'v>(value: &'v Value<'v>, at: &mut At<'v>) -> Option<Self> {
        let mut fields = at.fields(value)?;
        // Read first: it brings the dimensions that amounts in decisions are given in.
        let snapshot = fields.optional("snapshot");
        let decisions = fields.list("decisions", usize::MAX);
        let waves = fields.list("waves", usize::MAX);
        fields.finish();
        Some(Document { snapshot, decisions, plan: Plan { waves } })
    }
}

impl Read for Snapshot {
    fn read<'v>(value: &'v Value<'v>, at: &mut At<'v>) -> Option<Self> {
        let mut fields = at.fields(value)?;
        // Read first: hosts and VMs give amounts in these dimensions.
        if let Some(dimensions) = fields.with("dimensions", read_dimensions) {
            fields.at.dimensions = Arc::new(dimensions);
        }
        let revision = Revision(fields.integer("revision", 0..=u64::MAX).unwrap_or(0));
        let hosts: Option<Vec<Host>> =
            fields.required_with("hosts", |value, at| at.list(value, usize::MAX));
        let hosts: Vec<Arc<Host>> = hosts.unwrap_or_default().into_iter().map(Arc::new).collect();
        let stated: Vec<Stated> = fields.list("vms", usize::MAX);
        let mut constraints: Vec<Constraint> = fields.list("constraints", MAX_CONSTRAINTS);
        constraints.sort_by(|one, other| one.name.cmp(&other.name));
        let constraints = constraints.into_iter().map(Arc::new).collect();
        let dimensions = fields.at.dimensions.as_ref().clone();
        fields.finish();
        let by_id: BTreeMap<&Name, &Arc<Host>> =
            hosts.iter().map(|host| (&host.id, host)).collect();
        let placed = stated.into_iter().map(|stated| stated.on(&by_id)).collect();
        Some(Snapshot { revision, dimensions, hosts, placed, constraints })
    }
}

fn read_dimensions<'v>(value: &'v Value<'v>, at: &mut At<'v>) -> Option<Dimensions> {
    let names: Vec<Name> = at.list(value, cluster::MAX_DIMENSIONS)?;
    let built_in = Dimensions::default();
    let extra = names.into_iter().filter(|name| built_in.find(name.as_str()).is_none());
    match Dimensions::with_extra(extra.collect()) {
        Ok(dimensions) => Some(dimensions),
        Err(error) => {
            at.fault(code::DUPLICATE_ITEM, error.to_string(), "name every dimension once");
            None
        }
    }
}

/// A placed VM whose committed amounts may have been left out.
struct Stated {
    vm: Vm,
    host: Name,
    committed: Option<Amounts>,
    bindings: Option<Bindings>,
    over_capacity: bool,
    adopted: bool,
    held: bool,
}

impl Stated {
    fn on(self, hosts: &BTreeMap<&Name, &Arc<Host>>) -> Placed {
        let Self { vm, host, committed, bindings, over_capacity, adopted, held } = self;
        let speed_permille = hosts.get(&host).map_or(1000, |host| host.speed_permille());
        let committed = committed.unwrap_or_else(|| taken(&vm, speed_permille));
        let bindings = bindings.map(Arc::new);
        Placed { vm: Arc::new(vm), host, committed, bindings, over_capacity, adopted, held }
    }
}

/// The VM's demand on a host of this speed.
fn taken(vm: &Vm, speed_permille: u64) -> Amounts {
    let mut taken = vm.demand.clone();
    if vm.cpu_unit == CpuUnit::Normalised {
        let reference = taken.get(Dim::CPU_MILLIS).saturating_mul(1000);
        taken.set(Dim::CPU_MILLIS, reference.div_ceil(speed_permille.max(1)));
    }
    taken
}

impl Read for Stated {
    fn read<'v>(value: &'v Value<'v>, at: &mut At<'v>) -> Option<Self> {
        let mut fields = at.fields(value)?;
        let vm = fields.required("vm");
        let host = fields.required("host_id");
        let committed = fields.optional("committed");
        let bindings = fields.optional("bindings");
        let over_capacity = fields.or_default("over_capacity");
        let adopted = fields.or_default("adopted");
        let held = fields.or_default("held");
        fields.finish();
        Some(Stated { vm: vm?, host: host?, committed, bindings, over_capacity, adopted, held })
    }
}

impl Read for Claim {
    fn read<'v>(value: &'v Value<'v>, at: &mut At<'v>) -> Option<Self> {
        let mut fields = at.fields(value)?;
        let vm = fields.required("vm");
        let host = fields.optional("host_id");
        let bindings: Option<Bindings> = fields.optional("bindings");
        let decision: Option<Decision> = fields.optional("answer");
        if fields.has("host_id") && fields.has("answer") {
            let message = "\"answer\" says the host already";
            let hint = "give \"answer\" or \"host_id\"";
            fields.at.fault_in("host_id", code::CONFLICTING_FIELDS, message, hint);
        }
        fields.finish();
        let host = host.or_else(|| decision.as_ref().and_then(|decision| decision.host().cloned()));
        let decided = decision.as_ref().and_then(|decision| decision.bindings().cloned());
        let bindings = bindings.map(Arc::new).or(decided);
        Some(Claim { vm: vm?, host, bindings, decision })
    }
}

impl Read for Wave {
    fn read<'v>(value: &'v Value<'v>, at: &mut At<'v>) -> Option<Self> {
        let mut fields = at.fields(value)?;
        let steps = fields.required_with("steps", |value, at| at.list(value, usize::MAX));
        fields.finish();
        Some(Wave { steps: steps? })
    }
}

impl Read for Step {
    fn read<'v>(value: &'v Value<'v>, at: &mut At<'v>) -> Option<Self> {
        let mut fields = at.fields(value)?;
        let action: Option<Action> = fields.required("action");
        let (needed, unused): (&[&'static str], &[&'static str]) = match action {
            Some(Action::Place) => (&["vm", "host_id"], &["vm_id", "tenant", "from"]),
            Some(Action::Move) => (&["vm_id", "host_id"], &["vm"]),
            Some(Action::Release) => (&["vm_id"], &["vm", "host_id", "bindings"]),
            None => (&[], &[]),
        };
        let vm: Option<Vm> = fields.optional("vm");
        let id: Option<Name> = fields.optional("vm_id");
        let tenant: Option<Name> = fields.optional("tenant");
        let to = fields.optional("host_id");
        let from = fields.optional("from");
        let bindings: Option<Bindings> = fields.optional("bindings");
        let bindings = bindings.map(Arc::new);
        let word = action.map_or("", Choice::word);
        for &name in needed {
            if fields.has(name) {
                continue;
            }
            let message = format!("{name:?} is missing in a step that is to {word}");
            fields.at.fault_in(name, code::MISSING_FIELD, message, format!("add {name:?}"));
        }
        for name in fields.given(unused) {
            let message = format!("{name:?} means nothing in a step that is to {word}");
            fields.at.fault_in(name, code::CONFLICTING_FIELDS, message, "leave it out");
        }
        fields.finish();
        let key = id.map(|id| {
            let mut key = VmKey::in_default_tenant(id);
            key.tenant = tenant.unwrap_or(key.tenant);
            key
        });
        Some(match action? {
            Action::Place => Step::Place { vm: Arc::new(vm?), to: to?, bindings },
            Action::Move => Step::Move { vm: key?, from, to: to?, bindings },
            Action::Release => Step::Release { vm: key?, from },
        })
    }
}
