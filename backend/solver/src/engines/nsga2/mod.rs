//! NSGA-II: a population of placements that trade cost, evenness and moves against each other.
//!
//! The algorithm (`population`, `sorting`, `worth`) knows nothing of placements. Members are whole
//! assignments in a `State`, so that every rule holds at every step and nothing has to be repaired
//! that could not be; what changes is priced by the hosts that it touches. A step is one child.
//!
//! All trade-offs that no other dominates are kept beside the population, and the front that is
//! handed out is chosen from them by the volume that it dominates.

mod archive;
mod breeding;
mod criteria;
mod goal_member;
mod hypervolume;
mod member;
mod population;
mod seeds;
mod sorting;
#[cfg(test)]
mod test_problems;
mod worth;

pub use criteria::Criteria;
pub use goal_member::Kinds;
pub use hypervolume::{area, hypervolume};
pub use population::{Population, Variation};
pub use sorting::{Survivor, crowding, fronts, survivors};
pub use worth::Worth;

use super::{Engine, Greedy, Task};
use crate::assignment::{Budget, Model, Outcome, State, StopReason};
use crate::dice::Dice;
use archive::Archive;
use breeding::Breeding;
use goal_member::GoalMember;
use member::{Member, Valued};
use seeds::Seeds;
use std::marker::PhantomData;
use std::sync::Arc;

#[derive(Clone, Copy, Debug)]
pub struct Nsga2 {
    pub threads: u32,
    pub population: usize,
    /// Without an end, until the budget is spent. The first members count as one.
    pub generations: Option<u64>,
    /// Changes that are tried on every child.
    pub tries: u32,
    /// Hosts that a child takes over from its other parent at most.
    pub exchanged: u32,
    /// Hosts that are looked at for a VM that has to go somewhere, besides where it was.
    pub looked_at: u32,
    /// Ways from the start to fewer hosts that the first members are found on.
    pub ways: u32,
}

impl Default for Nsga2 {
    fn default() -> Self {
        Self {
            threads: 1,
            population: 100,
            generations: None,
            tries: 8,
            exchanged: 1,
            looked_at: 8,
            ways: 10,
        }
    }
}

/// Trade-offs of which none dominates another.
#[derive(Clone, Debug)]
pub struct Front<const N: usize> {
    pub points: Vec<FrontPoint<N>>,
    /// Share of the box below the worst case that they dominate.
    pub hypervolume: f64,
    /// Members that were made, the first ones included.
    pub evaluations: u64,
    /// Changes that were priced on the way.
    pub priced: u64,
    pub stop_reason: StopReason,
}

impl<const N: usize> Front<N> {
    fn none() -> Self {
        Self {
            points: Vec::new(),
            hypervolume: 0.0,
            evaluations: 0,
            priced: 0,
            stop_reason: StopReason::Stalled,
        }
    }

    /// The point that is best by the problem's own weights.
    pub fn best(&self, task: Task<'_>) -> Outcome {
        let points = self.points.iter().map(|point| point.assignment.clone());
        best_of(task, points, self)
    }
}

#[derive(Clone, Debug)]
pub struct FrontPoint<const N: usize> {
    pub assignment: Vec<u32>,
    /// Cost, spread and moves, as `Criteria` has them; or by kind of goal, above the least.
    pub values: [f64; N],
}

/// Tries on the way between two hosts that are emptied, by VM that a host has on average.
const TRIES_ON_THE_WAY: u32 = 7;
/// Members that each way leaves behind.
const STOPS: usize = 25;
/// Trade-offs that are priced by the problem's own weights for an answer, the cheapest first: cost is
/// nearly all of the objective, and pricing a large fleet takes milliseconds.
const PRICED: usize = 16;
/// Trade-offs that are kept, by those that are handed out.
const KEPT: usize = 3;

impl Nsga2 {
    /// A front of cost, spread and moves, of at most as many points as the population has members;
    /// without points if nothing feasible is known to start from.
    pub fn front(&self, task: Task<'_>, budget: &mut Budget) -> Front<3> {
        let Ok(criteria) = Criteria::of(task.problem) else { return Front::none() };
        self.handed_out(task, budget, &|hosts: &[u32]| Member::new(&criteria, hosts))
    }

    /// A front of kinds of goals.
    pub fn front_of_goals<const N: usize>(
        &self,
        task: Task<'_>,
        kinds: &Kinds<N>,
        budget: &mut Budget,
    ) -> Front<N> {
        let make = |hosts: &[u32]| GoalMember::new(kinds, State::new(task.model, hosts));
        self.handed_out(task, budget, &make)
    }

