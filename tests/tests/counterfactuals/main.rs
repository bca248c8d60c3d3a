//! "Why not?" is answered exactly: what is said to be in the way is what the verifier finds, and
//! the change that is said to help does help, while nothing smaller does.
//!
//! Changes are made here by hand, to a copy of the snapshot, and judged by the verifier, which
//! knows nothing of explanations.

mod installed;
mod policies;

use cluster::{
    AffinityKind, HostIx, HostState, Index, Name, Snapshot, Strength, Toleration, TolerationOp, Vm,
};
use fixture::Dice;
use fixture::small::{self, Size};
use solver::explain::{Change, Counterfactual, Obstacle, explain, explain_host};
use solver::{How, Problem, Scratch, feasible, place};
use std::collections::BTreeMap;
use std::sync::Arc;

const REFUSALS: usize = 1_000;
const SEED: u64 = 5;

pub(crate) fn never() -> bool {
    false
}

#[test]
fn on_a_thousand_refusals_the_change_helps_and_nothing_smaller_does() {
    let mut kinds: BTreeMap<&'static str, usize> = BTreeMap::new();
    let (mut refusals, mut on_hosts, mut number) = (0, 0, 0);
    while refusals < REFUSALS {
        number += 1;
        let mut dice = Dice::stream(SEED, number);
        let size = Size::random(&mut dice);
        let snapshot = small::cluster(&mut dice, size);
        let vm = small::vm(&mut dice, &snapshot.dimensions, "new");
        let mut problem = tables(&snapshot);
        let choice = place(&mut problem, &mut Scratch::default(), &vm, &How::default());
        if choice.host.is_some() || snapshot.hosts.is_empty() {
            continue;
        }
        refusals += 1;
        let told = explain(&mut problem, &vm, &never).expect("nobody said stop");
        let found = told.counterfactual.expect("every obstacle has a remedy");
        assert!(found.proved);
        let all: Vec<Name> = snapshot.hosts.iter().map(|host| host.id.clone()).collect();
        minimal(number, &snapshot, &vm, &found, &all);
        found.changes.iter().for_each(|change| *kinds.entry(kind(change)).or_default() += 1);
        let row = dice.row(snapshot.hosts.len());
        let told = explain_host(&mut problem, &vm, HostIx::new(row)).expect("a host");
        let found = told.counterfactual.expect("every obstacle has a remedy");
        assert_eq!(found.host, HostIx::new(row));
        minimal(number, &snapshot, &vm, &found, &all[row..=row]);
        found.changes.iter().for_each(|change| *kinds.entry(kind(change)).or_default() += 1);
        on_hosts += 1;
    }
    println!("seed {SEED}: {refusals} refusals, {on_hosts} single hosts, {number} clusters");
    println!("{kinds:?}");
    for kind in KINDS {
        assert!(kinds.contains_key(kind), "no refusal called for {kind}: {kinds:?}");
    }
}

#[test]
fn the_obstacles_are_what_the_verifier_finds_and_the_first_is_the_reason() {
    let mut obstacles_seen = 0;
    for number in 0..2_000 {
        let mut dice = Dice::stream(SEED + 1, number);
        let size = Size::random(&mut dice);
        let snapshot = small::cluster(&mut dice, size);
        let vm = small::vm(&mut dice, &snapshot.dimensions, "new");
        let mut problem = tables(&snapshot);
        let told = explain(&mut problem, &vm, &never).expect("nobody said stop");
        let choice = place(&mut problem, &mut Scratch::default(), &vm, &How::default());
        let first = told.reasons.iter().filter(|(_, hosts)| hosts.first > 0);
        let first: Vec<_> = first.map(|(reason, hosts)| (*reason, hosts.first)).collect();
        assert_eq!(first, choice.rejections.0.as_slice(), "seed {number}");
        assert_eq!(told.considered, choice.considered);
        assert_eq!(told.fits > 0, choice.host.is_some());
        let mut any = BTreeMap::new();
        for (row, host) in snapshot.hosts.iter().enumerate() {
            let told = explain_host(&mut problem, &vm, HostIx::new(row)).expect("a host");
            let said: Vec<_> = told.obstacles.iter().map(Obstacle::reason).collect();
            let found = verify::violations(&snapshot, &vm, &host.id);
            let mut derived: Vec<_> =
                found.iter().filter_map(|violation| violation.kind.reason()).collect();
            assert_eq!(said, derived, "seed {number}, host {}", host.id);
            let first = feasible(&mut problem, &vm, HostIx::new(row)).err();
            assert_eq!(first, said.first().copied(), "seed {number}, host {}", host.id);
            deficits(&told.obstacles, &found);
            obstacles_seen += said.len();
            derived.dedup();
            derived.into_iter().for_each(|reason| *any.entry(reason).or_default() += 1);
        }
        let told: BTreeMap<_, u32> =
            told.reasons.into_iter().map(|(reason, hosts)| (reason, hosts.any)).collect();
        assert_eq!(told, any, "seed {number}");
    }
    assert!(obstacles_seen > 10_000, "only {obstacles_seen} obstacles were met");
}

