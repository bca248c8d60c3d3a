//! What engines promise of limits: the same answer for the same steps on any number of threads,
//! and an end soon after they are cancelled, with the best answer until then.

use cluster::HostIx;
use cluster::assignment::{Goal, Host, Power, Problem, Resource, Rule, Scope, Vm};
use fixture::Dice;
use ilp::{Auto, Ilp, Tuning};
use solver::assignment::{Budget, Deadline, Model, Outcome};
use solver::engines::{
    Annealing, Csp, Engine, Genetic, Greedy, Lns, Nsga2, Start, StartError, Swarm, Task,
};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

/// A fleet two thirds full, with racks, groups that keep apart and a group that spreads.
fn fleet(hosts: u64, vms: usize, seed: u64) -> Problem {
    let mut dice = Dice::new(seed);
    let resource = |name: &str| Resource { name: name.into(), transient: false };
    let mut problem = Problem {
        resources: vec![resource("cpu"), resource("disk")],
        levels: vec!["rack".into()],
        shapes: (0..6).map(|_| vec![dice.between(2, 12), dice.between(2, 12)]).collect(),
        ..Problem::default()
    };
    let mean = |at: usize| problem.shapes.iter().map(|shape| shape[at]).sum::<u64>() / 6;
    let needed = [mean(0) * vms as u64, mean(1) * vms as u64];
    let mut powers = Vec::new();
    for row in 0..hosts {
        let capacity = needed.map(|needed| needed * dice.between(120, 200) / 100 / hosts + 12);
        problem.hosts.push(Host { capacity: capacity.to_vec(), domains: vec![row as u32 % 5] });
        powers.push(Power { idle: dice.between(500, 900), span: dice.between(800, 1_200) });
    }
    for _ in 0..vms {
        problem.vms.push(Vm { shape: dice.below(6) as u32, initial: None, allowed: None });
    }
    let rows: Vec<cluster::VmIx> = (0..vms as u32).map(cluster::VmIx).collect();
    problem.groups = rows.chunks(4).take(vms / 8).map(<[_]>::to_vec).collect();
    let apart = |group| Rule::Apart { group, scope: Scope::Host };
    problem.rules = (0..problem.groups.len() as u32).map(apart).collect();
    problem.rules.push(Rule::Spread { group: 0, scope: Scope::Level(0), domains: 3 });
    problem.goals = vec![Goal::Energy { resource: 0, hosts: powers }, Goal::Peak { weight: 2_000 }];
    problem
}

fn solved(problem: &Problem, engine: &dyn Engine, seed: u64, budget: &mut Budget) -> Outcome {
    let model = Model::compile(problem).unwrap();
    engine.solve(Task::new(problem, &model, seed), budget)
}

#[track_caller]
fn check(problem: &Problem, outcome: &Outcome) {
    let hosts = outcome.assignment.as_ref().expect("an assignment");
    let hosts: Vec<HostIx> = hosts.iter().copied().map(HostIx).collect();
    let worth = verify::assignment(problem, &hosts).expect("accepted");
    assert_eq!(Some(worth.objective()), outcome.objective);
    assert!(outcome.bound <= worth.objective());
}

#[test]
fn steps_give_the_same_answer_on_any_number_of_threads() {
    let problem = fleet(20, 120, 1);
    let lns = |threads| Lns { threads, ..Lns::default() };
    let auto = |threads| Auto { threads, timed: false, tuning: Tuning::default() };
    let nsga2 = |threads| Nsga2 { threads, ..Nsga2::default() };
    // An odd number, which two searches cannot share evenly.
    let steps = 3_001;
    for seed in 1..=3 {
        let engines: [[Box<dyn Engine>; 3]; 6] = [
            [1, 2, 3].map(|threads| Box::new(lns(threads)) as Box<dyn Engine>),
            [1, 2, 3].map(|threads| Box::new(auto(threads)) as Box<dyn Engine>),
            [1, 2, 3].map(|threads| Box::new(nsga2(threads)) as Box<dyn Engine>),
            // These search on one thread, however many there are.
            [1, 2, 3].map(|_| Box::new(Annealing::default()) as Box<dyn Engine>),
            [1, 2, 3].map(|_| Box::new(Genetic::default()) as Box<dyn Engine>),
            [1, 2, 3].map(|_| Box::new(Swarm::default()) as Box<dyn Engine>),
        ];
        for engines in engines {
            let outcomes =
                engines.map(|engine| solved(&problem, &*engine, seed, &mut Budget::steps(steps)));
            check(&problem, &outcomes[0]);
            // Annealing looks at its budget now and then only.
            if outcomes[0].engine != "annealing" {
                assert_eq!(outcomes[0].steps, steps, "{}", outcomes[0].engine);
            }
            assert_eq!(outcomes[0].stop_reason.as_str(), "steps");
            for other in &outcomes[1..] {
                assert_eq!(other.assignment, outcomes[0].assignment, "{}", other.engine);
                assert_eq!(other.bound, outcomes[0].bound);
                assert_eq!(other.steps, outcomes[0].steps);
            }
        }
    }
    let by_seed =
        [1, 2].map(|seed| solved(&problem, &lns(1), seed, &mut Budget::steps(steps)).assignment);
    assert_ne!(by_seed[0], by_seed[1]);
}

