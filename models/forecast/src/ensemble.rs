//! Several models tried on one series, and what to make of them together.
//!
//! Each model weighs by what it got wrong at earlier moments of the series, and the middle of what
//! they say is taken: one that is far off moves a mean, but not a median.

use crate::accuracy;
use crate::conformal::Scores;
use crate::model::{Model, Prediction};
use crate::rolling::{Origins, roll};

/// What is asked of every model.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    pub horizon: usize,
    pub seasons: &'a [usize],
}

/// What one model said at each origin, and says now.
#[derive(Debug)]
pub struct Tried {
    earlier: Vec<Prediction>,
    now: Prediction,
    loss: f64,
    model: String,
}

/// All models on one series.
#[derive(Debug)]
pub struct Trial<'a> {
    values: &'a [f64],
    origins: Origins,
    tried: Vec<Tried>,
    /// What a naive forecast gets wrong: the unit of this series' errors.
    scale: f64,
}

/// What the models say together.
#[derive(Debug)]
pub struct Combined {
    pub prediction: Prediction,
    pub scores: Scores,
    pub model: String,
}

/// How much a series leans to the models that were right about it: with 2, a model that was twice
/// as wrong is heard a quarter as much. Chosen on M4 Hourly from the two days before the last one
/// known; from 1 to 3 makes no difference beyond the third digit.
const LEANING: i32 = 2;

impl<'a> Trial<'a> {
    pub fn new(
        models: &[Box<dyn Model>],
        values: &'a [f64],
        origins: Origins,
        question: Question<'_>,
    ) -> Self {
        let tried =
            models.iter().map(|model| Tried::new(model.as_ref(), values, &origins, question));
        let tried = tried.collect();
        Self { values, origins, tried, scale: scale(values, question.seasons) }
    }

    /// The models together, each heard as far as it was right about this series.
    pub fn combine(&self) -> Combined {
        let weights = self.weights();
        let floor = 1e-3 * self.scale;
        let horizon = self.tried.first().map_or(0, |tried| tried.now.point.len());
        let mut scores = Scores::new(horizon);
        for (turn, origin) in self.origins.iter().enumerate() {
            let said: Vec<&Prediction> = self.tried.iter().map(|it| &it.earlier[turn]).collect();
            scores.add(&mixed(&said, &weights), &self.values[origin..origin + horizon], floor);
        }
        let now: Vec<&Prediction> = self.tried.iter().map(|it| &it.now).collect();
        let mut prediction = mixed(&now, &weights);
        let spreads = prediction.below.iter_mut().chain(&mut prediction.above);
        spreads.for_each(|spread| *spread = spread.max(floor));
        let heard = self.tried.iter().zip(&weights).filter(|(_, weight)| **weight >= 0.005);
        let named = heard.map(|(tried, weight)| match self.tried.len() {
            1 => tried.model.clone(),
            _ => format!("{:.0} % {}", 100.0 * weight, tried.model),
        });
        Combined { model: named.collect::<Vec<_>>().join(", "), prediction, scores }
    }

    fn weights(&self) -> Vec<f64> {
        let lean = |tried: &Tried| (tried.loss / self.scale).max(1e-3).powi(-LEANING);
        normalised(self.tried.iter().map(lean).collect())
    }
}

impl Tried {
    fn new(model: &dyn Model, values: &[f64], origins: &Origins, question: Question<'_>) -> Self {
        let Question { horizon, seasons } = question;
        let rolled = roll(model, values, seasons, horizon, origins);
        let losses = origins.iter().zip(&rolled.predictions).map(|(origin, prediction)| {
            accuracy::mae(&values[origin..origin + horizon], &prediction.point)
        });
        let loss = losses.sum::<f64>() / origins.count.max(1) as f64;
        let fitted =
            if origins.count > 0 { rolled.fitted.refit(values, seasons) } else { rolled.fitted };
        let now = fitted.predict(horizon);
        // A model whose parameters ran away is not heard.
        let sound = |it: &Prediction| it.point.iter().chain(&it.above).all(|v| v.is_finite());
        let loss = if sound(&now) && loss.is_finite() { loss } else { f64::INFINITY };
        let now = if loss.is_finite() { now } else { silent(horizon) };
        let earlier = rolled.predictions.into_iter();
        let earlier = earlier.map(|it| if sound(&it) { it } else { silent(horizon) });
        Self { earlier: earlier.collect(), now, loss, model: fitted.describe() }
    }
}

fn silent(horizon: usize) -> Prediction {
    Prediction::even(vec![0.0; horizon], vec![0.0; horizon])
}

