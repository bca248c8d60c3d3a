//! `novaplace chaos run`: breaks a simulated service on purpose and counts what it loses.

use crate::progress::Progress;
use chaos::{Law, Report, Spec, Storage, Violation, simulate};
use clap::{Args, Subcommand, ValueEnum};
use std::process::ExitCode;

#[derive(Debug, Subcommand)]
pub(crate) enum Chaos {
    /// Run fault cycles in the simulator; exit code 1 if a promise was broken
    Run(Run),
}

#[derive(Debug, Args)]
pub(crate) struct Run {
    /// How long to go on
    #[arg(long, value_enum, default_value_t = Profile::Smoke)]
    profile: Profile,
    /// The first seed; each one is run twice and must come out the same
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Print one line of JSON and nothing else
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Profile {
    /// 2,000 fault cycles
    Smoke,
    /// 200,000 fault cycles
    Standard,
    /// 2,000,000 fault cycles
    Soak,
}

/// Seeds between two steps of the bar: some seconds of work, shared by all cores.
const SLICE: u64 = 200;

impl Profile {
    /// Seeds on the simulated log, and on the service's own log over the simulated disk.
    fn seeds(self) -> (u64, u64) {
        match self {
            Profile::Smoke => (180, 20),
            Profile::Standard => (19_000, 1_000),
            Profile::Soak => (195_000, 5_000),
        }
    }
}

impl Chaos {
    #[expect(clippy::print_stdout, reason = "the report is what was asked for")]
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let Chaos::Run(Run { profile, seed, json }) = self;
        let (simulated, embedded) = profile.seeds();
        let mut progress = Progress::new("seeds", simulated + embedded);
        let mut report = Report { first_seed: seed, ..Report::default() };
        for (seeds, storage) in [(simulated, Storage::Simulated), (embedded, Storage::Embedded)] {
            let mut done = 0;
            while done < seeds && report.violations.is_empty() {
                let (first_seed, some) = (seed.wrapping_add(done), SLICE.min(seeds - done));
                let slice = Spec { first_seed, seeds: some, storage, ..Spec::default() };
                let slice = simulate(&slice);
                report.add(&slice);
                report.elapsed += slice.elapsed;
                done += some;
                progress.add(some);
            }
        }
        drop(progress);
        if !json {
            print!("{report}");
        }
        println!("{}", summary(&report, seed));
        Ok(if report.violations.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(1) })
    }
}

fn summary(report: &Report, seed: u64) -> serde_json::Value {
    let lost = |violation: &&Violation| violation.finding.law == Law::Acknowledged;
    serde_json::json!({
        "seed": seed,
        "cycles": report.cycles,
        "faults_injected": report.faults.total_hit(),
        "acknowledged": report.acknowledged,
        "recoveries": report.recoveries,
        "lost_acks": report.violations.iter().filter(lost).count(),
        "violations": report.violations.len(),
        "skipped": 0,
        "seconds": report.elapsed.as_secs_f64(),
    })
}
