//! Rebalancing: a fleet that runs is changed for the better.
//!
//! Annealing from where everything is, with what such fleets need beyond it. A VM takes part once
//! its size is well above the temperature: smaller ones would only wander about and fill the room
//! that large ones need. A VM that leaves home goes on taking transient resources there, so that
//! leaving costs extra at first, in proportion to what is left behind. Partners of a swap are
//! mostly of nearly the same size, and one proposal in eight takes a VM home.
//!
//! Walkers search by themselves and meet at fixed shares of the budget, where those that are behind
//! go on from the best. Limited by steps there are always as many of them, so that the answer is the
//! same on any number of threads.

use super::{Engine, Task};
use crate::assignment::{Budget, Model, NOWHERE, Outcome, State, StopReason};
use crate::dice::{Dice, exp, ln};

#[derive(Clone, Copy, Debug)]
pub struct Rebalance {
    pub threads: u32,
    /// The temperature at the start, as a share of the largest VM's size.
    pub start: f64,
    /// The temperature at the end, as a share of what there is to gain for each VM.
    pub end: f64,
    /// A VM takes part if its size is at least this many times the temperature.
    pub gate: f64,
    /// What leaving home costs at first, as a share of the size of what is left behind.
    pub home: f64,
}

impl Default for Rebalance {
    fn default() -> Self {
        Self { threads: 2, start: 0.1, end: 3e-3, gate: 10.0, home: 0.45 }
    }
}

/// Proposals between looks at the budget.
const ROUND: u64 = 1 << 12;
/// Walkers of a search that is limited by steps.
const WALKERS: usize = 2;
/// Shares of the budget at which walkers meet.
const MEETINGS: [f64; 4] = [0.7, 0.8, 0.9, 1.0];
/// From here on it does not cool any more, and only gains are taken.
const COLD: f64 = 0.97;
/// From here on leaving home costs nothing extra.
const AT_EASE: f64 = 0.8;

impl Engine for Rebalance {
    fn name(&self) -> &'static str {
        "rebalance"
    }

    fn solve(&self, task: Task<'_>, budget: &mut Budget) -> Outcome {
        let model = task.model;
        let start = task.start.map(<[u32]>::to_vec).or_else(|| model.initial_assignment());
        let mut outcome = Outcome {
            engine: self.name().to_string(),
            assignment: None,
            objective: None,
            bound: model.bound(),
            stop_reason: StopReason::Stalled,
            steps: 0,
        };
        let Some(start) = start else { return outcome };
        let state = State::new(model, &start);
        if model.vms() == 0 || model.hosts() < 2 {
            outcome.objective = Some(state.objective());
            outcome.assignment = Some(start);
            return outcome;
        }
        let sizes = Sizes::new(model);
        let threads = self.threads.max(1) as usize;
        let timed = budget.left() == u64::MAX;
        let walkers = if timed { threads } else { WALKERS };
        let steps = if timed { u64::MAX } else { budget.left().div_ceil(WALKERS as u64) };
        let mut walkers: Vec<Walker<'_>> = (0..walkers)
            .map(|number| {
                let dice = Dice::stream(task.seed, number as u64);
                Walker::new(self, state.clone(), &sizes, dice, budget.part(steps))
            })
            .collect();
        for meeting in MEETINGS {
            if threads == 1 {
                walkers.iter_mut().for_each(|walker| walker.run(meeting));
            } else {
                std::thread::scope(|scope| {
                    for walker in &mut walkers {
                        scope.spawn(move || walker.run(meeting));
                    }
                });
            }
            meet(&mut walkers);
        }
        outcome.stop_reason = walkers[0].budget.reason();
        outcome.steps = walkers.iter().map(|walker| walker.budget.used()).sum();
        budget.spend(outcome.steps);
        let best = walkers.into_iter().min_by_key(|walker| walker.best);
        if let Some(walker) = best {
            outcome.objective = Some(walker.best);
            outcome.assignment = Some(walker.best_assignment);
        }
        outcome
    }
}

/// Those that are behind go on from where the best one is.
fn meet(walkers: &mut [Walker<'_>]) {
    let leader = (0..walkers.len()).min_by_key(|&row| walkers[row].objective);
    let Some(leader) = leader else { return };
    let (state, objective) = (walkers[leader].state.clone(), walkers[leader].objective);
    for walker in walkers.iter_mut().filter(|walker| walker.objective > objective) {
        (walker.state, walker.objective) = (state.clone(), objective);
    }
}

/// What VMs weigh in the goals.
struct Sizes {
    of: Vec<f64>,
    /// Of what stays taken at home.
    left_behind: Vec<f64>,
    /// Largest first.
    order: Vec<u32>,
}

impl Sizes {
    fn new(model: &Model) -> Self {
        let vms = 0..model.vms() as u32;
        let of: Vec<f64> = vms.clone().map(|vm| model.goals.weight(model.demand(vm))).collect();
        let left_behind = vms.clone().map(|vm| {
            let demand = model.demand(vm).iter().zip(model.transient());
            let held: Vec<i32> = demand.map(|(demand, transient)| demand & transient).collect();
            model.goals.weight(&held)
        });
        let left_behind = left_behind.collect();
        let mut order: Vec<u32> = vms.collect();
        order.sort_by(|&a, &b| of[b as usize].total_cmp(&of[a as usize]).then(a.cmp(&b)));
        Self { of, left_behind, order }
    }

    /// How many VMs are of this size or larger; two at least, if there are two.
    fn at_least(&self, size: f64) -> u32 {
        let count = self.order.partition_point(|&vm| self.of[vm as usize] >= size);
        count.max(2).min(self.order.len()) as u32
    }
}

struct Walker<'m> {
    state: State<'m>,
    sizes: &'m Sizes,
    budget: Budget,
    dice: Dice,
    objective: i64,
    best: i64,
    best_assignment: Vec<u32>,
    /// Temperatures at the start and at the end, and what the settings say.
    hot: f64,
    cold: f64,
    gate: f64,
    home: f64,
    /// What is in force now: how many of the largest VMs take part, and what leaving home costs.
    movable: u32,
    leaving_home: f64,
    /// Quantiles of the exponential distribution: a loss below temperature x a draw is taken.
    patience: Vec<f64>,
    /// Distances in rank between partners of a swap, each order of magnitude as likely.
    distances: Vec<u32>,
}

