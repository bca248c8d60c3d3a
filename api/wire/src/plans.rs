//! Plans in JSON: what is asked for, how far each migration is, what is different afterwards.

mod views;

pub use views::{
    BlockedView, BudgetView, HostDiffView, MigrationView, PlanDiffView, PlanList, PlanTotalsView,
    PlanView, SpentView,
};

use crate::fault::code;
use crate::json::Value;
use crate::optimisations::{ProfileWord, goal_weights};
use crate::read::{At, Read};
use crate::schema::NameSchema;
use crate::words::{Word, choice};
use cluster::{GoalKind, Name, VmKey};
use policy::Profile;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// What a plan is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanKind {
    Moves,
    Optimisation,
    Rebalance,
    Drain,
    Consolidation,
    Defragmentation,
    Maintenance,
    Rollback,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanStatus {
    Proposed,
    Approved,
    Running,
    Paused,
    Stale,
    Completed,
    Incomplete,
    Cancelled,
    RolledBack,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MigrationStatus {
    Waiting,
    Running,
    Done,
    Failed,
    Skipped,
    Cancelled,
    RolledBack,
}

/// What is done when a migration fails or cannot begin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnFailure {
    #[default]
    Pause,
    Continue,
}

choice!(PlanKind:
    "moves" = Moves, "optimisation" = Optimisation, "rebalance" = Rebalance, "drain" = Drain,
    "consolidation" = Consolidation, "defragmentation" = Defragmentation,
    "maintenance" = Maintenance, "rollback" = Rollback);
choice!(PlanStatus:
    "proposed" = Proposed, "approved" = Approved, "running" = Running, "paused" = Paused,
    "stale" = Stale, "completed" = Completed, "incomplete" = Incomplete,
    "cancelled" = Cancelled, "rolled_back" = RolledBack);
choice!(MigrationStatus:
    "waiting" = Waiting, "running" = Running, "done" = Done, "failed" = Failed,
    "skipped" = Skipped, "cancelled" = Cancelled, "rolled_back" = RolledBack);
choice!(OnFailure: "pause" = Pause, "continue" = Continue);
pub(crate) type PlanKindWord = Word<PlanKind>;
pub(crate) type PlanStatusWord = Word<PlanStatus>;
pub(crate) type MigrationStatusWord = Word<MigrationStatus>;
pub(crate) type OnFailureWord = Word<OnFailure>;

const MAX_MOVES: usize = 20_000;
const MAX_HOSTS: usize = 20_000;
const MIGRATIONS: std::ops::RangeInclusive<u64> = 1..=100_000;
const BUDGET_MS: std::ops::RangeInclusive<u64> = 1..=600_000;
const STEPS: std::ops::RangeInclusive<u64> = 1..=1_000_000_000_000;
const PPM: std::ops::RangeInclusive<u64> = 0..=1_000_000;

