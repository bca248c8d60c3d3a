//! What callers send about policies: texts, activations, values of parameters, versions.

use crate::fault::code;
use crate::fields::Fields;
use crate::json::Value;
use crate::novacron::Json;
use crate::read::{At, Read, Step};
use policy::{Activation, MAX_PARAMETERS, Settings, Syntax};
use serde::Serialize;
use std::borrow::Cow;
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// Bytes of a description: it is kept with every version and in the audit.
const MAX_DESCRIPTION: usize = 1_000;

/// Values of parameters by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ParameterValues(pub BTreeMap<String, policy::Value>);

impl ParameterValues {
    pub fn settings(&self) -> Settings {
        let values = self.0.iter().map(|(name, value)| (name.as_str().into(), value.clone()));
        Settings::from(&values.collect())
    }
}

impl Read for ParameterValues {
    fn read<'v>(value: &'v Value<'v>, at: &mut At<'v>) -> Option<Self> {
        let members = at.members(value)?;
        if members.len() > MAX_PARAMETERS {
            let message = format!("{} values, at most {MAX_PARAMETERS} are allowed", members.len());
            at.fault(code::TOO_MANY_ITEMS, message, "send fewer");
            return None;
        }
        let mut values = BTreeMap::new();
        for (name, value) in members {
            let step = Step::Field(Cow::Borrowed(name.as_ref()));
            let read = at.within(step, |at| match value {
                Value::Array(_) | Value::Object(_) => {
                    at.wrong_type(value, "a string, a number, true or false");
                    None
                }
                value => Json::read(value, at).map(|value| value.to_value()),
            });
            values.extend(read.map(|value| (name.to_string(), value)));
        }
        Some(Self(values))
    }
}

/// The text of a policy, and whether it shall be in force. One of `text`, `dsl` and `yaml`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, ToSchema)]
pub struct PolicySpec {
    /// In the notation that `syntax` names; without it, the one that it seems to be in.
    #[schema(required = false, max_length = 262_144)]
    pub text: String,
    /// The text in NovaCron's language.
    #[schema(required = false, max_length = 262_144)]
    pub dsl: String,
    /// The text as YAML or JSON.
    #[schema(required = false, max_length = 262_144)]
    pub yaml: String,
    /// `dsl` or `yaml`; for `text` only.
    #[schema(required = false, pattern = "^(dsl|yaml)$")]
    pub syntax: String,
    /// Put it in force at once. Left out: a new policy is not, and one that is stays so.
    #[schema(required = false)]
    pub activate: bool,
    /// With `activate`: higher goes first. Left out: 0.
    #[schema(required = false, minimum = -1_000_000, maximum = 1_000_000)]
    pub priority: i32,
    /// With `activate`: values of parameters; the others have their defaults.
    #[schema(required = false, value_type = Object)]
    pub parameter_values: Json,
    /// What is different, for the audit.
    #[schema(required = false, max_length = 1_000)]
    pub description: String,
}

/// A text to install or to look at.
#[derive(Clone, Debug, PartialEq)]
pub struct PolicyRequest {
    pub text: String,
    pub syntax: Syntax,
    pub activation: Option<Activation>,
    pub description: String,
}

impl Read for PolicyRequest {
    fn read<'v>(value: &'v Value<'v>, at: &mut At<'v>) -> Option<Self> {
        let mut fields = at.fields(value)?;
        let given = fields.given(&["text", "dsl", "yaml"]);
        let text: Option<String> = fields.optional("text");
        let dsl: Option<String> = fields.optional("dsl");
        let yaml: Option<String> = fields.optional("yaml");
        let syntax = fields.with("syntax", read_syntax);
        let activate: bool = fields.or_default("activate");
        let activation = activation(&mut fields);
        let description = description(&mut fields);
        if fields.has("syntax") && given.as_slice() != ["text"] {
            let message = "\"syntax\" goes with \"text\" only";
            fields.at.fault_in("syntax", code::CONFLICTING_FIELDS, message, "leave it out");
        }
        for name in fields.given(&["priority", "parameter_values"]) {
            if !activate {
                let message = format!("{name:?} has no meaning without \"activate\"");
                let hint = "set activate to true, or activate the policy afterwards";
                fields.at.fault_in(name, code::CONFLICTING_FIELDS, message, hint);
            }
        }
        match given.as_slice() {
            [_] => {}
            [] => {
                let message = "there is no \"text\"";
                let hint = "send the policy as \"text\", \"dsl\" or \"yaml\"";
                fields.at.fault_in("text", code::MISSING_FIELD, message, hint);
            }
            [_, second, ..] => {
                let message = "a policy has one text";
                let hint = "send one of \"text\", \"dsl\" and \"yaml\"";
                fields.at.fault_in(second, code::CONFLICTING_FIELDS, message, hint);
            }
        }
        fields.finish();
        let (text, syntax) = match (text, dsl, yaml) {
            (Some(text), ..) => {
                let syntax = syntax.unwrap_or_else(|| Syntax::of_text(&text));
                (text, syntax)
            }
            (_, Some(text), _) => (text, Syntax::Dsl),
            (_, _, text) => (text.unwrap_or_default(), Syntax::Yaml),
        };
        let activation = activate.then_some(activation);
        Some(Self { text, syntax, activation, description })
    }
}

