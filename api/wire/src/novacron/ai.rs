//! What NovaCron asks of its AI engine, and what it is told.
//!
//! Answers say what they rest on: the model, the basis, and how many samples there were. Free maps
//! are read as far as they have numbers in them.

use super::free::Json;
use super::go::go_struct;
use super::time::Time;
use serde::Serialize;
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// Asks for the use of a resource in the future.
#[derive(Clone, Debug, Default, PartialEq, Serialize, ToSchema)]
#[serde(default)]
#[schema(as = novacron::PredictResourcesRequest)]
pub struct PredictResourcesRequest {
    pub resource_id: String,
    /// Which metrics are asked about. The values are never used: NovaCron sends a constant.
    pub metrics: Option<BTreeMap<String, Json>>,
    /// Minutes from now.
    pub prediction_horizon: i64,
}

go_struct!(PredictResourcesRequest {
    resource_id = "resource_id",
    metrics = "metrics",
    prediction_horizon = "prediction_horizon",
});

/// Asks where a VM should move.
#[derive(Clone, Debug, Default, PartialEq, Serialize, ToSchema)]
#[serde(default)]
#[schema(as = novacron::PredictMigrationRequest)]
pub struct PredictMigrationRequest {
    pub vm_id: String,
    pub source_host: String,
    pub target_hosts: Option<Vec<String>>,
    /// `dirty_page_rate` in pages of 4 KiB a second counts for the downtime.
    pub vm_metrics: Option<BTreeMap<String, Json>>,
}

go_struct!(PredictMigrationRequest {
    vm_id = "vm_id",
    source_host = "source_host",
    target_hosts = "target_hosts",
    vm_metrics = "vm_metrics",
});

/// Asks how a cluster could do better.
#[derive(Clone, Debug, Default, PartialEq, Serialize, ToSchema)]
#[serde(default)]
#[schema(as = novacron::OptimizePerformanceRequest)]
pub struct OptimizePerformanceRequest {
    pub cluster_id: String,
    pub performance_data: Option<Vec<Json>>,
    pub optimization_goals: Option<Vec<Json>>,
}

go_struct!(OptimizePerformanceRequest {
    cluster_id = "cluster_id",
    performance_data = "performance_data",
    optimization_goals = "optimization_goals",
});

/// Asks what kind of work a VM does.
#[derive(Clone, Debug, Default, PartialEq, Serialize, ToSchema)]
#[serde(default)]
#[schema(as = novacron::AnalyzeWorkloadRequest)]
pub struct AnalyzeWorkloadRequest {
    pub vm_id: String,
    pub workload_data: Option<Vec<Json>>,
}

go_struct!(AnalyzeWorkloadRequest { vm_id = "vm_id", workload_data = "workload_data" });

/// Asks whether metrics are out of the ordinary.
#[derive(Clone, Debug, Default, PartialEq, Serialize, ToSchema)]
#[serde(default)]
#[schema(as = novacron::DetectAnomalyRequest)]
pub struct DetectAnomalyRequest {
    pub resource_id: String,
    pub metrics: Option<BTreeMap<String, Json>>,
}

go_struct!(DetectAnomalyRequest { resource_id = "resource_id", metrics = "metrics" });

/// Asks whether a VM should be larger or smaller.
#[derive(Clone, Debug, Default, PartialEq, Serialize, ToSchema)]
#[serde(default)]
#[schema(as = novacron::OptimizeScalingRequest)]
pub struct OptimizeScalingRequest {
    pub vm_id: String,
    pub current_resources: Option<BTreeMap<String, Json>>,
    pub historical_data: Option<Vec<Json>>,
}

go_struct!(OptimizeScalingRequest {
    vm_id = "vm_id",
    current_resources = "current_resources",
    historical_data = "historical_data",
});

/// Asks how much bandwidth a network needs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, ToSchema)]
#[serde(default)]
#[schema(as = novacron::OptimizeBandwidthRequest)]
pub struct OptimizeBandwidthRequest {
    pub network_id: String,
    pub traffic_data: Option<Vec<Json>>,
    /// `min_X` and `max_X` are held against the metric `X`.
    pub qos_requirements: Option<BTreeMap<String, Json>>,
}

