//! Answers about plans.

use super::{BudgetSpec, MigrationStatusWord, OnFailureWord, PlanKindWord, PlanStatusWord};
use crate::quantities::Quantities;
use crate::schema::NameSchema;
use cluster::Name;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Migrations in waves, and how far they are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PlanView {
    pub id: String,
    pub kind: PlanKindWord,
    pub status: PlanStatusWord,
    /// Why it is paused, stale or incomplete.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub because: String,
    /// What it comes to.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
    #[schema(value_type = NameSchema)]
    pub actor: Name,
    pub created_at_ms: u64,
    pub changed_at_ms: u64,
    /// The cluster's revision that it was made from.
    pub based_on: u64,
    /// The hosts that it empties, if that is what it is for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<NameSchema>)]
    pub hosts: Vec<Name>,
    /// The migrations of a wave may run together, in any order; the next wave begins when all of
    /// them are reported. Left out in lists.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waves: Vec<Vec<MigrationView>>,
    /// Waves that have begun.
    pub begun: u32,
    /// Moves that are wanted and not possible.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocked: Vec<BlockedView>,
    pub totals: PlanTotalsView,
    pub on_failure: OnFailureWord,
    /// The plan that turns this one round.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rolled_back_by: Option<String>,
    /// The plan that this one turns round.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rolls_back: Option<String>,
    /// Goals by weight before and after the plan; less is better.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub objective_before: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub objective: Option<i64>,
    /// No plan has a smaller objective.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<i64>,
    /// (objective - bound) / objective.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gap: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<String>,
    /// Hosts that are empty after it, and hosts that were.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<NameSchema>)]
    pub power_down: Vec<Name>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<NameSchema>)]
    pub wake: Vec<Name>,
    /// The cluster's revision when this was read.
    pub revision: u64,
}

/// One VM on its way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MigrationView {
    #[schema(value_type = NameSchema)]
    pub tenant: Name,
    #[schema(value_type = NameSchema)]
    pub vm_id: Name,
    #[schema(value_type = NameSchema)]
    pub from: Name,
    #[schema(value_type = NameSchema)]
    pub to: Name,
    pub status: MigrationStatusWord,
    /// What it is for.
    pub why: String,
    /// Why it failed or did not begin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    pub memory_mib: u64,
    /// How long the VM is slowed down, and how long it stands still, as far as can be said before.
    pub brownout_ms: u64,
    pub downtime_ms: u64,
    /// By how much the objective falls with this step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gain: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at_ms: Option<u64>,
}

/// A move that is wanted and not possible.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BlockedView {
    #[schema(value_type = NameSchema)]
    pub tenant: Name,
    #[schema(value_type = NameSchema)]
    pub vm_id: Name,
    #[schema(value_type = NameSchema)]
    pub from: Name,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<NameSchema>)]
    pub to: Option<Name>,
    pub why: String,
}

/// A plan in numbers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PlanTotalsView {
    pub migrations: u32,
    pub waiting: u32,
    pub running: u32,
    pub done: u32,
    /// Failed, left out or cancelled.
    pub not_done: u32,
    pub rolled_back: u32,
    pub memory_mib: u64,
    pub brownout_ms: u64,
    pub downtime_ms: u64,
    /// By how much the objective falls, where it was searched for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gain: Option<i64>,
    /// The exchange rate: what a move and a second of brown-out buy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gain_per_move: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gain_per_second: Option<f64>,
}

/// Plans that are kept, newest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PlanList {
    pub items: Vec<PlanView>,
    pub revision: u64,
}

/// What is different after what is left of a plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PlanDiffView {
    pub id: String,
    pub status: PlanStatusWord,
    /// Hosts that VMs leave or come to, by name.
    pub hosts: Vec<HostDiffView>,
    /// VMs that are on another host afterwards.
    pub moved: u32,
    pub revision: u64,
}

/// One host before and after.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct HostDiffView {
    #[schema(value_type = NameSchema)]
    pub host_id: Name,
    pub vms_before: u32,
    pub vms_after: u32,
    pub used_before: Quantities,
    pub used_after: Quantities,
    /// TENANT/ID.
    pub leaves: Vec<String>,
    pub arrives: Vec<String>,
}

/// The disruption budget, and who has spent of it within the window.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BudgetView {
    #[serde(flatten)]
    pub budget: BudgetSpec,
    /// By VM, most first; at most 100.
    pub spent: Vec<SpentView>,
    pub revision: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SpentView {
    #[schema(value_type = NameSchema)]
    pub tenant: Name,
    #[schema(value_type = NameSchema)]
    pub vm_id: Name,
    pub brownout_ms: u64,
}