#[test]
fn more_steps_are_better_than_greed() {
    let problem = fleet(20, 120, 2);
    let greedy = solved(&problem, &Greedy, 1, &mut Budget::steps(10_000));
    let lns = solved(&problem, &Lns::default(), 1, &mut Budget::steps(5_000));
    check(&problem, &lns);
    assert!(lns.objective < greedy.objective, "{:?} {:?}", lns.objective, greedy.objective);
}

#[test]
fn every_setting_of_the_search_changes_it() {
    let problem = fleet(20, 120, 3);
    let usual = Lns::default();
    let others = [
        Lns { start_heat: usual.start_heat * 10.0, ..usual },
        Lns { end_heat: usual.end_heat * 20.0, ..usual },
        Lns { softness: 0.0, ..usual },
        Lns { most_vms: 3, ..usual },
        Lns { most_hosts: 5, ..usual },
    ];
    let found = |lns: Lns| solved(&problem, &lns, 1, &mut Budget::steps(2_000)).assignment;
    let first = found(usual);
    for other in others {
        assert_ne!(found(other), first, "{other:?}");
    }
}

fn started(problem: &Problem, start: Start, seed: u64) -> Result<Vec<u32>, StartError> {
    let model = Model::compile(problem).unwrap();
    start.assignment(Task::new(problem, &model, seed), &Budget::steps(1 << 40))
}

#[test]
fn a_start_is_allowed_drawn_by_the_seed_and_kept_if_there_is_no_time() {
    let problem = fleet(20, 120, 3);
    let random = |seed| started(&problem, Start::Random, seed).unwrap();
    assert_eq!(random(1), random(1));
    assert_ne!(random(1), random(2));
    let greedy = started(&problem, Start::Greedy, 1).unwrap();
    let model = Model::compile(&problem).unwrap();
    for start in [random(1), random(2), greedy] {
        let task = Task::new(&problem, &model, 1).from(&start);
        for engine in engines().into_iter().filter(|engine| engine.name() != "auto") {
            let outcome = engine.solve(task, &mut Budget::steps(0));
            if outcome.assignment.is_some() {
                check(&problem, &outcome);
            }
        }
        let outcome = Genetic::default().solve(task, &mut Budget::steps(0));
        assert_eq!(outcome.assignment, Some(start));
    }
}

#[test]
fn what_runs_now_is_a_start_if_it_is_known_and_allowed() {
    let mut problem = fleet(20, 120, 3);
    assert_eq!(started(&problem, Start::Current, 1), Err(StartError::NoCurrent));
    let greedy = started(&problem, Start::Greedy, 1).unwrap();
    for (vm, &host) in problem.vms.iter_mut().zip(&greedy) {
        vm.initial = Some(HostIx(host));
    }
    assert_eq!(started(&problem, Start::Current, 1), Ok(greedy));
    problem.vms.iter_mut().for_each(|vm| vm.initial = Some(HostIx(0)));
    assert_eq!(started(&problem, Start::Current, 1), Err(StartError::CurrentBroken));
    problem.hosts.iter_mut().for_each(|host| host.capacity[0] = 1);
    assert_eq!(started(&problem, Start::Random, 1), Err(StartError::NoRandom));
    assert_eq!(started(&problem, Start::Greedy, 1), Err(StartError::NoGreedy));
}

#[test]
fn every_search_comes_from_chance_to_better_than_greed() {
    let problem = fleet(30, 240, 6);
    let greedy = solved(&problem, &Greedy, 1, &mut Budget::steps(10_000)).objective;
    let model = Model::compile(&problem).unwrap();
    let engines: [(Box<dyn Engine>, u64); 5] = [
        (Box::new(Annealing::default()), 400_000),
        (Box::new(Genetic::default()), 6_000),
        (Box::new(Swarm::default()), 3_000),
        (Box::new(Nsga2::default()), 10_000),
        (Box::new(Lns::default()), 4_000),
    ];
    for seed in 1..=2 {
        let start = started(&problem, Start::Random, seed).unwrap();
        let task = Task::new(&problem, &model, seed).from(&start);
        for (engine, steps) in &engines {
            let outcome = engine.solve(task, &mut Budget::steps(*steps));
            check(&problem, &outcome);
            let name = engine.name();
            assert!(outcome.objective < greedy, "{name}: {:?}, {greedy:?}", outcome.objective);
        }
    }
}

