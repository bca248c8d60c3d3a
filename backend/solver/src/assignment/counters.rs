//! Many small numbers, in a byte each where that is enough for the largest.
//!
//! Rules have a counter for each group and domain, nearly all of them zero. States that are copied
//! by the thousand are mostly these, and groups of more than 255 are rare.

#[derive(Clone, Debug)]
pub(super) enum Counters {
    Small(Vec<u8>),
    Large(Vec<u32>),
}

impl Default for Counters {
    fn default() -> Self {
        Self::Small(Vec::new())
    }
}

impl Counters {
    /// Zeros that can be counted up to `most`.
    pub(super) fn none(counters: usize, most: usize) -> Self {
        match u8::try_from(most) {
            Ok(_) => Self::Small(vec![0; counters]),
            Err(_) => Self::Large(vec![0; counters]),
        }
    }

    #[inline]
    pub(super) fn at(&self, row: usize) -> u32 {
        match self {
            Self::Small(counters) => counters[row].into(),
            Self::Large(counters) => counters[row],
        }
    }

    #[inline]
    pub(super) fn add(&mut self, row: usize) {
        match self {
            Self::Small(counters) => counters[row] += 1,
            Self::Large(counters) => counters[row] += 1,
        }
    }

    #[inline]
    pub(super) fn take(&mut self, row: usize) {
        match self {
            Self::Small(counters) => counters[row] -= 1,
            Self::Large(counters) => counters[row] -= 1,
        }
    }

    /// Becomes equal to others, in the same memory where that is possible.
    pub(super) fn copy(&mut self, other: &Self) {
        match (self, other) {
            (Self::Small(mine), Self::Small(others)) => mine.clone_from(others),
            (Self::Large(mine), Self::Large(others)) => mine.clone_from(others),
            (mine, others) => mine.clone_from(others),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_hold_as_much_as_was_said() {
        for most in [3, 255, 256, 70_000] {
            let mut counters = Counters::none(2, most);
            (0..most).for_each(|_| counters.add(1));
            counters.take(1);
            assert_eq!((counters.at(0), counters.at(1)), (0, most as u32 - 1));
            let mut other = Counters::none(2, 1);
            other.copy(&counters);
            assert_eq!(other.at(1), most as u32 - 1);
        }
    }
}
