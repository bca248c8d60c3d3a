//! Placements in JSON: requests, batches, decisions and reservations.

use crate::bindings::BindingsView;
use crate::fault::code;
use crate::json::Value;
use crate::limits::MAX_BATCH;
use crate::read::{At, Read, Step};
use crate::schema::NameSchema;
use crate::vm::VmSpec;
use crate::words::{StrategyWord, Word, choice};
use cluster::{
    Breakdown, Decision, Dimensions, Name, Reason, Rejections, Strategy, Term, Verdict, Vm, VmKey,
};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use utoipa::ToSchema;

/// Shortest and longest hold of a reservation.
const HOLD_TTL_MS: std::ops::RangeInclusive<u64> = 1_000..=3_600_000;

/// Asks for a host for one VM.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PlacementSpec {
    pub vm: VmSpec,
    /// Left out: the policy's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strategy: Option<StrategyWord>,
    /// Hold the place this long and wait to be confirmed. Left out: the placement is final.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1000, maximum = 3600000)]
    pub hold_ttl_ms: Option<u64>,
}

/// Asks for hosts for many VMs at once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BatchSpec {
    #[schema(min_items = 1, max_items = 10000)]
    pub vms: Vec<VmSpec>,
    /// Place all of them or none. Left out: false.
    #[serde(default)]
    pub atomic: bool,
    /// Left out: the policy's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strategy: Option<StrategyWord>,
    /// Search this long for an order of the VMs in which more of them get a host, then better ones.
    /// Left out or 0: in the order that is given. At most a quarter of the request's time is used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0, maximum = 60000)]
    pub joint_ms: Option<u32>,
}

/// `PlacementSpec` as read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlaceRequest {
    pub vm: Vm,
    pub strategy: Option<Strategy>,
    pub hold_ttl_ms: Option<u64>,
}

/// `BatchSpec` as read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchRequest {
    pub vms: Vec<Vm>,
    pub atomic: bool,
    pub strategy: Option<Strategy>,
    pub joint_ms: u32,
}

/// Whether a host was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Placed,
    Rejected,
}

/// Whether hosts were found for all VMs of a batch, for some, or for none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchOutcome {
    Placed,
    Partial,
    Rejected,
}

/// Where a reservation stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReservationState {
    Held,
    Confirmed,
    Released,
    Expired,
}

choice!(Outcome: "placed" = Placed, "rejected" = Rejected);
choice!(BatchOutcome: "placed" = Placed, "partial" = Partial, "rejected" = Rejected);
choice!(ReservationState:
    "held" = Held, "confirmed" = Confirmed, "released" = Released, "expired" = Expired);
pub(crate) type OutcomeWord = Word<Outcome>;
pub(crate) type BatchOutcomeWord = Word<BatchOutcome>;
pub(crate) type ReservationStateWord = Word<ReservationState>;

/// A decision: where the VM goes and why, or why nowhere.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PlacementAnswer {
    pub decision_id: String,
    pub outcome: OutcomeWord,
    #[schema(value_type = NameSchema)]
    pub vm_id: Name,
    #[schema(value_type = NameSchema)]
    pub tenant: Name,
    /// `null` when no host can take the VM.
    #[schema(value_type = Option<NameSchema>, required = true)]
    pub host_id: Option<Name>,
    /// Which of the hosts that ever had this id it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_incarnation: Option<u64>,
    /// The sum of the breakdown; higher is better.
    #[schema(required = true)]
    pub score: Option<i64>,
    #[schema(required = true)]
    pub breakdown: Option<ScoreParts>,
    /// The parts of the host that the VM gets, if it asks for any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bindings: Option<BindingsView>,
    /// How near the VM's GPUs are to each other, where it has several: 3 one NVLink clique, 2 one
    /// PCIe switch, 1 one NUMA node, 0 farther.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(maximum = 3)]
    pub link_score: Option<u8>,
    /// The next best hosts, best first.
    pub alternatives: Vec<AlternativeView>,
    /// How many hosts were left out, by the first reason that applied to each.
    #[schema(value_type = std::collections::BTreeMap<String, u32>)]
    pub rejections: RejectionCounts,
    /// The filters of policies that left most hosts out, most first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub policy_rejections: Vec<PolicyRejectionView>,
    pub hosts_considered: u32,
    pub strategy: StrategyWord,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reservation_id: Option<String>,
    /// The cluster revision with this decision in it.
    pub revision: u64,
    /// The cluster revision that the decision was made on.
    pub based_on: u64,
    pub policy_revision: u64,
    pub demand_revision: u64,
}

