//! What callers ask of the engine, and what they are told.

use crate::command::Hold;
use crate::plans::{DisruptionBudget, Draft, MigrationReport, PlanAction, PlanId, PlanStatus};
use crate::report::{Told, UseReports, VmNews};
use crate::state::{DecisionId, Health};
use cluster::{
    Bindings, Constraint, Decision, Dim, Dimensions, Generation, Host, HostState, Name, Strategy,
    Vm, VmKey,
};
use policy::{Policy, Profile, Weights};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A request with who makes it and, where given, the key that makes retrying it safe.
#[derive(Clone, Debug)]
pub struct Call {
    pub actor: Name,
    pub idempotency_key: Option<IdempotencyKey>,
    pub request: Request,
}

impl Call {
    /// A call by the service itself or by a test.
    pub fn internal(request: Request) -> Self {
        let actor = cluster::VmKey::in_default_tenant(system()).id;
        Self { actor, idempotency_key: None, request }
    }
}

fn system() -> Name {
    #[expect(clippy::expect_used, reason = "a constant that is a valid name")]
    Name::new("system").expect("a constant that is a valid name")
}

/// An `Idempotency-Key` within its tenant.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct IdempotencyKey(Vec<u8>);

impl IdempotencyKey {
    pub fn new(tenant: &Name, key: &str) -> Self {
        // A name cannot contain the separator, so two tenants can never share a key.
        Self([tenant.as_str().as_bytes(), b"\0", key.as_bytes()].concat())
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Request {
    DeclareDimensions(Dimensions),
    PutHost {
        host: Box<Host>,
        mode: PutMode,
        if_generation: Option<Generation>,
    },
    SetHostState {
        host: Name,
        state: HostState,
        if_generation: Option<Generation>,
    },
    /// Refused while VMs are on the host, unless `evict` says to drop them with it.
    RemoveHost {
        host: Name,
        evict: bool,
        if_generation: Option<Generation>,
    },
    Place(PlaceRequest),
    PlaceBatch {
        requests: Vec<PlaceRequest>,
        atomic: bool,
    },
    Adopt {
        vm: Arc<Vm>,
        host: Name,
        /// The parts of the host that it has, if the caller knows.
        bindings: Option<Arc<Bindings>>,
    },
    /// Gives a VM other amounts of some dimensions; the others stay as they are.
    Resize {
        vm: VmKey,
        changes: Vec<(Dim, u64)>,
        if_generation: Option<Generation>,
    },
    RemoveVm {
        vm: VmKey,
        if_generation: Option<Generation>,
    },
    Confirm {
        reservation: u64,
    },
    Release {
        reservation: u64,
    },
    SetWeights {
        weights: Weights,
        if_revision: Option<u64>,
    },
    SetStrategy {
        strategy: Strategy,
        if_revision: Option<u64>,
    },
    /// Weights and strategy by one name.
    SetProfile {
        profile: Profile,
        if_revision: Option<u64>,
    },
    /// Registers, changes, activates or removes a policy.
    EditPolicy {
        edit: Box<policy::Edit>,
        if_revision: Option<u64>,
    },
    /// Puts a constraint in force, in place of the one of the same name if there is one.
    PutConstraint {
        constraint: Box<Constraint>,
        if_generation: Option<Generation>,
    },
    RemoveConstraint {
        name: Name,
        if_generation: Option<Generation>,
    },
    /// Lets the state's time catch up and ends what is over.
    Tick,
    /// What the heartbeat monitor found.
    SetHostHealth {
        host: Name,
        health: Health,
    },
    ReportUse(Box<UseReports>),
    ReportVm {
        vm: VmKey,
        at_ns: u64,
        news: VmNews,
    },
    CreatePlan(Box<Draft>),
    ChangePlan {
        plan: PlanId,
        action: PlanAction,
    },
    /// Holds the next wave of a plan against the state and begins it, if it is time.
    AdvancePlan {
        plan: PlanId,
    },
    /// `to` tells the migrations of a VM apart that moves more than once.
    ReportMigration {
        plan: PlanId,
        vm: VmKey,
        to: Option<Name>,
        report: MigrationReport,
    },
    SetBudget(DisruptionBudget),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PutMode {
    /// Refused when a different host has the id.
    Create,
    CreateOrReplace,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlaceRequest {
    pub vm: Arc<Vm>,
    /// `None`: as the policy says.
    pub strategy: Option<Strategy>,
    /// Makes it a reservation that ends unless it is confirmed in time.
    pub hold_ttl_ms: Option<u64>,
    /// Only this host will do. Every rule is checked all the same.
    pub pinned: Option<Name>,
    /// Only these hosts will do, if any are named; those that do not exist are passed over.
    pub among: Vec<Name>,
}

impl PlaceRequest {
    pub fn new(vm: Vm) -> Self {
        Self {
            vm: Arc::new(vm),
            strategy: None,
            hold_ttl_ms: None,
            pinned: None,
            among: Vec::new(),
        }
    }

    pub(crate) fn fingerprint(&self) -> [u8; 16] {
        fingerprint(self)
    }
}

impl Request {
    /// What is asked for. The generation that a resize was worked out from is left out of it, and
    /// so is the revision that a policy was tried at: whoever repeats one has read the VM or the
    /// policies again and seen what the first attempt made of them.
    pub(crate) fn fingerprint(&self) -> [u8; 16] {
        match self {
            Request::Resize { vm, changes, .. } => {
                let (vm, changes) = (vm.clone(), changes.clone());
                fingerprint(&Request::Resize { vm, changes, if_generation: None })
            }
            Request::EditPolicy { edit, .. } => {
                fingerprint(&Request::EditPolicy { edit: edit.clone(), if_revision: None })
            }
            Request::CreatePlan(draft) => fingerprint(&(draft.kind, draft.asked)),
            other => fingerprint(other),
        }
    }
}

fn list(names: &[Name]) -> String {
    let names: Vec<&str> = names.iter().map(Name::as_str).collect();
    names.join(", ")
}

/// 128 bits over the canonical encoding of a request: equal requests, equal fingerprints.
pub fn fingerprint<T: Serialize>(request: &T) -> [u8; 16] {
    let bytes = postcard::to_stdvec(request).unwrap_or_default();
    let mut print = [0; 16];
    blake3::Hasher::new().update(&bytes).finalize_xof().fill(&mut print);
    print
}

/// The answer to a request that was carried out, or that changed nothing and said so.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reply {
    /// The cluster's revision after it.
    pub revision: cluster::Revision,
    pub outcome: Outcome,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    Dimensions(Dimensions),
    Host {
        generation: Generation,
        created: bool,
    },
    HostRemoved {
        vms: u32,
    },
    Placement(Placement),
    Batch(Vec<Placement>),
    Adopted {
        generation: Generation,
        over_capacity: bool,
        repeated: bool,
    },
    Resized {
        generation: Generation,
    },
    VmRemoved,
    Confirmed {
        vm: VmKey,
    },
    Released {
        vm: Option<VmKey>,
    },
    Policy(Policy),
    /// `warnings` say what the fleet cannot give as it is.
    Constraint {
        generation: Generation,
        created: bool,
        warnings: Vec<String>,
    },
    ConstraintRemoved,
    Ticked {
        expired: u32,
    },
    UseReported {
        generation: u64,
        repeated: bool,
    },
    VmReported(Told),
    /// A plan and what has become of it.
    Plan {
        plan: PlanId,
        status: PlanStatus,
    },
    Budget(DisruptionBudget),
}

/// What became of one request to place a VM.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placement {
    pub id: DecisionId,
    pub host: Option<Name>,
    pub hold: Option<Hold>,
    /// The full decision. Missing only for a repeated request whose decision is older than the
    /// history that is kept.
    pub decision: Option<Arc<Decision>>,
    /// The VM was there already, from an equal request.
    pub repeated: bool,
}

/// Why a request was not carried out. Everything here is something that the caller can act on,
/// but for the last three, which are the service's own trouble.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("{field} {problem}")]
    Invalid { field: String, problem: String },
    #[error("host {0} is not known")]
    UnknownHost(Name),
    #[error("host {0} exists with other properties")]
    HostExists(Name),
    #[error("host {host} still has {vms} VMs; drain it, or remove it with its VMs")]
    HostNotEmpty { host: Name, vms: u32 },
    #[error("VM {0} is not known")]
    UnknownVm(VmKey),
    #[error("VM {vm} exists on host {host} from a different request")]
    VmExists { vm: VmKey, host: Name },
    #[error("policy with ID {0} not found")]
    UnknownPolicy(String),
    /// The change is not one that can be made; nothing was changed.
    #[error("policy {policy} is left as it is: {problem}")]
    PolicyRefused { policy: String, problem: String },
    #[error("constraint {0} is not known")]
    UnknownConstraint(Name),
    #[error("constraint {name} is needed by {}; remove those first", list(.by))]
    ConstraintInUse { name: Name, by: Vec<Name> },
    /// Each of `between` is needed for the contradiction.
    #[error("{} cannot all be in force: {why}", .between.join(", "))]
    Contradiction { between: Vec<String>, why: String },
    #[error("generation {seen} is stale, the object is at {current}")]
    Stale { seen: u64, current: u64 },
    #[error("VM {vm} does not fit on host {host} at its new size: {reason}")]
    DoesNotFit { vm: VmKey, host: Name, reason: String },
    #[error("VM {vm} cannot have these parts of host {host}: {problem}")]
    PartsRefused { vm: VmKey, host: Name, problem: String },
    #[error("reservation {0} is not known: it was never made, or it is released")]
    UnknownReservation(u64),
    #[error("reservation {reservation} ended at {expires_ms} and can no longer be confirmed")]
    ReservationExpired { reservation: u64, expires_ms: u64 },
    #[error(
        "the change is one of inventory {base}, but {current} is known here; send the whole inventory"
    )]
    Gap { base: u64, current: u64 },
    #[error("plan {0} is not known: it was never made, or it is too long ago")]
    UnknownPlan(PlanId),
    #[error("plan {plan} {problem}")]
    PlanRefused { plan: PlanId, problem: String },
    #[error("VM {vm} is under way in plan {plan}; wait until it has arrived, or report it failed")]
    Moving { vm: VmKey, plan: PlanId },
    /// Wherever it went now, a rule might be broken when the other one arrives or fails.
    #[error("VM {vm} shares a rule with {other}, which is under way in plan {plan}; try again")]
    Tied { vm: VmKey, other: VmKey, plan: PlanId },
    #[error("the idempotency key was used before with a different body")]
    IdempotencyConflict,
    #[error("the queue is full; try again in {retry_after_ms} ms")]
    Busy { retry_after_ms: u64 },
    #[error("the deadline passed before the request was carried out; nothing was done")]
    DeadlinePassed,
    /// The solver's choice was refused by the verifier. Nothing was done.
    #[error("the choice did not pass verification: {0}")]
    Unverified(String),
    /// The log failed: what was in flight may or may not have happened.
    #[error("the log failed; whether the request was carried out is unknown until restart")]
    OutcomeUnknown,
}
