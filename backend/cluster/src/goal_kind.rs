//! What a placement can be good at: the kinds of goals that people weigh against each other.
//!
//! What each of them counts in a fleet is written in `solver::objective`, one file a kind.

use serde::{Deserialize, Serialize};

/// A kind of goal. Each is a number that is better when smaller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GoalKind {
    /// Power that hosts draw, those that are kept on as spares included.
    Energy,
    /// What using hosts adds to the bill, and what interruptions are expected to cost.
    Cost,
    /// From users to their VMs, and between VMs that talk to each other.
    Latency,
    /// Expected loss of VMs, heavier where a group loses several at once.
    Reliability,
    /// Load above what hosts bear well, and room that cannot be used.
    Performance,
    /// How unevenly hosts are filled.
    Balance,
    /// Power above what racks and hosts can be cooled for.
    Thermal,
    /// What is emitted for the power that hosts draw.
    Carbon,
    /// Memory that has to be copied.
    Migration,
}

impl GoalKind {
    pub const ALL: [Self; 9] = [
        Self::Energy,
        Self::Cost,
        Self::Latency,
        Self::Reliability,
        Self::Performance,
        Self::Balance,
        Self::Thermal,
        Self::Carbon,
        Self::Migration,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Energy => "energy",
            Self::Cost => "cost",
            Self::Latency => "latency",
            Self::Reliability => "reliability",
            Self::Performance => "performance",
            Self::Balance => "balance",
            Self::Thermal => "thermal",
            Self::Carbon => "carbon",
            Self::Migration => "migration",
        }
    }

    /// The kind of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// What its values count.
    pub fn unit(self) -> &'static str {
        match self {
            Self::Energy | Self::Thermal => "mW",
            Self::Cost => "micros/h",
            Self::Latency => "us",
            Self::Reliability => "ppm/year",
            Self::Performance => "ppb of the fleet",
            Self::Balance => "permille^2",
            Self::Carbon => "mg/h",
            Self::Migration => "MiB",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_a_name_of_its_own() {
        for kind in GoalKind::ALL {
            assert_eq!(GoalKind::named(kind.name()), Some(kind));
            assert!(!kind.unit().is_empty());
        }
        assert_eq!(GoalKind::named("speed"), None);
    }
}
