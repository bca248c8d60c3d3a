//! `novaplace solve`: answers a file that asks for many hosts at once.

mod consolidation;
mod front;
mod placement;
mod reassignment;

use clap::Subcommand;
use cluster::HostIx;
use cluster::assignment::Problem;
use optimise::timed;
use serde_json::json;
use solver::assignment::{Budget, Deadline, Outcome};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

#[derive(Debug, Subcommand)]
pub(crate) enum Solve {
    /// VMs of a few flavours on hosts with power curves
    Placement(placement::Placement),
    /// A fleet that runs, rebalanced: machine reassignment of the ROADEF/EURO challenge 2012
    Roadef(reassignment::Reassignment),
    /// A fleet that runs, put on fewer hosts with little memory moved, as the balcon instances ask
    Consolidation(consolidation::Consolidation),
}

impl Solve {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        match self {
            Self::Placement(placement) => placement.run(),
            Self::Roadef(reassignment) => reassignment.run(),
            Self::Consolidation(consolidation) => consolidation.run(),
        }
    }
}

/// Runs a search whose deadline is so many seconds after `started`.
fn within<T: Send>(
    started: Instant,
    seconds: f64,
    search: impl FnOnce(&mut Budget) -> T + Send,
) -> T {
    let deadline = Arc::new(Deadline::default());
    let mut budget = Budget::until(Arc::clone(&deadline));
    let longest = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
    let found = timed(&deadline, (started, longest), |_| (), || search(&mut budget));
    found.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// The verifier reads the file's problem for itself; nothing that it refuses leaves here.
fn verified(problem: &Problem, hosts: &[u32], outcome: &Outcome) -> anyhow::Result<()> {
    let rows: Vec<HostIx> = hosts.iter().copied().map(HostIx).collect();
    let worth = verify::assignment(problem, &rows).map_err(|faults| {
        let first = faults.first().map(ToString::to_string).unwrap_or_default();
        anyhow::anyhow!("the verifier refused the answer: {first}")
    })?;
    anyhow::ensure!(
        Some(worth.objective()) == outcome.objective,
        "the verifier says {}, the engine {:?}",
        worth.objective(),
        outcome.objective
    );
    Ok(())
}

/// What is printed of every answer.
fn summary(outcome: &Outcome, started: Instant) -> serde_json::Value {
    json!({
        "engine": outcome.engine,
        "objective": outcome.objective,
        "bound": outcome.bound,
        "gap": outcome.gap(),
        "stop_reason": outcome.stop_reason.as_str(),
        "seconds": started.elapsed().as_secs_f64(),
        "steps": outcome.steps,
    })
}
