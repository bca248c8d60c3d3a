//! When a mix that is learned has moved so far that prices should be made anew.

use super::mix::Mix;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The mix is looked at after this many arrivals, then whenever half as many more have come.
const FIRST_LOOK: u64 = 8;
/// And at the latest after so many more.
const LATEST_LOOK: u64 = 4096;
/// This much of the mix has to be different.
const MOVED_PERMILLE: u64 = 20;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Learning<S> {
    mix: Mix<S>,
    /// The mix that prices were last made of.
    priced: Arc<Mix<S>>,
    next_look: u64,
}

impl<S> Default for Learning<S> {
    fn default() -> Self {
        Self { mix: Mix::default(), priced: Arc::default(), next_look: FIRST_LOOK }
    }
}

impl<S: Clone + Ord> Learning<S> {
    /// Counts an arrival. Gives the mix if it is time to make prices of it.
    pub fn observe(&mut self, shape: S) -> Option<&Arc<Mix<S>>> {
        self.mix.observe(shape);
        if self.mix.arrivals() < self.next_look {
            return None;
        }
        self.next_look =
            self.mix.arrivals() + (self.mix.arrivals() / 2).clamp(FIRST_LOOK, LATEST_LOOK);
        if self.mix.distance_permille(&self.priced) < MOVED_PERMILLE {
            return None;
        }
        self.priced = Arc::new(self.mix.clone());
        Some(&self.priced)
    }

    /// Arrivals counted so far.
    pub fn arrivals(&self) -> u64 {
        self.mix.arrivals()
    }

    /// The mix to make prices of.
    pub fn priced(&self) -> &Arc<Mix<S>> {
        &self.priced
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_steady_mix_is_priced_once_and_a_new_one_again() {
        let mut learning = Learning::default();
        let priced = |learning: &mut Learning<u8>, shape: u8| {
            (0..2000).filter(|_| learning.observe(shape).is_some()).count()
        };
        assert_eq!(priced(&mut learning, 1), 1);
        assert!((2..20).contains(&priced(&mut learning, 2)));
    }
}
