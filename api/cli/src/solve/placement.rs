//! `novaplace solve placement`: the best hosts for the VMs of an instance file.

use crate::output::{Usage, print};
use anyhow::Context;
use clap::{Args, ValueEnum};
use cluster::HostIx;
use formats::placement;
use ilp::{Auto, Ilp, Tuning};
use serde_json::json;
use solver::assignment::{Budget, Deadline, Model};
use solver::engines::{Annealing, Csp, Engine, Greedy, Task, conflict};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

#[derive(Debug, Args)]
pub(crate) struct Placement {
    /// The instance, a JSON file
    #[arg(long, value_name = "FILE")]
    instance: PathBuf,
    /// How to search
    #[arg(long, value_enum, default_value_t = Kind::Auto)]
    engine: Kind,
    /// Wall-clock time
    #[arg(long, value_name = "SECONDS", conflicts_with = "steps")]
    seconds: Option<f64>,
    /// Steps of the engine; the same answer every time
    #[arg(long, value_name = "NUMBER")]
    steps: Option<u64>,
    /// Threads to search on
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=64))]
    threads: u32,
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Where the hosts of the VMs go, a JSON array
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Kind {
    Auto,
    Csp,
    Ilp,
    Greedy,
    Annealing,
}

/// Without a limit, so long.
const DEFAULT_SECONDS: f64 = 10.0;
/// The clock is looked at so often: fine enough for cooling, and for nobody to wait.
const TICK: Duration = Duration::from_millis(2);
/// For reading, checking and writing, which are part of the time that the user waits.
const RESERVE_SECONDS: f64 = 0.1;

impl Placement {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let started = Instant::now();
        let seconds = self.seconds.unwrap_or(DEFAULT_SECONDS);
        if !seconds.is_finite() || seconds <= 0.0 {
            return Err(Usage(format!("--seconds is {seconds}, it has to be above 0")).into());
        }
        let named = || self.instance.display().to_string();
        let text = std::fs::read(&self.instance).with_context(named)?;
        let problem = placement::read(&text).with_context(named)?;
        let model = Model::compile(&problem).with_context(named)?;
        let task = Task { problem: &problem, model: &model, start: None, seed: self.seed };
        let timed = self.steps.is_none();
        let engine = self.engine(timed);
        let solve = |budget: &mut Budget| engine.solve(task, budget);
        let outcome = match self.steps {
            Some(steps) => solve(&mut Budget::steps(steps)),
            None => within(started, (seconds - RESERVE_SECONDS).max(seconds / 2.0), solve),
        };
        if outcome.is_infeasible() {
            let found = conflict(&problem, &mut Budget::steps(1_000_000));
            for requirement in found.iter().flat_map(|conflict| &conflict.requirements) {
                print(format!("cannot be met together: {requirement:?}"))?;
            }
        }
        if let Some(hosts) = &outcome.assignment {
            // The verifier reads the file's problem for itself; nothing else leaves here.
            let rows: Vec<HostIx> = hosts.iter().copied().map(HostIx).collect();
            let worth = verify::assignment(&problem, &rows).map_err(|faults| {
                let first = faults.first().map(ToString::to_string).unwrap_or_default();
                anyhow::anyhow!("the verifier refused the answer: {first}")
            })?;
            anyhow::ensure!(
                Some(worth.objective()) == outcome.objective,
                "the verifier says {}, the engine {:?}",
                worth.objective(),
                outcome.objective
            );
            if let Some(path) = &self.output {
                let named = || path.display().to_string();
                std::fs::write(path, placement::write_assignment(hosts)).with_context(named)?;
            }
        }
        let answer = json!({
            "engine": outcome.engine,
            "objective": outcome.objective,
            "bound": outcome.bound,
            "gap": outcome.gap(),
            "stop_reason": outcome.stop_reason.as_str(),
            "seconds": started.elapsed().as_secs_f64(),
            "steps": outcome.steps,
        });
        print(answer.to_string())?;
        Ok(if outcome.assignment.is_some() { ExitCode::SUCCESS } else { ExitCode::from(1) })
    }

    fn engine(&self, timed: bool) -> Box<dyn Engine> {
        let threads = self.threads;
        match self.engine {
            Kind::Auto => Box::new(Auto { threads, timed, tuning: Tuning::default() }),
            Kind::Csp => Box::new(Csp::default()),
            Kind::Ilp => Box::new(Ilp { threads }),
            Kind::Greedy => Box::new(Greedy),
            Kind::Annealing => Box::new(Annealing::default()),
        }
    }
}

/// Runs a search whose deadline is so many seconds after `started`.
fn within<T>(started: Instant, seconds: f64, search: impl FnOnce(&mut Budget) -> T) -> T {
    let deadline = Arc::new(Deadline::default());
    let told = Arc::clone(&deadline);
    let (done, ended) = channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            while ended.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
                told.tell(started.elapsed().as_secs_f64() / seconds);
            }
        });
        let found = search(&mut Budget::until(deadline));
        drop(done);
        found
    })
}
