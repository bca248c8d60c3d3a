//! Whole assignments: what the solver's states say, against the verifier's own reading.

use cluster::HostIx;
use cluster::VmIx;
use cluster::assignment::{Busiest, Distances, Goal, Host, Problem, Resource, Rule, Scope, Vm};
use fixture::Dice;
use fixture::assignments::{Limits, random};
use solver::assignment::{Budget, Change, Model, State};
use solver::engines::{Engine, Rebalance, Task};

const LIMITS: Limits = Limits { hosts: 6, vms: 9, groups: 4, rules: 4 };

fn verified(problem: &Problem, hosts: &[u32]) -> Option<i64> {
    let hosts: Vec<HostIx> = hosts.iter().copied().map(HostIx).collect();
    verify::assignment(problem, &hosts).ok().map(|worth| worth.objective())
}

#[test]
fn a_state_says_what_the_verifier_says() {
    let mut dice = Dice::new(1);
    let (mut feasible, mut broken) = (0, 0);
    for _ in 0..4_000 {
        let problem = random(&mut dice, LIMITS);
        let model = Model::compile(&problem).unwrap();
        let hosts: Vec<u32> = (0..model.vms()).map(|_| dice.row(model.hosts()) as u32).collect();
        let state = State::new(&model, &hosts);
        match verified(&problem, &hosts) {
            Some(objective) => {
                feasible += 1;
                assert!(state.is_feasible());
                assert_eq!(state.objective(), objective, "{problem:?} {hosts:?}");
                assert!(model.bound() <= objective, "{problem:?} {hosts:?}");
            }
            None => {
                broken += 1;
                assert!(!state.is_feasible(), "{problem:?} {hosts:?}");
            }
        }
    }
    assert!(feasible > 200 && broken > 200, "{feasible} feasible, {broken} broken");
}

/// Walks at random from every feasible start that is found; every step that the state allows is
/// one that the verifier accepts, at the price that was told, and every other one is not.
#[test]
fn shifts_and_swaps_are_priced_and_judged_before_they_are_made() {
    let mut dice = Dice::new(2);
    let (mut allowed, mut refused) = (0, 0);
    for _ in 0..6_000 {
        let problem = random(&mut dice, LIMITS);
        let model = Model::compile(&problem).unwrap();
        let hosts: Vec<u32> = (0..model.vms()).map(|_| dice.row(model.hosts()) as u32).collect();
        let mut state = State::new(&model, &hosts);
        if !state.is_feasible() {
            continue;
        }
        for _ in 0..20 {
            let (a, b) = (dice.row(model.vms()) as u32, dice.row(model.vms()) as u32);
            let to = dice.row(model.hosts()) as u32;
            let swap = dice.chance(500);
            if swap && state.host_of(a) == state.host_of(b) || !swap && state.host_of(a) == to {
                continue;
            }
            let before = state.objective();
            let fits = if swap { state.fits_swap(a, b) } else { state.fits(a, to) };
            let (may, delta) = if swap {
                (state.may_swap(a, b), state.swap_delta(a, b))
            } else {
                (state.may_shift(a, to), state.shift_delta(a, to))
            };
            let kept = state.clone();
            if swap {
                state.swap(a, b)
            } else {
                state.shift(a, to)
            }
            let after = verified(&problem, state.assignment());
            assert_eq!(may, after.is_some(), "{problem:?} {:?}", kept.assignment());
            if fits {
                assert_eq!(state.objective(), before + delta, "{problem:?}");
            }
            let anew = State::new(&model, state.assignment());
            assert_eq!(anew.objective(), state.objective());
            assert_eq!(anew.broken(), state.broken());
            assert_eq!(anew.is_feasible(), after.is_some());
            if may {
                allowed += 1;
                assert_eq!(after, Some(state.objective()));
            } else {
                refused += 1;
                state = kept;
            }
        }
    }
    assert!(allowed > 1_000 && refused > 1_000, "{allowed} allowed, {refused} refused");
}

