//! Runs the simulator from the command line and prints its report.
//!
//! `cargo run --release -p chaos --example simulate -- SEEDS [FIRST_SEED [CYCLES_PER_SEED]] [embedded]`
#![allow(clippy::print_stdout, reason = "a report on a terminal")]

use chaos::{Spec, Storage, simulate};

fn main() {
    let mut spec = Spec { seeds: 1_000, ..Spec::default() };
    let mut numbers = Vec::new();
    for argument in std::env::args().skip(1) {
        match argument.parse::<u64>() {
            Ok(number) => numbers.push(number),
            Err(_) if argument == "embedded" => spec.storage = Storage::Embedded,
            Err(_) => panic!("{argument} is neither a number nor `embedded`"),
        }
    }
    let mut numbers = numbers.into_iter();
    spec.seeds = numbers.next().unwrap_or(spec.seeds);
    spec.first_seed = numbers.next().unwrap_or(spec.first_seed);
    spec.cycles_per_seed = numbers.next().unwrap_or(spec.cycles_per_seed);
    let report = simulate(&spec);
    print!("{report}");
    std::process::exit(i32::from(!report.violations.is_empty()));
}
