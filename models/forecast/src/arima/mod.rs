//! Seasonal ARIMA: the order by a stepwise search, coefficients by exact likelihood.

pub mod css;
pub mod kalman;
pub mod order;
pub mod search;
pub mod unit_root;

use crate::last_value::LastValue;
use crate::model::{ErrorScale, Fitted, Model, Prediction};
use order::{Order, multiply};
use search::Estimate;

/// Below this there is nothing to tell orders apart by.
const FEWEST: usize = 12;

/// What was longer ago says little about coefficients and costs time.
const LONGEST: usize = 2_000;
/// The state is as long as the season: beyond this, decompositions are the better way.
const LONGEST_SEASON: usize = 60;

/// Takes the shortest season that was seen three times.
#[derive(Clone, Copy, Debug, Default)]
pub struct Arima;

/// A fitted order. Forecasts are made on the series as it came: differences are part of the
/// autoregression.
#[derive(Clone, Debug)]
pub struct Process {
    estimate: Estimate,
    /// Lags and coefficients, differences included, zeros left out.
    back: Vec<(usize, f64)>,
    noise: Vec<(usize, f64)>,
    constant: f64,
    samples: Recent,
    errors: Recent,
    scale: ErrorScale,
}

/// The last values, by lag from 1.
#[derive(Clone, Debug)]
struct Recent {
    ring: Vec<f64>,
    next: usize,
}

impl Model for Arima {
    fn name(&self) -> &'static str {
        "arima"
    }

    fn fit(&self, history: &[f64], seasons: &[usize]) -> Box<dyn Fitted> {
        if !worth_it(history) {
            return LastValue.fit(history, seasons);
        }
        let history = &history[history.len().saturating_sub(LONGEST)..];
        let usable = |m: usize| m > 1 && m <= LONGEST_SEASON && 3 * m <= history.len();
        let season = seasons.iter().copied().filter(|&m| usable(m)).min();
        let estimate = search::choose(history, season.unwrap_or(1));
        Box::new(Process::new(history, estimate))
    }
}

/// A history that is long enough and not a constant, nor a constant slope.
fn worth_it(history: &[f64]) -> bool {
    let mut steps = history.windows(2).map(|pair| pair[1] - pair[0]);
    let first = steps.next().unwrap_or(0.0);
    history.len() >= FEWEST && steps.any(|step| (step - first).abs() > 1e-12)
}

impl Process {
    /// A process after a history, with an estimate from this or another one.
    pub fn new(history: &[f64], estimate: Estimate) -> Self {
        let Estimate { order, coefficients, .. } = &estimate;
        let x = order.difference(history);
        let mut found = Vec::with_capacity(x.len());
        if kalman::likelihood(&x, coefficients, order.season, Some(&mut found)).is_none() {
            css::errors(&x, coefficients, order.season, &mut found);
        }
        let negated: Vec<f64> = coefficients.full_ar(order.season).iter().map(|c| -c).collect();
        let mut whole = negated.clone();
        for _ in 0..order.differences {
            whole = multiply(&whole, &[-1.0], 1);
        }
        for _ in 0..order.seasonal_differences {
            whole = multiply(&whole, &[-1.0], order.season);
        }
        let sparse = |c: &[f64], sign: f64| -> Vec<(usize, f64)> {
            let lags = c.iter().enumerate().filter(|(_, c)| **c != 0.0);
            lags.map(|(i, c)| (i + 1, sign * c)).collect()
        };
        let back = sparse(&whole, -1.0);
        let noise = sparse(&coefficients.full_ma(order.season), 1.0);
        let constant = coefficients.mean * (1.0 + negated.iter().sum::<f64>());
        let longest = |lags: &[(usize, f64)]| lags.last().map_or(1, |(lag, _)| *lag);
        let samples = Recent::of(history, longest(&back));
        let errors = Recent::of(&found, longest(&noise));
        // The first errors of a seasonal filter are wide because it knows nothing yet.
        let settled = &found[found.len().min(order.season)..];
        let scale = ErrorScale::of(settled.iter().copied());
        Self { back, noise, constant, samples, errors, scale, estimate }
    }

    pub fn order(&self) -> Order {
        self.estimate.order
    }

    fn expected(&self) -> f64 {
        let back: f64 = self.back.iter().map(|(lag, c)| c * self.samples.at(*lag)).sum();
        let noise: f64 = self.noise.iter().map(|(lag, c)| c * self.errors.at(*lag)).sum();
        self.constant + back + noise
    }

    /// How much of an error is still there 0, 1, .. steps later.
    fn echoes(&self, horizon: usize) -> Vec<f64> {
        let mut psi = vec![0.0; horizon];
        for step in 0..horizon {
            let mut value = if step == 0 { 1.0 } else { 0.0 };
            value += self.noise.iter().filter(|(lag, _)| *lag == step).map(|(_, c)| c).sum::<f64>();
            let back = self.back.iter().take_while(|(lag, _)| *lag <= step);
            value += back.map(|(lag, c)| c * psi[step - lag]).sum::<f64>();
            psi[step] = value;
        }
        psi
    }
}