/// The numbers that are told are those that the verifier derives.
fn deficits(told: &[Obstacle], found: &[verify::Violation]) {
    use verify::ViolationKind as K;
    for (obstacle, violation) in told.iter().zip(found) {
        match (obstacle, &violation.kind) {
            (
                Obstacle::Capacity { need, free, allocatable, .. },
                K::Capacity { asked, free: left, allocatable: all, .. },
            ) => assert_eq!((need, free, allocatable), (asked, left, all)),
            (
                Obstacle::Spread { domain, members, fewest, .. },
                K::Spread { domain: at, members: had, fewest: least, .. },
            ) => assert_eq!((domain, members, fewest), (at, had, least)),
            (
                Obstacle::AntiAffinity { domain, members, .. },
                K::AntiAffinity { domain: at, members: had, .. },
            ) => assert_eq!((domain, members), (at, had)),
            _ => {}
        }
    }
    // Repellers of several levels come in no particular order.
    let mut told: Vec<_> = told
        .iter()
        .filter_map(|it| match it {
            Obstacle::Repelled { subject, level, domain, by } => Some((subject, level, domain, by)),
            _ => None,
        })
        .collect();
    let mut found: Vec<_> = found
        .iter()
        .filter_map(|it| match &it.kind {
            K::Repelled { subject, level, domain, by } => Some((subject, level, domain, by)),
            _ => None,
        })
        .collect();
    told.sort();
    found.sort();
    assert_eq!(told, found);
}

/// Brute force: the set does, no proper subset does, and neither does one with a smaller number.
pub(crate) fn minimal(
    number: u64,
    snapshot: &Snapshot,
    vm: &Vm,
    found: &Counterfactual,
    hosts: &[Name],
) {
    let changes = &found.changes;
    let host = &snapshot.hosts[found.host.row()].id;
    let does = |set: &[Change], hosts: &[Name]| {
        let (snapshot, vm) = made(snapshot, vm, set);
        hosts.iter().any(|host| verify::violations(&snapshot, &vm, host).is_empty())
    };
    assert!(does(changes, std::slice::from_ref(host)), "seed {number}: {changes:?} does not help");
    assert!(changes.len() < 16, "too many to try all subsets");
    for kept in 0..(1_u32 << changes.len()) - 1 {
        let kept = (0..changes.len()).filter(|row| kept >> row & 1 == 1);
        let subset: Vec<Change> = kept.map(|row| changes[row].clone()).collect();
        assert!(!does(&subset, hosts), "seed {number}: {subset:?} of {changes:?} does too");
    }
    for (row, change) in changes.iter().enumerate() {
        let less = match change {
            Change::Demand { dim, from, to } => {
                assert!(to < from);
                Change::Demand { dim: *dim, from: *from, to: to + 1 }
            }
            Change::RaiseSkew { rule, to } => {
                assert!(*to > rule.max_skew);
                Change::RaiseSkew { rule: rule.clone(), to: to - 1 }
            }
            _ => continue,
        };
        let mut smaller = changes.clone();
        smaller[row] = less;
        assert!(!does(&smaller, hosts), "seed {number}: {smaller:?} does too");
    }
}

