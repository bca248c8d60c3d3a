//! What an assignment is worth: one goal a file.
//!
//! A goal's worth is a sum of parts of three kinds, and it offers a method for each kind that it
//! has: what a host costs with what is used on it (`host`), what a VM costs where it is (`vm`), and
//! a part that is a maximum over the fleet, which keeps its own record in a `Highest`.
//! A change of an assignment is priced by the hosts and VMs that it touches.

mod energy;
mod lanes;
mod moves;
mod overload;
mod peak;
mod stranded;

use crate::assignment::{Change, Model};
use cluster::assignment::{Goal, Problem};
use energy::Energy;
use moves::{Moved, Moves};
use overload::Overload;
use peak::{Peak, Peaks};
use stranded::Stranded;

/// The goals of a model by kind, so that pricing a change is a handful of direct calls.
#[derive(Clone, Debug, Default)]
pub(crate) struct Goals {
    energy: Vec<Energy>,
    moves: Vec<Moves>,
    overload: Vec<Overload>,
    peak: Vec<Peak>,
    stranded: Vec<Stranded>,
}

/// What a host's resources would look like: an amount in use for each.
pub(crate) trait Used: Fn(usize) -> i32 {}
impl<F: Fn(usize) -> i32> Used for F {}

/// The parts that are a maximum over the fleet, for one assignment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Highest {
    peaks: Vec<Peaks>,
    moved: Vec<Moved>,
}

impl Goals {
    pub(crate) fn compile(model: &Model, problem: &Problem) -> Self {
        let mut goals = Self::default();
        for goal in &problem.goals {
            match goal {
                Goal::Energy { resource, hosts } => {
                    goals.energy.push(Energy::compile(model, *resource as usize, hosts));
                }
                Goal::Peak { weight } => goals.peak.push(Peak::compile(model, *weight)),
                Goal::Overload { weights, safe } => {
                    goals.overload.push(Overload::compile(model, weights, safe));
                }
                Goal::Stranded { plenty, scarce, target, weight } => {
                    let (plenty, scarce) = (*plenty as usize, *scarce as usize);
                    goals.stranded.push(Stranded::compile(model, plenty, scarce, *target, *weight));
                }
                Goal::Moves { vms, between, busiest } => {
                    goals.moves.push(Moves::compile(model, vms, between, busiest));
                }
            }
        }
        goals
    }

    /// What a host costs with these amounts in use by so many VMs.
    #[inline]
    pub(crate) fn host(&self, host: u32, vms: u32, used: impl Used) -> i64 {
        let mut cost = self.certain_host(host, vms, &used);
        for goal in &self.stranded {
            cost += goal.host(host, &used);
        }
        cost
    }

    /// The part of it that VMs yet to come cannot make less.
    #[inline]
    pub(crate) fn certain_host(&self, host: u32, vms: u32, used: &impl Used) -> i64 {
        let mut cost = 0;
        for goal in &self.energy {
            cost += goal.host(host, vms);
        }
        for goal in &self.overload {
            cost += goal.host(host, used);
        }
        cost
    }

    /// What a host takes for having any VM at all.
    pub(crate) fn idle(&self, host: u32) -> i64 {
        self.energy.iter().map(|goal| goal.host(host, 1)).sum()
    }

    /// What a VM costs on a host.
    #[inline]
    pub(crate) fn vm(&self, vm: u32, host: u32) -> i64 {
        let mut cost = 0;
        for goal in &self.energy {
            cost += goal.vm(vm, host);
        }
        for goal in &self.moves {
            cost += goal.vm(vm, host);
        }
        cost
    }

    /// What amounts weigh: the most that the hosts' costs can differ by with and without them.
    pub(crate) fn weight(&self, amounts: &[i32]) -> f64 {
        let overload = self.overload.iter().map(|goal| goal.weight(amounts)).sum::<f64>();
        overload + self.stranded.iter().map(|goal| goal.weight(amounts)).sum::<f64>()
    }

    /// What no assignment is worth less than.
    pub(crate) fn bound(&self, model: &Model) -> i64 {
        self.energy.iter().map(|goal| goal.bound(model)).sum::<i64>()
            + self.overload.iter().map(|goal| goal.bound(model)).sum::<i64>()
            + self.stranded_bound(model)
            + self.peak.iter().map(|goal| goal.bound(model)).sum::<i64>()
    }

    pub(crate) fn stranded_bound(&self, model: &Model) -> i64 {
        self.stranded.iter().map(|goal| goal.bound(model)).sum()
    }
}

impl Highest {
    pub(crate) fn none(model: &Model) -> Self {
        let goals = &model.goals;
        Self {
            peaks: goals.peak.iter().map(|_| Peaks::none(model.hosts())).collect(),
            moved: goals.moves.iter().map(Moved::none).collect(),
        }
    }

    /// What the maxima are worth now.
    pub(crate) fn worth(&self, goals: &Goals) -> i64 {
        let peaks = self.peaks.iter().map(Peaks::highest);
        let moved = goals.moves.iter().zip(&self.moved).map(|(goal, moved)| moved.worth(goal));
        peaks.sum::<i64>() + moved.sum::<i64>()
    }

    /// Records what is in use on a host.
    pub(crate) fn set_host(&mut self, goals: &Goals, host: u32, used: impl Used) {
        for (goal, peaks) in goals.peak.iter().zip(&mut self.peaks) {
            peaks.set(host, goal.host(host, &used));
        }
    }

    /// Records that a VM left one host for another; either may be `NOWHERE`.
    pub(crate) fn moved(&mut self, goals: &Goals, change: Change) {
        for (goal, moved) in goals.moves.iter().zip(&mut self.moved) {
            moved.record(goal, change);
        }
    }

    /// How the worth changes when a VM that was nowhere comes to a host.
    pub(crate) fn arrival_delta(&self, goals: &Goals, change: Change, used: impl Used) -> i64 {
        let mut delta = 0;
        for (goal, peaks) in goals.peak.iter().zip(&self.peaks) {
            let others = peaks.highest_without(change.to, change.to);
            delta += goal.raise(others, change.to, &used) - peaks.highest();
        }
        for (goal, moved) in goals.moves.iter().zip(&self.moved) {
            delta += moved.delta(goal, &[change]);
        }
        delta
    }

    /// How the worth changes with these changes, which touch two hosts and nothing else.
    #[inline]
    pub(crate) fn delta(
        &self,
        goals: &Goals,
        changes: &[Change],
        (from, used_from): (u32, impl Used),
        (to, used_to): (u32, impl Used),
    ) -> i64 {
        let mut delta = 0;
        for (goal, peaks) in goals.peak.iter().zip(&self.peaks) {
            let others = peaks.highest_without(from, to);
            let after = goal.raise(others, from, &used_from);
            delta += goal.raise(after, to, &used_to) - peaks.highest();
        }
        for (goal, moved) in goals.moves.iter().zip(&self.moved) {
            delta += moved.delta(goal, changes);
        }
        delta
    }
}
