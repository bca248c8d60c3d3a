//! The only state that changes: commands, `apply`, group commit, recovery and replay.
//!
//! A request is worked out on the living state, checked by the verifier, applied, logged in a
//! batch, and answered when the log has it. The engine reads no clock and knows no HTTP; callers
//! pass the time, and the log is whatever implements `store::CommandLog`.
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]
#![cfg_attr(
    test,
    allow(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects
    )
)]

mod apply;
mod check;
mod command;
mod core;
mod decide;
mod drafts;
mod drift;
mod effects;
mod engine;
mod fleet;
mod frozen;
mod health;
mod history;
mod pace;
mod parts;
mod plans;
pub mod planted;
mod prepared;
mod proposal;
mod recover;
mod report;
mod request;
mod slots;
mod snapshots;
mod state;
mod tables;
mod tied;
mod together;
mod trial;
mod weights;
mod what_if;
mod writer;

pub use crate::core::Core;
pub use apply::{Broken, apply};
pub use check::{HOLD_TTL_MS, MAX_BATCH, MAX_REPORTS};
pub use command::{Adoption, Command, Entry, Hold, Placing, Resizing};
pub use drafts::{Drafted, Terms, WantedMove};
pub use drift::{Drift, Observed, drift};
pub use effects::{Change, Changes};
pub use engine::{Aid, Committed, Engine, Options};
pub use fleet::{Fleet, HostRows, host_attribute};
pub use frozen::Frozen;
pub use health::Monitor;
pub use history::{History, Replay};
pub use plans::{
    BlockedMove, DisruptionBudget, Draft, MAX_OPEN_PLANS, MAX_STEPS, Migration, MigrationReport,
    MigrationStatus, OnFailure, PlanAction, PlanChange, PlanEntry, PlanId, PlanKind, PlanStatus,
    Planned, Plans, Spending, Started, StepId, UnderWay, WaveStart, Worth,
};
pub use prepared::{PrepareError, Prepared, Tried};
pub use proposal::demand_on;
pub use recover::{OpenError, check_sums};
pub use report::{Gone, Inventory, Report, Told, UseReport, UseReports, VmFact, VmNews, VmReport};
pub use request::{
    Call, IdempotencyKey, Outcome, PlaceRequest, Placement, PutMode, Refusal, Reply, Request,
    fingerprint,
};
pub use snapshots::{Encoded, Freeze};
pub use state::{ConstraintEntry, DecisionId, Health, HostEntry, State, VmEntry};
pub use tables::{Rows, Tables};
pub use trial::{RuleTrial, Sample, Trial};
pub use weights::{WeightChange, WeightHistory};
pub use what_if::{WhatIf, WouldBe};
pub use writer::{Answer, Caller, Clock, Event, Listener, Writer};
