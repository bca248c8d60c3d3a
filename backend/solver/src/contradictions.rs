//! Finds constraints that cannot hold together, before they are put in force.
//!
//! A handful of questions, each about a set of VMs: is there a host for them, are there domains
//! enough, can two of them be together, can those that depend on each other ever meet. A "no" is
//! traced back to the fewest constraints that cause it: take any of them away and the question
//! has another answer. What a single constraint cannot have on this fleet is only a warning,
//! because hosts may come. Nothing here is on the path of a placement.

mod questions;
mod sets;

use cluster::{Constraint, Host, Level, Name, VmKey};
use questions::QUESTIONS;
use std::fmt;

/// Constraints that cannot all be in force, each of them needed for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contradiction {
    /// The names of constraints, or whose own rule it is.
    pub between: Vec<String>,
    pub why: String,
}

/// A required rule of a placed VM to be together with its own group.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CarriedTogether {
    pub tenant: Name,
    pub group: Name,
    pub level: Level,
    /// One of those that carry it.
    pub vm: VmKey,
}

/// What was found when a constraint was held against the others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    pub contradiction: Option<Contradiction>,
    /// What the fleet cannot give as it is.
    pub warnings: Vec<String>,
}

/// Holds `constraints`, the one called `new` among them, against each other and the fleet. Only
/// what `new` has a part in is found.
pub fn contradictions(
    constraints: &[&Constraint],
    carried: &[CarriedTogether],
    hosts: &[&Host],
    new: &Name,
) -> Findings {
    let mut items: Vec<Item<'_>> = constraints.iter().map(|it| Item::Installed(it)).collect();
    items.extend(carried.iter().map(Item::Carried));
    let mut findings = Findings::default();
    for question in QUESTIONS {
        for subject in 0..items.len() {
            let Some((mut involved, _)) = question(&items, subject, hosts) else { continue };
            involved.sort_unstable();
            involved.dedup();
            let (needed, why) = fewest(&items, &involved, subject, *question, hosts);
            if !needed.iter().any(|item| item.is_called(new)) {
                continue;
            }
            if needed.len() == 1 {
                findings.warnings.push(why);
            } else if findings.contradiction.is_none() {
                let between = needed.iter().map(ToString::to_string).collect();
                findings.contradiction = Some(Contradiction { between, why });
            }
        }
    }
    findings.warnings.sort();
    findings.warnings.dedup();
    findings
}

/// A rule that takes part.
#[derive(Clone, Copy, Debug)]
enum Item<'a> {
    Installed(&'a Constraint),
    Carried(&'a CarriedTogether),
}

impl Item<'_> {
    fn is_called(&self, name: &Name) -> bool {
        matches!(self, Item::Installed(constraint) if constraint.name == *name)
    }
}

impl fmt::Display for Item<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Item::Installed(constraint) => constraint.name.fmt(f),
            Item::Carried(CarriedTogether { vm, group, level, .. }) => {
                write!(f, "vm {vm}: together with group {group} by {}", level.name())
            }
        }
    }
}

/// A question about the item in a row: who has a part in a "no", and what the matter is.
type Question = fn(&[Item<'_>], usize, &[&Host]) -> Option<(Vec<usize>, String)>;

/// Leaves out whatever the "no" does not need, one after the other.
fn fewest<'a>(
    items: &[Item<'a>],
    involved: &[usize],
    subject: usize,
    question: Question,
    hosts: &[&Host],
) -> (Vec<Item<'a>>, String) {
    let ask = |rows: &[usize]| {
        let subject = rows.iter().position(|row| *row == subject)?;
        let kept: Vec<Item<'_>> = rows.iter().map(|row| items[*row]).collect();
        question(&kept, subject, hosts).map(|(_, why)| why)
    };
    let mut rows = involved.to_vec();
    let mut why = ask(&rows).unwrap_or_default();
    for row in involved {
        let without: Vec<usize> = rows.iter().copied().filter(|kept| kept != row).collect();
        if let Some(still) = ask(&without) {
            (rows, why) = (without, still);
        }
    }
    (rows.into_iter().map(|row| items[row]).collect(), why)
}

#[cfg(test)]
mod tests;
