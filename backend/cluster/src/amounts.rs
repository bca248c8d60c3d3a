//! Amounts of every resource dimension, and which dimensions there are.

use crate::Name;
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

/// Largest amount of one dimension on one host or in one demand.
///
/// Kept under 2^31 so that the solver's columns hold it as `i32` with room for a sign, and so
/// that a sum over four billion VMs still fits in 64 bits. In units: 2 PiB of memory, 2 EiB of
/// disk, two million cores.
pub const MAX_AMOUNT: u64 = (1 << 31) - 1;

/// The five built-in dimensions and all extra ones together.
pub const MAX_DIMENSIONS: usize = 64;

/// A resource dimension's number: 0 to 4 are built in, the rest are declared by configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Dim(pub u8);

impl Dim {
    pub const CPU_MILLIS: Dim = Dim(0);
    pub const MEMORY_MIB: Dim = Dim(1);
    pub const DISK_GIB: Dim = Dim(2);
    pub const DISK_IOPS: Dim = Dim(3);
    pub const NET_MBPS: Dim = Dim(4);
    /// How many dimensions exist without any configuration.
    pub const BUILT_IN: usize = 5;

    pub fn row(self) -> usize {
        self.0 as usize
    }
}

const BUILT_IN_NAMES: [&str; Dim::BUILT_IN] =
    ["cpu_millis", "memory_mib", "disk_gib", "disk_iops", "net_mbps"];

/// The dimensions of this cluster, in order. Extra ones can be added but never removed or moved.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dimensions {
    extra: Vec<Name>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DimensionError {
    #[error("dimension {0} is declared twice")]
    Duplicate(Name),
    #[error("{0} dimensions are declared, at most {MAX_DIMENSIONS} are allowed")]
    TooMany(usize),
    #[error("dimension {kept} was declared before at this place and cannot be dropped or moved")]
    Reordered { kept: Name },
}

impl Dimensions {
    /// The built-in dimensions and the extra ones, in this order.
    pub fn with_extra(extra: Vec<Name>) -> Result<Self, DimensionError> {
        let count = Dim::BUILT_IN + extra.len();
        if count > MAX_DIMENSIONS {
            return Err(DimensionError::TooMany(count));
        }
        for (row, name) in extra.iter().enumerate() {
            if BUILT_IN_NAMES.contains(&name.as_str()) || extra[..row].contains(name) {
                return Err(DimensionError::Duplicate(name.clone()));
            }
        }
        Ok(Self { extra })
    }

    /// Checks that `next` only appends to these dimensions.
    pub fn check_extended_by(&self, next: &Dimensions) -> Result<(), DimensionError> {
        for (row, kept) in self.extra.iter().enumerate() {
            if next.extra.get(row) != Some(kept) {
                return Err(DimensionError::Reordered { kept: kept.clone() });
            }
        }
        Ok(())
    }

    pub fn len(&self) -> usize {
        Dim::BUILT_IN + self.extra.len()
    }

    pub fn is_empty(&self) -> bool {
        false
    }

    pub fn iter(&self) -> impl Iterator<Item = Dim> + use<> {
        (0..self.len() as u8).map(Dim)
    }

    pub fn extra(&self) -> &[Name] {
        &self.extra
    }

    pub fn name(&self, dim: Dim) -> &str {
        match BUILT_IN_NAMES.get(dim.row()) {
            Some(name) => name,
            None => self.extra.get(dim.row() - Dim::BUILT_IN).map_or("?", Name::as_str),
        }
    }

    pub fn find(&self, name: &str) -> Option<Dim> {
        self.iter().find(|&dim| self.name(dim) == name)
    }
}

/// An amount of each dimension; dimensions that are not written are zero.
///
/// Trailing zeros are never stored, so that two equal amounts compare and encode equally.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Amounts(SmallVec<[u64; Dim::BUILT_IN]>);

impl Amounts {
    pub fn zero() -> Self {
        Self::default()
    }

    /// CPU and memory, the two that everybody writes.
    pub fn cpu_memory(cpu_millis: u64, memory_mib: u64) -> Self {
        Self::from_slice(&[cpu_millis, memory_mib])
    }

    pub fn from_slice(amounts: &[u64]) -> Self {
        let used = amounts.iter().rposition(|&amount| amount != 0).map_or(0, |row| row + 1);
        Self(SmallVec::from_slice(&amounts[..used]))
    }

    pub fn get(&self, dim: Dim) -> u64 {
        self.0.get(dim.row()).copied().unwrap_or(0)
    }

