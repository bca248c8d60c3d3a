//! Policies as a resource: what is installed, what is wrong with a text, what a change would do.
//!
//! Views only; what callers send is in `asked`. The texts themselves are the policy crate's.

mod asked;

pub use asked::{
    ActivationRequest, ActivationSpec, ParameterValues, PolicyRequest, PolicySpec, RollbackRequest,
    RollbackSpec, TuneRequest, TuneSpec, WeightRollbackRequest, WeightRollbackSpec,
};

use crate::novacron::{Json, Time};
use crate::overview::WeightMap;
use policy::{
    Activation, AuditEntry, Conflict, Diagnostic, Installed, Parameter, Program, Severity, Steps,
    Value, Version,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What is installed.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct PolicyList {
    /// By id.
    pub items: Vec<PolicyView>,
    /// Counts every change of policies and weights.
    pub policy_revision: u64,
    /// What the active policies take together.
    pub cost: CostView,
    /// The directory that policies are read from, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// Files in it that are not in force, because something is wrong with them.
    pub rejected_files: Vec<RejectedFileView>,
}

/// One policy.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct PolicyView {
    pub id: String,
    pub name: String,
    /// `placement`, `migration`, `resource_allocation`, `maintenance` or `composite`.
    #[serde(rename = "type")]
    pub kind: String,
    /// `active` or `inactive`.
    pub status: String,
    /// Of the text that counts.
    pub version: u32,
    /// Higher goes first. Left out while the policy is not active.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    pub parameters: Vec<ParameterView>,
    pub rules: u32,
    /// What is doubtful in the text.
    pub warnings: Vec<DiagnosticView>,
    pub cost: CostView,
    pub created_at: Time,
    pub updated_at: Time,
    /// Who wrote the version that counts.
    pub author: String,
    /// `dsl` or `yaml`.
    pub syntax: String,
    /// The file that it was last read from, if it comes from one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Left out of lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// A value that operators may change without touching the text.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct ParameterView {
    pub name: String,
    /// `string`, `int`, `float` or `bool`.
    #[serde(rename = "type")]
    pub kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// What it is now; of a policy that is not active, its default.
    pub value: Json,
    pub default: Json,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<f64>,
    /// Empty: any value will do.
    pub allowed: Vec<Json>,
}

/// Steps that evaluating takes, worked out from the text alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CostView {
    pub per_host: u64,
    pub per_request: u64,
}

/// Something wrong or doubtful in a text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DiagnosticView {
    /// `error` or `warning`.
    pub severity: String,
    /// A stable name for programs.
    #[schema(example = "unknown-key")]
    pub code: String,
    /// From 1; 0 where it is about no place in particular.
    pub line: u32,
    pub column: u32,
    /// Where in the policy, such as `rules[0].when`.
    pub field: String,
    pub message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// A file that is not in force.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct RejectedFileView {
    pub file: String,
    pub seen_at: Time,
    /// The policy that it is of, if that much could be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    pub diagnostics: Vec<DiagnosticView>,
}

/// Rules that work against each other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct ConflictView {
    /// `removes_every_host`, `opposite_scores`, `duplicate_rule` or `priority_tie`.
    pub kind: String,
    /// `false` where it depends on the VM whether the rules meet.
    pub certain: bool,
    pub policies: Vec<String>,
    pub rules: Vec<RuleRef>,
    pub message: String,
}

/// A rule of a policy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct RuleRef {
    pub policy: String,
    pub rule: String,
}

/// What the policies that would be in force do to the fleet as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct DryRunView {
    /// Hosts that take VMs.
    pub hosts: u32,
    /// Placed VMs that were asked about, at even distances.
    pub vms: u32,
    /// No VM is placed, and one that asks for nothing stood in.
    pub stand_in: bool,
    /// VMs of the sample that no host would be left for.
    pub vms_without_host: u32,
    /// The first of them, as `tenant/id`.
    pub without_host: Vec<String>,
    /// VMs of the sample that would not be placed again where they are. They stay all the same.
    pub vms_off_their_host: u32,
    /// Rules that remove hosts or have errors, in the order of evaluation.
    pub rules: Vec<RuleDryRun>,
}