#[test]
fn every_setting_of_searches_with_many_placements_changes_them() {
    let problem = fleet(20, 120, 3);
    let (genetic, swarm, nsga2) = (Genetic::default(), Swarm::default(), Nsga2::default());
    let others: [Box<dyn Engine>; 18] = [
        Box::new(genetic),
        Box::new(Genetic { population: 5, ..genetic }),
        Box::new(Genetic { tries: 10, ..genetic }),
        Box::new(Genetic { exchanged: 1, ..genetic }),
        Box::new(Genetic { looked_at: 3, ..genetic }),
        Box::new(swarm),
        Box::new(Swarm { particles: 5, ..swarm }),
        Box::new(Swarm { inertia: 0.0, ..swarm }),
        Box::new(Swarm { own: 0, ..swarm }),
        Box::new(Swarm { shared: 0, ..swarm }),
        Box::new(Swarm { patience: 2, ..swarm }),
        Box::new(Swarm { tries: 10, ..swarm }),
        Box::new(Swarm { looked_at: 3, ..swarm }),
        Box::new(nsga2),
        Box::new(Nsga2 { population: 10, ..nsga2 }),
        Box::new(Nsga2 { tries: 90, ..nsga2 }),
        Box::new(Nsga2 { exchanged: 9, ..nsga2 }),
        Box::new(Nsga2 { ways: 1, ..nsga2 }),
    ];
    let mut seen: Vec<(String, Option<Vec<u32>>)> = Vec::new();
    for engine in &others {
        let outcome = solved(&problem, &**engine, 1, &mut Budget::steps(1_000));
        let found = (outcome.engine, outcome.assignment);
        assert!(!seen.contains(&found), "{} number {}", found.0, seen.len());
        seen.push(found);
    }
}

/// Every engine, with a budget that only being cancelled ends.
fn engines() -> Vec<Box<dyn Engine + Send>> {
    let auto = |threads| Auto { threads, timed: true, tuning: Tuning::default() };
    vec![
        Box::new(Annealing::default()),
        Box::new(Lns { threads: 1, ..Lns::default() }),
        Box::new(Lns { threads: 2, ..Lns::default() }),
        Box::new(Genetic::default()),
        Box::new(Swarm::default()),
        Box::new(Nsga2 { threads: 1, ..Nsga2::default() }),
        Box::new(Nsga2 { threads: 2, ..Nsga2::default() }),
        Box::new(Csp::default()),
        Box::new(Ilp { threads: 1 }),
        Box::new(auto(1)),
        Box::new(auto(2)),
    ]
}

/// Runs an engine and cancels it after a while.
fn cancelled(problem: Problem, engine: Box<dyn Engine + Send>, after: Duration) -> Outcome {
    let name = engine.name();
    let deadline = Arc::new(Deadline::default());
    let told = Arc::clone(&deadline);
    let (answer, answered) = channel();
    if after.is_zero() {
        deadline.cancel();
    }
    std::thread::spawn(move || {
        let outcome = solved(&problem, &*engine, 1, &mut Budget::until(told));
        let _ = answer.send(outcome);
    });
    std::thread::sleep(after);
    deadline.cancel();
    // Far more than any engine needs to look at its budget, far less than a search to the end.
    let outcome = answered.recv_timeout(Duration::from_secs(20));
    outcome.unwrap_or_else(|_| panic!("{name} goes on after it was cancelled"))
}

#[test]
fn every_engine_ends_when_it_is_cancelled_with_what_it_has() {
    // Large enough that nothing is proven meanwhile.
    let problem = fleet(60, 600, 4);
    for engine in engines() {
        let name = engine.name();
        let outcome = cancelled(problem.clone(), engine, Duration::from_millis(300));
        assert_eq!(outcome.stop_reason.as_str(), "cancelled", "{name}");
        if !["csp", "ilp"].contains(&name) || outcome.assignment.is_some() {
            check(&problem, &outcome);
        }
    }
}

#[test]
fn an_engine_that_is_cancelled_before_it_begins_proves_nothing() {
    let problem = fleet(60, 600, 4);
    for engine in engines() {
        let name = engine.name();
        let outcome = cancelled(problem.clone(), engine, Duration::ZERO);
        assert_eq!(outcome.stop_reason.as_str(), "cancelled", "{name}");
        assert!(!outcome.is_infeasible(), "{name}");
    }
}

#[test]
fn the_whole_is_one_programme_up_to_a_number_of_columns() {
    let problem = fleet(8, 40, 5);
    for (whole_columns, expected) in [(1_000, "one programme"), (10, "the same")] {
        let tuning = Tuning { whole_columns, ..Tuning::default() };
        let auto = Box::new(Auto { threads: 2, timed: true, tuning });
        let outcome = cancelled(problem.clone(), auto, Duration::from_millis(500));
        check(&problem, &outcome);
        assert!(outcome.engine.contains(expected), "{}", outcome.engine);
    }
}
