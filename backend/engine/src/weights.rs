//! The weights that were in force, so that a change can be looked up and taken back.

use cluster::Name;
use policy::{Policy, Weights};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Changes remembered; the oldest go first. The log has them all.
const KEPT: usize = 64;

/// Weights, and since when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WeightChange {
    /// The policy revision that they came into force with.
    pub revision: u64,
    pub at_ms: u64,
    /// `None` for those that the service began with.
    pub actor: Option<Name>,
    pub weights: Weights,
}

/// Oldest first; the last are in force.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WeightHistory(VecDeque<WeightChange>);

impl Default for WeightHistory {
    fn default() -> Self {
        let Policy { revision, weights, .. } = Policy::default();
        Self(VecDeque::from([WeightChange { revision, at_ms: 0, actor: None, weights }]))
    }
}

impl WeightHistory {
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &WeightChange> {
        self.0.iter()
    }

    /// The weights that came into force with this policy revision.
    pub fn at(&self, revision: u64) -> Option<&WeightChange> {
        self.0.iter().find(|change| change.revision == revision)
    }

    pub(crate) fn note(&mut self, policy: &Policy, at_ms: u64, actor: &Name) {
        if self.0.back().is_some_and(|last| last.weights == policy.weights) {
            return;
        }
        if self.0.len() == KEPT {
            self.0.pop_front();
        }
        let Policy { revision, weights, .. } = *policy;
        self.0.push_back(WeightChange { revision, at_ms, actor: Some(actor.clone()), weights });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_changes_are_kept_and_not_for_ever() {
        let actor = Name::new("op").expect("a name");
        let mut history = WeightHistory::default();
        for revision in 1..=200 {
            let weights = Weights::new([revision as u32 / 2 + 1, 0, 0, 0, 0]).expect("valid");
            let policy = Policy { revision, weights, ..Policy::default() };
            history.note(&policy, revision, &actor);
        }
        assert_eq!(history.iter().count(), KEPT);
        assert!(history.at(199).is_none(), "the same weights as before");
        assert_eq!(history.at(200).map(|change| change.at_ms), Some(200));
        assert!(history.at(0).is_none(), "too long ago");
    }
}
