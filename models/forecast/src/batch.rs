//! Forecasts of many series at once: global models are trained on all of them, every model is
//! tried at earlier moments of each, and what was wrong there sets weights and widths.

use crate::conformal::{self, Scores, Widths};
use crate::ensemble::{Combined, Question, Trial};
use crate::global::quantile::{Kind, Quantiles, Training};
use crate::global::ridge::{Lessons, Ridge};
use crate::global::state::SeriesState;
use crate::method::Method;
use crate::model::{Model, Prediction};
use crate::parallel;
use crate::prepare::{Findings, Prepared, prepare};
use crate::rolling::Origins;

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
/// Above this many series, trying several models on each takes too long: one network answers.
const MOST_TRIED: usize = 3_000;

/// Forecasts every series; missing samples are `NaN`. The same answer on any number of threads.
pub fn forecast(series: &[Vec<f64>], spec: &Spec) -> Vec<Forecast> {
    forecast_from(series, series, spec)
}

/// Forecasts every series; models for all series are trained on `teachers`, which may be others.
pub fn forecast_from(teachers: &[Vec<f64>], series: &[Vec<f64>], spec: &Spec) -> Vec<Forecast> {
    let lessons = prepared(teachers, spec);
    let asked = prepared(series, spec);
    let network = match spec.method {
        Method::Net => Some(Kind::Net),
        Method::Gru => Some(Kind::Gru),
        Method::Lstm => Some(Kind::Lstm),
        Method::Auto if series.len() > MOST_TRIED => Some(Kind::Net),
        _ => None,
    };
    let whole: Vec<&[f64]> = lessons.iter().map(|it| it.values.as_slice()).collect();
    if let Some(model) = network.and_then(|kind| train(kind, &whole, spec)) {
        return by_network(&model, &asked, spec);
    }
    let members = members(&lessons, spec);
    let question = Question { horizon: spec.horizon, seasons: &spec.seasons };
    let trials = parallel::map(asked.len(), spec.threads, |i| {
        let values = asked[i].values.as_slice();
        Trial::new(&members, values, origins_of(values, spec), question)
    });
    let combined = parallel::map(trials.len(), spec.threads, |i| trials[i].combine());
    let scores: Vec<&Scores> = combined.iter().map(|it| &it.scores).collect();
    let everybody = conformal::pooled(&scores, spec.level);
    let answer = |(combined, prepared): (&Combined, &Prepared)| {
        let widths = widths_of(combined, &everybody, spec.level);
        let Prediction { point, below, above } = &combined.prediction;
        let at = |sign: f64, spread: &[f64]| {
            let offset = spread.iter().zip(&widths.0);
            point.iter().zip(offset).map(|(p, (s, w))| spec.bounded(p + sign * s * w)).collect()
        };
        Forecast {
            lower: at(-1.0, below),
            upper: at(1.0, above),
            point: point.iter().map(|value| spec.bounded(*value)).collect(),
            model: combined.model.clone(),
            findings: prepared.findings,
        }
    };
    combined.iter().zip(&asked).map(answer).collect()
}

impl Spec {
    fn bounded(&self, value: f64) -> f64 {
        let value = self.floor.map_or(value, |floor| value.max(floor));
        self.ceiling.map_or(value, |ceiling| value.min(ceiling))
    }
}

fn prepared(series: &[Vec<f64>], spec: &Spec) -> Vec<Prepared> {
    parallel::map(series.len(), spec.threads, |i| prepare(&series[i], &spec.seasons))
}

fn origins_of(values: &[f64], spec: &Spec) -> Origins {
    Origins::recent(values.len(), spec.horizon, MOST_ORIGINS)
}

/// A series' own errors say most; those of all others steady them.
fn widths_of(combined: &Combined, everybody: &Widths, level: f64) -> Widths {
    if combined.scores.is_empty() {
        return everybody.clone();
    }
    combined.scores.widths(level).blended(everybody, 0.5)
}

/// The models behind a name. Those for all series see only what was before the first origin of
/// each, so that their trials are as honest as everybody's.
fn members(lessons: &[Prepared], spec: &Spec) -> Vec<Box<dyn Model>> {
    let known: Vec<&[f64]> =
        lessons.iter().map(|it| &it.values[..origins_of(&it.values, spec).first]).collect();
    let ridge = || {
        Ridge::train(&known, &spec.seasons, spec.horizon, Lessons::default())
            .map(|model| Box::new(model) as Box<dyn Model>)
    };
    let mut members: Vec<Box<dyn Model>> = Vec::new();
    match spec.method {
        Method::Auto => {
            members.extend(ridge());
            let network = train(Kind::Net, &known, spec);
            members.extend(network.map(|model| Box::new(model) as Box<dyn Model>));
            let local = [Method::Arima, Method::Ets, Method::SeasonalNaive];
            members.extend(local.into_iter().filter_map(Method::alone));
        }
        Method::Ridge => members.extend(ridge()),
        method => members.extend(method.alone()),
    }
    if members.is_empty() {
        // Too little to learn from together: each for itself.
        members.extend(Method::Mstl.alone());
    }
    members
}

