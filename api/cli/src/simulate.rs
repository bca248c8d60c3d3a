//! `novaplace simulate`: recorded demand goes by, and a policy answers it step by step.

mod planetlab;

use clap::Subcommand;
use std::process::ExitCode;

#[derive(Debug, Subcommand)]
pub(crate) enum Simulate {
    /// A day of PlanetLab VMs on CloudSim's hosts, kept on few of them
    /// (github.com/beloglazov/planetlab-workload-traces)
    Planetlab(planetlab::Planetlab),
}

impl Simulate {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        match self {
            Self::Planetlab(planetlab) => planetlab.run(),
        }
    }
}
