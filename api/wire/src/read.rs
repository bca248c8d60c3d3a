//! From bytes to checked values: the entry points, the place in the body, and the simple types.
//!
//! A reader goes on after a fault and notes it with its path, so that a caller learns everything
//! that is wrong with a body at once. What a reader returns for a faulty part does not matter:
//! one fault anywhere refuses the whole body.

use crate::fault::{Fault, code};
use crate::fields::Fields;
use crate::json::{self, Value, shorten};
use crate::limits::Limits;
use crate::number::{self, NotUnsigned};
use crate::suggest::nearest;
use cluster::{Dimensions, Name};
use std::borrow::Cow;
use std::ops::RangeInclusive;
use std::sync::Arc;

/// Reads one JSON document. `Err` has at least one fault.
pub fn read<T: Read>(bytes: &[u8], limits: &Limits) -> Result<T, Vec<Fault>> {
    let value = json::parse(bytes, limits).map_err(|fault| vec![fault])?;
    let mut at = At::new(limits);
    let read = T::read(&value, &mut at);
    match read {
        Some(read) if at.faults.is_empty() => Ok(read),
        _ => Err(at.faults),
    }
}

/// Reads a body with one JSON document per line; blank lines do not count.
///
/// Paths start with the number of the document, from 0; messages start with the number of the
/// line, from 1.
pub fn read_lines<T: Read>(bytes: &[u8], limits: &Limits) -> Result<Vec<T>, Vec<Fault>> {
    let mut documents = Vec::new();
    let mut faults = Vec::new();
    for (line, bytes) in bytes.split(|&byte| byte == b'\n').enumerate() {
        let bytes = bytes.trim_ascii();
        if bytes.is_empty() {
            continue;
        }
        if documents.len() == limits.lines {
            faults.push(Fault {
                path: "$".into(),
                code: code::TOO_MANY_ITEMS.into(),
                message: format!("more than {} lines", limits.lines),
                hint: "split the body".into(),
            });
            break;
        }
        match read::<T>(bytes, limits) {
            Ok(document) => documents.push(Some(document)),
            Err(wrong) => {
                let number = documents.len();
                faults.extend(wrong.into_iter().map(|fault| on_line(fault, number, line)));
                documents.push(None);
            }
        }
        if faults.len() >= limits.faults {
            break;
        }
    }
    match faults.is_empty() {
        true => Ok(documents.into_iter().flatten().collect()),
        false => Err(faults),
    }
}

fn on_line(fault: Fault, number: usize, line: usize) -> Fault {
    let message = format!("line {}: {}", line.saturating_add(1), fault.message);
    Fault { message, ..fault.within(&format!("[{number}]")) }
}

/// What can be read from a JSON value.
pub trait Read: Sized {
    /// `None` only if a fault has been noted at `at`.
    fn read<'v>(value: &'v Value<'v>, at: &mut At<'v>) -> Option<Self>;
}

/// One step from a value to a part of it.
#[derive(Clone, Debug)]
pub(crate) enum Step<'v> {
    Field(Cow<'v, str>),
    Item(usize),
}

/// The place in the body that is being read, and the faults found so far.
#[derive(Debug)]
pub struct At<'v> {
    path: Vec<Step<'v>>,
    faults: Vec<Fault>,
    limits: &'v Limits,
    /// Starts as the limits' and is replaced by documents that bring their own.
    pub(crate) dimensions: Arc<Dimensions>,
}

impl<'v> At<'v> {
    fn new(limits: &'v Limits) -> Self {
        let dimensions = limits.dimensions.clone();
        Self { path: Vec::new(), faults: Vec::new(), limits, dimensions }
    }

    /// Runs `read` one step further down.
    pub(crate) fn within<T>(&mut self, step: Step<'v>, read: impl FnOnce(&mut Self) -> T) -> T {
        self.path.push(step);
        let value = read(self);
        self.path.pop();
        value
    }

    pub(crate) fn is_faultless(&self) -> bool {
        self.faults.is_empty()
    }

