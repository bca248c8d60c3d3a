//! Networks that answer with a middle and two quantiles for every step, trained on all series.
//!
//! Several networks with different starts are averaged. Their intervals are widened or narrowed
//! on the newest part of every series, which they have not learned from.

use super::gru::Gru;
use super::layer::{Dice, Pace};
use super::lessons::{Course, Drawing, Lessons, sequence};
use super::lstm::Lstm;
use super::net::Net;
use super::network::Network;
use super::sight::{FEWEST, Frame, WIDTH};
use super::state::SeriesState;
use crate::conformal::{Scores, Widths};
use crate::model::{Fitted, Model, Prediction};
use crate::{normal, parallel};
use ndarray::{Array2, ArrayView2, Axis};
use std::sync::Arc;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Net,
    Gru,
    Lstm,
}

/// How to train.
#[derive(Clone, Copy, Debug)]
pub struct Training {
    pub kind: Kind,
    pub horizon: usize,
    /// The share that the two quantiles hold between them.
    pub level: f64,
    /// The season whose usual values are looked at.
    pub season: Option<usize>,
    /// Lessons that are drawn, and how often each is gone through.
    pub lessons: usize,
    pub rounds: usize,
    pub networks: usize,
    pub threads: usize,
    pub seed: u64,
}

impl Training {
    pub fn new(kind: Kind, horizon: usize, level: f64, season: Option<usize>) -> Self {
        let (lessons, rounds, networks) = match kind {
            Kind::Net => (60_000, 8, 3),
            Kind::Gru | Kind::Lstm => (24_000, 5, 1),
        };
        Self { kind, horizon, level, season, lessons, rounds, networks, threads: 2, seed: 1 }
    }
}

/// Trained networks; a `Model` that learns nothing more from a single series.
#[derive(Clone, Debug)]
pub struct Quantiles(Arc<Trained>);

#[derive(Debug)]
struct Trained {
    networks: Vec<Box<dyn Network>>,
    training: Training,
    widths: Widths,
}

const BATCH: usize = 256;

impl Quantiles {
    /// Learns from all series together. `None` if they are too short or too few to learn from.
    pub fn train(series: &[&[f64]], training: Training) -> Option<Self> {
        let Training { horizon, season, threads, seed, .. } = training;
        let courses = parallel::map(series.len(), threads, |i| Course::new(series[i], season));
        // The newest tenth, and at least two horizons, is for the widths.
        let cut = |len: usize| len.saturating_sub((len / 10).max(2 * horizon));
        let drawing = Drawing {
            horizon,
            most: training.lessons,
            sequences: training.kind != Kind::Net,
            seed,
        };
        let before = |len: usize| (FEWEST, cut(len).saturating_sub(horizon - 1));
        let lessons = Lessons::draw(&courses, before, drawing);
        if horizon == 0 || lessons.len() < 500 {
            return None;
        }
        let networks = parallel::map(training.networks, threads, |number| {
            let mut network = made(&training, seed.wrapping_add(100 * number as u64));
            run(network.as_mut(), &lessons, &training, number as u64);
            network
        });
        let mut trained = Trained { networks, training, widths: Widths(vec![1.0; horizon]) };
        let newest = |len: usize| (cut(len), len);
        let most = 8_000;
        let unseen = Lessons::draw(&courses, newest, Drawing { most, seed: seed ^ 7, ..drawing });
        trained.calibrate(&unseen);
        Some(Self(Arc::new(trained)))
    }

    pub fn training(&self) -> &Training {
        &self.0.training
    }

