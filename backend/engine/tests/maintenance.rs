//! Hosts taken out batch by batch: every rule holds throughout, or what is in the way is named.

mod common;

use cluster::{
    Affinity, AffinityKind, Amounts, Constraint, ConstraintRule, Host, HostSet, HostState, Keep,
    Level, Migratability, Name, Snapshot, Spare, Strength, Subject, Vm, VmKey,
};
use common::{Bench, key, name, vm};
use engine::{Drafted, PlaceRequest, Planned, Request, Tables, Terms};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const HOSTS: usize = 1_000;
const BATCH: usize = 25;

fn quorum_member(group: usize, member: usize) -> Vm {
    let id = VmKey::in_default_tenant(name(&format!("q{group}-{member}")));
    let mut vm = Vm::new(id, Amounts::cpu_memory(2_000, 4_000));
    vm.groups.push(name(&format!("q{group}")));
    vm.affinities.push(Affinity {
        kind: AffinityKind::Apart,
        subject: Subject::Group(name(&format!("q{group}"))),
        level: Level::Rack,
        strength: Strength::Required,
    });
    vm
}

/// 50 racks of 20 hosts, 200 groups of 5 that keep to different racks, others between them, and
/// room for 10 hosts that must stay free.
fn fleet() -> Bench {
    let mut bench = Bench::with_hosts(&[]);
    for row in 0..HOSTS {
        let mut host = Host::new(name(&format!("h{row}")), Amounts::cpu_memory(16_000, 64_000));
        host.location.rack = Some(name(&format!("r{}", row / 20)));
        bench.put(host).expect("a new host");
    }
    let spare =
        Spare { hosts: HostSet::default(), each: None, keep: Keep::Hosts(10), except: None };
    let constraint =
        Box::new(Constraint { name: name("n-plus-10"), rule: ConstraintRule::Spare(spare) });
    bench.ask(Request::PutConstraint { constraint, if_generation: None }).expect("it can hold");
    let mut requests = Vec::new();
    for group in 0..200 {
        requests.extend((0..5).map(|member| PlaceRequest::new(quorum_member(group, member))));
    }
    for number in 0..3_000u64 {
        let mut vm = vm(&format!("v{number}"), 1_000 + number % 3 * 1_000);
        vm.demand = Amounts::cpu_memory(1_000 + number % 3 * 1_000, 4_000 + number % 5 * 1_000);
        requests.push(PlaceRequest::new(vm));
    }
    bench.ask(Request::PlaceBatch { requests, atomic: true }).expect("room for all");
    bench
}

fn tables(bench: &Bench) -> (Tables, Snapshot) {
    let core = bench.engine.core();
    let core = core.read();
    (Tables::new(core.rows()), core.state().snapshot())
}

#[test]
fn a_tenth_of_a_thousand_hosts_goes_out_and_every_rule_holds() {
    let bench = fleet();
    let (mut tables, snapshot) = tables(&bench);
    let out: Vec<Name> = (0..HOSTS).step_by(10).map(|row| name(&format!("h{row}"))).collect();
    let drafted = tables.draft_maintenance(&out, BATCH, &Terms::default()).expect("known hosts");
    assert!(drafted.draft.blocked.is_empty(), "{:?}", drafted.draft.blocked);
    let left: BTreeSet<&Name> =
        snapshot.placed.iter().map(|it| &it.host).filter(|host| out.contains(host)).collect();
    assert!(left.len() > 90, "there is something to do");
    let found = drafted.violations(snapshot.clone(), &Default::default());
    assert!(found.is_empty(), "at some instant: {found:?}");
    let again = tables.draft_maintenance(&out, BATCH, &Terms::default()).expect("known hosts");
    assert_eq!(again.draft, drafted.draft, "the tables are as they were, and so is the answer");
    for batch in out.chunks(BATCH) {
        let after = with_batch_out(&snapshot, &drafted, &out, batch);
        let standing = after.placed.iter().filter(|it| batch.contains(&it.host));
        assert_eq!(standing.count(), 0, "its hosts are empty");
        let report = verify::snapshot(&after);
        assert!(report.violations.is_empty() && report.drift.is_empty(), "{:?}", report.drift);
    }
}

