//! `novaplace bench`: figures for this machine, the last line as JSON where asked.

mod forecast;

use benches::engines::{self, EnginesSpec};
use benches::http::{self, HttpSpec};
use benches::optimise::{self, OptimiseSpec};
use benches::policy;
use benches::recovery::{self, RecoverySpec};
use benches::reload::{self, ReloadSpec};
use benches::scale::{self, ScaleSpec};
use benches::topology::{self, TopologySpec};
use clap::{Args, Subcommand};
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Debug, Subcommand)]
pub(crate) enum Bench {
    /// Decisions per second and memory on a large, nearly full fleet
    Scale(Scale),
    /// The whole service under open-loop load, every answer durable
    Http(Http),
    /// Every engine on fleets of several sizes: how good, how fast
    Engines(Engines),
    /// A batch and a whole fleet optimised at scale, and how soon a search ends when told to
    Optimise(Optimise),
    /// One filter and score policy over all hosts, beside NovaCron's way of evaluating it
    Policy(Policy),
    /// The service under open-loop load while a policy file is replaced again and again
    Reload(Reload),
    /// Very many series: samples in, forecasts out, memory
    Forecast(forecast::Fleet),
    /// Exact likelihoods of ARIMA beside fits of other packages
    Arima(forecast::Arima),
    /// Time from a dead process to a verified state, with a long tail of commands to replay
    Recovery(Recovery),
}