    /// Forecasts of many series: for each, `horizon` lower bounds, middles and upper bounds one
    /// after the other.
    pub fn predict_all(&self, states: &[SeriesState], threads: usize) -> Vec<f32> {
        let width = 3 * self.0.training.horizon;
        let mut out = vec![0.0; states.len() * width];
        // Blocks small enough to stay in the cache between layers.
        const BLOCK: usize = 256;
        let mut blocks: Vec<(&[SeriesState], &mut [f32])> =
            states.chunks(BLOCK).zip(out.chunks_mut(BLOCK * width)).collect();
        parallel::for_pieces(&mut blocks, threads, |_, blocks| {
            let mut room = Room::default();
            for (states, out) in blocks.iter_mut() {
                self.0.predict_block(states, &mut room, out);
            }
        });
        out
    }
}

fn made(training: &Training, seed: u64) -> Box<dyn Network> {
    let outputs = 3 * training.horizon;
    match training.kind {
        Kind::Net => Box::new(Net::new(64, outputs, seed)),
        Kind::Gru => Box::new(Gru::new(32, outputs, seed)),
        Kind::Lstm => Box::new(Lstm::new(32, outputs, seed)),
    }
}

/// Goes through the lessons in a new order each round, more and more carefully.
fn run(network: &mut dyn Network, lessons: &Lessons, training: &Training, number: u64) {
    let batches = lessons.len().div_ceil(BATCH);
    let total = (batches * training.rounds) as f32;
    let mut dice = Dice::new(training.seed ^ (number << 32));
    let mut order: Vec<usize> = (0..lessons.len()).collect();
    let mut step = 0;
    for _ in 0..training.rounds {
        for place in (1..order.len()).rev() {
            order.swap(place, dice.below(place + 1));
        }
        for rows in order.chunks(BATCH) {
            step += 1;
            let looks = lessons.looks.select(Axis(0), rows);
            let sequences = lessons.sequences.select(Axis(0), rows);
            let truth = lessons.truth.select(Axis(0), rows);
            let weights: Vec<f32> = rows.iter().map(|row| lessons.weights[*row]).collect();
            let answers = network.forward(&looks.view(), &sequences.view());
            let slopes = pinball_slopes(&answers, &truth, &weights, training.level as f32);
            network.backward(&slopes.view());
            let done = step as f32 / total;
            // Up quickly, then down in a straight line.
            let rate = 4e-3 * (done * 20.0).min(1.0) * (1.0 - done).max(0.01);
            network.step(Pace { rate, decay: 1e-3, step });
        }
    }
}

/// Slopes of the pinball loss for lower, middle and upper answers.
fn pinball_slopes(
    answers: &Array2<f32>,
    truth: &Array2<f32>,
    weights: &[f32],
    level: f32,
) -> Array2<f32> {
    let horizon = truth.ncols();
    let levels = [0.5 - level / 2.0, 0.5, 0.5 + level / 2.0];
    let mut slopes = Array2::zeros(answers.raw_dim());
    for (row, weight) in weights.iter().enumerate() {
        let share = weight / (weights.len() * horizon) as f32;
        let truth = truth.row(row);
        for (part, level) in levels.iter().enumerate() {
            for step in 0..horizon {
                let column = part * horizon + step;
                let below = truth[step] < answers[(row, column)];
                slopes[(row, column)] = share * if below { 1.0 - level } else { -level };
            }
        }
    }
    slopes
}

/// Room for the work on one block of series.
#[derive(Default)]
struct Room {
    looks: Vec<f32>,
    sequences: Vec<f32>,
    frames: Vec<Frame>,
    recent: Vec<f32>,
}

impl Trained {
    /// The mean of all networks' answers.
    fn answer(&self, looks: &ArrayView2<'_, f32>, sequences: &ArrayView2<'_, f32>) -> Array2<f32> {
        let mut sum = Array2::zeros((looks.nrows(), 3 * self.training.horizon));
        for network in &self.networks {
            sum += &network.answer(looks, sequences);
        }
        sum / self.networks.len().max(1) as f32
    }

