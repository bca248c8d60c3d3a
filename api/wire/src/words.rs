//! Words with a fixed choice: how the enums of `cluster` are spelled in JSON.

use crate::json::Value;
use crate::read::At;
use cluster::{
    AffinityKind, Architecture, CoreClass, CpuUnit, GpuGrouping, HostState, Migratability, Near,
    PortKind, PriceKind, PriorityClass, Qos, RestartPolicy, Siblings, Strategy, TaintEffect,
};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

/// An enum that is written as one of a few words.
pub trait Choice: Copy + PartialEq + Sized + 'static {
    /// The name of the schema.
    const SCHEMA: &'static str;
    /// Every value with its word, in the order in which they are listed to people.
    const WORDS: &'static [(&'static str, Self)];

    fn word(self) -> &'static str {
        Self::WORDS.iter().find(|(_, value)| *value == self).map_or("unknown", |(word, _)| word)
    }

    fn from_word(word: &str) -> Option<Self> {
        Self::WORDS.iter().find(|(known, _)| *known == word).map(|(_, value)| *value)
    }
}

/// A `Choice` as it goes over the wire.
///
/// Structs name it through the aliases below: the schema derive would take the parameter for a
/// schema of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Word<T>(pub T);

impl<T: Choice> Serialize for Word<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.word())
    }
}

impl<'de, T: Choice> Deserialize<'de> for Word<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let word = Cow::<'de, str>::deserialize(deserializer)?;
        let unknown = || serde::de::Error::custom(format!("{word:?} is no {}", T::SCHEMA));
        T::from_word(&word).map(Self).ok_or_else(unknown)
    }
}

impl<T: Choice> PartialSchema for Word<T> {
    fn schema() -> RefOr<Schema> {
        let words = T::WORDS.iter().map(|(word, _)| *word);
        ObjectBuilder::new().schema_type(Type::String).enum_values(Some(words)).build().into()
    }
}

impl<T: Choice> ToSchema for Word<T> {
    fn name() -> Cow<'static, str> {
        T::SCHEMA.into()
    }
}

pub(crate) fn read_choice<'v, T: Choice>(value: &'v Value<'v>, at: &mut At<'v>) -> Option<T> {
    let word = at.text(value)?;
    let known = T::from_word(word);
    if known.is_none() {
        let words: Vec<&str> = T::WORDS.iter().map(|(word, _)| *word).collect();
        at.unknown_choice(word, &words);
    }
    known
}

macro_rules! choice {
    ($type:ident: $($word:literal = $variant:ident),+ $(,)?) => {
        impl crate::words::Choice for $type {
            const SCHEMA: &'static str = stringify!($type);
            const WORDS: &'static [(&'static str, Self)] = &[$(($word, $type::$variant)),+];
        }
        impl crate::read::Read for $type {
            fn read<'v>(
                value: &'v crate::json::Value<'v>,
                at: &mut crate::read::At<'v>,
            ) -> Option<Self> {
                crate::words::read_choice(value, at)
            }
        }
    };
}
pub(crate) use choice;

choice!(HostState:
    "available" = Available, "cordoned" = Cordoned, "draining" = Draining,
    "maintenance" = Maintenance, "down" = Down);
choice!(PriceKind: "on_demand" = OnDemand, "spot" = Spot, "reserved" = Reserved);
choice!(TaintEffect:
    "no_schedule" = NoSchedule, "no_execute" = NoExecute, "prefer_no_schedule" = PreferNoSchedule);
choice!(CpuUnit: "raw" = Raw, "normalised" = Normalised);
choice!(PriorityClass:
    "critical" = Critical, "high" = High, "normal" = Normal, "low" = Low,
    "scavenger" = Scavenger);
choice!(Qos: "guaranteed" = Guaranteed, "burstable" = Burstable, "best_effort" = BestEffort);
choice!(Migratability: "live" = Live, "cold" = Cold, "pinned" = Pinned);
choice!(RestartPolicy: "always" = Always, "on_failure" = OnFailure, "never" = Never);
choice!(AffinityKind: "together" = Together, "apart" = Apart);
choice!(Architecture: "x86_64" = X86_64, "aarch64" = Aarch64);
choice!(CoreClass: "performance" = Performance, "efficiency" = Efficiency);
choice!(Siblings: "own" = Own, "idle" = Idle, "any" = Any);
choice!(GpuGrouping: "any" = Any, "same_switch" = SameSwitch, "nvlink_clique" = NvlinkClique);
choice!(Near: "any" = Any, "cores" = Cores, "gpus" = Gpus);
choice!(PortKind: "root_complex" = RootComplex, "switch" = Switch, "slot" = Slot);
choice!(Strategy:
    "balanced" = Balanced, "first_fit" = FirstFit, "best_fit" = BestFit, "worst_fit" = WorstFit,
    "ffd" = FirstFitDecreasing, "bfd" = BestFitDecreasing, "round_robin" = RoundRobin,
    "least_loaded" = LeastLoaded, "spread" = Spread, "consolidate" = Consolidate,
    "fewest_vms" = FewestVms,
    "least_fragmentation" = LeastFragmentation);

pub type HostStateWord = Word<HostState>;
pub(crate) type PriceKindWord = Word<PriceKind>;
pub(crate) type TaintEffectWord = Word<TaintEffect>;
pub(crate) type CpuUnitWord = Word<CpuUnit>;
pub(crate) type PriorityWord = Word<PriorityClass>;
pub(crate) type QosWord = Word<Qos>;
pub(crate) type MigratabilityWord = Word<Migratability>;
pub(crate) type RestartWord = Word<RestartPolicy>;
pub(crate) type AffinityKindWord = Word<AffinityKind>;
pub(crate) type StrategyWord = Word<Strategy>;
pub(crate) type ArchitectureWord = Word<Architecture>;
pub(crate) type CoreClassWord = Word<CoreClass>;
pub(crate) type SiblingsWord = Word<Siblings>;
pub(crate) type GpuGroupingWord = Word<GpuGrouping>;
pub(crate) type NearWord = Word<Near>;
pub(crate) type PortKindWord = Word<PortKind>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strategies_are_spelled_as_the_cluster_spells_them() {
        let words: Vec<_> = Strategy::WORDS.iter().map(|(word, value)| (*word, *value)).collect();
        assert_eq!(words, Strategy::ALL.map(|strategy| (strategy.name(), strategy)));
    }
}
