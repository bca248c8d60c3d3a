//! The values that expressions work on, and how a score becomes an integer.

use serde::{Deserialize, Serialize};
use smol_str::SmolStr;

/// A value of an attribute, a parameter or an expression. Numbers are always finite.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
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
    fn what_is_not_finite_is_nothing() {
        assert_eq!(Value::from(f64::NAN), Value::Null);
        assert_eq!(Value::from(None::<bool>), Value::Null);
    }
}