#[test]
fn several_changes_are_judged_at_once() {
    let mut dice = Dice::new(3);
    let mut judged = 0;
    for _ in 0..4_000 {
        let mut problem = random(&mut dice, LIMITS);
        // Room for everything, so that only rules decide.
        problem.shapes.iter_mut().flatten().for_each(|demand| *demand = 0);
        let model = Model::compile(&problem).unwrap();
        let hosts: Vec<u32> = (0..model.vms()).map(|_| dice.row(model.hosts()) as u32).collect();
        let state = State::new(&model, &hosts);
        if !state.is_feasible() || model.vms() < 3 {
            continue;
        }
        let mut after = hosts.clone();
        let changes: Vec<Change> = (0..3)
            .map(|vm| {
                let to = dice.row(model.hosts()) as u32;
                state.shift_of(vm, to)
            })
            .filter(|change| model.allows(change.vm, change.to))
            .collect();
        changes.iter().for_each(|change| after[change.vm as usize] = change.to);
        assert_eq!(state.rules_allow(&changes), verified(&problem, &after).is_some());
        judged += 1;
    }
    assert!(judged > 200, "{judged} judged");
}

/// Three machines in two locations, four processes of two services, one transient resource: each
/// term of the machine reassignment challenge's objective, worked out by hand.
fn reassignment() -> Problem {
    let host = |capacity: [u64; 2], neighbourhood, location| Host {
        capacity: capacity.to_vec(),
        domains: vec![neighbourhood, location],
    };
    let vm = |shape, host| Vm { shape, initial: Some(HostIx(host)), allowed: None };
    let resource = |name: &str, transient| Resource { name: name.into(), transient };
    Problem {
        resources: vec![resource("cpu", false), resource("disk", true)],
        levels: vec!["neighbourhood".into(), "location".into()],
        hosts: vec![host([10, 10], 0, 0), host([10, 10], 0, 1), host([20, 12], 1, 1)],
        shapes: vec![vec![4, 4], vec![3, 2], vec![5, 6], vec![1, 1]],
        vms: vec![vm(0, 0), vm(1, 1), vm(2, 0), vm(3, 1)],
        groups: vec![vec![VmIx(0), VmIx(1)], vec![VmIx(2), VmIx(3)]],
        rules: vec![
            Rule::Apart { group: 0, scope: Scope::Host },
            Rule::Apart { group: 1, scope: Scope::Host },
            Rule::Spread { group: 0, scope: Scope::Level(1), domains: 2 },
            Rule::Dependency { group: 0, needs: 1, scope: Scope::Level(0) },
        ],
        standing: Vec::new(),
        fabrics: vec![],
        goals: vec![
            Goal::Overload { weights: vec![10, 1], safe: vec![vec![5, 8], vec![6, 6], vec![8, 8]] },
            Goal::Stranded { plenty: 0, scarce: 1, target: 2, weight: 3 },
            Goal::Moves {
                vms: vec![7, 7, 7, 7],
                between: Some(Distances { weight: 2, pairs: vec![0, 1, 2, 1, 0, 3, 2, 3, 0] }),
                busiest: Some(Busiest { weight: 100, group_of: vec![0, 0, 1, 1] }),
            },
        ],
    }
}