/// The fleet when the waves up to and with this batch are done, and its hosts are out.
fn with_batch_out(
    snapshot: &Snapshot,
    drafted: &Drafted,
    out: &[Name],
    batch: &[Name],
) -> Snapshot {
    let turn = |host: &Name| out.iter().position(|it| it == host).expect("one of them") / BATCH;
    let now = turn(&batch[0]);
    let mut at: BTreeMap<&VmKey, &Planned> = BTreeMap::new();
    for planned in drafted.draft.waves.iter().flatten() {
        // A VM that was put aside leaves a host that stays.
        if !out.contains(&planned.from) || turn(&planned.from) <= now {
            at.insert(&planned.vm, planned);
        }
    }
    let mut after = snapshot.clone();
    for placed in &mut after.placed {
        if let Some(planned) = at.get(&placed.vm.key) {
            placed.host = planned.to.clone();
        }
    }
    for host in &mut after.hosts {
        if batch.contains(&host.id) {
            *host = Arc::new(Host { state: HostState::Maintenance, ..host.as_ref().clone() });
        }
    }
    after
}

#[test]
fn what_cannot_leave_is_named_with_what_is_in_its_way() {
    let mut bench = Bench::with_hosts(&[]);
    for row in 0..6 {
        let mut host = Host::new(name(&format!("h{row}")), Amounts::cpu_memory(4_000, 8_000));
        host.location.rack = Some(name(&format!("r{}", row / 2)));
        bench.put(host).expect("a new host");
    }
    let put = |bench: &mut Bench, vm: Vm, host: &str| {
        let request = PlaceRequest { pinned: Some(name(host)), ..PlaceRequest::new(vm) };
        let placed = bench.place_request(request).expect("an answer").host;
        assert_eq!(placed, Some(name(host)));
    };
    for (member, host) in ["h0", "h2", "h4"].into_iter().enumerate() {
        let mut vm = quorum_member(0, member);
        vm.demand = Amounts::cpu_memory(1_000, 1_000);
        put(&mut bench, vm, host);
    }
    let mut pinned = vm("pinned", 100);
    pinned.migratability = Migratability::Pinned;
    put(&mut bench, pinned, "h1");
    put(&mut bench, vm("easy", 100), "h1");
    let (mut tables, _) = tables(&bench);
    let rack = [name("h0"), name("h1")];
    let drafted = tables.draft_maintenance(&rack, 2, &Terms::default()).expect("known hosts");
    let blocked: BTreeMap<VmKey, String> =
        drafted.draft.blocked.iter().map(|it| (it.vm.clone(), it.why.clone())).collect();
    assert_eq!(blocked.len(), 2, "{blocked:?}");
    assert!(
        blocked[&key("q0-0")].contains("anti_affinity"),
        "every other rack has one: {blocked:?}"
    );
    assert!(blocked[&key("pinned")].contains("must not be moved"), "{blocked:?}");
    let moved: Vec<&VmKey> = drafted.draft.waves.iter().flatten().map(|it| &it.vm).collect();
    assert_eq!(moved, [&key("easy")]);
    let one = tables.draft_maintenance(&rack, 1, &Terms::default()).expect("known hosts");
    let blocked: Vec<&VmKey> = one.draft.blocked.iter().map(|it| &it.vm).collect();
    assert_eq!(blocked, [&key("pinned")], "the other host of the rack takes the member meanwhile");
}

#[test]
fn a_drain_leaves_nobody_behind() {
    let bench = fleet();
    let (mut tables, snapshot) = tables(&bench);
    let drafted = tables.draft_drain(&[name("h7")], &Terms::default()).expect("a known host");
    let there = snapshot.placed.iter().filter(|it| it.host == name("h7")).count();
    assert!(there > 0 && drafted.draft.waves.iter().flatten().count() >= there);
    assert_eq!(drafted.draft.blocked, []);
    assert!(drafted.violations(snapshot, &Default::default()).is_empty());
}
