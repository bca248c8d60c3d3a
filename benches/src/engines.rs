//! Every engine on fleets of several sizes, with the same goals and the same time: what it reached,
//! how far that is from the best of all of them, and how long it took.

use fixture::{Fleet, FleetSpec, MixSpec, Requests};
use optimise::{Ask, Method, Scope, optimise, timed};
use policy::Profile;
use serde::Serialize;
use solver::assignment::{Budget, Deadline};
use solver::engines::Board;
use solver::objective::Wish;
use std::sync::Arc;
use std::time::{Duration, Instant};

#[derive(Clone, Copy, Debug)]
pub struct EnginesSpec {
    pub budget_ms: u64,
    pub seed: u64,
}

#[derive(Clone, Debug, Serialize)]
pub struct EnginesReport {
    pub goals: &'static str,
    pub cores: usize,
    pub rows: Vec<Row>,
}

/// What one engine did on one fleet.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    pub engine: &'static str,
    pub hosts: u64,
    /// VMs that may go anywhere: those that are placed, and arrivals.
    pub vms: u64,
    pub budget_ms: u64,
    pub seed: u64,
    pub ms: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub objective: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub above_best: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gap: Option<f64>,
}

#[derive(Debug, thiserror::Error)]
pub enum EnginesError {
    #[error("engine {engine} on {hosts} hosts: {error}")]
    Engine { engine: &'static str, hosts: usize, error: String },
}

/// Hosts, VMs on them, and VMs to come.
const FLEETS: [(usize, usize, usize); 3] = [(10, 40, 10), (100, 800, 50), (1_000, 8_000, 200)];

pub fn run(spec: &EnginesSpec) -> Result<EnginesReport, EnginesError> {
    let mut rows = Vec::new();
    for size in FLEETS {
        let mut of_fleet = Vec::new();
        for method in Method::ALL {
            of_fleet.push(measured(spec, method, size)?);
        }
        let best = of_fleet.iter().filter_map(|row| row.objective).min();
        for row in &mut of_fleet {
            row.above_best = row
                .objective
                .zip(best)
                .map(|(objective, best)| (objective - best) as f64 / (best as f64).abs().max(1.0));
        }
        rows.extend(of_fleet);
    }
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    Ok(EnginesReport { goals: "profile balanced, scope cluster", cores, rows })
}

fn measured(
    spec: &EnginesSpec,
    method: Method,
    (hosts, vms, to_come): (usize, usize, usize),
) -> Result<Row, EnginesError> {
    let fleet = Fleet::generate(&FleetSpec::new(hosts, vms, spec.seed));
    let mix = MixSpec { infeasible: 0, ..MixSpec::default() };
    let arrivals = Requests::new(&fleet, &mix, spec.seed).take(to_come).map(Arc::new);
    let wishes = Profile::Balanced.goals().into_iter();
    let ask = Ask {
        scope: Scope::Cluster,
        arrivals: arrivals.collect(),
        wishes: wishes.map(|(kind, weight)| Wish { kind, weight }).collect(),
        method,
        seed: spec.seed,
        threads: 2,
        timed: true,
        ..Ask::default()
    };
    let snapshot = fleet.snapshot();
    let deadline = Arc::new(Deadline::default());
    let mut budget = Budget::until(Arc::clone(&deadline));
    let (started, board) = (Instant::now(), Board::default());
    let longest = Duration::from_millis(spec.budget_ms);
    let answer = timed(
        &deadline,
        (started, longest),
        |_| (),
        || optimise(&snapshot, &ask, &mut budget, &board),
    );
    let failed = |error: String| EnginesError::Engine { engine: method.name(), hosts, error };
    let answer = answer.map_err(|_| failed("it panicked".into()))?;
    let answer = answer.map_err(|error| failed(error.to_string()))?;
    Ok(Row {
        engine: method.name(),
        hosts: hosts as u64,
        vms: (vms + to_come) as u64,
        budget_ms: spec.budget_ms,
        seed: spec.seed,
        ms: started.elapsed().as_secs_f64() * 1e3,
        objective: answer.objective,
        above_best: None,
        gap: answer.gap,
    })
}
