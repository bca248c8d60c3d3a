//! What networks learn from: moments of all series with what came next.
//!
//! A series counts by the square root of its length: long ones would drown short ones, and a few
//! short ones should not be all there is.

use super::layer::Dice;
use super::sight::{FEWEST, Frame, MOST_RECENT, Sight, WIDTH};
use ndarray::Array2;

/// Samples that recurrent networks are shown one by one.
pub const SEQUENCE: usize = 36;

/// A series with what is known of it at every moment.
#[derive(Clone, Debug)]
pub struct Course {
    pub values: Vec<f32>,
    /// Mean step up to each place.
    steps: Vec<f32>,
    season: usize,
    /// For each place the usual value of its season as known a season before: what was seen at
    /// the same place in earlier seasons, newer ones counting more.
    usual: Vec<f32>,
}

/// How quickly the usual values of a season follow what is seen.
pub const FOLLOW: f32 = 0.3;

impl Course {
    pub fn new(values: &[f64], season: Option<usize>) -> Self {
        let values: Vec<f32> = values.iter().map(|value| *value as f32).collect();
        let mut sum = 0.0f64;
        let mut steps = Vec::with_capacity(values.len());
        for (place, value) in values.iter().enumerate() {
            if place > 0 {
                sum += f64::from((value - values[place - 1]).abs());
            }
            steps.push((sum / place.max(1) as f64) as f32);
        }
        let season = season.unwrap_or(0);
        let mut usual = values.clone();
        if season > 0 {
            for place in season..values.len() {
                usual[place] =
                    usual[place - season] + FOLLOW * (values[place] - usual[place - season]);
            }
        }
        Self { values, steps, season, usual }
    }

    /// What is seen when `now` samples are known.
    pub fn sight(&self, now: usize) -> Sight<'_> {
        let recent = &self.values[now.saturating_sub(MOST_RECENT)..now];
        let step = self.steps.get(now.saturating_sub(1)).copied().unwrap_or(0.0);
        let known = self.season > 0 && now >= self.season + 12;
        let usual = known.then(|| (&self.usual[now - self.season..now], 0));
        Sight { recent, step, usual }
    }
}

/// Lessons by row.
#[derive(Clone, Debug)]
pub struct Lessons {
    pub looks: Array2<f32>,
    /// The last samples one by one, in units; empty unless asked for.
    pub sequences: Array2<f32>,
    /// What came, in units.
    pub truth: Array2<f32>,
    pub weights: Vec<f32>,
}

/// How lessons are drawn.
#[derive(Clone, Copy, Debug)]
pub struct Drawing {
    pub horizon: usize,
    pub most: usize,
    pub sequences: bool,
    pub seed: u64,
}

