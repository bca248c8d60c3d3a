//! Rebalancing: a fleet that runs is changed for the better.
//!
//! Annealing from where everything is, with what such fleets need beyond it. A VM takes part once
//! its size is well above the temperature: smaller ones would only wander about and fill the room
//! that large ones need. A VM that leaves home goes on taking transient resources there, so that
//! leaving costs extra at first, in proportion to what is left behind. Partners of a swap are
//! mostly of nearly the same size, and one proposal in eight takes a VM home. Short walks tell at
//! which temperatures there is something to gain (`schedule`).
//!
//! Walkers walk on a `Ground`: `lanes` where hosts cost by what is used on them, as most fleets do,
//! or a `State` with whatever goals there are.
//!
//! Walkers search by themselves and meet at fixed shares of the budget, where those that are behind
//! go on from the best. Limited by steps there are always as many of them, so that the answer is the
//! same on any number of threads.

mod ground;
mod lanes;
mod schedule;
mod walker;

use super::{Engine, Task};
use crate::assignment::{Budget, Model, Outcome, State, StopReason};
use crate::dice::Dice;
use ground::{AnyGoals, Ground};
use lanes::Lanes;
use walker::Walker;

#[derive(Clone, Copy, Debug)]
pub struct Rebalance {
    pub threads: u32,
    /// The temperature at the start, as a share of the largest VM's size.
    pub start: f64,
    /// The share of the budget for each of two short walks that tell how to cool.
    pub pilot: f64,
    /// The share of the time that is spread evenly over all temperatures.
    pub even: f64,
    /// A VM takes part if its size is at least this many times the temperature.
    pub gate: f64,
    /// What leaving home costs at first, as a share of the size of what is left behind.
    pub home: f64,
}

impl Default for Rebalance {
    fn default() -> Self {
        Self { threads: 2, start: 0.1, pilot: 0.03, even: 0.8, gate: 3.0, home: 0.45 }
    }
}

/// Walkers of a search that is limited by steps.
const WALKERS: usize = 2;
/// Shares of the budget at which walkers meet.
const MEETINGS: [f64; 4] = [0.7, 0.8, 0.9, 1.0];

impl Engine for Rebalance {
    fn name(&self) -> &'static str {
        "rebalance"
    }

    fn solve(&self, task: Task<'_>, budget: &mut Budget) -> Outcome {
        let model = task.model;
        let start = task.start.map(<[u32]>::to_vec).or_else(|| model.initial_assignment());
        let mut outcome = Outcome::nothing(self.name(), model);
        let Some(start) = start else { return outcome };
        if model.vms() == 0 || model.hosts() < 2 {
            outcome.objective = Some(State::new(model, &start).objective());
            outcome.assignment = Some(start);
            return outcome;
        }
        let sizes = Sizes::new(model);
        let found = self.search(task, &start, &sizes, budget);
        let objective = State::new(model, &found.hosts).objective();
        debug_assert_eq!(objective, found.objective, "both grounds price alike");
        outcome.objective = Some(objective);
        outcome.assignment = Some(found.hosts);
        outcome.stop_reason = found.reason;
        outcome.steps = found.steps;
        budget.spend(found.steps);
        outcome
    }
}

/// The best that walkers came across.
struct Found {
    objective: i64,
    hosts: Vec<u32>,
    reason: StopReason,
    steps: u64,
}

impl Rebalance {
    /// On the fastest ground that knows every goal.
    fn search(&self, task: Task<'_>, start: &[u32], sizes: &Sizes, budget: &Budget) -> Found {
        let (model, left) = (task.model, &sizes.left_behind);
        if let Some(ground) = Lanes::<4>::new(model, start, left) {
            return self.walk(task.seed, ground, sizes, budget);
        }
        if let Some(ground) = Lanes::<8>::new(model, start, left) {
            return self.walk(task.seed, ground, sizes, budget);
        }
        if let Some(ground) = Lanes::<12>::new(model, start, left) {
            return self.walk(task.seed, ground, sizes, budget);
        }
        if let Some(ground) = Lanes::<16>::new(model, start, left) {
            return self.walk(task.seed, ground, sizes, budget);
        }
        let ground = AnyGoals { state: State::new(model, start), left_behind: left };
        self.walk(task.seed, ground, sizes, budget)
    }

    fn walk<'m>(
        &self,
        seed: u64,
        ground: impl Ground<'m>,
        sizes: &Sizes,
        budget: &Budget,
    ) -> Found {
        let threads = self.threads.max(1) as usize;
        let timed = budget.left() == u64::MAX;
        let walkers = if timed { threads } else { WALKERS };
        let steps = if timed { u64::MAX } else { budget.left().div_ceil(WALKERS as u64) };
        let mut walkers: Vec<Walker<'_, _>> = (0..walkers)
            .map(|number| {
                let dice = Dice::stream(seed, number as u64);
                Walker::new(self, ground.clone(), sizes, dice, budget.part(steps))
            })
            .collect();
        each(&mut walkers, threads, Walker::explore);
        for meeting in MEETINGS {
            each(&mut walkers, threads, |walker| walker.run(meeting));
            meet(&mut walkers);
        }
        let reason = walkers[0].budget.reason();
        let steps = walkers.iter().map(|walker| walker.budget.used()).sum();
        let best = (0..walkers.len()).min_by_key(|&row| walkers[row].best).unwrap_or(0);
        let best = walkers.swap_remove(best);
        Found { objective: best.best, hosts: best.best_assignment, reason, steps }
    }
}

/// Lets every walker do the same, side by side unless there is one thread only.
fn each<W: Send>(walkers: &mut [W], threads: usize, task: impl Fn(&mut W) + Sync) {
    if threads == 1 {
        walkers.iter_mut().for_each(&task);
        return;
    }
    std::thread::scope(|scope| {
        for walker in walkers {
            let task = &task;
            scope.spawn(move || task(walker));
        }
    });
}

/// Those that are behind go on from where the best one is.
fn meet<'m, G: Ground<'m>>(walkers: &mut [Walker<'_, G>]) {
    let leader = (0..walkers.len()).min_by_key(|&row| walkers[row].ground.objective());
    let Some(leader) = leader else { return };
    let ground = walkers[leader].ground.clone();
    for walker in walkers.iter_mut() {
        if walker.ground.objective() > ground.objective() {
            walker.ground = ground.clone();
        }
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
