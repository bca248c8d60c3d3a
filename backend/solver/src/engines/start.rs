//! Where searches start from: what runs now, what greed finds, or anything that is allowed.

use super::greedy::{by_size, cheapest, mend, place};
use super::{Engine, Greedy, Task};
use crate::assignment::{Budget, Model, NOWHERE, State};
use crate::dice::Dice;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// Where VMs are now, and those that are nowhere yet where they cost least.
    Current,
    /// Every VM on a host that is drawn, by the task's seed.
    Random,
    Greedy,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StartError {
    #[error("the problem does not say of any VM where it is now; start at random or by greed")]
    NoCurrent,
    #[error(
        "where VMs are now breaks a rule or a capacity, or has no room for those to come; start at random or by greed"
    )]
    CurrentBroken,
    #[error("no allowed placement was found in {ATTEMPTS} attempts at random; start by greed")]
    NoRandom,
    #[error("greed found no allowed placement; start at random or from what runs now")]
    NoGreedy,
}

/// Orders that are drawn before chance is given up on.
const ATTEMPTS: usize = 50;
/// Hosts that are drawn for a VM before all are looked at in a row.
const DRAWS: u32 = 8;

impl Start {
    /// An assignment that is feasible.
    pub fn assignment(self, task: Task<'_>, budget: &Budget) -> Result<Vec<u32>, StartError> {
        match self {
            Self::Current => current(task.model, budget),
            Self::Random => random(task.model, task.seed).ok_or(StartError::NoRandom),
            Self::Greedy => {
                let found = Greedy.solve(Task { start: None, ..task }, &mut budget.part(u64::MAX));
                found.assignment.ok_or(StartError::NoGreedy)
            }
        }
    }
}

fn current(model: &Model, budget: &Budget) -> Result<Vec<u32>, StartError> {
    if (0..model.vms() as u32).all(|vm| model.initial(vm) == NOWHERE) {
        return Err(StartError::NoCurrent);
    }
    let begun = begin(model, budget);
    let holds = begun.left.is_empty() && begun.holds;
    if holds { Ok(begun.hosts) } else { Err(StartError::CurrentBroken) }
}

/// VMs where they are, and those to come where they cost least.
#[derive(Clone, Debug)]
pub struct Begun {
    /// `NOWHERE` for those that are left.
    pub hosts: Vec<u32>,
    /// VMs to come that no host takes any more, or that there was no time for.
    pub left: Vec<u32>,
    /// Whether nothing is broken but that some are left.
    pub holds: bool,
    /// The worth of what is placed.
    pub objective: i64,
}

/// Places VMs to come beside those that run, the largest first. A VM that finds no room is left,
/// and the others go on.
pub fn begin(model: &Model, budget: &Budget) -> Begun {
    let (placed, to_come): (Vec<u32>, Vec<u32>) =
        by_size(model).into_iter().partition(|&vm| model.initial(vm) != NOWHERE);
    let mut state = State::empty(model);
    placed.into_iter().for_each(|vm| state.place(vm, model.initial(vm)));
    let mut left = Vec::new();
    for vm in to_come {
        let host = if budget.is_over() { None } else { cheapest(&state, vm) };
        match host {
            Some(host) => place(&mut state, vm, host),
            None => left.push(vm),
        }
    }
    // Rules that need others, such as being together, may have nobody to hold them.
    let bound = |vm: &u32| model.initial(*vm) == NOWHERE && model.is_in_a_rule(*vm);
    for vm in (0..model.vms() as u32).filter(bound) {
        if state.broken() == 0 || budget.is_over() {
            break;
        }
        if state.host_of(vm) != NOWHERE && !hold(&mut state, vm) {
            left.push(vm);
        }
    }
    let holds = left.is_empty() && state.is_feasible();
    Begun { hosts: state.assignment().to_vec(), objective: state.objective(), left, holds }
}

/// Puts a VM where less is broken, if there is such a host. False if it had to be taken out: then
/// less is broken without it than with it anywhere.
fn hold(state: &mut State<'_>, vm: u32) -> bool {
    let (broken, host) = (state.broken(), state.host_of(vm));
    state.remove(vm);
    for to in 0..state.model().hosts() as u32 {
        if to != host && state.fits(vm, to) {
            state.place(vm, to);
            if state.broken() < broken {
                return true;
            }
            state.remove(vm);
        }
    }
    if state.broken() < broken {
        return false;
    }
    state.place(vm, host);
    true
}

/// VMs in an order that is drawn, each on a host that is drawn of those that may take it. What
/// found no place goes first in the next attempt.
fn random(model: &Model, seed: u64) -> Option<Vec<u32>> {
    // A stream that no search draws from.
    let mut dice = Dice::stream(seed, u64::MAX);
    let mut order: Vec<u32> = (0..model.vms() as u32).collect();
    dice.shuffle(&mut order);
    for _ in 0..ATTEMPTS {
        let mut state = State::empty(model);
        let mut left = Vec::new();
        for &vm in &order {
            match some_place(&state, vm, &mut dice) {
                Some(host) => state.place(vm, host),
                None => left.push(vm),
            }
        }
        if left.is_empty() && mend(&mut state) && state.is_feasible() {
            return Some(state.assignment().to_vec());
        }
        dice.shuffle(&mut order);
        order.retain(|vm| !left.contains(vm));
        order.splice(0..0, left);
    }
    None
}

fn some_place(state: &State<'_>, vm: u32, dice: &mut Dice) -> Option<u32> {
    let hosts = state.model().hosts() as u32;
    if hosts == 0 {
        return None;
    }
    let drawn = (0..DRAWS).map(|_| dice.below(hosts)).find(|&host| state.may_place(vm, host));
    drawn.or_else(|| {
        let first = dice.below(hosts);
        (first..hosts).chain(0..first).find(|&host| state.may_place(vm, host))
    })
}
