//! The `novaplace` binary: one program for operators, scripts and benches.

mod backup;
mod bench;
mod bulk;
mod capacity;
mod chaos;
mod client;
mod completion;
mod config;
mod constraint;
mod decision;
mod events;
mod forecast;
mod host;
mod import;
mod input;
mod list;
mod offline;
mod optimise;
mod output;
mod placement;
mod plan;
mod policy;
mod progress;
mod replay;
mod serve;
mod solve;
mod state;
mod verify;
mod vm;
mod weights;

use clap::{Parser, Subcommand};
use std::io;
use std::process::ExitCode;

/// The service allocates from many threads and frees on the writer's: mimalloc keeps resident
/// memory close to what is live.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const EXIT_CODES: &str = "Exit codes:
  0    done
  1    answered, and the answer is no: no room, does not fit, differs, violations, refused items,
       a policy with mistakes; or a plan with changes
  2    wrong usage
  70   serve only: the log failed; start again to recover from it
  255  an error: not reachable, not found, not readable, refused";

/// Places VMs on hosts for NovaCron: in microseconds, with a reason, and without losing any.
#[derive(Debug, Parser)]
#[command(name = "novaplace", version, after_help = EXIT_CODES)]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Run the service
    Serve(Box<serve::Settings>),
    /// Hosts: list, get, import, cordon, uncordon
    Host(host::Host),
    /// VMs: place, confirm, release, get, list, adopt, resize, why-not, explain
    Vm(Box<vm::Vm>),
    /// How much each part of a score counts
    Weights(weights::Weights),
    /// Policies: check, list, show, install, activate, tune, deactivate, rollback
    Policy(Box<policy::Policy>),
    /// Constraints: list, show, set, delete
    Constraint(constraint::Constraint),
    /// Better hosts for many VMs at once, by what matters
    Optimise(optimise::Optimise),
    /// Plans: create, list, show, diff, approve, apply, pause, resume, cancel, wait, rollback
    Plan(Box<plan::Plan>),
    /// Empty hosts: plan it, carry it out and wait
    Drain(plan::Drain),
    /// What all hosts have, what is promised and what is left
    Capacity(capacity::Capacity),
    /// Whether two services, or two moments, hold the same
    State(state::State),
    /// What happens in the cluster
    Events(events::Events),
    /// Bring in what another system knows
    Import(import::Import),
    /// What comes next in series of samples, with intervals
    Forecast(Box<forecast::Forecast>),
    /// Look at recorded decisions, or compute them again
    #[command(subcommand)]
    Decision(decision::Decision),
    /// Check decisions on a snapshot, without a service; exit code 1 if rules are violated
    Verify(verify::Verify),
    /// Write a stopped service's log to a file
    Backup(backup::Backup),
    /// Fill an empty data directory from a backup
    Restore(backup::Restore),
    /// What the service can be told
    #[command(subcommand)]
    Config(config::Config),
    /// Answer a file that asks for many hosts at once
    #[command(subcommand)]
    Solve(solve::Solve),
    /// Measure this machine
    #[command(subcommand)]
    Bench(bench::Bench),
    /// Place recorded arrivals of a public trace, and report how well and how fast
    #[command(subcommand)]
    Replay(replay::Replay),
    /// Break a simulated service on purpose
    #[command(subcommand)]
    Chaos(chaos::Chaos),
    /// Print a script that completes verbs and flags in a shell
    Completion(completion::Completion),
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().verb {
        Verb::Serve(settings) => serve::run(*settings),
        Verb::Host(host) => host.run(),
        Verb::Vm(vm) => vm.run(),
        Verb::Weights(weights) => weights.run(),
        Verb::Policy(policy) => policy.run(),
        Verb::Constraint(constraint) => constraint.run(),
        Verb::Optimise(optimise) => optimise.run(),
        Verb::Plan(plan) => plan.run(),
        Verb::Drain(drain) => drain.run(),
        Verb::Capacity(capacity) => capacity.run(),
        Verb::State(state) => state.run(),
        Verb::Events(events) => events.run(),
        Verb::Import(import) => import.run(),
        Verb::Forecast(forecast) => forecast.run(),
        Verb::Decision(decision) => decision.run(),
        Verb::Verify(verify) => verify.run(),
        Verb::Backup(backup) => backup.run(),
        Verb::Restore(restore) => restore.run(),
        Verb::Config(config) => config.run(),
        Verb::Replay(replay) => replay.run(),
        Verb::Solve(solve) => solve.run(),
        Verb::Chaos(chaos) => chaos.run(),
        Verb::Bench(bench) => bench.run(),
        Verb::Completion(completion) => completion.run(),
    };
    match outcome {
        Ok(code) => code,
        // Whoever read the output has seen enough.
        Err(error) if is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("novaplace: {error:#}");
            ExitCode::from(if error.is::<output::Usage>() { 2 } else { 255 })
        }
    }
}

fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}
