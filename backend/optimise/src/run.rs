//! From a question to a verified answer.

use crate::ask::{Ask, Scope, host_name};
use crate::front::{FrontPoint, Trade, front};
use crate::prices::settle;
use cluster::{Dim, HostIx, Migratability, Name, Snapshot, Vm, VmKey};
use solver::assignment::{
    Ask as FleetAsk, Budget, Cause, Fleet, FleetError, Model, NOWHERE, Outcome, Search, State,
    StopReason, arrivals_only, from_fleet,
};
use solver::engines::{Board, Start, Task, approach, begin, moved, undo};
use solver::objective::{Judge, Objective, Value, add_goals};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// What came of it.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The engine, and what it chose to do where it has a choice.
    pub engine: String,
    pub rung: Rung,
    /// Sums of goals by weight; `None` if no answer was found.
    pub objective: Option<i64>,
    pub bound: i64,
    pub gap: Option<f64>,
    pub stop_reason: StopReason,
    pub steps: u64,
    /// The objective of what was there to start with, if that was allowed.
    pub start: Option<i64>,
    /// VMs that get a host, and VMs that leave theirs.
    pub moved: Vec<Moved>,
    /// Each goal before anything moves, where all VMs are somewhere already, and after.
    pub before: Vec<Value>,
    pub after: Vec<Value>,
    /// VMs to come that found no room.
    pub left_out: Vec<VmKey>,
    /// In Pareto mode.
    pub front: Option<Trade>,
}

/// A VM and where it goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moved {
    pub vm: VmKey,
    /// `None` for a VM that had no host.
    pub from: Option<Name>,
    pub to: Name,
    /// By how much the objective falls with it, after those before it in the list.
    pub gain: i64,
}

/// How far the search got before it had to answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rung {
    /// The answer is the best there is, or there is none.
    Exact,
    /// A search made it better than where it started.
    Search,
    /// Each VM where it cost least, or where it was.
    Greedy,
    /// There was no time for any of them.
    Nothing,
}

