//! The exact Gaussian likelihood of a stationary series, by the Kalman filter.
//!
//! The filter starts from the stationary distribution of its state, so the covariance changes by
//! a matrix of rank one at every sample and only that vector is carried along (the recursions of
//! Chandrasekhar): a sample costs the length of the state, not its square. When the vector has
//! faded the gain is constant, and a sample costs the coefficients alone.

use super::order::Coefficients;
use crate::linear;

/// What the filter found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Likelihood {
    /// Sum of squared errors, each in units of its own variance over the noise's.
    pub squares: f64,
    /// Sum of logarithms of these variances.
    pub logs: f64,
    pub count: usize,
}

impl Likelihood {
    /// The log likelihood with the noise's variance that makes it largest.
    pub fn best(&self) -> f64 {
        self.at(self.variance())
    }

    pub fn variance(&self) -> f64 {
        (self.squares / self.count.max(1) as f64).max(1e-300)
    }

    /// The log likelihood with a given variance of the noise.
    pub fn at(&self, variance: f64) -> f64 {
        let n = self.count as f64;
        -0.5 * (n * (std::f64::consts::TAU * variance).ln() + self.logs + self.squares / variance)
    }
}

/// Runs the filter over the differenced series `x`. `None` where the coefficients have no
/// stationary distribution. The errors are appended to `errors`.
pub fn likelihood(
    x: &[f64],
    c: &Coefficients,
    season: usize,
    errors: Option<&mut Vec<f64>>,
) -> Option<Likelihood> {
    let (mut phi, mut theta) = (c.full_ar(season), c.full_ma(season));
    let size = phi.len().max(theta.len() + 1);
    let first = first_column(&phi, &theta)?;
    phi.resize(size, 0.0);
    theta.resize(size, 0.0);
    let mut unused = Vec::new();
    let errors = errors.unwrap_or(&mut unused);

    let mut variance = first[0];
    // The gain times the variance: T P Z'.
    let mut gain = vec![0.0; size];
    transition(&phi, &first, &mut gain);
    let mut change = gain.clone();
    let mut weight = -1.0 / variance;
    let mut state = vec![0.0; size];
    let mut result = Likelihood { squares: 0.0, logs: 0.0, count: x.len() };
    let mut product = 1.0;
    let mut steady = false;
    for (t, value) in x.iter().enumerate() {
        let error = value - c.mean - state[0];
        errors.push(error);
        result.squares += error * error / variance;
        product *= variance;
        if t % 16 == 15 || product > 1e100 {
            result.logs += product.ln();
            product = 1.0;
        }
        let push = error / variance;
        if steady {
            follow(&mut state, &phi, &gain, push);
            continue;
        }
        let lead = change[0];
        let next_variance = variance + weight * lead * lead;
        if !next_variance.is_finite() || next_variance <= 0.0 {
            return None;
        }
        step(
            Vectors { state: &mut state, change: &mut change, gain: &mut gain },
            &phi,
            Factors { push, lead, over: lead / variance, weight: weight * lead },
        );
        weight *= variance / next_variance;
        variance = next_variance;
        if t % 32 == 31 {
            let largest = change.iter().fold(0.0f64, |most, value| most.max(value.abs()));
            steady = -weight * largest * largest < 1e-13 * variance;
        }
    }
    result.logs += product.ln();
    (result.squares.is_finite() && result.logs.is_finite()).then_some(result)
}

struct Vectors<'a> {
    state: &'a mut [f64],
    change: &'a mut [f64],
    gain: &'a mut [f64],
}

#[derive(Clone, Copy)]
struct Factors {
    push: f64,
    lead: f64,
    over: f64,
    weight: f64,
}

/// State, change and gain of the next sample, in one pass.
fn step(vectors: Vectors<'_>, phi: &[f64], by: Factors) {
    let Vectors { state, change, gain } = vectors;
    let n = phi.len();
    let (state, change, gain) = (&mut state[..n], &mut change[..n], &mut gain[..n]);
    let at = state[0];
    for i in 0..n - 1 {
        let moved = phi[i] * by.lead + change[i + 1];
        state[i] = phi[i] * at + state[i + 1] + gain[i] * by.push;
        change[i] = moved - gain[i] * by.over;
        gain[i] += by.weight * moved;
    }
    let last = n - 1;
    let moved = phi[last] * by.lead;
    state[last] = phi[last] * at + gain[last] * by.push;
    change[last] = moved - gain[last] * by.over;
    gain[last] += by.weight * moved;
}

fn follow(state: &mut [f64], phi: &[f64], gain: &[f64], push: f64) {
    let n = phi.len();
    let at = state[0];
    for i in 0..n - 1 {
        state[i] = phi[i] * at + state[i + 1] + gain[i] * push;
    }
    state[n - 1] = phi[n - 1] * at + gain[n - 1] * push;
}

/// The state's matrix applied to a vector.
fn transition(phi: &[f64], vector: &[f64], out: &mut [f64]) {
    for i in 0..vector.len() {
        out[i] = phi[i] * vector[0] + vector.get(i + 1).copied().unwrap_or(0.0);
    }
}

