//! Exponential smoothing with error, trend and season (ETS), the shape chosen by what it would
//! have said of the recent past; simple and damped smoothing are two of its shapes.

mod choice;
mod fit;
mod shape;

pub use shape::{Noise, Season, Shape, Trend};

use crate::last_value::LastValue;
use crate::model::{ErrorScale, Fitted, Model, Prediction};
use fit::{COMPARE, Effort, Estimate, FINISH};
use shape::State;

/// Below this, a line through the samples says more about noise than about the series.
const FEWEST: usize = 8;

/// Chooses among all shapes that the history allows.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ets {
    /// Leaves seasons to somebody else, for instance a decomposition.
    pub without_season: bool,
}

/// Simple exponential smoothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Simple;

/// Holt's method with a trend that fades.
#[derive(Clone, Copy, Debug, Default)]
pub struct DampedHolt;

#[derive(Clone, Debug)]
struct Smoothed {
    estimate: Estimate,
    state: State,
    season: usize,
    /// Errors of one step; relative ones where noise is multiplicative.
    errors: ErrorScale,
    without_season: bool,
}

impl Model for Ets {
    fn name(&self) -> &'static str {
        "ets"
    }

    fn fit(&self, history: &[f64], seasons: &[usize]) -> Box<dyn Fitted> {
        if history.len() < FEWEST {
            return LastValue.fit(history, seasons);
        }
        let best = choice::choose(history, seasons, self.without_season);
        let Some((best, season)) = best else { return LastValue.fit(history, seasons) };
        let fitted = finish(history, best.shape, season, Some(&best), FINISH);
        Box::new(Smoothed { without_season: self.without_season, ..fitted })
    }
}

impl Model for Simple {
    fn name(&self) -> &'static str {
        "ses"
    }

    fn fit(&self, history: &[f64], seasons: &[usize]) -> Box<dyn Fitted> {
        fit_shape(Shape::SIMPLE, history, seasons)
    }
}

impl Model for DampedHolt {
    fn name(&self) -> &'static str {
        "holt"
    }

    fn fit(&self, history: &[f64], seasons: &[usize]) -> Box<dyn Fitted> {
        fit_shape(Shape::DAMPED, history, seasons)
    }
}

fn fit_shape(shape: Shape, history: &[f64], seasons: &[usize]) -> Box<dyn Fitted> {
    if history.len() < FEWEST {
        return LastValue.fit(history, seasons);
    }
    Box::new(finish(history, shape, 1, None, FINISH))
}

fn finish(
    history: &[f64],
    shape: Shape,
    season: usize,
    warm: Option<&Estimate>,
    effort: Effort,
) -> Smoothed {
    let estimate = fit::fit(history, shape, season, warm, effort);
    let mut state = estimate.start.clone();
    let mut errors = ErrorScale::default();
    for &sample in history {
        let expected = state.step(shape.season, &estimate.rates, sample);
        errors.add(noise_of(shape, sample, expected));
    }
    Smoothed { estimate, state, season, errors, without_season: false }
}

fn noise_of(shape: Shape, sample: f64, expected: f64) -> f64 {
    match shape.noise {
        Noise::Additive => sample - expected,
        Noise::Multiplicative => (sample - expected) / expected.abs().max(1e-12),
    }
}

impl Fitted for Smoothed {
    fn predict(&self, horizon: usize) -> Prediction {
        let Estimate { shape, rates, .. } = &self.estimate;
        let deviation = self.errors.deviation();
        let points: Vec<f64> = self.state.ahead(shape.season, rates).take(horizon).collect();
        let mut spreads = Vec::with_capacity(horizon);
        let mut variance = 1.0;
        for (step, point) in points.iter().enumerate() {
            let scale = match (shape.noise, shape.season) {
                (Noise::Multiplicative, _) => point.abs(),
                (Noise::Additive, Season::Multiplicative) => self.state.season_at(step).abs(),
                (Noise::Additive, _) => 1.0,
            };
            spreads.push(deviation * scale * f64::sqrt(variance));
            variance += self.weight_of_error(step + 1).powi(2);
        }
        Prediction::even(points, spreads)
    }

    fn update(&mut self, value: f64) {
        let Estimate { shape, rates, .. } = &self.estimate;
        let expected = self.state.step(shape.season, rates, value);
        self.errors.add(noise_of(*shape, value, expected));
    }

