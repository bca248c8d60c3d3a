//! Optimisations and fronts in JSON: what is asked, how far it is, what came of it.

mod setting;
mod views;

pub use setting::GoalSettingSpec;
pub use views::{
    AppliedView, EngineList, EngineMeasureView, EngineView, FrontPointView, FrontView,
    GoalValueView, IncumbentView, MoveView, NearestView, OptimisationList, OptimisationState,
    OptimisationView, ProfileList, ProfileView, WeightsRequest, WeightsSpec, WhatIfRequest,
    WhatIfSpec, WhatIfView, WouldBeView,
};

use crate::fault::code;
use crate::json::Value;
use crate::limits::MAX_BATCH;
use crate::read::{At, Read, Step};
use crate::schema::NameSchema;
use crate::vm::VmSpec;
use crate::words::{Word, choice};
use cluster::{GoalKind, GoalSetting, Name, Vm};
use policy::Profile;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// Which VMs are looked for a host for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptimisationScope {
    Pending,
    Group,
    Pool,
    Cluster,
}

/// One answer, or the trade-offs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OptimisationMode {
    #[default]
    Weighted,
    Pareto,
}

/// How to search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EngineName {
    #[default]
    Auto,
    Csp,
    Ilp,
    Greedy,
    Annealing,
    Genetic,
    Nsga2,
    Swarm,
    Lns,
}

choice!(OptimisationScope:
    "pending" = Pending, "group" = Group, "pool" = Pool, "cluster" = Cluster);
choice!(OptimisationMode: "weighted" = Weighted, "pareto" = Pareto);
choice!(EngineName:
    "auto" = Auto, "csp" = Csp, "ilp" = Ilp, "greedy" = Greedy, "annealing" = Annealing,
    "genetic" = Genetic, "nsga2" = Nsga2, "swarm" = Swarm, "lns" = Lns);
choice!(Profile:
    "latency" = Latency, "balanced" = Balanced, "throughput" = Throughput, "energy" = Energy,
    "cost" = Cost);
pub(crate) type ScopeWord = Word<OptimisationScope>;
pub(crate) type ModeWord = Word<OptimisationMode>;
pub(crate) type EngineWord = Word<EngineName>;
pub(crate) type ProfileWord = Word<Profile>;

/// Longest search, in milliseconds and in steps.
const BUDGET_MS: std::ops::RangeInclusive<u64> = 1..=600_000;
const STEPS: std::ops::RangeInclusive<u64> = 1..=1_000_000_000_000;
const POINTS: std::ops::RangeInclusive<u64> = 2..=200;
const MAX_WEIGHT: u64 = 10_000;
/// Most goals that a front is made of: more trade-offs than four nobody can look at.
pub const MOST_FRONT_GOALS: usize = 4;

/// Asks for hosts for many VMs at once, by what matters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OptimisationSpec {
    /// `pending` looks at `vms` only; the others also at placed VMs of the group, on hosts of the
    /// pool, or at all of them. Left out: `pending` where VMs are given, else `cluster`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<ScopeWord>,
    /// VMs that have no host yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(max_items = 10000)]
    pub vms: Vec<VmSpec>,
    /// The tenant of the group. Left out: `default`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<NameSchema>)]
    pub tenant: Option<Name>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<NameSchema>)]
    pub group: Option<Name>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<NameSchema>)]
    pub pool: Option<Name>,
    /// Left out: `auto`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<EngineWord>,
    /// Weights of goals: energy, cost, latency, reliability, performance, balance, thermal, carbon,
    /// migration. Left out: those of the profile.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub goals: BTreeMap<String, u32>,
    /// Left out: `balanced`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<ProfileWord>,
    /// `pareto` makes a front of two to four goals. Left out: `weighted`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<ModeWord>,
    /// About so many points of a front. Left out: 21.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 2, maximum = 200)]
    pub points: Option<u32>,
    /// Left out: 1000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 600000)]
    pub budget_ms: Option<u64>,
    /// Steps of the engine instead of time; the same answer every time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 1000000000000_i64)]
    pub steps: Option<u64>,
    /// Left out: 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Placed VMs that may be moved at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_moves: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings: Option<GoalSettingSpec>,
}

