//! Auto: several engines on one problem, chosen by its size and by what limits the search.
//!
//! Greed, or CSP where rules are beyond it, gives a start. With a limit of steps the relaxation
//! adds a bound and another start, and large neighbourhoods are searched from the better one: the
//! same answer every time, on any number of threads. With a deadline and two threads, one searches
//! large neighbourhoods from the beginning; the other solves the relaxation and then the whole as
//! a programme if it is small enough for that to raise the bound, or else searches as well. Towards
//! the end those that search solve a few hosts at a time exactly, from the best answer of all.

use crate::engine::Ilp;
use crate::hosts_at_a_time::improve;
use crate::relaxation::relaxation;
use solver::assignment::{Budget, Outcome, State, StopReason};
use solver::dice::Dice;
use solver::engines::{Board, Csp, Engine, Greedy, Lns, Task};

#[derive(Clone, Copy, Debug)]
pub struct Auto {
    pub threads: u32,
    /// Whether the budget is a time and not a number of steps.
    pub timed: bool,
    pub tuning: Tuning,
}

/// Where one engine ends and the next begins. The defaults come from a few runs on three instances,
/// with 40, 100 and 500 hosts and one seed: enough to see what fails, not what is best. How many
/// hosts are solved at once, and for how long, was not compared.
#[derive(Clone, Copy, Debug)]
pub struct Tuning {
    /// Columns of counts up to which the whole is searched as one programme, and up to which it is
    /// relaxed for a bound: beyond, making the columns takes longer than there is.
    pub whole_columns: usize,
    pub relaxed_columns: usize,
    /// Pairs of a VM and a host up to which greed is asked where there is a start already.
    pub greedy_pairs: usize,
    /// Share of the time after which that begins, from the best answer until then.
    pub start_share: f64,
    /// Hosts that are solved at once, and the seconds that this may take.
    pub hosts_at_a_time: usize,
    pub seconds_each: f64,
    /// Share of the time after which hosts are solved a few at a time.
    pub search_share: f64,
    /// How large neighbourhoods are searched; the number of threads is `Auto`'s.
    pub search: Lns,
}

impl Default for Tuning {
    fn default() -> Self {
        Self {
            whole_columns: 1_500,
            relaxed_columns: 250_000,
            greedy_pairs: 1_000_000,
            start_share: 0.1,
            hosts_at_a_time: 5,
            seconds_each: 0.3,
            search_share: 0.85,
            search: Lns::default(),
        }
    }
}

/// What is known besides the board's best answer.
#[derive(Debug)]
struct Known {
    bound: i64,
    proven: bool,
    steps: u64,
}

impl Engine for Auto {
    fn name(&self) -> &'static str {
        "auto"
    }

    fn solve(&self, task: Task<'_>, budget: &mut Budget) -> Outcome {
        let board = Board::default();
        if let Some(start) = task.start {
            board.offer(State::new(task.model, start).objective(), start);
        }
        let pairs = task.model.vms() * task.model.hosts();
        if task.start.is_none() || pairs <= self.tuning.greedy_pairs {
            board.offer_outcome(&Greedy.solve(task, &mut budget.part(u64::MAX)));
        }
        if board.best().is_none() && !budget.is_over() {
            // Rules that greed cannot mend: a search that sees them all, and leaves time for others.
            let outcome = Csp { first: true }.solve(task, &mut budget.share_of(0.5));
            if outcome.is_infeasible() {
                return Outcome { engine: "auto: csp, which found none".into(), ..outcome };
            }
            board.offer_outcome(&outcome);
        }
        let Some((_, start)) = board.best() else {
            let outcome = Ilp { threads: self.threads }.solve(task, budget);
            return Outcome { engine: "auto: ilp, nothing else found a start".into(), ..outcome };
        };
        let task = Task { start: Some(&start), ..task };
        let columns = task.model.shapes() * task.model.hosts();
        let whole = columns <= self.tuning.whole_columns;
        let (engine, known) = if !self.timed {
            ("auto: large neighbourhoods".to_string(), self.by_steps(task, budget, &board))
        } else if self.threads < 2 {
            let mut known = self.relax(task, budget, &board);
            known.steps += self.search(task, budget, &board, 0);
            ("auto: large neighbourhoods".to_string(), known)
        } else {
            let beside = if whole { "one programme" } else { "the same" };
            let engine = format!("auto: large neighbourhoods beside {beside}, {columns} columns");
            (engine, self.side_by_side(task, budget, &board, whole))
        };
        let (objective, assignment) = board.best().unzip();
        let closed = known.proven || objective.is_some_and(|objective| objective <= known.bound);
        Outcome {
            engine,
            bound: objective.map_or(known.bound, |objective| known.bound.min(objective)),
            objective,
            assignment,
            stop_reason: if closed { StopReason::Optimal } else { budget.reason() },
            steps: known.steps,
        }
    }
}

