//! The algorithm on problems whose fronts are known: ZDT1, ZDT2, ZDT3 and DTLZ2, with the operators
//! that the papers use, against the volume below the fronts that the papers publish.

use super::{Population, Variation, Worth, area, fronts, hypervolume};
use crate::dice::{Dice, exp, ln};
use std::f64::consts::PI;

/// Variables between 0 and 1.
struct Real<const N: usize> {
    variables: usize,
    values: fn(&[f64]) -> [f64; N],
}

impl<const N: usize> Real<N> {
    fn population(&self, size: usize, seed: u64) -> Population<Vec<f64>, N> {
        let mut dice = Dice::new(seed);
        let first = (0..size).map(|_| {
            let genome: Vec<f64> = (0..self.variables).map(|_| dice.share()).collect();
            let worth = Worth::allowed((self.values)(&genome));
            (genome, worth)
        });
        let first = first.collect();
        Population::new(first, size, dice.bits())
    }
}

fn power(base: f64, exponent: f64) -> f64 {
    if base <= 0.0 { 0.0 } else { exp(exponent * ln(base)) }
}

impl<const N: usize> Variation<N> for Real<N> {
    type Genome = Vec<f64>;

    /// Simulated binary crossover (eta 15) and polynomial mutation (eta 20, one variable a child).
    fn breed(&self, [a, b]: [&Vec<f64>; 2], child: &mut Vec<f64>, dice: &mut Dice) -> Worth<N> {
        child.clone_from(a);
        let crosses = dice.share() < 0.9;
        for (at, value) in child.iter_mut().enumerate() {
            if crosses && dice.below(2) == 0 {
                let draw = dice.share();
                let beta = match draw <= 0.5 {
                    true => power(2.0 * draw, 1.0 / 16.0),
                    false => power(1.0 / (2.0 * (1.0 - draw)), 1.0 / 16.0),
                };
                let beta = if dice.below(2) == 0 { beta } else { -beta };
                *value = 0.5 * ((1.0 + beta) * a[at] + (1.0 - beta) * b[at]);
            }
            if dice.share() < 1.0 / self.variables as f64 {
                let draw = dice.share();
                *value += match draw < 0.5 {
                    true => power(2.0 * draw, 1.0 / 21.0) - 1.0,
                    false => 1.0 - power(2.0 * (1.0 - draw), 1.0 / 21.0),
                };
            }
            *value = value.clamp(0.0, 1.0);
        }
        Worth::allowed((self.values)(child))
    }
}

fn rest(x: &[f64]) -> f64 {
    1.0 + 9.0 * x[1..].iter().sum::<f64>() / (x.len() - 1) as f64
}

fn zdt1(x: &[f64]) -> [f64; 2] {
    let g = rest(x);
    [x[0], g * (1.0 - (x[0] / g).sqrt())]
}

fn zdt2(x: &[f64]) -> [f64; 2] {
    let g = rest(x);
    [x[0], g * (1.0 - (x[0] / g) * (x[0] / g))]
}

fn zdt3(x: &[f64]) -> [f64; 2] {
    let g = rest(x);
    let ratio = x[0] / g;
    [x[0], g * (1.0 - ratio.sqrt() - ratio * (10.0 * PI * x[0]).sin())]
}

fn dtlz2(x: &[f64]) -> [f64; 3] {
    let g: f64 = x[2..].iter().map(|x| (x - 0.5) * (x - 0.5)).sum();
    let [a, b] = [x[0] * PI / 2.0, x[1] * PI / 2.0];
    [a.cos() * b.cos(), a.cos() * b.sin(), a.sin()].map(|value| value * (1.0 + g))
}

/// The volume below the published front: points of the curve with the other variables at 0.
fn published(values: fn(&[f64]) -> [f64; 2]) -> f64 {
    let points: Vec<[f64; 2]> =
        (0..=50_000).map(|at| values(&[f64::from(at) / 50_000.0, 0.0])).collect();
    area(&points, REFERENCE)
}

const REFERENCE: [f64; 2] = [1.1, 1.1];

fn check(name: &str, values: fn(&[f64]) -> [f64; 2], expected: f64) {
    let published = published(values);
    assert!((published - expected).abs() < 1e-3, "{name}: {published}");
    for seed in 1..=3 {
        let problem = Real { variables: 30, values };
        // A hundred points on a curve miss nearly a hundredth of the area between them.
        let mut population = problem.population(200, seed);
        for _ in 0..300 {
            population.breed(&problem, 200, 1);
            population.select();
        }
        let best: Vec<[f64; 2]> = population.best().map(|(_, worth)| worth.values).collect();
        let reached = area(&best, REFERENCE) / published;
        assert!((0.99..=1.0).contains(&reached), "{name}, seed {seed}: {reached}");
    }
}

#[test]
fn zdt_fronts_are_reached_within_a_hundredth() {
    // The first two are 1.1 x 1.1 less the integral of the curve.
    check("ZDT1", zdt1, 1.21 - 1.0 / 3.0);
    check("ZDT2", zdt2, 1.21 - 2.0 / 3.0);
    check("ZDT3", zdt3, 1.3317);
}

#[test]
fn dtlz2_is_reached_within_a_hundredth() {
    let problem = Real { variables: 12, values: dtlz2 };
    // An eighth of a ball is above the front.
    let published = 1.331 - PI / 6.0;
    let mut population = problem.population(400, 1);
    let mut seen: Vec<Worth<3>> = Vec::new();
    // A population of a few hundred covers a surface with gaps of several hundredths, however good
    // it is; all that survived some generation shows how near the front is.
    for generation in 0..800 {
        population.breed(&problem, 400, 1);
        population.select();
        if generation >= 200 {
            seen.extend(population.best().map(|(_, worth)| *worth));
        }
        if generation % 100 == 99 && !seen.is_empty() {
            seen.sort_by(Worth::order);
            seen.dedup();
            let first = fronts(&seen).swap_remove(0);
            seen = first.iter().map(|&row| seen[row as usize]).collect();
        }
    }
    let points: Vec<[f64; 3]> = seen.iter().map(|worth| worth.values).collect();
    let reached = hypervolume(&points, [1.1; 3]) / published;
    assert!((0.99..=1.0).contains(&reached), "{reached} by {} points", points.len());
}

#[test]
fn children_are_the_same_on_any_number_of_threads() {
    let run = |threads| {
        let problem = Real { variables: 30, values: zdt1 };
        let mut population = problem.population(21, 7);
        for _ in 0..20 {
            population.breed(&problem, 21, threads);
            population.select();
        }
        population.members().0.to_vec()
    };
    assert_eq!(run(1), run(2));
    assert_eq!(run(1), run(5));
}

#[test]
fn fewer_children_than_parents_are_enough() {
    let problem = Real { variables: 30, values: zdt1 };
    let mut population = problem.population(20, 7);
    let sum = |population: &Population<Vec<f64>, 2>| -> f64 {
        population.members().1.iter().map(|worth| worth.values[1]).sum()
    };
    let before = sum(&population);
    for _ in 0..200 {
        population.breed(&problem, 3, 2);
        assert_eq!(population.children().0.len(), 3);
        population.select();
        assert_eq!(population.members().0.len(), 20);
    }
    assert!(sum(&population) < before);
}
