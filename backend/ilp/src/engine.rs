//! ILP: the whole problem as one programme, searched until the gap is closed or time is up.
//!
//! Groups whose members must be on different hosts are first left out: their VMs are then equal to
//! others of their shape, which makes the programme much smaller, and most answers can be dealt
//! out so that no two of a group meet. Those groups that this fails for are put in and the
//! programme is solved again. Time is HiGHS's own, so that answers are checked, not searched again.

use crate::programme::{Column, Programme};
use crate::run::{Limits, run, whole};
use cluster::VmIx;
use cluster::assignment::{Problem, Rule, Scope};
use solver::assignment::{Budget, Model, Outcome, State, StopReason};
use solver::engines::{Engine, Task};
use std::collections::HashSet;

#[derive(Clone, Copy, Debug)]
pub struct Ilp {
    pub threads: u32,
}

impl Default for Ilp {
    fn default() -> Self {
        Self { threads: 1 }
    }
}

impl Engine for Ilp {
    fn name(&self) -> &'static str {
        "ilp"
    }

    fn solve(&self, task: Task<'_>, budget: &mut Budget) -> Outcome {
        let (problem, model) = (task.problem, task.model);
        let mut best = task.start.map(|start| Best::of(model, start.to_vec()));
        let mut outcome = Outcome {
            engine: self.name().to_string(),
            assignment: None,
            objective: None,
            bound: model.bound(),
            // What stays true if there is no time for anything.
            stop_reason: budget.reason(),
            steps: 0,
        };
        let mut lazy: HashSet<usize> = (0..problem.rules.len())
            .filter(|&rule| matches!(problem.rules[rule], Rule::Apart { scope: Scope::Host, .. }))
            .collect();
        let limits =
            Limits { deadline: budget.deadline(), seconds: None, threads: self.threads, gap: 0.0 };
        while !budget.is_over() {
            let relaxed = without(problem, &lazy);
            let made = Programme::of(&relaxed, true, 0.0, budget.deadline());
            let Some(programme) = made else {
                let reason = if budget.is_over() { budget.reason() } else { StopReason::Stalled };
                outcome.stop_reason = reason;
                break;
            };
            let (columns, members) = (programme.columns.clone(), programme.members.clone());
            let exact = programme.exact;
            let start = best.as_ref().map(|best| programme.values(&relaxed, &best.hosts));
            let answer = run(programme, start.as_deref(), limits);
            outcome.steps += 1;
            outcome.bound = outcome.bound.max(answer.bound.map_or(i64::MIN, whole));
            let Some(values) = answer.values else {
                outcome.stop_reason = match (answer.proven, &best) {
                    (true, None) => StopReason::Optimal,
                    // "None" beside one that is there is an error of rounding, and proves nothing.
                    (true, Some(_)) => StopReason::Stalled,
                    (false, _) => budget.reason(),
                };
                break;
            };
            let hosts = deal(problem, &columns, &members, &values, &lazy);
            let met: Vec<usize> = lazy
                .iter()
                .copied()
                .filter(|&rule| meets(&problem.rules[rule], problem, &hosts))
                .collect();
            if met.is_empty() {
                let found = Best::of(model, hosts);
                let holds = found.objective.is_some();
                if found.objective.is_some_and(|objective| {
                    best.as_ref().and_then(|best| best.objective).is_none_or(|b| objective < b)
                }) {
                    best = Some(found);
                }
                outcome.stop_reason = match (holds, answer.proven) {
                    (true, true) if exact => StopReason::Optimal,
                    // The best by what a programme knows of the goals proves a bound, no more.
                    (_, true) => StopReason::Stalled,
                    (_, false) => budget.reason(),
                };
                break;
            }
            met.iter().for_each(|rule| {
                lazy.remove(rule);
            });
            outcome.stop_reason = budget.reason();
        }
        if let Some(Best { hosts, objective: Some(objective) }) = best {
            outcome.bound = outcome.bound.min(objective);
            if outcome.stop_reason == StopReason::Stalled && outcome.bound == objective {
                outcome.stop_reason = StopReason::Optimal;
            }
            if outcome.stop_reason == StopReason::Optimal {
                outcome.bound = objective;
            }
            outcome.objective = Some(objective);
            outcome.assignment = Some(hosts);
        }
        outcome
    }
}

/// An assignment with its price, if it is feasible.
struct Best {
    hosts: Vec<u32>,
    objective: Option<i64>,
}

impl Best {
    fn of(model: &Model, hosts: Vec<u32>) -> Self {
        let state = State::new(model, &hosts);
        let objective = state.is_feasible().then(|| state.objective());
        Self { hosts, objective }
    }
}

/// The problem without some of its rules.
pub(crate) fn without(problem: &Problem, rules: &HashSet<usize>) -> Problem {
    let mut fewer = problem.clone();
    let mut row = 0;
    fewer.rules.retain(|_| {
        row += 1;
        !rules.contains(&(row - 1))
    });
    fewer
}

/// Deals the VMs of each class out to the numbers found, so that groups of the rules that were
/// left out meet as little as possible: the largest groups first, each on the hosts that have
/// most places left, which never fails where it can be done within one class.
pub(crate) fn deal(
    problem: &Problem,
    columns: &[Column],
    members: &[Vec<VmIx>],
    values: &[f64],
    lazy: &HashSet<usize>,
) -> Vec<u32> {
    let mut group_of: Vec<Option<u32>> = vec![None; problem.vms.len()];
    for &rule in lazy {
        let (group, _) = problem.rules[rule].subject();
        for vm in &problem.groups[group as usize] {
            group_of[vm.0 as usize] = Some(group);
        }
    }
    let mut places = vec![vec![0i64; problem.hosts.len()]; members.len()];
    for (column, value) in columns.iter().zip(values) {
        if let Column::Count { class, host } = *column {
            places[class][host] = value.round() as i64;
        }
    }
    let mut taken: HashSet<(u32, usize)> = HashSet::new();
    let mut hosts = vec![0; problem.vms.len()];
    for (members, places) in members.iter().zip(&mut places) {
        let size = |vm: &VmIx| {
            let group = group_of[vm.0 as usize];
            group.map_or(0, |group| problem.groups[group as usize].len())
        };
        let mut order = members.clone();
        order.sort_by_key(|vm| (std::cmp::Reverse(size(vm)), group_of[vm.0 as usize], *vm));
        for vm in order {
            let group = group_of[vm.0 as usize];
            let free = (0..places.len()).filter(|&host| places[host] > 0);
            let best = free.max_by_key(|&host| {
                let alone = group.is_none_or(|group| !taken.contains(&(group, host)));
                (alone, places[host], std::cmp::Reverse(host))
            });
            let host = best.unwrap_or(0);
            places[host] -= 1;
            taken.extend(group.map(|group| (group, host)));
            hosts[vm.0 as usize] = host as u32;
        }
    }
    hosts
}

fn meets(rule: &Rule, problem: &Problem, hosts: &[u32]) -> bool {
    let mut seen = HashSet::new();
    let members: HashSet<VmIx> =
        problem.groups[rule.subject().0 as usize].iter().copied().collect();
    members.into_iter().any(|vm| !seen.insert(hosts[vm.0 as usize]))
}
