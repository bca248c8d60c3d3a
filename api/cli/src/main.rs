//! The `novaplace` binary: one program for operators, scripts and benches.

mod bench;
mod config;
mod decision;
mod serve;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// The service allocates from many threads and frees on the writer's: mimalloc keeps resident
/// memory close to what is live.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Places VMs on hosts for NovaCron: in microseconds, with a reason, and without losing any.
#[derive(Debug, Parser)]
#[command(name = "novaplace", version)]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Run the service
    Serve(Box<serve::Settings>),
    /// What the service can be told
    #[command(subcommand)]
    Config(config::Config),
    /// Measure this machine
    #[command(subcommand)]
    Bench(bench::Bench),
    /// Look at recorded decisions, or compute them again
    #[command(subcommand)]
    Decision(decision::Decision),
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().verb {
        Verb::Serve(settings) => serve::run(*settings),
        Verb::Config(config) => config.run(),
        Verb::Bench(bench) => bench.run(),
        Verb::Decision(decision) => decision.run(),
    };
    match outcome {
        Ok(code) => code,
        Err(error) => {
            eprintln!("novaplace: {error:#}");
            ExitCode::from(255)
        }
    }
}
