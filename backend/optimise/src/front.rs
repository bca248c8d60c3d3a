//! Fronts of a fleet: what the goals can be traded against each other for.
//!
//! The weighted question is asked again and again with weights from an even grid, each search
//! beginning where the one before it ended; what none of the answers dominates is the front. So the
//! best point for any weights is about as good as an answer that was searched for those weights.
//!
//! NSGA-II breeds one population for all trade-offs first. With three or four goals nearly every
//! member is undominated after a while, and nothing draws them on; so the second half of its budget
//! goes to weighted questions that begin at its members.

use crate::Method;
use crate::run::{Moved, OptimiseError, Run};
use cluster::GoalKind;
use solver::assignment::{Budget, Model, Outcome, State};
use solver::engines::nsga2::{Kinds, hypervolume};
use solver::engines::{Nsga2, Task};
use solver::objective::{Value, Wish, add_goals};

/// Trade-offs of which none dominates another.
#[derive(Clone, Debug)]
pub struct Trade {
    /// By the first goal, best first.
    pub points: Vec<FrontPoint>,
    /// Share of the box between the best and the worst of each goal that they dominate.
    pub hypervolume: f64,
    /// The point from which every step gains less than it loses: the farthest from the plane
    /// through the ends of the front.
    pub knee: usize,
    /// The best point by the weights that were asked for, as an engine's answer.
    pub outcome: Outcome,
}

#[derive(Clone, Debug)]
pub struct FrontPoint {
    pub hosts: Vec<u32>,
    /// In the order of the wishes.
    pub values: Vec<Value>,
    /// The weights that it was found for, if it was searched for weights.
    pub weights: Vec<u32>,
    /// Who goes where.
    pub moved: Vec<Moved>,
}

/// Weights of a grid add up to this.
const WEIGHT: u32 = 1_000;

impl Trade {
    /// The point that is best for these weights, by normalised values.
    pub fn nearest(&self, weights: &[(GoalKind, u32)]) -> Option<usize> {
        best_for(&self.points, |kind| {
            weights.iter().find(|(known, _)| *known == kind).map_or(0, |(_, weight)| *weight)
        })
    }
}

/// Searches for a front of about `points` points.
pub(crate) fn front(
    run: &Run<'_>,
    task: Task<'_>,
    points: usize,
    budget: &mut Budget,
) -> Result<Trade, OptimiseError> {
    let goals = run.ask.wishes.len().max(1);
    let (how, found) = match run.ask.method {
        _ if run.fleet.vms.is_empty() => ("nobody to ask about".to_string(), Vec::new()),
        Method::Nsga2 => {
            let mut half = budget.one_of(2);
            let mut found = by_population(run, task, points, &mut half)?;
            budget.spend(half.used());
            let grid = grid(goals, (points / 2).max(goals));
            over_weights(run, task, Method::Lns, &grid, &mut found, budget)?;
            (format!("nsga2, then lns over {} weights", grid.len()), found)
        }
        method => {
            let (grid, mut found) = (grid(goals, points), Vec::new());
            over_weights(run, task, method, &grid, &mut found, budget)?;
            (format!("{} over {} weights", method.name(), grid.len()), found)
        }
    };
    let points = undominated(found);
    let of = |point: &FrontPoint| State::new(run.model, &point.hosts).objective();
    let best = points.iter().min_by_key(|point| of(point));
    let outcome = Outcome {
        engine: how,
        assignment: best.map(|point| point.hosts.clone()),
        objective: best.map(of),
        bound: run.model.bound(),
        stop_reason: budget.reason(),
        steps: budget.used(),
    };
    let shares = shares(&points);
    let sum = |row: usize| shares[row].iter().sum::<f64>();
    let knee = (0..points.len()).min_by(|&a, &b| sum(a).total_cmp(&sum(b)));
    let hypervolume = volume(&shares);
    Ok(Trade { points, hypervolume, knee: knee.unwrap_or(0), outcome })
}

