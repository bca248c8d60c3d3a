//! Profiles: weights by name, for placing one VM and for optimising many.
//!
//! One word for what an operator cares about. Placing takes its weights and strategy from it,
//! optimisations the weights of their goals.

use crate::Weights;
use cluster::{GoalKind, Strategy};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub enum Profile {
    /// Near to users and data.
    Latency,
    /// A little of everything.
    Balanced,
    /// Room to work: load is spread and hosts are left with headroom.
    Throughput,
    /// Few hosts on.
    Energy,
    /// Cheap hosts, those that are paid for already first.
    Cost,
}

impl Profile {
    pub const ALL: [Self; 5] =
        [Self::Latency, Self::Balanced, Self::Throughput, Self::Energy, Self::Cost];

    pub fn name(self) -> &'static str {
        match self {
            Self::Latency => "latency",
            Self::Balanced => "balanced",
            Self::Throughput => "throughput",
            Self::Energy => "energy",
            Self::Cost => "cost",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|profile| profile.name() == name)
    }

    /// Weights of fit, affinity, load, locality and cost.
    pub fn weights(self) -> Weights {
        let weights = match self {
            Self::Latency => [10, 20, 20, 50, 0],
            Self::Balanced => return Weights::default(),
            Self::Throughput => [25, 10, 50, 15, 0],
            Self::Energy => [20, 20, 50, 10, 0],
            Self::Cost => [15, 15, 10, 10, 50],
        };
        Weights::new(weights).unwrap_or_default()
    }

    pub fn strategy(self) -> Strategy {
        match self {
            Self::Latency | Self::Balanced | Self::Throughput => Strategy::Balanced,
            Self::Energy | Self::Cost => Strategy::Consolidate,
        }
    }

    /// Weights of goals.
    pub fn goals(self) -> Vec<(GoalKind, u32)> {
        use GoalKind::{
            Balance, Carbon, Cost, Energy, Latency, Migration, Performance, Reliability,
        };
        match self {
            Self::Latency => vec![(Latency, 60), (Performance, 20), (Reliability, 20)],
            Self::Balanced => vec![
                (Energy, 20),
                (Cost, 20),
                (Latency, 20),
                (Reliability, 20),
                (Performance, 10),
                (Migration, 10),
            ],
            Self::Throughput => {
                vec![(Performance, 50), (Balance, 30), (Reliability, 10), (Migration, 10)]
            }
            Self::Energy => vec![(Energy, 60), (Carbon, 10), (Reliability, 15), (Migration, 15)],
            Self::Cost => vec![(Cost, 70), (Reliability, 15), (Migration, 15)],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_are_found_by_name_and_differ() {
        let mut seen = Vec::new();
        for profile in Profile::ALL {
            assert_eq!(Profile::named(profile.name()), Some(profile));
            let all: u32 = profile.goals().iter().map(|(_, weight)| weight).sum();
            assert_eq!(all, 100, "{profile:?}");
            let how = (profile.weights(), profile.strategy());
            assert!(!seen.contains(&how), "{profile:?} places like another");
            seen.push(how);
        }
        assert_eq!(Profile::named("speed"), None);
    }
}