    /// Sets the widths by what the networks got wrong on lessons they have not learned from.
    fn calibrate(&mut self, unseen: &Lessons) {
        let horizon = self.training.horizon;
        let answers = self.answer(&unseen.looks.view(), &unseen.sequences.view());
        let mut scores = Scores::new(horizon);
        for row in 0..unseen.len() {
            let said = spread_out(answers.row(row).iter().copied(), horizon);
            let truth: Vec<f64> = unseen.truth.row(row).iter().map(|v| f64::from(*v)).collect();
            scores.add(&said, &truth, 1e-3);
        }
        if !scores.is_empty() {
            self.widths = scores.widths(self.training.level);
        }
    }

    fn predict_block(&self, states: &[SeriesState], room: &mut Room, out: &mut [f32]) {
        let horizon = self.training.horizon;
        let sequences = self.training.kind != Kind::Net;
        room.looks.clear();
        room.sequences.clear();
        room.frames.clear();
        for state in states {
            if state.seen() == 0 {
                room.frames.push(Frame { centre: 0.0, unit: 0.0 });
                room.looks.extend(std::iter::repeat_n(0.0, WIDTH));
                let length = if sequences { super::lessons::SEQUENCE } else { 0 };
                room.sequences.extend(std::iter::repeat_n(0.0, length));
                continue;
            }
            let sight = state.sight(&mut room.recent);
            let frame = sight.frame();
            sight.look(frame, horizon, &mut room.looks);
            if sequences {
                sequence(&sight, frame, &mut room.sequences);
            }
            room.frames.push(frame);
        }
        let rows = states.len();
        let shaped = |values: &[f32], columns| {
            Array2::from_shape_vec((rows, columns), values.to_vec()).unwrap_or_default()
        };
        let looks = shaped(&room.looks, WIDTH);
        let sequences = shaped(&room.sequences, room.sequences.len() / rows.max(1));
        let answers = self.answer(&looks.view(), &sequences.view());
        for ((row, frame), out) in
            answers.outer_iter().zip(&room.frames).zip(out.chunks_exact_mut(3 * horizon))
        {
            for step in 0..horizon {
                let middle = row[horizon + step];
                let width = self.widths.0[step] as f32;
                let below = (middle - row[step]).max(LEAST) * width;
                let above = (row[2 * horizon + step] - middle).max(LEAST) * width;
                out[step] = frame.outside(middle - below);
                out[horizon + step] = frame.outside(middle);
                out[2 * horizon + step] = frame.outside(middle + above);
            }
        }
    }
}

/// Quantiles never cross; a hundredth of a step is the least that they are apart.
const LEAST: f32 = 0.01;

/// One row of answers as a prediction whose spreads are the distances to the quantiles.
fn spread_out(row: impl Iterator<Item = f32>, horizon: usize) -> Prediction {
    let row: Vec<f32> = row.collect();
    let (lower, rest) = row.split_at(horizon);
    let (middle, upper) = rest.split_at(horizon);
    let apart = |a: &[f32], b: &[f32]| {
        a.iter().zip(b).map(|(a, b)| f64::from((b - a).max(LEAST))).collect::<Vec<f64>>()
    };
    Prediction {
        point: middle.iter().map(|value| f64::from(*value)).collect(),
        below: apart(lower, middle),
        above: apart(middle, upper),
    }
}

#[derive(Clone, Debug)]
struct Followed {
    model: Quantiles,
    state: SeriesState,
}

impl Model for Quantiles {
    fn name(&self) -> &'static str {
        match self.0.training.kind {
            Kind::Net => "net",
            Kind::Gru => "gru",
            Kind::Lstm => "lstm",
        }
    }

    fn fit(&self, history: &[f64], _seasons: &[usize]) -> Box<dyn Fitted> {
        let mut state = SeriesState::new(self.0.training.season);
        history.iter().for_each(|value| state.push(*value as f32));
        Box::new(Followed { model: self.clone(), state })
    }
}

