//! `novaplace solve placement`: the best hosts for the VMs of an instance file.

use super::{front, summary, verified, within};
use crate::output::{Usage, print};
use anyhow::Context;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use formats::placement;
use optimise::Method;
use solver::assignment::{Budget, Model};
use solver::engines::{Engine, Genetic, Nsga2, Start, Swarm, Task, conflict};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

#[derive(Debug, Args)]
pub(crate) struct Placement {
    /// The instance, a JSON file
    #[arg(long, value_name = "FILE")]
    instance: PathBuf,
    /// How to search
    #[arg(long, default_value = "auto", value_parser = methods())]
    engine: Method,
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
    /// What to start from; each engine has a way of its own without it
    #[arg(long, value_enum)]
    start: Option<From>,
    /// Placements that are kept at once, for genetic, nsga2 and swarm
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(2..=10_000))]
    population: Option<u32>,
    /// Generations of nsga2; without it, until the time is over
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..))]
    generations: Option<u64>,
    /// Where nsga2's trade-offs of power, spread and moves go, a JSON array
    #[arg(long, value_name = "FILE")]
    front: Option<PathBuf>,
    /// Where the hosts of the VMs go, a JSON array
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum From {
    /// Where the VMs are now
    Current,
    /// Anywhere, by the seed
    Random,
    Greedy,
}

impl From {
    fn start(self) -> Start {
        match self {
            Self::Current => Start::Current,
            Self::Random => Start::Random,
            Self::Greedy => Start::Greedy,
        }
    }
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
        self.check()?;
        let named = || self.instance.display().to_string();
        let text = std::fs::read(&self.instance).with_context(named)?;
        let problem = placement::read(&text).with_context(named)?;
        let model = Model::compile(&problem).with_context(named)?;
        let task = Task::new(&problem, &model, self.seed);
        let start = self.start.map(|from| {
            from.start().assignment(task, &Budget::steps(u64::MAX)).with_context(named)
        });
        let start = start.transpose()?;
        let task = Task { start: start.as_deref(), ..task };
        if let Some(path) = &self.front {
            let found = self.limited(started, seconds, |budget| self.nsga2().front(task, budget));
            return front::tell(task, found, path, self.output.as_deref(), started);
        }
        let engine = self.engine(self.steps.is_none());
        let outcome = self.limited(started, seconds, |budget| engine.solve(task, budget));
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

    /// Options that go together.
    fn check(&self) -> Result<(), Usage> {
        let engine = self.engine;
        let refuse = |option: &str, engines: &str| {
            Err(Usage(format!("{option} is for --engine {engines}, not for {}", engine.name())))
        };
        let of_many = [Method::Genetic, Method::Nsga2, Method::Swarm].contains(&engine);
        if self.population.is_some() && !of_many {
            return refuse("--population", "genetic, nsga2 and swarm");
        }
        if self.generations.is_some() && engine != Method::Nsga2 {
            return refuse("--generations", "nsga2");
        }
        if self.front.is_some() && engine != Method::Nsga2 {
            return refuse("--front", "nsga2");
        }
        if self.start.is_some() && engine == Method::Greedy {
            return refuse("--start", "any other engine");
        }
        Ok(())
    }

    /// Runs a search for as long as it is allowed to.
    fn limited<T: Send>(
        &self,
        started: Instant,
        seconds: f64,
        search: impl FnOnce(&mut Budget) -> T + Send,
    ) -> T {
        if let Some(steps) = self.steps {
            return search(&mut Budget::steps(steps));
        }
        let seconds = match (self.generations, self.seconds) {
            (Some(_), None) => f64::INFINITY,
            _ => (seconds - RESERVE_SECONDS).max(seconds / 2.0),
        };
        within(started, seconds, search)
    }

    fn nsga2(&self) -> Nsga2 {
        let usual = Nsga2::default();
        Nsga2 {
            threads: self.threads,
            population: self.population.map_or(usual.population, |size| size as usize),
            generations: self.generations,
            ..usual
        }
    }

    fn engine(&self, timed: bool) -> Box<dyn Engine + Send + Sync> {
        let population = self.population.map(|size| size as usize);
        match (self.engine, population) {
            (Method::Nsga2, _) => Box::new(self.nsga2()),
            (Method::Genetic, Some(population)) => {
                Box::new(Genetic { population, ..Genetic::default() })
            }
            (Method::Swarm, Some(particles)) => Box::new(Swarm { particles, ..Swarm::default() }),
            (method, _) => method.engine(self.threads, timed),
        }
    }
}

/// Engines by name.
pub(crate) fn methods() -> impl TypedValueParser<Value = Method> {
    PossibleValuesParser::new(Method::ALL.map(Method::name))
        .map(|name| Method::named(&name).unwrap_or_default())
}
