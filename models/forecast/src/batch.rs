//! Forecasts of many series at once: global models are trained on all of them, every model is
//! tried at earlier moments of each, and what was wrong there sets weights and widths.

use crate::accuracy;
use crate::conformal::{self, Scores, Widths};
use crate::global::quantile::{Kind, Quantiles, Training};
use crate::global::ridge::{Lessons, Ridge};
use crate::method::Method;
use crate::model::{Model, Prediction};
use crate::parallel;
use crate::prepare::{Findings, prepare};
use crate::rolling::{Origins, roll};

/// What is asked.
#[derive(Clone, Debug)]
pub struct Spec {
    pub horizon: usize,
    /// Lengths of seasons in samples.
    pub seasons: Vec<usize>,
    /// The share of samples that intervals are to hold, between 0 and 1.
    pub level: f64,
    pub method: Method,
    pub threads: usize,
    /// What samples cannot fall below or rise above, where that is known.
    pub floor: Option<f64>,
    pub ceiling: Option<f64>,
}

/// The answer for one series.
#[derive(Clone, Debug, PartialEq)]
pub struct Forecast {
    /// The middle of what is expected, by step.
    pub point: Vec<f64>,
    pub lower: Vec<f64>,
    pub upper: Vec<f64>,
    pub model: String,
    pub findings: Findings,
}

/// Earlier moments at which models are tried.
const MOST_ORIGINS: usize = 16;

/// Forecasts every series; missing samples are `NaN`. The same answer on any number of threads.
pub fn forecast(series: &[Vec<f64>], spec: &Spec) -> Vec<Forecast> {
    let prepared =
        parallel::map(series.len(), spec.threads, |i| prepare(&series[i], &spec.seasons));
    let origins: Vec<Origins> = prepared
        .iter()
        .map(|it| Origins::recent(it.values.len(), spec.horizon, MOST_ORIGINS))
        .collect();
    let known: Vec<&[f64]> =
        prepared.iter().zip(&origins).map(|(it, origins)| &it.values[..origins.first]).collect();
    let members = members(&known, spec);
    let trials = parallel::map(series.len(), spec.threads, |i| {
        let values = &prepared[i].values;
        let tried: Vec<Tried> = members
            .iter()
            .map(|member| Tried::new(member.as_ref(), values, &origins[i], spec))
            .collect();
        Trial { tried, scale: scale(values, &spec.seasons) }
    });
    let overall = overall_losses(&trials, members.len());
    let combined = parallel::map(series.len(), spec.threads, |i| {
        trials[i].combine(&prepared[i].values, &origins[i], &overall, spec.horizon)
    });
    let scores: Vec<&Scores> = combined.iter().map(|it| &it.scores).collect();
    let everybody = conformal::pooled(&scores, spec.level);
    combined
        .iter()
        .zip(&prepared)
        .map(|(combined, prepared)| {
            let widths = combined.widths(&everybody, spec.level);
            let bounded = |value: f64| {
                let value = spec.floor.map_or(value, |floor| value.max(floor));
                spec.ceiling.map_or(value, |ceiling| value.min(ceiling))
            };
            let Prediction { point, below, above } = &combined.prediction;
            let at = |sign: f64, spread: &[f64]| {
                let offset = spread.iter().zip(&widths.0);
                point.iter().zip(offset).map(|(p, (s, w))| bounded(p + sign * s * w)).collect()
            };
            Forecast {
                lower: at(-1.0, below),
                upper: at(1.0, above),
                point: point.iter().map(|value| bounded(*value)).collect(),
                model: combined.model.clone(),
                findings: prepared.findings,
            }
        })
        .collect()
}

/// The models behind a name.
fn members(known: &[&[f64]], spec: &Spec) -> Vec<Box<dyn Model>> {
    let ridge = || {
        Ridge::train(known, &spec.seasons, spec.horizon, Lessons::default())
            .map(|model| Box::new(model) as Box<dyn Model>)
    };
    let network = || {
        let kind = match spec.method {
            Method::Gru => Kind::Gru,
            Method::Lstm => Kind::Lstm,
            _ => Kind::Net,
        };
        let season = spec.seasons.iter().copied().find(|&m| m > 1);
        let training = Training {
            threads: spec.threads,
            ..Training::new(kind, spec.horizon, spec.level, season)
        };
        Quantiles::train(known, training).map(|model| Box::new(model) as Box<dyn Model>)
    };
    let mut members: Vec<Box<dyn Model>> = Vec::new();
    match spec.method {
        Method::Auto => {
            members.extend(ridge());
            let local = [Method::Arima, Method::Mstl, Method::Dot];
            members.extend(local.into_iter().filter_map(Method::alone));
        }
        Method::Ridge => members.extend(ridge()),
        Method::Net | Method::Gru | Method::Lstm => members.extend(network()),
        method => members.extend(method.alone()),
    }
    if members.is_empty() {
        // Too little to learn from together: each for itself.
        members.extend(Method::Mstl.alone());
    }
    members
}

