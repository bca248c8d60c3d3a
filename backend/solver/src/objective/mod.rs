//! What people wish of a fleet, as goals of its assignment problem: one kind a file.
//!
//! A kind says what it counts as goals in natural units. Each is then divided by its range, which is
//! what it could be worth at most less what it is worth at least, so that equal weights mean that
//! going from the best to the worst of one is as bad as of another; and it does not matter in which
//! unit prices or powers are told. Adding a kind is a file here with `goals`, a line in `of_kind`,
//! and an example in `tests/tests/objectives.rs`.

mod balance;
mod carbon;
mod cost;
mod energy;
mod facts;
mod latency;
mod migration;
mod performance;
mod reliability;
mod scale;
mod thermal;

pub use cluster::{GoalSetting as Setting, GoalSettingError as SettingError};

use crate::assignment::{Fleet, Model, State};
use cluster::assignment::{Goal, Problem, ProblemError};
use cluster::{GoalKind, Snapshot, Vm};
use facts::Facts;
use scale::Scale;
use std::sync::Arc;

/// How much a kind of goal matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wish {
    pub kind: GoalKind,
    /// At most `MAX_WEIGHT`; a kind of weight 0 is told and does not count.
    pub weight: u32,
}

pub const MAX_WEIGHT: u32 = 10_000;

/// What all goals together may be worth between best and worst, unless that makes one too large.
const TOTAL: u128 = 1 << 46;
/// No goal is worth more after scaling; rounding has room up to `MAX_GOAL`.
const MOST: u128 = 1 << 54;

/// What was asked for, and how to read what an assignment is worth.
#[derive(Clone, Debug)]
pub struct Objective {
    kinds: Vec<Kind>,
}

#[derive(Clone, Debug)]
struct Kind {
    wish: Wish,
    /// In natural units, parts of `per_unit` each.
    goals: Vec<Goal>,
    per_unit: u64,
    bound: i64,
    range: i64,
    /// Rows of the problem's goals, and what a part of a unit is worth there.
    rows: Vec<usize>,
    scale: f64,
}

/// What an assignment is worth by one kind of goal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Value {
    pub kind: GoalKind,
    /// In `kind.unit()`, rounded down.
    pub value: i64,
    /// No assignment has less.
    pub bound: i64,
    /// Where between the bound (0) and the worst case (1) it is.
    pub normalised: f64,
}

/// Goals of one kind in natural units: worth is in parts of `per_unit`.
struct Natural {
    goals: Vec<Goal>,
    per_unit: u64,
}

fn of_kind(kind: GoalKind, facts: &mut Facts<'_>) -> Natural {
    match kind {
        GoalKind::Energy => energy::goals(facts),
        GoalKind::Cost => cost::goals(facts),
        GoalKind::Latency => latency::goals(facts),
        GoalKind::Reliability => reliability::goals(facts),
        GoalKind::Performance => performance::goals(facts),
        GoalKind::Balance => balance::goals(facts),
        GoalKind::Thermal => thermal::goals(facts),
        GoalKind::Carbon => carbon::goals(facts),
        GoalKind::Migration => migration::goals(facts),
    }
}

/// Adds the goals to the fleet's problem, each scaled so that equal weights mean comparable
/// importance. The fleet is one of this snapshot and these arrivals.
pub fn add_goals(
    fleet: &mut Fleet,
    snapshot: &Snapshot,
    arrivals: &[Arc<Vm>],
    wishes: &[Wish],
    setting: &Setting,
) -> Result<Objective, ProblemError> {
    let mut facts = Facts::of(fleet, snapshot, arrivals, setting);
    let mut found: Vec<(Wish, Natural)> = Vec::new();
    for &wish in wishes {
        let wish = Wish { weight: wish.weight.min(MAX_WEIGHT), ..wish };
        match found.iter_mut().find(|(known, _)| known.kind == wish.kind) {
            Some((known, _)) => known.weight = wish.weight,
            None => found.push((wish, of_kind(wish.kind, &mut facts))),
        }
    }
    let mut kinds = Vec::new();
    for (wish, Natural { goals, per_unit }) in found {
        let judged = bare(&fleet.problem, goals);
        let model = Model::compile(&judged)?;
        let bound = model.bound();
        let worst: u128 = judged.goals.iter().map(|goal| judged.worst(goal)).sum();
        let range = (worst as i64).saturating_sub(bound).max(0);
        kinds.push(Kind {
            wish,
            goals: judged.goals,
            per_unit,
            bound,
            range,
            rows: Vec::new(),
            scale: 0.0,
        });
    }
    let objective = Objective { kinds };
    Ok(objective.weigh(&mut fleet.problem))
}