#[test]
fn machine_reassignment_is_read_as_the_challenge_means_it() {
    let problem = reassignment();
    let model = Model::compile(&problem).unwrap();
    // Used: (9, 10), (4, 3), (0, 0). Above safe: cpu 4, disk 2. Free: (1, 0), (6, 7), (20, 12),
    // so that 2, 5 and 28 are stranded.
    let initial = State::new(&model, &[0, 1, 0, 1]);
    assert!(initial.is_feasible());
    assert_eq!(initial.objective(), 10 * 4 + 2 + 3 * (2 + 5 + 28));
    // VM 2 goes to host 2: used (4, 4), (4, 3), (5, 6), stranded 2 * 6 - 6, 5 and 2 * 15 - 6.
    assert!(initial.may_shift(2, 2));
    assert_eq!(initial.shift_delta(2, 2), 3 * (6 + 5 + 24) + 7 + 2 * 2 + 100 - initial.objective());
    // The loads do not count what VM 2 left behind, but the room does: host 0 has 4 of disk in
    // use and 6 held, so that nothing else fits while VM 2 itself may come home.
    let mut moved = initial.clone();
    moved.shift(2, 2);
    assert_eq!(verified(&problem, moved.assignment()), Some(moved.objective()));
    assert!(!moved.fits(3, 0));
    assert!(moved.may_shift(2, 0));
    // Two of a service on one host; one location less than two; a neighbourhood without service 1.
    assert!(moved.fits(0, 1) && !moved.rules_allow(&[moved.shift_of(0, 1)]));
    assert!(initial.fits(0, 2) && !initial.rules_allow(&[initial.shift_of(0, 2)]));
    let alone = State::new(&model, &[0, 1, 0, 1]);
    assert!(alone.fits(1, 2) && !alone.rules_allow(&[alone.shift_of(1, 2)]));
    assert!(moved.may_shift(1, 2));
    // Bound: cpu 13 against 19 safe, disk 13 against 22; free 27 and 19 in total.
    assert_eq!(model.bound(), 3 * (2 * 27 - 19));
}

/// A random problem with the VMs somewhere feasible, if a few tries find such a place.
fn running(dice: &mut Dice, limits: Limits) -> Option<(Problem, Vec<u32>)> {
    let mut problem = random(dice, limits);
    let hosts: Vec<u32> =
        problem.vms.iter().map(|_| dice.row(problem.hosts.len()) as u32).collect();
    for (vm, &host) in problem.vms.iter_mut().zip(&hosts) {
        vm.initial = Some(HostIx(host));
    }
    verified(&problem, &hosts).map(|_| (problem, hosts))
}

fn rebalanced(engine: Rebalance, problem: &Problem, start: &[u32]) -> (i64, Vec<u32>) {
    let model = Model::compile(problem).unwrap();
    let task = Task::new(problem, &model, 5).from(start);
    let outcome = engine.solve(task, &mut Budget::steps(40_000));
    assert!(Some(outcome.bound) <= outcome.objective);
    (outcome.objective.unwrap(), outcome.assignment.unwrap())
}

#[test]
fn rebalancing_is_accepted_never_worse_and_the_same_on_any_number_of_threads() {
    let mut dice = Dice::new(4);
    let (mut tried, mut better) = (0, 0);
    while tried < 150 {
        let Some((problem, start)) = running(&mut dice, LIMITS) else { continue };
        tried += 1;
        let before = verified(&problem, &start).unwrap();
        let alone = rebalanced(Rebalance { threads: 1, ..Rebalance::default() }, &problem, &start);
        let both = rebalanced(Rebalance { threads: 2, ..Rebalance::default() }, &problem, &start);
        assert_eq!(alone, both);
        assert_eq!(verified(&problem, &both.1), Some(both.0), "{problem:?}");
        assert!(both.0 <= before);
        better += u32::from(both.0 < before);
    }
    assert!(better > 50, "only {better} of {tried} got any better");
}

#[test]
fn every_setting_of_rebalancing_changes_the_search() {
    let mut dice = Dice::new(6);
    let limits = Limits { hosts: 12, vms: 40, groups: 4, rules: 2 };
    let plain = Rebalance::default();
    let settings = [
        Rebalance { start: 100.0, ..plain },
        Rebalance { pilot: 0.3, ..plain },
        Rebalance { even: 0.1, ..plain },
        Rebalance { gate: 100.0, ..plain },
        Rebalance { home: 1000.0, ..plain },
    ];
    let mut differ = [0; 5];
    for _ in 0..4_000 {
        let Some((problem, start)) = running(&mut dice, limits) else { continue };
        let usual = rebalanced(plain, &problem, &start).1;
        for (differ, setting) in differ.iter_mut().zip(settings) {
            *differ += u32::from(rebalanced(setting, &problem, &start).1 != usual);
        }
        if differ.iter().all(|&times| times > 0) {
            return;
        }
    }
    panic!("some settings change nothing: {differ:?}");
}
