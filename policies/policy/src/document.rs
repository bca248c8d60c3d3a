//! A policy document: what both notations are read into and can be written from.

use crate::{At, Expr, Value};
use serde::{Deserialize, Serialize};
use smol_str::SmolStr;
use std::collections::BTreeMap;

/// Longest text of one policy, in bytes.
pub const MAX_TEXT_BYTES: usize = 256 * 1024;
/// Most nodes of one expression; bounds every recursion over it.
pub const MAX_EXPRESSION_NODES: usize = 512;
/// How deep brackets and signs may nest.
pub const MAX_NESTING: usize = 64;
pub const MAX_RULES: usize = 256;
pub const MAX_ACTIONS: usize = 16;
pub const MAX_PARAMETERS: usize = 64;
pub const MAX_METADATA: usize = 64;
pub const MAX_ALLOWED_VALUES: usize = 256;
pub const MAX_RULE_WEIGHT: u32 = 10_000;

/// One policy as it was written, defaults filled in.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    pub name: String,
    pub id: String,
    pub kind: PolicyType,
    pub description: Option<String>,
    pub metadata: BTreeMap<String, String>,
    /// The policy applies where this is true; `None` applies always.
    pub target: Option<Expr>,
    pub parameters: Vec<Parameter>,
    pub rules: Vec<Rule>,
    pub marks: Marks,
}

impl Document {
    /// The id that a policy without one has: lower case, blanks to dashes, the rest dropped.
    pub fn id_from_name(name: &str) -> String {
        let lower = name.to_lowercase().replace(' ', "-");
        lower.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-').collect()
    }

    pub fn parameter(&self, name: &str) -> Option<&Parameter> {
        self.parameters.iter().find(|parameter| parameter.name == name)
    }
}

/// What a policy is asked about.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum PolicyType {
    #[default]
    Placement,
    Migration,
    ResourceAllocation,
    Maintenance,
    /// Counts for placements and for migrations.
    Composite,
}

impl PolicyType {
    pub const ALL: [PolicyType; 5] = [
        PolicyType::Placement,
        PolicyType::Migration,
        PolicyType::ResourceAllocation,
        PolicyType::Maintenance,
        PolicyType::Composite,
    ];

    pub fn name(self) -> &'static str {
        match self {
            PolicyType::Placement => "placement",
            PolicyType::Migration => "migration",
            PolicyType::ResourceAllocation => "resource_allocation",
            PolicyType::Maintenance => "maintenance",
            PolicyType::Composite => "composite",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Whether policies of this type count when `asked` is the question.
    pub fn counts_for(self, asked: PolicyType) -> bool {
        self == asked
            || self == PolicyType::Composite
                && matches!(asked, PolicyType::Placement | PolicyType::Migration)
    }
}

/// A value that operators may change without touching the text.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    pub name: SmolStr,
    pub kind: ParameterType,
    pub description: Option<String>,
    /// Without one, a value has to be given when the policy is activated.
    pub default: Option<Value>,
    pub min: Option<f64>,
    pub max: Option<f64>,
    /// Empty allows every value.
    pub allowed: Vec<Value>,
    pub marks: Marks,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ParameterType {
    #[default]
    String,
    Int,
    Float,
    Bool,
}

impl ParameterType {
    pub const ALL: [ParameterType; 4] =
        [ParameterType::String, ParameterType::Int, ParameterType::Float, ParameterType::Bool];

