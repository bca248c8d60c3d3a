//! Annealing: shifts and swaps that are taken if they gain, and now and then if they do not.
//!
//! Starts from a feasible assignment and keeps every rule at every step. A step is one proposal.
//! What a loss may be shrinks with the share of the budget that is spent, from the size of common
//! losses to less than the smallest gain that matters.

use super::improve::improve;
use super::{Engine, Task};
use crate::assignment::{Budget, Outcome, State};
use crate::dice::{Dice, exp, ln};

/// How hot it is: losses that are taken about once in three times, at the start and at the end,
/// as a share of the mean loss of the proposals from the first assignment.
#[derive(Clone, Copy, Debug)]
pub struct Annealing {
    pub start_heat: f64,
    pub end_heat: f64,
}

impl Default for Annealing {
    fn default() -> Self {
        Self { start_heat: 0.3, end_heat: 0.002 }
    }
}

/// Proposals between looks at the budget and the temperature.
const ROUND: u64 = 1 << 10;

impl Engine for Annealing {
    fn name(&self) -> &'static str {
        "annealing"
    }

    fn solve(&self, task: Task<'_>, budget: &mut Budget) -> Outcome {
        improve(self, task, budget, |start, budget| {
            let mut search = Search::new(State::new(task.model, start), Dice::new(task.seed));
            search.run(self, task, budget);
            (search.best, search.best_assignment)
        })
    }
}

struct Search<'m> {
    state: State<'m>,
    objective: i64,
    best: i64,
    best_assignment: Vec<u32>,
    dice: Dice,
    /// Quantiles of the exponential distribution: a loss below temperature x a draw is taken.
    patience: Vec<f64>,
}

impl<'m> Search<'m> {
    fn new(state: State<'m>, dice: Dice) -> Self {
        let objective = state.objective();
        let quantile = |row: u32| -ln((f64::from(row) + 0.5) / 4096.0);
        Self {
            best_assignment: state.assignment().to_vec(),
            state,
            objective,
            best: objective,
            dice,
            patience: (0..4096).map(quantile).collect(),
        }
    }

    fn run(&mut self, heat: &Annealing, task: Task<'_>, budget: &mut Budget) {
        let mut told = i64::MAX;
        let usual = self.usual_loss();
        let fall = ln(heat.end_heat / heat.start_heat);
        while !budget.is_over() {
            let temperature = usual * heat.start_heat * exp(fall * budget.share());
            for _ in 0..ROUND {
                self.propose(temperature);
                if self.objective < self.best {
                    self.best = self.objective;
                    self.best_assignment.copy_from_slice(self.state.assignment());
                }
            }
            if self.best < told {
                told = self.best;
                task.tell(told, &self.best_assignment);
            }
            budget.spend(ROUND);
        }
    }

    /// The mean loss of proposals that lose, from a thousand of them.
    fn usual_loss(&mut self) -> f64 {
        let (mut sum, mut losses) = (0.0, 0);
        for _ in 0..20_000 {
            let vm = self.some_vm();
            let host = self.some_host();
            if host != self.state.host_of(vm) && self.state.fits(vm, host) {
                let delta = self.state.shift_delta(vm, host);
                if delta > 0 {
                    sum += delta as f64;
                    losses += 1;
                }
            }
            if losses == 1_000 {
                break;
            }
        }
        if losses == 0 { 1.0 } else { sum / f64::from(losses) }
    }

    /// A VM that may go elsewhere.
    fn some_vm(&mut self) -> u32 {
        let vms = self.state.model().movable();
        vms[self.dice.below(vms.len() as u32) as usize]
    }

    /// Mostly a host that has VMs, more likely one with many; sometimes any.
    fn some_host(&mut self) -> u32 {
        let model = self.state.model();
        if self.dice.below(8) == 0 {
            self.dice.below(model.hosts() as u32)
        } else {
            let vm = self.some_vm();
            self.state.host_of(vm)
        }
    }

    fn propose(&mut self, temperature: f64) {
        let vm = self.some_vm();
        let draw = self.dice.bits();
        let most = (temperature * self.patience[(draw & 4095) as usize]) as i64;
        if draw >> 63 == 0 {
            let host = self.some_host();
            if host == self.state.host_of(vm) || !self.state.fits(vm, host) {
                return;
            }
            let delta = self.state.shift_delta(vm, host);
            if delta <= most && self.state.rules_allow(&[self.state.shift_of(vm, host)]) {
                self.state.shift(vm, host);
                self.objective += delta;
            }
        } else {
            let other = self.some_vm();
            if self.state.host_of(other) == self.state.host_of(vm)
                || !self.state.fits_swap(vm, other)
            {
                return;
            }
            let delta = self.state.swap_delta(vm, other);
            if delta <= most && self.state.rules_allow(&self.state.swap_of(vm, other)) {
                self.state.swap(vm, other);
                self.objective += delta;
            }
        }
    }
}