/// The unit of a series' errors: what a naive forecast gets wrong.
fn scale(values: &[f64], seasons: &[usize]) -> f64 {
    let season = seasons.iter().copied().filter(|&m| m > 1 && 2 * m <= values.len()).min();
    let scale = accuracy::naive_scale(values, season.unwrap_or(1));
    if scale > 0.0 { scale } else { 1.0 }
}

/// What one model said at each origin, and says now.
#[derive(Debug)]
struct Tried {
    earlier: Vec<Prediction>,
    now: Prediction,
    loss: f64,
    model: String,
}

impl Tried {
    fn new(model: &dyn Model, values: &[f64], origins: &Origins, spec: &Spec) -> Self {
        let rolled = roll(model, values, &spec.seasons, spec.horizon, origins);
        let losses = origins.iter().zip(&rolled.predictions).map(|(origin, prediction)| {
            accuracy::mae(&values[origin..origin + spec.horizon], &prediction.point)
        });
        let loss = losses.sum::<f64>() / origins.count.max(1) as f64;
        let fitted = if origins.count > 0 {
            rolled.fitted.refit(values, &spec.seasons)
        } else {
            rolled.fitted
        };
        let now = fitted.predict(spec.horizon);
        Self { earlier: rolled.predictions, now, loss, model: fitted.describe() }
    }
}

#[derive(Debug)]
struct Trial {
    tried: Vec<Tried>,
    scale: f64,
}

#[derive(Debug)]
struct Combined {
    prediction: Prediction,
    scores: Scores,
    model: String,
}

/// Each member's mean loss over all series, in units of each.
fn overall_losses(trials: &[Trial], members: usize) -> Vec<f64> {
    let mean = |member: usize| {
        let losses = trials.iter().map(|trial| (trial.tried[member].loss / trial.scale).min(10.0));
        losses.sum::<f64>() / trials.len().max(1) as f64
    };
    (0..members).map(mean).collect()
}

impl Trial {
    fn combine(
        &self,
        values: &[f64],
        origins: &Origins,
        overall: &[f64],
        horizon: usize,
    ) -> Combined {
        let weights = self.weights(overall);
        let floor = 1e-3 * self.scale;
        let mut scores = Scores::new(horizon);
        for (turn, origin) in origins.iter().enumerate() {
            let said: Vec<&Prediction> = self.tried.iter().map(|it| &it.earlier[turn]).collect();
            scores.add(&mixed(&said, &weights), &values[origin..origin + horizon], floor);
        }
        let now: Vec<&Prediction> = self.tried.iter().map(|it| &it.now).collect();
        let mut prediction = mixed(&now, &weights);
        let spreads = prediction.below.iter_mut().chain(&mut prediction.above);
        spreads.for_each(|spread| *spread = spread.max(floor));
        let named = self.tried.iter().zip(&weights).map(|(tried, weight)| match self.tried.len() {
            1 => tried.model.clone(),
            _ => format!("{:.0} % {}", 100.0 * weight, tried.model),
        });
        Combined { prediction, scores, model: named.collect::<Vec<_>>().join(", ") }
    }

    /// By what each got wrong here and everywhere; a model that is twice as wrong counts little.
    fn weights(&self, overall: &[f64]) -> Vec<f64> {
        let losses = self.tried.iter().zip(overall).map(|(tried, overall)| {
            let own = (tried.loss / self.scale).max(1e-9);
            (own.ln() + 0.5 * overall.max(1e-9).ln()) / 1.5
        });
        let raw: Vec<f64> = losses.map(|loss| (-2.0 * loss).exp()).collect();
        let sum: f64 = raw.iter().sum();
        if !sum.is_finite() || sum <= 0.0 {
            return vec![1.0 / raw.len() as f64; raw.len()];
        }
        raw.into_iter().map(|weight| weight / sum).collect()
    }
}

fn mixed(predictions: &[&Prediction], weights: &[f64]) -> Prediction {
    let horizon = predictions.first().map_or(0, |it| it.point.len());
    let mut mix = Prediction::even(vec![0.0; horizon], vec![0.0; horizon]);
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

impl Combined {
    /// A series' own errors say most; those of all others steady them.
    fn widths(&self, everybody: &Widths, level: f64) -> Widths {
        if self.scores.is_empty() {
            return everybody.clone();
        }
        self.scores.widths(level).blended(everybody, 0.5)
    }
}