impl<'m> Walker<'m> {
    fn new(
        settings: &Rebalance,
        state: State<'m>,
        sizes: &'m Sizes,
        dice: Dice,
        budget: Budget,
    ) -> Self {
        let model = state.model();
        let objective = state.objective();
        let largest = sizes.order.first().map_or(0.0, |&vm| sizes.of[vm as usize]);
        let hot = (largest * settings.start).max(1.0);
        let to_gain = (objective - model.bound()).max(1) as f64 / model.vms() as f64;
        let quantile = |row: u32| -ln((f64::from(row) + 0.5) / 4096.0);
        let range = ln(model.vms().max(2) as f64);
        let distance = |row: u32| exp(range * (f64::from(row) + 0.5) / 4096.0) as u32;
        Self {
            best_assignment: state.assignment().to_vec(),
            state,
            sizes,
            budget,
            dice,
            objective,
            best: objective,
            hot,
            cold: (to_gain * settings.end).max(0.5).min(hot),
            gate: settings.gate,
            home: settings.home,
            movable: 0,
            leaving_home: 0.0,
            patience: (0..4096).map(quantile).collect(),
            distances: (0..4096).map(distance).collect(),
        }
    }

    /// Walks until this share of the budget is spent.
    fn run(&mut self, until: f64) {
        while !self.budget.is_over() {
            let share = self.budget.share();
            if share >= until {
                return;
            }
            let cooled = (share / COLD).min(1.0);
            let mut temperature = self.hot * exp(ln(self.cold / self.hot) * cooled);
            self.movable = self.sizes.at_least(temperature * self.gate);
            self.leaving_home = self.home * (1.0 - share / AT_EASE).max(0.0);
            if share >= COLD {
                (temperature, self.movable) = (0.0, self.sizes.order.len() as u32);
            }
            for _ in 0..ROUND {
                self.propose(temperature);
            }
            self.budget.spend(ROUND);
            if self.objective < self.best {
                self.best = self.objective;
                self.best_assignment.copy_from_slice(self.state.assignment());
            }
        }
    }

    fn propose(&mut self, temperature: f64) {
        let draw = self.dice.bits();
        let most = temperature * self.patience[(draw & 4095) as usize];
        let place = (((draw >> 12 & 0xffff_ffff) * u64::from(self.movable)) >> 32) as u32;
        let vm = self.sizes.order[place as usize];
        match draw >> 61 {
            0..4 => {
                let host = self.dice.below(self.state.model().hosts() as u32);
                self.shift(vm, host, most);
            }
            4 => {
                let home = self.state.model().initial(vm);
                if home != NOWHERE {
                    self.shift(vm, home, most);
                }
            }
            _ => {
                let draw = self.dice.bits();
                let distance = self.distances[(draw & 4095) as usize];
                let other = match draw >> 63 {
                    0 => place.checked_add(distance),
                    _ => place.checked_sub(distance),
                };
                if let Some(&other) = other.and_then(|other| self.sizes.order.get(other as usize)) {
                    self.swap(vm, other, most);
                }
            }
        }
    }

    #[inline]
    fn shift(&mut self, vm: u32, host: u32, most: f64) {
        if host == self.state.host_of(vm) || !self.state.fits(vm, host) {
            return;
        }
        let delta = self.state.shift_delta(vm, host);
        if delta as f64 + self.leaving(vm, host) <= most
            && self.state.rules_allow(&[self.state.shift_of(vm, host)])
        {
            self.state.shift(vm, host);
            self.objective += delta;
        }
    }

    #[inline]
    fn swap(&mut self, vm: u32, other: u32, most: f64) {
        let (here, there) = (self.state.host_of(vm), self.state.host_of(other));
        if here == there || !self.state.fits_swap(vm, other) {
            return;
        }
        let delta = self.state.swap_delta(vm, other);
        let leaving = self.leaving(vm, there) + self.leaving(other, here);
        if delta as f64 + leaving <= most && self.state.rules_allow(&self.state.swap_of(vm, other))
        {
            self.state.swap(vm, other);
            self.objective += delta;
        }
    }

    /// What is added for leaving home, or given back for coming.
    #[inline]
    fn leaving(&self, vm: u32, to: u32) -> f64 {
        let home = self.state.model().initial(vm);
        let leaves = i32::from(self.state.host_of(vm) == home) - i32::from(to == home);
        f64::from(leaves) * self.leaving_home * self.sizes.left_behind[vm as usize]
    }
}