impl Auto {
    fn lns(&self, threads: u32) -> Lns {
        Lns { threads, ..self.tuning.search }
    }

    fn by_steps(&self, task: Task<'_>, budget: &mut Budget, board: &Board) -> Known {
        let mut known = self.relax(task, budget, board);
        if let Some((_, start)) = board.best() {
            let task = Task { start: Some(&start), ..task };
            let outcome = self.lns(self.threads).solve(task, budget);
            board.offer_outcome(&outcome);
            known.steps += outcome.steps;
        }
        known
    }

    fn side_by_side(&self, task: Task<'_>, budget: &Budget, board: &Board, whole: bool) -> Known {
        std::thread::scope(|scope| {
            let beside = scope.spawn(|| self.search(task, budget, board, 0));
            let mut known = self.relax(task, budget, board);
            if whole {
                known.steps += self.neighbourhoods(task, budget, board, 1, self.tuning.start_share);
                let start = board.best().map(|(_, hosts)| hosts);
                let task = Task { start: start.as_deref(), ..task };
                let outcome = Ilp { threads: 1 }.solve(task, &mut budget.clone());
                board.offer_outcome(&outcome);
                known.bound = known.bound.max(outcome.bound);
                known.proven = outcome.stop_reason == StopReason::Optimal;
            }
            if known.proven {
                // What the other thread does cannot help any more.
                budget.deadline().tell(1.0);
            } else {
                known.steps += self.search(task, budget, board, 1);
            }
            known.steps += beside.join().unwrap_or(0);
            known
        })
    }

    /// The relaxation's bound, and its start on the board.
    fn relax(&self, task: Task<'_>, budget: &Budget, board: &Board) -> Known {
        let mut known = Known { bound: task.model.bound(), proven: false, steps: 0 };
        if task.model.shapes() * task.model.hosts() > self.tuning.relaxed_columns {
            return known;
        }
        if let Some(relaxed) = relaxation(task.problem, task.model, budget.deadline()) {
            known.bound = known.bound.max(relaxed.bound);
            if let Some(start) = relaxed.start {
                let objective = State::new(task.model, &start).objective();
                board.offer(objective, &start);
                task.tell(objective, &start);
            }
        }
        known
    }

    /// Large neighbourhoods for a share of the time, then a few hosts at a time; the steps of both.
    fn search(&self, task: Task<'_>, budget: &Budget, board: &Board, number: u64) -> u64 {
        let share = self.tuning.search_share;
        let steps = self.neighbourhoods(task, budget, board, number, share);
        steps + self.small_parts(task, budget, board, &mut Dice::stream(task.seed, number))
    }

    /// Large neighbourhoods, from the best answer of all threads, until a share of the time is gone.
    fn neighbourhoods(
        &self,
        task: Task<'_>,
        budget: &Budget,
        board: &Board,
        number: u64,
        share: f64,
    ) -> u64 {
        let start = board.best().map(|(_, hosts)| hosts);
        let seed = Dice::stream(task.seed, number).bits();
        let task = Task { start: start.as_deref(), seed, ..task };
        let outcome = self.lns(1).solve(task, &mut budget.share_of(share));
        board.offer_outcome(&outcome);
        outcome.steps
    }

    /// Solves a few hosts at a time, from the best answer of all threads.
    fn small_parts(&self, task: Task<'_>, budget: &Budget, board: &Board, dice: &mut Dice) -> u64 {
        let Some((_, hosts)) = board.best() else { return 0 };
        let mut state = State::new(task.model, &hosts);
        let mut steps = 0;
        while !budget.is_over() {
            if let Some((objective, hosts)) = board.best()
                && objective < state.objective()
            {
                state = State::new(task.model, &hosts);
            }
            let hosts = self.pick(&state, dice);
            let seconds = self.tuning.seconds_each;
            if improve(task.problem, &mut state, &hosts, seconds, budget.deadline()) {
                board.offer(state.objective(), state.assignment());
                task.tell(state.objective(), state.assignment());
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
