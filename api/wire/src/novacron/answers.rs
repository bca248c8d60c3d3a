//! What NovaCron's placement interface answers: decisions and scored nodes.

use super::free::Json;
use super::go::{go_struct, is_zero, no_entries};
use super::placement::Node;
use super::time::Time;
use serde::Serialize;
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// Where a VM would go, and why.
#[derive(Clone, Debug, Default, PartialEq, Serialize, ToSchema)]
#[schema(as = novacron::PlacementDecision)]
pub struct PlacementDecision {
    pub request_id: String,
    pub vm_id: String,
    pub selected_node: String,
    /// Above 0, at most 1.
    pub score: f64,
    /// Above 0, at most 1: half and half of the lead over the next best node.
    pub confidence: f64,
    pub explanation: String,
    /// The next best nodes, at most three, best first.
    pub alternatives: Option<Vec<Alternative>>,
    pub timestamp: Time,
    #[serde(skip_serializing_if = "no_entries")]
    pub metadata: Option<BTreeMap<String, Json>>,
}

go_struct!(PlacementDecision {
    request_id = "request_id",
    vm_id = "vm_id",
    selected_node = "selected_node",
    score = "score",
    confidence = "confidence",
    explanation = "explanation",
    alternatives = "alternatives",
    timestamp = "timestamp",
    metadata = "metadata",
});

/// A node that would have done too.
#[derive(Clone, Debug, Default, PartialEq, Serialize, ToSchema)]
#[schema(as = novacron::Alternative)]
pub struct Alternative {
    pub node_id: String,
    pub score: f64,
    pub explanation: String,
}

go_struct!(Alternative { node_id = "node_id", score = "score", explanation = "explanation" });

/// What a node is worth for a VM.
#[derive(Clone, Debug, Default, PartialEq, Serialize, ToSchema)]
#[schema(as = novacron::NodeScore)]
pub struct NodeScore {
    pub node: Option<Node>,
    /// Above 0 and at most 1 where the node is feasible, otherwise 0.
    pub score: f64,
    pub breakdown: ScoreBreakdown,
    pub feasible: bool,
    /// Why the node is not feasible.
    #[serde(skip_serializing_if = "is_zero")]
    pub reason: String,
}

go_struct!(NodeScore {
    node = "node",
    score = "score",
    breakdown = "breakdown",
    feasible = "feasible",
    reason = "reason",
});

/// The parts of a score, each from 0 to 1.
#[derive(Clone, Debug, Default, PartialEq, Serialize, ToSchema)]
#[schema(as = novacron::ScoreBreakdown)]
pub struct ScoreBreakdown {
    pub resource_score: f64,
    pub constraint_score: f64,
    pub preference_score: f64,
    pub health_score: f64,
    #[serde(skip_serializing_if = "is_zero")]
    pub cost_score: f64,
    #[serde(skip_serializing_if = "is_zero")]
    pub location_score: f64,
}

go_struct!(ScoreBreakdown {
    resource_score = "resource_score",
    constraint_score = "constraint_score",
    preference_score = "preference_score",
    health_score = "health_score",
    cost_score = "cost_score",
    location_score = "location_score",
});
