//! Plans: every rule binds a VM that is placed or moved, and waves are safe while under way.

use crate::scene::{Scene, apart, name, small_vm, together};
use cluster::{
    Amounts, Dim, Host, HostState, Level, Migratability, Plan, Snapshot, Spread, Step, Strength,
    Subject, Vm, Wave,
};
use policy::ActiveSet;
use std::sync::Arc;
use verify::{Certificate, Violation, ViolationKind, certificate};

/// What is said of a plan that places the scene's VM on its host.
pub(crate) fn placing(scene: &Scene) -> Vec<Violation> {
    let bindings = scene.decision.bindings().cloned();
    let step = Step::Place { vm: Arc::new(scene.vm.clone()), to: scene.host.clone(), bindings };
    violations(&certified(&scene.snapshot, vec![vec![step]]))
}

/// The same for a plan that moves it there from a host that is nowhere and takes nobody.
pub(crate) fn moving(scene: &Scene) -> Vec<Violation> {
    let vm = &scene.vm.key;
    if scene.snapshot.placed.iter().any(|placed| placed.vm.key == *vm) {
        return placing(scene);
    }
    let mut scene = scene.clone();
    let mut garage = Host::new(name("garage"), Amounts::from_slice(&[1_000_000; 6]));
    garage.state = HostState::Cordoned;
    scene.snapshot.hosts.push(Arc::new(garage));
    let own = scene.vm.clone();
    scene.put(own, "garage");
    let step = Step::Move { vm: vm.clone(), from: None, to: scene.host.clone(), bindings: None };
    violations(&certified(&scene.snapshot, vec![vec![step]]))
}

/// What is said of a plan with one thing changed: it moves one VM and releases another.
pub(crate) fn plan(mutate: impl FnOnce(&mut Vec<Step>)) -> Vec<Violation> {
    let scene = Scene::placed();
    let mut steps = vec![shift("app-1", "b"), release("noisy-1")];
    if let Step::Move { from, .. } = &mut steps[0] {
        *from = Some(name("a"));
    }
    let right = certified(&scene.snapshot, vec![steps.clone()]);
    assert!(right.accepted(), "{right}");
    mutate(&mut steps);
    violations(&certified(&scene.snapshot, vec![steps]))
}

pub(crate) fn pinned() -> Vec<Violation> {
    let mut scene = Scene::placed();
    let mut vm = small_vm("fixed");
    vm.migratability = Migratability::Pinned;
    scene.put(vm, "a");
    violations(&certified(&scene.snapshot, vec![vec![shift("fixed", "b")]]))
}

pub(crate) fn shift(vm: &str, to: &str) -> Step {
    Step::Move { vm: small_vm(vm).key, from: None, to: name(to), bindings: None }
}

pub(crate) fn release(vm: &str) -> Step {
    Step::Release { vm: small_vm(vm).key, from: None }
}

fn place(vm: Vm, to: &str) -> Step {
    Step::Place { vm: Arc::new(vm), to: name(to), bindings: None }
}

fn certified(snapshot: &Snapshot, waves: Vec<Vec<Step>>) -> Certificate {
    let waves = waves.into_iter().map(|steps| Wave { steps }).collect();
    certificate(snapshot.clone(), &[], &Plan { waves }, &ActiveSet::default())
}

/// What the steps break; whatever is wrong with the snapshot itself is left out.
fn violations(certificate: &Certificate) -> Vec<Violation> {
    let of_steps = certificate.violations.iter().filter(|finding| finding.wave.is_some());
    of_steps.map(|finding| finding.violation.clone()).collect()
}

/// Two full hosts with one VM each.
fn two_full() -> Scene {
    let mut scene = Scene::placed();
    scene.snapshot.placed.clear();
    for (vm, host) in [("left", "a"), ("right", "b")] {
        let mut vm = small_vm(vm);
        vm.demand = Amounts::from_slice(&[6; 6]);
        scene.put(vm, host);
    }
    scene
}

#[test]
fn a_moving_vm_has_its_place_on_both_hosts() {
    let scene = two_full();
    let swap = vec![vec![shift("left", "b"), shift("right", "a")]];
    let found = certified(&scene.snapshot, swap);
    assert!(!found.accepted(), "neither host has room for both");
    assert!(found.violations.iter().all(|finding| {
        matches!(finding.violation.kind, ViolationKind::Capacity { asked: 6, free: 4, .. })
    }));
    let by_way_of =
        vec![vec![shift("left", "a2")], vec![shift("right", "a")], vec![shift("left", "b")]];
    let found = certified(&scene.snapshot, by_way_of.clone());
    assert!(found.accepted(), "{found}");
    assert_eq!(found.checked.steps, 3);
    let together = vec![by_way_of.concat().into_iter().take(2).collect()];
    let found = certified(&scene.snapshot, together);
    assert!(!found.accepted(), "the place of the first is free only when the wave is done");
}

