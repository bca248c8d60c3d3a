//! Go's plain types: zero values for what is absent or `null`, `nil` apart from empty.
//!
//! `Option<Vec<_>>` and `Option<BTreeMap<..>>` stand for slices and maps: `None` is `nil`, which
//! Go writes as `null`, and an empty one is written as `[]` or `{}`.

use crate::fault::{Fault, code};
use crate::json::Value;
use crate::number::{self, NotUnsigned};
use crate::read::{At, Read, Step};
use cluster::{MAX_AMOUNT, Name};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// Reads a struct by the keys of its fields. Absent fields keep Go's zero value, and unknown keys
/// are ignored.
macro_rules! go_struct {
    ($type:ident { $($field:ident = $key:literal),+ $(,)? }) => {
        impl crate::read::Read for $type {
            fn read<'v>(
                value: &'v crate::json::Value<'v>,
                at: &mut crate::read::At<'v>,
            ) -> Option<Self> {
                let mut fields = at.fields(value)?;
                let read = Self { $($field: fields.or_default($key)),+ };
                fields.ignore_others();
                Some(read)
            }
        }
    };
}
pub(super) use go_struct;

/// For `skip_serializing_if`: what `omitempty` leaves out.
pub(super) fn is_zero<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

pub(super) fn no_items<T>(items: &Option<Vec<T>>) -> bool {
    items.as_ref().is_none_or(Vec::is_empty)
}

pub(super) fn no_entries<V>(entries: &Option<BTreeMap<String, V>>) -> bool {
    entries.as_ref().is_none_or(BTreeMap::is_empty)
}

/// A value that has the right type and makes no sense.
pub(super) fn fault(
    path: impl Into<String>,
    code: &'static str,
    message: impl Into<String>,
    hint: impl Into<String>,
) -> Fault {
    Fault { path: path.into(), code: code.into(), message: message.into(), hint: hint.into() }
}

/// `value` times `unit` as an amount of the cluster.
pub(super) fn amount(path: &str, value: i64, unit: u64) -> Result<u64, Fault> {
    let most = MAX_AMOUNT.checked_div(unit).unwrap_or(MAX_AMOUNT);
    let hint = || format!("send an integer from 0 to {most}");
    let Ok(whole) = u64::try_from(value) else {
        return Err(fault(path, code::NEGATIVE_NUMBER, format!("{value} is negative"), hint()));
    };
    match whole.checked_mul(unit) {
        Some(amount) if amount <= MAX_AMOUNT => Ok(amount),
        _ => {
            let message = format!("{value} is more than {most}");
            Err(fault(path, code::NUMBER_TOO_LARGE, message, hint()))
        }
    }
}

/// A trimmed id as a name.
pub(super) fn id(path: &str, text: &str) -> Result<Name, Fault> {
    Name::new(text.trim()).map_err(|error| {
        let hint = "send 1 to 128 letters, digits and . _ : / @ -, starting with a letter or digit";
        let shown = crate::json::shorten(text);
        fault(path, code::INVALID_NAME, format!("{shown:?} is not an id: {error}"), hint)
    })
}

/// A list of ids. Blank ones are left out, as NovaCron leaves them out.
pub(super) fn ids(path: &str, list: &Option<Vec<String>>) -> Result<Vec<Name>, Fault> {
    let mut names = Vec::new();
    // Lists of candidates name whole fleets.
    let mut seen = BTreeSet::new();
    for (row, text) in list.iter().flatten().enumerate() {
        if text.trim().is_empty() {
            continue;
        }
        let name = id(&format!("{path}[{row}]"), text)?;
        if seen.insert(name.clone()) {
            names.push(name);
        }
    }
    Ok(names)
}

impl Read for String {
    fn read<'v>(value: &'v Value<'v>, at: &mut At<'v>) -> Option<Self> {
        at.text(value).map(str::to_owned)
    }
}

impl Read for i64 {
    fn read<'v>(value: &'v Value<'v>, at: &mut At<'v>) -> Option<Self> {
        let hint = "send a whole number of 64 bits";
        let Value::Number(text) = value else {
            at.wrong_type(value, "an integer");
            return None;
        };
        match signed(text) {
            Ok(number) => Some(number),
            Err(why) => {
                let (code, what) = match why {
                    NotUnsigned::Fractional => (code::FRACTIONAL_NUMBER, "is not a whole number"),
                    NotUnsigned::NonFinite => (code::NON_FINITE_NUMBER, "is not a finite number"),
                    _ => (code::NUMBER_TOO_LARGE, "is out of range"),
                };
                at.fault(code, format!("{} {what}", value.describe()), hint);
                None
            }
        }
    }
}

fn signed(text: &str) -> Result<i64, NotUnsigned> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let magnitude = i128::from(number::unsigned(digits)?);
    let number = if negative { magnitude.saturating_neg() } else { magnitude };
    i64::try_from(number).map_err(|_| NotUnsigned::TooLarge)
}

impl Read for u64 {
    fn read<'v>(value: &'v Value<'v>, at: &mut At<'v>) -> Option<Self> {
        at.integer(value, 0..=u64::MAX)
    }
}

impl Read for f64 {
    fn read<'v>(value: &'v Value<'v>, at: &mut At<'v>) -> Option<Self> {
        let Value::Number(text) = value else {
            at.wrong_type(value, "a number");
            return None;
        };
        match text.parse::<f64>() {
            Ok(number) if number.is_finite() => Some(number),
            _ => {
                let message = format!("{} is not a finite number", value.describe());
                at.fault(code::NON_FINITE_NUMBER, message, "send a finite number");
                None
            }
        }
    }
}

impl<T: Read> Read for Option<T> {
    fn read<'v>(value: &'v Value<'v>, at: &mut At<'v>) -> Option<Self> {
        T::read(value, at).map(Some)
    }
}

impl<T: Read> Read for Vec<T> {
    fn read<'v>(value: &'v Value<'v>, at: &mut At<'v>) -> Option<Self> {
        at.list(value, usize::MAX)
    }
}

impl<T: Read> Read for BTreeMap<String, T> {
    fn read<'v>(value: &'v Value<'v>, at: &mut At<'v>) -> Option<Self> {
        let mut map = BTreeMap::new();
        for (key, value) in at.members(value)? {
            let step = Step::Field(Cow::Borrowed(key.as_ref()));
            let entry = at.within(step, |at| T::read(value, at));
            map.extend(entry.map(|value| (key.to_string(), value)));
        }
        Some(map)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_have_64_bits_and_no_fraction() {
        assert_eq!(signed("-9223372036854775808"), Ok(i64::MIN));
        assert_eq!(signed("9223372036854775807"), Ok(i64::MAX));
        assert_eq!(signed("9223372036854775808"), Err(NotUnsigned::TooLarge));
        assert_eq!(signed("-0.5"), Err(NotUnsigned::Fractional));
        assert_eq!(signed("-2e2"), Ok(-200));
        assert_eq!(signed("-0"), Ok(0));
    }

    #[test]
    fn amounts_say_which_values_would_do() {
        assert_eq!(amount("total_cpu", 4, 1000), Ok(4000));
        let wrong = amount("total_cpu", 3_000_000, 1000).expect_err("too many cores");
        assert_eq!(wrong.hint, "send an integer from 0 to 2147483");
        assert_eq!(amount("x", -1, 1).expect_err("negative").code, "negative_number");
    }
}