/// What one rule does to the fleet as it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct RuleDryRun {
    pub policy: String,
    pub rule: String,
    /// The most hosts that it removes for one VM.
    pub hosts_removed: u32,
    /// VMs for which it removes any.
    pub vms_affected: u32,
    /// Pairs of VM and host on which a part of it has no value, so that it does not fire.
    pub errors: u64,
}

/// What became of a change.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct PolicyAnswer {
    pub policy: PolicyView,
    /// `false`: it was so already.
    pub changed: bool,
    pub policy_revision: u64,
    /// Among the policies that are active now.
    pub conflicts: Vec<ConflictView>,
    pub dry_run: DryRunView,
}

/// What is to be said of a text.
#[derive(Clone, Debug, Default, PartialEq, Serialize, ToSchema)]
pub struct PolicyValidation {
    pub valid: bool,
    /// Left out where the text cannot be read that far.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    pub errors: Vec<DiagnosticView>,
    pub warnings: Vec<DiagnosticView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<CostView>,
    /// Among the policies that would be active with it.
    pub conflicts: Vec<ConflictView>,
    /// What they would do. Left out where the text has errors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dry_run: Option<DryRunView>,
}

/// The versions of a policy that are kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct PolicyVersions {
    /// Oldest first; the last is the one that counts.
    pub items: Vec<PolicyVersionView>,
    pub policy_revision: u64,
}

/// A text that counts, or once did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct PolicyVersionView {
    pub version: u32,
    /// `dsl` or `yaml`.
    pub syntax: String,
    pub created_at: Time,
    pub author: String,
    pub description: String,
    /// Left out of lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// Changes of policies that are remembered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct PolicyAudit {
    /// Newest first.
    pub items: Vec<PolicyAuditView>,
    pub policy_revision: u64,
}

/// One change of a policy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct PolicyAuditView {
    pub at: Time,
    pub user: String,
    pub policy_id: String,
    /// `register`, `update`, `activate`, `tune`, `deactivate`, `rollback` or `remove`.
    pub action: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_version: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to_version: Option<u32>,
    pub description: String,
}

/// Conflicts among the active policies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct ConflictList {
    pub items: Vec<ConflictView>,
    pub policy_revision: u64,
}

/// The weights that were in force lately.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct WeightHistoryView {
    /// Newest first; the first is in force. The last 64 are kept.
    pub items: Vec<WeightChangeView>,
    pub policy_revision: u64,
}

/// Weights, and since when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct WeightChangeView {
    /// The policy revision that they came into force with; roll back to it by this.
    pub revision: u64,
    /// Left out for those that the service began with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub actor: Option<String>,
    pub weights: WeightMap,
}

impl PolicyView {
    /// `program` and `warnings` are those of the newest version.
    pub fn new(installed: &Installed, program: &Program, warnings: &[Diagnostic]) -> Self {
        let document = program.document();
        let newest = installed.newest();
        let activation = installed.activation.as_ref();
        let parameter = |parameter: &Parameter| ParameterView::new(parameter, activation);
        Self {
            id: installed.id.to_string(),
            name: installed.name.clone(),
            kind: installed.kind.name().into(),
            status: if activation.is_some() { "active" } else { "inactive" }.into(),
            version: newest.map_or(0, |version| version.number),
            priority: activation.map(|activation| activation.priority),
            description: document.description.clone(),
            parameters: document.parameters.iter().map(parameter).collect(),
            rules: u32::try_from(document.rules.len()).unwrap_or(u32::MAX),
            warnings: warnings.iter().map(DiagnosticView::from).collect(),
            cost: program.cost().into(),
            created_at: Time::from_unix_millis(installed.created_ms),
            updated_at: Time::from_unix_millis(installed.updated_ms),
            author: newest.map(|version| version.author.clone()).unwrap_or_default(),
            syntax: newest.map_or("", |version| syntax_word(version.source.syntax())).into(),
            file: None,
            text: None,
        }
    }
}

