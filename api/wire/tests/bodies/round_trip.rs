//! What is written can be read back, and is written as documented.

use crate::full;
use cluster::*;
use expect_test::{Expect, expect};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt::Debug;
use wire::certify::{Action, ClaimSpec, Document, DocumentSpec, SnapshotSpec, StepSpec, WaveSpec};
use wire::*;

pub(crate) fn limits() -> Limits {
    Limits::single(full::dimensions())
}

/// Writes `spec`, and reads it both as the strict reader does and as a client would.
fn check<S, T>(spec: &S, expected: &T)
where
    S: Serialize + DeserializeOwned + PartialEq + Debug,
    T: Read + PartialEq + Debug,
{
    let json = serde_json::to_string(spec).expect("plain data");
    let read = wire::read::<T>(json.as_bytes(), &limits());
    assert_eq!(read.as_ref().map_err(|faults| (faults, &json)), Ok(expected));
    check_view(spec);
}

/// Answers are read by clients only.
pub(crate) fn check_view<S: Serialize + DeserializeOwned + PartialEq + Debug>(view: &S) {
    let json = serde_json::to_string(view).expect("plain data");
    assert_eq!(&serde_json::from_str::<S>(&json).expect(&json), view);
}

pub(crate) fn golden(view: &impl Serialize, expect: Expect) {
    expect.assert_eq(&serde_json::to_string_pretty(view).expect("plain data"));
}

#[test]
fn hosts_come_back_as_they_were() {
    let dimensions = full::dimensions();
    let plain = Host::new(full::name("h"), Amounts::cpu_memory(1, 0));
    let mut linear = plain.clone();
    linear.power = Power::Linear { idle_mw: 5, peak_mw: 9 };
    for host in [full::host(), plain, linear] {
        check(&HostSpec::new(&host, &dimensions), &host);
    }
}

#[test]
fn vms_come_back_as_they_were() {
    let dimensions = full::dimensions();
    let plain = Vm::new(VmKey::in_default_tenant(full::name("v")), Amounts::zero());
    for vm in [full::vm(), plain] {
        let spec = VmSpec::new(&vm, &dimensions);
        check(&spec, &vm);
        let host = full::name("h1");
        let adopt = AdoptSpec { vm: spec.clone(), host_id: host.clone(), bindings: None };
        check(&adopt, &AdoptRequest { vm: vm.clone(), host, bindings: None });
        let place = PlacementSpec { vm: spec.clone(), strategy: None, hold_ttl_ms: Some(5_000) };
        let read = PlaceRequest { vm: vm.clone(), strategy: None, hold_ttl_ms: Some(5_000) };
        check(&place, &read);
        let strategy = Some(Strategy::FirstFitDecreasing);
        let batch = BatchSpec {
            vms: vec![spec],
            atomic: true,
            strategy: strategy.map(Word),
            joint_ms: None,
        };
        check(&batch, &BatchRequest { vms: vec![vm], atomic: true, strategy, joint_ms: 0 });
    }
}

#[test]
fn decisions_come_back_as_they_were() {
    let placed = full::decision();
    let rejected =
        Decision { verdict: Verdict::Rejected, alternatives: Default::default(), ..placed.clone() };
    for decision in [placed, rejected] {
        let answer = answer(&decision);
        check(&answer, &decision);
    }
}

pub(crate) fn answer(decision: &Decision) -> PlacementAnswer {
    let reservation = Some("r-42".to_owned());
    let dimensions = full::dimensions();
    PlacementAnswer::new(decision, "d-42".into(), Revision(42), reservation, &dimensions)
}

pub(crate) fn placed() -> Placed {
    Placed {
        vm: full::vm().into(),
        host: full::name("rack1/h1"),
        committed: Amounts::from_slice(&[1_600, 4_096, 20, 0, 0, 1]),
        bindings: None,
        over_capacity: true,
        adopted: true,
        held: true,
    }
}

#[test]
fn documents_to_certify_come_back_as_they_were() {
    let snapshot = Snapshot {
        revision: Revision(41),
        dimensions: full::dimensions().as_ref().clone(),
        hosts: vec![full::host().into()],
        placed: vec![placed()],
        constraints: full::constraints().into_iter().map(Into::into).collect(),
    };
    let spec = VmSpec::new(&full::vm(), &snapshot.dimensions);
    let ours = ClaimSpec {
        vm: spec.clone(),
        host_id: None,
        bindings: None,
        answer: Some(answer(&full::decision())),
    };
    let step = |action, vm: Option<&VmSpec>, host: Option<&str>| StepSpec {
        action: Word(action),
        vm: vm.cloned(),
        vm_id: vm.is_none().then(|| full::name("v1")),
        tenant: vm.is_none().then(|| full::name("acme")),
        host_id: host.map(full::name),
        bindings: None,
        from: vm.is_none().then(|| full::name("h1")),
    };
    let waves = vec![
        WaveSpec {
            steps: vec![
                step(Action::Place, Some(&spec), Some("h2")),
                step(Action::Move, None, Some("h3")),
            ],
        },
        WaveSpec { steps: vec![step(Action::Release, None, None)] },
    ];
    let foreign =
        ClaimSpec { vm: spec, host_id: Some(full::name("h7")), bindings: None, answer: None };
    let written = DocumentSpec {
        snapshot: Some(SnapshotSpec::new(&snapshot)),
        decisions: vec![ours, foreign],
        waves,
    };
    let vm = || VmKey { tenant: full::name("acme"), id: full::name("v1") };
    let (from, to) = (Some(full::name("h1")), full::name("h3"));
    let place = Step::Place { vm: full::vm().into(), to: full::name("h2"), bindings: None };
    let plan = Plan {
        waves: vec![
            Wave {
                steps: vec![place, Step::Move { vm: vm(), from: from.clone(), to, bindings: None }],
            },
            Wave { steps: vec![Step::Release { vm: vm(), from }] },
        ],
    };
    let decisions = vec![
        Claim {
            vm: full::vm(),
            host: Some(full::name("rack1/h1")),
            bindings: None,
            decision: Some(full::decision()),
        },
        Claim { vm: full::vm(), host: Some(full::name("h7")), bindings: None, decision: None },
    ];
    check(&written, &Document { snapshot: Some(snapshot), decisions, plan });
}