/// `OptimisationSpec` as read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OptimisationRequest {
    pub scope: OptimisationScope,
    pub vms: Vec<Vm>,
    pub tenant: Option<Name>,
    pub group: Option<Name>,
    pub pool: Option<Name>,
    pub engine: EngineName,
    pub goals: Vec<(GoalKind, u32)>,
    pub mode: OptimisationMode,
    pub points: u32,
    pub budget_ms: u64,
    pub steps: Option<u64>,
    pub seed: u64,
    pub max_moves: Option<u32>,
    pub settings: GoalSetting,
}

const DEFAULT_BUDGET_MS: u64 = 1_000;
const DEFAULT_POINTS: u32 = 21;

impl Read for OptimisationRequest {
    fn read<'v>(value: &'v Value<'v>, at: &mut At<'v>) -> Option<Self> {
        let mut fields = at.fields(value)?;
        let vms: Vec<Vm> = fields.list("vms", MAX_BATCH);
        let scope = fields.optional("scope");
        let usual = match vms.is_empty() {
            true => OptimisationScope::Cluster,
            false => OptimisationScope::Pending,
        };
        let scope = scope.unwrap_or(usual);
        let tenant = fields.optional("tenant");
        let group = fields.optional("group");
        let pool = fields.optional("pool");
        let engine = fields.or_default("engine");
        let profile: Option<Profile> = fields.optional("profile");
        let goals = fields.with("goals", goal_weights);
        if goals.is_some() && profile.is_some() {
            let hint = "leave one of them out";
            fields.at.fault_in(
                "profile",
                code::CONFLICTING_FIELDS,
                "profile and goals are both given",
                hint,
            );
        }
        let goals = goals.unwrap_or_else(|| profile.unwrap_or(Profile::Balanced).goals());
        let mode: OptimisationMode = fields.or_default("mode");
        let points = fields.integer("points", POINTS).unwrap_or(DEFAULT_POINTS);
        let budget_ms = fields.integer("budget_ms", BUDGET_MS).unwrap_or(DEFAULT_BUDGET_MS);
        let steps = fields.integer("steps", STEPS);
        let seed = fields.integer("seed", 0..=u64::MAX).unwrap_or(1);
        let max_moves = fields.integer("max_moves", 0..=u64::from(u32::MAX));
        let settings = fields.with("settings", setting::read).unwrap_or_default();
        let missing = match scope {
            OptimisationScope::Pending if vms.is_empty() => Some("vms"),
            OptimisationScope::Group if group.is_none() => Some("group"),
            OptimisationScope::Pool if pool.is_none() => Some("pool"),
            _ => None,
        };
        if let Some(name) = missing {
            let message = format!("{name:?} is missing, which this scope is about");
            fields.at.fault_in(name, code::MISSING_FIELD, message, format!("add {name:?}"));
        }
        let counting = goals.iter().filter(|(_, weight)| *weight > 0).count();
        if mode == OptimisationMode::Pareto && !(2..=MOST_FRONT_GOALS).contains(&counting) {
            let message = format!("{counting} goals count, a front is made of 2 to 4");
            fields.at.fault_in("goals", code::INVALID_VALUE, message, "name 2 to 4 goals");
        }
        fields.finish();
        Some(Self {
            scope,
            vms,
            tenant,
            group,
            pool,
            engine,
            goals,
            mode,
            points,
            budget_ms,
            steps,
            seed,
            max_moves,
            settings,
        })
    }
}

/// Weights by the names of goals; at least one counts.
pub(crate) fn goal_weights<'v>(
    value: &'v Value<'v>,
    at: &mut At<'v>,
) -> Option<Vec<(GoalKind, u32)>> {
    let mut goals = Vec::new();
    for (name, value) in at.members(value)? {
        at.within(Step::Field(Cow::Borrowed(name)), |at| {
            let Some(kind) = GoalKind::named(name) else {
                let known = GoalKind::ALL.map(GoalKind::name);
                at.unknown_choice(name, &known);
                return;
            };
            let weight = at.integer(value, 0..=MAX_WEIGHT);
            goals.extend(weight.and_then(|weight| Some((kind, u32::try_from(weight).ok()?))));
        });
    }
    if goals.iter().all(|(_, weight)| *weight == 0) && at.is_faultless() {
        at.fault(code::INVALID_VALUE, "no goal counts", "give at least one a weight above 0");
    }
    Some(goals)
}
