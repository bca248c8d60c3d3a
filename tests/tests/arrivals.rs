//! The problem of arrivals alone against the verifier, and against the problem with everybody in it;
//! and goals one by one.

use cluster::{ConstraintRule, CpuUnit, GoalKind, HostIx, HostState, Placed, Snapshot, Vm};
use fixture::Dice;
use fixture::assignments::{Limits, random};
use fixture::small::{self, Size};
use solver::assignment::{Ask, Model, State, arrivals_only, from_fleet};
use solver::objective::{Setting, Wish, add_goals};
use std::sync::Arc;

fn every_assignment(hosts: usize, vms: usize) -> impl Iterator<Item = Vec<HostIx>> {
    (0..(hosts as u64).pow(vms as u32)).map(move |number| {
        let digit = |row: u32| (number / (hosts as u64).pow(row) % hosts as u64) as u32;
        (0..vms as u32).map(|row| HostIx(digit(row))).collect()
    })
}

/// A small fleet whose last VMs have yet to come.
fn scene(dice: &mut Dice) -> (Snapshot, Vec<Arc<Vm>>) {
    let size = Size { hosts: dice.between(2, 4) as usize, vms: dice.between(3, 9) as usize };
    let mut snapshot = small::cluster(dice, size);
    snapshot.constraints = small::constraints(dice);
    snapshot.constraints.retain(|constraint| {
        !matches!(constraint.rule, ConstraintRule::Network(_) | ConstraintRule::Links(_))
    });
    for host in &mut snapshot.hosts {
        let host = Arc::make_mut(host);
        if dice.chance(800) {
            (host.state, host.taints) = (HostState::Available, Vec::new());
        }
    }
    let new = dice.between(1, 3) as usize;
    let first = snapshot.placed.len() - new.min(snapshot.placed.len());
    let arrivals = snapshot.placed.split_off(first).into_iter().map(|placed| {
        let mut vm = Vm::clone(&placed.vm);
        vm.cpu_unit = CpuUnit::Raw;
        if dice.chance(700) {
            (vm.selectors, vm.datastores, vm.pool) = (Vec::new(), Vec::new(), None);
        }
        Arc::new(vm)
    });
    let arrivals = arrivals.collect();
    (snapshot, arrivals)
}

/// Whether every arrival would be taken by its host if it came last.
fn is_right(snapshot: &Snapshot, vms: &[Arc<Vm>], hosts: &[HostIx]) -> bool {
    let host = |row: usize| &snapshot.hosts[hosts[row].0 as usize];
    (0..vms.len()).all(|last| {
        let mut before = snapshot.clone();
        for row in (0..vms.len()).filter(|&row| row != last) {
            before.placed.push(Placed {
                vm: Arc::clone(&vms[row]),
                host: host(row).id.clone(),
                committed: verify::demand_on(host(row), &vms[row]),
                bindings: None,
                over_capacity: false,
                adopted: false,
                held: false,
            });
        }
        verify::violations(&before, &vms[last], &host(last).id).is_empty()
    })
}

#[test]
fn arrivals_go_where_the_verifier_lets_each_come_last() {
    let mut dice = Dice::new(21);
    let (mut right, mut missed, mut folded) = (0, 0, 0);
    for _ in 0..2_000 {
        let (snapshot, vms) = scene(&mut dice);
        let fleet = arrivals_only(&snapshot, &vms).unwrap();
        let kept = fleet.vms.len() - vms.len();
        folded += snapshot.placed.len() - kept;
        let homes: Vec<HostIx> =
            fleet.problem.vms[..kept].iter().map(|vm| vm.initial.expect("a home")).collect();
        for hosts in every_assignment(snapshot.hosts.len(), vms.len()) {
            let rows: Vec<HostIx> = homes.iter().chain(&hosts).copied().collect();
            let judged = verify::assignment(&fleet.problem, &rows);
            let expected = is_right(&snapshot, &vms, &hosts);
            assert!(judged.is_err() || expected, "{hosts:?} {snapshot:?} {vms:?} {fleet:?}");
            right += u32::from(expected);
            // Those that run and break a limit or a minimum already keep everybody out.
            missed += u32::from(expected && judged.is_err());
        }
    }
    assert!(folded > 3_000, "{folded} folded");
    assert!(right > 800 && missed * 10 < right, "{missed} of {right} missed");
}