impl Lessons {
    /// Draws moments from `from..to` of each course, where `to` leaves the horizon known.
    pub fn draw(
        courses: &[Course],
        range: impl Fn(usize) -> (usize, usize),
        drawing: Drawing,
    ) -> Self {
        let Drawing { horizon, most, sequences, seed } = drawing;
        let ranges: Vec<(usize, usize)> = courses
            .iter()
            .map(|course| {
                let (from, to) = range(course.values.len());
                (from.max(FEWEST), to.min((course.values.len() + 1).saturating_sub(horizon)))
            })
            .collect();
        let size = |&(from, to): &(usize, usize)| to.saturating_sub(from);
        let shares: Vec<f64> = ranges.iter().map(|range| (size(range) as f64).sqrt()).collect();
        let total: f64 = shares.iter().sum::<f64>().max(1e-9);
        let mut dice = Dice::new(seed);
        let mut lessons = Self::empty(horizon, sequences);
        let mut looks = Vec::new();
        let mut shown = Vec::new();
        let mut truth = Vec::new();
        for ((course, range), share) in courses.iter().zip(&ranges).zip(&shares) {
            let available = size(range);
            let wanted = (most as f64 * share / total).ceil() as usize;
            let taken = wanted.min(available);
            if taken == 0 {
                continue;
            }
            // Short series are drawn with repetition in effect: each lesson counts for more.
            let weight = (wanted as f32 / taken as f32).min(8.0);
            for turn in 0..taken {
                let low = range.0 + turn * available / taken;
                let high = range.0 + (turn + 1) * available / taken;
                let now = low + dice.below((high - low).max(1));
                let sight = course.sight(now);
                let frame = sight.frame();
                sight.look(frame, horizon, &mut looks);
                if sequences {
                    sequence(&sight, frame, &mut shown);
                }
                let next = &course.values[now..now + horizon];
                truth.extend(next.iter().map(|value| frame.inside(*value).clamp(-60.0, 60.0)));
                lessons.weights.push(weight * importance(frame, sight.step));
            }
        }
        let rows = lessons.weights.len();
        let shaped = |values: Vec<f32>, columns: usize| {
            Array2::from_shape_vec((rows, columns), values).unwrap_or_default()
        };
        lessons.looks = shaped(looks, WIDTH);
        lessons.truth = shaped(truth, horizon);
        lessons.sequences = shaped(shown, if sequences { SEQUENCE } else { 0 });
        let mean = lessons.weights.iter().sum::<f32>() / rows.max(1) as f32;
        lessons.weights.iter_mut().for_each(|weight| *weight /= mean.max(1e-9));
        lessons
    }

    fn empty(horizon: usize, sequences: bool) -> Self {
        Self {
            looks: Array2::zeros((0, WIDTH)),
            sequences: Array2::zeros((0, if sequences { SEQUENCE } else { 0 })),
            truth: Array2::zeros((0, horizon)),
            weights: Vec::new(),
        }
    }

    pub fn len(&self) -> usize {
        self.weights.len()
    }

    pub fn is_empty(&self) -> bool {
        self.weights.is_empty()
    }
}

/// Errors count in units of the series' usual step, more for series that move much:
/// somebody has to host them.
fn importance(frame: Frame, step: f32) -> f32 {
    let step = step.max(1e-3 * frame.unit).max(1e-6);
    frame.unit / step * step.clamp(1e-3, 1e3).powf(0.9)
}

/// The last samples one by one, those before the beginning as the first.
pub fn sequence(sight: &Sight<'_>, frame: Frame, out: &mut Vec<f32>) {
    let n = sight.recent.len();
    for lag in (0..SEQUENCE).rev() {
        let value = frame.inside(sight.recent[n.saturating_sub(lag + 1)]);
        out.push(value / (1.0 + value.abs() / 8.0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made;

    #[test]
    fn nothing_is_known_before_its_time() {
        let mut values = made::daily(1, 200, 24);
        let course = Course::new(&values, Some(24));
        let mut before = Vec::new();
        let sight = course.sight(150);
        sight.look(sight.frame(), 12, &mut before);
        values[150..].iter_mut().for_each(|value| *value = -99.0);
        let course = Course::new(&values, Some(24));
        let mut after = Vec::new();
        let sight = course.sight(150);
        sight.look(sight.frame(), 12, &mut after);
        assert_eq!(before, after);
    }

    #[test]
    fn short_series_are_heard_beside_long_ones() {
        let courses =
            [Course::new(&made::walk(1, 4_000), None), Course::new(&made::walk(2, 100), None)];
        let drawing = Drawing { horizon: 12, most: 1_000, sequences: true, seed: 1 };
        let lessons = Lessons::draw(&courses, |len| (0, len), drawing);
        assert!(lessons.len() > 800 && lessons.len() <= 1_010, "{}", lessons.len());
        assert_eq!(lessons.looks.dim(), (lessons.len(), WIDTH));
        assert_eq!(lessons.sequences.dim(), (lessons.len(), SEQUENCE));
        assert_eq!(lessons.truth.dim(), (lessons.len(), 12));
    }
}
