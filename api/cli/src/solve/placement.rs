//! `novaplace solve placement`: the best hosts for the VMs of an instance file.

use super::{summary, verified, within};
use crate::output::{Usage, print};
use anyhow::Context;
use clap::{Args, ValueEnum};
use formats::placement;
use ilp::{Auto, Ilp, Tuning};
use solver::assignment::{Budget, Model};
use solver::engines::{Annealing, Csp, Engine, Greedy, Lns, Task, conflict};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

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
    Lns,
}

/// Without a limit, so long.
const DEFAULT_SECONDS: f64 = 10.0;
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
            verified(&problem, hosts, &outcome)?;
            if let Some(path) = &self.output {
                let named = || path.display().to_string();
                std::fs::write(path, placement::write_assignment(hosts)).with_context(named)?;
            }
        }
        print(summary(&outcome, started).to_string())?;
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
            Kind::Lns => Box::new(Lns { threads, ..Lns::default() }),
        }
    }
}