/// The changes made by hand, to the VM, to its neighbours and to hosts.
fn made(snapshot: &Snapshot, vm: &Vm, changes: &[Change]) -> (Snapshot, Vm) {
    let (mut snapshot, mut vm) = (snapshot.clone(), vm.clone());
    for change in changes {
        match change {
            Change::Demand { dim, to, .. } => vm.demand.set(*dim, *to),
            Change::AnyPool { .. } => vm.pool = None,
            Change::DropSelector(gone) => vm.selectors.retain(|it| it != gone),
            Change::Tolerate(taint) => vm.tolerations.push(Toleration {
                key: Some(taint.key.clone()),
                op: TolerationOp::Equal(taint.value.clone()),
                effect: Some(taint.effect),
            }),
            Change::DropDatastore(gone) => vm.datastores.retain(|it| it != gone),
            Change::AllowHost(host) => vm.excluded_hosts.retain(|it| it != host),
            Change::PreferAffinity(rule) => {
                for it in vm.affinities.iter_mut().filter(|it| *it == rule) {
                    it.strength = Strength::Preferred(1);
                }
            }
            Change::PreferSpread(rule) => {
                for it in vm.spreads.iter_mut().filter(|it| *it == rule) {
                    it.strength = Strength::Preferred(1);
                }
            }
            Change::RaiseSkew { rule, to } => {
                vm.spreads.iter_mut().filter(|it| *it == rule).for_each(|it| it.max_skew = *to);
            }
            Change::Reopen { host, .. } => {
                for it in snapshot.hosts.iter_mut().filter(|it| it.id == *host) {
                    Arc::make_mut(it).state = HostState::Available;
                }
            }
            Change::WaiveRepulsion { subject, level, domain, .. } => {
                let hosts = snapshot.hosts.clone();
                let within = |id: &Name| {
                    let host = hosts.iter().find(|host| host.id == *id).expect("a host");
                    host.domain(level) == Some(domain)
                };
                for placed in snapshot.placed.iter_mut().filter(|placed| within(&placed.host)) {
                    Arc::make_mut(&mut placed.vm).affinities.retain(|rule| {
                        rule.kind != AffinityKind::Apart
                            || rule.strength != Strength::Required
                            || (&rule.subject, &rule.level) != (subject, level)
                    });
                }
            }
            Change::WaivePolicy { .. } => panic!("no policy is in force"),
            Change::WaiveConstraint { name } => installed::without(&mut snapshot, name),
            Change::Relax(_) => change.apply(&mut vm),
        }
    }
    (snapshot, vm)
}

pub(crate) fn tables(snapshot: &Snapshot) -> Problem {
    let mut problem = Problem::new(snapshot.dimensions.len());
    let mut rows = BTreeMap::new();
    for (row, host) in snapshot.hosts.iter().enumerate() {
        problem.put_host(HostIx::new(row), host);
        rows.insert(&host.id, HostIx::new(row));
    }
    for placed in &snapshot.placed {
        problem.add_vm(rows[&placed.host], &placed.vm, &placed.committed);
    }
    problem
}

const KINDS: [&str; 11] = [
    "demand",
    "any_pool",
    "drop_selector",
    "tolerate",
    "drop_datastore",
    "allow_host",
    "prefer_affinity",
    "raise_skew",
    "prefer_spread",
    "waive_repulsion",
    "reopen",
];

fn kind(change: &Change) -> &'static str {
    match change {
        Change::Demand { .. } => "demand",
        Change::AnyPool { .. } => "any_pool",
        Change::DropSelector(_) => "drop_selector",
        Change::Tolerate(_) => "tolerate",
        Change::DropDatastore(_) => "drop_datastore",
        Change::AllowHost(_) => "allow_host",
        Change::PreferAffinity(_) => "prefer_affinity",
        Change::RaiseSkew { .. } => "raise_skew",
        Change::PreferSpread(_) => "prefer_spread",
        Change::WaiveRepulsion { .. } => "waive_repulsion",
        Change::WaivePolicy { .. } => "waive_policy",
        Change::WaiveConstraint { .. } => "waive_constraint",
        Change::Relax(_) => "relax_topology",
        Change::Reopen { .. } => "reopen",
    }
}
