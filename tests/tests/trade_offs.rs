//! Optimising fleets: every engine's answer is verified and above its bound, and a front has for
//! any weights a point that is about as good as an answer searched for those weights.

use cluster::{GoalKind, Snapshot};
use fixture::{Dice, Fleet, FleetSpec, MixSpec, Requests};
use optimise::{Answer, Ask, FrontPoint, Method, Scope, Trade, optimise};
use solver::assignment::Budget;
use solver::engines::Board;
use solver::objective::Wish;
use std::sync::Arc;

fn fleet(hosts: usize, vms: usize, seed: u64) -> (Snapshot, Fleet) {
    let fleet = Fleet::generate(&FleetSpec::new(hosts, vms, seed));
    (fleet.snapshot(), fleet)
}

fn ask(fleet: &Fleet, arrivals: usize, wishes: &[(GoalKind, u32)], method: Method) -> Ask {
    let mix = MixSpec { infeasible: 0, ..MixSpec::default() };
    let arrivals = Requests::new(fleet, &mix, 3).take(arrivals).map(Arc::new);
    Ask {
        scope: Scope::Cluster,
        arrivals: arrivals.collect(),
        wishes: wishes.iter().map(|&(kind, weight)| Wish { kind, weight }).collect(),
        method,
        seed: 1,
        threads: 1,
        ..Ask::default()
    }
}

fn asked(snapshot: &Snapshot, ask: &Ask, steps: u64) -> Answer {
    let answer = optimise(snapshot, ask, &mut Budget::steps(steps), &Board::default());
    answer.unwrap_or_else(|error| panic!("{:?}: {error}", ask.method))
}

const FOUR: [(GoalKind, u32); 4] = [
    (GoalKind::Energy, 30),
    (GoalKind::Latency, 30),
    (GoalKind::Reliability, 30),
    (GoalKind::Migration, 10),
];

#[test]
fn what_runs_is_allowed_as_it_is() {
    for seed in 0..20 {
        let (snapshot, fleet) = fleet(12, 60, seed);
        let ask = Ask { max_moves: Some(0), ..ask(&fleet, 0, &FOUR, Method::Lns) };
        let answer = asked(&snapshot, &ask, 500);
        assert!(answer.moved.is_empty(), "seed {seed}: {:?}", answer.moved);
        assert!(answer.objective.is_some(), "seed {seed}");
    }
}

#[test]
fn every_engine_answers_within_its_bound_and_never_worse_than_where_it_began() {
    for seed in 1..4 {
        let (snapshot, fleet) = fleet(12, 60, seed);
        let begun = asked(&snapshot, &ask(&fleet, 6, &FOUR, Method::Greedy), 1_000);
        let begun = begun.objective.expect("room for some");
        for method in Method::ALL {
            let steps = if method == Method::Csp { 20_000 } else { 2_000 };
            let answer = asked(&snapshot, &ask(&fleet, 6, &FOUR, method), steps);
            let objective = answer.objective.expect("what it began with at least");
            assert!(answer.bound <= objective, "seed {seed}, {method:?}");
            assert!(objective <= begun, "seed {seed}, {method:?}: {objective} {begun}");
            let placed = answer.moved.iter().filter(|moved| moved.from.is_none()).count();
            assert_eq!(placed + answer.left_out.len(), 6, "seed {seed}, {method:?}");
        }
    }
}

#[test]
fn few_moves_are_enough_where_no_more_are_allowed() {
    let (snapshot, fleet) = fleet(12, 60, 5);
    let free = asked(&snapshot, &ask(&fleet, 0, &FOUR[..1], Method::Lns), 3_000);
    assert!(free.moved.len() > 4, "{}", free.moved.len());
    for most in [0, 1, 4] {
        let ask = Ask { max_moves: Some(most), ..ask(&fleet, 0, &FOUR[..1], Method::Lns) };
        let answer = asked(&snapshot, &ask, 3_000);
        assert!(answer.moved.len() <= most, "{most}: {:?}", answer.moved);
    }
}

/// Weighted sum of values between the bound and the worst case.
fn sum(values: &[solver::objective::Value], weights: &[(GoalKind, u32)]) -> f64 {
    let weight = |kind| weights.iter().find(|(known, _)| *known == kind).map_or(0, |it| it.1);
    values.iter().map(|value| f64::from(weight(value.kind)) * value.normalised).sum()
}

const THREE: [GoalKind; 3] = [GoalKind::Energy, GoalKind::Latency, GoalKind::Migration];

/// A front of three goals on a small fleet.
fn front(method: Method, steps: u64) -> (Snapshot, Fleet, Trade) {
    let (snapshot, fleet) = fleet(10, 50, 2);
    let even = THREE.map(|kind| (kind, 1));
    let ask = Ask { points: Some(66), ..ask(&fleet, 5, &even, method) };
    let front = asked(&snapshot, &ask, steps).front.expect("a front");
    (snapshot, fleet, front)
}

#[test]
fn a_front_has_a_point_for_all_weights() {
    for (method, steps) in [(Method::Lns, 66 * 1_500), (Method::Nsga2, 2 * 33 * 1_500)] {
        let (snapshot, fleet, front) = front(method, steps);
        let mut dice = Dice::new(20);
        for number in 0..20 {
            let weights = THREE.map(|kind| (kind, 1 + dice.below(1_000) as u32));
            let single = asked(&snapshot, &ask(&fleet, 5, &weights, Method::Lns), 6_000);
            let nearest = front.nearest(&weights).expect("a point");
            let (best, wanted) =
                (sum(&front.points[nearest].values, &weights), sum(&single.after, &weights));
            let at = format!("{method:?}, weights {number} {weights:?}");
            assert!(best <= wanted * 1.01, "{at}: {best} against {wanted}");
        }
    }
}

#[test]
fn points_of_a_front_are_not_dominated_whichever_engine_found_them() {
    for (method, steps) in [(Method::Lns, 30_000), (Method::Nsga2, 10_000)] {
        let (_, _, front) = front(method, steps);
        assert!(front.points.len() > 5, "{method:?}: {}", front.points.len());
        assert!(front.hypervolume > 0.1 && front.hypervolume <= 1.0, "{method:?}");
        let values = |point: &FrontPoint| point.values.iter().map(|it| it.value).collect();
        let all: Vec<Vec<i64>> = front.points.iter().map(values).collect();
        for (row, one) in all.iter().enumerate() {
            for other in all.iter().enumerate().filter(|(at, _)| *at != row).map(|(_, it)| it) {
                let no_worse = other.iter().zip(one).all(|(theirs, mine)| theirs <= mine);
                assert!(!no_worse, "{method:?}: {other:?} dominates {one:?}");
            }
        }
    }
}
