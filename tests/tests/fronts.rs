//! Fronts of whole assignments: every point is allowed, worth what it says and dominated by no
//! other; the same front for a seed on any number of threads.

use cluster::HostIx;
use cluster::assignment::{Goal, Host, Power, Problem, Resource, Rule, Scope, Vm};
use fixture::Dice;
use fixture::assignments::{Limits, random};
use solver::assignment::{Budget, Model};
use solver::engines::nsga2::Front;
use solver::engines::{Engine, Greedy, Nsga2, Start, Task};

/// A fleet half full that runs somewhere already, not well.
fn running(hosts: u64, vms: usize, seed: u64) -> Problem {
    let mut dice = Dice::new(seed);
    let resource = |name: &str| Resource { name: name.into(), transient: false };
    let mut problem = Problem {
        resources: vec![resource("cpu"), resource("memory")],
        levels: vec!["rack".into()],
        shapes: (0..5).map(|_| vec![dice.between(2, 10), dice.between(2, 10)]).collect(),
        ..Problem::default()
    };
    let mut powers = Vec::new();
    for row in 0..hosts {
        let room = 12 * vms as u64 / hosts + 10;
        let capacity = vec![room * dice.between(80, 120) / 100, room * dice.between(80, 120) / 100];
        problem.hosts.push(Host { capacity, domains: vec![row as u32 % 3] });
        powers.push(Power { idle: dice.between(500, 900), span: dice.between(800, 1_200) });
    }
    for _ in 0..vms {
        problem.vms.push(Vm { shape: dice.below(5) as u32, initial: None, allowed: None });
    }
    let rows: Vec<cluster::VmIx> = (0..vms as u32).map(cluster::VmIx).collect();
    problem.groups = rows.chunks(3).take(vms / 9).map(<[_]>::to_vec).collect();
    let apart = |group| Rule::Apart { group, scope: Scope::Host };
    problem.rules = (0..problem.groups.len() as u32).map(apart).collect();
    problem.rules.push(Rule::Spread { group: 0, scope: Scope::Level(0), domains: 2 });
    problem.goals = vec![Goal::Energy { resource: 0, hosts: powers }, Goal::Peak { weight: 3_000 }];
    let model = Model::compile(&problem).unwrap();
    let task = Task::new(&problem, &model, seed);
    let anywhere = Start::Random.assignment(task, &Budget::steps(1 << 40)).unwrap();
    for (vm, &host) in problem.vms.iter_mut().zip(&anywhere) {
        vm.initial = Some(HostIx(host));
    }
    problem
}

fn front(problem: &Problem, nsga2: Nsga2, seed: u64) -> Front<3> {
    let model = Model::compile(problem).unwrap();
    let task = Task::new(problem, &model, seed);
    nsga2.front(task, &mut Budget::steps(1 << 40))
}

/// Cost, spread and moves from the assignment alone, or nothing if the verifier refuses it.
fn naive(problem: &Problem, hosts: &[u32]) -> Option<[f64; 3]> {
    let rows: Vec<HostIx> = hosts.iter().copied().map(HostIx).collect();
    let worth = verify::assignment(problem, &rows).ok()?;
    let counted = |goal: &&Goal| !matches!(goal, Goal::Peak { .. } | Goal::Moves { .. });
    let goals = problem.goals.iter().zip(&worth.goals).filter(|(goal, _)| counted(goal));
    let cost: i64 = goals.map(|(_, worth)| worth).sum();
    let mut used = vec![vec![0u64; problem.resources.len()]; problem.hosts.len()];
    let mut moved = 0;
    for ((vm, at), &host) in problem.vms.iter().zip(0..).zip(hosts) {
        moved += u32::from(vm.initial.is_some_and(|initial| initial.0 != host));
        let demand = problem.demand(cluster::VmIx(at));
        used[host as usize].iter_mut().zip(demand).for_each(|(used, demand)| *used += demand);
    }
    let on = (0..problem.hosts.len()).filter(|&host| hosts.contains(&(host as u32)));
    let fills: Vec<f64> = on
        .map(|host| {
            let shares = used[host].iter().zip(&problem.hosts[host].capacity);
            let shares = shares.filter(|(_, capacity)| **capacity > 0);
            shares.map(|(&used, &capacity)| used as f64 / capacity as f64).fold(0.0, f64::max)
        })
        .collect();
    let mean = fills.iter().sum::<f64>() / fills.len().max(1) as f64;
    let squares: f64 = fills.iter().map(|fill| (fill - mean) * (fill - mean)).sum();
    let spread = (squares / fills.len().max(1) as f64).sqrt();
    Some([cost as f64, spread, moved.into()])
}

