//! Chooses hosts for many VMs, as if they were placed one by one.

use crate::place::{Choice, Chosen, How, Scratch, place};
use crate::problem::Problem;
use cluster::{Strategy, Vm};

/// Chooses hosts for VMs that are not placed, each as if those before it had been placed.
///
/// Answers are in the order of `vms`; the decreasing strategies place the largest first. With
/// `atomic`, a rejected VM means that none gets a host; the rejected ones keep their reasons.
/// The tables are left as they were.
pub fn place_batch(
    problem: &mut Problem,
    scratch: &mut Scratch,
    vms: &[&Vm],
    how: &How,
    atomic: bool,
) -> Vec<Choice> {
    place_batch_followed(problem, scratch, vms, how, atomic, || true, |_, _| {}).unwrap_or_default()
}

/// As [`place_batch`]; tells `chosen` of each VM that gets a host, in the order of placing, so
/// that a verifier can follow while the search goes on. Asks before each VM whether to `go_on`;
/// if not, there is no answer.
pub fn place_batch_followed(
    problem: &mut Problem,
    scratch: &mut Scratch,
    vms: &[&Vm],
    how: &How,
    atomic: bool,
    go_on: impl Fn() -> bool,
    mut chosen: impl FnMut(usize, &Chosen),
) -> Option<Vec<Choice>> {
    let mut how = *how;
    let mut choices = vec![Choice::default(); vms.len()];
    let order = batch_order(problem, vms, how.strategy);
    let mut stopped = false;
    for &row in &order {
        if !go_on() {
            stopped = true;
            break;
        }
        let choice = place(problem, scratch, vms[row], &how);
        if let Some(host) = &choice.host {
            chosen(row, host);
            put(problem, vms[row], host);
            how.round_robin_after = Some(host.host);
        }
        choices[row] = choice;
    }
    for &row in order.iter().rev() {
        if let Some(chosen) = &choices[row].host {
            take_back(problem, vms[row], chosen);
        }
    }
    if stopped {
        return None;
    }
    if atomic && choices.iter().any(|choice| choice.host.is_none()) {
        choices.iter_mut().for_each(withdraw);
    }
    Some(choices)
}

/// Puts a VM where it was decided to go.
pub(crate) fn put(problem: &mut Problem, vm: &Vm, chosen: &Chosen) {
    problem.add_vm(chosen.host, vm, &chosen.committed);
    if let Some(bindings) = &chosen.bindings {
        let taken = problem.take(chosen.host, bindings);
        debug_assert_eq!(taken, Ok(()), "what was bound is free");
    }
}

pub(crate) fn take_back(problem: &mut Problem, vm: &Vm, chosen: &Chosen) {
    if let Some(bindings) = &chosen.bindings {
        let given = problem.give_back(chosen.host, bindings);
        debug_assert_eq!(given, Ok(()), "what was taken is given back");
    }
    problem.remove_vm(chosen.host, vm, &chosen.committed);
}

/// The order in which a strategy places a batch.
pub fn batch_order(problem: &Problem, vms: &[&Vm], strategy: Strategy) -> Vec<usize> {
    let mut order: Vec<usize> = (0..vms.len()).collect();
    if matches!(strategy, Strategy::FirstFitDecreasing | Strategy::BestFitDecreasing) {
        let hosts = problem.hosts.count();
        order.sort_by_cached_key(|&row| {
            std::cmp::Reverse(problem.room.size(&vms[row].demand, hosts))
        });
    }
    order
}

/// Takes back an answer because another VM of its batch was rejected.
fn withdraw(choice: &mut Choice) {
    if choice.host.take().is_some() {
        choice.alternatives.clear();
        choice.rejections = Default::default();
        choice.by_rule.clear();
    }
}
