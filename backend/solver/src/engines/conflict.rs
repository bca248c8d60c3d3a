//! Why there is no assignment: a smallest set of requirements that cannot all be met.
//!
//! Asks the CSP engine again and again with some requirements left out, halving what is in doubt
//! (QuickXplain), so that the questions grow with the size of the answer and not of the problem.

use super::{Csp, Engine, Task};
use crate::assignment::{Budget, Model, StopReason};
use cluster::VmIx;
use cluster::assignment::Problem;

/// What a problem asks for, piece by piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Requirement {
    /// A row of `Problem::rules`.
    Rule(u32),
    /// Hosts have so much of this resource and no more.
    Capacity(u32),
    /// The VM's own list of hosts.
    Allowed(VmIx),
}

/// Requirements that cannot all be met, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    pub requirements: Vec<Requirement>,
    /// Whether each was shown to be needed: without it, the others can be met.
    pub minimal: bool,
}

/// The conflict in a problem without an assignment; `None` if there is one, or if the budget ends
/// before it is known.
pub fn conflict(problem: &Problem, budget: &mut Budget) -> Option<Conflict> {
    let rules = (0..problem.rules.len() as u32).map(Requirement::Rule);
    let capacities = (0..problem.resources.len() as u32).map(Requirement::Capacity);
    let limited = (0..).zip(&problem.vms).filter(|(_, vm)| vm.allowed.is_some());
    let allowed = limited.map(|(vm, _)| Requirement::Allowed(VmIx(vm)));
    let all: Vec<Requirement> = capacities.chain(allowed).chain(rules).collect();
    let units: Vec<Vec<Requirement>> = all.iter().map(|&one| vec![one]).collect();
    let (rows, minimal) = conflict_among(problem, &units, budget)?;
    let mut requirements: Vec<Requirement> = rows.into_iter().map(|row| all[row]).collect();
    requirements.sort_unstable();
    Some(Conflict { requirements, minimal })
}

/// The same for requirements that come and go in units: the units that cannot all be met, and
/// whether each was shown to be needed.
pub fn conflict_among(
    problem: &Problem,
    units: &[Vec<Requirement>],
    budget: &mut Budget,
) -> Option<(Vec<usize>, bool)> {
    let all: Vec<usize> = (0..units.len()).collect();
    let mut asked = Asked { problem, units, budget, certain: true };
    if asked.can_be_met(&all) || !asked.certain {
        return None;
    }
    let mut rows = asked.explain(&[], false, &all);
    rows.sort_unstable();
    Some((rows, asked.certain))
}

struct Asked<'a, 'b> {
    problem: &'a Problem,
    units: &'a [Vec<Requirement>],
    budget: &'b mut Budget,
    certain: bool,
}

impl Asked<'_, '_> {
    /// The needed ones among `doubtful`, given that all of `kept` stay. Together they conflict.
    fn explain(&mut self, kept: &[usize], kept_changed: bool, doubtful: &[usize]) -> Vec<usize> {
        if kept_changed && !self.can_be_met(kept) {
            return Vec::new();
        }
        if doubtful.len() <= 1 {
            // Of one alone with nothing kept it is not known yet that it is needed.
            let needed = kept_changed || self.can_be_met(kept);
            return if needed { doubtful.to_vec() } else { Vec::new() };
        }
        let (first, second) = doubtful.split_at(doubtful.len() / 2);
        let with_first = [kept, first].concat();
        let of_second = self.explain(&with_first, !first.is_empty(), second);
        let with_second = [kept, of_second.as_slice()].concat();
        let mut needed = self.explain(&with_second, !of_second.is_empty(), first);
        needed.extend(of_second);
        needed
    }

    /// Whether an assignment meets these requirements. A question that the budget does not last
    /// for counts as yes, which keeps a requirement that may not be needed.
    fn can_be_met(&mut self, kept: &[usize]) -> bool {
        let kept: Vec<Requirement> =
            kept.iter().flat_map(|&row| &self.units[row]).copied().collect();
        let relaxed = relaxed(self.problem, &kept);
        let Ok(model) = Model::compile(&relaxed) else { return true };
        let task = Task::new(&relaxed, &model, 0);
        let outcome = Csp { first: true }.solve(task, self.budget);
        match outcome.stop_reason {
            StopReason::Target => true,
            StopReason::Optimal => outcome.assignment.is_some(),
            _ => {
                self.certain = false;
                true
            }
        }
    }
}

/// The problem with these requirements alone, and no goals.
fn relaxed(problem: &Problem, kept: &[Requirement]) -> Problem {
    let mut relaxed = problem.clone();
    relaxed.goals.clear();
    let mut row = 0;
    relaxed.rules.retain(|_| {
        row += 1;
        kept.contains(&Requirement::Rule(row - 1))
    });
    for resource in 0..problem.resources.len() {
        if !kept.contains(&Requirement::Capacity(resource as u32)) {
            relaxed.shapes.iter_mut().for_each(|shape| shape[resource] = 0);
        }
    }
    for (vm, row) in (0..).zip(&mut relaxed.vms) {
        if !kept.contains(&Requirement::Allowed(VmIx(vm))) {
            row.allowed = None;
        }
    }
    relaxed
}