/// The weighted parts of a score.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ScoreParts {
    pub fit: i64,
    pub affinity: i64,
    pub load: i64,
    pub locality: i64,
    pub cost: i64,
    /// What the active policies give or take; left out where they do neither.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub policy: i64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the shape that serde asks for")]
fn is_zero(points: &i64) -> bool {
    *points == 0
}

/// How many hosts one filter of an active policy left out, and the reason it gives.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PolicyRejectionView {
    pub policy: String,
    pub rule: String,
    pub reason: String,
    pub hosts: u32,
}

/// A host that would have done too.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AlternativeView {
    #[schema(value_type = NameSchema)]
    pub host_id: Name,
    pub score: i64,
}

/// Hosts left out by reason: `pool`, `taint`, ..., and `capacity:DIMENSION`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RejectionCounts(pub BTreeMap<String, u32>);

/// What became of a batch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BatchAnswer {
    pub outcome: BatchOutcomeWord,
    pub placed: u32,
    pub rejected: u32,
    /// One per VM, in the order of the request.
    pub decisions: Vec<PlacementAnswer>,
    pub revision: u64,
    pub policy_revision: u64,
    /// What searching for an order came to, if one was searched for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub joint: Option<JointView>,
}

/// How much better the order is that was found than the one that was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JointView {
    /// VMs that get a host, and the sum of their scores, in the order that was found.
    pub placed: u32,
    pub score: i64,
    /// The same one by one, in the order that was given.
    pub placed_as_given: u32,
    pub score_as_given: i64,
    /// VMs that were tried on the way.
    pub steps: u64,
}

/// Capacity held for a VM until it is confirmed, released or expired.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReservationView {
    pub reservation_id: String,
    pub state: ReservationStateWord,
    /// Left out when the reservation is long over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<NameSchema>)]
    pub vm_id: Option<Name>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<NameSchema>)]
    pub tenant: Option<Name>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<NameSchema>)]
    pub host_id: Option<Name>,
    /// While held: when it ends, in the service's own time, milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at_ms: Option<u64>,
    pub revision: u64,
}

impl PlacementAnswer {
    pub fn new(
        decision: &Decision,
        decision_id: String,
        revision: cluster::Revision,
        reservation_id: Option<String>,
        dimensions: &Dimensions,
    ) -> Self {
        let (outcome, host_incarnation, score, breakdown) = match &decision.verdict {
            Verdict::Placed { incarnation, score, breakdown, .. } => {
                let parts = ScoreParts::from(breakdown);
                (Outcome::Placed, Some(*incarnation), Some(*score), Some(parts))
            }
            Verdict::Rejected => (Outcome::Rejected, None, None, None),
        };
        Self {
            decision_id,
            outcome: Word(outcome),
            vm_id: decision.vm.id.clone(),
            tenant: decision.vm.tenant.clone(),
            host_id: decision.host().cloned(),
            host_incarnation,
            score,
            breakdown,
            bindings: decision.bindings().map(|bindings| BindingsView::from(bindings.as_ref())),
            link_score: None,
            alternatives: decision.alternatives.iter().map(AlternativeView::from).collect(),
            rejections: RejectionCounts::new(&decision.rejections, dimensions),
            policy_rejections: decision
                .policy_rejections
                .iter()
                .map(PolicyRejectionView::from)
                .collect(),
            hosts_considered: decision.hosts_considered,
            strategy: Word(decision.strategy),
            reservation_id,
            revision: revision.0,
            based_on: decision.based_on.0,
            policy_revision: decision.policy_revision,
            demand_revision: decision.demand_revision,
        }
    }
}

