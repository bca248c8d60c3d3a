//! Very many series in memory: each sample is taken in well under a microsecond, and all of them
//! are forecast at once by one trained model.
//!
//! What is kept of a series has a fixed size. Its forecasts are judged as samples come in: the
//! share that intervals held moves their width, and errors that stay large say that the model
//! should learn anew.

use crate::change::ChangeDetector;
use crate::conformal::AdaptiveLevel;
use crate::global::quantile::Quantiles;
use crate::global::state::SeriesState;
use crate::normal;

/// All series of a fleet, by row.
#[derive(Debug)]
pub struct Fleet {
    model: Quantiles,
    rows: Vec<Row>,
    states: Vec<SeriesState>,
}

#[derive(Clone, Copy, Debug)]
struct Row {
    adaptive: AdaptiveLevel,
    change: ChangeDetector,
    /// Lower bound, middle and upper bound of the next sample, once there was a forecast.
    next: Option<[f32; 3]>,
    changed: bool,
}

/// Forecasts of all series: `horizon` lower bounds, middles and upper bounds one after the other.
#[derive(Clone, Debug, PartialEq)]
pub struct Forecasts {
    pub horizon: usize,
    pub values: Vec<f32>,
}

impl Forecasts {
    pub fn lower(&self, row: usize) -> &[f32] {
        self.part(row, 0)
    }

    pub fn middle(&self, row: usize) -> &[f32] {
        self.part(row, 1)
    }

    pub fn upper(&self, row: usize) -> &[f32] {
        self.part(row, 2)
    }

    fn part(&self, row: usize, part: usize) -> &[f32] {
        let from = (3 * row + part) * self.horizon;
        &self.values[from..from + self.horizon]
    }
}

impl Fleet {
    pub fn new(model: Quantiles) -> Self {
        Self { model, rows: Vec::new(), states: Vec::new() }
    }

    /// Adds a series without samples and returns its row.
    pub fn add(&mut self) -> usize {
        let training = self.model.training();
        self.rows.push(Row {
            adaptive: AdaptiveLevel::new(training.level, 0.01),
            change: ChangeDetector::new(30.0),
            next: None,
            changed: false,
        });
        self.states.push(SeriesState::new(training.season));
        self.rows.len() - 1
    }

    pub fn len(&self) -> usize {
        self.rows.len()
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Takes one sample of a series; what is not a number counts as the sample before.
    pub fn update(&mut self, row: usize, sample: f32) {
        let kept = &mut self.rows[row];
        if let Some([lower, middle, upper]) = kept.next.take().filter(|_| sample.is_finite()) {
            kept.adaptive.observe(lower <= sample && sample <= upper);
            kept.changed |= kept.change.observe(f64::from(sample - middle));
        }
        self.states[row].push(sample);
    }

    /// Forecasts every series, each with the width that its own past calls for.
    pub fn predict(&mut self, threads: usize) -> Forecasts {
        let horizon = self.model.training().horizon;
        let mut values = self.model.predict_all(&self.states, threads);
        let wanted = normal::quantile(0.5 + self.model.training().level / 2.0);
        for (row, values) in self.rows.iter_mut().zip(values.chunks_exact_mut(3 * horizon)) {
            let asked = normal::quantile(0.5 + row.adaptive.level() / 2.0);
            let factor = (asked / wanted) as f32;
            for step in 0..horizon {
                let middle = values[horizon + step];
                values[step] = middle + factor * (values[step] - middle);
                let upper = &mut values[2 * horizon + step];
                *upper = middle + factor * (*upper - middle);
            }
            row.next = Some([values[0], values[horizon], values[2 * horizon]]);
        }
        Forecasts { horizon, values }
    }

    /// Rows whose errors stay larger than they were when they were learned from; asking forgets.
    pub fn take_changed(&mut self) -> Vec<usize> {
        let changed = self.rows.iter_mut().enumerate();
        changed.filter_map(|(at, row)| std::mem::take(&mut row.changed).then_some(at)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::global::quantile::{Kind, Training};
    use crate::made;

    fn fleet() -> Fleet {
        let series: Vec<Vec<f64>> = (0..10).map(|seed| made::daily(seed, 400, 24)).collect();
        let known: Vec<&[f64]> = series.iter().map(Vec::as_slice).collect();
        let training = Training {
            lessons: 2_000,
            rounds: 5,
            networks: 1,
            ..Training::new(Kind::Net, 4, 0.9, Some(24))
        };
        Fleet::new(Quantiles::train(&known, training).expect("enough lessons"))
    }

    #[test]
    fn intervals_widen_where_samples_leave_them_and_narrow_where_they_never_do() {
        let mut fleet = fleet();
        let (held, missed) = (fleet.add(), fleet.add());
        (0..40).for_each(|t| {
            fleet.update(held, made::noise(1, t) as f32);
            fleet.update(missed, made::noise(1, t) as f32);
        });
        for t in 40..140 {
            let ahead = fleet.predict(1);
            // The same small sample for both; only one of them is told that it was missed.
            let sample = made::noise(1, t) as f32;
            fleet.rows[held].next = Some([sample - 1.0, sample, sample + 1.0]);
            fleet.rows[missed].next = Some([sample + 1.0, sample, sample + 2.0]);
            fleet.update(held, sample);
            fleet.update(missed, sample);
            assert_eq!(ahead.middle(held), ahead.middle(missed));
        }
        let ahead = fleet.predict(1);
        let width = |row: usize| ahead.upper(row)[0] - ahead.lower(row)[0];
        assert!(width(missed) > 1.5 * width(held), "{} {}", width(missed), width(held));
    }

    #[test]
    fn a_series_that_changes_is_named_once() {
        let mut fleet = fleet();
        let (steady, changing) = (fleet.add(), fleet.add());
        for t in 0..300 {
            let by = if t < 200 { 1.0 } else { 25.0 };
            fleet.update(steady, made::noise(1, t) as f32);
            fleet.update(changing, by * made::noise(2, t) as f32);
            fleet.predict(1);
        }
        assert_eq!(fleet.take_changed(), [changing]);
        assert!(fleet.take_changed().is_empty());
    }

    #[test]
    fn wrong_samples_do_no_harm() {
        let mut fleet = fleet();
        let row = fleet.add();
        for sample in [f32::NAN, f32::INFINITY, 1.0, -5.0, f32::MAX, f32::MIN, 3.0] {
            fleet.update(row, sample);
            let ahead = fleet.predict(1);
            assert_eq!(ahead.values.len(), 12);
        }
        assert_eq!((fleet.len(), fleet.is_empty()), (1, false));
    }
}
