//! What both notations are read into first: everything optional, with places.
//!
//! `finish` fills in the defaults and complains of what is missing, so that the two readers only
//! have to know how things are written.

use crate::diagnostic::{Findings, suggestion};
use crate::document::{
    Action, Document, MAX_ACTIONS, MAX_METADATA, MAX_PARAMETERS, MAX_RULE_WEIGHT, MAX_RULES, Marks,
    Parameter, ParameterType, PolicyType, Rule,
};
use crate::{Expr, Value};
use std::collections::BTreeMap;

/// Priorities lie between plus and minus this.
const MAX_PRIORITY: f64 = 1_000_000.0;

#[derive(Debug, Default)]
pub(crate) struct DraftDocument {
    pub(crate) marks: Marks,
    pub(crate) name: String,
    pub(crate) id: Option<String>,
    pub(crate) kind: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) metadata: BTreeMap<String, String>,
    pub(crate) target: Option<Expr>,
    pub(crate) parameters: Vec<DraftParameter>,
    pub(crate) rules: Vec<DraftRule>,
}

#[derive(Debug, Default)]
pub(crate) struct DraftParameter {
    pub(crate) marks: Marks,
    pub(crate) name: String,
    pub(crate) kind: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) default: Option<Value>,
    pub(crate) min: Option<Value>,
    pub(crate) max: Option<Value>,
    pub(crate) allowed: Vec<Value>,
}

#[derive(Debug, Default)]
pub(crate) struct DraftRule {
    pub(crate) marks: Marks,
    pub(crate) name: String,
    pub(crate) id: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) priority: Option<f64>,
    pub(crate) weight: Option<f64>,
    pub(crate) hard_constraint: Option<bool>,
    pub(crate) when: Option<Expr>,
    pub(crate) then: Vec<Action>,
}

impl DraftDocument {
    /// The document with its defaults; what cannot be made sense of is left out after a finding.
    pub(crate) fn finish(self, findings: &mut Findings) -> Document {
        let at = self.marks.of("metadata");
        limit("metadata", self.metadata.len(), MAX_METADATA, at, findings);
        let at = self.marks.of("parameters");
        limit("parameters", self.parameters.len(), MAX_PARAMETERS, at, findings);
        limit("rules", self.rules.len(), MAX_RULES, self.marks.of("rules"), findings);
        let kind = self.kind.as_deref().unwrap_or("placement");
        let kind = PolicyType::named(kind).unwrap_or_else(|| {
            let message = format!("unknown policy type: {kind}");
            findings
                .error("unknown-type", self.marks.of("type"), "type", message)
                .hint(suggestion(kind, &PolicyType::ALL.map(PolicyType::name)));
            PolicyType::default()
        });
        let id = self.id.unwrap_or_else(|| Document::id_from_name(&self.name));
        let parameters = self.parameters.into_iter().take(MAX_PARAMETERS);
        let parameters = parameters.map(|draft| draft.finish(findings)).collect();
        let rules = self.rules.into_iter().take(MAX_RULES).enumerate();
        let rules = rules.filter_map(|(index, draft)| draft.finish(index, findings)).collect();
        Document {
            name: self.name,
            id,
            kind,
            description: self.description,
            metadata: self.metadata,
            target: self.target,
            parameters,
            rules,
            marks: self.marks,
        }
    }
}

impl DraftParameter {
    fn finish(self, findings: &mut Findings) -> Parameter {
        let field = format!("parameters.{}", self.name);
        let kind = self.kind.as_deref().unwrap_or("string");
        let kind = ParameterType::named(kind).unwrap_or_else(|| {
            let message = format!("unknown parameter type: {kind}");
            findings
                .error("unknown-type", self.marks.of("type"), &format!("{field}.type"), message)
                .hint(suggestion(kind, &ParameterType::ALL.map(ParameterType::name)));
            ParameterType::default()
        });
        let mut bound = |key: &str, value: Option<Value>| match value {
            None => None,
            Some(Value::Number(number)) => Some(number),
            Some(other) => {
                let message = format!("{key} is {}, a number is wanted", other.kind());
                let field = format!("{field}.{key}");
                findings.error("type-mismatch", self.marks.of(key), &field, message);
                None
            }
        };
        let (min, max) = (bound("min", self.min), bound("max", self.max));
        Parameter {
            name: self.name.into(),
            kind,
            description: self.description,
            default: self.default,
            min,
            max,
            allowed: self.allowed,
            marks: self.marks,
        }
    }
}

impl DraftRule {
    fn finish(self, index: usize, findings: &mut Findings) -> Option<Rule> {
        let field = format!("rules[{index}]");
        let Self { marks, name, .. } = self;
        let mut integer = |key: &str, value: Option<f64>, least: f64, most: f64, default: i32| {
            let Some(value) = value else { return default };
            if value.trunc() == value && (least..=most).contains(&value) {
                return value as i32;
            }
            let message =
                format!("{key} is {value}, a whole number from {least} to {most} is wanted");
            let found =
                findings.error("out-of-range", marks.of(key), &format!("{field}.{key}"), message);
            if key == "weight" && value < 0.0 {
                found.hint("write a negative score instead");
            }
            default
        };
        let standing = 100_i32.saturating_sub(i32::try_from(index).unwrap_or(i32::MAX));
        let priority = integer("priority", self.priority, -MAX_PRIORITY, MAX_PRIORITY, standing);
        let weight = integer("weight", self.weight, 0.0, f64::from(MAX_RULE_WEIGHT), 1);
        limit(&format!("{field}.then"), self.then.len(), MAX_ACTIONS, marks.of("then"), findings);
        let missing = |key: &str| format!("rule {name} is missing {key}");
        if !marks.has("when") {
            findings
                .error("missing-condition", marks.at, &field, missing("its condition"))
                .hint("write when { true } for a rule without one");
        }
        if !marks.has("then") {
            findings.error("missing-actions", marks.at, &field, missing("its actions"));
        } else if self.then.is_empty() && findings.errors() == 0 {
            findings.error("missing-actions", marks.of("then"), &field, missing("its actions"));
        }
        Some(Rule {
            id: self.id.unwrap_or_else(|| format!("rule-{}", index + 1)),
            name,
            description: self.description,
            priority,
            weight: weight.unsigned_abs(),
            hard_constraint: self.hard_constraint,
            when: self.when?,
            then: self.then.into_iter().take(MAX_ACTIONS).collect(),
            marks,
        })
    }
}

fn limit(field: &str, count: usize, most: usize, at: crate::At, findings: &mut Findings) {
    if count > most {
        let message = format!("{count} entries, at most {most} are allowed");
        findings.error("too-many", at, field, message);
    }
}