impl Fitted for Process {
    fn predict(&self, horizon: usize) -> Prediction {
        let mut ahead = self.clone();
        let mut point = Vec::with_capacity(horizon);
        for _ in 0..horizon {
            let expected = ahead.expected();
            point.push(expected);
            ahead.samples.push(expected);
            ahead.errors.push(0.0);
        }
        let deviation = self.scale.deviation();
        let mut variance = 0.0;
        let spread = self.echoes(horizon).into_iter().map(|echo| {
            variance += echo * echo;
            deviation * f64::sqrt(variance)
        });
        Prediction::even(point, spread.collect())
    }

    fn update(&mut self, value: f64) {
        let error = value - self.expected();
        self.samples.push(value);
        self.errors.push(error);
        self.scale.add(error);
    }

    /// Keeps the order.
    fn refit(&self, history: &[f64], _seasons: &[usize]) -> Box<dyn Fitted> {
        let order = self.estimate.order;
        let history = &history[history.len().saturating_sub(LONGEST)..];
        if !worth_it(history) || history.len() <= order.lost() + FEWEST {
            return LastValue.fit(history, &[]);
        }
        let estimate = search::estimate(history, order, Some(&self.estimate));
        Box::new(Process::new(history, estimate))
    }

    fn describe(&self) -> String {
        self.estimate.order.to_string()
    }
}

impl Recent {
    /// The last `len` of `values`, with zeros before them where they are fewer.
    fn of(values: &[f64], len: usize) -> Self {
        let mut ring = vec![0.0; len];
        let known = values.len().min(len);
        ring[len - known..].copy_from_slice(&values[values.len() - known..]);
        Self { ring, next: 0 }
    }

    fn at(&self, lag: usize) -> f64 {
        let place = self.next + self.ring.len() - lag;
        self.ring[if place >= self.ring.len() { place - self.ring.len() } else { place }]
    }

    fn push(&mut self, value: f64) {
        self.ring[self.next] = value;
        self.next += 1;
        if self.next == self.ring.len() {
            self.next = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made;
    use order::Coefficients;

    fn process(history: &[f64], order: Order, coefficients: Coefficients) -> Process {
        let at = vec![0.0; order.lags()];
        Process::new(history, Estimate { order, coefficients, at, log_likelihood: 0.0 })
    }

    #[test]
    fn an_autoregression_falls_back_to_its_mean() {
        let c = Coefficients { ar: vec![0.5], mean: 10.0, ..Default::default() };
        let fitted = process(&[9.0, 12.0, 14.0], Order::plain(1, 0, 0, true), c);
        let ahead = fitted.predict(3);
        assert_eq!(ahead.point, [12.0, 11.0, 10.5]);
        let ratio = ahead.above[1] / ahead.above[0];
        assert!((ratio - 1.25f64.sqrt()).abs() < 1e-12);
    }

    #[test]
    fn a_seasonal_difference_repeats_the_season_and_a_drift_goes_on() {
        let order = Order { seasonal_differences: 1, season: 3, ..Order::plain(0, 0, 0, true) };
        let c = Coefficients { mean: 3.0, ..Default::default() };
        let fitted = process(&[1.0, 5.0, 3.0, 4.0, 8.0, 6.0], order, c);
        assert_eq!(fitted.predict(4).point, [7.0, 11.0, 9.0, 10.0]);
    }

    fn gap_after_updates(history: &[f64], fitted: Estimate) -> f64 {
        let (known, new) = history.split_at(380);
        let mut short = Process::new(known, fitted.clone());
        new.iter().for_each(|value| short.update(*value));
        let long = Process::new(history, fitted).predict(24).point;
        crate::accuracy::mae(&short.predict(24).point, &long)
    }

    #[test]
    fn updates_are_the_same_as_a_longer_history() {
        let plain: Vec<f64> = (0..400).map(|t| made::noise(5, t) + made::noise(5, t + 1)).collect();
        let fitted = search::estimate(&plain[..380], Order::plain(1, 0, 0, true), None);
        assert!(gap_after_updates(&plain, fitted) < 1e-6);
        // A seasonal filter has not quite forgotten its start after 16 seasons: the gap is small
        // beside the noise, whose deviation is 1.
        let days = made::daily(3, 400, 24);
        let fitted = search::choose(&days[..380], 24);
        let gap = gap_after_updates(&days, fitted);
        assert!(gap < 0.2, "{gap}");
    }

    #[test]
    fn days_come_again() {
        let truth = made::daily(4, 24 * 22, 24);
        let fitted = Arima.fit(&truth[..24 * 20], &[24, 168]);
        let off = crate::accuracy::mae(&truth[24 * 20..], &fitted.predict(48).point);
        assert!(off < 1.5, "{}", fitted.describe());
    }

    #[test]
    fn constants_and_short_histories_are_answered_simply() {
        assert_eq!(Arima.fit(&[4.0; 100], &[24]).predict(2).point, [4.0, 4.0]);
        assert_eq!(Arima.fit(&[1.0, 2.0, 4.0], &[]).describe(), "last value");
    }
}
