//! The same with policies in force, which read the demand, the pool and the load.

use crate::{never, tables};
use cluster::{Index, Name, Snapshot, Vm};
use fixture::Dice;
use fixture::small::{self, Size};
use policy::{ActiveSet, Configuration, Syntax};
use solver::Problem;
use solver::explain::{Change, Counterfactual, explain};
use std::collections::BTreeMap;
use std::sync::Arc;
use verify::Ledger;

const REFUSALS: usize = 150;
const SEED: u64 = 55;

/// Some of these are in force, each as a policy of its own. Those about the demand contradict
/// what capacity asks for.
const CONDITIONS: [(&str, &str); 6] = [
    ("small", "vm.demand.cpu_millis < 1000"),
    ("middling", "vm.demand.memory_mib > 1000 && vm.demand.memory_mib < 2000"),
    ("zone", "candidateNode.zone == \"z0\""),
    ("crowded", "candidateNode.vm_count > 2"),
    ("poolless", "vm.pool == \"p0\" && candidateNode.pool == \"p1\""),
    ("closed", "candidateNode.state == \"available\" && candidateNode.region == \"r0\""),
];

#[test]
fn with_policies_in_force_too_the_change_helps_and_nothing_smaller_does() {
    let (mut refusals, mut number, mut waived) = (0, 0, 0);
    while refusals < REFUSALS {
        number += 1;
        let mut dice = Dice::stream(SEED, number);
        let size = Size::random(&mut dice);
        let snapshot = small::cluster(&mut dice, size);
        let mut vm = small::vm(&mut dice, &snapshot.dimensions, "new");
        // Rules of other kinds are tried by themselves; fewer of them leave more to policies.
        vm.affinities.clear();
        vm.spreads.truncate(1);
        let active: Vec<&str> =
            CONDITIONS.iter().filter(|_| dice.chance(400)).map(|(id, _)| *id).collect();
        if snapshot.hosts.is_empty() {
            continue;
        }
        let mut problem = with_policies(&snapshot, &active);
        let told = explain(&mut problem, &vm, &never).expect("nobody said stop");
        if told.fits > 0 {
            continue;
        }
        refusals += 1;
        let found = told.counterfactual.expect("every obstacle has a remedy");
        assert!(found.proved, "seed {number}");
        minimal(number, &snapshot, &vm, &active, &found);
        waived +=
            found.changes.iter().filter(|it| matches!(it, Change::WaivePolicy { .. })).count();
    }
    println!("seed {SEED}: {refusals} refusals, {number} clusters, {waived} rules waived");
    assert!(waived > 10, "only {waived} rules of policies were ever waived");
}

fn minimal(number: u64, snapshot: &Snapshot, vm: &Vm, active: &[&str], found: &Counterfactual) {
    let all: Vec<Name> = snapshot.hosts.iter().map(|host| host.id.clone()).collect();
    let changes = &found.changes;
    let host = &all[found.host.row()];
    assert!(does(snapshot, vm, active, changes, std::slice::from_ref(host)), "seed {number}");
    for kept in 0..(1_u32 << changes.len()) - 1 {
        let kept = (0..changes.len()).filter(|row| kept >> row & 1 == 1);
        let subset: Vec<Change> = kept.map(|row| changes[row].clone()).collect();
        assert!(!does(snapshot, vm, active, &subset, &all), "seed {number}: {subset:?} does too");
    }
    for (row, change) in changes.iter().enumerate() {
        let Some(less) = change.one_less() else { continue };
        let mut smaller = changes.clone();
        smaller[row] = less;
        assert!(!does(snapshot, vm, active, &smaller, &all), "seed {number}: {smaller:?} does too");
    }
}

/// Makes the changes, and asks the verifier's ledger about every host.
fn does(snapshot: &Snapshot, vm: &Vm, active: &[&str], changes: &[Change], hosts: &[Name]) -> bool {
    let is_policy = |change: &&Change| matches!(change, Change::WaivePolicy { .. });
    let others: Vec<Change> = changes.iter().filter(|it| !is_policy(it)).cloned().collect();
    let waived = |id: &&&str| {
        changes.iter().any(|it| matches!(it, Change::WaivePolicy { policy, .. } if policy == **id))
    };
    let left: Vec<&str> = active.iter().filter(|id| !waived(id)).copied().collect();
    let set = set(&left);
    let (snapshot, vm) = crate::made(snapshot, vm, &others);
    let mut ledger = Ledger::new(snapshot.dimensions.len());
    let mut rows = BTreeMap::new();
    for (row, host) in snapshot.hosts.iter().enumerate() {
        ledger.put_host(cluster::HostIx::new(row), host);
        rows.insert(&host.id, cluster::HostIx::new(row));
    }
    for placed in &snapshot.placed {
        ledger.add_vm(rows[&placed.host], &placed.vm, &placed.committed).expect("room to note it");
    }
    hosts.iter().any(|id| {
        let ix = rows[id];
        let host = &snapshot.hosts[ix.row()];
        let policies = ledger.check_policies(&set, &snapshot.dimensions, &vm, ix, host);
        policies.is_none() && verify::violations(&snapshot, &vm, id).is_empty()
    })
}

fn with_policies(snapshot: &Snapshot, active: &[&str]) -> Problem {
    let mut problem = tables(snapshot);
    let hosts = snapshot.hosts.iter().enumerate();
    let hosts = hosts.map(|(row, host)| (cluster::HostIx::new(row), host.as_ref()));
    problem.set_policies(Arc::new(set(active)), &snapshot.dimensions, hosts);
    problem
}

fn set(active: &[&str]) -> ActiveSet {
    let programs = CONDITIONS.iter().filter(|(id, _)| active.contains(id)).map(|(id, when)| {
        let text = format!(
            "policy \"{id}\" {{ rules {{ rule \"r\" {{ when {{ {when} }} then {{ filter \"no\" }} }} }} }}"
        );
        let (program, _) = policy::load(&text, Syntax::Dsl).expect("a good policy");
        (Arc::new(program), Configuration::default())
    });
    ActiveSet::new(programs.collect()).expect("a few small policies")
}