#[track_caller]
fn check(problem: &Problem, front: &Front<3>, most: usize) {
    assert!(front.points.len() <= most);
    for point in &front.points {
        let values = naive(problem, &point.assignment).expect("accepted");
        // Utilisation is kept in parts of a million, and the root of nearly nothing is coarser.
        let near = (values[1] - point.values[1]).abs() < 1e-4;
        assert!(near, "{values:?} {:?}", point.values);
        assert_eq!([values[0], values[2]], [point.values[0], point.values[2]]);
    }
    for (row, one) in front.points.iter().enumerate() {
        for (at, other) in front.points.iter().enumerate() {
            let no_worse = one.values.iter().zip(&other.values).all(|(a, b)| a <= b);
            assert!(row == at || !no_worse, "{:?} {:?}", one.values, other.values);
        }
    }
}

#[test]
fn points_are_accepted_told_rightly_and_dominated_by_none() {
    let nsga2 = Nsga2 { population: 40, generations: Some(40), ..Nsga2::default() };
    for seed in 1..=3 {
        let problem = running(20, 120, seed);
        let found = front(&problem, nsga2, seed);
        check(&problem, &found, 40);
        assert_eq!(found.evaluations, 1_600);
        assert!(found.priced > 1_600 && found.hypervolume > 0.0);
        let stay = found.points.iter().find(|point| point.values[2] == 0.0).expect("stays");
        let initial: Vec<u32> = problem.vms.iter().map(|vm| vm.initial.unwrap().0).collect();
        assert_eq!(stay.assignment, initial);
        // Somebody is better than greed by cost, and by far more even than what runs.
        let model = Model::compile(&problem).unwrap();
        let task = Task::new(&problem, &model, seed);
        let greedy = Greedy.solve(task, &mut Budget::steps(10_000)).assignment.unwrap();
        let greedy = naive(&problem, &greedy).unwrap();
        let least = |at: usize| {
            found.points.iter().map(|point| point.values[at]).fold(f64::INFINITY, f64::min)
        };
        assert!(least(0) <= greedy[0], "{} {}", least(0), greedy[0]);
        assert!(least(1) < stay.values[1] / 2.0);
    }
}

#[test]
fn a_front_is_the_same_for_a_seed_on_any_number_of_threads() {
    let problem = running(20, 120, 4);
    let found = |threads, seed| {
        let nsga2 = Nsga2 { threads, generations: Some(15), ..Nsga2::default() };
        let found = front(&problem, nsga2, seed);
        let points = found.points.into_iter().map(|point| point.assignment);
        (points.collect::<Vec<_>>(), found.evaluations, found.priced)
    };
    assert_eq!(found(1, 1), found(2, 1));
    assert_eq!(found(1, 1), found(3, 1));
    assert_ne!(found(1, 1), found(1, 2));
}

#[test]
fn generations_and_every_other_setting_make_a_difference() {
    let problem = running(20, 120, 5);
    let usual = Nsga2 { generations: Some(10), population: 30, ..Nsga2::default() };
    let others = [
        Nsga2 { generations: Some(60), ..usual },
        Nsga2 { population: 31, ..usual },
        Nsga2 { tries: 0, ..usual },
        Nsga2 { exchanged: 5, ..usual },
        Nsga2 { looked_at: 2, ..usual },
        Nsga2 { ways: 2, ..usual },
    ];
    let volume = |nsga2: Nsga2| front(&problem, nsga2, 1).hypervolume;
    let first = volume(usual);
    for other in others {
        assert_ne!(volume(other), first, "{other:?}");
    }
    assert!(volume(others[0]) > first, "more generations dominate more");
}

#[test]
fn small_problems_of_all_kinds_have_fronts_that_are_accepted() {
    let limits = Limits { hosts: 4, vms: 5, groups: 3, rules: 4 };
    let mut dice = Dice::new(9);
    let mut with_points = 0;
    for seed in 0..300 {
        let problem = random(&mut dice, limits);
        let nsga2 = Nsga2 { generations: Some(8), population: 6, ..Nsga2::default() };
        let found = front(&problem, nsga2, seed);
        check(&problem, &found, 6);
        with_points += usize::from(!found.points.is_empty());
    }
    assert!(with_points > 100, "{with_points}");
}
