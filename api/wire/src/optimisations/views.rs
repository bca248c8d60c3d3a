//! Answers about optimisations, fronts, engines and weights.

use super::{EngineName, EngineWord, ModeWord, ProfileWord, ScopeWord};
use crate::fault::code;
use crate::json::Value;
use crate::overview::WeightMap;
use crate::read::{At, Read};
use crate::schema::NameSchema;
use crate::words::{StrategyWord, Word, choice};
use cluster::Name;
use policy::{Profile, Weights};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// How far an optimisation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptimisationState {
    Queued,
    Running,
    Done,
    Cancelled,
    Failed,
}

choice!(OptimisationState:
    "queued" = Queued, "running" = Running, "done" = Done, "cancelled" = Cancelled,
    "failed" = Failed);
pub(crate) type StateWord = Word<OptimisationState>;

/// An optimisation: how far it is and what it found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct OptimisationView {
    pub id: String,
    pub state: StateWord,
    pub scope: ScopeWord,
    pub engine: EngineWord,
    pub mode: ModeWord,
    pub seed: u64,
    pub budget_ms: u64,
    /// Share of the budget that is spent, 0 to 1.
    pub progress: f64,
    pub elapsed_ms: u64,
    /// The cluster revision that it was worked out from.
    pub revision: u64,
    /// Better answers as they came; the first and the newest if there were many.
    pub incumbents: Vec<IncumbentView>,
    /// Goals by weight, added up; less is better.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub objective: Option<i64>,
    /// No answer has a smaller objective.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<i64>,
    /// (objective - bound) / objective.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gap: Option<f64>,
    /// optimal, target, steps, deadline, stalled or cancelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<String>,
    /// exact, search, greedy or nothing: how far down the ladder time allowed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rung: Option<String>,
    /// What the engine did and why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub how: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<u64>,
    pub goals: Vec<GoalValueView>,
    /// VMs that get a host.
    pub placements: Vec<MoveView>,
    /// VMs that leave theirs.
    pub moves: Vec<MoveView>,
    /// VMs to come that found no room, as TENANT/ID.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    /// In Pareto mode: the front at `/v1/fronts/{id}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub front: Option<String>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// An answer that was better than all before it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct IncumbentView {
    pub at_ms: u64,
    pub objective: i64,
}

/// A goal and what it comes to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct GoalValueView {
    pub goal: String,
    pub unit: String,
    pub weight: u32,
    /// Before anything moves; left out where VMs have no host yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<i64>,
    pub value: i64,
    /// No answer has less of it.
    pub bound: i64,
    /// From 0, the bound, to 1, the worst case.
    pub normalised: f64,
}

/// A VM and where it goes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MoveView {
    #[schema(value_type = NameSchema)]
    pub tenant: Name,
    #[schema(value_type = NameSchema)]
    pub vm_id: Name,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<NameSchema>)]
    pub from: Option<Name>,
    #[schema(value_type = NameSchema)]
    pub to: Name,
}

/// Optimisations that are remembered, newest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct OptimisationList {
    pub items: Vec<OptimisationView>,
}

/// Trade-offs of which none is better than another in every goal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FrontView {
    pub id: String,
    pub revision: u64,
    /// Best by the first goal first.
    pub points: Vec<FrontPointView>,
    /// Share of the box that the best and worst values of the front span, with a tenth beyond the
    /// worst, that its points dominate.
    pub hypervolume: f64,
    /// The point beyond which every goal gains less than the others lose.
    pub knee: u32,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FrontPointView {
    pub point: u32,
    pub goals: Vec<GoalValueView>,
    /// VMs that get a host, and VMs that leave theirs.
    pub placements: u32,
    pub moves: u32,
}

/// The point of a front that is best for some weights.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct NearestView {
    pub front: String,
    pub weights: BTreeMap<String, u32>,
    pub point: FrontPointView,
}

/// What applying did, and what is left to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AppliedView {
    /// VMs that have a place now.
    pub placed: Vec<MoveView>,
    /// VMs for which there is no room before the moves are done: apply again then.
    pub waiting: Vec<MoveView>,
    /// The plan that was made of the moves, approved and not begun: `/v1/plans/{id}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    /// Its migrations, in waves: those of a wave may run together.
    pub waves: Vec<Vec<MoveView>>,
    /// Migrations that no order makes safe.
    pub blocked: Vec<MoveView>,
    pub revision: u64,
}

/// The engines there are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct EngineList {
    pub engines: Vec<EngineView>,
    /// Where the measurements come from.
    pub measured_by: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct EngineView {
    pub name: EngineWord,
    /// What a step of it is.
    pub step: String,
    pub complexity: String,
    pub when: String,
    /// Whether its "no" and its "best" are proofs.
    pub proves: bool,
    /// Whether it makes fronts by itself.
    pub fronts: bool,
    pub measured: Vec<EngineMeasureView>,
}

