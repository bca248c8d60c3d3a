//! Values of parameters in a form that can be compared, logged and read back exactly.

use crate::Value;
use serde::{Deserialize, Serialize};
use smol_str::SmolStr;
use std::collections::BTreeMap;

/// The value that an operator gave a parameter.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Setting {
    Null,
    Bool(bool),
    /// The bits of the number.
    Number(u64),
    Text(SmolStr),
}

/// Settings by parameter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings(BTreeMap<SmolStr, Setting>);

impl Settings {
    /// Takes over what `other` names; null forgets a value.
    pub(super) fn change(&mut self, other: &Settings) {
        for (name, setting) in &other.0 {
            match setting {
                Setting::Null => self.0.remove(name),
                setting => self.0.insert(name.clone(), setting.clone()),
            };
        }
    }

    pub fn values(&self) -> BTreeMap<SmolStr, Value> {
        self.0.iter().map(|(name, setting)| (name.clone(), setting.value())).collect()
    }
}

impl From<&BTreeMap<SmolStr, Value>> for Settings {
    fn from(values: &BTreeMap<SmolStr, Value>) -> Self {
        Self(values.iter().map(|(name, value)| (name.clone(), Setting::from(value))).collect())
    }
}

impl Setting {
    pub fn value(&self) -> Value {
        match self {
            Setting::Null => Value::Null,
            Setting::Bool(value) => Value::Bool(*value),
            Setting::Number(bits) => Value::number(f64::from_bits(*bits)),
            Setting::Text(text) => Value::Text(text.clone()),
        }
    }
}

impl From<&Value> for Setting {
    fn from(value: &Value) -> Self {
        match value {
            Value::Null => Setting::Null,
            Value::Bool(value) => Setting::Bool(*value),
            Value::Number(number) => Setting::Number(number.to_bits()),
            Value::Text(text) => Setting::Text(text.clone()),
        }
    }
}