/// The unit of a series' errors: what a naive forecast gets wrong.
fn scale(values: &[f64], seasons: &[usize]) -> f64 {
    let season = seasons.iter().copied().filter(|&m| m > 1 && 2 * m <= values.len()).min();
    let scale = accuracy::naive_scale(values, season.unwrap_or(1));
    if scale > 0.0 { scale } else { 1.0 }
}

fn normalised(weights: Vec<f64>) -> Vec<f64> {
    let sum: f64 = weights.iter().sum();
    if !sum.is_finite() || sum <= 0.0 {
        return vec![1.0 / weights.len().max(1) as f64; weights.len()];
    }
    weights.into_iter().map(|weight| weight / sum).collect()
}

/// The weighted median of points, and the weighted mean of spreads.
fn mixed(predictions: &[&Prediction], weights: &[f64]) -> Prediction {
    let horizon = predictions.first().map_or(0, |it| it.point.len());
    let mut mix = silent(horizon);
    let mut said = Vec::with_capacity(weights.len());
    for step in 0..horizon {
        said.clear();
        for (prediction, &weight) in predictions.iter().zip(weights) {
            said.push((prediction.point[step], weight));
            mix.below[step] += weight * prediction.below[step];
            mix.above[step] += weight * prediction.above[step];
        }
        mix.point[step] = median(&mut said);
    }
    mix
}

/// The value in the middle of values with weights that sum to 1, on a line between the two that
/// are nearest to the middle.
fn median(values: &mut [(f64, f64)]) -> f64 {
    values.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut before: Option<(f64, f64)> = None;
    let mut passed = 0.0;
    for &(value, weight) in values.iter().filter(|(_, weight)| *weight > 0.0) {
        let centre = passed + weight / 2.0;
        passed += weight;
        if centre >= 0.5 {
            return before
                .map_or(value, |(low, at)| low + (value - low) * (0.5 - at) / (centre - at));
        }
        before = Some((value, centre));
    }
    before.map_or(0.0, |(value, _)| value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drift::Drift;
    use crate::last_value::LastValue;
    use crate::made;
    use crate::seasonal_naive::SeasonalNaive;

    fn tried(series: &[Vec<f64>]) -> Vec<Trial<'_>> {
        let models: Vec<Box<dyn Model>> =
            vec![Box::new(LastValue), Box::new(SeasonalNaive), Box::new(Drift)];
        let question = Question { horizon: 12, seasons: &[24] };
        series
            .iter()
            .map(|values| {
                let origins = Origins::recent(values.len(), 12, 8);
                Trial::new(&models, values, origins, question)
            })
            .collect()
    }

    #[test]
    fn the_model_that_is_right_gets_the_weight() {
        let series = vec![made::daily(1, 300, 24), made::walk(2, 300)];
        let trials = tried(&series);
        let (days, walk) = (trials[0].weights(), trials[1].weights());
        assert!(days[1] > 0.8 && walk[0] > walk[1], "{days:?} {walk:?}");
        assert!((days.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        let combined = trials[0].combine();
        assert!(combined.model.contains("seasonal naive"), "{}", combined.model);
    }

    #[test]
    fn the_middle_is_where_half_of_the_weight_is() {
        let check = |values: &[(f64, f64)], middle: f64| {
            let found = median(&mut values.to_vec());
            assert!((found - middle).abs() < 1e-12, "{values:?}: {found}");
        };
        check(&[(7.0, 1.0)], 7.0);
        check(&[(3.0, 0.5), (1.0, 0.5)], 2.0);
        check(&[(900.0, 0.2), (2.0, 0.6), (1.0, 0.2)], 2.0);
        check(&[(1.0, 0.9), (5.0, 0.1)], 1.0);
        check(&[(1.0, 0.0), (5.0, 1.0)], 5.0);
        check(&[], 0.0);
    }

    #[test]
    fn a_model_that_ran_away_is_not_heard() {
        #[derive(Debug)]
        struct Broken;
        impl Model for Broken {
            fn name(&self) -> &'static str {
                "broken"
            }
            fn fit(&self, _: &[f64], _: &[usize]) -> Box<dyn crate::model::Fitted> {
                LastValue.fit(&[f64::NAN], &[])
            }
        }
        let values = made::walk(1, 100);
        let models: Vec<Box<dyn Model>> = vec![Box::new(Broken), Box::new(LastValue)];
        let origins = Origins { first: 100, stride: 1, count: 0 };
        let trial = Trial::new(&models, &values, origins, Question { horizon: 2, seasons: &[] });
        let point = trial.combine().prediction.point;
        assert!(point.iter().all(|value| (value - values[99]).abs() < 1e-9), "{point:?}");
    }
}