    fn handed_out<'m, M: Valued<'m, N>, const N: usize>(
        &self,
        task: Task<'_>,
        budget: &mut Budget,
        make: &dyn Fn(&[u32]) -> M,
    ) -> Front<N> {
        let mut front = Front::none();
        let (archive, worst) = self.search(task, budget, make, &mut front);
        let points = archive.best(self.population, worst);
        front.points = points
            .into_iter()
            .map(|(worth, assignment)| FrontPoint { assignment, values: worth.values })
            .collect();
        front.points.sort_by(|a, b| a.values[N - 1].total_cmp(&b.values[N - 1]));
        let share = |point: &FrontPoint<N>| std::array::from_fn(|at| point.values[at] / worst[at]);
        let shares: Vec<[f64; N]> = front.points.iter().map(share).collect();
        front.hypervolume = hypervolume(&shares, [1.0; N]);
        front
    }

    /// All trade-offs that were seen, and the worst values.
    fn search<'m, M: Valued<'m, N>, const N: usize>(
        &self,
        task: Task<'_>,
        budget: &mut Budget,
        make: &dyn Fn(&[u32]) -> M,
        front: &mut Front<N>,
    ) -> (Archive<N>, [f64; N]) {
        let size = self.population.max(2);
        let mut archive = Archive::new(size * KEPT);
        let starts: Vec<M> = starts(task, budget).iter().map(|hosts| make(hosts)).collect();
        let Some(first) = starts.first() else {
            front.stop_reason =
                if budget.is_over() { budget.reason() } else { StopReason::Stalled };
            return (archive, [1.0; N]);
        };
        let worst = first.worst();
        if task.model.vms() == 0 || task.model.hosts() < 2 {
            archive.offer(first.worth(), first.state().assignment());
            return (archive, worst);
        }
        let mut dice = Dice::new(task.seed);
        let seeds = Seeds { ways: self.ways, tries: TRIES_ON_THE_WAY, stops: STOPS };
        let (first, priced) = seeds.found(starts, &mut archive, budget, &mut dice);
        (front.priced, front.evaluations) = (priced, (size as u64).min(budget.left()));
        budget.spend(front.evaluations);
        let mut population = Population::new(first, size, dice.bits());
        let deadline = Arc::clone(budget.deadline());
        let breeding = Breeding {
            deadline: &deadline,
            current: current(task.model).map(|hosts| make(&hosts)),
            tries: self.tries,
            exchanged: self.exchanged,
            looked_at: self.looked_at,
            model: PhantomData,
        };
        let mut generation = 1;
        while !budget.is_over() && self.generations.is_none_or(|end| generation < end) {
            let bred = budget.left().min(size as u64);
            population.breed(&breeding, bred as usize, self.threads);
            let (children, worths) = population.children();
            for (child, worth) in children.iter().zip(worths) {
                archive.offer(*worth, child.state().assignment());
                front.priced += child.priced();
            }
            front.evaluations += bred;
            population.select();
            budget.spend(bred);
            generation += 1;
        }
        front.stop_reason = if budget.is_over() { budget.reason() } else { StopReason::Steps };
        (archive, worst)
    }
}

/// Where VMs are now, if every VM is somewhere and all rules hold.
fn current(model: &Model) -> Option<Vec<u32>> {
    model.initial_assignment().filter(|hosts| State::new(model, hosts).is_feasible())
}

/// What the search starts from: what it is told to, or else what runs now and what greed finds.
fn starts(task: Task<'_>, budget: &Budget) -> Vec<Vec<u32>> {
    if let Some(start) = task.start {
        return vec![start.to_vec()];
    }
    let greedy = || Greedy.solve(task, &mut budget.part(u64::MAX)).assignment;
    let mut starts: Vec<Vec<u32>> = current(task.model).into_iter().chain(greedy()).collect();
    starts.dedup();
    starts
}

impl Engine for Nsga2 {
    fn name(&self) -> &'static str {
        "nsga2"
    }

    /// The best trade-off that was seen, by the problem's own weights.
    fn solve(&self, task: Task<'_>, budget: &mut Budget) -> Outcome {
        let mut front = Front::none();
        match Criteria::of(task.problem) {
            Ok(criteria) => {
                let make = |hosts: &[u32]| Member::new(&criteria, hosts);
                let (archive, _) = self.search(task, budget, &make, &mut front);
                best_of(task, archive.into_placements().take(PRICED), &front)
            }
            Err(_) => best_of(task, std::iter::empty(), &front),
        }
    }
}

fn best_of<const N: usize>(
    task: Task<'_>,
    points: impl Iterator<Item = Vec<u32>>,
    front: &Front<N>,
) -> Outcome {
    let priced = points.map(|hosts| (State::new(task.model, &hosts).objective(), hosts));
    let (objective, assignment) = priced.min_by_key(|(objective, _)| *objective).unzip();
    if let (Some(objective), Some(hosts)) = (objective, &assignment) {
        task.tell(objective, hosts);
    }
    Outcome {
        engine: "nsga2".to_string(),
        assignment,
        objective,
        bound: task.model.bound(),
        stop_reason: front.stop_reason,
        steps: front.evaluations,
    }
}
