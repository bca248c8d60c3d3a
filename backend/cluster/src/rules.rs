//! The rules a VM carries: which hosts it may use, whom it wants near and whom far.
//!
//! The exact meaning of each rule is written in `backend/ARCHITECTURE.md` under "Meaning of the
//! rules"; `solver` and `verify` implement it independently of each other.

use crate::{Labels, Level, Name};
use serde::{Deserialize, Serialize};

/// A condition on one host label.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Selector {
    pub key: Name,
    pub op: SelectorOp,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum SelectorOp {
    /// The label is there with one of these values.
    In(Vec<Name>),
    /// The label is missing or has none of these values.
    NotIn(Vec<Name>),
    Exists,
    Missing,
}

impl Selector {
    pub fn matches(&self, labels: &Labels) -> bool {
        let value = labels.get(self.key.as_str());
        match &self.op {
            SelectorOp::In(values) => value.is_some_and(|value| values.contains(value)),
            SelectorOp::NotIn(values) => value.is_none_or(|value| !values.contains(value)),
            SelectorOp::Exists => value.is_some(),
            SelectorOp::Missing => value.is_none(),
        }
    }
}

/// A mark on a host that keeps VMs away unless they tolerate it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Taint {
    pub key: Name,
    pub value: Option<Name>,
    pub effect: TaintEffect,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum TaintEffect {
    /// No new VM comes without a toleration.
    NoSchedule,
    /// As `NoSchedule`, and VMs that run here without one are to be moved away.
    NoExecute,
    /// New VMs without a toleration come only when nothing better is there.
    PreferNoSchedule,
}

/// What lets a VM onto a tainted host.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Toleration {
    /// `None` tolerates every key.
    pub key: Option<Name>,
    pub op: TolerationOp,
    /// `None` tolerates every effect.
    pub effect: Option<TaintEffect>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum TolerationOp {
    /// Whatever the taint's value is.
    Exists,
    /// Only this value; `None` stands for a taint without value.
    Equal(Option<Name>),
}

impl Toleration {
    pub fn tolerates(&self, taint: &Taint) -> bool {
        self.key.as_ref().is_none_or(|key| *key == taint.key)
            && self.effect.is_none_or(|effect| effect == taint.effect)
            && match &self.op {
                TolerationOp::Exists => true,
                TolerationOp::Equal(value) => *value == taint.value,
            }
    }
}

/// Whether a rule must hold or is only wished for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Strength {
    Required,
    /// Counts with this weight, 1 to 1000, in the affinity part of the score.
    Preferred(u16),
}

/// Together with, or apart from, other VMs or named hosts.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Affinity {
    pub kind: AffinityKind,
    pub subject: Subject,
    pub level: Level,
    pub strength: Strength,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum AffinityKind {
    Together,
    Apart,
}

/// Whom an affinity rule speaks of. VMs and groups are those of the VM's own tenant.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Subject {
    Vm(Name),
    Group(Name),
    /// Any of these hosts: together means in the same domain as one of them.
    Hosts(Vec<Name>),
}

/// Keeps the members of a group evenly spread over the domains of a level.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Spread {
    /// The VM is counted as a member for this rule whether or not it lists the group.
    pub group: Name,
    pub level: Level,
    /// Largest allowed difference between the fullest and the emptiest domain; at least 1.
    pub max_skew: u32,
    pub strength: Strength,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Name {
        Name::new(text).expect("a valid name")
    }

    #[test]
    fn a_selector_reads_one_label() {
        let labels = Labels::from_iter([(name("disk"), name("ssd"))]);
        let check = |key: &str, op: SelectorOp, expect: bool| {
            assert_eq!(Selector { key: name(key), op }.matches(&labels), expect);
        };
        check("disk", SelectorOp::In(vec![name("nvme"), name("ssd")]), true);
        check("disk", SelectorOp::NotIn(vec![name("ssd")]), false);
        check("gpu", SelectorOp::NotIn(vec![name("a100")]), true);
        check("gpu", SelectorOp::Exists, false);
        check("gpu", SelectorOp::Missing, true);
    }

    #[test]
    fn a_toleration_matches_key_value_and_effect() {
        let taint = Taint {
            key: name("dedicated"),
            value: Some(name("db")),
            effect: TaintEffect::NoSchedule,
        };
        let check = |key: Option<&str>, op: TolerationOp, effect, expect: bool| {
            assert_eq!(Toleration { key: key.map(name), op, effect }.tolerates(&taint), expect);
        };
        check(None, TolerationOp::Exists, None, true);
        check(Some("dedicated"), TolerationOp::Equal(Some(name("db"))), None, true);
        check(Some("dedicated"), TolerationOp::Equal(None), None, false);
        check(Some("dedicated"), TolerationOp::Exists, Some(TaintEffect::NoExecute), false);
        check(Some("other"), TolerationOp::Exists, None, false);
    }
}