impl PlacementAnswer {
    /// For a VM that is placed by a decision older than the history that is kept.
    pub fn forgotten(
        decision_id: String,
        vm: &VmKey,
        host: Option<Name>,
        revision: cluster::Revision,
        reservation_id: Option<String>,
    ) -> Self {
        let outcome = if host.is_some() { Outcome::Placed } else { Outcome::Rejected };
        Self {
            decision_id,
            outcome: Word(outcome),
            vm_id: vm.id.clone(),
            tenant: vm.tenant.clone(),
            host_id: host,
            host_incarnation: None,
            score: None,
            breakdown: None,
            bindings: None,
            link_score: None,
            alternatives: Vec::new(),
            rejections: RejectionCounts::default(),
            policy_rejections: Vec::new(),
            hosts_considered: 0,
            strategy: Word(Strategy::default()),
            reservation_id,
            revision: revision.0,
            based_on: revision.0.saturating_sub(1),
            policy_revision: 0,
            demand_revision: 0,
        }
    }
}

impl From<&cluster::Alternative> for AlternativeView {
    fn from(alternative: &cluster::Alternative) -> Self {
        Self { host_id: alternative.host.clone(), score: alternative.score }
    }
}

impl From<&cluster::PolicyRejection> for PolicyRejectionView {
    fn from(rejection: &cluster::PolicyRejection) -> Self {
        let cluster::PolicyRejection { policy, rule, reason, hosts } = rejection.clone();
        Self { policy, rule, reason, hosts }
    }
}

impl From<&Breakdown> for ScoreParts {
    fn from(breakdown: &Breakdown) -> Self {
        Self {
            fit: breakdown.get(Term::Fit),
            affinity: breakdown.get(Term::Affinity),
            load: breakdown.get(Term::Load),
            locality: breakdown.get(Term::Locality),
            cost: breakdown.get(Term::Cost),
            policy: breakdown.policy,
        }
    }
}

impl RejectionCounts {
    pub fn new(rejections: &Rejections, dimensions: &Dimensions) -> Self {
        let counts = rejections.0.iter();
        Self(counts.map(|(reason, hosts)| (reason_word(*reason, dimensions), *hosts)).collect())
    }
}

/// A reason on the wire: its name, or `capacity:DIMENSION`.
pub fn reason_word(reason: Reason, dimensions: &Dimensions) -> String {
    match (reason, reason.name()) {
        (_, Some(name)) => name.to_owned(),
        (Reason::Capacity(dim), None) => format!("capacity:{}", dimensions.name(dim)),
        (_, None) => "unknown".to_owned(),
    }
}

impl Read for PlaceRequest {
    fn read<'v>(value: &'v Value<'v>, at: &mut At<'v>) -> Option<Self> {
        let mut fields = at.fields(value)?;
        let vm = fields.required("vm");
        let strategy = fields.optional("strategy");
        let hold_ttl_ms = fields.integer("hold_ttl_ms", HOLD_TTL_MS);
        fields.finish();
        Some(PlaceRequest { vm: vm?, strategy, hold_ttl_ms })
    }
}

impl Read for BatchRequest {
    fn read<'v>(value: &'v Value<'v>, at: &mut At<'v>) -> Option<Self> {
        let mut fields = at.fields(value)?;
        let vms: Option<Vec<Vm>> = fields.required_with("vms", |value, at| {
            let vms = at.list(value, MAX_BATCH)?;
            check_batch(&vms, at);
            Some(vms)
        });
        let atomic = fields.or_default("atomic");
        let strategy = fields.optional("strategy");
        let joint_ms = fields.integer("joint_ms", 0..=60_000).unwrap_or(0);
        fields.finish();
        Some(BatchRequest { vms: vms?, atomic, strategy, joint_ms })
    }
}

/// A batch has at least one VM, and none twice.
fn check_batch(vms: &[Vm], at: &mut At<'_>) {
    // A list with a faulty item has lost it, so positions would be off.
    if !at.is_faultless() {
        return;
    }
    if vms.is_empty() {
        at.fault(code::TOO_FEW_ITEMS, "the batch has no VMs", "send at least one");
    }
    let mut seen = BTreeSet::new();
    for (row, vm) in vms.iter().enumerate() {
        if !seen.insert(&vm.key) {
            at.within(Step::Item(row), |at| {
                at.within(Step::Field(Cow::Borrowed("id")), |at| {
                    let message = format!("VM {} is in the batch already", vm.key);
                    at.fault(code::DUPLICATE_ITEM, message, "name every VM once");
                });
            });
        }
    }
}