go_struct!(OptimizeBandwidthRequest {
    network_id = "network_id",
    traffic_data = "traffic_data",
    qos_requirements = "qos_requirements",
});

/// What an answer rests on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = novacron::Basis)]
pub enum Basis {
    /// Nothing: the service has not seen this resource.
    #[default]
    NoHistory,
    /// What is committed on the host at the moment.
    CurrentState,
    /// Samples that the service took in.
    History,
    /// The data of the request.
    Request,
}

/// The name of the only model there is.
pub const MODEL: &str = "naive";

/// The use of a resource in the future.
#[derive(Clone, Debug, Default, PartialEq, Serialize, ToSchema)]
#[schema(as = novacron::ResourcePrediction)]
pub struct ResourcePrediction {
    pub resource_id: String,
    /// The first metric's, by name; `null` when nothing is known.
    pub prediction: Option<f64>,
    /// From 0 to 1: how close the same model came on the samples that it rests on.
    pub confidence: f64,
    /// Every metric that was asked about.
    pub predictions: BTreeMap<String, MetricPrediction>,
    pub prediction_horizon: i64,
    pub model: &'static str,
    pub basis: Basis,
}

/// The future of one metric.
#[derive(Clone, Debug, Default, PartialEq, Serialize, ToSchema)]
#[schema(as = novacron::MetricPrediction)]
pub struct MetricPrediction {
    pub prediction: Option<f64>,
    pub confidence: f64,
    pub samples: usize,
    pub basis: Basis,
}

/// Where a VM should move.
#[derive(Clone, Debug, Default, PartialEq, Serialize, ToSchema)]
#[schema(as = novacron::MigrationPrediction)]
pub struct MigrationPrediction {
    pub vm_id: String,
    /// `null` when none of the targets will do.
    pub recommended_host: Option<String>,
    /// The same as `recommended_host`, under the name of NovaCron's fallback.
    pub target_host: Option<String>,
    pub prediction_time: Time,
    /// From 0 to 1: one half, and the other half by the lead over the next best target.
    pub confidence: f64,
    pub reasons: Vec<String>,
    /// From 0 to 1.
    pub migration_score: f64,
    pub score: f64,
    pub network_impact: NetworkImpact,
    /// Seconds during which the VM stands still.
    pub estimated_downtime: Option<f64>,
    pub cost_analysis: CostAnalysis,
    pub model: &'static str,
    pub basis: Basis,
}

/// What moving the VM takes of the network.
#[derive(Clone, Debug, Default, PartialEq, Serialize, ToSchema)]
#[schema(as = novacron::NetworkImpact)]
pub struct NetworkImpact {
    pub transferred_mib: Option<f64>,
    pub duration_seconds: Option<f64>,
    pub bandwidth_mbps: Option<f64>,
    /// Whether the rate at which the VM changes its memory was told or is assumed.
    pub dirty_rate_is_assumed: bool,
}

/// What the move changes on the bill.
#[derive(Clone, Debug, Default, PartialEq, Serialize, ToSchema)]
#[schema(as = novacron::CostAnalysis)]
pub struct CostAnalysis {
    /// The target's price for an hour less the source's; `null` when either is not known.
    pub price_difference_per_hour: Option<f64>,
}

/// A metric in a few numbers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, ToSchema)]
#[schema(as = novacron::MetricSummary)]
pub struct MetricSummary {
    pub samples: usize,
    pub mean: f64,
    pub p50: f64,
    pub p95: f64,
    pub peak: f64,
    /// Change from one sample to the next (Theil and Sen's median of slopes).
    pub slope_per_sample: f64,
    /// Standard deviation over mean.
    pub variation: f64,
}