    pub fn name(self) -> &'static str {
        match self {
            ParameterType::String => "string",
            ParameterType::Int => "int",
            ParameterType::Float => "float",
            ParameterType::Bool => "bool",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    pub fn accepts(self, value: &Value) -> bool {
        match (self, value) {
            (ParameterType::String, Value::Text(_)) | (ParameterType::Bool, Value::Bool(_)) => true,
            (ParameterType::Float, Value::Number(_)) => true,
            (ParameterType::Int, Value::Number(number)) => number.trunc() == *number,
            _ => false,
        }
    }
}

impl Parameter {
    /// Says what is wrong with `value`, and what would be right.
    pub fn check(&self, value: &Value) -> Result<(), String> {
        if !self.kind.accepts(value) {
            return Err(format!("{value} is not of type {}", self.kind.name()));
        }
        if let Value::Number(number) = value {
            if let Some(min) = self.min.filter(|min| number < min) {
                return Err(format!("{number} is below the least allowed, {min}"));
            }
            if let Some(max) = self.max.filter(|max| number > max) {
                return Err(format!("{number} is above the most allowed, {max}"));
            }
        }
        if !self.allowed.is_empty() && !self.allowed.contains(value) {
            let allowed: Vec<String> = self.allowed.iter().map(Value::to_string).collect();
            return Err(format!("{value} is not one of {}", allowed.join(", ")));
        }
        Ok(())
    }
}

/// When the condition is true for a host, the actions are taken.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    pub name: String,
    pub id: String,
    pub description: Option<String>,
    pub priority: i32,
    /// Multiplies the points of the rule.
    pub weight: u32,
    /// `None` where it is not written: filters then remove the host.
    pub hard_constraint: Option<bool>,
    pub when: Expr,
    pub then: Vec<Action>,
    pub marks: Marks,
}

impl Rule {
    /// Whether the rule's filters remove a host rather than take points off it.
    pub fn removes(&self) -> bool {
        self.hard_constraint.unwrap_or(true)
    }

    /// What its filter gives as the reason, if it has one.
    pub fn filter_reason(&self) -> Option<&str> {
        self.then.iter().find_map(|action| match &action.kind {
            ActionKind::Filter { reason } => Some(reason.as_str()),
            _ => None,
        })
    }

    pub(crate) fn has_filter(&self) -> bool {
        self.then.iter().any(|action| matches!(action.kind, ActionKind::Filter { .. }))
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Action {
    pub at: At,
    pub kind: ActionKind,
}

#[derive(Clone, Debug, PartialEq)]
pub enum ActionKind {
    Score { points: Expr, reason: SmolStr },
    Filter { reason: SmolStr },
    Log { text: SmolStr, level: LogLevel },
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    Debug,
    #[default]
    Info,
    Warn,
    Error,
}

impl LogLevel {
    pub const ALL: [LogLevel; 4] =
        [LogLevel::Debug, LogLevel::Info, LogLevel::Warn, LogLevel::Error];

    pub fn name(self) -> &'static str {
        match self {
            LogLevel::Debug => "debug",
            LogLevel::Info => "info",
            LogLevel::Warn => "warn",
            LogLevel::Error => "error",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.name() == name)
    }
}

/// Where each key of a block was written. Like places, all marks are equal.
#[derive(Clone, Debug, Default)]
pub struct Marks {
    pub at: At,
    keys: Vec<(&'static str, At)>,
}

impl Marks {
    pub(crate) fn starting(at: At) -> Self {
        Self { at, keys: Vec::new() }
    }

    /// Notes where `key` is; `false` when it was there before.
    pub(crate) fn put(&mut self, key: &'static str, at: At) -> bool {
        let new = self.keys.iter().all(|(known, _)| *known != key);
        if new {
            self.keys.push((key, at));
        }
        new
    }

    /// Where `key` was written, or else where its block begins.
    pub fn of(&self, key: &str) -> At {
        self.keys.iter().find(|(known, _)| *known == key).map_or(self.at, |(_, at)| *at)
    }

    pub(crate) fn has(&self, key: &str) -> bool {
        self.keys.iter().any(|(known, _)| *known == key)
    }
}

impl PartialEq for Marks {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_made_of_the_name() {
        assert_eq!(Document::id_from_name("GPU Placement (v1)"), "gpu-placement-v1");
        assert_eq!(Document::id_from_name("Über_all"), "berall");
    }

    #[test]
    fn composite_counts_for_placement_and_migration_only() {
        let counted = PolicyType::ALL.map(|asked| PolicyType::Composite.counts_for(asked));
        assert_eq!(counted, [true, true, false, false, true]);
        assert!(!PolicyType::Migration.counts_for(PolicyType::Placement));
    }
}
