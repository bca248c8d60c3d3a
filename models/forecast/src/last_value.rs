//! The next samples are like the last one.

use crate::model::{ErrorScale, Fitted, Model, Prediction};

#[derive(Clone, Copy, Debug, Default)]
pub struct LastValue;

#[derive(Clone, Debug)]
struct Walk {
    last: f64,
    seen: usize,
    steps: ErrorScale,
}

impl Model for LastValue {
    fn name(&self) -> &'static str {
        "last"
    }

    fn fit(&self, history: &[f64], _seasons: &[usize]) -> Box<dyn Fitted> {
        let steps = ErrorScale::of(history.windows(2).map(|pair| pair[1] - pair[0]));
        let last = history.last().copied().unwrap_or(0.0);
        Box::new(Walk { last, seen: history.len(), steps })
    }
}

impl Fitted for Walk {
    fn predict(&self, horizon: usize) -> Prediction {
        let step = self.steps.deviation();
        let spread = (1..=horizon).map(|ahead| step * (ahead as f64).sqrt()).collect();
        Prediction::even(vec![self.last; horizon], spread)
    }

    fn update(&mut self, value: f64) {
        if self.seen > 0 {
            self.steps.add(value - self.last);
        }
        self.seen += 1;
        self.last = value;
    }

    fn refit(&self, history: &[f64], seasons: &[usize]) -> Box<dyn Fitted> {
        LastValue.fit(history, seasons)
    }

    fn describe(&self) -> String {
        "last value".into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_value_stays_and_doubt_grows_with_the_root_of_the_distance() {
        let fitted = LastValue.fit(&[1.0, 2.0, 1.0, 2.0], &[]);
        let ahead = fitted.predict(4);
        assert_eq!(ahead.point, [2.0; 4]);
        assert!((ahead.above[3] - 2.0 * ahead.above[0]).abs() < 1e-12);
    }

    #[test]
    fn an_update_is_the_same_as_a_longer_history() {
        let mut short = LastValue.fit(&[1.0, 3.0], &[]);
        short.update(7.0);
        assert_eq!(short.predict(3), LastValue.fit(&[1.0, 3.0, 7.0], &[]).predict(3));
        let mut empty = LastValue.fit(&[], &[]);
        assert_eq!(empty.predict(1).point, [0.0]);
        empty.update(5.0);
        assert_eq!(empty.predict(1), Prediction::even(vec![5.0], vec![0.0]));
    }
}
