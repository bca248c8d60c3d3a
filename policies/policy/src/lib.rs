//! What operators decide: the weights of a score, the default strategy, and policies.
//!
//! A policy is text, in NovaCron's language or as YAML, that is read into a `Document` with all
//! its mistakes found at once, compiled into a `Program`, and activated in an `ActiveSet` with
//! values for its parameters. An active set is evaluated over a `Table` of host attributes, or for
//! one host by `scalar`, and says which hosts are removed and what the others score.
//!
//! No I/O, no clock, no loops in programs, and a limit on everything. The language is described in
//! `policies/README.md`.

#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing))]

mod active;
mod check;
mod code;
mod conflicts;
mod diagnostic;
mod document;
mod evaluate;
mod expr;
mod format;
mod library;
mod profile;
mod program;
mod read;
pub mod scalar;
mod source;
mod table;
mod value;
pub mod vocabulary;
mod weights;

pub use active::{
    ActivateError, ActivePolicy, ActiveSet, Configuration, MAX_ACTIVE, MAX_SET_STEPS_PER_HOST,
    RuleIx,
};
pub use code::Steps;
pub use conflicts::{Conflict, ConflictKind, MAX_CONFLICTS};
pub use diagnostic::{Diagnostic, MAX_DIAGNOSTICS, Severity, nearest};
pub use document::{
    Action, ActionKind, Document, LogLevel, MAX_ACTIONS, MAX_ALLOWED_VALUES, MAX_EXPRESSION_NODES,
    MAX_METADATA, MAX_NESTING, MAX_PARAMETERS, MAX_RULE_WEIGHT, MAX_RULES, MAX_TEXT_BYTES, Marks,
    Parameter, ParameterType, PolicyType, Rule,
};
pub use evaluate::{DEFAULT_FUEL, EvaluateError, LogLine, Request, Scratch, Verdicts};
pub use expr::{At, Expr, ExprKind, Op, Path, Root};
pub use format::format;
pub use library::{
    Activation, AuditAction, AuditEntry, Checked, Edit, EditError, EditKind, Installed, Library,
    MAX_AUDIT, MAX_LIBRARY_BYTES, MAX_POLICIES, MAX_VERSIONS, Setting, Settings, Version,
};
pub use profile::Profile;
pub use program::{MAX_PATHS, MAX_STEPS_PER_HOST, Paths, Program, compile, load};
pub use read::{Syntax, parse, parse_expression};
pub use scalar::Fault;
pub use source::Source;
pub use table::Table;
pub use value::{MAX_MILLIS, Value};
pub use weights::{MAX_WEIGHT, WeightError, Weights};

use cluster::Strategy;
use serde::{Deserialize, Serialize};

/// What a soft filter takes off a host, times the weight of its rule.
pub const SOFT_FILTER_POINTS: f64 = 100.0;

/// The policy that is in force. Replaced as a whole; each replacement has a new revision.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Policy {
    pub revision: u64,
    pub weights: Weights,
    /// Used by requests that name no strategy.
    pub strategy: Strategy,
}
