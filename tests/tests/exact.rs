//! Engines that prove, against every assignment there is.

use cluster::HostIx;
use cluster::assignment::{Goal, Problem};
use fixture::Dice;
use fixture::assignments::{Limits, random};
use ilp::{Auto, Ilp, Tuning};
use solver::assignment::{Budget, Model, Outcome};
use solver::engines::{
    Annealing, Csp, Engine, Genetic, Greedy, Lns, Nsga2, Requirement, Swarm, Task, conflict,
};
use std::collections::BTreeMap;

const LIMITS: Limits = Limits { hosts: 4, vms: 5, groups: 3, rules: 4 };
const INSTANCES: usize = 1_500;

/// The best objective of all assignments that the verifier accepts.
fn best_of_all(problem: &Problem) -> Option<i64> {
    let (hosts, vms) = (problem.hosts.len() as u32, problem.vms.len());
    let mut assignment = vec![HostIx(0); vms];
    let mut best: Option<i64> = None;
    loop {
        if let Ok(worth) = verify::assignment(problem, &assignment) {
            let objective = worth.objective();
            best = Some(best.map_or(objective, |best| best.min(objective)));
        }
        let Some(next) = assignment.iter().position(|host| host.0 + 1 < hosts) else { return best };
        assignment[next].0 += 1;
        assignment[..next].fill(HostIx(0));
    }
}

/// Whether a programme says exactly what the goal is worth.
fn is_linear(goal: &Goal) -> bool {
    matches!(
        goal,
        Goal::Energy { .. }
            | Goal::Peak { .. }
            | Goal::Overload { .. }
            | Goal::Stranded { .. }
            | Goal::Moves { .. }
            | Goal::Table { .. }
    )
}

fn check(problem: &Problem, outcome: &Outcome, best: Option<i64>) {
    assert_eq!(outcome.objective, best, "{}: {problem:?}", outcome.engine);
    assert_eq!(outcome.stop_reason.as_str(), "optimal", "{}: {problem:?}", outcome.engine);
    let hosts = outcome.assignment.as_ref();
    let hosts = hosts.map(|hosts| hosts.iter().copied().map(HostIx).collect::<Vec<_>>());
    let worth = hosts.map(|hosts| verify::assignment(problem, &hosts).unwrap().objective());
    assert_eq!(worth, best);
    if let Some(best) = best {
        assert_eq!(outcome.bound, best, "{}: {problem:?}", outcome.engine);
    }
}

#[test]
fn csp_and_ilp_find_what_trying_everything_finds() {
    let mut dice = Dice::new(5);
    let (mut feasible, mut infeasible) = (0, 0);
    let (mut met, mut blamed) = (BTreeMap::new(), BTreeMap::new());
    for _ in 0..INSTANCES {
        let problem = random(&mut dice, LIMITS);
        let model = Model::compile(&problem).unwrap();
        let task = Task::new(&problem, &model, 1);
        let best = best_of_all(&problem);
        check(&problem, &Csp::default().solve(task, &mut Budget::steps(1_000_000)), best);
        let ilp = Ilp::default().solve(task, &mut Budget::steps(1_000_000));
        match problem.goals.iter().all(is_linear) {
            true => check(&problem, &ilp, best),
            false => check_search(&problem, &ilp, best),
        }
        match best {
            Some(best) => {
                feasible += 1;
                assert!(model.bound() <= best);
                assert_eq!(conflict(&problem, &mut Budget::steps(1_000_000)), None);
                for rule in &problem.rules {
                    *met.entry(rule.kind()).or_insert(0) += 1;
                }
            }
            None => {
                infeasible += 1;
                for requirement in check_conflict(&problem) {
                    if let Requirement::Rule(row) = requirement {
                        *blamed.entry(problem.rules[row as usize].kind()).or_insert(0) += 1;
                    }
                }
            }
        }
    }
    assert!(feasible > 300 && infeasible > 100, "{feasible} feasible, {infeasible} not");
    // Every kind of rule is met somewhere, and somewhere is what cannot be met.
    assert!(met.len() == 12 && met.values().all(|&times| times > 20), "{met:?}");
    assert!(blamed.len() == 12 && blamed.values().all(|&times| times > 2), "{blamed:?}");
}

