//! What callers send about policies under NovaCron's paths.
//!
//! NovaCron's policy structs have no tags, so a plain Go client sends the names of their fields;
//! both these and the usual snake case are read. A policy may come as text, or as an object whose
//! conditions and actions are strings of the language.

use super::free::Json;
use crate::fault::code;
use crate::fields::Fields;
use crate::json::Value;
use crate::policies::ParameterValues;
use crate::read::{At, Read};
use policy::{Activation, MAX_RULES};
use serde::Serialize;
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// Nodes of one request. More are asked about faster as a synced inventory.
const MAX_NODES: usize = 20_000;

/// A field under either of its names.
fn either<T: Read>(fields: &mut Fields<'_, '_>, names: &[&'static str]) -> Option<T> {
    names.iter().fold(None, |found, name| {
        let value = fields.optional(name);
        found.or(value)
    })
}

fn text(fields: &mut Fields<'_, '_>, names: &[&'static str]) -> String {
    either(fields, names).unwrap_or_default()
}

/// A policy to register or to put in another's place: `dsl`, `policy`, or the fields of a policy
/// themselves.
#[derive(Clone, Debug, Default, PartialEq, Serialize, ToSchema)]
#[schema(as = novacron::PolicyDraft)]
pub struct PolicyDraft {
    /// The text in NovaCron's language.
    #[schema(required = false, value_type = String, max_length = 262_144)]
    pub dsl: Option<String>,
    /// The policy as an object.
    #[schema(required = false, value_type = Object)]
    pub policy: Option<PolicyObject>,
    /// Who registers it.
    #[schema(required = false)]
    pub author: String,
    /// Who changes it.
    #[schema(required = false)]
    pub updated_by: String,
    #[schema(required = false)]
    pub change_description: String,
}

impl Read for PolicyDraft {
    fn read<'v>(value: &'v Value<'v>, at: &mut At<'v>) -> Option<Self> {
        let mut fields = at.fields(value)?;
        let mut draft = Self {
            dsl: either(&mut fields, &["dsl", "DSL"]),
            policy: either(&mut fields, &["policy", "Policy"]),
            author: text(&mut fields, &["author", "Author", "created_by", "CreatedBy"]),
            updated_by: text(&mut fields, &["updated_by", "UpdatedBy"]),
            change_description: text(&mut fields, &["change_description", "ChangeDescription"]),
        };
        let inline = !fields.given(&["rules", "Rules", "name", "Name", "id", "ID"]).is_empty();
        fields.ignore_others();
        if draft.policy.is_none() && inline {
            draft.policy = Some(PolicyObject::read(value, at)?);
        }
        if draft.dsl.is_none() && draft.policy.is_none() {
            let hint = "send the text as \"dsl\", or the policy as an object";
            at.fault(code::MISSING_FIELD, "there is no policy in the body", hint);
            return None;
        }
        Some(draft)
    }
}

impl PolicyDraft {
    /// Who asks.
    pub fn user(&self) -> &str {
        if self.updated_by.is_empty() { &self.author } else { &self.updated_by }
    }
}

/// A policy as an object.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PolicyObject {
    pub id: String,
    pub name: String,
    pub description: String,
    pub kind: String,
    /// Counts if there are no rules.
    pub dsl: String,
    pub target: String,
    pub metadata: BTreeMap<String, Json>,
    pub parameters: BTreeMap<String, ParameterObject>,
    pub rules: Vec<RuleObject>,
}

impl Read for PolicyObject {
    fn read<'v>(value: &'v Value<'v>, at: &mut At<'v>) -> Option<Self> {
        let mut fields = at.fields(value)?;
        let rules = |value, at: &mut At<'v>| at.list(value, MAX_RULES);
        let lower = fields.with("rules", rules);
        let read = Self {
            id: text(&mut fields, &["id", "ID"]),
            name: text(&mut fields, &["name", "Name"]),
            description: text(&mut fields, &["description", "Description"]),
            kind: text(&mut fields, &["type", "Type"]),
            dsl: text(&mut fields, &["dsl", "DSL"]),
            target: text(&mut fields, &["target_selector", "TargetSelector", "target", "Target"]),
            metadata: either(&mut fields, &["metadata", "Metadata"]).unwrap_or_default(),
            parameters: either(&mut fields, &["parameters", "Parameters"]).unwrap_or_default(),
            rules: lower.or_else(|| fields.with("Rules", rules)).unwrap_or_default(),
        };
        fields.ignore_others();
        Some(read)
    }
}

/// One rule as an object.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RuleObject {
    pub id: String,
    pub name: String,
    pub description: String,
    pub priority: Option<i64>,
    pub weight: Option<i64>,
    pub hard_constraint: Option<bool>,
    pub when: String,
    pub then: Vec<Json>,
}

