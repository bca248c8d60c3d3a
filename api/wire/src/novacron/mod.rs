//! NovaCron's own JSON: its nodes, VMs, placements, inventories, events and errors.
//!
//! Keys, units and the handling of `null` are those of its Go structs, so that what its core
//! encodes is read and what is answered decodes into the same structs. Each type is plain data
//! with Go's zero values; what it means for the cluster is in its conversions, and only these
//! refuse values that make no sense. Two things differ from Go's decoder on purpose: keys are
//! matched in their exact spelling, and a key that comes twice is refused.

mod ai;
mod answers;
mod events;
mod failure;
mod free;
mod go;
mod inventory;
mod labels;
mod maps;
mod node;
mod placement;
mod policies;
mod policy_answers;
mod schedule;
mod simulations;
mod time;
mod vm;

pub use ai::{
    AnalyzeWorkloadRequest, AnomalyReport, BandwidthAdvice, Basis, CostAnalysis,
    DetectAnomalyRequest, HostLoad, MODEL, MetricPrediction, MetricSummary, MigrationPrediction,
    NetworkImpact, OptimizeBandwidthRequest, OptimizePerformanceRequest, OptimizeScalingRequest,
    PerformanceAdvice, PredictMigrationRequest, PredictResourcesRequest, QosFinding,
    ResourcePrediction, ScalingAdvice, ScalingDecision, WorkloadAnalysis,
};
pub use answers::{Alternative, NodeScore, PlacementDecision, ScoreBreakdown};
pub use events::{EventKind, EventResult, EventsAnswer, VmEvent, VmEvents};
pub use failure::{
    FORBIDDEN, Failure, FailureBody, INSUFFICIENT_CAPACITY, INVALID_ARGUMENT, PLACEMENT_UNAVAILABLE,
};
pub use free::Json;
pub use inventory::{Inventory, InventoryAnswer, InventoryDelta, InventoryVm, RefusedNode};
pub use labels::{label_name, label_text};
pub use maps::{host_of_map, map_dimensions, vm_of_map};
pub use node::{NodeResourceInfo, RuntimeNode};
pub use placement::{
    Constraint, ConstraintKind, Enforcement, EvaluateRequest, Gpu, GpuRequirements,
    NetworkRequirements, Node, NodeCapacity, NodeState, PlacementRequest, PlacementStrategy,
    Preference, PreferenceKind, Taint, VmSpec,
};
pub use policies::{
    EvaluationRequest, ParameterObject, PolicyConfiguration, PolicyDraft, PolicyObject,
    PolicyRollback, RuleObject, WorkloadOverNodes,
};
pub use policy_answers::{
    EvaluatedNode, Evaluation, FilterAnswer, FilterResult, FilteredNode, PolicyAnswer,
    PolicyAuditEntry, PolicyParameter, PolicyRule, PolicyValidationResult, PolicyVersion,
    RuleErrors, ScoreAnswer, ScoreResult, version_number, version_text,
};
pub use schedule::{ResourceAllocation, ScheduleAnswer, ScheduleRequest, SchedulerConfig};
pub use simulations::{
    NodeUtilization, SimulatedMove, SimulatedVm, SimulationComparison, SimulationDifference,
    SimulationRequest, SimulationResult, SimulationSummary,
};
pub use time::{Duration, Time};
pub use vm::{
    CreateVmRequest, MigrationSpec, Mount, NetworkAttachment, ReplicationSpec, VmConfig,
    VmPlacementSpec, VolumeAttachment, cores_of_shares, strategy_of_policy,
};
