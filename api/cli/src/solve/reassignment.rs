//! `novaplace solve roadef`: a running fleet, rebalanced.

use super::{summary, verified, within};
use crate::output::{Usage, print};
use anyhow::Context;
use clap::Args;
use formats::reassignment;
use serde_json::json;
use solver::assignment::{Budget, Model, State};
use solver::engines::{Engine, Rebalance, Task};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

#[derive(Debug, Args)]
pub(crate) struct Reassignment {
    /// Machines, services, processes and what everything costs; packed by gzip or not
    #[arg(long, value_name = "FILE")]
    model: PathBuf,
    /// The machine of each process now
    #[arg(long, value_name = "FILE")]
    initial: PathBuf,
    /// Where the machine of each process goes
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Wall-clock time, reading and writing included
    #[arg(long, value_name = "SECONDS", conflicts_with = "steps")]
    seconds: Option<f64>,
    /// Proposals of moves; the same answer every time
    #[arg(long, value_name = "NUMBER")]
    steps: Option<u64>,
    /// Threads to search on
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=64))]
    threads: u32,
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Without a limit, so long.
const DEFAULT_SECONDS: f64 = 60.0;
/// Of the time, for checking and writing.
const RESERVE_SECONDS: f64 = 0.5;

impl Reassignment {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let started = Instant::now();
        let seconds = self.seconds.unwrap_or(DEFAULT_SECONDS);
        if !seconds.is_finite() || seconds <= 0.0 {
            return Err(Usage(format!("--seconds is {seconds}, it has to be above 0")).into());
        }
        let read = |path: &PathBuf| {
            std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))
        };
        let files = || format!("{}, {}", self.model.display(), self.initial.display());
        let problem = reassignment::read(&read(&self.model)?, &read(&self.initial)?);
        let problem = problem.with_context(files)?;
        let model = Model::compile(&problem).with_context(files)?;
        let initial = model.initial_assignment().unwrap_or_default();
        let before = State::new(&model, &initial);
        anyhow::ensure!(
            before.is_feasible(),
            "{}: the processes break a rule or exceed a machine where they are",
            self.initial.display()
        );
        let engine = Rebalance { threads: self.threads, ..Rebalance::default() };
        let task = Task::new(&problem, &model, self.seed).from(&initial);
        let outcome = match self.steps {
            Some(steps) => engine.solve(task, &mut Budget::steps(steps)),
            None => within(started, (seconds - RESERVE_SECONDS).max(seconds / 2.0), |budget| {
                engine.solve(task, budget)
            }),
        };
        let hosts = outcome.assignment.as_deref().unwrap_or(&initial);
        verified(&problem, hosts, &outcome)?;
        if let Some(path) = &self.output {
            let named = || path.display().to_string();
            std::fs::write(path, reassignment::write_assignment(hosts)).with_context(named)?;
        }
        let moved = hosts.iter().zip(&initial).filter(|(now, before)| now != before).count();
        let mut answer = summary(&outcome, started);
        answer["initial"] = json!(before.objective());
        answer["moved"] = json!(moved);
        print(answer.to_string())?;
        Ok(ExitCode::SUCCESS)
    }
}
