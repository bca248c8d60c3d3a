//! Auto: picks what to run by the size of the problem and by what limits it, and says why.
//!
//! With a limit of steps: the relaxation's start or the greedy one, whichever is better, and
//! annealing from there; the same answer every time. With a deadline and two threads: one anneals
//! and then solves a few hosts at a time, the other solves the whole as a programme if it is small
//! enough for a proof to come in time, and a few hosts at a time if not.

use crate::engine::Ilp;
use crate::hosts_at_a_time::improve;
use crate::relaxation::relaxation;
use solver::assignment::{Budget, Outcome, State, StopReason};
use solver::dice::Dice;
use solver::engines::{Annealing, Csp, Engine, Greedy, Task};
use std::sync::{Mutex, PoisonError};

#[derive(Clone, Copy, Debug)]
pub struct Auto {
    pub threads: u32,
    /// Whether the budget is a time and not a number of steps.
    pub timed: bool,
    pub tuning: Tuning,
}

/// What was found to work best on fleets of 40 to 500 hosts.
#[derive(Clone, Copy, Debug)]
pub struct Tuning {
    /// Columns of counts up to which the whole is searched as one programme.
    pub whole_columns: usize,
    /// Hosts that are solved at once, and the seconds that this may take.
    pub hosts_at_a_time: usize,
    pub seconds_each: f64,
    /// Share of the time that annealing gets where hosts are solved a few at a time as well.
    pub annealing_share: f64,
    /// Heat of annealing from a start that is good already.
    pub heat: Annealing,
}

impl Default for Tuning {
    fn default() -> Self {
        Self {
            whole_columns: 1_500,
            hosts_at_a_time: 6,
            seconds_each: 0.4,
            annealing_share: 0.6,
            heat: Annealing { start_heat: 0.05, end_heat: 0.0005 },
        }
    }
}

/// The best answer so far, for all threads.
struct Board(Mutex<Option<(i64, Vec<u32>)>>);

impl Board {
    fn offer(&self, objective: i64, hosts: &[u32]) {
        let mut best = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if best.as_ref().is_none_or(|(known, _)| objective < *known) {
            *best = Some((objective, hosts.to_vec()));
        }
    }

    fn best(&self) -> Option<(i64, Vec<u32>)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Engine for Auto {
    fn name(&self) -> &'static str {
        "auto"
    }

    fn solve(&self, task: Task<'_>, budget: &mut Budget) -> Outcome {
        let model = task.model;
        let board = Board(Mutex::new(None));
        let offer = |outcome: &Outcome| {
            if let (Some(objective), Some(hosts)) = (outcome.objective, &outcome.assignment) {
                board.offer(objective, hosts);
            }
        };
        if let Some(start) = task.start {
            board.offer(State::new(model, start).objective(), start);
        }
        offer(&Greedy.solve(task, &mut budget.part(u64::MAX)));
        let mut bound = model.bound();
        if let Some(relaxed) = relaxation(task.problem, model, budget.deadline()) {
            bound = bound.max(relaxed.bound);
            if let Some(start) = relaxed.start {
                board.offer(State::new(model, &start).objective(), &start);
            }
        }
        if board.best().is_none() {
            // Rules that greed cannot mend: a search that sees them all.
            offer(&Csp { first: true }.solve(task, &mut budget.part(u64::MAX)));
        }
        let columns = model.shapes() * model.hosts();
        let whole = columns <= self.tuning.whole_columns;
        let Some((_, start)) = board.best() else {
            let outcome = Ilp { threads: self.threads }.solve(task, budget);
            return Outcome { engine: "auto: ilp, nothing else found a start".into(), ..outcome };
        };
        let task = Task { start: Some(&start), ..task };
        let mut proof = None;
        let (engine, steps) = if !self.timed {
            let outcome = self.tuning.heat.solve(task, budget);
            offer(&outcome);
            ("auto: relaxation, then annealing for a number of steps".to_string(), outcome.steps)
        } else if self.threads < 2 {
            let steps = self.search(task, budget.clone(), &board, 0);
            ("auto: annealing, then a few hosts at a time".to_string(), steps)
        } else if whole {
            let steps = std::thread::scope(|scope| {
                let heuristic = scope.spawn(|| self.search(task, budget.clone(), &board, 0));
                let outcome = Ilp { threads: 1 }.solve(task, &mut budget.clone());
                offer(&outcome);
                if outcome.stop_reason == StopReason::Optimal {
                    // Proven: what the other thread does cannot help any more.
                    budget.deadline().tell(1.0);
                }
                proof = Some(outcome);
                heuristic.join().unwrap_or(0)
            });
            (format!("auto: annealing beside one programme of {columns} columns"), steps)
        } else {
            let steps = std::thread::scope(|scope| {
                let other = scope.spawn(|| self.small_parts(task, budget, &board, 1));
                self.search(task, budget.clone(), &board, 0) + other.join().unwrap_or(0)
            });
            (format!("auto: annealing beside a few hosts at a time, {columns} columns"), steps)
        };
        let optimal = proof.as_ref().is_some_and(|p| p.stop_reason == StopReason::Optimal);
        let bound = proof.map_or(bound, |proof| proof.bound.max(bound));
        let (objective, assignment) = board.best().unzip();
        let closed = optimal || objective.is_some_and(|objective| objective <= bound);
        Outcome {
            engine,
            bound: objective.map_or(bound, |objective| bound.min(objective)),
            objective,
            assignment,
            stop_reason: if closed { StopReason::Optimal } else { budget.reason() },
            steps,
        }
    }
}

impl Auto {
    /// Annealing for a share of the time, then a few hosts at a time.
    fn search(&self, task: Task<'_>, budget: Budget, board: &Board, number: u64) -> u64 {
        let mut annealing = budget.share_of(self.tuning.annealing_share);
        let outcome = self.tuning.heat.solve(task, &mut annealing);
        if let (Some(objective), Some(hosts)) = (outcome.objective, &outcome.assignment) {
            board.offer(objective, hosts);
        }
        outcome.steps + self.small_parts(task, &budget, board, number)
    }

    /// Solves a few hosts at a time, from the best answer of all threads.
    fn small_parts(&self, task: Task<'_>, budget: &Budget, board: &Board, number: u64) -> u64 {
        let Some((_, hosts)) = board.best() else { return 0 };
        let mut state = State::new(task.model, &hosts);
        let mut dice = Dice::stream(task.seed, number);
        let mut steps = 0;
        while !budget.deadline().is_over() {
            if let Some((objective, hosts)) = board.best()
                && objective < state.objective()
            {
                state = State::new(task.model, &hosts);
            }
            let hosts = self.pick(&state, &mut dice);
            let seconds = self.tuning.seconds_each;
            if improve(task.problem, &mut state, &hosts, seconds, budget.deadline()) {
                board.offer(state.objective(), state.assignment());
            }
            steps += 1;
        }
        steps
    }

    /// Hosts that have VMs, and sometimes one that has none.
    fn pick(&self, state: &State<'_>, dice: &mut Dice) -> Vec<u32> {
        let hosts = 0..state.model().hosts() as u32;
        let (mut on, mut off): (Vec<u32>, Vec<u32>) =
            hosts.partition(|&host| !state.vms_on(host).is_empty());
        dice.shuffle(&mut on);
        dice.shuffle(&mut off);
        on.truncate(self.tuning.hosts_at_a_time);
        if dice.below(2) == 0 {
            on.extend(off.first());
        }
        on
    }
}
