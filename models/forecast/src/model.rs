//! What every model can do: learn from a history, predict with an idea of its own error, take
//! one more sample.

use crate::normal;
use std::fmt::Debug;

/// A way of forecasting. Fitting never fails: a history that is too short for the model is
/// answered by a simpler one, and `Fitted::describe` says so.
pub trait Model: Send + Sync + Debug {
    fn name(&self) -> &'static str;

    /// Learns from a history without gaps, oldest first. `seasons` are lengths in samples,
    /// shortest first; a model takes as many of them as it can use.
    fn fit(&self, history: &[f64], seasons: &[usize]) -> Box<dyn Fitted>;
}

/// A model that has seen a history.
pub trait Fitted: Send + Debug {
    fn predict(&self, horizon: usize) -> Prediction;

    /// Takes the sample that follows the history, without learning parameters anew. Takes the
    /// same time however long the history is.
    fn update(&mut self, value: f64);

    /// Learns parameters anew from a whole history, starting from those that it has. Models that
    /// have nothing to gain from a start say so by fitting from scratch.
    fn refit(&self, history: &[f64], seasons: &[usize]) -> Box<dyn Fitted>;

    /// What was chosen, as a statistician would write it.
    fn describe(&self) -> String;
}

/// Forecasts of the next steps: the middle, and the standard deviations that the model expects
/// below and above it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Prediction {
    pub point: Vec<f64>,
    pub below: Vec<f64>,
    pub above: Vec<f64>,
}

impl Prediction {
    /// A prediction with the same spread on both sides.
    pub fn even(point: Vec<f64>, spread: Vec<f64>) -> Self {
        Self { point, above: spread.clone(), below: spread }
    }

    /// The value that the sample of each step stays below with probability `level`, as far as
    /// errors are normal and the model is right. `crate::conformal` asks the past instead.
    pub fn quantile(&self, level: f64) -> Vec<f64> {
        let z = normal::quantile(level);
        let spread = if z < 0.0 { &self.below } else { &self.above };
        self.point.iter().zip(spread).map(|(point, spread)| point + z * spread).collect()
    }
}

/// Mean and standard deviation of errors, kept sample by sample with a long memory.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ErrorScale {
    squares: f64,
    weight: f64,
}

impl ErrorScale {
    pub fn of(errors: impl IntoIterator<Item = f64>) -> Self {
        let mut scale = Self::default();
        errors.into_iter().for_each(|error| scale.add(error));
        scale
    }

    /// Half of the weight is on the last 700 errors, so that a series that calms down is
    /// believed after some time.
    pub fn add(&mut self, error: f64) {
        const KEEP: f64 = 0.999;
        self.squares = KEEP * self.squares + error * error;
        self.weight = KEEP * self.weight + 1.0;
    }

    pub fn deviation(&self) -> f64 {
        (self.squares / self.weight.max(1.0)).sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_lie_around_the_point_by_the_spread() {
        let prediction = Prediction::even(vec![10.0, 20.0], vec![1.0, 2.0]);
        assert_eq!(prediction.quantile(0.5), [10.0, 20.0]);
        let upper = prediction.quantile(0.975);
        assert!((upper[0] - 11.96).abs() < 1e-3 && (upper[1] - 23.92).abs() < 1e-3, "{upper:?}");
    }

    #[test]
    fn the_scale_of_errors_follows_a_change() {
        let mut scale = ErrorScale::of((0..500).map(|_| 4.0));
        assert!((scale.deviation() - 4.0).abs() < 1e-12);
        (0..20_000).for_each(|_| scale.add(-1.0));
        assert!((scale.deviation() - 1.0).abs() < 1e-3);
        assert_eq!(ErrorScale::default().deviation(), 0.0);
    }
}
