//! JSON of any shape, for the maps that NovaCron leaves open: parameters, metadata, contexts.

use crate::json::Value;
use crate::read::{At, Read, Step};
use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Serialize, Serializer};
use std::borrow::Cow;
use utoipa::openapi::schema::ObjectBuilder;
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

/// A JSON value that owns its parts. Numbers are integers where they can be and floats otherwise.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Json {
    #[default]
    Null,
    Bool(bool),
    Integer(i64),
    Float(f64),
    Text(String),
    Array(Vec<Json>),
    Object(Vec<(String, Json)>),
}

impl Json {
    /// An object of these members, in this order.
    pub fn object<K: Into<String>>(members: impl IntoIterator<Item = (K, Json)>) -> Self {
        Json::Object(members.into_iter().map(|(key, value)| (key.into(), value)).collect())
    }

    pub fn get(&self, key: &str) -> Option<&Json> {
        match self {
            Json::Object(members) => {
                members.iter().find(|(name, _)| name == key).map(|(_, value)| value)
            }
            _ => None,
        }
    }

    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Json::Integer(number) => Some(*number as f64),
            Json::Float(number) => Some(*number),
            _ => None,
        }
    }

    pub fn as_str(&self) -> Option<&str> {
        match self {
            Json::Text(text) => Some(text),
            _ => None,
        }
    }

    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Json::Bool(value) => Some(*value),
            _ => None,
        }
    }

    /// The strings of an array, or a string by itself.
    pub fn as_texts(&self) -> Option<Vec<&str>> {
        match self {
            Json::Text(text) => Some(vec![text]),
            Json::Array(items) => items.iter().map(Json::as_str).collect(),
            _ => None,
        }
    }

    /// The value in a few words, for messages.
    pub fn describe(&self) -> String {
        match self {
            Json::Null => "null".into(),
            Json::Bool(value) => value.to_string(),
            Json::Integer(number) => number.to_string(),
            Json::Float(number) => number.to_string(),
            Json::Text(text) => format!("{:?}", crate::json::shorten(text)),
            Json::Array(items) => format!("an array of {}", items.len()),
            Json::Object(members) => format!("an object of {}", members.len()),
        }
    }
}

impl From<&str> for Json {
    fn from(text: &str) -> Self {
        Json::Text(text.to_owned())
    }
}

impl From<String> for Json {
    fn from(text: String) -> Self {
        Json::Text(text)
    }
}

impl From<bool> for Json {
    fn from(value: bool) -> Self {
        Json::Bool(value)
    }
}

impl From<i64> for Json {
    fn from(number: i64) -> Self {
        Json::Integer(number)
    }
}

impl From<f64> for Json {
    fn from(number: f64) -> Self {
        Json::Float(number)
    }
}

impl Read for Json {
    fn read<'v>(value: &'v Value<'v>, at: &mut At<'v>) -> Option<Self> {
        Some(match value {
            Value::Null => Json::Null,
            Value::Bool(value) => Json::Bool(*value),
            Value::Number(text) => match text.parse::<i64>() {
                Ok(number) => Json::Integer(number),
                Err(_) => Json::Float(f64::read(value, at)?),
            },
            Value::String(_) => Json::Text(String::read(value, at)?),
            Value::Array(_) => Json::Array(Vec::read(value, at)?),
            Value::Object(_) => {
                let mut members = Vec::new();
                for (key, value) in at.members(value)? {
                    let step = Step::Field(Cow::Borrowed(key.as_ref()));
                    let member = at.within(step, |at| Json::read(value, at));
                    members.extend(member.map(|value| (key.to_string(), value)));
                }
                Json::Object(members)
            }
        })
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Json::Null => serializer.serialize_unit(),
            Json::Bool(value) => serializer.serialize_bool(*value),
            Json::Integer(number) => serializer.serialize_i64(*number),
            Json::Float(number) => serializer.serialize_f64(*number),
            Json::Text(text) => serializer.serialize_str(text),
            Json::Array(items) => {
                let mut array = serializer.serialize_seq(Some(items.len()))?;
                for item in items {
                    array.serialize_element(item)?;
                }
                array.end()
            }
            Json::Object(members) => {
                let mut object = serializer.serialize_map(Some(members.len()))?;
                for (key, value) in members {
                    object.serialize_entry(key, value)?;
                }
                object.end()
            }
        }
    }
}

impl PartialSchema for Json {
    fn schema() -> RefOr<Schema> {
        let any = utoipa::openapi::schema::SchemaType::AnyValue;
        ObjectBuilder::new().schema_type(any).description(Some("Any JSON value.")).build().into()
    }
}

impl ToSchema for Json {
    fn name() -> Cow<'static, str> {
        "novacron.Json".into()
    }
}