impl Read for RuleObject {
    fn read<'v>(value: &'v Value<'v>, at: &mut At<'v>) -> Option<Self> {
        let mut fields = at.fields(value)?;
        let hard = ["hard_constraint", "HardConstraint", "is_hard_constraint", "IsHardConstraint"];
        let read = Self {
            id: text(&mut fields, &["id", "ID"]),
            name: text(&mut fields, &["name", "Name"]),
            description: text(&mut fields, &["description", "Description"]),
            priority: either(&mut fields, &["priority", "Priority"]),
            weight: either(&mut fields, &["weight", "Weight"]),
            hard_constraint: either(&mut fields, &hard),
            when: text(&mut fields, &["when", "When", "condition", "Condition"]),
            then: either(&mut fields, &["then", "Then", "actions", "Actions"]).unwrap_or_default(),
        };
        fields.ignore_others();
        Some(read)
    }
}

/// One parameter as an object. Its current value is set by activating.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ParameterObject {
    pub kind: String,
    pub description: String,
    pub default: Option<Json>,
    pub min: Option<Json>,
    pub max: Option<Json>,
    pub allowed: Option<Vec<Json>>,
}

impl Read for ParameterObject {
    fn read<'v>(value: &'v Value<'v>, at: &mut At<'v>) -> Option<Self> {
        let mut fields = at.fields(value)?;
        let read = Self {
            kind: text(&mut fields, &["type", "Type"]),
            description: text(&mut fields, &["description", "Description"]),
            default: either(&mut fields, &["default_value", "DefaultValue", "default"]),
            min: either(&mut fields, &["min_value", "MinValue", "min"]),
            max: either(&mut fields, &["max_value", "MaxValue", "max"]),
            allowed: either(&mut fields, &["allowed_values", "AllowedValues", "allowed"]),
        };
        fields.ignore_others();
        Some(read)
    }
}

impl PolicyObject {
    /// The same policy under the keys of the policy crate's YAML form.
    pub fn to_yaml_form(&self) -> Json {
        let given = |text: &String| (!text.is_empty()).then(|| Json::Text(text.clone()));
        let metadata = self.metadata.iter().map(|(key, value)| {
            let text = value.as_str().map_or_else(|| value.describe(), str::to_owned);
            (key.clone(), Json::Text(text))
        });
        let parameters = self.parameters.iter().map(|(name, it)| (name.clone(), it.form()));
        let rules = self.rules.iter().map(RuleObject::form);
        object([
            ("policy", Some(Json::Text(self.name.clone()))),
            ("id", given(&self.id)),
            ("type", given(&self.kind)),
            ("description", given(&self.description)),
            ("target", given(&self.target)),
            ("metadata", (!self.metadata.is_empty()).then(|| Json::Object(metadata.collect()))),
            (
                "parameters",
                (!self.parameters.is_empty()).then(|| Json::Object(parameters.collect())),
            ),
            ("rules", Some(Json::Array(rules.collect()))),
        ])
    }
}

impl RuleObject {
    fn form(&self) -> Json {
        let given = |text: &String| (!text.is_empty()).then(|| Json::Text(text.clone()));
        // A Go client that says nothing of the weight sends 0, and the default is 1.
        let weight = self.weight.filter(|weight| *weight != 0);
        let name = if self.name.is_empty() { &self.id } else { &self.name };
        object([
            ("rule", Some(Json::Text(name.clone()))),
            ("id", given(&self.id)),
            ("description", given(&self.description)),
            ("priority", self.priority.map(Json::Integer)),
            ("weight", weight.map(Json::Integer)),
            ("hard_constraint", self.hard_constraint.map(Json::Bool)),
            ("when", given(&self.when)),
            ("then", Some(Json::Array(self.then.clone()))),
        ])
    }
}

impl ParameterObject {
    fn form(&self) -> Json {
        let given = |text: &String| (!text.is_empty()).then(|| Json::Text(text.clone()));
        let allowed = self.allowed.clone().filter(|allowed| !allowed.is_empty());
        object([
            ("type", given(&self.kind)),
            ("description", given(&self.description)),
            ("default", self.default.clone()),
            ("min", self.min.clone()),
            ("max", self.max.clone()),
            ("allowed", allowed.map(Json::Array)),
        ])
    }
}

fn object<const N: usize>(members: [(&str, Option<Json>); N]) -> Json {
    Json::object(members.into_iter().filter_map(|(key, value)| Some((key, value?))))
}

