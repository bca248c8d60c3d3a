//! What callers of the engine may rely on, one promise a test.

mod common;

use cluster::{Dim, Dimensions, HostState, Revision, Strategy};
use common::{Bench, host, key, name, vm};
use engine::{
    Aid, Call, DecisionId, Drift, Observed, Options, Outcome, PlaceRequest, Refusal, Request, drift,
};
use policy::Weights;
use std::sync::Arc;

#[test]
fn a_committed_placement_survives_a_restart_and_an_uncommitted_one_does_not() {
    let mut bench = Bench::with_hosts(&[4_000]);
    bench.place(vm("kept", 1_000)).expect("room");
    let hash = bench.hash();
    let lost = Call::internal(Request::Place(PlaceRequest::new(vm("lost", 1_000))));
    bench.engine.propose(&lost, bench.now_ms).expect("room");
    let bench = bench.restart();
    assert_eq!(bench.host_of("kept").as_deref(), Some("h0"));
    assert_eq!(bench.host_of("lost"), None);
    assert_eq!(bench.hash(), hash);
}

#[test]
fn the_same_request_again_gets_the_same_answer_and_another_one_is_refused() {
    let mut bench = Bench::with_hosts(&[4_000, 4_000]);
    let first = bench.place(vm("a", 1_000)).expect("room");
    let again = bench.place(vm("a", 1_000)).expect("the same request");
    assert!(again.repeated && !first.repeated);
    assert_eq!((again.id, &again.host, &again.decision), (first.id, &first.host, &first.decision));
    let other = bench.place(vm("a", 2_000)).expect_err("another request");
    assert!(matches!(other, Refusal::VmExists { .. }));
    let mut bench = bench.restart();
    assert_eq!(bench.place(vm("a", 1_000)).expect("after a restart").decision, first.decision);
    assert_eq!(bench.cpu_taken("h0") + bench.cpu_taken("h1"), 1_000, "taken once");
}

#[test]
fn an_idempotency_key_returns_the_stored_reply_also_after_a_restart() {
    let mut bench = Bench::with_hosts(&[4_000]);
    let place = |cpu| Request::Place(PlaceRequest::new(vm("a", cpu)));
    let first = bench.ask_with_key("k1", place(500)).expect("room");
    bench.ask(Request::RemoveVm { vm: key("a"), if_generation: None }).expect("there");
    assert_eq!(bench.ask_with_key("k1", place(500)), Ok(first.clone()));
    assert_eq!(bench.host_of("a"), None, "the retry did not place it again");
    assert_eq!(bench.ask_with_key("k1", place(600)), Err(Refusal::IdempotencyConflict));
    let mut bench = bench.restart();
    assert_eq!(bench.ask_with_key("k1", place(500)), Ok(first));
}

#[test]
fn a_repeated_resize_is_known_by_its_key_although_the_generation_has_moved_on() {
    let mut bench = Bench::with_hosts(&[4_000]);
    bench.place(vm("a", 500)).expect("room");
    let resize = |cpu, generation| Request::Resize {
        vm: key("a"),
        changes: vec![(Dim::CPU_MILLIS, cpu)],
        if_generation: Some(cluster::Generation(generation)),
    };
    let first = bench.ask_with_key("k", resize(700, 1)).expect("room");
    assert_eq!(bench.ask_with_key("k", resize(700, 2)), Ok(first.clone()));
    let memory = vec![(Dim::MEMORY_MIB, 2)];
    let other = Request::Resize { vm: key("a"), changes: memory, if_generation: None };
    bench.ask(other).expect("somebody else's change of something else");
    assert_eq!(bench.ask_with_key("k", resize(700, 3)), Ok(first));
    assert_eq!(bench.ask_with_key("k", resize(800, 2)), Err(Refusal::IdempotencyConflict));
}

