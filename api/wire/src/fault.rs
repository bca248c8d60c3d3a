//! One thing that is wrong with a body: where, what, and what to do about it.

use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use utoipa::ToSchema;

/// One wrong thing in a request body.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Fault {
    /// Where it is, such as `vm.demand.cpu_millis` or `vms[3].id`; `$` is the body itself.
    #[schema(example = "vm.demand.cpu_millis")]
    pub path: String,
    /// A stable name for the kind of fault, for programs.
    #[schema(value_type = String, example = "negative_number")]
    pub code: Cow<'static, str>,
    /// What is wrong, with the value that was sent.
    #[schema(example = "-5 is negative")]
    pub message: String,
    /// What to send instead.
    #[schema(example = "send an integer from 0 to 2147483647")]
    pub hint: String,
}

impl Fault {
    /// The same fault seen from a value that has the faulty one in `place`.
    pub(crate) fn within(self, place: &str) -> Self {
        let path = match self.path.as_str() {
            "$" => place.to_owned(),
            path if path.starts_with('[') => format!("{place}{path}"),
            path => format!("{place}.{path}"),
        };
        Self { path, ..self }
    }
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}; {} ({})", self.path, self.message, self.hint, self.code)
    }
}

/// The codes of faults. Never renamed, because callers branch on them.
pub(crate) mod code {
    pub(crate) const INVALID_UTF8: &str = "invalid_utf8";
    pub(crate) const INVALID_JSON: &str = "invalid_json";
    pub(crate) const TOO_DEEP: &str = "too_deep";
    pub(crate) const TOO_MANY_ITEMS: &str = "too_many_items";
    pub(crate) const TOO_FEW_ITEMS: &str = "too_few_items";
    pub(crate) const STRING_TOO_LONG: &str = "string_too_long";
    pub(crate) const DUPLICATE_FIELD: &str = "duplicate_field";
    pub(crate) const DUPLICATE_ITEM: &str = "duplicate_item";
    pub(crate) const UNKNOWN_FIELD: &str = "unknown_field";
    pub(crate) const READ_ONLY_FIELD: &str = "read_only_field";
    pub(crate) const MISSING_FIELD: &str = "missing_field";
    pub(crate) const CONFLICTING_FIELDS: &str = "conflicting_fields";
    pub(crate) const WRONG_TYPE: &str = "wrong_type";
    pub(crate) const INVALID_NAME: &str = "invalid_name";
    pub(crate) const INVALID_VALUE: &str = "invalid_value";
    pub(crate) const UNKNOWN_CHOICE: &str = "unknown_choice";
    pub(crate) const UNKNOWN_DIMENSION: &str = "unknown_dimension";
    pub(crate) const UNKNOWN_REFERENCE: &str = "unknown_reference";
    pub(crate) const NON_FINITE_NUMBER: &str = "non_finite_number";
    pub(crate) const NEGATIVE_NUMBER: &str = "negative_number";
    pub(crate) const FRACTIONAL_NUMBER: &str = "fractional_number";
    pub(crate) const NUMBER_TOO_LARGE: &str = "number_too_large";
    pub(crate) const NUMBER_TOO_SMALL: &str = "number_too_small";
    pub(crate) const EXCEEDS_CAPACITY: &str = "exceeds_capacity";
}

/// The code of faults that are not about a field but about the text not being JSON.
pub(crate) fn is_syntax(code: &str) -> bool {
    code == code::INVALID_UTF8 || code == code::INVALID_JSON
}