/// A weighted question for each of many weights. Each search begins where its neighbour ended; where
/// there are points to begin with, at the one that is best for its weights.
fn over_weights(
    run: &Run<'_>,
    task: Task<'_>,
    method: Method,
    grid: &[Vec<u32>],
    found: &mut Vec<FrontPoint>,
    budget: &mut Budget,
) -> Result<(), OptimiseError> {
    let bred = !found.is_empty();
    for (row, weights) in grid.iter().enumerate() {
        if budget.is_over() {
            break;
        }
        let mut part = budget.one_of((grid.len() - row) as u64);
        let best = best_for(found, |kind| {
            let wish = run.ask.wishes.iter().position(|wish| wish.kind == kind);
            wish.map_or(0, |wish| weights[wish])
        });
        let best = if bred { best.map(|best| &found[best]) } else { found.last() };
        let start = best.map(|best| best.hosts.as_slice()).or(task.start);
        let outcome = weighted(run, method, weights, start, row as u64, &mut part)?;
        budget.spend(outcome.steps);
        let Some(hosts) = outcome.assignment else { continue };
        found.push(point(run, task, hosts, weights.clone())?);
    }
    Ok(())
}

/// The point with the least weighted sum of normalised values; of equals the first.
fn best_for(points: &[FrontPoint], weight: impl Fn(GoalKind) -> u32) -> Option<usize> {
    let sum = |point: &FrontPoint| -> f64 {
        point.values.iter().map(|value| f64::from(weight(value.kind)) * value.normalised).sum()
    };
    let sums: Vec<f64> = points.iter().map(sum).collect();
    (0..sums.len()).min_by(|&a, &b| sums[a].total_cmp(&sums[b]).then(a.cmp(&b)))
}

/// One population for all trade-offs.
fn by_population(
    run: &Run<'_>,
    task: Task<'_>,
    points: usize,
    budget: &mut Budget,
) -> Result<Vec<FrontPoint>, OptimiseError> {
    let engine = Nsga2 {
        threads: run.ask.threads.max(1),
        population: points.max(Nsga2::default().population),
        ..Nsga2::default()
    };
    let found = match run.ask.wishes.len() {
        2 => bred::<2>(run, engine, task, budget),
        3 => bred::<3>(run, engine, task, budget),
        _ => bred::<4>(run, engine, task, budget),
    };
    // Points whose parts cannot be bound are no answers.
    let bound = found.into_iter().filter(|hosts| run.fleet.bindings(hosts).is_some());
    bound.take(points).map(|hosts| point(run, task, hosts, Vec::new())).collect()
}

fn bred<const N: usize>(
    run: &Run<'_>,
    engine: Nsga2,
    task: Task<'_>,
    budget: &mut Budget,
) -> Vec<Vec<u32>> {
    let mut kinds: Kinds<N> = Kinds {
        of_goal: vec![None; run.fleet.problem.goals.len()],
        least: [0.0; N],
        span: [1.0; N],
    };
    for (at, wish) in run.ask.wishes.iter().enumerate().take(N) {
        if let Some((least, span)) = run.objective.span(wish.kind) {
            (kinds.least[at], kinds.span[at]) = (least, span.max(1.0));
        }
        for &row in run.objective.rows(wish.kind) {
            kinds.of_goal[row] = Some(at);
        }
    }
    let front = engine.front_of_goals(task, &kinds, budget);
    front.points.into_iter().map(|point| point.assignment).collect()
}

/// A placement as a point: without moves that do not pay, verified, and told to whoever watches.
fn point(
    run: &Run<'_>,
    task: Task<'_>,
    mut hosts: Vec<u32>,
    weights: Vec<u32>,
) -> Result<FrontPoint, OptimiseError> {
    let objective = run.within_moves(&mut hosts, task.start)?;
    run.verified(&hosts, objective)?;
    task.tell(objective, &hosts);
    let (values, moved) = (run.judge.values(&hosts), run.moved(&hosts));
    Ok(FrontPoint { hosts, values, weights, moved })
}

/// The answer for other weights of the same goals.
fn weighted(
    run: &Run<'_>,
    method: Method,
    weights: &[u32],
    start: Option<&[u32]>,
    row: u64,
    budget: &mut Budget,
) -> Result<Outcome, OptimiseError> {
    let mut fleet = run.fleet.clone();
    fleet.problem.goals.clear();
    let wishes = run.ask.wishes.iter().zip(weights);
    let wishes: Vec<Wish> = wishes.map(|(wish, &weight)| Wish { weight, ..*wish }).collect();
    let ask = run.ask;
    add_goals(&mut fleet, run.snapshot, run.arrivals, &wishes, &ask.setting)?;
    let model = Model::compile(&fleet.problem)?;
    let task = Task { start, ..Task::new(&fleet.problem, &model, ask.seed.wrapping_add(row)) };
    Ok(run.searched(method, task, budget))
}