#[test]
fn no_room_is_an_answer_that_accounts_for_every_host() {
    let mut bench = Bench::with_hosts(&[1_000, 2_000]);
    let placement = bench.place(vm("big", 3_000)).expect("an answer");
    assert_eq!(placement.host, None);
    let decision = placement.decision.expect("with reasons");
    assert_eq!(decision.rejections.total(), 2);
    assert_eq!(bench.host_of("big"), None);
}

#[test]
fn a_reservation_ends_by_a_logged_command_only() {
    let mut bench = Bench::with_hosts(&[1_000]);
    let reservation = bench.hold(vm("a", 1_000), 5_000);
    bench.now_ms += 4_999;
    bench.ask(Request::Tick).expect("time passes");
    assert_eq!(bench.cpu_taken("h0"), 1_000, "not over yet");
    bench.now_ms += 1;
    assert_eq!(bench.cpu_taken("h0"), 1_000, "nothing happens without a command");
    let confirm = bench.ask(Request::Confirm { reservation });
    assert!(matches!(confirm, Err(Refusal::ReservationExpired { .. })));
    let ticked = bench.ask(Request::Tick).expect("time passes").outcome;
    assert_eq!(ticked, Outcome::Ticked { expired: 1 });
    assert_eq!(bench.cpu_taken("h0"), 0);
    let confirm = bench.ask(Request::Confirm { reservation });
    assert_eq!(confirm, Err(Refusal::UnknownReservation(reservation)));
}

#[test]
fn a_confirmed_reservation_stays_and_a_released_one_goes() {
    let mut bench = Bench::with_hosts(&[4_000]);
    let kept = bench.hold(vm("kept", 1_000), 1_000);
    let freed = bench.hold(vm("freed", 1_000), 1_000);
    bench.ask(Request::Confirm { reservation: kept }).expect("held");
    bench.ask(Request::Release { reservation: freed }).expect("held");
    let again = bench.ask(Request::Release { reservation: freed }).expect("idempotent").outcome;
    assert_eq!(again, Outcome::Released { vm: None });
    bench.now_ms += 20_000;
    bench.ask(Request::Tick).expect("time passes");
    assert_eq!(bench.host_of("kept").as_deref(), Some("h0"));
    assert_eq!(bench.cpu_taken("h0"), 1_000);
}

#[test]
fn a_jump_of_the_clock_ends_no_reservation() {
    let mut bench = Bench::with_hosts(&[4_000]);
    bench.hold(vm("a", 1_000), 60_000);
    bench.now_ms += 3 * 24 * 3_600_000;
    bench.ask(Request::Tick).expect("time passes");
    assert_eq!(bench.host_of("a").as_deref(), Some("h0"), "a jump expires nothing at once");
    let before = bench.engine.read(|state| state.time_ms());
    bench.now_ms = 5;
    bench.ask(Request::Tick).expect("time stands still");
    assert_eq!(bench.engine.read(|state| state.time_ms()), before, "and never goes back");
}

#[test]
fn a_batch_is_all_or_nothing_when_it_is_atomic() {
    let batch = |atomic| {
        let requests = ["a", "b", "c"].map(|id| PlaceRequest::new(vm(id, 1_000))).to_vec();
        Request::PlaceBatch { requests, atomic }
    };
    let placed = |outcome| match outcome {
        Outcome::Batch(placements) => {
            let placements: Vec<engine::Placement> = placements;
            placements.iter().filter(|placement| placement.host.is_some()).count()
        }
        other => panic!("a batch answers a batch, not {other:?}"),
    };
    let mut bench = Bench::with_hosts(&[2_000]);
    assert_eq!(placed(bench.ask(batch(true)).expect("an answer").outcome), 0);
    assert_eq!(bench.cpu_taken("h0"), 0);
    assert_eq!(placed(bench.ask(batch(false)).expect("an answer").outcome), 2);
    assert_eq!(bench.cpu_taken("h0"), 2_000);
}

