//! Balance: the mean over all hosts of the squared distance of how full they are from how full the
//! fleet is, in thousandths squared. A host is as full as its fullest resource. The range is from
//! filling hosts below the mean evenly to the demand on the fullest hosts.

use super::Natural;
use super::cost::rate;
use super::facts::{Facts, classes};
use cluster::assignment::{Balance, Goal, PARTS, Rates};

/// A full host, in parts.
const FULL: u64 = 1 << 12;
/// Worth is counted in millionths of a squared thousandth.
const FINER: u64 = 1_000_000;

pub(super) fn goals(facts: &mut Facts<'_>) -> Natural {
    let (kinds, of_host) = classes((0..facts.hosts()).map(|row| facts.whole(row)));
    let rates = |whole: &Vec<u64>| whole.iter().map(|&whole| rate(FULL, whole)).collect();
    let rates = Rates { classes: kinds.iter().map(rates).collect(), of_host };
    let full = |resource: usize| match facts.capacity(resource) {
        0 => 0,
        capacity => {
            (u128::from(facts.demand(resource)) * u128::from(FULL) / u128::from(capacity)) as u64
        }
    };
    let target = (0..facts.dimensions()).map(full).max().unwrap_or(0);
    // A distance of a full host is a million squared thousandths.
    let square = u128::from(FULL) * u128::from(FULL) * facts.hosts().max(1) as u128;
    let weight = (u128::from(FINER) * 1_000_000) << PARTS;
    let goal = Balance {
        targets: vec![target; rates.classes.len()],
        rates,
        weight: (weight / square) as u64,
    };
    Natural { goals: vec![Goal::Balance(goal)], per_unit: FINER }
}
