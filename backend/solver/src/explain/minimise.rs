//! Makes a set of changes minimal by trying every smaller one, where policies are in force.

use super::change::{Change, total};
use super::counterfactual::{Counterfactual, does};
use crate::problem::Problem;
use cluster::{HostIx, Vm};

/// Trials of a set of changes on a host, over all smaller sets.
const MOST_TRIALS: usize = 2_000_000;
/// Sets with more changes are only tried with one of them left out.
const MOST_CHANGES: usize = 8;

/// A set of which no proper subset does on any of the hosts, and in which no number can be one
/// unit smaller.
pub(super) fn minimise(
    problem: &mut Problem,
    vm: &Vm,
    found: Counterfactual,
    hosts: &[HostIx],
) -> Counterfactual {
    if problem.policies.set().is_empty() {
        return found;
    }
    let mut best = found;
    let mut trials = MOST_TRIALS;
    'smaller: loop {
        for smaller in smaller_sets(&best.changes) {
            for &host in hosts {
                if trials == 0 {
                    return Counterfactual { proved: false, ..best };
                }
                trials -= 1;
                if does(problem, vm, &smaller, host) {
                    best = Counterfactual {
                        cost: total(&smaller),
                        changes: smaller,
                        host,
                        proved: best.proved,
                    };
                    continue 'smaller;
                }
            }
        }
        let all = best.changes.len() <= MOST_CHANGES;
        return Counterfactual { proved: best.proved && all, ..best };
    }
}

/// Every proper subset, cheapest first, then the whole set with one number smaller.
fn smaller_sets(changes: &[Change]) -> Vec<Vec<Change>> {
    let count = changes.len();
    let mut sets: Vec<Vec<Change>> = if count <= MOST_CHANGES {
        (0..(1_u32 << count) - 1)
            .map(|kept| {
                let kept = (0..count).filter(|row| kept >> row & 1 == 1);
                kept.map(|row| changes[row].clone()).collect()
            })
            .collect()
    } else {
        let without = |gone: usize| {
            let kept = changes.iter().enumerate().filter(move |(row, _)| *row != gone);
            kept.map(|(_, change)| change.clone()).collect()
        };
        (0..count).map(without).collect()
    };
    sets.sort_by_key(|set| total(set));
    for (row, change) in changes.iter().enumerate() {
        if let Some(less) = change.one_less() {
            let mut set = changes.to_vec();
            set[row] = less;
            sets.push(set);
        }
    }
    sets
}