#[test]
fn an_adopted_vm_may_exceed_the_host_and_is_flagged() {
    let mut bench = Bench::with_hosts(&[1_000]);
    let adopt = |id: &str, cpu| Request::Adopt {
        vm: Arc::new(vm(id, cpu)),
        host: name("h0"),
        bindings: None,
    };
    let flag = |outcome| match outcome {
        Outcome::Adopted { over_capacity, .. } => over_capacity,
        other => panic!("an adoption answers an adoption, not {other:?}"),
    };
    assert!(!flag(bench.ask(adopt("fits", 900)).expect("adopted").outcome));
    assert!(flag(bench.ask(adopt("exceeds", 900)).expect("adopted").outcome));
    assert_eq!(bench.cpu_taken("h0"), 1_800);
    assert_eq!(bench.place(vm("new", 1)).expect("an answer").host, None);
    let bench = bench.restart();
    assert_eq!(bench.cpu_taken("h0"), 1_800);
}

#[test]
fn an_adopted_vm_stays_flagged_until_its_host_has_room_again() {
    let mut bench = Bench::with_hosts(&[1_000]);
    for id in ["a", "b"] {
        let adopt = Request::Adopt { vm: Arc::new(vm(id, 900)), host: name("h0"), bindings: None };
        bench.ask(adopt).expect("adopted");
    }
    let mut flagged_at = |cpu| {
        let changes = vec![(Dim::CPU_MILLIS, cpu)];
        let resize = Request::Resize { vm: key("b"), changes, if_generation: None };
        bench.ask(resize).expect("shrinking is always possible");
        bench.engine.read(|state| state.find_vm(&key("b")).map(|(_, entry)| entry.over_capacity))
    };
    assert_eq!(flagged_at(200), Some(true), "900 and 200 are over 1000");
    assert_eq!(flagged_at(100), Some(false));
}

#[test]
fn resizing_keeps_the_vm_in_place_or_says_what_is_missing() {
    let mut bench = Bench::with_hosts(&[2_000]);
    bench.place(vm("a", 1_000)).expect("room");
    bench.place(vm("b", 500)).expect("room");
    let resize = |cpu| Request::Resize {
        vm: key("a"),
        changes: vec![(Dim::CPU_MILLIS, cpu)],
        if_generation: None,
    };
    let refusal = bench.ask(resize(1_501)).expect_err("no room");
    assert!(refusal.to_string().contains("cpu_millis 1501 asked, 1500 there"), "{refusal}");
    bench.ask(resize(1_500)).expect("room");
    assert_eq!(bench.cpu_taken("h0"), 2_000);
    bench.ask(resize(100)).expect("shrinking always fits");
    assert_eq!(bench.cpu_taken("h0"), 600);
}

#[test]
fn a_host_with_vms_is_removed_only_on_request_and_comes_back_as_another_one() {
    let mut bench = Bench::with_hosts(&[2_000]);
    bench.place(vm("a", 1_000)).expect("room");
    let incarnation = |bench: &Bench| {
        bench.engine.read(|s| s.find_host(&name("h0")).map(|(_, e)| e.host.incarnation))
    };
    let first = incarnation(&bench);
    let remove = |evict| Request::RemoveHost { host: name("h0"), evict, if_generation: None };
    assert!(matches!(bench.ask(remove(false)), Err(Refusal::HostNotEmpty { vms: 1, .. })));
    bench.ask(remove(true)).expect("removed with its VM");
    assert_eq!(bench.host_of("a"), None);
    bench.put(host(0, 2_000)).expect("added again");
    assert!(incarnation(&bench) > first);
    assert_eq!(bench.cpu_taken("h0"), 0);
}