#[derive(Debug, Args)]
pub(crate) struct Scale {
    #[arg(long, default_value_t = 10_000)]
    hosts: usize,
    #[arg(long, default_value_t = 100_000, default_value_if("topology", "true", "30000"))]
    vms: usize,
    /// How long to measure, after the fleet is made
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// VMs that ask for NUMA nodes, GPUs, PCIe bandwidth and NIC functions; --vms is 30,000 then
    #[arg(long)]
    topology: bool,
    /// Print one line of JSON and nothing else
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Http {
    #[arg(long, default_value_t = 10_000)]
    hosts: usize,
    #[arg(long, default_value_t = 100_000)]
    vms: usize,
    /// Requests a second, sent on a timetable whatever the answers do
    #[arg(long, default_value_t = 2_000)]
    rps: u32,
    /// How long to measure, after the fleet is loaded
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// An empty directory on the disk to measure; a temporary one if left out
    #[arg(long)]
    data_dir: Option<PathBuf>,
    /// Print one line of JSON and nothing else
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Engines {
    /// Time for each engine on each fleet
    #[arg(long, default_value_t = 1_000, value_name = "MS")]
    budget_ms: u64,
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Print one line of JSON and nothing else
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Optimise {
    #[arg(long, default_value_t = 10_000)]
    hosts: usize,
    #[arg(long, default_value_t = 100_000)]
    vms: usize,
    /// VMs to come
    #[arg(long, default_value_t = 1_000)]
    batch: usize,
    /// Time for the batch
    #[arg(long, default_value_t = 900, value_name = "MS")]
    batch_ms: u64,
    /// Time for the whole fleet
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Print one line of JSON and nothing else
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Policy {
    #[arg(long, default_value_t = 10_000)]
    hosts: usize,
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Print one line of JSON and nothing else
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Reload {
    #[arg(long, default_value_t = 10_000)]
    hosts: usize,
    #[arg(long, default_value_t = 100_000)]
    vms: usize,
    /// Requests a second, sent on a timetable whatever the answers do
    #[arg(long, default_value_t = 2_000)]
    rps: u32,
    /// How long to measure, after the fleet is loaded
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// Time between two versions of the policy file
    #[arg(long, default_value_t = 500, value_name = "MS")]
    every_ms: u64,
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// An empty directory on the disk to measure; a temporary one if left out
    #[arg(long)]
    data_dir: Option<PathBuf>,
    /// Print one line of JSON and nothing else
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Recovery {
    #[arg(long, default_value_t = 10_000)]
    hosts: usize,
    #[arg(long, default_value_t = 200_000)]
    vms: usize,
    /// Commands after the snapshot
    #[arg(long, default_value_t = 1_000_000)]
    tail: u64,
    #[arg(long, default_value_t = 5)]
    restarts: usize,
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// An empty directory to build the log in; it is left behind
    #[arg(long)]
    data_dir: PathBuf,
    /// Print one line of JSON and nothing else
    #[arg(long)]
    json: bool,
}

impl Bench {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        match self {
            Bench::Scale(scale) => scale.run(),
            Bench::Http(http) => http.run(),
            Bench::Engines(engines) => engines.run(),
            Bench::Optimise(optimise) => optimise.run(),
            Bench::Policy(policy) => policy.run(),
            Bench::Reload(reload) => reload.run(),
            Bench::Forecast(fleet) => fleet.run(),
            Bench::Arima(arima) => arima.run(),
            Bench::Recovery(recovery) => recovery.run(),
        }
    }
}

impl Engines {
    #[expect(clippy::print_stdout, reason = "the report is what was asked for")]
    fn run(self) -> anyhow::Result<ExitCode> {
        let Engines { budget_ms, seed, json } = self;
        let report = engines::run(&EnginesSpec { budget_ms, seed })?;
        if !json {
            println!("engine      hosts    vms        ms   above best       gap");
            for row in &report.rows {
                let share = |share: Option<f64>| match share {
                    Some(share) => format!("{:.3} %", share * 100.0),
                    None => "-".to_string(),
                };
                println!(
                    "{:<10} {:>6} {:>6} {:>9.1} {:>12} {:>9}",
                    row.engine,
                    row.hosts,
                    row.vms,
                    row.ms,
                    share(row.above_best),
                    share(row.gap)
                );
            }
        }
        println!("{}", serde_json::to_string(&report)?);
        Ok(ExitCode::SUCCESS)
    }
}

impl Optimise {
    #[expect(clippy::print_stdout, reason = "the report is what was asked for")]
    fn run(self) -> anyhow::Result<ExitCode> {
        let Optimise { hosts, vms, batch, batch_ms, seconds, seed, json } = self;
        let report = optimise::run(&OptimiseSpec { hosts, vms, batch, batch_ms, seconds, seed })?;
        if !json {
            println!(
                "a batch of {}: {:.0} ms ({}); the fleet: {} better answers, first after {:.0} ms; \
                 stopped within {:.0} ms; {} MiB",
                report.batch,
                report.batch_ms,
                report.batch_rung,
                report.fleet_incumbents,
                report.fleet_first_ms,
                report.cancel_ms,
                report.rss_mib
            );
        }
        println!("{}", serde_json::to_string(&report)?);
        Ok(ExitCode::SUCCESS)
    }
}

impl Scale {
    #[expect(clippy::print_stdout, reason = "the report is what was asked for")]
    fn run(self) -> anyhow::Result<ExitCode> {
        let Scale { hosts, vms, seconds, seed, topology, json } = self;
        if topology {
            return run_topology(&TopologySpec { hosts, vms, seconds, seed }, json);
        }
        let report = scale::run(&ScaleSpec { hosts, vms, seconds, seed })?;
        if !json {
            println!(
                "{} hosts in {} racks and {} zones, {} VMs of {} shapes, {} {}.{} % full",
                report.hosts,
                report.racks,
                report.zones,
                report.vms,
                report.vm_shapes,
                report.fill_dimension,
                report.fill_permille / 10,
                report.fill_permille % 10,
            );
            for (rule, permille) in &report.mix_permille {
                println!("  {:>3}.{} % of requests: {rule}", permille / 10, permille % 10);
            }
            println!(
                "one decision: p50 {:.1} us, p99 {:.1} us ({} made, {} without room)",
                report.place_p50_us, report.place_p99_us, report.decisions, report.rejected
            );
            println!("batches of {}: {:.0} decisions/s", report.batch_size, report.batch_per_s);
            println!("resident memory: {} MiB", report.rss_mib);
        }
        println!("{}", serde_json::to_string(&report)?);
        Ok(ExitCode::SUCCESS)
    }
}

#[expect(clippy::print_stdout, reason = "the report is what was asked for")]
fn run_topology(spec: &TopologySpec, json: bool) -> anyhow::Result<ExitCode> {
    let report = topology::run(spec)?;
    if !json {
        println!(
            "{} hosts, {} VMs with parts, {} shapes: p50 {:.1} us, p99 {:.1} us ({} made, {} \
             without room); a shape that was never asked for: p50 {:.1} us, slowest {:.1} us",
            report.hosts,
            report.vms,
            report.shapes,
            report.place_topology_p50_us,
            report.place_topology_p99_us,
            report.decisions,
            report.rejected,
            report.unknown_shape_p50_us,
            report.unknown_shape_max_us,
        );
    }
    println!("{}", serde_json::to_string(&report)?);
    Ok(ExitCode::SUCCESS)
}

impl Http {
    #[expect(clippy::print_stdout, reason = "the report is what was asked for")]
    fn run(self) -> anyhow::Result<ExitCode> {
        let Http { hosts, vms, rps, seconds, seed, data_dir, json } = self;
        let scratch = tempfile::tempdir()?;
        let data_dir = data_dir.unwrap_or_else(|| scratch.path().to_owned());
        let program = std::env::current_exe()?;
        let spec = HttpSpec { hosts, vms, rps, seconds, seed, program, data_dir };
        let report = http::run(&spec).map_err(anyhow::Error::from_boxed)?;
        if !json {
            println!(
                "{:.0} of {rps} requests/s: p50 {:.2} ms, p99 {:.2} ms, commit p50 {:.2} ms; \
                 {} placed, {} without room, {} failed",
                report.achieved_rps,
                report.http_p50_ms,
                report.http_p99_ms,
                report.commit_p50_ms,
                report.placed,
                report.no_room,
                report.failed,
            );
        }
        println!("{}", serde_json::to_string(&report)?);
        Ok(ExitCode::SUCCESS)
    }
}

impl Policy {
    #[expect(clippy::print_stdout, reason = "the report is what was asked for")]
    fn run(self) -> anyhow::Result<ExitCode> {
        let Policy { hosts, seed, json } = self;
        let report = policy::run(hosts, seed)?;
        if !json {
            println!(
                "{hosts} hosts, {} left: p50 {:.3} ms, p99 {:.3} ms; NovaCron's way {:.1} ms, \
                 {:.0} times as long",
                report.feasible,
                report.evaluate_p50_ms,
                report.evaluate_p99_ms,
                report.upstream_ms,
                report.speedup_over_upstream,
            );
        }
        println!("{}", serde_json::to_string(&report)?);
        // Figures of two things that do not do the same are worth nothing.
        Ok(ExitCode::from(u8::from(!report.same_answer)))
    }
}

impl Reload {
    #[expect(clippy::print_stdout, reason = "the report is what was asked for")]
    fn run(self) -> anyhow::Result<ExitCode> {
        let Reload { hosts, vms, rps, seconds, every_ms, seed, data_dir, json } = self;
        let scratch = tempfile::tempdir()?;
        let data_dir = data_dir.unwrap_or_else(|| scratch.path().join("data"));
        let policies = scratch.path().join("policies");
        let program = std::env::current_exe()?;
        let load = HttpSpec { hosts, vms, rps, seconds, seed, program, data_dir };
        let report = reload::run(&ReloadSpec { load, policies, every_ms })
            .map_err(anyhow::Error::from_boxed)?;
        if !json {
            println!(
                "{} reloads at {:.0} of {rps} requests/s: {} dropped, {} failed; in force after \
                 p50 {:.0} ms, slowest {:.0} ms; requests p50 {:.2} ms, p99 {:.2} ms, and {:.2} \
                 and {:.2} ms without reloads",
                report.reloads,
                report.achieved_rps,
                report.dropped,
                report.failed,
                report.active_within_p50_ms,
                report.active_within_max_ms,
                report.http_p50_ms,
                report.http_p99_ms,
                report.undisturbed_p50_ms,
                report.undisturbed_p99_ms,
            );
        }
        println!("{}", serde_json::to_string(&report)?);
        Ok(ExitCode::SUCCESS)
    }
}

impl Recovery {
    #[expect(clippy::print_stdout, reason = "the report is what was asked for")]
    fn run(self) -> anyhow::Result<ExitCode> {
        let Recovery { hosts, vms, tail, restarts, seed, data_dir, json } = self;
        std::fs::create_dir_all(&data_dir)?;
        let spec = RecoverySpec { hosts, vms, tail, restarts, seed, data_dir };
        let report = recovery::run(&spec).map_err(anyhow::Error::from_boxed)?;
        if !json {
            println!(
                "{hosts} hosts, {vms} VMs, {tail} commands after the snapshot: p50 {:.2} s, \
                 slowest of {restarts} {:.2} s",
                report.recovery_p50_s, report.recovery_max_s
            );
        }
        println!("{}", serde_json::to_string(&report)?);
        Ok(ExitCode::SUCCESS)
    }
}