/// Weights at equal distances that add up to the same: about as many as points are wanted, the
/// ends first and neighbours next to each other. None is zero, so that what costs a goal nothing
/// is not wasted.
fn grid(goals: usize, points: usize) -> Vec<Vec<u32>> {
    let mut parts = 1;
    while parts < 64 && count(goals, parts + 1) <= points.max(goals) {
        parts += 1;
    }
    let mut all = Vec::new();
    fill(goals, parts, &mut Vec::new(), &mut all);
    let weigh = |part: u32| (part * WEIGHT / parts).max(1);
    all.into_iter().map(|row| row.into_iter().map(weigh).collect()).collect()
}

/// Ways to share so many parts among goals.
fn count(goals: usize, parts: u32) -> usize {
    let choose = |n: usize, k: usize| (0..k).fold(1, |found, i| found * (n - i) / (i + 1));
    choose(goals + parts as usize - 1, goals - 1)
}

/// In the order of a snake, so that each differs little from the one before it.
fn fill(goals: usize, parts: u32, begun: &mut Vec<u32>, all: &mut Vec<Vec<u32>>) {
    if goals == 1 {
        all.push(begun.iter().copied().chain([parts]).collect());
        return;
    }
    let up = begun.iter().sum::<u32>() % 2 == 0;
    for step in 0..=parts {
        let part = if up { step } else { parts - step };
        begun.push(part);
        fill(goals - 1, parts - part, begun, all);
        begun.pop();
    }
}

/// Those that none of the others dominates, each once, by the first goal.
fn undominated(found: Vec<FrontPoint>) -> Vec<FrontPoint> {
    let values = |point: &FrontPoint| point.values.iter().map(|v| v.value).collect::<Vec<i64>>();
    let all: Vec<Vec<i64>> = found.iter().map(values).collect();
    let beaten = |row: usize| {
        all.iter().enumerate().any(|(other, values)| {
            let pairs = || values.iter().zip(&all[row]);
            other != row
                && pairs().all(|(theirs, mine)| theirs <= mine)
                && (pairs().any(|(theirs, mine)| theirs < mine) || other < row)
        })
    };
    let mut kept: Vec<FrontPoint> = found
        .into_iter()
        .enumerate()
        .filter(|(row, _)| !beaten(*row))
        .map(|(_, point)| point)
        .collect();
    kept.sort_by_key(values);
    kept
}

/// Values as shares of the way from the best to the worst of the front.
fn shares(points: &[FrontPoint]) -> Vec<Vec<f64>> {
    let goals = points.first().map_or(0, |point| point.values.len());
    let ends: Vec<(i64, i64)> = (0..goals)
        .map(|goal| {
            let values = points.iter().map(|point| point.values[goal].value);
            (values.clone().min().unwrap_or(0), values.max().unwrap_or(0))
        })
        .collect();
    let share = |(value, (least, most)): (&Value, &(i64, i64))| {
        (value.value - least) as f64 / ((most - least).max(1)) as f64
    };
    points.iter().map(|point| point.values.iter().zip(&ends).map(share).collect()).collect()
}

/// A little more than the worst, so that the ends of a front count as well.
const REFERENCE: f64 = 1.1;

/// Share of the box below the reference that points dominate.
fn volume(shares: &[Vec<f64>]) -> f64 {
    match shares.first().map_or(0, Vec::len) {
        2 => share_of_box::<2>(shares),
        3 => share_of_box::<3>(shares),
        4 => share_of_box::<4>(shares),
        _ => 0.0,
    }
}

fn share_of_box<const N: usize>(shares: &[Vec<f64>]) -> f64 {
    let points: Vec<[f64; N]> =
        shares.iter().map(|values| std::array::from_fn(|at| values[at])).collect();
    hypervolume(&points, [REFERENCE; N]) / REFERENCE.powi(N as i32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grid_has_the_ends_and_neighbours_differ_little() {
        let weights = grid(2, 11);
        assert_eq!(weights.len(), 11);
        assert_eq!(weights[0], [1, 1_000]);
        assert_eq!(weights[10], [1_000, 1]);
        let of_three = grid(3, 21);
        assert_eq!(of_three.len(), 21);
        for pair in of_three.windows(2) {
            let apart: u32 = pair[0].iter().zip(&pair[1]).map(|(a, b)| a.abs_diff(*b)).sum();
            assert!(apart <= 400, "{pair:?}");
        }
        assert_eq!(grid(1, 5), [[1_000]]);
    }
}