    pub fn set(&mut self, dim: Dim, amount: u64) {
        if self.0.len() <= dim.row() {
            if amount == 0 {
                return;
            }
            self.0.resize(dim.row() + 1, 0);
        }
        self.0[dim.row()] = amount;
        while self.0.last() == Some(&0) {
            self.0.pop();
        }
    }

    /// With other amounts of some dimensions; the others stay.
    pub fn changed(&self, changes: &[(Dim, u64)]) -> Self {
        changes.iter().fold(self.clone(), |amounts, (dim, amount)| amounts.with(*dim, *amount))
    }

    pub fn with(mut self, dim: Dim, amount: u64) -> Self {
        self.set(dim, amount);
        self
    }

    /// The dimensions with a non-zero amount, in order.
    pub fn iter(&self) -> impl Iterator<Item = (Dim, u64)> + '_ {
        let rows = self.0.iter().enumerate();
        rows.filter(|(_, amount)| **amount != 0).map(|(row, amount)| (Dim(row as u8), *amount))
    }

    /// One more than the highest dimension with a non-zero amount.
    pub fn width(&self) -> usize {
        self.0.len()
    }

    pub fn is_zero(&self) -> bool {
        self.0.is_empty()
    }

    pub fn checked_add(&self, other: &Amounts) -> Option<Amounts> {
        self.zip(other, u64::checked_add)
    }

    /// `None` when any dimension of `other` is larger.
    pub fn checked_sub(&self, other: &Amounts) -> Option<Amounts> {
        self.zip(other, u64::checked_sub)
    }

    pub fn saturating_sub(&self, other: &Amounts) -> Amounts {
        self.zip(other, |a, b| Some(a.saturating_sub(b))).unwrap_or_default()
    }

    /// Adds in place; `false`, and nothing changed, when a dimension would overflow.
    #[must_use]
    pub fn try_add(&mut self, other: &Amounts) -> bool {
        self.replace(self.checked_add(other))
    }

    /// Subtracts in place; `false`, and nothing changed, when a dimension would fall below zero.
    #[must_use]
    pub fn try_sub(&mut self, other: &Amounts) -> bool {
        self.replace(self.checked_sub(other))
    }

    /// Whether every dimension of `self` is at most that of `other`.
    pub fn fits_in(&self, other: &Amounts) -> bool {
        self.iter().all(|(dim, amount)| amount <= other.get(dim))
    }

    fn replace(&mut self, sum: Option<Amounts>) -> bool {
        match sum {
            Some(sum) => {
                *self = sum;
                true
            }
            None => false,
        }
    }

    fn zip(&self, other: &Amounts, op: impl Fn(u64, u64) -> Option<u64>) -> Option<Amounts> {
        let width = self.width().max(other.width());
        let mut sum = SmallVec::with_capacity(width);
        for row in 0..width {
            let dim = Dim(row as u8);
            sum.push(op(self.get(dim), other.get(dim))?);
        }
        while sum.last() == Some(&0) {
            sum.pop();
        }
        Some(Amounts(sum))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Name {
        Name::new(text).expect("a valid name")
    }

    #[test]
    fn equal_amounts_are_equal_however_they_were_made() {
        let written = Amounts::from_slice(&[1, 2, 0, 0]);
        let reduced = Amounts::from_slice(&[1, 2, 3]).with(Dim::DISK_GIB, 0);
        assert_eq!(written, reduced);
        assert_eq!(written.width(), 2);
    }

    #[test]
    fn subtraction_refuses_what_is_not_there() {
        let four = Amounts::cpu_memory(4, 4);
        assert_eq!(four.checked_sub(&Amounts::cpu_memory(5, 0)), None);
        assert_eq!(four.checked_sub(&four), Some(Amounts::zero()));
        assert_eq!(four.checked_add(&Amounts::cpu_memory(u64::MAX, 0)), None);
    }

    #[test]
    fn dimensions_can_grow_but_not_move() {
        let one = Dimensions::with_extra(vec![name("gpu_slots")]).expect("one extra");
        let two = Dimensions::with_extra(vec![name("gpu_slots"), name("ane")]).expect("two");
        let swapped = Dimensions::with_extra(vec![name("ane"), name("gpu_slots")]).expect("two");
        assert_eq!(one.check_extended_by(&two), Ok(()));
        assert!(two.check_extended_by(&swapped).is_err());
        assert_eq!(two.find("ane"), Some(Dim(6)));
        assert!(Dimensions::with_extra(vec![name("disk_iops")]).is_err());
    }
}
