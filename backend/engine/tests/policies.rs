//! Policies in force: what they do to placing, how they change, and that they are never lost.

mod common;

use cluster::{Labels, Reason, Verdict};
use common::{Bench, host, name, vm};
use engine::{Options, Outcome, PlaceRequest, Refusal, Request};
use policy::{Activation, Configuration, Edit, EditKind, Source, Syntax, Value};

const NO_SMALL_HOSTS: &str = r#"
policy "No small hosts" {
  type = "placement"
  parameters { param "cores" { type = "int" default = 3 min = 1 max = 64 } }
  rules {
    rule "small" {
      hard_constraint = true
      when { candidateNode.total_cpu_cores < param.cores }
      then { filter "too small" }
    }
  }
}"#;

const PREFER_GREEN: &str = r#"
policy "Prefer green" {
  type = "placement"
  rules {
    rule "green" {
      when { candidateNode.labels["energy"] == "green" }
      then { score 500 "green energy" }
    }
  }
}"#;

fn edit(policy: &str, change: EditKind) -> Request {
    let (user, description) = ("tests".into(), String::new());
    let edit = Box::new(Edit { policy: policy.into(), change, user, description });
    Request::EditPolicy { edit, if_revision: None }
}

fn install(policy: &str, text: &str) -> Request {
    let activation = Some(Activation::default());
    edit(policy, EditKind::Put { source: Source::new(text, Syntax::Dsl), activation })
}

fn tune(policy: &str, parameter: &str, value: f64) -> Request {
    let parameter_values = [(parameter.into(), Value::Number(value))].into();
    let configuration = Configuration { priority: 0, parameter_values };
    edit(policy, EditKind::Activate(Activation::from(&configuration)))
}

#[test]
fn a_filter_leaves_hosts_out_and_the_decision_names_it() {
    let mut bench = Bench::with_hosts(&[2_000, 2_000, 4_000]);
    bench.ask(install("no-small-hosts", NO_SMALL_HOSTS)).expect("a good policy");
    let placement = bench.place(vm("a", 1_000)).expect("an answer");
    let decision = placement.decision.expect("a decision");
    assert_eq!(placement.host.as_ref().map(|host| host.as_str()), Some("h2"));
    assert_eq!(decision.rejections.0.as_slice(), [(Reason::Policy, 2)]);
    let named = decision.policy_rejections.first().expect("a rule");
    assert_eq!((named.policy.as_str(), named.rule.as_str()), ("no-small-hosts", "rule-1"));
    assert_eq!((named.reason.as_str(), named.hosts), ("too small", 2));
    assert_eq!(decision.policy_revision, 1);
}

#[test]
fn points_move_the_choice_and_stand_in_the_breakdown() {
    let mut bench = Bench::with_hosts(&[4_000, 4_000]);
    let labels = Labels::from_iter([(name("energy"), name("green"))]);
    bench.put(cluster::Host { labels, ..host(1, 4_000) }).expect("a host");
    let before = bench.place(vm("a", 100)).expect("room");
    assert_eq!(before.host.as_ref().map(|host| host.as_str()), Some("h0"), "a tie");
    bench.ask(Request::RemoveVm { vm: common::key("a"), if_generation: None }).expect("there");
    bench.ask(install("prefer-green", PREFER_GREEN)).expect("a good policy");
    let after = bench.place(vm("b", 100)).expect("room");
    assert_eq!(after.host.as_ref().map(|host| host.as_str()), Some("h1"));
    match after.decision.expect("a decision").verdict.clone() {
        Verdict::Placed { score, breakdown, .. } => {
            assert_eq!((breakdown.policy, breakdown.total()), (500_000, score));
        }
        Verdict::Rejected => panic!("there is room"),
    }
}

#[test]
fn tuning_counts_at_once_and_rolling_back_undoes_an_edit() {
    let mut bench = Bench::with_hosts(&[2_000, 4_000]);
    bench.ask(install("no-small-hosts", NO_SMALL_HOSTS)).expect("a good policy");
    let feasible = |bench: &mut Bench, id: &str| {
        let request = Request::Place(PlaceRequest::new(vm(id, 100)));
        match bench.engine.preview(&request, bench.now_ms).expect("an answer").outcome {
            Outcome::Placement(it) => 2 - it.decision.expect("a decision").rejections.total(),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(feasible(&mut bench, "a"), 1);
    bench.ask(tune("no-small-hosts", "cores", 1.0)).expect("within bounds");
    assert_eq!(feasible(&mut bench, "a"), 2);
    let out_of_bounds = bench.ask(tune("no-small-hosts", "cores", 65.0));
    assert!(matches!(out_of_bounds, Err(Refusal::PolicyRefused { .. })), "{out_of_bounds:?}");
    let stricter = NO_SMALL_HOSTS.replace("< param.cores", "< 100 * param.cores");
    bench.ask(install("no-small-hosts", &stricter)).expect("a good policy");
    assert_eq!(feasible(&mut bench, "a"), 0);
    bench.ask(edit("no-small-hosts", EditKind::Rollback { version: 1 })).expect("kept");
    let mut bench = bench.restart();
    assert_eq!(feasible(&mut bench, "a"), 1, "the first text with its defaults");
    bench.ask(edit("no-small-hosts", EditKind::Deactivate)).expect("active");
    assert_eq!(feasible(&mut bench, "a"), 2);
    let actions = bench
        .engine
        .read(|state| state.library().audit().map(|entry| entry.action.name()).collect::<Vec<_>>());
    assert_eq!(actions, ["register", "tune", "update", "rollback", "deactivate"]);
}

#[test]
fn what_cannot_be_installed_changes_nothing() {
    let mut bench = Bench::with_hosts(&[2_000]);
    bench.ask(install("prefer-green", PREFER_GREEN)).expect("a good policy");
    let before = bench.hash();
    let cases = [
        install("prefer-green", "policy \"Prefer green\" {"),
        install("other-id", PREFER_GREEN),
        edit("absent", EditKind::Deactivate),
        edit("prefer-green", EditKind::Rollback { version: 9 }),
        edit("prefer-green", EditKind::Remove),
        tune("prefer-green", "cores", 1.0),
    ];
    for case in cases {
        bench.ask(case.clone()).expect_err(&format!("{case:?}"));
        assert_eq!(bench.hash(), before);
    }
    let stale = Request::EditPolicy {
        edit: Box::new(Edit {
            policy: "prefer-green".into(),
            change: EditKind::Deactivate,
            user: "tests".into(),
            description: String::new(),
        }),
        if_revision: Some(7),
    };
    assert_eq!(bench.ask(stale), Err(Refusal::Stale { seen: 7, current: 1 }));
}

#[test]
fn a_decision_is_replayed_under_the_policies_of_its_time() {
    let mut bench =
        Bench::with_options(&[2_000, 4_000], Options { snapshot_every: 4, retain: 100 });
    bench.ask(install("no-small-hosts", NO_SMALL_HOSTS)).expect("a good policy");
    let first = bench.place(vm("a", 100)).expect("room");
    bench.engine.snapshot_now().expect("a snapshot");
    bench.ask(edit("no-small-hosts", EditKind::Deactivate)).expect("active");
    let second = bench.place(vm("b", 100)).expect("room");
    let bench = bench.restart();
    for id in [first.id, second.id] {
        let replay = bench.engine.history().replay(id).expect("readable").expect("kept");
        assert!(replay.is_exact(), "{:?} became {:?}", replay.recorded, replay.recomputed);
    }
}
