//! How much each part of a score counts.
#![allow(clippy::indexing_slicing, reason = "there are as many weights as terms")]

use cluster::Term;
use serde::{Deserialize, Serialize};

/// Largest weight of one term. Five of them times a full term of 1000 stay far inside `i64`.
pub const MAX_WEIGHT: u32 = 10_000;

/// A weight per term. A score is the sum over terms of weight times a value from 0 to 1000.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Weights([u32; 5]);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WeightError {
    #[error("weight {term} is {value}, at most {MAX_WEIGHT} is allowed")]
    TooLarge { term: &'static str, value: u64 },
    #[error("all weights are zero, so every host would score the same; set at least one")]
    AllZero,
}

impl Weights {
    /// Checked weights in the order of `Term::ALL`.
    pub fn new(weights: [u32; 5]) -> Result<Self, WeightError> {
        for term in Term::ALL {
            let value = weights[term.row()];
            if value > MAX_WEIGHT {
                return Err(WeightError::TooLarge { term: term.name(), value: value.into() });
            }
        }
        if weights.iter().all(|&weight| weight == 0) {
            return Err(WeightError::AllZero);
        }
        Ok(Self(weights))
    }

    pub fn get(&self, term: Term) -> u32 {
        self.0[term.row()]
    }
}

/// Fit 30, affinity 20, load 20, locality 20, cost 10.
impl Default for Weights {
    fn default() -> Self {
        Self([30, 20, 20, 20, 10])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_the_documented_ones() {
        let weights = Weights::default();
        let of = |term| weights.get(term);
        assert_eq!(Term::ALL.map(of), [30, 20, 20, 20, 10]);
    }

    #[test]
    fn refuses_weights_that_are_too_large_or_all_zero() {
        assert_eq!(Weights::new([0; 5]), Err(WeightError::AllZero));
        assert_eq!(
            Weights::new([1, 2, MAX_WEIGHT + 1, 0, 0]),
            Err(WeightError::TooLarge { term: "load", value: 10_001 })
        );
    }
}
