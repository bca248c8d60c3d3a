//! The values that expressions work on, and how a score becomes an integer.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use smol_str::SmolStr;
use std::hash::{Hash, Hasher};

/// A value of an attribute, a parameter or an expression. Numbers are always finite.
///
/// In JSON it is the bare scalar; in logs, which do not describe themselves, it has a tag.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Value {
    /// The attribute is not there.
    #[default]
    Null,
    Bool(bool),
    Number(f64),
    Text(SmolStr),
}

impl Value {
    pub fn text(text: &str) -> Self {
        Value::Text(SmolStr::new(text))
    }

    /// A number, or null when it is not finite: columns and constants never hold such.
    pub fn number(number: f64) -> Self {
        if number.is_finite() { Value::Number(number) } else { Value::Null }
    }

    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    /// What kind of value it is, as messages call it.
    pub fn kind(&self) -> &'static str {
        match self {
            Value::Null => "nothing",
            Value::Bool(_) => "a bool",
            Value::Number(_) => "a number",
            Value::Text(_) => "a string",
        }
    }
}

/// Numbers are finite, so every value equals itself.
impl Eq for Value {}

impl Hash for Value {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            Value::Null => 0_u8.hash(state),
            Value::Bool(value) => (1_u8, value).hash(state),
            // Minus zero equals zero.
            Value::Number(value) => (2_u8, (value + 0.0).to_bits()).hash(state),
            Value::Text(value) => (3_u8, value).hash(state),
        }
    }
}

/// How a value looks in a log.
#[derive(Serialize, Deserialize)]
enum Tagged {
    Null,
    Bool(bool),
    Number(f64),
    Text(SmolStr),
}

/// How a value looks in JSON.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Bare {
    Null,
    Bool(bool),
    Number(f64),
    Text(SmolStr),
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let bare = serializer.is_human_readable();
        match self.clone() {
            Value::Null if bare => Bare::Null.serialize(serializer),
            Value::Bool(value) if bare => Bare::Bool(value).serialize(serializer),
            Value::Number(value) if bare => Bare::Number(value).serialize(serializer),
            Value::Text(value) if bare => Bare::Text(value).serialize(serializer),
            Value::Null => Tagged::Null.serialize(serializer),
            Value::Bool(value) => Tagged::Bool(value).serialize(serializer),
            Value::Number(value) => Tagged::Number(value).serialize(serializer),
            Value::Text(value) => Tagged::Text(value).serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let tagged = if deserializer.is_human_readable() {
            match Bare::deserialize(deserializer)? {
                Bare::Null => Tagged::Null,
                Bare::Bool(value) => Tagged::Bool(value),
                Bare::Number(value) => Tagged::Number(value),
                Bare::Text(value) => Tagged::Text(value),
            }
        } else {
            Tagged::deserialize(deserializer)?
        };
        Ok(match tagged {
            Tagged::Null => Value::Null,
            Tagged::Bool(value) => Value::Bool(value),
            Tagged::Number(value) => Value::number(value),
            Tagged::Text(value) => Value::Text(value),
        })
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Value::Bool(value)
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Value::number(value)
    }
}

impl From<u64> for Value {
    fn from(value: u64) -> Self {
        Value::Number(value as f64)
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Value::text(value)
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Value::Null, Into::into)
    }
}

impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Value::Null => f.write_str("null"),
            Value::Bool(value) => write!(f, "{value}"),
            Value::Number(value) => write!(f, "{value}"),
            Value::Text(value) => write!(f, "{value:?}"),
        }
    }
}

/// Largest size of a score, in thousandths of a point: a billion points.
///
/// A quarter of a million contributions of this size still add up inside `i64`.
pub const MAX_MILLIS: i64 = 1_000_000_000_000;

/// Points as thousandths, rounded half away from zero and clamped to `MAX_MILLIS`.
///
/// Adding a half and cutting off is one IEEE addition and one conversion, the same everywhere.
pub fn millis(points: f64) -> i64 {
    let thousandths = points * 1000.0;
    ((thousandths + 0.5_f64.copysign(thousandths)) as i64).clamp(-MAX_MILLIS, MAX_MILLIS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_become_thousandths_rounded_half_away_from_zero() {
        assert_eq!(millis(1.5), 1500);
        assert_eq!(millis(0.0005), 1);
        assert_eq!(millis(-0.0005), -1);
        assert_eq!(millis(-2.0004), -2000);
    }

    #[test]
    fn huge_scores_are_clamped() {
        assert_eq!(millis(1e300), MAX_MILLIS);
        assert_eq!(millis(f64::NEG_INFINITY), -MAX_MILLIS);
    }

    #[test]
    fn values_are_bare_in_json_and_survive_a_log() {
        let values = [Value::Null, Value::Bool(true), Value::Number(2.5), Value::text("a")];
        let json = serde_json::to_string(&values).expect("plain data");
        assert_eq!(json, r#"[null,true,2.5,"a"]"#);
        let read: [Value; 4] = serde_json::from_str(&json).expect("reads back");
        assert_eq!(read, values);
        let bytes = postcard::to_allocvec(&values).expect("plain data");
        let read: [Value; 4] = postcard::from_bytes(&bytes).expect("reads back");
        assert_eq!(read, values);
        let whole: Value = serde_json::from_str("7").expect("a number");
        assert_eq!(whole, Value::Number(7.0));
    }

    #[test]
    fn what_is_not_finite_is_nothing() {
        assert_eq!(Value::from(f64::NAN), Value::Null);
        assert_eq!(Value::from(None::<bool>), Value::Null);
    }
}