/// Asks for a plan. What else is needed depends on `kind`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PlanSpec {
    /// `moves` carries out `moves`; `optimisation` what an optimisation or a point of a front
    /// found; `drain` empties `hosts`; `maintenance` does so batch by batch; `rebalance` looks for
    /// better places by goals; `consolidation` for fewer hosts; `defragmentation` for the least
    /// stranded capacity. Left out: what is given of `moves`, `optimisation` and `hosts`
    /// (`drain`) says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<PlanKindWord>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(max_items = 20000)]
    pub moves: Vec<MoveSpec>,
    /// An optimisation that has ended, such as `o7`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^o[0-9]{1,18}$")]
    pub optimisation: Option<String>,
    /// A point of its front instead of its answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub point: Option<u32>,
    /// The hosts that are emptied.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(max_items = 20000, value_type = Vec<NameSchema>)]
    pub hosts: Vec<Name>,
    /// Maintenance: hosts that are out at the same time. Left out: 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    pub batch: Option<u32>,
    /// Only VMs on hosts of this pool are moved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<NameSchema>)]
    pub pool: Option<Name>,
    /// Only VMs on hosts of this rack are moved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<NameSchema>)]
    pub rack: Option<Name>,
    /// Only VMs on this host are moved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<NameSchema>)]
    pub host: Option<Name>,
    /// Weights of goals, as for optimisations. Left out: those of the profile.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub goals: BTreeMap<String, u32>,
    /// Left out: `balanced`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<ProfileWord>,
    /// Left out: 1000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 600000)]
    pub budget_ms: Option<u64>,
    /// Steps of the search instead of time; the same plan every time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 1000000000000_i64)]
    pub steps: Option<u64>,
    /// Left out: 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_moves: Option<u32>,
    /// What a move has to gain to be worth it, in millionths of the objective before. A plan that
    /// gains less than its moves cost is empty. Left out: 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0, maximum = 1000000)]
    pub price_per_move_ppm: Option<u32>,
    /// The same for every second that a VM is slowed down. Left out: 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0, maximum = 1000000)]
    pub price_per_second_ppm: Option<u32>,
    /// Migrations that run at once: in all, to or from one host, to or from one rack.
    /// Left out: 64, 2 and 8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_once: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_once_per_host: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_once_per_rack: Option<u32>,
    /// Left out: `pause`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_failure: Option<OnFailureWord>,
    /// The plan needs nobody's approval.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub approve: bool,
}

/// A VM that should be on another host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MoveSpec {
    /// Left out: `default`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<NameSchema>)]
    pub tenant: Option<Name>,
    #[schema(value_type = NameSchema)]
    pub vm_id: Name,
    /// Where the caller believes it to be; refused if it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<NameSchema>)]
    pub from: Option<Name>,
    #[schema(value_type = NameSchema)]
    pub to: Name,
}

/// `MoveSpec` as read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MoveRequest {
    pub vm: VmKey,
    pub from: Option<Name>,
    pub to: Name,
}

/// `PlanSpec` as read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanRequest {
    pub kind: PlanKind,
    pub moves: Vec<MoveRequest>,
    pub optimisation: Option<String>,
    pub point: Option<u32>,
    pub hosts: Vec<Name>,
    pub batch: u32,
    pub pool: Option<Name>,
    pub rack: Option<Name>,
    pub host: Option<Name>,
    pub goals: Vec<(GoalKind, u32)>,
    pub budget_ms: u64,
    pub steps: Option<u64>,
    pub seed: u64,
    pub max_moves: Option<u32>,
    pub price_per_move_ppm: u32,
    pub price_per_second_ppm: u32,
    pub at_once: Option<u32>,
    pub at_once_per_host: Option<u32>,
    pub at_once_per_rack: Option<u32>,
    pub on_failure: OnFailure,
    pub approve: bool,
}

impl Read for MoveRequest {
    fn read<'v>(value: &'v Value<'v>, at: &mut At<'v>) -> Option<Self> {
        let mut fields = at.fields(value)?;
        let tenant: Option<Name> = fields.optional("tenant");
        let vm_id = fields.required("vm_id");
        let from = fields.optional("from");
        let to = fields.required("to");
        fields.finish();
        let mut vm = VmKey::in_default_tenant(vm_id?);
        vm.tenant = tenant.unwrap_or(vm.tenant);
        Some(Self { vm, from, to: to? })
    }
}

