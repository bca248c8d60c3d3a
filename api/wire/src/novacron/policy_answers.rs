//! Policies and what they say, as NovaCron's callers read it.

use super::free::Json;
use super::time::Time;
use crate::policies::DiagnosticView;
use policy::{
    ActionKind, AuditEntry, Diagnostic, Document, Installed, LogLevel, Parameter, Rule, Version,
};
use serde::Serialize;
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// A policy.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[schema(as = novacron::Policy)]
pub struct PolicyAnswer {
    pub id: String,
    pub name: String,
    pub description: String,
    /// `placement`, `migration`, `resource_allocation`, `maintenance` or `composite`.
    #[serde(rename = "type")]
    pub kind: String,
    /// `v` and a number.
    pub version: String,
    /// `draft` until it is activated, then `active` or `disabled`.
    pub status: String,
    /// Higher goes first; 0 while it is not active.
    pub priority: i32,
    /// The text in NovaCron's language.
    pub dsl: String,
    pub rules: Vec<PolicyRule>,
    pub parameters: BTreeMap<String, PolicyParameter>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_selector: Option<String>,
    pub metadata: BTreeMap<String, String>,
    pub created_at: Time,
    pub updated_at: Time,
    pub created_by: String,
    pub updated_by: String,
}

/// A condition, and what follows from it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = novacron::PolicyRule)]
pub struct PolicyRule {
    pub id: String,
    pub name: String,
    pub description: String,
    pub priority: i32,
    pub weight: u32,
    pub hard_constraint: bool,
    pub when: String,
    pub then: Vec<String>,
}

/// A value that operators may change.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[schema(as = novacron::PolicyParameter)]
pub struct PolicyParameter {
    pub name: String,
    pub description: String,
    #[serde(rename = "type")]
    pub kind: String,
    pub default_value: Json,
    pub current_value: Json,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_value: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_value: Option<f64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allowed_values: Vec<Json>,
}

/// A policy as it once was.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[schema(as = novacron::PolicyVersion)]
pub struct PolicyVersion {
    pub policy_id: String,
    pub version: String,
    pub policy: PolicyAnswer,
    pub created_at: Time,
    pub created_by: String,
    pub change_description: String,
}

/// One thing that was done to a policy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = novacron::PolicyAuditEntry)]
pub struct PolicyAuditEntry {
    pub timestamp: Time,
    pub user: String,
    pub policy_id: String,
    pub action: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to_version: Option<String>,
    pub description: String,
}

/// What is wrong with a text, all of it at once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = novacron::PolicyValidationResult)]
pub struct PolicyValidationResult {
    pub valid: bool,
    pub errors: Vec<DiagnosticView>,
    pub warnings: Vec<DiagnosticView>,
}

/// The nodes that are left, best first, and those that are not.
#[derive(Clone, Debug, Default, PartialEq, Serialize, ToSchema)]
#[schema(as = novacron::Evaluation)]
pub struct Evaluation {
    pub nodes: Vec<EvaluatedNode>,
    /// Nodes that no policy removes, shown or not.
    pub feasible_count: u32,
    /// Nodes that a policy removes.
    pub filtered_count: u32,
    /// The first thousand of them, in the order of the nodes.
    pub filtered: Vec<FilteredNode>,
    /// Rules that did not fire on some nodes, because a part of them has no value there.
    pub errors: Vec<RuleErrors>,
    /// The policies that were asked.
    pub policy_revision: u64,
}

/// A node that is left.
#[derive(Clone, Debug, Default, PartialEq, Serialize, ToSchema)]
#[schema(as = novacron::EvaluatedNode)]
pub struct EvaluatedNode {
    pub node_id: String,
    /// As it was sent. Left out for nodes of the inventory.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub node: Option<Json>,
    pub score: f64,
    /// Points by reason.
    pub score_components: BTreeMap<String, f64>,
}

/// A node that a rule removes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = novacron::FilteredNode)]
pub struct FilteredNode {
    pub node_id: String,
    pub policy_id: String,
    pub rule_id: String,
    pub reason: String,
}

/// On how many nodes a rule had no value.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = novacron::RuleErrors)]
pub struct RuleErrors {
    pub policy_id: String,
    /// Left out where it is the policy's target.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule_id: Option<String>,
    pub nodes: u32,
}

/// Whether one policy lets each node pass.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = novacron::FilterAnswer)]
pub struct FilterAnswer {
    /// In the order of the nodes.
    pub results: Vec<FilterResult>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = novacron::FilterResult)]
pub struct FilterResult {
    pub node_id: String,
    pub feasible: bool,
    pub reason: String,
}