#[test]
fn room_that_is_given_back_counts_from_the_next_wave_on() {
    let scene = two_full();
    let mut vm = small_vm("next");
    vm.demand = Amounts::zero().with(Dim::MEMORY_MIB, 8);
    let at_once = vec![vec![release("left"), place(vm.clone(), "a")]];
    assert!(!certified(&scene.snapshot, at_once).accepted());
    let in_turn = vec![vec![release("left")], vec![place(vm, "a")]];
    let found = certified(&scene.snapshot, in_turn);
    assert!(found.accepted(), "{found}");
}

#[test]
fn what_is_to_be_apart_is_apart_also_while_it_moves() {
    let mut scene = Scene::placed();
    scene.snapshot.placed.clear();
    let shy = |id: &str| {
        let mut vm = small_vm(id);
        vm.groups = vec![name("shy")];
        vm.affinities = vec![apart(Subject::Group(name("shy")), Level::Host)];
        vm
    };
    scene.put(shy("one"), "a");
    scene.put(shy("two"), "b");
    let rotated = vec![vec![shift("one", "a2"), shift("two", "a")]];
    let found = violations(&certified(&scene.snapshot, rotated));
    assert_eq!(found.len(), 2, "its own rule, and the other's: {found:?}");
    let in_turn = vec![vec![shift("one", "a2")], vec![shift("two", "a")]];
    assert!(certified(&scene.snapshot, in_turn).accepted());
    let both = vec![vec![place(shy("three"), "a2"), place(shy("four"), "a2")]];
    assert!(!certified(&scene.snapshot, both).accepted(), "newcomers of one wave see each other");
}

#[test]
fn a_neighbour_that_is_leaving_or_coming_is_no_company() {
    let scene = Scene::placed();
    let mut vm = small_vm("friend");
    vm.affinities = vec![together(Subject::Group(name("app")), Level::Rack)];
    let alone = vec![vec![place(vm.clone(), "a2")]];
    assert!(certified(&scene.snapshot, alone).accepted());
    let left = vec![vec![shift("app-1", "b"), place(vm.clone(), "a2")]];
    assert!(!certified(&scene.snapshot, left).accepted());
    let coming = vec![vec![shift("app-1", "b"), place(vm.clone(), "b")]];
    assert!(!certified(&scene.snapshot, coming).accepted());
    let come = vec![vec![shift("app-1", "b")], vec![place(vm, "b")]];
    assert!(certified(&scene.snapshot, come).accepted());
}

#[test]
fn skew_is_counted_between_the_most_and_the_least_that_can_be() {
    let mut scene = Scene::placed();
    scene.snapshot.placed.clear();
    let even = |id: &str| {
        let mut vm = small_vm(id);
        vm.spreads = vec![Spread {
            group: name("web"),
            level: Level::Zone,
            max_skew: 1,
            strength: Strength::Required,
        }];
        vm
    };
    let three = ["a", "b", "c"].iter().enumerate();
    let three = |prefix: &str| -> Vec<Step> {
        three.clone().map(|(row, host)| place(even(&format!("{prefix}{row}")), host)).collect()
    };
    assert!(certified(&scene.snapshot, vec![three("x"), three("y")]).accepted());
    let all = [three("x"), three("y")].concat();
    assert!(!certified(&scene.snapshot, vec![all]).accepted(), "two may come before any other");
    for host in ["a", "b", "c"] {
        scene.put(even(&format!("on-{host}")), host);
    }
    let moved = vec![vec![shift("on-a", "a2")]];
    assert!(certified(&scene.snapshot, moved).accepted(), "within its zone");
    let fled = vec![vec![shift("on-a", "b")]];
    assert!(!certified(&scene.snapshot, fled).accepted(), "its zone would be empty");
}

#[test]
fn a_plan_is_checked_with_the_policies_in_force_and_reports_new_drift() {
    let scene = Scene::placed();
    let text = "policy \"spread out\" { rules { rule \"r\" { when { candidateNode.vm_count > 0 } \
                then { filter \"one each\" } } } }";
    let (program, _) = policy::load(text, policy::Syntax::Dsl).expect("a good policy");
    let active = vec![(program.into(), policy::Configuration::default())];
    let active = ActiveSet::new(active).expect("no parameters");
    let ask = |steps: Vec<Step>| {
        let plan = Plan { waves: vec![Wave { steps }] };
        certificate(scene.snapshot.clone(), &[], &plan, &active)
    };
    assert!(ask(vec![shift("app-1", "a2")]).accepted());
    let found = ask(vec![shift("app-1", "b")]);
    assert!(matches!(found.violations[0].violation.kind, ViolationKind::Policy { .. }), "{found}");

    let mut scene = Scene::placed();
    let mut vm = small_vm("friend");
    vm.affinities = vec![together(Subject::Vm(name("app-1")), Level::Rack)];
    scene.put(vm, "a2");
    let found = certified(&scene.snapshot, vec![vec![shift("app-1", "b")]]);
    assert!(found.accepted() && found.drift.is_empty(), "{found}");
    assert!(matches!(found.drift_after[0].kind, ViolationKind::Affinity { .. }), "{found}");
}
