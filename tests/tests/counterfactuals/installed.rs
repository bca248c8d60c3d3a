//! The same with constraints installed, and for VMs that ask for parts of hosts.

use crate::{made, never, tables};
use cluster::{
    Amounts, ConstraintRule, Dim, Foreign, HostIx, HostState, Index, Name, Reason, Snapshot, Vm,
};
use fixture::small::{self, Size};
use fixture::{Dice, hardware};
use solver::Problem;
use solver::explain::{Change, Counterfactual, Obstacle, explain, explain_host};
use std::collections::BTreeMap;
use std::sync::Arc;

const SEED: u64 = 77;
const REFUSALS: usize = 300;

#[test]
fn installed_constraints_are_named_and_waiving_the_least_of_them_helps() {
    let (mut refusals, mut number) = (0, 0);
    let mut by_reason: BTreeMap<Reason, usize> = BTreeMap::new();
    while refusals < REFUSALS {
        number += 1;
        let mut dice = Dice::stream(SEED, number);
        let size = Size::random(&mut dice);
        let mut snapshot = small::cluster(&mut dice, size);
        snapshot.constraints = small::constraints(&mut dice);
        let vm = small::vm(&mut dice, &snapshot.dimensions, "new");
        let mut problem = tables(&snapshot);
        install(&mut problem, &snapshot);
        compare(number, &snapshot, &vm, &mut problem, &mut by_reason);
        let told = explain(&mut problem, &vm, &never).expect("nobody said stop");
        if told.fits > 0 || snapshot.hosts.is_empty() {
            continue;
        }
        refusals += 1;
        let found = told.counterfactual.expect("every obstacle has a remedy");
        minimal(number, &snapshot, &vm, &found);
    }
    println!("seed {SEED}: {refusals} refusals, {number} clusters, {by_reason:?}");
    let reasons = [
        Reason::Fence,
        Reason::MinDomains,
        Reason::Limit,
        Reason::Exclusive,
        Reason::Dependency,
        Reason::Network,
        Reason::Spare,
    ];
    for reason in reasons {
        assert!(by_reason.contains_key(&reason), "{reason:?} was never met: {by_reason:?}");
    }
}

#[test]
fn parts_that_are_missing_are_named_and_doing_without_the_least_of_them_helps() {
    let (mut refusals, mut number) = (0, 0);
    let mut by_reason: BTreeMap<Reason, usize> = BTreeMap::new();
    while refusals < REFUSALS {
        number += 1;
        let mut dice = Dice::stream(SEED + 1, number);
        let size = Size { hosts: 1 + dice.row(4), vms: 0 };
        let mut snapshot = small::cluster(&mut dice, size);
        for host in &mut snapshot.hosts {
            let host = Arc::make_mut(host);
            *host.hardware = hardware::tiny(&mut dice);
            host.capacity = Amounts::from_slice(&[1_000_000; Dim::BUILT_IN]);
            host.state = HostState::Available;
            (host.reserved, host.foreign) = (Amounts::zero(), Foreign::default());
        }
        let mut vm = small::vm(&mut dice, &snapshot.dimensions, "new");
        let (topology, demand) = hardware::tiny_request(&mut dice);
        (vm.topology, vm.demand) = (Some(Box::new(topology)), demand);
        let mut problem = tables(&snapshot);
        compare(number, &snapshot, &vm, &mut problem, &mut by_reason);
        let told = explain(&mut problem, &vm, &never).expect("nobody said stop");
        if told.fits > 0 {
            continue;
        }
        refusals += 1;
        let found = told.counterfactual.expect("every obstacle has a remedy");
        minimal(number, &snapshot, &vm, &found);
    }
    println!("seed {}: {refusals} refusals, {number} clusters, {by_reason:?}", SEED + 1);
    assert!(by_reason.contains_key(&Reason::Numa) && by_reason.contains_key(&Reason::Gpus));
}