/// What one policy thinks of each node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, ToSchema)]
#[schema(as = novacron::ScoreAnswer)]
pub struct ScoreAnswer {
    /// In the order of the nodes.
    pub results: Vec<ScoreResult>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, ToSchema)]
#[schema(as = novacron::ScoreResult)]
pub struct ScoreResult {
    pub node_id: String,
    /// 0 for a node that the policy removes.
    pub score: f64,
}

impl PolicyAnswer {
    /// The policy as of one version, whose document is `document`. `status` is NovaCron's word.
    pub fn new(
        installed: &Installed,
        version: &Version,
        document: &Document,
        status: &str,
    ) -> Self {
        let activation = installed.activation.as_ref();
        let set = activation.map(|it| it.settings.values()).unwrap_or_default();
        let parameter = |it: &Parameter| {
            let current = set.get(&it.name).or(it.default.as_ref());
            let current = current.map(Json::from).unwrap_or_default();
            (it.name.to_string(), PolicyParameter::new(it, current))
        };
        Self {
            id: installed.id.to_string(),
            name: document.name.clone(),
            description: document.description.clone().unwrap_or_default(),
            kind: document.kind.name().into(),
            version: version_text(version.number),
            status: status.into(),
            priority: activation.map_or(0, |activation| activation.priority),
            dsl: match version.source.syntax() {
                policy::Syntax::Dsl => version.source.text().to_owned(),
                policy::Syntax::Yaml => policy::format(document, policy::Syntax::Dsl),
            },
            rules: document.rules.iter().map(PolicyRule::from).collect(),
            parameters: document.parameters.iter().map(parameter).collect(),
            target_selector: document.target.as_ref().map(ToString::to_string),
            metadata: document.metadata.clone(),
            created_at: Time::from_unix_millis(installed.created_ms),
            updated_at: Time::from_unix_millis(installed.updated_ms),
            created_by: installed.versions.first().map(|it| it.author.clone()).unwrap_or_default(),
            updated_by: version.author.clone(),
        }
    }
}

impl PolicyParameter {
    fn new(parameter: &Parameter, current_value: Json) -> Self {
        Self {
            name: parameter.name.to_string(),
            description: parameter.description.clone().unwrap_or_default(),
            kind: parameter.kind.name().into(),
            default_value: parameter.default.as_ref().map(Json::from).unwrap_or_default(),
            current_value,
            min_value: parameter.min,
            max_value: parameter.max,
            allowed_values: parameter.allowed.iter().map(Json::from).collect(),
        }
    }
}

impl From<&Rule> for PolicyRule {
    fn from(rule: &Rule) -> Self {
        Self {
            id: rule.id.clone(),
            name: rule.name.clone(),
            description: rule.description.clone().unwrap_or_default(),
            priority: rule.priority,
            weight: rule.weight,
            hard_constraint: rule.removes(),
            when: rule.when.to_string(),
            then: rule.then.iter().map(|action| action_text(&action.kind)).collect(),
        }
    }
}

fn action_text(action: &ActionKind) -> String {
    match action {
        ActionKind::Score { points, reason } => format!("score {points} {}", quoted(reason)),
        ActionKind::Filter { reason } => format!("filter {}", quoted(reason)),
        ActionKind::Log { text, level: LogLevel::Info } => format!("log {}", quoted(text)),
        ActionKind::Log { text, level } => {
            format!("log {} level = {}", quoted(text), quoted(level.name()))
        }
    }
}

/// A string as the language writes it.
fn quoted(text: &str) -> String {
    use policy::{At, Expr, ExprKind};
    Expr::new(At::default(), ExprKind::Text(text.into())).to_string()
}

/// A version as NovaCron writes it.
pub fn version_text(number: u32) -> String {
    format!("v{number}")
}

/// The number of a version that NovaCron writes; the `v` may be missing.
pub fn version_number(text: &str) -> Option<u32> {
    text.strip_prefix('v').unwrap_or(text).parse().ok()
}

impl From<&AuditEntry> for PolicyAuditEntry {
    fn from(entry: &AuditEntry) -> Self {
        Self {
            timestamp: Time::from_unix_millis(entry.at_ms),
            user: entry.user.clone(),
            policy_id: entry.policy.to_string(),
            action: entry.action.name().into(),
            from_version: entry.from_version.map(version_text),
            to_version: entry.to_version.map(version_text),
            description: entry.description.clone(),
        }
    }
}

impl PolicyValidationResult {
    pub fn new(found: &[Diagnostic]) -> Self {
        let of = |errors: bool| {
            let kept = found.iter().filter(|it| it.is_error() == errors);
            kept.map(DiagnosticView::from).collect()
        };
        Self {
            valid: !found.iter().any(Diagnostic::is_error),
            errors: of(true),
            warnings: of(false),
        }
    }
}
