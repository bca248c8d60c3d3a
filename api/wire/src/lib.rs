//! What goes over HTTP: request and response types, and the strict reader of bodies.
//!
//! The only crate that knows JSON names. Reading goes from bytes straight to the types of
//! `cluster`, collects every fault of a body with its path, and never panics whatever the bytes
//! are. Writing goes through plain serde structs whose schemas make up the OpenAPI document.
//! Status codes are named here because problems carry them; everything else about HTTP is
//! `server`'s.

#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::indexing_slicing, clippy::arithmetic_side_effects)
)]

mod advice;
mod bindings;
pub mod certify;
mod constraints;
mod decision;
mod explain;
mod fault;
mod fields;
mod hardware;
mod host;
mod json;
mod limits;
pub mod novacron;
mod number;
mod optimisations;
mod overview;
mod placement;
mod plans;
mod policies;
mod problem;
mod quantities;
mod read;
mod rules;
mod schema;
mod slots;
mod suggest;
mod topology;
mod vm;
mod words;

pub use advice::{AdviceEntry, AdviceTotals, AdviceView};
pub use bindings::{
    AcceleratorBindingView, BindingsView, BoundView, GpuBindingView, InsideView, MigBindingView,
    NodeBindingView, NodeHoleView, PciFunctionView,
};
pub use constraints::{
    ConstraintKind, ConstraintList, ConstraintParameter, ConstraintSpec, ConstraintType,
    ConstraintView, HostSetSpec, LinkSpec, VmSetSpec, WithinSpec, constraint_types,
};
pub use explain::{
    ChangeView, ComparisonView, CounterfactualView, ExplainRequest, ExplainSpec, ExplainedVm,
    ExplanationView, ObstacleView, ReasonView, ScoredView, UnknownView,
};
pub use fault::Fault;
pub use hardware::{
    AcceleratorSpec, GpuSpec, HardwareSpec, HugePagesSpec, MigProfileSpec, NicSpec, NumaNodeSpec,
    PciePortSpec,
};
pub use host::{HostHealth, HostSpec, HostView, LatencySpec, PowerSpec, PriceSpec};
pub use json::Value;
pub use limits::Limits;
pub use optimisations::{
    AppliedView, EngineList, EngineMeasureView, EngineName, EngineView, FrontPointView, FrontView,
    GoalSettingSpec, GoalValueView, IncumbentView, MOST_FRONT_GOALS, MoveView, NearestView,
    OptimisationList, OptimisationMode, OptimisationRequest, OptimisationScope, OptimisationSpec,
    OptimisationState, OptimisationView, ProfileList, ProfileView, WeightsRequest, WeightsSpec,
    WhatIfRequest, WhatIfSpec, WhatIfView, WouldBeView,
};
pub use overview::{
    BulkAnswer, BulkFailure, CapacityView, Event, EventPage, Page, PoolCapacity, StateHash,
    StreamedEvent, WeightMap,
};
pub use placement::{
    AlternativeView, BatchAnswer, BatchOutcome, BatchRequest, BatchSpec, JointView, Outcome,
    PlaceRequest, PlacementAnswer, PlacementSpec, RejectionCounts, ReservationState,
    ReservationView, ScoreParts, reason_word,
};
pub use plans::{
    BlockedView, BudgetSpec, BudgetView, HostDiffView, MigrationStatus, MigrationView, MoveRequest,
    MoveSpec, OnFailure, PlanDiffView, PlanKind, PlanList, PlanRequest, PlanSpec, PlanStatus,
    PlanTotalsView, PlanView, SpentView,
};
pub use policies::{
    ActivationRequest, ActivationSpec, ConflictList, ConflictView, CostView, DiagnosticView,
    DryRunView, ParameterValues, ParameterView, PolicyAnswer, PolicyAudit, PolicyAuditView,
    PolicyList, PolicyRequest, PolicySpec, PolicyValidation, PolicyVersionView, PolicyVersions,
    PolicyView, RejectedFileView, RollbackRequest, RollbackSpec, RuleDryRun, RuleRef, TuneRequest,
    TuneSpec, WeightChangeView, WeightHistoryView, WeightRollbackRequest, WeightRollbackSpec,
};
pub use problem::{CODES, Code, Problem};
pub use quantities::Quantities;
pub use read::{At, Read, read, read_lines};
pub use rules::{AffinitySpec, DataSpec, SelectorSpec, SpreadSpec, TaintSpec, TolerationSpec};
pub use schema::{LabelsSchema, LevelSchema, NameSchema, complete};
pub use slots::{BundleView, ClassPriceView, ShapeSlots, SlotsView, read_shape};
pub use topology::{
    AcceleratorRequestSpec, GpuRequestSpec, MigRequestSpec, NicRequestSpec, TopologySpec,
};
pub use vm::{
    AdoptRequest, AdoptSpec, HintsSpec, ResizeAnswer, ResizeOutcome, ResizeRequest, ResizeSpec,
    VmSpec, VmView,
};
pub use words::{Choice, HostStateWord, Word};
