//! Conditional sum of squares: errors of a series when everything before it was zero, and the
//! coefficients that make them small.
//!
//! The four polynomials are applied one after the other: three passes have no short loop from one
//! sample to the next, so only the short moving average costs time. The minimum is found by
//! damped Gauss-Newton steps.

use super::order::{Coefficients, Order};

/// Errors of the differenced series `x`, oldest first.
pub fn errors(x: &[f64], c: &Coefficients, season: usize, out: &mut Vec<f64>) {
    out.clear();
    out.extend(x.iter().map(|value| value - c.mean));
    // Autoregressions read what is behind, so they run from the end.
    filter_back(out, &c.seasonal_ar, season);
    filter_back(out, &c.ar, 1);
    filter_forth(out, &c.seasonal_ma, season);
    filter_forth(out, &c.ma, 1);
}

/// Coefficients with a small sum of squares, the numbers without bounds behind them, and the sum.
#[derive(Clone, Debug)]
pub struct Found {
    pub at: Vec<f64>,
    pub coefficients: Coefficients,
    pub squares: f64,
}

/// Minimises the sum of squares from `start`; `scale` is the unit of the mean's number.
pub fn minimise(x: &[f64], order: &Order, start: &[f64], scale: f64, steps: usize) -> Found {
    let free = start.len();
    let n = x.len();
    let read = |at: &[f64]| {
        let mut c = order.bounded(at);
        c.mean *= scale;
        c
    };
    let mut at = start.to_vec();
    let mut base = Vec::with_capacity(n);
    let mut probe = Vec::with_capacity(n);
    let mut slopes = vec![0.0; free * n];
    errors(x, &read(&at), order.season, &mut base);
    let mut squares = dot(&base, &base);
    let mut damping = 1e-3;
    for _ in 0..steps {
        for axis in 0..free {
            let step = 1e-5;
            let kept = at[axis];
            at[axis] += step;
            errors(x, &read(&at), order.season, &mut probe);
            at[axis] = kept;
            let column = &mut slopes[axis * n..(axis + 1) * n];
            for ((slope, probe), base) in column.iter_mut().zip(&probe).zip(&base) {
                *slope = (probe - base) / step;
            }
        }
        let column = |axis: usize| &slopes[axis * n..(axis + 1) * n];
        let mut normal = vec![0.0; free * free];
        let mut right = vec![0.0; free];
        for i in 0..free {
            for j in 0..=i {
                normal[i * free + j] = dot(column(i), column(j));
                normal[j * free + i] = normal[i * free + j];
            }
            right[i] = -dot(column(i), &base);
        }
        let before = squares;
        let mut taken = false;
        for _ in 0..6 {
            let Some(step) = damped_solution(&normal, &right, damping) else {
                damping *= 10.0;
                continue;
            };
            // Beyond 8, `tanh` is 1: nothing more can be gained there.
            let next: Vec<f64> = at
                .iter()
                .zip(&step)
                .enumerate()
                .map(|(axis, (at, step))| {
                    if axis < order.lags() {
                        (at + step.clamp(-1.5, 1.5)).clamp(-8.0, 8.0)
                    } else {
                        at + step
                    }
                })
                .collect();
            errors(x, &read(&next), order.season, &mut probe);
            let found = dot(&probe, &probe);
            if found < squares {
                (at, squares) = (next, found);
                std::mem::swap(&mut base, &mut probe);
                damping = (damping * 0.2).max(1e-9);
                taken = true;
                break;
            }
            damping *= 8.0;
        }
        if !taken || before - squares < 1e-6 * before {
            break;
        }
    }
    Found { coefficients: read(&at), at, squares }
}