impl ParameterView {
    fn new(parameter: &Parameter, activation: Option<&Activation>) -> Self {
        let set = activation.map(|activation| activation.settings.values());
        let set = set.and_then(|mut values| values.remove(&parameter.name));
        let value = set.or_else(|| parameter.default.clone()).unwrap_or_default();
        Self {
            name: parameter.name.to_string(),
            kind: parameter.kind.name().into(),
            description: parameter.description.clone(),
            value: Json::from(&value),
            default: parameter.default.as_ref().map(Json::from).unwrap_or_default(),
            min: parameter.min,
            max: parameter.max,
            allowed: parameter.allowed.iter().map(Json::from).collect(),
        }
    }
}

impl PolicyVersionView {
    pub fn new(version: &Version, with_text: bool) -> Self {
        Self {
            version: version.number,
            syntax: syntax_word(version.source.syntax()).into(),
            created_at: Time::from_unix_millis(version.created_ms),
            author: version.author.clone(),
            description: version.description.clone(),
            text: with_text.then(|| version.source.text().to_owned()),
        }
    }
}

impl From<&AuditEntry> for PolicyAuditView {
    fn from(entry: &AuditEntry) -> Self {
        Self {
            at: Time::from_unix_millis(entry.at_ms),
            user: entry.user.clone(),
            policy_id: entry.policy.to_string(),
            action: entry.action.name().into(),
            from_version: entry.from_version,
            to_version: entry.to_version,
            description: entry.description.clone(),
        }
    }
}

impl From<Steps> for CostView {
    fn from(steps: Steps) -> Self {
        Self { per_host: steps.per_host, per_request: steps.per_request }
    }
}

impl From<&Diagnostic> for DiagnosticView {
    fn from(found: &Diagnostic) -> Self {
        let severity = match found.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        Self {
            severity: severity.into(),
            code: found.code.into(),
            line: found.line,
            column: found.column,
            field: found.field.clone(),
            message: found.message.clone(),
            hint: found.hint.clone(),
        }
    }
}

impl From<&Conflict> for ConflictView {
    fn from(conflict: &Conflict) -> Self {
        let rule = |(policy, rule): &(String, String)| RuleRef {
            policy: policy.clone(),
            rule: rule.clone(),
        };
        Self {
            kind: conflict_word(conflict).into(),
            certain: conflict.certain,
            policies: conflict.policies.clone(),
            rules: conflict.rules.iter().map(rule).collect(),
            message: conflict.message.clone(),
        }
    }
}

pub(crate) fn conflict_word(conflict: &Conflict) -> &'static str {
    match conflict.kind {
        policy::ConflictKind::RemovesEveryHost => "removes_every_host",
        policy::ConflictKind::OppositeScores => "opposite_scores",
        policy::ConflictKind::DuplicateRule => "duplicate_rule",
        policy::ConflictKind::PriorityTie => "priority_tie",
    }
}

fn syntax_word(syntax: policy::Syntax) -> &'static str {
    match syntax {
        policy::Syntax::Dsl => "dsl",
        policy::Syntax::Yaml => "yaml",
    }
}

/// The most that a float holds without a gap between whole numbers.
const WHOLE: f64 = 9_007_199_254_740_992.0;

impl From<&Value> for Json {
    fn from(value: &Value) -> Self {
        match value {
            Value::Null => Json::Null,
            Value::Bool(value) => Json::Bool(*value),
            Value::Number(number) if number.trunc() == *number && number.abs() <= WHOLE => {
                Json::Integer(*number as i64)
            }
            Value::Number(number) => Json::Float(*number),
            Value::Text(text) => Json::Text(text.to_string()),
        }
    }
}

impl Json {
    /// As an attribute or a parameter of a policy; what has parts has no value there.
    pub fn to_value(&self) -> Value {
        match self {
            Json::Null | Json::Array(_) | Json::Object(_) => Value::Null,
            Json::Bool(value) => Value::Bool(*value),
            Json::Integer(number) => Value::Number(*number as f64),
            Json::Float(number) => Value::number(*number),
            Json::Text(text) => Value::text(text),
        }
    }
}
