//! Simulations: where VMs would go on nodes that need not exist, and how two runs differ.

use super::free::Json;
use super::policies::{PolicyConfiguration, read_maps};
use super::time::Time;
use crate::json::Value;
use crate::read::{At, Read};
use serde::Serialize;
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// Policies that one simulation may name.
const MAX_POLICIES: usize = 64;

/// Asks where VMs would go.
#[derive(Clone, Debug, Default, PartialEq, Serialize, ToSchema)]
#[schema(as = novacron::SimulationRequest)]
pub struct SimulationRequest {
    #[schema(required = false)]
    pub name: String,
    #[schema(required = false)]
    pub description: String,
    /// Attributes of VMs, placed in this order.
    #[schema(value_type = Vec<Object>, max_items = 20_000)]
    pub vms: Vec<Json>,
    #[schema(value_type = Vec<Object>, max_items = 20_000)]
    pub nodes: Vec<Json>,
    /// Policies to place by. Left out: those that are active.
    #[schema(required = false, value_type = Vec<String>, max_items = 64)]
    pub policy_ids: Option<Vec<String>>,
    /// How they are activated here, by policy.
    #[schema(required = false, value_type = Object)]
    #[serde(skip)]
    pub config_overrides: BTreeMap<String, PolicyConfiguration>,
}

impl Read for SimulationRequest {
    fn read<'v>(value: &'v Value<'v>, at: &mut At<'v>) -> Option<Self> {
        let mut fields = at.fields(value)?;
        let name = fields.or_default("name");
        let description = fields.or_default("description");
        let vms = fields.required_with("vms", read_maps);
        let nodes = fields.required_with("nodes", read_maps);
        let policy_ids = fields.with("policy_ids", |value, at| at.list(value, MAX_POLICIES));
        let config_overrides = fields.or_default("config_overrides");
        fields.ignore_others();
        let (vms, nodes) = (vms?, nodes?);
        Some(Self { name, description, vms, nodes, policy_ids, config_overrides })
    }
}

/// What came of a simulation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, ToSchema)]
#[schema(as = novacron::SimulationResult)]
pub struct SimulationResult {
    pub id: String,
    pub name: String,
    pub description: String,
    pub timestamp: Time,
    /// The policies in the order of evaluation.
    pub policy_ids: Vec<String>,
    /// In the order of the VMs. Left empty in lists.
    pub results: Vec<SimulatedVm>,
    pub summary: SimulationSummary,
    /// Attributes that the policies read and the service has no place for: null here, as they are
    /// when it places VMs.
    pub unknown_attributes: Vec<String>,
}

/// Where one VM would go.
#[derive(Clone, Debug, Default, PartialEq, Serialize, ToSchema)]
#[schema(as = novacron::SimulatedVM)]
pub struct SimulatedVm {
    pub vm_id: String,
    /// Empty: nowhere.
    pub node_id: String,
    /// No node was left for it.
    pub filtered: bool,
    pub filter_reason: String,
    /// What the service scored the node: the weighted terms and the points of the policies.
    pub score: f64,
    /// The points of each policy.
    pub policy_results: BTreeMap<String, f64>,
}

/// A simulation in numbers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, ToSchema)]
#[schema(as = novacron::SimulationSummary)]
pub struct SimulationSummary {
    pub total_vms: u32,
    pub total_nodes: u32,
    pub total_placements: u32,
    pub failed_placements: u32,
    pub placement_percentage: f64,
    /// Over the VMs that were placed.
    pub average_score: f64,
    /// By node.
    pub node_utilization: BTreeMap<String, NodeUtilization>,
}

/// How full a node ends up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, ToSchema)]
#[schema(as = novacron::NodeUtilization)]
pub struct NodeUtilization {
    pub vm_count: u32,
    /// From 0 to 100.
    pub cpu_utilization: f64,
    pub memory_utilization: f64,
}

/// How two simulations differ.
#[derive(Clone, Debug, Default, PartialEq, Serialize, ToSchema)]
#[schema(as = novacron::SimulationComparison)]
pub struct SimulationComparison {
    pub a: String,
    pub b: String,
    /// What `b` has more than `a`.
    pub difference: SimulationDifference,
    /// VMs that are in both and not on the same node.
    pub moved_count: u32,
    /// The first thousand of them.
    pub moved: Vec<SimulatedMove>,
    /// VMs that are in one only.
    pub only_in_a: u32,
    pub only_in_b: u32,
    /// Busiest node less idlest, in percent of CPU.
    pub cpu_spread_a: f64,
    pub cpu_spread_b: f64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, ToSchema)]
#[schema(as = novacron::SimulationDifference)]
pub struct SimulationDifference {
    pub total_placements: i64,
    pub failed_placements: i64,
    pub placement_percentage: f64,
    pub average_score: f64,
}

/// A VM that is elsewhere in `b`. Empty: nowhere.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = novacron::SimulatedMove)]
pub struct SimulatedMove {
    pub vm_id: String,
    pub node_a: String,
    pub node_b: String,
}

impl SimulationComparison {
    const MOVES: usize = 1_000;

    pub fn new(a: &SimulationResult, b: &SimulationResult) -> Self {
        let of_b: BTreeMap<&str, &str> =
            b.results.iter().map(|it| (it.vm_id.as_str(), it.node_id.as_str())).collect();
        let (mut moved, mut moved_count, mut common) = (Vec::new(), 0u32, 0u32);
        for it in &a.results {
            let Some(node_b) = of_b.get(it.vm_id.as_str()) else { continue };
            common = common.saturating_add(1);
            if *node_b == it.node_id {
                continue;
            }
            moved_count = moved_count.saturating_add(1);
            if moved.len() < Self::MOVES {
                let (vm_id, node_a) = (it.vm_id.clone(), it.node_id.clone());
                moved.push(SimulatedMove { vm_id, node_a, node_b: (*node_b).to_owned() });
            }
        }
        let (of_a, of_b) = (&a.summary, &b.summary);
        let more = |a: u32, b: u32| i64::from(b).saturating_sub(i64::from(a));
        Self {
            a: a.id.clone(),
            b: b.id.clone(),
            difference: SimulationDifference {
                total_placements: more(of_a.total_placements, of_b.total_placements),
                failed_placements: more(of_a.failed_placements, of_b.failed_placements),
                placement_percentage: of_b.placement_percentage - of_a.placement_percentage,
                average_score: of_b.average_score - of_a.average_score,
            },
            moved_count,
            moved,
            only_in_a: of_a.total_vms.saturating_sub(common),
            only_in_b: of_b.total_vms.saturating_sub(common),
            cpu_spread_a: of_a.cpu_spread(),
            cpu_spread_b: of_b.cpu_spread(),
        }
    }
}

impl SimulationSummary {
    fn cpu_spread(&self) -> f64 {
        let loads = || self.node_utilization.values().map(|node| node.cpu_utilization);
        if self.node_utilization.is_empty() {
            return 0.0;
        }
        loads().fold(0.0, f64::max) - loads().fold(f64::MAX, f64::min)
    }
}
