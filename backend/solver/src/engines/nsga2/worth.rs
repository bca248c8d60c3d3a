//! What a member of a population is worth, and when one is better than another in every way.

use std::cmp::Ordering;

/// Values that are better when smaller, and how far the member is from being allowed at all.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Worth<const N: usize> {
    pub values: [f64; N],
    /// 0 for a member that breaks nothing.
    pub violation: f64,
}

impl<const N: usize> Worth<N> {
    /// The worth of a member that breaks nothing.
    pub fn allowed(values: [f64; N]) -> Self {
        Self { values, violation: 0.0 }
    }

    /// The worth of a member that nobody wants.
    pub fn useless() -> Self {
        Self { values: [f64::MAX; N], violation: f64::INFINITY }
    }

    /// Whether it is nowhere worse and somewhere better. What breaks less is better than what
    /// breaks more, whatever the values are.
    #[inline]
    pub fn dominates(&self, other: &Self) -> bool {
        if self.violation != other.violation {
            return self.violation < other.violation;
        }
        let (mut worse, mut better) = (false, false);
        for (mine, others) in self.values.iter().zip(&other.values) {
            worse |= mine > others;
            better |= mine < others;
        }
        better && !worse
    }

    /// An order in which nobody comes after someone that it dominates.
    pub fn order(&self, other: &Self) -> Ordering {
        let values = || {
            let pairs = self.values.iter().zip(&other.values);
            pairs.map(|(mine, others)| mine.total_cmp(others)).find(|order| order.is_ne())
        };
        let violation = self.violation.total_cmp(&other.violation);
        violation.then_with(|| values().unwrap_or(Ordering::Equal))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_breaks_less_dominates_and_then_values_count() {
        let worth = |values, violation| Worth { values, violation };
        let dominates = |one: Worth<2>, other: Worth<2>| {
            assert!(!other.dominates(&one));
            assert_eq!(one.order(&other), Ordering::Less);
            one.dominates(&other)
        };
        assert!(dominates(worth([1.0, 2.0], 0.0), worth([1.0, 3.0], 0.0)));
        assert!(!dominates(worth([1.0, 3.0], 0.0), worth([2.0, 2.0], 0.0)));
        assert!(dominates(worth([9.0, 9.0], 0.0), worth([1.0, 1.0], 0.5)));
        assert!(dominates(worth([9.0, 9.0], 0.5), worth([1.0, 1.0], 0.7)));
        assert!(dominates(worth([1.0, 1.0], 0.5), worth([1.0, 1.5], 0.5)));
        let equal = worth([1.0, 1.0], 0.0);
        assert!(!equal.dominates(&equal));
    }
}
