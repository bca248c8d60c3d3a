//! Several models tried on several series, and what to make of them together.
//!
//! Shared weights are chosen on all series: one model after the other is added, the same one again
//! if need be, as long as errors at earlier moments fall. A series then leans to the models that
//! were right about it.

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

/// Rounds of adding a model to the mix.
const ROUNDS: usize = 12;
/// How much a series leans to the models that were right about it: 0 not at all, 2 strongly.
const LEANING: f64 = 1.0;

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

    /// The models mixed by `shared` weights, as far as they were right about this series.
    pub fn combine(&self, shared: &[f64]) -> Combined {
        let weights = self.weights(shared);
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

    fn weights(&self, shared: &[f64]) -> Vec<f64> {
        let lean = |(tried, shared): (&Tried, &f64)| {
            shared * (tried.loss / self.scale).max(1e-6).powf(-LEANING)
        };
        normalised(self.tried.iter().zip(shared).map(lean).collect())
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

/// Weights of the models for all series: the mix that was least wrong on average.
pub fn shared_weights(trials: &[Trial<'_>], models: usize) -> Vec<f64> {
    let errors: Vec<Vec<f32>> = (0..models).map(|model| errors_of(trials, model)).collect();
    let samples = errors.first().map_or(0, Vec::len);
    if models < 2 || samples == 0 {
        return vec![1.0 / models.max(1) as f64; models];
    }
    let mut counts = vec![0.0; models];
    let mut sum = vec![0.0f32; samples];
    for round in 0..ROUNDS {
        let share = 1.0 / (round + 1) as f32;
        let loss = |model: usize| -> f64 {
            let mix =
                sum.iter().zip(&errors[model]).map(|(sum, error)| f64::from((sum + error).abs()));
            mix.sum::<f64>() * f64::from(share)
        };
        let losses: Vec<f64> = (0..models).map(loss).collect();
        let best = (0..models).min_by(|&a, &b| losses[a].total_cmp(&losses[b])).unwrap_or(0);
        counts[best] += 1.0;
        sum.iter_mut().zip(&errors[best]).for_each(|(sum, error)| *sum += error);
    }
    normalised(counts)
}

/// Signed errors of one model at all origins of all series, in units of each.
fn errors_of(trials: &[Trial<'_>], model: usize) -> Vec<f32> {
    let mut errors = Vec::new();
    for trial in trials {
        for (origin, said) in trial.origins.iter().zip(&trial.tried[model].earlier) {
            let pairs = said.point.iter().zip(&trial.values[origin..]);
            // One series that nobody foresees must not choose for all.
            let error = |(point, truth): (&f64, &f64)| {
                ((point - truth) / trial.scale).clamp(-20.0, 20.0) as f32
            };
            errors.extend(pairs.map(error));
        }
    }
    errors
}

fn normalised(weights: Vec<f64>) -> Vec<f64> {
    let sum: f64 = weights.iter().sum();
    if !sum.is_finite() || sum <= 0.0 {
        return vec![1.0 / weights.len().max(1) as f64; weights.len()];
    }
    weights.into_iter().map(|weight| weight / sum).collect()
}

fn mixed(predictions: &[&Prediction], weights: &[f64]) -> Prediction {
    let horizon = predictions.first().map_or(0, |it| it.point.len());
    let mut mix = silent(horizon);
    for (prediction, weight) in predictions.iter().zip(weights) {
        let add = |to: &mut [f64], from: &[f64]| {
            to.iter_mut().zip(from).for_each(|(to, from)| *to += weight * from);
        };
        add(&mut mix.point, &prediction.point);
        add(&mut mix.below, &prediction.below);
        add(&mut mix.above, &prediction.above);
    }
    mix
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
        let series: Vec<Vec<f64>> = (0..5).map(|seed| made::daily(seed, 300, 24)).collect();
        let trials = tried(&series);
        let weights = shared_weights(&trials, 3);
        assert!(weights[1] > 0.8, "{weights:?}");
        assert!((weights.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        let combined = trials[0].combine(&weights);
        assert!(combined.model.contains("seasonal naive"), "{}", combined.model);
    }

    #[test]
    fn a_series_leans_to_what_was_right_about_it() {
        let series = vec![made::daily(1, 300, 24), made::walk(2, 300)];
        let trials = tried(&series);
        let even = [1.0 / 3.0; 3];
        let (days, walk) = (trials[0].weights(&even), trials[1].weights(&even));
        assert!(days[1] > days[0] && walk[0] > walk[1], "{days:?} {walk:?}");
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
        let point = trial.combine(&[0.5, 0.5]).prediction.point;
        assert!(point.iter().all(|value| (value - values[99]).abs() < 1e-9), "{point:?}");
    }
}
