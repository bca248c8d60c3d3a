//! Fault cycles by the thousand: nothing lost, nothing doubled, nothing oversubscribed.
#![allow(clippy::print_stdout, reason = "the report is the point")]

use chaos::{Rare, Spec, Storage, simulate};

/// Runs `spec`, prints what happened, and fails on any violation or state that was never reached.
fn check(spec: &Spec, may_be_missed: &[Rare]) {
    let report = simulate(spec);
    println!("{report}");
    assert!(report.violations.is_empty(), "{}", report.violations[0]);
    assert_eq!(report.cycles, spec.seeds * spec.cycles_per_seed);
    let missed = report.sometimes.missed().filter(|rare| !may_be_missed.contains(rare));
    let missed: Vec<&str> = missed.map(Rare::name).collect();
    assert!(missed.is_empty(), "never reached: {missed:?}");
}

#[test]
fn twenty_thousand_fault_cycles_lose_double_and_oversubscribe_nothing() {
    check(&Spec { seeds: 2_000, cycles_per_seed: 10, ..Spec::default() }, &[]);
}

#[test]
fn the_log_of_the_service_keeps_the_same_promises_on_the_simulated_disk() {
    let spec = Spec { seeds: 200, storage: Storage::Embedded, ..Spec::default() };
    // Few bits of a database file are a snapshot's; the tests of the log aim at them.
    check(&spec, &[Rare::SnapshotFellBack]);
}