impl Fitted for Followed {
    /// Beyond the horizon of the training, the middle is taken for samples and goes on from there.
    fn predict(&self, horizon: usize) -> Prediction {
        let trained = self.model.0.training.horizon;
        let z = normal::quantile(0.5 + self.model.0.training.level / 2.0).max(1e-3);
        let mut state = self.state.clone();
        let mut prediction = Prediction::default();
        let mut rounds = 0.0;
        while prediction.point.len() < horizon {
            rounds += 1.0;
            let row = self.model.predict_all(std::slice::from_ref(&state), 1);
            let wider = f64::sqrt(rounds) / z;
            for step in 0..trained {
                let at = |part: usize| f64::from(row[part * trained + step]);
                prediction.point.push(at(1));
                prediction.below.push((at(1) - at(0)) * wider);
                prediction.above.push((at(2) - at(1)) * wider);
            }
            row[trained..2 * trained].iter().for_each(|value| state.push(*value));
        }
        for part in [&mut prediction.point, &mut prediction.below, &mut prediction.above] {
            part.truncate(horizon);
        }
        prediction
    }

    fn update(&mut self, value: f64) {
        self.state.push(value as f32);
    }

    fn refit(&self, history: &[f64], seasons: &[usize]) -> Box<dyn Fitted> {
        self.model.fit(history, seasons)
    }

    fn describe(&self) -> String {
        format!("{} of all series", self.model.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made;

    fn trained(kind: Kind, level: f64) -> (Quantiles, Vec<Vec<f64>>) {
        let series: Vec<Vec<f64>> = (0..12)
            .map(|seed| {
                let by = (seed + 1) as f64;
                made::daily(seed, 500, 24).iter().map(|value| by * value).collect()
            })
            .collect();
        let known: Vec<&[f64]> = series.iter().map(|values| &values[..450]).collect();
        let training = Training {
            lessons: 3_000,
            rounds: 6,
            networks: 1,
            ..Training::new(kind, 6, level, Some(24))
        };
        (Quantiles::train(&known, training).expect("enough lessons"), series)
    }

    fn covered(kind: Kind, level: f64) -> f64 {
        let (model, series) = trained(kind, level);
        let mut inside = 0.0;
        let mut count = 0.0;
        for values in &series {
            let mut fitted = model.fit(&values[..450], &[24]);
            for now in 450..494 {
                let ahead = fitted.predict(6);
                let (low, high) =
                    (ahead.quantile(0.5 - level / 2.0), ahead.quantile(0.5 + level / 2.0));
                for step in 0..6 {
                    let truth = values[now + step];
                    inside += f64::from(u8::from(low[step] <= truth && truth <= high[step]));
                    count += 1.0;
                }
                fitted.update(values[now]);
            }
        }
        inside / count
    }

    #[test]
    fn intervals_hold_what_they_say() {
        for (kind, level) in
            [(Kind::Net, 0.9), (Kind::Net, 0.6), (Kind::Gru, 0.8), (Kind::Lstm, 0.8)]
        {
            let share = covered(kind, level);
            assert!((share - level).abs() < 0.08, "{kind:?} at {level}: {share}");
        }
    }

    #[test]
    fn many_at_once_and_one_by_one_say_the_same() {
        let (model, series) = trained(Kind::Net, 0.9);
        let states: Vec<SeriesState> = series
            .iter()
            .map(|values| {
                let mut state = SeriesState::new(Some(24));
                values.iter().for_each(|value| state.push(*value as f32));
                state
            })
            .collect();
        let one = model.predict_all(&states, 1);
        assert_eq!(one, model.predict_all(&states, 3));
        let alone = model.fit(&series[3], &[24]).predict(6);
        for step in 0..6 {
            assert!((alone.point[step] - f64::from(one[3 * 18 + 6 + step])).abs() < 1e-2);
        }
    }

    #[test]
    fn an_empty_series_is_answered_with_zeros() {
        let (model, _) = trained(Kind::Net, 0.9);
        let row = model.predict_all(&[SeriesState::new(Some(24))], 1);
        assert_eq!(row, [0.0; 18]);
    }
}