impl Read for PlanRequest {
    fn read<'v>(value: &'v Value<'v>, at: &mut At<'v>) -> Option<Self> {
        let mut fields = at.fields(value)?;
        let usual = match fields.given(&["moves", "optimisation", "hosts"]).first() {
            Some(&"optimisation") => PlanKind::Optimisation,
            Some(&"hosts") => PlanKind::Drain,
            _ => PlanKind::Moves,
        };
        let kind = fields.optional("kind").unwrap_or(usual);
        let moves = fields.list("moves", MAX_MOVES);
        let optimisation =
            fields.with("optimisation", |value, at| at.text(value).map(str::to_owned));
        let point = fields.integer("point", 0..=u64::from(u32::MAX));
        let hosts: Vec<Name> = fields.list("hosts", MAX_HOSTS);
        let batch = fields.integer("batch", 1..=u64::from(u32::MAX)).unwrap_or(1);
        let (pool, rack, host) =
            (fields.optional("pool"), fields.optional("rack"), fields.optional("host"));
        let profile: Option<Profile> = fields.optional("profile");
        let goals = fields.with("goals", goal_weights);
        let usual = match kind {
            PlanKind::Consolidation => vec![(GoalKind::Energy, 100), (GoalKind::Migration, 1)],
            PlanKind::Defragmentation => {
                vec![(GoalKind::Performance, 100), (GoalKind::Migration, 1)]
            }
            _ => profile.unwrap_or(Profile::Balanced).goals(),
        };
        let budget_ms = fields.integer("budget_ms", BUDGET_MS).unwrap_or(1_000);
        let steps = fields.integer("steps", STEPS);
        let seed = fields.integer("seed", 0..=u64::MAX).unwrap_or(1);
        let max_moves = fields.integer("max_moves", 0..=u64::from(u32::MAX));
        let price_per_move_ppm = fields.integer("price_per_move_ppm", PPM).unwrap_or(0);
        let price_per_second_ppm = fields.integer("price_per_second_ppm", PPM).unwrap_or(0);
        let at_once = fields.integer("at_once", MIGRATIONS);
        let at_once_per_host = fields.integer("at_once_per_host", MIGRATIONS);
        let at_once_per_rack = fields.integer("at_once_per_rack", MIGRATIONS);
        let on_failure = fields.or_default("on_failure");
        let approve = fields.or_default("approve");
        let needed = match kind {
            PlanKind::Moves => Some("moves"),
            PlanKind::Optimisation => Some("optimisation"),
            PlanKind::Drain | PlanKind::Maintenance => Some("hosts"),
            _ => None,
        };
        if let Some(name) = needed.filter(|name| !fields.has(name)) {
            let message = format!("{name:?} is missing, which this kind of plan is about");
            fields.at.fault_in(name, code::MISSING_FIELD, message, format!("add {name:?}"));
        }
        if kind == PlanKind::Rollback {
            let hint = "POST /v1/plans/{id}/rollback";
            fields.at.fault_in("kind", code::INVALID_VALUE, "rollbacks have their own route", hint);
        }
        fields.finish();
        Some(Self {
            kind,
            moves,
            optimisation,
            point,
            hosts,
            batch,
            pool,
            rack,
            host,
            goals: goals.unwrap_or(usual),
            budget_ms,
            steps,
            seed,
            max_moves,
            price_per_move_ppm,
            price_per_second_ppm,
            at_once,
            at_once_per_host,
            at_once_per_rack,
            on_failure,
            approve,
        })
    }
}

/// How long migrations may slow VMs down within a window.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BudgetSpec {
    /// For each VM. Left out: without limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_vm_ms: Option<u64>,
    /// For the VMs of a tenant together. Left out: without limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_tenant_ms: Option<u64>,
    #[schema(minimum = 1000, maximum = 2678400000_i64)]
    pub window_ms: u64,
}

impl Read for BudgetSpec {
    fn read<'v>(value: &'v Value<'v>, at: &mut At<'v>) -> Option<Self> {
        let mut fields = at.fields(value)?;
        let per_vm_ms = fields.integer("per_vm_ms", 0..=u64::MAX);
        let per_tenant_ms = fields.integer("per_tenant_ms", 0..=u64::MAX);
        let window_ms = fields.required_integer("window_ms", 1_000..=2_678_400_000);
        fields.finish();
        Some(Self { per_vm_ms, per_tenant_ms, window_ms: window_ms? })
    }
}
