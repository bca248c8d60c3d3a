//! One walk through assignments, from hot to cold.

use super::ground::{Ground, Patience};
use super::schedule::{Course, Schedule};
use super::{Rebalance, Sizes};
use crate::assignment::{Budget, Model, NOWHERE};
use crate::dice::{Dice, exp, ln};

/// Proposals between looks at the budget.
const ROUND: u64 = 1 << 12;
/// From here on it does not cool any more, and only gains are taken.
const COLD: f64 = 0.97;
/// From here on leaving home costs nothing extra.
const AT_EASE: f64 = 0.8;
/// The second short walk begins this many times colder than the first.
const MILD: f64 = 100.0;
/// In a short time mild walks come further than in a long one: it has to be this much better.
const CLEARLY: f64 = 0.8;
/// Fewer VMs a host than this are few.
const FEW: usize = 15;
/// How much longer small VMs wait where hosts have few and leaving one burns room.
const CAUTION: f64 = 10.0 / 3.0;
/// Before this share of the budget nobody asks for the best so far: there are better ones to come.
const WORTH_KEEPING: f64 = 0.5;

pub(super) struct Walker<'s, G> {
    pub(super) ground: G,
    sizes: &'s Sizes,
    pub(super) budget: Budget,
    dice: Dice,
    pub(super) best: i64,
    pub(super) best_assignment: Vec<u32>,
    schedule: Schedule,
    /// The share of the budget at which the schedule begins.
    began: f64,
    settings: Rebalance,
    /// A VM takes part if its size is at least this many times the temperature.
    gate: f64,
    /// What is in force now: how many of the largest VMs take part, and what leaving home costs.
    movable: u32,
    leaving: f64,
    /// Quantiles of the exponential distribution: a loss below temperature x a draw is taken.
    patience: Vec<f64>,
    /// Distances in rank between partners of a swap, each order of magnitude as likely.
    distances: Vec<u32>,
}

/// Where hosts have few VMs, room for a large one is made by the others on the host alone, and it is
/// spoilt by small ones that left something behind there.
fn caution(model: &Model) -> f64 {
    let leaves_behind = model.transient().iter().any(|&mask| mask != 0);
    if leaves_behind && model.vms() < FEW * model.hosts() { CAUTION } else { 1.0 }
}

impl<'s, 'm, G: Ground<'m>> Walker<'s, G> {
    pub(super) fn new(
        settings: &Rebalance,
        ground: G,
        sizes: &'s Sizes,
        dice: Dice,
        budget: Budget,
    ) -> Self {
        let (model, objective) = (ground.model(), ground.objective());
        let quantile = |row: u32| -ln((f64::from(row) + 0.5) / 4096.0);
        let range = ln(model.vms().max(2) as f64);
        let distance = |row: u32| exp(range * (f64::from(row) + 0.5) / 4096.0) as u32;
        let mut best_assignment = vec![0; model.vms()];
        ground.write_assignment(&mut best_assignment);
        Self {
            best_assignment,
            ground,
            sizes,
            budget,
            dice,
            best: objective,
            schedule: Schedule::even(1.0),
            began: 0.0,
            settings: *settings,
            gate: settings.gate * caution(model),
            movable: 0,
            leaving: 0.0,
            patience: (0..4096).map(quantile).collect(),
            distances: (0..4096).map(distance).collect(),
        }
    }

    /// Walks from hot to cold twice in a short time, the second time from where only small VMs
    /// take part, and takes from the better walk how to cool in the time that is left.
    pub(super) fn explore(&mut self) {
        let bound = self.ground.model().bound();
        let start = self.ground.clone();
        let largest = self.sizes.order.first().map_or(0.0, |&vm| self.sizes.of[vm as usize]);
        let hot = (largest * self.settings.start).max(1.0);
        let mut better: Option<(f64, Course)> = None;
        for (number, hot) in (1..).zip([hot, (hot / MILD).max(1.0)]) {
            let course = self.scout(hot, self.settings.pilot * f64::from(number));
            let distance = |course: &Course| (course.end() - bound).max(0) as f64;
            let is_better = better
                .as_ref()
                .is_none_or(|(_, other)| distance(&course) < distance(other) * CLEARLY);
            if is_better {
                better = Some((hot, course));
            }
            self.ground = start.clone();
        }
        if let Some((hot, course)) = better {
            self.schedule = Schedule::learned(hot, &course, bound, self.settings.even);
        }
        self.began = self.budget.share();
    }

    /// A short walk from hot to cold until this share of the budget is spent.
    fn scout(&mut self, hot: f64, until: f64) -> Course {
        (self.schedule, self.began) = (Schedule::even(hot), self.budget.share());
        let mut course = Course::new(self.ground.objective());
        while !self.budget.is_over() && self.budget.share() < until {
            let share = (self.budget.share() - self.began) / (until - self.began).max(1e-9);
            self.round(share);
            course.note(share / COLD, self.ground.objective());
        }
        self.keep();
        course
    }

    /// Walks until this share of the budget is spent.
    pub(super) fn run(&mut self, until: f64) {
        while !self.budget.is_over() && self.budget.share() < until {
            let share = (self.budget.share() - self.began) / (1.0 - self.began).max(1e-9);
            self.round(share);
            if share >= WORTH_KEEPING {
                self.keep();
            }
        }
        self.keep();
    }

    /// Proposals at the temperature of a share of the walk.
    fn round(&mut self, share: f64) {
        let mut temperature = self.schedule.temperature(share / COLD);
        self.movable = self.sizes.at_least(temperature * self.gate);
        self.leaving = self.settings.home * (1.0 - share / AT_EASE).max(0.0);
        if share >= COLD {
            (temperature, self.movable) = (0.0, self.sizes.order.len() as u32);
        }
        for _ in 0..ROUND {
            self.propose(temperature);
        }
        self.budget.spend(ROUND);
    }

    fn keep(&mut self) {
        if self.ground.objective() < self.best {
            self.best = self.ground.objective();
            self.ground.write_assignment(&mut self.best_assignment);
        }
    }

    #[inline]
    fn propose(&mut self, temperature: f64) {
        let draw = self.dice.bits();
        let most = temperature * self.patience[(draw & 4095) as usize];
        let patience = Patience { most, leaving: self.leaving };
        let place = (((draw >> 12 & 0xffff_ffff) * u64::from(self.movable)) >> 32) as u32;
        let vm = self.sizes.order[place as usize];
        match draw >> 61 {
            0..4 => {
                let host = self.dice.below(self.ground.model().hosts() as u32);
                self.ground.shift(vm, host, patience);
            }
            4 => {
                let home = self.ground.model().initial(vm);
                if home != NOWHERE {
                    self.ground.shift(vm, home, patience);
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
                    self.ground.swap(vm, other, patience);
                }
            }
        }
    }
}
