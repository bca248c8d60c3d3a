//! Plans: migrations in waves, as state that survives a crash.
//!
//! A plan is made somewhere else and written down here. Its waves begin one after the other, each
//! after it was held against the state as it then is. A migration under way owns its place on the
//! target through a stand-in, a VM entry like any other, so that nobody else can take that room; the
//! VM itself goes on owning its place on the source. When the core confirms, the VM takes over the
//! stand-in's place in one step; when it fails, the stand-in goes.
//!
//! Here are the words. Which command comes of a request is in `proposal::plans`, what it does to
//! the state in `apply::plans`.

mod budget;
mod table;

pub(crate) use budget::Charge;
pub use budget::{DisruptionBudget, Spending};
pub(crate) use table::FrozenPlans;
pub use table::{MAX_OPEN_PLANS, MAX_STEPS, Plans, UnderWay};

use cluster::{Amounts, Bindings, Name, Revision, VmKey};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A plan's number: the revision at which it was made.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct PlanId(pub u64);

impl PlanId {
    /// Reads what `Display` writes: `p12`.
    pub fn parse(text: &str) -> Option<Self> {
        text.strip_prefix('p')?.parse().ok().map(Self)
    }
}

impl std::fmt::Display for PlanId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "p{}", self.0)
    }
}

/// What a plan is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PlanKind {
    /// Moves that somebody named.
    Moves,
    /// An answer of the optimiser, or a point of a front.
    Optimisation,
    Rebalance,
    Drain,
    Consolidation,
    Defragmentation,
    Maintenance,
    /// Turns the done migrations of another plan round.
    Rollback(PlanId),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PlanStatus {
    Proposed,
    Approved,
    Running,
    /// By somebody, or because a migration failed.
    Paused,
    /// The next wave would break something as the state is now. It may be resumed, which looks again.
    Stale,
    /// Every migration is done.
    Completed,
    /// At its end, and some migrations failed or were left out.
    Incomplete,
    Cancelled,
    RolledBack,
}

impl PlanStatus {
    /// Whether nothing of it will ever begin again.
    pub fn is_over(self) -> bool {
        matches!(self, Self::Completed | Self::Incomplete | Self::Cancelled | Self::RolledBack)
    }
}

/// What is done when a migration fails, or a step of a wave cannot begin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum OnFailure {
    /// The plan stops and says why; somebody decides.
    #[default]
    Pause,
    /// It goes on with what still holds.
    Continue,
}

/// A plan as it is handed in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Draft {
    pub kind: PlanKind,
    /// The hosts that it empties, if that is what it is for.
    pub hosts: Vec<Name>,
    pub waves: Vec<Vec<Planned>>,
    pub blocked: Vec<BlockedMove>,
    pub worth: Worth,
    pub on_failure: OnFailure,
    /// Needs nobody's word to be applied.
    pub approved: bool,
    /// The state that it was made from.
    pub based_on: Revision,
    /// What it comes to, for people.
    pub note: String,
    /// Fingerprint of what was asked for. Asked again, it may come to other waves on another state,
    /// and is the same request all the same.
    pub asked: [u8; 16],
}

/// One migration of a draft.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Planned {
    pub vm: VmKey,
    pub from: Name,
    pub to: Name,
    /// Only to make room: the VM moves on later.
    pub staging: bool,
    /// What is copied.
    pub memory_mib: u64,
    /// How long the VM is slower than usual, and how long it stands still.
    pub brownout_ms: u64,
    pub downtime_ms: u64,
    /// By how much the objective falls with this step, after those before it.
    pub gain: Option<i64>,
}

/// A move that is wanted and not possible.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockedMove {
    pub vm: VmKey,
    pub from: Name,
    /// `None`: no host would take it.
    pub to: Option<Name>,
    pub why: String,
}

/// What the search behind a plan found; all `None` where nothing was searched.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Worth {
    /// Of the state as it was, and after the plan; lower is better.
    pub before: Option<i64>,
    pub objective: Option<i64>,
    /// Nothing better than this is possible.
    pub bound: Option<i64>,
    pub stop_reason: Option<String>,
    /// Hosts that are empty after the plan and may be switched off, and empty ones that it uses.
    pub power_down: Vec<Name>,
    pub wake: Vec<Name>,
}

/// A plan and how far it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanEntry {
    pub id: PlanId,
    pub actor: Name,
    pub created_ms: u64,
    pub changed_ms: u64,
    pub status: PlanStatus,
    /// Why it is in this status, where that is not plain.
    pub because: String,
    pub kind: PlanKind,
    pub hosts: Vec<Name>,
    pub waves: Vec<Vec<Migration>>,
    /// The first wave that has not begun.
    pub next_wave: u32,
    pub blocked: Vec<BlockedMove>,
    pub worth: Worth,
    pub on_failure: OnFailure,
    pub based_on: Revision,
    pub note: String,
    pub rolled_back_by: Option<PlanId>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Migration {
    pub planned: Planned,
    pub status: MigrationStatus,
    pub started_ms: u64,
    pub ended_ms: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum MigrationStatus {
    Waiting,
    Running,
    Done,
    /// The VM is where it was, and its place on the target is given back.
    Failed(String),
    /// It did not begin.
    Skipped(String),
    Cancelled,
    RolledBack,
}

/// Where a migration stands in its plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct StepId {
    pub wave: u32,
    pub position: u32,
}