#[test]
fn a_stale_generation_is_refused_with_the_current_one() {
    let mut bench = Bench::with_hosts(&[2_000]);
    let cordon = |seen| Request::SetHostState {
        host: name("h0"),
        state: HostState::Cordoned,
        if_generation: Some(cluster::Generation(seen)),
    };
    assert_eq!(bench.ask(cordon(7)), Err(Refusal::Stale { seen: 7, current: 1 }));
    bench.ask(cordon(1)).expect("the current one");
    assert_eq!(bench.place(vm("a", 1)).expect("an answer").host, None, "cordoned");
}

#[test]
fn a_host_cannot_shrink_below_what_is_promised_on_it() {
    let mut bench = Bench::with_hosts(&[2_000]);
    bench.place(vm("a", 1_500)).expect("room");
    let refusal = bench.put(host(0, 1_499)).expect_err("1500 is committed");
    assert!(refusal.to_string().contains("capacity.cpu_millis"), "{refusal}");
    bench.put(host(0, 1_500)).expect("just enough");
}

#[test]
fn weights_and_strategy_change_the_next_decision() {
    let mut bench = Bench::with_hosts(&[4_000, 8_000]);
    bench.place(vm("a", 100)).expect("room");
    let strategy = |strategy| Request::SetStrategy { strategy, if_revision: None };
    bench.ask(strategy(Strategy::BestFit)).expect("a policy");
    assert_eq!(bench.place(vm("b", 100)).expect("room").host, Some(name("h0")));
    bench.ask(strategy(Strategy::WorstFit)).expect("a policy");
    let placement = bench.place(vm("c", 100)).expect("room");
    assert_eq!(placement.host, Some(name("h1")));
    assert_eq!(placement.decision.expect("a decision").policy_revision, 2);
    let weights = Weights::new([0, 0, 1, 0, 0]).expect("valid weights");
    let stale = Request::SetWeights { weights, if_revision: Some(1) };
    assert_eq!(bench.ask(stale), Err(Refusal::Stale { seen: 1, current: 2 }));
}

#[test]
fn bad_numbers_never_reach_the_log() {
    let mut bench = Bench::with_hosts(&[4_000]);
    let revision = bench.engine.read(|state| state.revision());
    let huge = bench.place(vm("a", u64::MAX)).expect_err("too large");
    assert!(matches!(huge, Refusal::Invalid { .. }), "{huge}");
    let undeclared = vm("a", 1);
    let demand = undeclared.demand.clone().with(cluster::Dim(9), 1);
    let undeclared = bench.place(cluster::Vm { demand, ..undeclared }).expect_err("undeclared");
    assert!(undeclared.to_string().contains("not declared"), "{undeclared}");
    let ttl = PlaceRequest { hold_ttl_ms: Some(1), ..PlaceRequest::new(vm("a", 1)) };
    assert!(matches!(bench.place_request(ttl), Err(Refusal::Invalid { .. })));
    let long_key =
        bench.ask_with_key(&"k".repeat(2_000), Request::Place(PlaceRequest::new(vm("a", 1))));
    assert!(matches!(long_key, Err(Refusal::Invalid { .. })), "the log could not keep it");
    assert_eq!(bench.engine.read(|state| state.revision()), revision);
}

#[test]
fn an_extra_dimension_is_declared_then_enforced() {
    let mut bench = Bench::with_hosts(&[]);
    let dimensions = Dimensions::with_extra(vec![name("licences")]).expect("one more");
    bench.ask(Request::DeclareDimensions(dimensions.clone())).expect("declared");
    let licences = dimensions.find("licences").expect("declared");
    let mut with_two = host(0, 4_000);
    with_two.capacity.set(licences, 2);
    bench.put(with_two).expect("a host with licences");
    let mut place = |id: &str| {
        let vm = vm(id, 1);
        let demand = vm.demand.clone().with(licences, 1);
        bench.place(cluster::Vm { demand, ..vm }).expect("an answer").host
    };
    assert!(place("a").is_some() && place("b").is_some());
    assert_eq!(place("c"), None);
}