    /// Notes a fault here.
    pub(crate) fn fault(
        &mut self,
        code: &'static str,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        if self.faults.len() < self.limits.faults {
            let path = render_path(&self.path);
            let (message, hint) = (message.into(), hint.into());
            self.faults.push(Fault { path, code: code.into(), message, hint });
        }
    }

    /// Notes a fault at the field `name` below.
    pub(crate) fn fault_in(
        &mut self,
        name: &'v str,
        code: &'static str,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        self.within(Step::Field(Cow::Borrowed(name)), |at| at.fault(code, message, hint));
    }

    pub(crate) fn wrong_type(&mut self, value: &Value<'_>, expected: &str) {
        let message = format!("{} where {expected} is expected", value.describe());
        self.fault(code::WRONG_TYPE, message, format!("send {expected}"));
    }

    /// The members of an object, to be asked for by name.
    pub(crate) fn fields<'a>(&'a mut self, value: &'v Value<'v>) -> Option<Fields<'a, 'v>> {
        let members = self.members(value)?;
        Some(Fields::new(self, members))
    }

    /// The members of an object whose names are data. Names that come twice are faults.
    pub(crate) fn members(
        &mut self,
        value: &'v Value<'v>,
    ) -> Option<&'v [(Cow<'v, str>, Value<'v>)]> {
        let Value::Object(members) = value else {
            self.wrong_type(value, "an object");
            return None;
        };
        let mut names: Vec<&str> = members.iter().map(|(name, _)| name.as_ref()).collect();
        names.sort_unstable();
        let pairs = names.iter().zip(names.iter().skip(1));
        let mut repeated: Vec<&str> = pairs.filter(|(a, b)| a == b).map(|(a, _)| *a).collect();
        repeated.dedup();
        for name in repeated {
            let message = format!("{:?} is given more than once", shorten(name));
            self.within(Step::Field(Cow::Owned(name.to_owned())), |at| {
                at.fault(code::DUPLICATE_FIELD, message, "give it once");
            });
        }
        Some(members)
    }

    /// The items of an array of at most `most`.
    pub(crate) fn items(&mut self, value: &'v Value<'v>, most: usize) -> Option<&'v [Value<'v>]> {
        let Value::Array(items) = value else {
            self.wrong_type(value, "an array");
            return None;
        };
        if items.len() > most {
            let message = format!("an array of {}, at most {most} are allowed", items.len());
            self.fault(code::TOO_MANY_ITEMS, message, format!("send at most {most}"));
            return None;
        }
        Some(items)
    }

    /// An array of at most `most`. Faulty items are left out.
    pub(crate) fn list<T: Read>(&mut self, value: &'v Value<'v>, most: usize) -> Option<Vec<T>> {
        let items = self.items(value, most)?;
        let mut list = Vec::with_capacity(items.len());
        for (row, item) in items.iter().enumerate() {
            list.extend(self.within(Step::Item(row), |at| T::read(item, at)));
        }
        Some(list)
    }

    pub(crate) fn text(&mut self, value: &'v Value<'v>) -> Option<&'v str> {
        let Value::String(text) = value else {
            self.wrong_type(value, "a string");
            return None;
        };
        let most = self.limits.string_bytes;
        if text.len() > most {
            let message = format!("a string of {} bytes, at most {most} are allowed", text.len());
            self.fault(code::STRING_TOO_LONG, message, "shorten it");
            return None;
        }
        Some(text)
    }

    /// An integer within `range`.
    pub(crate) fn integer(
        &mut self,
        value: &'v Value<'v>,
        range: RangeInclusive<u64>,
    ) -> Option<u64> {
        let (least, most) = (*range.start(), *range.end());
        let hint = || format!("send an integer from {least} to {most}");
        let Value::Number(text) = value else {
            let message = format!("{} where an integer is expected", value.describe());
            self.fault(code::WRONG_TYPE, message, hint());
            return None;
        };
        let shown = shorten(text);
        if text.len() > self.limits.string_bytes {
            let message = format!("a number of {} characters", text.len());
            self.fault(code::NUMBER_TOO_LARGE, message, hint());
            return None;
        }
        let (code, message) = match number::unsigned(text) {
            Ok(number) if number < least => {
                (code::NUMBER_TOO_SMALL, format!("{shown} is less than {least}"))
            }
            Ok(number) if number > most => {
                (code::NUMBER_TOO_LARGE, format!("{shown} is more than {most}"))
            }
            Ok(number) => return Some(number),
            Err(NotUnsigned::TooLarge) => {
                (code::NUMBER_TOO_LARGE, format!("{shown} is more than {most}"))
            }
            Err(NotUnsigned::Negative) => (code::NEGATIVE_NUMBER, format!("{shown} is negative")),
            Err(NotUnsigned::Fractional) => {
                (code::FRACTIONAL_NUMBER, format!("{shown} is not a whole number"))
            }
            Err(NotUnsigned::NonFinite) => {
                (code::NON_FINITE_NUMBER, format!("{shown} is not a finite number"))
            }
        };
        self.fault(code, message, hint());
        None
    }

    /// Checks a name that is a member's name or part of a longer string.
    pub(crate) fn name(&mut self, text: &str) -> Option<Name> {
        match Name::new(text) {
            Ok(name) => Some(name),
            Err(error) => {
                let message = format!("{:?} is not a name: {error}", shorten(text));
                let hint = "send 1 to 128 letters, digits and . _ : / @ -, \
                            starting with a letter or digit";
                self.fault(code::INVALID_NAME, message, hint);
                None
            }
        }
    }

    /// Notes that `word` is none of `known`.
    pub(crate) fn unknown_choice(&mut self, word: &str, known: &[&str]) {
        let message = format!("{:?} is not one of the choices", shorten(word));
        self.fault(code::UNKNOWN_CHOICE, message, suggestion(word, known));
    }
}

/// "Did you mean", or the list of all that would do.
pub(crate) fn suggestion(word: &str, known: &[&str]) -> String {
    match nearest(word, known.iter().copied()) {
        Some(near) => format!("did you mean {near:?}?"),
        None => format!("use one of: {}", known.join(", ")),
    }
}

/// A path as it is shown: `vm.demand.cpu_millis`, `vms[3].id`, `labels["a.b"]`, `$` for the body.
pub(crate) fn render_path(path: &[Step<'_>]) -> String {
    let mut text = String::new();
    for step in path {
        match step {
            Step::Item(row) => text.push_str(&format!("[{row}]")),
            Step::Field(name) => {
                let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
                if name.is_empty() || name.len() > 64 || !name.chars().all(plain) {
                    text.push_str(&format!("[{:?}]", shorten(name)));
                } else {
                    let dot = if text.is_empty() { "" } else { "." };
                    text.push_str(&format!("{dot}{name}"));
                }
            }
        }
    }
    if text.is_empty() { "$".into() } else { text }
}

impl Read for Name {
    fn read<'v>(value: &'v Value<'v>, at: &mut At<'v>) -> Option<Self> {
        let text = at.text(value)?;
        at.name(text)
    }
}

impl Read for bool {
    fn read<'v>(value: &'v Value<'v>, at: &mut At<'v>) -> Option<Self> {
        let Value::Bool(value) = value else {
            at.wrong_type(value, "true or false");
            return None;
        };
        Some(*value)
    }
}
