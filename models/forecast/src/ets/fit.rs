//! Finding the rates of one shape by maximum likelihood.
//!
//! Seasonal start values come from the first seasons and are not searched for: with 24 of them
//! the search would mostly fit the oldest day. Level and slope at the start are searched where
//! there is no season.

use super::shape::{Noise, Rates, Season, Shape, State, Trend};
use crate::decompose;
use crate::optimise::{REFUSED, simplex};

/// A shape with rates and the state at the start of the history.
#[derive(Clone, Debug)]
pub struct Estimate {
    pub shape: Shape,
    pub rates: Rates,
    pub start: State,
    /// Corrected information criterion; lower is better.
    pub criterion: f64,
    unbounded: Vec<f64>,
}

/// How long the search may go on: longer for a final fit than for a comparison of shapes.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    pub iterations: u64,
    pub tolerance: f64,
}

pub const COMPARE: Effort = Effort { iterations: 120, tolerance: 1e-2 };
pub const FINISH: Effort = Effort { iterations: 400, tolerance: 1e-5 };

/// Fits `shape`, from the rates of an earlier estimate where there is one.
pub fn fit(
    history: &[f64],
    shape: Shape,
    season: usize,
    warm: Option<&Estimate>,
    effort: Effort,
) -> Estimate {
    let start = start_of(history, shape, season);
    let scale = level_scale(history);
    let free_start = shape.season == Season::None;
    let unpack = |at: &[f64]| -> (Rates, State) {
        let rates = rates_of(at, shape);
        let mut start = start.clone();
        if free_start {
            let given = rate_count(shape);
            start.level += scale * at[given];
            if shape.trend != Trend::None {
                start.trend += 0.1 * scale * at[given + 1];
            }
        }
        (rates, start)
    };
    let cost = |at: &[f64]| {
        let (rates, mut state) = unpack(at);
        likelihood(history, shape, &rates, &mut state)
    };
    let free = rate_count(shape)
        + if free_start { 1 + usize::from(shape.trend != Trend::None) } else { 0 };
    let first = match warm {
        Some(earlier) if earlier.shape == shape && earlier.unbounded.len() == free => {
            earlier.unbounded.clone()
        }
        _ => first_guess(shape, free),
    };
    let steps: Vec<f64> =
        (0..free).map(|axis| if axis < rate_count(shape) { 0.8 } else { 0.5 }).collect();
    let (unbounded, cost) = simplex(cost, &first, &steps, effort.iterations, effort.tolerance);
    let (rates, start) = unpack(&unbounded);
    let (n, k) = (history.len() as f64, shape.degrees(season) as f64);
    let small = if n > k + 1.0 { 2.0 * k * (k + 1.0) / (n - k - 1.0) } else { REFUSED };
    let criterion = if cost >= REFUSED { REFUSED } else { cost + 2.0 * k + small };
    Estimate { shape, rates, start, criterion, unbounded }
}

/// Minus twice the log likelihood, up to a constant; leaves the state at the end of `history`.
pub fn likelihood(history: &[f64], shape: Shape, rates: &Rates, state: &mut State) -> f64 {
    let n = history.len() as f64;
    let mut squares = 0.0;
    let mut logs = 0.0;
    match shape.noise {
        Noise::Additive => {
            for &sample in history {
                let error = sample - state.step(shape.season, rates, sample);
                squares += error * error;
            }
        }
        Noise::Multiplicative => {
            // Logarithms of products, a few samples at a time: one logarithm a sample would cost
            // more than the smoothing itself.
            let mut product = 1.0;
            for (count, &sample) in history.iter().enumerate() {
                let expected = state.step(shape.season, rates, sample);
                if expected < 1e-12 {
                    return REFUSED;
                }
                let error = (sample - expected) / expected;
                squares += error * error;
                product *= expected;
                if count % 8 == 7 || !(1e-30..1e30).contains(&product) {
                    logs += product.ln();
                    product = 1.0;
                }
            }
            logs += product.ln();
        }
    }
    // A perfect fit has a likelihood without bound; a relative error of 1e-10 is perfect enough.
    n * (squares.max(1e-20 * n)).ln() + 2.0 * logs
}

fn rate_count(shape: Shape) -> usize {
    let trend = match shape.trend {
        Trend::None => 0,
        Trend::Additive => 1,
        Trend::Damped => 2,
    };
    1 + trend + usize::from(shape.season != Season::None)
}

fn first_guess(shape: Shape, free: usize) -> Vec<f64> {
    let mut guess = vec![0.0; free];
    guess[0] = if shape.season == Season::None { 0.0 } else { -1.0 };
    let mut axis = 1;
    if shape.trend != Trend::None {
        guess[axis] = -3.0;
        axis += 1;
    }
    if shape.season != Season::None {
        guess[axis] = -1.5;
        axis += 1;
    }
    if shape.trend == Trend::Damped {
        guess[axis] = 1.0;
    }
    guess
}

/// Rates from numbers without bounds: level, trend, season, keep.
fn rates_of(at: &[f64], shape: Shape) -> Rates {
    let within = |u: f64, low: f64, high: f64| low + (high - low) / (1.0 + (-u).exp());
    let level = within(at[0], 1e-4, 0.9999);
    let mut rates = Rates { level, trend: 0.0, season: 0.0, keep: 1.0 };
    let mut axis = 1;
    if shape.trend != Trend::None {
        rates.trend = level * within(at[axis], 1e-4, 0.9999);
        axis += 1;
    } else {
        rates.keep = 0.0;
    }
    if shape.season != Season::None {
        rates.season = (1.0 - level) * within(at[axis], 1e-4, 0.9999);
        axis += 1;
    }
    if shape.trend == Trend::Damped {
        rates.keep = within(at[axis], 0.8, 0.98);
    }
    rates
}

fn level_scale(history: &[f64]) -> f64 {
    let steps = history.windows(2).map(|pair| (pair[1] - pair[0]).abs()).sum::<f64>();
    steps / (history.len().max(2) - 1) as f64
}

/// Season from the first seasons, level and slope from a line through the first samples.
fn start_of(history: &[f64], shape: Shape, season: usize) -> State {
    let mut first: Vec<f64> = history.iter().take(10.max(2 * season)).copied().collect();
    let factors = match shape.season {
        Season::None => {
            first.truncate(10);
            Vec::new()
        }
        Season::Additive => {
            let factors = decompose::summands(first_seasons(history, season), season);
            first.iter_mut().enumerate().for_each(|(t, v)| *v -= factors[t % season]);
            factors
        }
        Season::Multiplicative => {
            let factors = decompose::factors(first_seasons(history, season), season);
            first.iter_mut().enumerate().for_each(|(t, v)| *v /= factors[t % season]);
            factors
        }
    };
    let (level, slope) = decompose::line(&first);
    let (level, trend) = match shape.trend {
        Trend::None => (first.iter().sum::<f64>() / first.len().max(1) as f64, 0.0),
        _ => (level - slope, slope),
    };
    State { level, trend, season: factors, next: 0 }
}

/// Six seasons, or less: the newest third is for judging what was learned from the others.
fn first_seasons(history: &[f64], season: usize) -> &[f64] {
    &history[..(6 * season).min((history.len() * 2 / 3).max(2 * season)).min(history.len())]
}
