//! `novaplace config`: what can be set, and where.

use clap::Subcommand;
use std::process::ExitCode;

#[derive(Debug, Subcommand)]
pub(crate) enum Config {
    /// List every setting of `serve` as JSON: flag, environment variable, key in the file
    Schema,
}

impl Config {
    #[expect(clippy::print_stdout, reason = "the schema is what was asked for")]
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        match self {
            Config::Schema => {
                let schema = crate::serve::schema();
                println!("{}", serde_json::to_string_pretty(&schema)?);
                Ok(ExitCode::SUCCESS)
            }
        }
    }
}