    fn refit(&self, history: &[f64], seasons: &[usize]) -> Box<dyn Fitted> {
        let still = self.season < 2 || choice::usable(history, seasons).contains(&self.season);
        if history.len() < FEWEST || !still {
            return Ets { without_season: self.without_season }.fit(history, seasons);
        }
        let warm = Some(&self.estimate);
        let fitted = finish(history, self.estimate.shape, self.season, warm, COMPARE);
        Box::new(Smoothed { without_season: self.without_season, ..fitted })
    }

    fn describe(&self) -> String {
        let shape = self.estimate.shape;
        if shape.season == Season::None {
            shape.to_string()
        } else {
            format!("{shape}[{}]", self.season)
        }
    }
}

impl Smoothed {
    /// How much of an error now is still there `ahead` steps later.
    fn weight_of_error(&self, ahead: usize) -> f64 {
        let rates = &self.estimate.rates;
        let trend = match self.estimate.shape.trend {
            Trend::None => 0.0,
            Trend::Additive => rates.trend * ahead as f64,
            Trend::Damped => {
                rates.trend * rates.keep * (1.0 - rates.keep.powi(ahead as i32))
                    / (1.0 - rates.keep)
            }
        };
        let again = !self.state.season.is_empty() && ahead.is_multiple_of(self.season);
        rates.level + trend + if again { rates.season } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made;

    #[test]
    fn a_season_that_grows_with_the_level_is_seen_as_multiplied() {
        let history: Vec<f64> = (0..240)
            .map(|t| {
                let season = 1.0 + 0.4 * (t as f64 * std::f64::consts::TAU / 12.0).sin();
                (100.0 + 3.0 * t as f64) * season * (1.0 + 0.01 * made::noise(1, t))
            })
            .collect();
        let fitted = Ets::default().fit(&history, &[12]);
        assert!(fitted.describe().ends_with(",M)[12]"), "{}", fitted.describe());
        let ahead = fitted.predict(12);
        for (step, point) in ahead.point.iter().enumerate() {
            let t = 240 + step;
            let season = 1.0 + 0.4 * (t as f64 * std::f64::consts::TAU / 12.0).sin();
            let truth = (100.0 + 3.0 * t as f64) * season;
            assert!((point - truth).abs() < 0.04 * truth, "step {step}: {point} not {truth}");
        }
    }

    #[test]
    fn noise_around_a_level_needs_no_trend() {
        let history: Vec<f64> = (0..200).map(|t| 50.0 + made::noise(2, t)).collect();
        let fitted = Ets::default().fit(&history, &[]);
        assert!(fitted.describe().contains(",N,N)"), "{}", fitted.describe());
        assert!((fitted.predict(5).point[4] - 50.0).abs() < 0.5);
    }

    #[test]
    fn simple_smoothing_follows_a_jump_and_damped_smoothing_a_slope() {
        let mut simple = Simple.fit(&made::walk(3, 200), &[]);
        (0..100).for_each(|_| simple.update(500.0));
        assert!((simple.predict(1).point[0] - 500.0).abs() < 5.0);
        let slope: Vec<f64> = (0..100).map(|t| t as f64 + 0.1 * made::noise(4, t)).collect();
        let ahead = DampedHolt.fit(&slope, &[]).predict(3).point;
        assert!(ahead[2] > 100.5 && ahead[2] < 103.5, "{ahead:?}");
    }

    #[test]
    fn spreads_grow_and_short_histories_are_answered_simply() {
        let spread = Ets::default().fit(&made::walk(5, 300), &[]).predict(24).above;
        assert!(spread.windows(2).all(|pair| pair[1] >= pair[0]));
        assert_eq!(Ets::default().fit(&[1.0, 2.0], &[24]).describe(), "last value");
    }

    #[test]
    fn a_warm_refit_keeps_the_shape_and_predicts_alike() {
        let history = made::daily(6, 24 * 20, 24);
        let cold = Ets::default().fit(&history[..24 * 18], &[24]);
        let warm = cold.refit(&history, &[24]);
        assert_eq!(warm.describe(), cold.describe());
        let fresh = Ets::default().fit(&history, &[24]).predict(24).point;
        let gap =
            warm.predict(24).point.iter().zip(&fresh).map(|(a, b)| (a - b).abs()).sum::<f64>();
        assert!(gap / 24.0 < 0.5, "{gap}");
    }
}