/// Whether metrics are out of the ordinary.
#[derive(Clone, Debug, Default, PartialEq, Serialize, ToSchema)]
#[schema(as = novacron::AnomalyReport)]
pub struct AnomalyReport {
    pub resource_id: String,
    pub is_anomaly: bool,
    /// From 0 to 1; above one half is an anomaly.
    pub anomaly_score: f64,
    pub recommendations: Vec<String>,
    /// Robust z-scores of the metrics with enough history.
    pub z_scores: BTreeMap<String, f64>,
    /// Metrics with too little history to judge.
    pub not_judged: Vec<String>,
    pub model: &'static str,
    pub basis: Basis,
}

/// Whether a VM should be larger or smaller.
#[derive(Clone, Debug, Default, PartialEq, Serialize, ToSchema)]
#[schema(as = novacron::ScalingAdvice)]
pub struct ScalingAdvice {
    pub vm_id: String,
    /// One per metric of which the use is known.
    pub decisions: Vec<ScalingDecision>,
    pub confidence: f64,
    pub model: &'static str,
    pub basis: Basis,
}

/// What to do about one resource.
#[derive(Clone, Debug, Default, PartialEq, Serialize, ToSchema)]
#[schema(as = novacron::ScalingDecision)]
pub struct ScalingDecision {
    pub resource: String,
    /// `scale_up`, `scale_down` or `no_action`.
    pub action: &'static str,
    /// As given in `current_resources`.
    pub current: Option<f64>,
    pub recommended: Option<f64>,
    pub summary: MetricSummary,
    pub reason: String,
}

/// How much bandwidth a network needs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, ToSchema)]
#[schema(as = novacron::BandwidthAdvice)]
pub struct BandwidthAdvice {
    pub network_id: String,
    pub metrics: BTreeMap<String, MetricSummary>,
    /// A fifth above the 95th percentile of each bandwidth metric, or what is required if more.
    pub recommended_bandwidth: BTreeMap<String, f64>,
    pub qos: Vec<QosFinding>,
    pub confidence: f64,
    pub model: &'static str,
    pub basis: Basis,
}

/// One requirement held against the data.
#[derive(Clone, Debug, Default, PartialEq, Serialize, ToSchema)]
#[schema(as = novacron::QosFinding)]
pub struct QosFinding {
    pub requirement: String,
    pub required: f64,
    /// The 95th percentile for upper bounds and the 5th for lower ones; `null` without data.
    pub measured: Option<f64>,
    pub met: Option<bool>,
}

/// How a cluster could do better.
#[derive(Clone, Debug, Default, PartialEq, Serialize, ToSchema)]
#[schema(as = novacron::PerformanceAdvice)]
pub struct PerformanceAdvice {
    pub cluster_id: String,
    pub metrics: BTreeMap<String, MetricSummary>,
    pub recommendations: Vec<String>,
    /// Hosts with a dimension above 85 percent, fullest first, at most 20.
    pub hot_hosts: Vec<HostLoad>,
    /// Hosts with VMs and all dimensions below 20 percent, emptiest first, at most 20.
    pub idle_hosts: Vec<HostLoad>,
    /// Goals that no metric of the data speaks of.
    pub goals_without_data: Vec<String>,
    pub confidence: f64,
    pub model: &'static str,
    pub basis: Basis,
}

/// How full a host is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, ToSchema)]
#[schema(as = novacron::HostLoad)]
pub struct HostLoad {
    pub host: String,
    /// The share of the fullest dimension, from 0 to 1.
    pub utilisation: f64,
    pub vms: usize,
}

/// What kind of work a VM does.
#[derive(Clone, Debug, Default, PartialEq, Serialize, ToSchema)]
#[schema(as = novacron::WorkloadAnalysis)]
pub struct WorkloadAnalysis {
    pub vm_id: String,
    /// `cpu_intensive`, `memory_intensive`, `io_intensive`, `network_intensive`, `balanced`,
    /// `idle` or `unknown`.
    pub workload_type: &'static str,
    /// `steady`, `bursty`, `growing`, `shrinking`, `varying` or `unknown`: of the busiest metric.
    pub pattern: &'static str,
    pub metrics: BTreeMap<String, MetricSummary>,
    pub confidence: f64,
    pub model: &'static str,
    pub basis: Basis,
}