impl Rung {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Search => "search",
            Self::Greedy => "greedy",
            Self::Nothing => "nothing",
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum OptimiseError {
    #[error("{0}")]
    Fleet(#[from] FleetError),
    #[error("{0}")]
    Problem(#[from] cluster::assignment::ProblemError),
    #[error("no assignment meets all demands: {}", list(.0))]
    Conflict(Vec<Cause>),
    #[error("at least {least} VMs have to move, {most} are allowed")]
    TooManyMoves { least: usize, most: usize },
    #[error("the verifier refused the answer: {0}")]
    Refused(String),
}

fn list(causes: &[Cause]) -> String {
    causes.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// Searches, at most, each knowing what could not be bound in the one before.
const ROUNDS: u32 = 8;
/// Steps for naming what cannot be met together.
const CONFLICT_STEPS: u64 = 100_000;

/// Answers `ask` for the snapshot within the budget; better answers on the way go to `board`.
///
/// VMs to come that find no room beside those that run and those before them, the largest first,
/// are left out and named: one that fits nowhere is in nobody's way.
pub fn optimise(
    snapshot: &Snapshot,
    ask: &Ask,
    budget: &mut Budget,
    board: &Board,
) -> Result<Answer, OptimiseError> {
    let mut question = Question::of(snapshot, ask, &ask.arrivals)?;
    let mut begun = begin(&question.model, budget);
    let mut left_out = Vec::new();
    if !begun.left.is_empty() && !budget.is_over() {
        let keys: HashSet<&VmKey> =
            begun.left.iter().map(|&vm| &question.fleet.vms[vm as usize]).collect();
        left_out = keys.iter().map(|key| (*key).clone()).collect();
        left_out.sort();
        let others = ask.arrivals.iter().filter(|vm| !keys.contains(&vm.key));
        let others: Vec<Arc<Vm>> = others.map(Arc::clone).collect();
        question = Question::of(snapshot, ask, &others)?;
        begun.hosts.retain(|&host| host != NOWHERE);
        begun.holds = State::new(&question.model, &begun.hosts).is_feasible();
    }
    let judge = question.objective.judge(&question.fleet.problem)?;
    let Question { fleet, objective, model, arrivals } = &question;
    let run = Run { snapshot, ask, arrivals, fleet, objective, judge: &judge, model };
    let start = (begun.holds && fleet.bindings(&begun.hosts).is_some()).then_some(begun.hosts);
    let answer = run.answer(start, budget, board)?;
    Ok(Answer { left_out, ..answer })
}

/// The problem of some arrivals, with goals.
struct Question {
    arrivals: Vec<Arc<Vm>>,
    fleet: Fleet,
    objective: Objective,
    model: Model,
}

impl Question {
    fn of(snapshot: &Snapshot, ask: &Ask, arrivals: &[Arc<Vm>]) -> Result<Self, OptimiseError> {
        let mut fleet = match ask.scope {
            Scope::Pending => arrivals_only(snapshot, arrivals)?,
            _ => {
                let leaves_alone = ask.scope.leaves_alone(snapshot);
                from_fleet(FleetAsk {
                    snapshot,
                    arrivals,
                    stays: &|placed| placed.held || leaves_alone(placed),
                    may_stay: true,
                })?
            }
        };
        // Nobody is asked about: nothing is worth anything.
        let wishes = if fleet.vms.is_empty() { &[][..] } else { &ask.wishes };
        let objective = add_goals(&mut fleet, snapshot, arrivals, wishes, &ask.setting)?;
        let model = Model::compile(&fleet.problem)?;
        Ok(Self { arrivals: arrivals.to_vec(), fleet, objective, model })
    }
}

/// A question with everything that was made of it.
pub(crate) struct Run<'a> {
    pub(crate) snapshot: &'a Snapshot,
    pub(crate) ask: &'a Ask,
    /// Those that may find room.
    pub(crate) arrivals: &'a [Arc<Vm>],
    pub(crate) fleet: &'a Fleet,
    pub(crate) objective: &'a Objective,
    pub(crate) judge: &'a Judge<'a>,
    pub(crate) model: &'a Model,
}

impl Run<'_> {
    fn answer(
        &self,
        start: Option<Vec<u32>>,
        budget: &mut Budget,
        board: &Board,
    ) -> Result<Answer, OptimiseError> {
        let task = Task::new(&self.fleet.problem, self.model, self.ask.seed).on(board);
        let start = start.or_else(|| self.by_greed(task, budget));
        let task = Task { start: start.as_deref(), ..task };
        if let Some(start) = &start {
            task.tell(State::new(self.model, start).objective(), start);
        }
        if let Some(points) = self.ask.points {
            let trade = front(self, task, points, budget)?;
            let best = trade.points.get(trade.knee).cloned();
            let outcome = trade.outcome.clone();
            return self.told(outcome, start.as_deref(), best, Some(trade));
        }
        let outcome = match (budget.is_over(), &start) {
            (true, Some(start)) => self.at_start(start, budget),
            _ => self.never_worse(self.searched(task, budget), start.as_deref(), budget),
        };
        if outcome.is_infeasible() {
            let causes = self.fleet.conflict(&mut Budget::steps(CONFLICT_STEPS));
            let causes = causes.map(|(causes, _)| causes).unwrap_or_default();
            return Err(OptimiseError::Conflict(causes));
        }
        self.told(outcome, start.as_deref(), None, None)
    }

    /// What the engine finds; where VMs ask for parts of hosts, what can be bound.
    pub(crate) fn searched(&self, task: Task<'_>, budget: &mut Budget) -> Outcome {
        let engine = self.ask.method.engine(self.ask.threads.max(1), self.ask.timed);
        if !self.fleet.has_parts() {
            return engine.solve(task, budget);
        }
        let (start, seed) = (task.start, task.seed);
        let mut fleet = self.fleet.clone();
        fleet.problem = task.problem.clone();
        fleet.solve(Search { engine: engine.as_ref(), start, seed, rounds: ROUNDS }, budget).outcome
    }

    /// Where what runs now is not allowed: every VM where it costs least.
    fn by_greed(&self, task: Task<'_>, budget: &Budget) -> Option<Vec<u32>> {
        let hosts = Start::Greedy.assignment(task, budget).ok()?;
        self.fleet.bindings(&hosts).map(|_| hosts)
    }

    fn at_start(&self, start: &[u32], budget: &Budget) -> Outcome {
        Outcome {
            engine: "greedy".to_string(),
            assignment: Some(start.to_vec()),
            objective: Some(State::new(self.model, start).objective()),
            bound: self.model.bound(),
            stop_reason: budget.reason(),
            steps: 0,
        }
    }

    /// An engine that found less than what there was to start with gives way to it.
    fn never_worse(&self, outcome: Outcome, start: Option<&[u32]>, budget: &Budget) -> Outcome {
        let Some(start) = start else { return outcome };
        let at_start = self.at_start(start, budget);
        match outcome.objective {
            Some(found) if Some(found) <= at_start.objective => outcome,
            _ => Outcome { bound: outcome.bound, stop_reason: outcome.stop_reason, ..at_start },
        }
    }

    fn told(
        &self,
        mut outcome: Outcome,
        start: Option<&[u32]>,
        point: Option<FrontPoint>,
        front: Option<Trade>,
    ) -> Result<Answer, OptimiseError> {
        if let Some(point) = point {
            outcome.assignment = Some(point.hosts);
        }
        if let Some(hosts) = &mut outcome.assignment {
            self.within_moves(hosts, start)?;
            self.worth_their_price(hosts, start);
            outcome.objective = Some(self.verified(hosts)?);
        }
        let start_objective = start.map(|start| State::new(self.model, start).objective());
        let rung = match (outcome.objective, outcome.stop_reason) {
            (_, StopReason::Optimal) => Rung::Exact,
            (None, _) => Rung::Nothing,
            (found, _) if start_objective.is_none() || found < start_objective => Rung::Search,
            _ => Rung::Greedy,
        };
        let hosts = outcome.assignment.as_deref();
        let values = |hosts: &[u32]| self.judge.values(hosts);
        Ok(Answer {
            rung,
            gap: outcome.gap(),
            moved: hosts.map(|hosts| self.moved(hosts)).unwrap_or_default(),
            before: self.model.initial_assignment().map(|hosts| values(&hosts)).unwrap_or_default(),
            after: hosts.map(values).unwrap_or_default(),
            engine: outcome.engine,
            objective: outcome.objective,
            bound: outcome.bound,
            stop_reason: outcome.stop_reason,
            steps: outcome.steps,
            start: start_objective,
            left_out: Vec::new(),
            front,
        })
    }

    /// Takes back the moves that do not pay, and more if there may not be so many. Where VMs are in
    /// each other's way home, only the best moves are made instead, from `start` on.
    pub(crate) fn within_moves(
        &self,
        hosts: &mut [u32],
        start: Option<&[u32]>,
    ) -> Result<(), OptimiseError> {
        let most = self.ask.max_moves.unwrap_or(usize::MAX);
        let mut state = State::new(self.model, hosts);
        let mut least = undo(&mut state, most);
        if let (true, Some(start)) = (least > most, start) {
            state = State::new(self.model, start);
            if moved(&state).len() <= most {
                approach(&mut state, hosts, most);
                least = moved(&state).len();
            }
        }
        match self.fleet.bindings(state.assignment()) {
            Some(_) => hosts.copy_from_slice(state.assignment()),
            // Where somebody went back to there may be no parts left.
            None => least = moved(&State::new(self.model, hosts)).len(),
        }
        if least > most {
            return Err(OptimiseError::TooManyMoves { least, most });
        }
        Ok(())
    }

    /// Takes back moves that gain less than they cost; all of them, if together they do.
    fn worth_their_price(&self, hosts: &mut [u32], start: Option<&[u32]>) {
        let prices = self.ask.prices;
        let Some(start) = start.filter(|_| !prices.are_zero()) else { return };
        let before = State::new(self.model, start).objective();
        let sizes: HashMap<&VmKey, (u64, bool)> = self
            .snapshot
            .placed
            .iter()
            .map(|it| {
                let live = it.vm.migratability == Migratability::Live;
                (&it.vm.key, (it.vm.demand.get(Dim::MEMORY_MIB), live))
            })
            .collect();
        let price = |vm: u32| {
            let size = self.fleet.vms.get(vm as usize).and_then(|key| sizes.get(key));
            size.map_or(0, |&(memory_mib, live)| prices.of_move(memory_mib, live, before))
        };
        let mut state = State::new(self.model, hosts);
        settle(&mut state, &price);
        let cost = moved(&state).into_iter().fold(0i64, |sum, vm| sum.saturating_add(price(vm)));
        let gain = before.saturating_sub(state.objective());
        let found = if gain < cost { start } else { state.assignment() };
        if self.fleet.bindings(found).is_some() {
            hosts.copy_from_slice(found);
        }
    }

    /// The worth of an assignment, which the verifier has worked out for itself and accepts.
    pub(crate) fn verified(&self, hosts: &[u32]) -> Result<i64, OptimiseError> {
        let rows: Vec<HostIx> = hosts.iter().copied().map(HostIx).collect();
        let worth = verify::assignment(&self.fleet.problem, &rows).map_err(|faults| {
            let first = faults.first().map(ToString::to_string).unwrap_or_default();
            OptimiseError::Refused(first)
        })?;
        let found = State::new(self.model, hosts).objective();
        if worth.objective() != found {
            let detail = format!("it says {}, the search {found}", worth.objective());
            return Err(OptimiseError::Refused(detail));
        }
        Ok(found)
    }

    /// Who goes where, of those that are not there already, and what each step gains.
    pub(crate) fn moved(&self, hosts: &[u32]) -> Vec<Moved> {
        let mut state = self.model.initial_assignment().map(|start| State::new(self.model, &start));
        let rows = (0u32..).zip(self.fleet.vms.iter().zip(&self.fleet.problem.vms)).zip(hosts);
        let moved = rows.filter_map(|((row, (key, vm)), &host)| {
            let to = HostIx(host);
            if vm.initial == Some(to) {
                return None;
            }
            let gain = state.as_mut().map_or(0, |state| {
                let before = state.objective();
                state.shift(row, host);
                before.saturating_sub(state.objective())
            });
            Some(Moved {
                vm: key.clone(),
                from: vm.initial.and_then(|from| host_name(self.snapshot, from)).cloned(),
                to: host_name(self.snapshot, to)?.clone(),
                gain,
            })
        });
        moved.collect()
    }
}