/// What an engine reached on one problem in one time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct EngineMeasureView {
    pub hosts: u64,
    pub vms: u64,
    pub budget_ms: u64,
    pub seed: u64,
    /// Wall clock until the answer.
    pub ms: f64,
    /// Left out where nothing was found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub objective: Option<i64>,
    /// How far above the best objective of all engines on the problem, as a share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub above_best: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gap: Option<f64>,
}

/// Weights by name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ProfileList {
    pub profiles: Vec<ProfileView>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ProfileView {
    pub name: ProfileWord,
    /// For placing one VM.
    pub weights: WeightMap,
    pub strategy: StrategyWord,
    /// For optimisations.
    pub goals: BTreeMap<String, u32>,
}

impl From<Profile> for ProfileView {
    fn from(profile: Profile) -> Self {
        let goals = profile.goals().into_iter();
        Self {
            name: Word(profile),
            weights: WeightMap::from(&profile.weights()),
            strategy: Word(profile.strategy()),
            goals: goals.map(|(kind, weight)| (kind.name().to_owned(), weight)).collect(),
        }
    }
}

/// Weights for placing one VM: by name, or one by one. What is left out counts nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WeightsSpec {
    /// Instead of the others: weights and strategy of a profile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<ProfileWord>,
    #[schema(maximum = 10000, required = false)]
    pub fit: u32,
    #[schema(maximum = 10000, required = false)]
    pub affinity: u32,
    #[schema(maximum = 10000, required = false)]
    pub load: u32,
    #[schema(maximum = 10000, required = false)]
    pub locality: u32,
    #[schema(maximum = 10000, required = false)]
    pub cost: u32,
}

/// `WeightsSpec` as read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WeightsRequest {
    Profile(Profile),
    Weights(Weights),
}

impl Read for WeightsRequest {
    fn read<'v>(value: &'v Value<'v>, at: &mut At<'v>) -> Option<Self> {
        let Value::Object(members) = value else {
            at.wrong_type(value, "an object");
            return None;
        };
        if !members.iter().any(|(name, _)| name == "profile") {
            return Weights::read(value, at).map(Self::Weights);
        }
        let mut fields = at.fields(value)?;
        let profile = fields.required("profile");
        fields.finish();
        profile.map(Self::Profile)
    }
}

/// Asks which decisions other weights would have changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WhatIfSpec {
    #[serde(flatten)]
    pub weights: WeightsSpec,
    /// Decisions that are looked at, the newest. Left out: 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 1000)]
    pub last: Option<u32>,
}

/// `WhatIfSpec` as read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WhatIfRequest {
    pub weights: WeightsRequest,
    pub last: usize,
}

impl Read for WhatIfRequest {
    fn read<'v>(value: &'v Value<'v>, at: &mut At<'v>) -> Option<Self> {
        let mut fields = at.fields(value)?;
        let last = fields.integer("last", 1..=1_000).unwrap_or(100);
        let profile = fields.optional("profile");
        let weights = ["fit", "affinity", "load", "locality", "cost"]
            .map(|term| fields.integer(term, 0..=u64::from(policy::MAX_WEIGHT)).unwrap_or(0u32));
        let both = profile.is_some() && weights.iter().any(|&weight| weight > 0);
        if both {
            let hint = "leave one of them out";
            fields.at.fault_in(
                "profile",
                code::CONFLICTING_FIELDS,
                "profile and weights are given",
                hint,
            );
        }
        fields.finish();
        let weights = match profile {
            Some(profile) => WeightsRequest::Profile(profile),
            None => match Weights::new(weights) {
                Ok(weights) => WeightsRequest::Weights(weights),
                Err(error) => {
                    at.fault(code::INVALID_VALUE, error.to_string(), "give one a weight above 0");
                    return None;
                }
            },
        };
        Some(Self { weights, last })
    }
}

/// Decisions, and what they would have been.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WhatIfView {
    /// Decisions that were made again, each on the state that it was made on.
    pub decisions: u32,
    pub changed: u32,
    /// Those that would change, oldest first.
    pub changes: Vec<WouldBeView>,
    pub revision: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WouldBeView {
    pub decision_id: String,
    #[schema(value_type = NameSchema)]
    pub tenant: Name,
    #[schema(value_type = NameSchema)]
    pub vm_id: Name,
    #[schema(value_type = NameSchema)]
    pub host_id: Name,
    #[schema(value_type = NameSchema)]
    pub would_be: Name,
    /// By the other weights: the score of where it went, and of where it would go.
    pub score: i64,
    pub best_score: i64,
}

impl EngineName {
    pub const ALL: [Self; 9] = [
        Self::Auto,
        Self::Csp,
        Self::Ilp,
        Self::Greedy,
        Self::Annealing,
        Self::Genetic,
        Self::Nsga2,
        Self::Swarm,
        Self::Lns,
    ];
}
