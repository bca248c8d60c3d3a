//! `novaplace solve consolidation`: a running fleet on fewer hosts, with little moved.

use super::{summary, verified};
use crate::output::print;
use anyhow::Context;
use clap::Args;
use formats::consolidation;
use serde_json::json;
use solver::assignment::{Budget, Model};
use solver::engines::{Consolidation as Engine, Engine as _, Task};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

#[derive(Debug, Args)]
pub(crate) struct Consolidation {
    /// Hosts, VMs and the host of each VM now, a JSON file; packed by gzip or not
    #[arg(long, value_name = "FILE")]
    instance: PathBuf,
    /// Where the hosts of the VMs go, a JSON array
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Proposals of moves at most; the same answer every time
    #[arg(long, value_name = "NUMBER", default_value_t = 100_000_000)]
    steps: u64,
    /// Threads to search on
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=64))]
    threads: u32,
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

impl Consolidation {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let started = Instant::now();
        let named = || self.instance.display().to_string();
        let bytes = std::fs::read(&self.instance).with_context(named)?;
        let problem = consolidation::read(&bytes).with_context(named)?;
        let model = Model::compile(&problem).with_context(named)?;
        let initial = model.initial_assignment().unwrap_or_default();
        let engine = Engine { threads: self.threads, ..Engine::default() };
        let task = Task::new(&problem, &model, self.seed).from(&initial);
        let outcome = engine.solve(task, &mut Budget::steps(self.steps));
        let hosts = outcome.assignment.as_deref().unwrap_or(&initial);
        verified(&problem, hosts, &outcome)?;
        if let Some(path) = &self.output {
            let named = || path.display().to_string();
            std::fs::write(path, consolidation::write_mapping(hosts)).with_context(named)?;
        }
        let active = |hosts: &[u32]| hosts.iter().collect::<BTreeSet<_>>().len();
        let moved = hosts.iter().zip(&initial).filter(|(now, before)| now != before).count();
        let mut answer = summary(&outcome, started);
        answer["active_hosts_before"] = json!(active(&initial));
        answer["active_hosts"] = json!(active(hosts));
        answer["moved"] = json!(moved);
        print(answer.to_string())?;
        Ok(ExitCode::SUCCESS)
    }
}
