//! Reads the members of an object by name and refuses those that nobody asked for.
//!
//! The names that were asked for are the names that are known, so a reader and its list of
//! fields cannot drift apart. `null` counts as absent.

use crate::fault::code;
use crate::json::{Value, shorten};
use crate::read::{At, Read, Step, suggestion};
use std::borrow::Cow;
use std::ops::RangeInclusive;

/// The members of one object. `finish` or `ignore_others` must be called when all fields have
/// been asked for.
#[derive(Debug)]
pub(crate) struct Fields<'a, 'v> {
    pub(crate) at: &'a mut At<'v>,
    members: &'v [(Cow<'v, str>, Value<'v>)],
    asked: Vec<&'static str>,
}

impl<'a, 'v> Fields<'a, 'v> {
    pub(crate) fn new(at: &'a mut At<'v>, members: &'v [(Cow<'v, str>, Value<'v>)]) -> Self {
        Self { at, members, asked: Vec::with_capacity(members.len()) }
    }

    /// Reads the field with `read` if it is there.
    pub(crate) fn with<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(&'v Value<'v>, &mut At<'v>) -> Option<T>,
    ) -> Option<T> {
        self.asked.push(name);
        let (_, value) = self.members.iter().find(|(member, _)| member == name)?;
        if *value == Value::Null {
            return None;
        }
        self.at.within(Step::Field(Cow::Borrowed(name)), |at| read(value, at))
    }

    pub(crate) fn required_with<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(&'v Value<'v>, &mut At<'v>) -> Option<T>,
    ) -> Option<T> {
        let value = self.with(name, read);
        if !self.has(name) {
            let message = format!("{name:?} is missing");
            self.at.fault_in(name, code::MISSING_FIELD, message, format!("add {name:?}"));
        }
        value
    }

    pub(crate) fn required<T: Read>(&mut self, name: &'static str) -> Option<T> {
        self.required_with(name, T::read)
    }

    pub(crate) fn optional<T: Read>(&mut self, name: &'static str) -> Option<T> {
        self.with(name, T::read)
    }

    pub(crate) fn or_default<T: Read + Default>(&mut self, name: &'static str) -> T {
        self.optional(name).unwrap_or_default()
    }

    pub(crate) fn list<T: Read>(&mut self, name: &'static str, most: usize) -> Vec<T> {
        self.with(name, |value, at| at.list(value, most)).unwrap_or_default()
    }

    /// An integer of `range`, which must lie within what `N` holds.
    pub(crate) fn integer<N: TryFrom<u64>>(
        &mut self,
        name: &'static str,
        range: RangeInclusive<u64>,
    ) -> Option<N> {
        let number = self.with(name, |value, at| at.integer(value, range))?;
        N::try_from(number).ok()
    }

    pub(crate) fn required_integer<N: TryFrom<u64>>(
        &mut self,
        name: &'static str,
        range: RangeInclusive<u64>,
    ) -> Option<N> {
        let number = self.required_with(name, |value, at| at.integer(value, range))?;
        N::try_from(number).ok()
    }

    /// Whether the field is there and not `null`.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.members.iter().any(|(member, value)| member == name && *value != Value::Null)
    }

    /// Those of `names` that are there.
    pub(crate) fn given(&self, names: &[&'static str]) -> Vec<&'static str> {
        names.iter().copied().filter(|name| self.has(name)).collect()
    }

    /// Refuses fields of an answer that a client has sent back.
    pub(crate) fn read_only(&mut self, names: &[&'static str]) {
        for name in names {
            self.asked.push(name);
            if self.has(name) {
                let message = format!("{name:?} is set by the service");
                self.at.fault_in(name, code::READ_ONLY_FIELD, message, "leave it out");
            }
        }
    }

    /// Lets members that were not asked for be, as Go's decoder does.
    pub(crate) fn ignore_others(self) {}

    /// Refuses members that were not asked for.
    pub(crate) fn finish(self) {
        let Self { at, members, asked } = self;
        for (name, _) in members {
            if !asked.contains(&name.as_ref()) {
                let message = format!("there is no field {:?} here", shorten(name));
                let hint = suggestion(name, &asked);
                at.fault_in(name, code::UNKNOWN_FIELD, message, hint);
            }
        }
    }
}