#[test]
fn goals_count_those_that_are_no_rows_as_if_they_were() {
    let mut dice = Dice::new(22);
    let wishes = GoalKind::ALL.map(|kind| Wish { kind, weight: 1 });
    let mut compared = 0;
    for _ in 0..300 {
        let (mut snapshot, vms) = scene(&mut dice);
        // What hosts have beyond their room, and VMs that know no host's speed, differ by row.
        snapshot.constraints.clear();
        for placed in &mut snapshot.placed {
            let vm = Arc::make_mut(&mut placed.vm);
            (vm.cpu_unit, placed.over_capacity) = (CpuUnit::Raw, false);
            placed.committed = vm.demand.clone();
        }
        let setting = Setting { keep_on: 1, rack_limit_watts: 150, ..Setting::default() };
        let ask = Ask { snapshot: &snapshot, arrivals: &vms, stays: &|_| true, may_stay: true };
        let mut whole = from_fleet(ask).unwrap();
        let mut part = arrivals_only(&snapshot, &vms).unwrap();
        let over = |fleet: &solver::assignment::Fleet| {
            let hosts = fleet.problem.hosts.iter().zip(&snapshot.hosts);
            hosts.enumerate().any(|(row, (_, host))| {
                let dims = snapshot.dimensions.iter();
                dims.enumerate().any(|(resource, dim)| {
                    fleet.problem.whole(row, resource) != host.allocatable(dim)
                })
            })
        };
        let by_whole = add_goals(&mut whole, &snapshot, &vms, &wishes, &setting).unwrap();
        let by_part = add_goals(&mut part, &snapshot, &vms, &wishes, &setting).unwrap();
        if over(&whole) || over(&part) {
            continue;
        }
        let homes = |fleet: &solver::assignment::Fleet| -> Vec<u32> {
            fleet.problem.vms.iter().filter_map(|vm| vm.initial).map(|host| host.0).collect()
        };
        let (all, some) = (homes(&whole), homes(&part));
        let judges =
            (by_whole.judge(&whole.problem).unwrap(), by_part.judge(&part.problem).unwrap());
        let mut first: Option<Vec<i64>> = None;
        for hosts in every_assignment(snapshot.hosts.len(), vms.len()).take(20) {
            let hosts: Vec<u32> = hosts.iter().map(|host| host.0).collect();
            let a = judges.0.values(&[all.clone(), hosts.clone()].concat());
            let b = judges.1.values(&[some.clone(), hosts].concat());
            // Latency of those that run, and groups without arrivals, are left out of the part.
            let differ: Vec<i64> = a.iter().zip(&b).map(|(a, b)| a.value - b.value).collect();
            match &first {
                None => first = Some(differ),
                Some(first) => {
                    let near = differ.iter().zip(first).all(|(a, b)| (a - b).abs() <= 1);
                    assert!(near, "{differ:?} {first:?} {snapshot:?} {vms:?}");
                    compared += 1;
                }
            }
        }
    }
    assert!(compared > 500, "{compared}");
}

#[test]
fn each_goal_is_priced_by_itself_as_the_verifier_does() {
    let seed = 23;
    let mut dice = Dice::new(seed);
    let limits = Limits { hosts: 5, vms: 8, groups: 4, rules: 3 };
    let worths = |problem: &cluster::assignment::Problem, hosts: &[u32]| {
        let hosts: Vec<HostIx> = hosts.iter().copied().map(HostIx).collect();
        verify::assignment(problem, &hosts).ok().map(|worth| worth.goals)
    };
    let mut steps = [0; 3];
    for number in 0..6_000 {
        let problem = random(&mut dice, limits);
        let model = Model::compile(&problem).unwrap();
        let hosts: Vec<u32> = (0..model.vms()).map(|_| dice.row(model.hosts()) as u32).collect();
        let Some(before) = worths(&problem, &hosts) else { continue };
        let context = || format!("seed {seed}, problem {number}: {problem:?} {hosts:?}");
        let mut state = State::new(&model, &hosts);
        assert_eq!(state.worths(), before, "{}", context());
        for (goal, &worth) in before.iter().enumerate() {
            let bound = model.bound_of(goal);
            assert!(bound <= worth, "goal {goal}: {bound} {worth} {}", context());
            let worst = problem.worst(&problem.goals[goal]);
            assert!(u128::try_from(worth).unwrap() <= worst, "goal {goal} {}", context());
        }
        let (a, b) = (dice.row(model.vms()) as u32, dice.row(model.vms()) as u32);
        let to = dice.row(model.hosts()) as u32;
        let mut told = vec![0; before.len()];
        if state.may_shift(a, to) && state.host_of(a) != to {
            state.shift_deltas(a, to, &mut told);
            state.shift(a, to);
            steps[0] += 1;
        } else if state.host_of(a) != state.host_of(b) && state.may_swap(a, b) {
            state.swap_deltas(a, b, &mut told);
            state.swap(a, b);
            steps[1] += 1;
        }
        let after = worths(&problem, state.assignment()).unwrap();
        let found: Vec<i64> =
            after.iter().zip(&before).map(|(after, before)| after - before).collect();
        assert_eq!(told, found, "{}", context());
        let host = state.host_of(a);
        state.remove(a);
        let before = state.worths();
        let mut told = vec![0; before.len()];
        state.place_deltas(a, host, &mut told);
        let sum: i64 = told.iter().sum();
        assert_eq!(sum, state.place_delta(a, host), "{}", context());
        state.place(a, host);
        let found: Vec<i64> =
            before.iter().zip(&told).map(|(before, told)| before + told).collect();
        assert_eq!(found, after, "{}", context());
        steps[2] += 1;
    }
    assert!(steps.iter().all(|&steps| steps > 100), "{steps:?}");
}
