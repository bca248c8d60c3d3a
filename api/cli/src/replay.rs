//! `novaplace replay`: recorded arrivals, placed one by one, with figures as one line of JSON.

mod gpu;
mod topology;

use clap::Subcommand;
use std::process::ExitCode;
use std::time::Duration;

#[derive(Debug, Subcommand)]
pub(crate) enum Replay {
    /// Pods that share GPUs, as in the public trace of 2023 (github.com/alibaba/clusterdata)
    Gpu(gpu::Gpu),
    /// VMs on servers with two NUMA nodes, in racks and groups
    Topology(topology::Topology),
}

impl Replay {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        match self {
            Replay::Gpu(gpu) => gpu.run(),
            Replay::Topology(topology) => topology.run(),
        }
    }
}

/// How long decisions took.
#[derive(Debug, Default)]
struct Pace {
    took: Vec<Duration>,
}

impl Pace {
    fn add(&mut self, took: Duration) {
        self.took.push(took);
    }

    /// Decisions a second, and the percentiles in microseconds.
    fn figures(mut self) -> serde_json::Value {
        self.took.sort_unstable();
        let total: Duration = self.took.iter().sum();
        let at = |permille: usize| {
            let row = (self.took.len() * permille / 1000).min(self.took.len().saturating_sub(1));
            self.took.get(row).map_or(0.0, |took| took.as_nanos() as f64 / 1000.0)
        };
        serde_json::json!({
            "decisions": self.took.len(),
            "decisions_per_second": (self.took.len() as f64 / total.as_secs_f64().max(1e-9)).round(),
            "p50_us": at(500),
            "p99_us": at(990),
            "max_us": at(1000),
            "seconds": total.as_secs_f64(),
        })
    }
}
