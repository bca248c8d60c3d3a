//! Where searches start from: what runs now, what greed finds, or anything that is allowed.

use super::greedy::mend;
use super::{Engine, Greedy, Task};
use crate::assignment::{Budget, Model, State};
use crate::dice::Dice;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// Where VMs are now.
    Current,
    /// Every VM on a host that is drawn, by the task's seed.
    Random,
    Greedy,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StartError {
    #[error("the problem does not say where each VM is now; start at random or by greed")]
    NoCurrent,
    #[error("where VMs are now breaks a rule or a capacity; start at random or by greed")]
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
            Self::Current => {
                let hosts = task.model.initial_assignment().ok_or(StartError::NoCurrent)?;
                let holds = State::new(task.model, &hosts).is_feasible();
                if holds { Ok(hosts) } else { Err(StartError::CurrentBroken) }
            }
            Self::Random => random(task.model, task.seed).ok_or(StartError::NoRandom),
            Self::Greedy => {
                let found = Greedy.solve(Task { start: None, ..task }, &mut budget.part(u64::MAX));
                found.assignment.ok_or(StartError::NoGreedy)
            }
        }
    }
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
