//! The next samples go on along the line from the first to the last.

use crate::model::{ErrorScale, Fitted, Model, Prediction};

#[derive(Clone, Copy, Debug, Default)]
pub struct Drift;

#[derive(Clone, Debug)]
struct Line {
    first: f64,
    last: f64,
    seen: usize,
    steps: ErrorScale,
}

impl Model for Drift {
    fn name(&self) -> &'static str {
        "drift"
    }

    fn fit(&self, history: &[f64], _seasons: &[usize]) -> Box<dyn Fitted> {
        let (first, last) = match history {
            [] => (0.0, 0.0),
            [only] => (*only, *only),
            [first, .., last] => (*first, *last),
        };
        let steps = ErrorScale::of(history.windows(2).map(|pair| pair[1] - pair[0]));
        Box::new(Line { first, last, seen: history.len(), steps })
    }
}

impl Line {
    fn slope(&self) -> f64 {
        if self.seen < 2 { 0.0 } else { (self.last - self.first) / (self.seen - 1) as f64 }
    }
}

impl Fitted for Line {
    fn predict(&self, horizon: usize) -> Prediction {
        let slope = self.slope();
        let step = (self.steps.deviation().powi(2) - slope * slope).max(0.0).sqrt();
        let known = self.seen.max(2) as f64 - 1.0;
        let ahead = || (1..=horizon).map(|ahead| ahead as f64);
        let point = ahead().map(|ahead| self.last + slope * ahead).collect();
        let spread = ahead().map(|ahead| step * (ahead * (1.0 + ahead / known)).sqrt()).collect();
        Prediction::even(point, spread)
    }

    fn update(&mut self, value: f64) {
        if self.seen == 0 {
            self.first = value;
        } else {
            self.steps.add(value - self.last);
        }
        self.seen += 1;
        self.last = value;
    }

    fn refit(&self, history: &[f64], seasons: &[usize]) -> Box<dyn Fitted> {
        Drift.fit(history, seasons)
    }

    fn describe(&self) -> String {
        "drift".into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_straight_line_goes_on_without_doubt() {
        let ahead = Drift.fit(&[1.0, 2.0, 3.0, 4.0], &[]).predict(2);
        assert_eq!(ahead.point, [5.0, 6.0]);
        assert!(ahead.above.iter().all(|spread| *spread < 1e-9));
    }

    #[test]
    fn updates_are_the_same_as_a_longer_history() {
        let mut fitted = Drift.fit(&[], &[]);
        let values = [3.0, 5.0, 4.0, 8.0];
        values.iter().for_each(|value| fitted.update(*value));
        assert_eq!(fitted.predict(3), Drift.fit(&values, &[]).predict(3));
    }
}
