//! Optimising at scale: a batch within its time, the whole fleet getting better and better, and how
//! soon a search ends when it is told to.

use crate::machine::rss_mib;
use cluster::{GoalKind, Snapshot};
use fixture::{Fleet, FleetSpec, MixSpec, Requests};
use optimise::{Answer, Ask, Method, OptimiseError, Scope, optimise, timed};
use serde::Serialize;
use solver::assignment::{Budget, Deadline};
use solver::engines::Board;
use solver::objective::Wish;
use std::sync::Arc;
use std::time::{Duration, Instant};

#[derive(Clone, Copy, Debug)]
pub struct OptimiseSpec {
    pub hosts: usize,
    pub vms: usize,
    pub batch: usize,
    pub batch_ms: u64,
    pub seconds: u64,
    pub seed: u64,
}

#[derive(Clone, Debug, Serialize)]
pub struct OptimiseReport {
    pub hosts: usize,
    pub vms: usize,
    pub batch: usize,
    pub seed: u64,
    /// From the snapshot to a verified answer.
    pub batch_ms: f64,
    pub batch_rung: &'static str,
    pub batch_gap: Option<f64>,
    /// How much better than each VM where it costs least, as a share.
    pub batch_gain: Option<f64>,
    /// Better answers for the whole fleet on the way, and whether each was better than those before.
    pub fleet_incumbents: usize,
    pub fleet_monotone: bool,
    pub fleet_first_ms: f64,
    pub fleet_ms: f64,
    pub fleet_gain: Option<f64>,
    pub fleet_gap: Option<f64>,
    pub fleet_moves: usize,
    /// From being told to stop until there is an answer.
    pub cancel_ms: f64,
    pub rss_mib: u64,
}

#[derive(Debug, thiserror::Error)]
pub enum OptimiseBenchError {
    #[error("{0}")]
    Optimise(#[from] OptimiseError),
    #[error("the search panicked")]
    Panicked,
}

const GOALS: [GoalKind; 4] =
    [GoalKind::Energy, GoalKind::Cost, GoalKind::Latency, GoalKind::Reliability];

/// What came of a search, and when each better answer was seen.
struct Watched {
    answer: Answer,
    took: Duration,
    incumbents: Vec<(Duration, i64)>,
    /// From the moment it was told to stop.
    ended: Option<Duration>,
}

pub fn run(spec: &OptimiseSpec) -> Result<OptimiseReport, OptimiseBenchError> {
    let fleet = Fleet::generate(&FleetSpec::new(spec.hosts, spec.vms, spec.seed));
    let mix = MixSpec { infeasible: 0, ..MixSpec::default() };
    let arrivals = Requests::new(&fleet, &mix, spec.seed).take(spec.batch).map(Arc::new).collect();
    let snapshot = fleet.snapshot();
    drop(fleet);
    let ask = |scope, arrivals| Ask {
        scope,
        arrivals,
        wishes: GOALS.map(|kind| Wish { kind, weight: 25 }).to_vec(),
        method: Method::Auto,
        seed: spec.seed,
        threads: 2,
        timed: true,
        ..Ask::default()
    };
    let pending = ask(Scope::Pending, arrivals);
    let batch = watched(&snapshot, &pending, Duration::from_millis(spec.batch_ms), None)?;
    let whole = ask(Scope::Cluster, Vec::new());
    let longest = Duration::from_secs(spec.seconds);
    let fleet = watched(&snapshot, &whole, longest, None)?;
    let stopped = watched(&snapshot, &whole, longest * 2, Some(longest / 2))?;
    let ms = |duration: Duration| duration.as_secs_f64() * 1e3;
    Ok(OptimiseReport {
        hosts: spec.hosts,
        vms: spec.vms,
        batch: spec.batch,
        seed: spec.seed,
        batch_ms: ms(batch.took),
        batch_rung: batch.answer.rung.as_str(),
        batch_gap: batch.answer.gap,
        batch_gain: gain(&batch),
        fleet_incumbents: fleet.incumbents.len(),
        fleet_monotone: fleet.incumbents.windows(2).all(|pair| pair[1].1 < pair[0].1),
        fleet_first_ms: fleet.incumbents.first().map_or(0.0, |(at, _)| ms(*at)),
        fleet_ms: ms(fleet.took),
        fleet_gain: gain(&fleet),
        fleet_gap: fleet.answer.gap,
        fleet_moves: fleet.answer.moved.len(),
        cancel_ms: stopped.ended.map_or(0.0, ms),
        rss_mib: rss_mib(),
    })
}

fn gain(watched: &Watched) -> Option<f64> {
    let (first, last) = (watched.incumbents.first()?.1, watched.answer.objective?);
    Some((first - last) as f64 / (first as f64).abs().max(1.0))
}

fn watched(
    snapshot: &Snapshot,
    ask: &Ask,
    longest: Duration,
    cancel_after: Option<Duration>,
) -> Result<Watched, OptimiseBenchError> {
    let deadline = Arc::new(Deadline::default());
    let mut budget = Budget::until(Arc::clone(&deadline));
    let (started, board) = (Instant::now(), Board::default());
    let (mut incumbents, mut seen, mut cancelled) = (Vec::new(), 0, None);
    let mut look = |_| {
        if let Some((objective, _)) = board.news(&mut seen) {
            incumbents.push((started.elapsed(), objective));
        }
        if cancelled.is_none() && cancel_after.is_some_and(|after| started.elapsed() >= after) {
            deadline.cancel();
            cancelled = Some(Instant::now());
        }
    };
    let answer = timed(&deadline, (started, longest), &mut look, || {
        optimise(snapshot, ask, &mut budget, &board)
    });
    let ended = Instant::now();
    look(1.0);
    let answer = answer.map_err(|_| OptimiseBenchError::Panicked)??;
    let ended_after = cancelled.map(|at| ended.saturating_duration_since(at));
    Ok(Watched { answer, took: ended - started, incumbents, ended: ended_after })
}
