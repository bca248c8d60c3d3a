//! The next samples are like those a season ago.

use crate::last_value::LastValue;
use crate::model::{ErrorScale, Fitted, Model, Prediction};

/// Takes the longest season that the history has two of; without one, the last value.
#[derive(Clone, Copy, Debug, Default)]
pub struct SeasonalNaive;

#[derive(Clone, Debug)]
struct Cycle {
    /// The last season; `next` is the place of the oldest, which is what comes next.
    values: Vec<f64>,
    next: usize,
    errors: ErrorScale,
}

impl Model for SeasonalNaive {
    fn name(&self) -> &'static str {
        "seasonal-naive"
    }

    fn fit(&self, history: &[f64], seasons: &[usize]) -> Box<dyn Fitted> {
        let usable = seasons.iter().copied().filter(|&m| m > 1 && 2 * m <= history.len());
        let Some(season) = usable.max() else { return LastValue.fit(history, seasons) };
        let values = history[history.len() - season..].to_vec();
        let errors = ErrorScale::of(history.iter().zip(&history[season..]).map(|(a, b)| b - a));
        Box::new(Cycle { values, next: 0, errors })
    }
}

impl Fitted for Cycle {
    fn predict(&self, horizon: usize) -> Prediction {
        let season = self.values.len();
        let point = (0..horizon).map(|step| self.values[(self.next + step) % season]).collect();
        let error = self.errors.deviation();
        let spread = (0..horizon).map(|step| error * ((step / season + 1) as f64).sqrt()).collect();
        Prediction::even(point, spread)
    }

    fn update(&mut self, value: f64) {
        self.errors.add(value - self.values[self.next]);
        self.values[self.next] = value;
        self.next = (self.next + 1) % self.values.len();
    }

    fn refit(&self, history: &[f64], seasons: &[usize]) -> Box<dyn Fitted> {
        SeasonalNaive.fit(history, seasons)
    }

    fn describe(&self) -> String {
        format!("seasonal naive [{}]", self.values.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WEEK: [f64; 9] = [1.0, 2.0, 3.0, 1.0, 2.0, 3.0, 1.0, 2.0, 4.0];

    #[test]
    fn the_last_season_comes_again() {
        assert_eq!(SeasonalNaive.fit(&WEEK, &[3]).predict(5).point, [1.0, 2.0, 4.0, 1.0, 2.0]);
        let mut fitted = SeasonalNaive.fit(&WEEK, &[3]);
        fitted.update(9.0);
        assert_eq!(fitted.predict(3).point, [2.0, 4.0, 9.0]);
    }

    #[test]
    fn the_longest_season_that_was_seen_twice_is_taken() {
        assert_eq!(SeasonalNaive.fit(&WEEK, &[3, 4]).describe(), "seasonal naive [4]");
        assert_eq!(SeasonalNaive.fit(&WEEK, &[3, 7]).describe(), "seasonal naive [3]");
        assert_eq!(SeasonalNaive.fit(&WEEK, &[7]).describe(), "last value");
        assert_eq!(SeasonalNaive.fit(&WEEK, &[0, 1]).describe(), "last value");
    }
}