#[test]
fn every_decision_replays_bit_for_bit_also_from_a_snapshot() {
    let options = Options { snapshot_every: 0, retain: 1_000 };
    let mut bench = Bench::with_options(&[8_000, 6_000, 4_000], options);
    let mut ids = Vec::new();
    for round in 0..12u64 {
        let strategy = Strategy::ALL[round as usize % Strategy::ALL.len()];
        bench.ask(Request::SetStrategy { strategy, if_revision: None }).expect("a policy");
        ids.push(bench.place(vm(&format!("v{round}"), 300 + 10 * round)).expect("an answer").id);
        if round == 5 {
            bench.engine.snapshot_now().expect("a snapshot");
        }
    }
    let bench = bench.restart();
    for id in ids {
        let replay = bench.engine.history().replay(id).expect("readable").expect("recorded");
        assert!(replay.is_exact(), "{id}: {replay:?}");
    }
    assert_eq!(DecisionId::parse("d12-3").map(|id| id.to_string()).as_deref(), Some("d12-3"));
}

#[test]
fn the_state_at_any_kept_revision_can_be_asked_for() {
    let mut bench = Bench::with_hosts(&[4_000]);
    bench.place(vm("a", 1_000)).expect("room");
    let (revision, hash) = bench.engine.read(|state| (state.revision(), state.hash()));
    bench.place(vm("b", 1_000)).expect("room");
    let then = bench.engine.history().state_at(revision).expect("readable").expect("kept");
    assert_eq!((then.hash(), then.vm_count()), (hash, 1));
    assert!(bench.engine.history().state_at(Revision(99)).expect("readable").is_none());
}

#[test]
fn drift_names_what_is_missing_unknown_elsewhere_or_twice() {
    let mut bench = Bench::with_hosts(&[4_000, 4_000]);
    for (id, host) in [("a", "h0"), ("b", "h0"), ("c", "h1")] {
        let adopt = Request::Adopt { vm: Arc::new(vm(id, 1)), host: name(host), bindings: None };
        bench.ask(adopt).expect("adopted");
    }
    let seen = |id, host| Observed { vm: key(id), host: name(host) };
    let observed = [seen("b", "h1"), seen("d", "h0"), seen("c", "h1"), seen("c", "h1")];
    let found = bench.engine.read(|s| drift(s, &[name("h0"), name("h1")], &observed));
    assert_eq!(
        found,
        [
            Drift::Missing { vm: key("a"), host: name("h0") },
            Drift::Unknown { vm: key("d"), host: name("h0") },
            Drift::Elsewhere { vm: key("b"), recorded: name("h0"), observed: name("h1") },
        ]
    );
}

#[test]
fn a_batch_that_nobody_waits_for_ends_early_and_changes_nothing() {
    let mut bench = Bench::with_hosts(&[64_000; 8]);
    let requests: Vec<_> =
        (0..2_000).map(|n| PlaceRequest::new(vm(&format!("b{n}"), 10))).collect();
    let call = Call::internal(Request::PlaceBatch { requests, atomic: false });
    let (before, asked) = (bench.hash(), std::cell::Cell::new(0));
    for patience in [0, 1, 300] {
        asked.set(0);
        let abandoned = || {
            asked.set(asked.get() + 1);
            asked.get() > patience
        };
        let aid = Aid { abandoned: Some(&abandoned), ..Aid::default() };
        let refused = bench.engine.propose_with(&call, bench.now_ms, aid);
        assert_eq!(refused, Err(Refusal::DeadlinePassed));
        assert_eq!(asked.get(), patience + 1, "it is asked before every VM");
    }
    bench.engine.commit().expect("nothing to commit");
    assert_eq!(bench.hash(), before);
    let whole = bench.call(&call).expect("room for all");
    let mut fresh = Bench::with_hosts(&[64_000; 8]);
    assert_eq!(whole, fresh.call(&call).expect("room for all"), "the tables are as they were");
}