#[test]
fn a_vm_that_is_cut_and_does_without_parts_is_cut_no_more_than_it_must_be() {
    let (mut cut, mut both, mut number) = (0, 0, 0);
    while cut < REFUSALS {
        number += 1;
        let mut dice = Dice::stream(SEED + 2, number);
        let size = Size { hosts: 1 + dice.row(4), vms: 0 };
        let mut snapshot = small::cluster(&mut dice, size);
        for host in &mut snapshot.hosts {
            let host = Arc::make_mut(host);
            *host.hardware = hardware::tiny(&mut dice);
            // A little less than VMs ask for, in one dimension or two.
            let cpu = *dice.pick(&[1, 2, 3, 700, 1_400, 9_000]);
            host.capacity = Amounts::cpu_memory(cpu, dice.between(1, 4));
            host.state = HostState::Available;
            host.overcommit_permille = Amounts::zero();
            (host.reserved, host.foreign) = (Amounts::zero(), Foreign::default());
        }
        let mut vm = small::vm(&mut dice, &snapshot.dimensions, "new");
        let (topology, demand) = hardware::tiny_request(&mut dice);
        (vm.topology, vm.demand) = (Some(Box::new(topology)), demand);
        let mut problem = tables(&snapshot);
        let told = explain(&mut problem, &vm, &never).expect("nobody said stop");
        let Some(found) = told.counterfactual else { continue };
        let is_cut = |it: &Change| matches!(it, Change::Demand { .. });
        if !found.changes.iter().any(is_cut) {
            continue;
        }
        cut += 1;
        both += usize::from(found.changes.iter().any(|it| matches!(it, Change::Relax(_))));
        assert!(found.proved, "seed {number}");
        let all: Vec<Name> = snapshot.hosts.iter().map(|host| host.id.clone()).collect();
        crate::minimal(number, &snapshot, &vm, &found, &all);
        let row = dice.row(snapshot.hosts.len());
        let told = explain_host(&mut problem, &vm, HostIx::new(row)).expect("a host");
        let found = told.counterfactual.expect("every obstacle has a remedy");
        assert!(found.proved, "seed {number}");
        crate::minimal(number, &snapshot, &vm, &found, &all[row..=row]);
    }
    println!("seed {}: {cut} cut, {both} without parts too, {number} clusters", SEED + 2);
    assert!(both > 50, "only {both} were cut and did without parts");
}

/// Reasons are those of the verifier, host by host.
fn compare(
    number: u64,
    snapshot: &Snapshot,
    vm: &Vm,
    problem: &mut Problem,
    by_reason: &mut BTreeMap<Reason, usize>,
) {
    for (row, host) in snapshot.hosts.iter().enumerate() {
        let told = explain_host(problem, vm, HostIx::new(row)).expect("a host");
        let mut said: Vec<Reason> = told.obstacles.iter().map(Obstacle::reason).collect();
        said.dedup();
        let found = verify::violations(snapshot, vm, &host.id);
        let mut derived: Vec<Reason> = found.iter().filter_map(|it| it.kind.reason()).collect();
        derived.dedup();
        assert_eq!(said, derived, "seed {number}, host {}", host.id);
        said.into_iter().for_each(|reason| *by_reason.entry(reason).or_default() += 1);
    }
}

/// The changes do, checked by the verifier, and no proper subset does, on any host.
fn minimal(number: u64, snapshot: &Snapshot, vm: &Vm, found: &Counterfactual) {
    let all: Vec<Name> = snapshot.hosts.iter().map(|host| host.id.clone()).collect();
    let changes = &found.changes;
    let does = |set: &[Change], hosts: &[Name]| {
        let (snapshot, vm) = made(snapshot, vm, set);
        hosts.iter().any(|host| verify::violations(&snapshot, &vm, host).is_empty())
    };
    let host = &all[found.host.row()..=found.host.row()];
    assert!(does(changes, host), "seed {number}: {changes:?} does not help");
    if !found.proved {
        return;
    }
    for kept in 0..(1_u32 << changes.len()) - 1 {
        let kept = (0..changes.len()).filter(|row| kept >> row & 1 == 1);
        let subset: Vec<Change> = kept.map(|row| changes[row].clone()).collect();
        assert!(!does(&subset, &all), "seed {number}: {subset:?} of {changes:?} does too");
    }
}

fn install(problem: &mut Problem, snapshot: &Snapshot) {
    let rows: BTreeMap<&Name, HostIx> =
        snapshot.hosts.iter().enumerate().map(|(row, it)| (&it.id, HostIx::new(row))).collect();
    let vms = snapshot.placed.iter().map(|placed| (rows[&placed.host], placed.vm.as_ref()));
    problem.set_constraints(&snapshot.constraints, vms);
}

/// The snapshot without a constraint, or without a fabric and all that is said over it.
pub(crate) fn without(snapshot: &mut Snapshot, name: &Name) {
    snapshot.constraints.retain(|constraint| {
        let over = match &constraint.rule {
            ConstraintRule::Network(network) => &network.over,
            _ => &constraint.name,
        };
        constraint.name != *name && over != name
    });
}