fn read_syntax<'v>(value: &'v Value<'v>, at: &mut At<'v>) -> Option<Syntax> {
    match at.text(value)? {
        "dsl" => Some(Syntax::Dsl),
        "yaml" => Some(Syntax::Yaml),
        other => {
            at.unknown_choice(other, &["dsl", "yaml"]);
            None
        }
    }
}

fn activation(fields: &mut Fields<'_, '_>) -> Activation {
    let values: ParameterValues = fields.or_default("parameter_values");
    Activation { priority: priority(fields).unwrap_or_default(), settings: values.settings() }
}

fn priority(fields: &mut Fields<'_, '_>) -> Option<i32> {
    fields.with("priority", |value, at| {
        let number = i64::read(value, at)?;
        let known = i32::try_from(number).ok().filter(|it| it.unsigned_abs() <= 1_000_000);
        if known.is_none() {
            let message = format!("{number} is out of range");
            let hint = "send an integer from -1000000 to 1000000";
            at.fault(code::NUMBER_TOO_LARGE, message, hint);
        }
        known
    })
}

fn description(fields: &mut Fields<'_, '_>) -> String {
    let read = fields.with("description", |value, at| {
        let text = at.text(value)?;
        if text.chars().count() > MAX_DESCRIPTION {
            let message = format!("more than {MAX_DESCRIPTION} characters");
            at.fault(code::STRING_TOO_LONG, message, "shorten it");
        }
        Some(text.to_owned())
    });
    read.unwrap_or_default()
}

/// How a policy shall be in force.
#[derive(Clone, Debug, Default, PartialEq, Serialize, ToSchema)]
pub struct ActivationSpec {
    /// Higher goes first. Left out: 0.
    #[schema(required = false, minimum = -1_000_000, maximum = 1_000_000)]
    pub priority: i32,
    /// Values of parameters; the others have their defaults.
    #[schema(required = false, value_type = Object)]
    pub parameter_values: Json,
    /// Why, for the audit.
    #[schema(required = false, max_length = 1_000)]
    pub description: String,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct ActivationRequest {
    pub activation: Activation,
    pub description: String,
}

impl Read for ActivationRequest {
    fn read<'v>(value: &'v Value<'v>, at: &mut At<'v>) -> Option<Self> {
        let mut fields = at.fields(value)?;
        let activation = activation(&mut fields);
        let description = description(&mut fields);
        fields.finish();
        Some(Self { activation, description })
    }
}

/// What shall be different about an active policy; what is left out stays.
#[derive(Clone, Debug, Default, PartialEq, Serialize, ToSchema)]
pub struct TuneSpec {
    #[schema(required = false, minimum = -1_000_000, maximum = 1_000_000)]
    pub priority: i32,
    /// Values of parameters; null puts one back to its default.
    #[schema(required = false, value_type = Object)]
    pub parameter_values: Json,
    /// Why, for the audit.
    #[schema(required = false, max_length = 1_000)]
    pub description: String,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct TuneRequest {
    pub priority: Option<i32>,
    pub values: ParameterValues,
    pub description: String,
}

impl Read for TuneRequest {
    fn read<'v>(value: &'v Value<'v>, at: &mut At<'v>) -> Option<Self> {
        let mut fields = at.fields(value)?;
        let priority = priority(&mut fields);
        let values = fields.or_default("parameter_values");
        let description = description(&mut fields);
        fields.finish();
        Some(Self { priority, values, description })
    }
}

/// The version whose text shall be the newest one again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct RollbackSpec {
    #[schema(minimum = 1)]
    pub version: u32,
    /// Why, for the audit.
    #[schema(required = false, max_length = 1_000)]
    pub description: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RollbackRequest {
    pub version: u32,
    pub description: String,
}

impl Read for RollbackRequest {
    fn read<'v>(value: &'v Value<'v>, at: &mut At<'v>) -> Option<Self> {
        let mut fields = at.fields(value)?;
        let version = fields.required_integer("version", 1..=u64::from(u32::MAX));
        let description = description(&mut fields);
        fields.finish();
        Some(Self { version: version?, description })
    }
}

/// The policy revision whose weights shall be in force again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct WeightRollbackSpec {
    pub revision: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WeightRollbackRequest {
    pub revision: u64,
}

impl Read for WeightRollbackRequest {
    fn read<'v>(value: &'v Value<'v>, at: &mut At<'v>) -> Option<Self> {
        let mut fields = at.fields(value)?;
        let revision = fields.required_integer("revision", 0..=u64::MAX);
        fields.finish();
        Some(Self { revision: revision? })
    }
}