impl Objective {
    /// Adds goals that count to the problem.
    fn weigh(mut self, problem: &mut Problem) -> Self {
        let weights: u128 = self.kinds.iter().map(|kind| u128::from(kind.wish.weight)).sum();
        let counts = |kind: &&mut Kind| kind.wish.weight > 0 && kind.range > 0;
        let mut total = TOTAL;
        for kind in self.kinds.iter_mut().filter(counts) {
            let worst = kind.bound as u128 + kind.range as u128;
            let most = MOST * weights / u128::from(kind.wish.weight);
            total = total.min(most.saturating_mul(kind.range as u128) / worst.max(1));
        }
        for kind in self.kinds.iter_mut().filter(counts) {
            let scale = Scale {
                times: total * u128::from(kind.wish.weight),
                per: weights * kind.range as u128,
            };
            kind.scale = scale.times as f64 / scale.per as f64;
            for goal in &kind.goals {
                kind.rows.push(problem.goals.len());
                problem.goals.push(scale.goal(goal));
            }
        }
        self
    }

    /// The kinds that were asked for, with their weights.
    pub fn wishes(&self) -> impl Iterator<Item = Wish> + '_ {
        self.kinds.iter().map(|kind| kind.wish)
    }

    /// Rows of the problem's goals that belong to a kind; none if it does not count, or nothing can
    /// change it. `State::worths` and `State::shift_deltas` are by these rows.
    pub fn rows(&self, kind: GoalKind) -> &[usize] {
        let found = self.kinds.iter().find(|found| found.wish.kind == kind);
        found.map_or(&[], |kind| &kind.rows)
    }

    /// What the goals of a kind are worth at least, and from there to the worst, as the problem has
    /// them; nothing if it does not count.
    pub fn span(&self, kind: GoalKind) -> Option<(f64, f64)> {
        let found = self.kinds.iter().find(|found| found.wish.kind == kind)?;
        let scaled = |worth: i64| worth as f64 * found.scale;
        (!found.rows.is_empty()).then(|| (scaled(found.bound), scaled(found.range)))
    }

    /// What an assignment is worth, kind by kind.
    pub fn values(
        &self,
        problem: &Problem,
        assignment: &[u32],
    ) -> Result<Vec<Value>, ProblemError> {
        Ok(self.judge(problem)?.values(assignment))
    }

    /// For many assignments of one problem.
    pub fn judge(&self, problem: &Problem) -> Result<Judge<'_>, ProblemError> {
        let goals = self.kinds.iter().flat_map(|kind| kind.goals.iter().cloned()).collect();
        Ok(Judge { objective: self, model: Model::compile(&bare(problem, goals))? })
    }
}

/// Reads what assignments are worth in natural units.
#[derive(Clone, Debug)]
pub struct Judge<'o> {
    objective: &'o Objective,
    model: Model,
}

impl Judge<'_> {
    /// # Panics
    /// If the assignment is not one of the problem's.
    pub fn values(&self, assignment: &[u32]) -> Vec<Value> {
        let worths = State::new(&self.model, assignment).worths();
        let mut rows = worths.iter();
        let value = |kind: &Kind| {
            let worth: i64 = rows.by_ref().take(kind.goals.len()).sum();
            let above = (worth - kind.bound) as f64;
            Value {
                kind: kind.wish.kind,
                value: worth / kind.per_unit as i64,
                bound: kind.bound.div_euclid(kind.per_unit as i64),
                normalised: if kind.range > 0 { above / kind.range as f64 } else { 0.0 },
            }
        };
        self.objective.kinds.iter().map(value).collect()
    }
}

/// The problem with these goals, and without what only says which assignments are allowed.
fn bare(problem: &Problem, goals: Vec<Goal>) -> Problem {
    let mut vms = problem.vms.clone();
    vms.iter_mut().for_each(|vm| vm.allowed = None);
    Problem {
        resources: problem.resources.clone(),
        levels: problem.levels.clone(),
        hosts: problem.hosts.clone(),
        shapes: problem.shapes.clone(),
        vms,
        groups: problem.groups.clone(),
        rules: Vec::new(),
        goals,
        fabrics: Vec::new(),
        standing: problem.standing.clone(),
    }
}