fn train(kind: Kind, known: &[&[f64]], spec: &Spec) -> Option<Quantiles> {
    let season = spec.seasons.iter().copied().find(|&m| m > 1);
    let training =
        Training { threads: spec.threads, ..Training::new(kind, spec.horizon, spec.level, season) };
    Quantiles::train(known, training)
}

/// One network answers for all, without trials: its widths were set when it was trained.
fn by_network(model: &Quantiles, asked: &[Prepared], spec: &Spec) -> Vec<Forecast> {
    let season = model.training().season;
    let states = parallel::map(asked.len(), spec.threads, |i| {
        let mut state = SeriesState::new(season);
        asked[i].values.iter().for_each(|value| state.push(*value as f32));
        state
    });
    let rows = model.predict_all(&states, spec.threads);
    let name = format!("{} of all series", model.name());
    let answer = |(row, prepared): (&[f32], &Prepared)| {
        let part = |part: usize| -> Vec<f64> {
            let values = &row[part * spec.horizon..(part + 1) * spec.horizon];
            values.iter().map(|value| spec.bounded(f64::from(*value))).collect()
        };
        let (lower, point, upper) = (part(0), part(1), part(2));
        Forecast { point, lower, upper, model: name.clone(), findings: prepared.findings }
    };
    rows.chunks_exact(3 * spec.horizon).zip(asked).map(answer).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made;

    fn spec(method: Method) -> Spec {
        Spec {
            horizon: 8,
            seasons: vec![12],
            level: 0.9,
            method,
            threads: 2,
            floor: None,
            ceiling: None,
        }
    }

    fn mixed_bag() -> Vec<Vec<f64>> {
        let mut bag: Vec<Vec<f64>> = (0..6).map(|seed| made::daily(seed, 200, 12)).collect();
        let mut broken = made::daily(9, 200, 12);
        broken[50] = f64::NAN;
        broken[60] = f64::INFINITY;
        broken[70] = -1e300;
        bag.push(broken);
        bag.push(vec![]);
        bag.push(vec![f64::NAN; 30]);
        bag.push(vec![7.0]);
        bag.push(vec![3.0; 100]);
        bag.push((0..150).map(|t| f64::from(t % 90)).collect());
        bag.push(vec![1e15, -1e15, 1e15, -1e15, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 1.0]);
        bag
    }

    #[test]
    fn every_model_answers_anything_with_numbers() {
        let bag = mixed_bag();
        for method in Method::ALL {
            let answers = forecast(&bag, &spec(method));
            assert_eq!(answers.len(), bag.len());
            for (row, answer) in answers.iter().enumerate() {
                for values in [&answer.point, &answer.lower, &answer.upper] {
                    assert_eq!(values.len(), 8, "{method} on series {row}");
                    let finite = values.iter().all(|value| value.is_finite());
                    assert!(finite, "{method} on series {row}: {values:?}");
                }
                let ordered = (0..8).all(|step| {
                    answer.lower[step] <= answer.point[step]
                        && answer.point[step] <= answer.upper[step]
                });
                assert!(ordered, "{method} on series {row}: {answer:?}");
            }
            assert!(answers[10].point.iter().all(|value| (value - 3.0).abs() < 0.1), "{method}");
        }
    }

    #[test]
    fn threads_change_nothing() {
        let bag = mixed_bag();
        for method in [Method::Auto, Method::Net] {
            let one = forecast(&bag, &Spec { threads: 1, ..spec(method) });
            let three = forecast(&bag, &Spec { threads: 3, ..spec(method) });
            assert_eq!(one, three, "{method}");
        }
    }

    #[test]
    fn the_level_sets_the_width_and_bounds_are_kept() {
        let bag: Vec<Vec<f64>> = (0..4).map(|seed| made::daily(seed, 200, 12)).collect();
        let width = |level: f64| {
            let answers = forecast(&bag, &Spec { level, ..spec(Method::Mstl) });
            answers.iter().map(|it| it.upper[3] - it.lower[3]).sum::<f64>()
        };
        assert!(width(0.5) < width(0.9) && width(0.9) <= width(0.99));
        let bounded =
            Spec { floor: Some(49.0), ceiling: Some(51.0), ..spec(Method::SeasonalNaive) };
        let answers = forecast(&bag, &bounded);
        let all = answers.iter().flat_map(|it| it.point.iter().chain(&it.lower).chain(&it.upper));
        assert!(all.into_iter().all(|value| (49.0..=51.0).contains(value)));
    }
}