/// What somebody wants of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PlanAction {
    Approve,
    Apply,
    Pause,
    Resume,
    /// Nothing more begins. What is under way stays so until the core reports; with `abandon` it
    /// counts as failed at once, because somebody knows that the core does nothing more.
    Cancel {
        abandon: bool,
    },
    /// Turns the done migrations round, the last wave first, as a plan of its own.
    Rollback,
}

/// What the core says of a migration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum MigrationReport {
    Confirmed,
    Failed(String),
}

/// How a plan's status changes, as the log keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanChange {
    pub plan: PlanId,
    pub status: PlanStatus,
    pub because: String,
    /// Migrations under way end as failed.
    pub abandon: bool,
}

/// The next wave of a plan: what begins, and what is left out and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaveStart {
    pub plan: PlanId,
    pub started: Vec<Started>,
    pub skipped: Vec<(u32, String)>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Started {
    pub position: u32,
    /// What the VM gets on its target.
    pub committed: Amounts,
    pub bindings: Option<Arc<Bindings>>,
}

impl Draft {
    /// The plan that it would be under this number.
    pub fn as_planned(&self, id: PlanId, actor: &Name, time_ms: u64) -> PlanEntry {
        PlanEntry::new(id, self, actor, time_ms)
    }

    /// What becomes of it first. There is nothing to do in a plan without migrations, and somebody
    /// who turns a plan round has said so.
    pub(crate) fn first_status(&self) -> PlanStatus {
        match self {
            Draft { waves, .. } if waves.is_empty() => PlanStatus::Completed,
            Draft { kind: PlanKind::Rollback(_), .. } => PlanStatus::Running,
            Draft { approved: true, .. } => PlanStatus::Approved,
            _ => PlanStatus::Proposed,
        }
    }
}

impl PlanEntry {
    /// A plan as it begins.
    pub(crate) fn new(id: PlanId, draft: &Draft, actor: &Name, time_ms: u64) -> Self {
        let waiting = |planned: &Planned| Migration {
            planned: planned.clone(),
            status: MigrationStatus::Waiting,
            started_ms: 0,
            ended_ms: 0,
        };
        Self {
            id,
            actor: actor.clone(),
            created_ms: time_ms,
            changed_ms: time_ms,
            status: draft.first_status(),
            because: String::new(),
            kind: draft.kind,
            hosts: draft.hosts.clone(),
            waves: draft.waves.iter().map(|wave| wave.iter().map(waiting).collect()).collect(),
            next_wave: 0,
            blocked: draft.blocked.clone(),
            worth: draft.worth.clone(),
            on_failure: draft.on_failure,
            based_on: draft.based_on,
            note: draft.note.clone(),
            rolled_back_by: None,
        }
    }

    /// Every migration with where it stands, in order.
    pub fn steps(&self) -> impl Iterator<Item = (StepId, &Migration)> {
        (0u32..).zip(&self.waves).flat_map(|(wave, steps)| {
            (0u32..).zip(steps).map(move |(position, it)| (StepId { wave, position }, it))
        })
    }

    pub fn step(&self, at: StepId) -> Option<&Migration> {
        self.waves.get(at.wave as usize)?.get(at.position as usize)
    }

    pub(crate) fn step_mut(&mut self, at: StepId) -> Option<&mut Migration> {
        self.waves.get_mut(at.wave as usize)?.get_mut(at.position as usize)
    }

    /// The wave that begins next.
    pub fn waiting_wave(&self) -> Option<&[Migration]> {
        self.waves.get(self.next_wave as usize).map(Vec::as_slice)
    }

    pub fn count(&self, is: impl Fn(&MigrationStatus) -> bool) -> usize {
        self.steps().filter(|(_, it)| is(&it.status)).count()
    }

    pub fn step_count(&self) -> usize {
        self.waves.iter().map(Vec::len).sum()
    }

    pub fn is_under_way(&self) -> bool {
        let begun = self.waves.iter().take(self.next_wave as usize).rev();
        begun.flatten().any(|it| it.status == MigrationStatus::Running)
    }

    /// Whether its next wave may be looked at.
    pub fn is_due(&self) -> bool {
        self.status == PlanStatus::Running && !self.is_under_way()
    }

    /// The migration of this VM, towards this host if one is named, that a report of the core is
    /// about: the one that runs, or else the last one that ended.
    pub fn reported(&self, vm: &VmKey, to: Option<&Name>) -> Option<(StepId, &Migration)> {
        let meant =
            move |planned: &Planned| planned.vm == *vm && to.is_none_or(|to| planned.to == *to);
        let own = || self.steps().filter(move |(_, it)| meant(&it.planned));
        let running = own().find(|(_, it)| it.status == MigrationStatus::Running);
        let ended = |it: &Migration| it.ended_ms > 0;
        running.or_else(|| own().filter(|(_, it)| ended(it)).last()).or_else(|| own().next())
    }

    /// The key of the stand-in of a migration: no two plans or steps share one.
    pub(crate) fn stand_in(&self, at: StepId) -> Option<VmKey> {
        let tenant = self.step(at)?.planned.vm.tenant.clone();
        let before: usize = self.waves.iter().take(at.wave as usize).map(Vec::len).sum();
        Some(VmKey::stand_in(tenant, self.id.0, before.saturating_add(at.position as usize)))
    }
}