/// Covariances of the state's elements with the first one, in units of the noise's variance.
fn first_column(phi: &[f64], theta: &[f64]) -> Option<Vec<f64>> {
    let size = phi.len().max(theta.len() + 1);
    let of =
        |c: &[f64], lag: usize| if lag == 0 { 1.0 } else { c.get(lag - 1).copied().unwrap_or(0.0) };
    let mut psi = vec![1.0; theta.len() + 1];
    for lag in 1..psi.len() {
        let back = (1..=lag.min(phi.len())).map(|i| phi[i - 1] * psi[lag - i]);
        psi[lag] = of(theta, lag) + back.sum::<f64>();
    }
    // Noise that lag `k` shares with now.
    let shared = |k: usize| (k..=theta.len()).map(|j| of(theta, j) * psi[j - k]).sum::<f64>();
    let gamma = autocovariances(phi, size, shared)?;
    let mut column = vec![gamma[0]; size];
    for (i, covariance) in column.iter_mut().enumerate().skip(1) {
        let back = (i..phi.len()).map(|j| phi[j] * gamma[j + 1 - i]).sum::<f64>();
        *covariance = back + shared(i);
    }
    gamma[0].is_finite().then_some(column)
}

/// Autocovariances from lag 0 to `size`.
fn autocovariances(phi: &[f64], size: usize, shared: impl Fn(usize) -> f64) -> Option<Vec<f64>> {
    let p = phi.len();
    let mut a = vec![0.0; (p + 1) * (p + 1)];
    let mut gamma: Vec<f64> = (0..=p).map(&shared).collect();
    for k in 0..=p {
        a[k * (p + 1) + k] += 1.0;
        for (i, c) in phi.iter().enumerate().filter(|(_, c)| **c != 0.0) {
            a[k * (p + 1) + (k).abs_diff(i + 1)] -= c;
        }
    }
    linear::solve_any(&mut a, &mut gamma)?;
    if gamma[0].is_nan() || gamma[0] <= 0.0 {
        return None;
    }
    for k in p + 1..=size {
        let back = phi.iter().enumerate().map(|(i, c)| c * gamma[k - 1 - i]).sum::<f64>();
        gamma.push(back + shared(k));
    }
    Some(gamma)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made;

    /// The likelihood by the definition: the covariance matrix of all samples, factored.
    fn by_definition(x: &[f64], c: &Coefficients, season: usize) -> Likelihood {
        let (phi, theta) = (c.full_ar(season), c.full_ma(season));
        let n = x.len();
        // Long enough for the weights of the noise to fade.
        let mut psi = vec![1.0];
        for lag in 1..4_000 {
            let back = (1..=lag.min(phi.len())).map(|i| phi[i - 1] * psi[lag - i]).sum::<f64>();
            psi.push(back + theta.get(lag - 1).copied().unwrap_or(0.0));
        }
        let gamma: Vec<f64> =
            (0..n).map(|k| psi.iter().zip(&psi[k..]).map(|(a, b)| a * b).sum()).collect();
        let mut matrix = vec![0.0; n * n];
        for i in 0..n {
            for j in 0..n {
                matrix[i * n + j] = gamma[i.abs_diff(j)];
            }
        }
        linear::factor(&mut matrix, n).expect("positive");
        let centred: Vec<f64> = x.iter().map(|value| value - c.mean).collect();
        let mut solved = centred.clone();
        linear::solve_factored(&matrix, &mut solved);
        let squares = centred.iter().zip(&solved).map(|(a, b)| a * b).sum();
        let logs = (0..n).map(|i| 2.0 * matrix[i * n + i].ln()).sum();
        Likelihood { squares, logs, count: n }
    }

    fn check(c: &Coefficients, season: usize) {
        let x: Vec<f64> =
            (0..150).map(|t| made::noise(9, t) + 0.3 * made::noise(9, t + 1)).collect();
        let fast = likelihood(&x, c, season, None).expect("stationary");
        let slow = by_definition(&x, c, season);
        assert!((fast.squares - slow.squares).abs() < 1e-7 * slow.squares, "{fast:?} {slow:?}");
        assert!(
            (fast.logs - slow.logs).abs() < 1e-7 * (1.0 + slow.logs.abs()),
            "{fast:?} {slow:?}"
        );
        assert_eq!(fast.count, 150);
    }

    #[test]
    fn the_likelihood_is_that_of_the_whole_covariance_matrix() {
        let c = |ar: &[f64], ma: &[f64], seasonal_ar: &[f64], seasonal_ma: &[f64]| Coefficients {
            ar: ar.to_vec(),
            ma: ma.to_vec(),
            seasonal_ar: seasonal_ar.to_vec(),
            seasonal_ma: seasonal_ma.to_vec(),
            mean: 0.2,
        };
        check(&c(&[], &[], &[], &[]), 1);
        check(&c(&[0.9], &[], &[], &[]), 1);
        check(&c(&[], &[0.95], &[], &[]), 1);
        check(&c(&[0.5, -0.3], &[0.4, 0.2, -0.5], &[], &[]), 1);
        check(&c(&[0.5], &[-0.4], &[0.8], &[-0.6]), 12);
        check(&c(&[], &[-0.4], &[], &[-0.98]), 24);
        check(&c(&[0.3, 0.3], &[], &[0.5, 0.3], &[]), 7);
    }

    #[test]
    fn a_series_without_a_stationary_distribution_is_refused() {
        let walk = Coefficients { ar: vec![1.0], ..Default::default() };
        assert!(likelihood(&[1.0, 2.0], &walk, 1, None).is_none_or(|l| !l.best().is_finite()));
    }
}