/// How a policy shall be in force.
#[derive(Clone, Debug, Default, PartialEq, Serialize, ToSchema)]
#[schema(as = novacron::PolicyConfiguration)]
pub struct PolicyConfiguration {
    /// Higher goes first.
    #[schema(required = false)]
    pub priority: i32,
    #[schema(required = false, value_type = Object)]
    #[serde(skip)]
    pub parameter_values: ParameterValues,
}

impl Read for PolicyConfiguration {
    fn read<'v>(value: &'v Value<'v>, at: &mut At<'v>) -> Option<Self> {
        let mut fields = at.fields(value)?;
        let priority: i64 = either(&mut fields, &["priority", "Priority"]).unwrap_or_default();
        let values = either(&mut fields, &["parameter_values", "ParameterValues"]);
        fields.ignore_others();
        let priority = i32::try_from(priority.clamp(-1_000_000, 1_000_000)).unwrap_or_default();
        Some(Self { priority, parameter_values: values.unwrap_or_default() })
    }
}

impl PolicyConfiguration {
    pub fn activation(&self) -> Activation {
        Activation { priority: self.priority, settings: self.parameter_values.settings() }
    }
}

/// The version to go back to, who wants it and why.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = novacron::PolicyRollback)]
pub struct PolicyRollback {
    /// `v` and a number.
    pub version: String,
    #[schema(required = false)]
    pub user: String,
    #[schema(required = false)]
    pub description: String,
}

impl Read for PolicyRollback {
    fn read<'v>(value: &'v Value<'v>, at: &mut At<'v>) -> Option<Self> {
        let mut fields = at.fields(value)?;
        let read = Self {
            version: text(&mut fields, &["version", "Version"]),
            user: text(&mut fields, &["user", "User"]),
            description: text(&mut fields, &["description", "Description"]),
        };
        fields.ignore_others();
        Some(read)
    }
}

/// Asks what the active policies say about a VM.
#[derive(Clone, Debug, Default, PartialEq, Serialize, ToSchema)]
#[schema(as = novacron::EvaluationRequest)]
pub struct EvaluationRequest {
    /// Its attributes.
    #[schema(value_type = Object)]
    pub vm: Json,
    /// The node that it would leave; for migrations.
    #[schema(required = false, value_type = Object)]
    pub source_node: Json,
    /// Attributes of nodes. Left out: the nodes of the inventory that take VMs.
    #[schema(required = false, value_type = Vec<Object>, max_items = 20_000)]
    pub candidate_nodes: Option<Vec<Json>>,
    /// Nodes in the answer, best first. Left out or 0: all that were sent, or 100 of the inventory.
    #[schema(required = false, maximum = 20_000)]
    pub limit: u32,
}

impl Read for EvaluationRequest {
    fn read<'v>(value: &'v Value<'v>, at: &mut At<'v>) -> Option<Self> {
        let mut fields = at.fields(value)?;
        let vm = fields.required_with("vm", read_map);
        let source_node = fields.with("source_node", read_map).unwrap_or_default();
        let candidate_nodes = fields.with("candidate_nodes", read_maps);
        let limit = fields.integer("limit", 0..=MAX_NODES as u64).unwrap_or(0);
        fields.ignore_others();
        Some(Self { vm: vm?, source_node, candidate_nodes, limit })
    }
}

/// Asks one policy about a workload.
#[derive(Clone, Debug, Default, PartialEq, Serialize, ToSchema)]
#[schema(as = novacron::WorkloadOverNodes)]
pub struct WorkloadOverNodes {
    #[schema(value_type = Object)]
    pub workload: Json,
    #[schema(value_type = Vec<Object>, max_items = 20_000)]
    pub nodes: Vec<Json>,
}

impl Read for WorkloadOverNodes {
    fn read<'v>(value: &'v Value<'v>, at: &mut At<'v>) -> Option<Self> {
        let mut fields = at.fields(value)?;
        let workload = fields.required_with("workload", read_map);
        let nodes = fields.required_with("nodes", read_maps);
        fields.ignore_others();
        Some(Self { workload: workload?, nodes: nodes? })
    }
}

pub(super) fn read_map<'v>(value: &'v Value<'v>, at: &mut At<'v>) -> Option<Json> {
    if !matches!(value, Value::Object(_)) {
        at.wrong_type(value, "an object");
        return None;
    }
    Json::read(value, at)
}

pub(super) fn read_maps<'v>(value: &'v Value<'v>, at: &mut At<'v>) -> Option<Vec<Json>> {
    let items = at.items(value, MAX_NODES)?;
    let mut maps = Vec::with_capacity(items.len());
    for (row, item) in items.iter().enumerate() {
        maps.extend(at.within(crate::read::Step::Item(row), |at| read_map(item, at)));
    }
    Some(maps)
}