/// What engines that do not prove may say: an assignment that the verifier accepts at the price
/// that they tell, never better than the best, and a bound that the best does not go below.
fn check_search(problem: &Problem, outcome: &Outcome, best: Option<i64>) {
    let context = || format!("{}: {problem:?} {outcome:?}", outcome.engine);
    if let Some(best) = best {
        assert!(outcome.bound <= best, "{}", context());
    }
    let Some(hosts) = &outcome.assignment else {
        assert!(!outcome.is_infeasible() || best.is_none(), "{}", context());
        return;
    };
    let hosts: Vec<HostIx> = hosts.iter().copied().map(HostIx).collect();
    let worth = verify::assignment(problem, &hosts).unwrap_or_else(|_| panic!("{}", context()));
    assert_eq!(Some(worth.objective()), outcome.objective, "{}", context());
    let best = best.expect("the verifier accepts nothing");
    assert!(worth.objective() >= best, "{}", context());
    if outcome.stop_reason.as_str() == "optimal" {
        assert_eq!(worth.objective(), best, "{}", context());
    }
}

#[test]
fn searches_are_never_better_than_the_best_and_always_accepted() {
    let mut dice = Dice::new(6);
    let (mut feasible, mut best_by_lns) = (0, 0);
    for seed in 0..INSTANCES as u64 {
        let problem = random(&mut dice, LIMITS);
        let model = Model::compile(&problem).unwrap();
        let task = Task::new(&problem, &model, seed);
        let best = best_of_all(&problem);
        let steps = || Budget::steps(2_000);
        check_search(&problem, &Greedy.solve(task, &mut steps()), best);
        check_search(&problem, &Annealing::default().solve(task, &mut steps()), best);
        let outcome = Lns::default().solve(task, &mut steps());
        check_search(&problem, &outcome, best);
        let few = || Budget::steps(60);
        let nsga2 = Nsga2 { population: 8, ..Nsga2::default() };
        check_search(&problem, &Genetic::default().solve(task, &mut few()), best);
        check_search(&problem, &Swarm::default().solve(task, &mut few()), best);
        check_search(&problem, &nsga2.solve(task, &mut few()), best);
        let auto = Auto { threads: 1, timed: false, tuning: Tuning::default() };
        let all = auto.solve(task, &mut steps());
        check_search(&problem, &all, best);
        assert_eq!(all.assignment.is_some(), best.is_some(), "{problem:?} {all:?}");
        feasible += usize::from(best.is_some());
        best_by_lns += usize::from(best.is_some() && outcome.objective == best);
    }
    // Groups that greed cannot bring together leave it without a start; few others are missed.
    assert!(best_by_lns * 10 > feasible * 9, "{best_by_lns} of {feasible}");
}

fn check_conflict(problem: &Problem) -> Vec<Requirement> {
    let found = conflict(problem, &mut Budget::steps(1_000_000)).expect("a conflict");
    assert!(found.minimal);
    assert_eq!(best_of_all(&only(problem, &found.requirements)), None, "{problem:?} {found:?}");
    for left_out in &found.requirements {
        let others: Vec<Requirement> =
            found.requirements.iter().copied().filter(|other| other != left_out).collect();
        let without = best_of_all(&only(problem, &others));
        assert!(without.is_some(), "{left_out:?} is not needed: {problem:?} {found:?}");
    }
    found.requirements
}

/// The problem with these requirements and no others.
fn only(problem: &Problem, kept: &[Requirement]) -> Problem {
    let mut fewer = problem.clone();
    fewer.goals.clear();
    fewer.rules = (0..)
        .zip(&problem.rules)
        .filter(|(row, _)| kept.contains(&Requirement::Rule(*row)))
        .map(|(_, rule)| rule.clone())
        .collect();
    for (resource, _) in (0..).zip(&problem.resources) {
        if !kept.contains(&Requirement::Capacity(resource)) {
            fewer.shapes.iter_mut().for_each(|shape| shape[resource as usize] = 0);
        }
    }
    for (vm, row) in (0..).zip(&mut fewer.vms) {
        if !kept.contains(&Requirement::Allowed(cluster::VmIx(vm))) {
            row.allowed = None;
        }
    }
    fewer
}
