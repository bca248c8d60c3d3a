//! Constraints in force: what they do to placing, how they change, and that they are never lost.

mod common;

use cluster::{
    Affinity, AffinityKind, Constraint, ConstraintRule, Fence, Generation, HostSet, Keep, Level,
    Limit, Reason, Spare, Spread, Strength, Subject, VmSet, Within,
};
use common::{Bench, host, name, vm};
use engine::{Options, Outcome, Refusal, Request};

fn put(text: &str, rule: ConstraintRule) -> Request {
    let constraint = Box::new(Constraint { name: name(text), rule });
    Request::PutConstraint { constraint, if_generation: None }
}

fn remove(text: &str) -> Request {
    Request::RemoveConstraint { name: name(text), if_generation: None }
}

fn one_each() -> ConstraintRule {
    ConstraintRule::Limit(Limit { vms: VmSet::default(), level: Level::Host, max: 1 })
}

#[test]
fn a_constraint_binds_from_the_next_decision_on_and_no_longer_than_it_is_there() {
    let mut bench = Bench::with_hosts(&[4_000]);
    bench.place(vm("a", 100)).expect("an answer");
    bench.place(vm("b", 100)).expect("an answer");
    let installed = bench.ask(put("one", one_each())).expect("in force");
    let outcome =
        Outcome::Constraint { generation: Generation(1), created: true, warnings: Vec::new() };
    assert_eq!(installed.outcome, outcome, "two run already, and nobody is evicted");
    let refused = bench.place(vm("c", 100)).expect("an answer");
    assert_eq!(refused.host, None);
    let decision = refused.decision.expect("a decision");
    assert_eq!(decision.rejections.0.as_slice(), [(Reason::Limit, 1)]);
    assert_eq!(bench.ask(remove("one")).map(|reply| reply.outcome), Ok(Outcome::ConstraintRemoved));
    assert!(bench.place(vm("c", 100)).expect("an answer").host.is_some());
    let unknown = Refusal::UnknownConstraint(name("one"));
    assert_eq!(bench.ask(remove("one")), Err(unknown));
}

#[test]
fn constraints_survive_a_crash_and_decisions_under_them_replay() {
    for snapshot_every in [0, 1] {
        let options = Options { snapshot_every, retain: 1_000 };
        let mut bench = Bench::with_options(&[4_000, 4_000], options);
        bench.ask(put("one", one_each())).expect("in force");
        let first = bench.place(vm("a", 100)).expect("an answer");
        if snapshot_every > 0 {
            bench.engine.snapshot_now().expect("written");
        }
        let second = bench.place(vm("b", 100)).expect("an answer");
        assert_ne!(first.host, second.host);
        let hash = bench.hash();
        let mut bench = bench.restart();
        assert_eq!(bench.hash(), hash);
        assert_eq!(bench.place(vm("c", 100)).expect("an answer").host, None);
        let replay = bench.engine.history().replay(second.id).expect("readable");
        assert!(replay.expect("kept").is_exact());
        let report = verify::snapshot(&bench.engine.read(|state| state.snapshot()));
        assert!(report.accepted() && report.drift.is_empty(), "{report}");
    }
}

#[test]
fn a_batch_counts_its_own_vms() {
    let mut bench = Bench::with_hosts(&[4_000, 4_000]);
    bench.ask(put("one", one_each())).expect("in force");
    let requests = ["a", "b", "c"].map(|id| engine::PlaceRequest::new(vm(id, 100))).to_vec();
    let reply = bench.ask(Request::PlaceBatch { requests, atomic: false }).expect("an answer");
    let Outcome::Batch(placements) = reply.outcome else { panic!("a batch is answered") };
    let placed = placements.iter().filter(|placement| placement.host.is_some()).count();
    assert_eq!(placed, 2);
}

#[test]
fn the_rules_of_vms_take_part_in_contradictions() {
    let mut bench = Bench::with_hosts(&[4_000, 4_000]);
    let mut close = vm("web-1", 100);
    close.groups = vec![name("web")];
    close.affinities = vec![Affinity {
        kind: AffinityKind::Together,
        subject: Subject::Group(name("web")),
        level: Level::Host,
        strength: Strength::Required,
    }];
    bench.place(close).expect("an answer");
    let Err(Refusal::Contradiction { between, .. }) = bench.ask(put("one", one_each())) else {
        panic!("one a host is too few to be together");
    };
    let rule = "vm default/web-1: together with group web by host";
    assert_eq!(between, ["one".to_owned(), rule.to_owned()]);
}

#[test]
fn a_spread_is_even_over_the_zones_that_a_fence_leaves() {
    let mut bench = Bench::with_hosts(&[]);
    for (row, zone) in ["a", "b", "c"].into_iter().enumerate() {
        let mut host = host(row, 4_000);
        host.location.zone = Some(name(zone));
        bench.put(host).expect("a new host");
    }
    let names = vec![name("a"), name("b")];
    let within = vec![Within { level: Level::Zone, names }];
    let hosts = HostSet { within, ..HostSet::default() };
    let fence = Fence { vms: VmSet::default(), hosts, reserved: false };
    bench.ask(put("here", ConstraintRule::Fence(fence))).expect("in force");
    for id in ["w1", "w2", "w3", "w4"] {
        let mut vm = vm(id, 100);
        vm.spreads = vec![Spread {
            group: name("web"),
            level: Level::Zone,
            max_skew: 1,
            strength: Strength::Required,
        }];
        let placement = bench.place(vm).expect("an answer");
        assert!(placement.host.is_some(), "{id}: the third zone counts for nothing");
    }
}

#[test]
fn spare_room_follows_hosts_and_what_others_use() {
    let mut bench = Bench::with_hosts(&[1_000, 1_000]);
    let spare = Spare { hosts: HostSet::default(), each: None, keep: Keep::Hosts(1), except: None };
    bench.ask(put("failover", ConstraintRule::Spare(spare))).expect("in force");
    let placed = |bench: &mut Bench, id: &str, cpu_millis: u64| {
        bench.place(vm(id, cpu_millis)).expect("an answer").host.is_some()
    };
    assert!(!placed(&mut bench, "a", 1_001) && placed(&mut bench, "a", 900));
    assert!(!placed(&mut bench, "b", 101));
    bench.put(host(2, 500)).expect("a new host");
    assert!(placed(&mut bench, "b", 500), "the new host's room is not the largest");
    bench.put(host(3, 2_000)).expect("a new host");
    assert!(!placed(&mut bench, "c", 1_101), "now the largest is larger");
    assert!(placed(&mut bench, "c", 1_100));
}
