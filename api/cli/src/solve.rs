//! `novaplace solve`: answers a file that asks for many hosts at once.

mod placement;

use clap::Subcommand;
use std::process::ExitCode;

#[derive(Debug, Subcommand)]
pub(crate) enum Solve {
    /// VMs of a few flavours on hosts with power curves
    Placement(placement::Placement),
}

impl Solve {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        match self {
            Self::Placement(placement) => placement.run(),
        }
    }
}