/// Solves `(A + damping diag A) x = b`; `None` where that is singular.
fn damped_solution(normal: &[f64], right: &[f64], damping: f64) -> Option<Vec<f64>> {
    let n = right.len();
    let mut a = normal.to_vec();
    for i in 0..n {
        a[i * n + i] += damping * a[i * n + i] + 1e-12;
    }
    crate::linear::solve_positive(&mut a, right)
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    // Four sums at a time: one long chain of additions would wait for each.
    let mut sums = [0.0; 4];
    let (a4, a_rest) = a.split_at(a.len() / 4 * 4);
    let (b4, b_rest) = b.split_at(a4.len());
    for (a, b) in a4.chunks_exact(4).zip(b4.chunks_exact(4)) {
        for lane in 0..4 {
            sums[lane] += a[lane] * b[lane];
        }
    }
    let rest: f64 = a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum();
    sums.iter().sum::<f64>() + rest
}

/// `x[t] -= sum c[i] x[t - (i+1) lag]` with the values from before.
fn filter_back(x: &mut [f64], c: &[f64], lag: usize) {
    if c.is_empty() {
        return;
    }
    let before = x.to_vec();
    for (i, c) in c.iter().enumerate() {
        let shift = (i + 1) * lag;
        if shift < x.len() {
            x[shift..].iter_mut().zip(&before).for_each(|(x, before)| *x -= c * before);
        }
    }
}

/// `x[t] -= sum c[i] x[t - (i+1) lag]` with the values just made.
fn filter_forth(x: &mut [f64], c: &[f64], lag: usize) {
    match c {
        [] => {}
        [one] if lag == 1 => {
            let mut before = 0.0;
            for x in x.iter_mut() {
                *x -= one * before;
                before = *x;
            }
        }
        _ if lag == 1 => {
            let mut recent = [0.0; 8];
            for x in x.iter_mut() {
                let mut value = *x;
                for (c, before) in c.iter().zip(&recent) {
                    value -= c * before;
                }
                recent.copy_within(0..7, 1);
                recent[0] = value;
                *x = value;
            }
        }
        _ => {
            for t in lag..x.len() {
                let mut value = x[t];
                for (i, c) in c.iter().enumerate() {
                    if let Some(at) = t.checked_sub((i + 1) * lag) {
                        value -= c * x[at];
                    }
                }
                x[t] = value;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made;

    /// Errors by the definition, lag by lag.
    fn plainly(x: &[f64], c: &Coefficients, season: usize) -> Vec<f64> {
        let (ar, ma) = (c.full_ar(season), c.full_ma(season));
        let mut e: Vec<f64> = Vec::new();
        for t in 0..x.len() {
            let mut value = x[t] - c.mean;
            for (i, c_ar) in ar.iter().enumerate().take(t) {
                value -= c_ar * (x[t - 1 - i] - c.mean);
            }
            for (i, c_ma) in ma.iter().enumerate().take(t) {
                value -= c_ma * e[t - 1 - i];
            }
            e.push(value);
        }
        e
    }

    #[test]
    fn errors_in_four_passes_are_those_of_the_definition() {
        let c = Coefficients {
            ar: vec![0.5, -0.2],
            ma: vec![0.4, 0.1],
            seasonal_ar: vec![0.3],
            seasonal_ma: vec![-0.6, 0.1],
            mean: 100.0,
        };
        let x = made::walk(1, 60);
        let mut found = Vec::new();
        errors(&x, &c, 6, &mut found);
        for (a, b) in found.iter().zip(plainly(&x, &c, 6)) {
            assert!((a - b).abs() < 1e-9, "{a} {b}");
        }
    }

    #[test]
    fn coefficients_that_made_a_series_are_found_again() {
        let mut x = vec![0.0];
        let mut last = 0.0;
        for t in 1..4_000 {
            let e = made::noise(5, t);
            x.push(0.7 * x[t - 1] + e + 0.4 * last);
            last = e;
        }
        let found = minimise(&x, &Order::plain(1, 0, 1, true), &[0.0; 3], 1.0, 30).coefficients;
        assert!((found.ar[0] - 0.7).abs() < 0.04, "{found:?}");
        assert!((found.ma[0] - 0.4).abs() < 0.05, "{found:?}");
    }
}
