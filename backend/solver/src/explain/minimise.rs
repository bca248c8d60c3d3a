//! Makes a set of changes minimal by trying every smaller one, where it may not be so already.
//!
//! That is where policies are in force, which may read anything, and where a VM that asks for parts
//! of its host is cut: a smaller VM may find its parts where the whole one does not.

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
    let is_cut = |changes: &[Change]| changes.iter().any(|it| matches!(it, Change::Demand { .. }));
    if problem.policies.set().is_empty() && (vm.topology.is_none() || !is_cut(&found.changes)) {
        return found;
    }
    let mut best = found;
    let mut trials = Trials { problem, vm, hosts, left: MOST_TRIALS };
    loop {
        let smaller = trials.subset(&best.changes).and_then(|found| match found {
            Some(found) => Ok(Some(found)),
            None => trials.number(&best.changes),
        });
        match smaller {
            Ok(Some((changes, host))) => {
                best = Counterfactual { cost: total(&changes), changes, host, ..best };
            }
            Ok(None) => {
                let all = best.changes.len() <= MOST_CHANGES;
                return Counterfactual { proved: best.proved && all, ..best };
            }
            Err(Spent) => return Counterfactual { proved: false, ..best },
        }
    }
}

/// There are no trials left.
struct Spent;

type Found = Result<Option<(Vec<Change>, HostIx)>, Spent>;

struct Trials<'a> {
    problem: &'a mut Problem,
    vm: &'a Vm,
    hosts: &'a [HostIx],
    left: usize,
}

impl Trials<'_> {
    /// The first host on which the changes do.
    fn does(&mut self, changes: &[Change]) -> Result<Option<HostIx>, Spent> {
        for &host in self.hosts {
            self.left = self.left.checked_sub(1).ok_or(Spent)?;
            if does(self.problem, self.vm, changes, host) {
                return Ok(Some(host));
            }
        }
        Ok(None)
    }

    /// The cheapest proper subset that does.
    fn subset(&mut self, changes: &[Change]) -> Found {
        for smaller in subsets(changes) {
            if let Some(host) = self.does(&smaller)? {
                return Ok(Some((smaller, host)));
            }
        }
        Ok(None)
    }

    /// The set with one number smaller, if one unit less does: as small as halving finds it, so
    /// that one unit less than that does not.
    fn number(&mut self, changes: &[Change]) -> Found {
        for (row, change) in changes.iter().enumerate() {
            let Some(less) = change.one_less() else { continue };
            let with = |change: Change| {
                let mut set = changes.to_vec();
                set[row] = change;
                set
            };
            let Some(mut host) = self.does(&with(less.clone()))? else { continue };
            // No subset does, so nothing at all of this change is too little.
            let (mut enough, mut least) = (less, None);
            while let Some(middle) = enough.halfway(least.as_ref()) {
                match self.does(&with(middle.clone()))? {
                    Some(found) => (enough, host) = (middle, found),
                    None => least = Some(middle),
                }
            }
            return Ok(Some((with(enough), host)));
        }
        Ok(None)
    }
}

/// Every proper subset, cheapest first.
fn subsets(changes: &[Change]) -> Vec<Vec<Change>> {
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
    sets
}
