//! `novaplace state`: whether two services, or two moments, hold the same.

use crate::client::{Ask, Connection};
use crate::output::{Format, print, print_json};
use clap::{Args, Subcommand};
use std::process::ExitCode;
use wire::StateHash;

#[derive(Debug, Args)]
pub(crate) struct State {
    #[command(flatten)]
    connection: Connection,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Print the state's revision and hash: equal hashes, equal states
    Hash {
        /// The state as it was at this revision [default: now]
        #[arg(long)]
        revision: Option<u64>,
    },
}

impl State {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let Verb::Hash { revision } = self.verb;
        let ask = Ask::get(&["v1", "state", "hash"]).query("revision", revision);
        let answer = self.connection.open().send(&ask)?;
        match self.connection.output {
            Format::Json => print_json(&answer.body)?,
            Format::Table => {
                let StateHash { revision, hash } = answer.read()?;
                print(format!("{hash}  revision {revision}"))?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}
