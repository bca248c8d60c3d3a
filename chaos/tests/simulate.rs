//! Fault cycles by the thousand: nothing lost, nothing doubled, nothing oversubscribed.

use chaos::{Rare, Report, Spec, Storage, simulate};

fn check(spec: &Spec, unreachable: &[Rare]) -> Report {
    let report = simulate(spec);
    println!("{report}");
    assert!(report.violations.is_empty(), "{}", report.violations[0]);
    assert_eq!(report.cycles, spec.seeds * spec.cycles_per_seed);
    let missed = report.sometimes.missed().filter(|rare| !unreachable.contains(rare));
    let missed: Vec<&str> = missed.map(Rare::name).collect();
    assert!(missed.is_empty(), "never reached: {missed:?}");
    report
}

#[test]
fn twenty_thousand_fault_cycles_lose_double_and_oversubscribe_nothing() {
    let spec = Spec { seeds: 2_000, cycles_per_seed: 10, ..Spec::default() };
    check(&spec, &[]);
}

#[test]
fn the_log_of_the_service_keeps_the_same_promises_on_the_simulated_disk() {
    let spec = Spec { seeds: 30, storage: Storage::Embedded, ..Spec::default() };
    check(&spec, &Rare::ALL.to_vec());
}