#[test]
fn a_document_may_leave_out_what_follows_from_the_rest() {
    let document = br#"{"snapshot": {"dimensions": ["tpu"],
        "hosts": [{"id": "fast", "capacity": {"cpu_millis": 8000, "tpu": 4}, "benchmark_permille": 3000}],
        "vms": [{"vm": {"id": "a", "demand": {"cpu_millis": 1000}, "cpu_unit": "normalised"}, "host_id": "fast"}]},
        "decisions": [{"vm": {"id": "b", "demand": {"tpu": 5}}, "host_id": null}]}"#;
    let document: Document =
        wire::read(document, &Limits::document(Default::default())).expect("valid");
    let snapshot = document.snapshot.expect("it is given");
    let [placed] = snapshot.placed.as_slice() else { panic!("one VM is placed") };
    assert_eq!(placed.committed, Amounts::cpu_memory(334, 0), "a third, rounded up");
    assert_eq!(document.decisions[0].vm.demand.get(Dim(5)), 5);
    assert_eq!(document.decisions[0].host, None);
}

#[test]
fn weights_come_back_as_they_were() {
    let weights = policy::Weights::new([1, 2, 3, 4, 0]).expect("valid weights");
    check(&WeightMap::from(&weights), &weights);
    golden(
        &WeightMap::from(&policy::Weights::default()),
        expect![[r#"
        {
          "fit": 30,
          "affinity": 20,
          "load": 20,
          "locality": 20,
          "cost": 10
        }"#]],
    );
}

#[test]
fn a_resize_changes_only_what_it_names() {
    let dimensions = full::dimensions();
    let demand = Quantities(vec![("memory_mib".into(), 0), ("gpu_slots".into(), 2)]);
    let changes = vec![(Dim::MEMORY_MIB, 0), (Dim(5), 2)];
    let request = ResizeRequest { changes };
    check(&ResizeSpec { demand }, &request);
    let after = full::vm().demand.changed(&request.changes);
    assert_eq!(after, Amounts::from_slice(&[2_000, 0, 20, 0, 0, 2]));
    let answer = ResizeAnswer {
        outcome: Word(ResizeOutcome::DoesNotFit),
        vm_id: full::name("web-1"),
        tenant: full::name("acme"),
        host_id: full::name("h1"),
        demand: Quantities::sparse(&full::vm().demand, &dimensions),
        shortfall: Quantities(vec![("memory_mib".into(), 512)]),
        alternatives: vec![AlternativeView { host_id: full::name("h2"), score: 7 }],
        generation: 4,
        revision: 50,
    };
    check_view(&answer);
    golden(
        &answer,
        expect![[r#"
        {
          "outcome": "does_not_fit",
          "vm_id": "web-1",
          "tenant": "acme",
          "host_id": "h1",
          "demand": {
            "cpu_millis": 2000,
            "memory_mib": 4096,
            "disk_gib": 20,
            "gpu_slots": 1
          },
          "shortfall": {
            "memory_mib": 512
          },
          "alternatives": [
            {
              "host_id": "h2",
              "score": 7
            }
          ],
          "generation": 4,
          "revision": 50
        }"#]],
    );
}

#[test]
fn bulk_lines_are_read_one_by_one() {
    let lines = b"{\"id\":\"a\",\"capacity\":{}}\n\n  {\"id\":\"b\",\"capacity\":{}}\r\n";
    let hosts: Vec<Host> = wire::read_lines(lines, &limits()).expect("two hosts");
    assert_eq!(hosts.iter().map(|host| host.id.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    let wrong =
        b"{\"id\":\"a\",\"capacity\":{}}\n{\"id\":\"b\",\"capacity\":{\"cpu_millis\":-1}}\n[]\n{";
    let faults = wire::read_lines::<Host>(wrong, &limits()).expect_err("three wrong lines");
    let seen: Vec<String> = faults.iter().map(|f| format!("{}: {}", f.path, f.message)).collect();
    expect![[r#"
        [1].capacity.cpu_millis: line 2: -1 is negative
        [2]: line 3: an array of 0 where an object is expected
        [3]: line 4: the end of the body where a field name in double quotes is expected at line 1, column 2"#]].assert_eq(&seen.join("\n"));
}
