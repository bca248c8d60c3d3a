//! The Theta method: halfway between the long-run line and simple smoothing; and the dynamic
//! optimised form, in which the data say how far to lean to the line.

use crate::decompose;
use crate::last_value::LastValue;
use crate::model::{ErrorScale, Fitted, Model, Prediction};
use crate::optimise::simplex;

/// The method as it won the M3 competition: theta is 2.
#[derive(Clone, Copy, Debug, Default)]
pub struct Theta;

/// Theta, smoothing and start by least squares; the line is followed as samples come.
#[derive(Clone, Copy, Debug, Default)]
pub struct DynamicTheta;

#[derive(Clone, Copy, Debug)]
struct Lines {
    alpha: f64,
    theta: f64,
    level: f64,
    /// `(1 - alpha)` to the power of the samples seen.
    forgotten: f64,
    seen: f64,
    mean: f64,
    intercept: f64,
    slope: f64,
}

#[derive(Clone, Debug)]
struct Leaning {
    lines: Lines,
    /// Factors of the season, 1 where there is none; `next` is the place of the coming sample.
    season: Vec<f64>,
    next: usize,
    errors: ErrorScale,
    free_theta: bool,
}

impl Model for Theta {
    fn name(&self) -> &'static str {
        "theta"
    }

    fn fit(&self, history: &[f64], seasons: &[usize]) -> Box<dyn Fitted> {
        fit(history, seasons, false)
    }
}

impl Model for DynamicTheta {
    fn name(&self) -> &'static str {
        "dot"
    }

    fn fit(&self, history: &[f64], seasons: &[usize]) -> Box<dyn Fitted> {
        fit(history, seasons, true)
    }
}

fn fit(history: &[f64], seasons: &[usize], free_theta: bool) -> Box<dyn Fitted> {
    if history.len() < 8 {
        return LastValue.fit(history, seasons);
    }
    let season = season_of(history, seasons);
    let plain: Vec<f64> =
        history.iter().enumerate().map(|(t, value)| value / season[t % season.len()]).collect();
    let scale = plain.iter().map(|value| value.abs()).sum::<f64>() / plain.len() as f64;
    let scale = scale.max(1e-9);
    let lines_at = |at: &[f64]| {
        let alpha = 0.01 + 0.98 / (1.0 + (-at[0]).exp());
        let theta = if free_theta { 1.0 + at[2].abs() } else { 2.0 };
        Lines::new(alpha, theta, plain[0] + 0.1 * scale * at[1])
    };
    let cost = |at: &[f64]| {
        let mut lines = lines_at(at);
        // The first samples have no line yet.
        let errors = plain.iter().map(|value| value - lines.step(*value)).skip(3);
        errors.map(|error| error * error).sum::<f64>() / (scale * scale)
    };
    let (start, steps): (&[f64], &[f64]) =
        if free_theta { (&[0.0, 0.0, 1.0], &[1.0, 0.5, 1.0]) } else { (&[0.0; 2], &[1.0, 0.5]) };
    let (best, _) = simplex(cost, start, steps, 200, 1e-7);
    let mut lines = lines_at(&best);
    let errors = ErrorScale::of(plain.iter().map(|value| value - lines.step(*value)).skip(3));
    let next = history.len() % season.len();
    Box::new(Leaning { lines, season, next, errors, free_theta })
}

/// Factors of the shortest season that shows in the correlations, if values allow factors.
fn season_of(history: &[f64], seasons: &[usize]) -> Vec<f64> {
    let found = seasons.iter().copied().filter(|&m| decompose::has_season(history, m)).min();
    match found {
        Some(season) if history.iter().all(|value| *value > 0.0) => {
            decompose::factors(history, season)
        }
        _ => vec![1.0],
    }
}

impl Lines {
    fn new(alpha: f64, theta: f64, level: f64) -> Self {
        let mean = 0.0;
        Self { alpha, theta, level, forgotten: 1.0, seen: 0.0, mean, intercept: 0.0, slope: 0.0 }
    }

    fn expected(&self) -> f64 {
        let next = self.forgotten * (1.0 - self.alpha);
        let line = self.forgotten * self.intercept + (1.0 - next) / self.alpha * self.slope;
        self.level + (1.0 - 1.0 / self.theta) * line
    }

    /// Takes a sample and returns what was expected.
    fn step(&mut self, sample: f64) -> f64 {
        let expected = self.expected();
        let t = self.seen + 1.0;
        self.level += self.alpha * (sample - self.level);
        if t > 1.0 {
            self.slope = ((t - 2.0) * self.slope + 6.0 * (sample - self.mean) / t) / (t + 1.0);
        }
        self.mean += (sample - self.mean) / t;
        self.intercept = self.mean - self.slope * (t + 1.0) / 2.0;
        self.forgotten *= 1.0 - self.alpha;
        self.seen = t;
        expected
    }
}

impl Fitted for Leaning {
    fn predict(&self, horizon: usize) -> Prediction {
        let mut lines = self.lines;
        let deviation = self.errors.deviation();
        let mut points = Vec::with_capacity(horizon);
        let mut spreads = Vec::with_capacity(horizon);
        for step in 0..horizon {
            let expected = lines.expected();
            lines.step(expected);
            let factor = self.season[(self.next + step) % self.season.len()];
            let variance = 1.0 + step as f64 * lines.alpha * lines.alpha;
            points.push(expected * factor);
            spreads.push(deviation * factor * variance.sqrt());
        }
        Prediction::even(points, spreads)
    }

    fn update(&mut self, value: f64) {
        let plain = value / self.season[self.next];
        self.next = (self.next + 1) % self.season.len();
        let expected = self.lines.step(plain);
        self.errors.add(plain - expected);
    }

    fn refit(&self, history: &[f64], seasons: &[usize]) -> Box<dyn Fitted> {
        fit(history, seasons, self.free_theta)
    }

    fn describe(&self) -> String {
        let name = if self.free_theta { "dynamic Theta" } else { "Theta" };
        format!("{name}({:.2})[{}]", self.lines.theta, self.season.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made;

    #[test]
    fn half_of_the_slope_is_kept() {
        let history: Vec<f64> = (0..100).map(|t| 10.0 + t as f64).collect();
        let ahead = Theta.fit(&history, &[]).predict(10).point;
        let slope = (ahead[9] - ahead[4]) / 5.0;
        assert!(slope > 0.4 && slope < 0.7, "{slope}");
        let ahead = DynamicTheta.fit(&history, &[]).predict(10).point;
        assert!((ahead[9] - 119.0).abs() < 2.0, "{ahead:?}");
    }

    #[test]
    fn the_season_comes_again() {
        let history = made::daily(1, 240, 24);
        let truth = made::daily(1, 264, 24);
        for model in [&Theta as &dyn Model, &DynamicTheta] {
            let fitted = model.fit(&history, &[24]);
            let off = crate::accuracy::mae(&truth[240..], &fitted.predict(24).point);
            assert!(off < 2.0, "{}", fitted.describe());
        }
    }

    #[test]
    fn updates_are_followed() {
        let mut fitted = DynamicTheta.fit(&made::walk(3, 100), &[]);
        (0..50).for_each(|_| fitted.update(300.0));
        assert!((fitted.predict(1).point[0] - 300.0).abs() < 10.0);
        assert_eq!(Theta.fit(&[1.0], &[]).describe(), "last value");
    }
}
