//! What exponential smoothing can be made of, and one step of it.
//!
//! In the innovations form the new state depends on the error alone, whether the error is thought
//! of as added or as multiplied: the kind of error decides the likelihood and the width of
//! intervals, not the path.

use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Noise {
    Additive,
    Multiplicative,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trend {
    None,
    Additive,
    Damped,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Season {
    None,
    Additive,
    Multiplicative,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    pub noise: Noise,
    pub trend: Trend,
    pub season: Season,
}

/// How quickly each part of the state follows errors, and how much of the trend is kept.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rates {
    pub level: f64,
    pub trend: f64,
    pub season: f64,
    pub keep: f64,
}

#[derive(Clone, Debug, PartialEq)]
pub struct State {
    pub level: f64,
    pub trend: f64,
    /// One season of factors or summands; `next` is the place of the coming sample. Empty
    /// without a season.
    pub season: Vec<f64>,
    pub next: usize,
}

impl Shape {
    pub const SIMPLE: Shape =
        Shape { noise: Noise::Additive, trend: Trend::None, season: Season::None };
    pub const DAMPED: Shape =
        Shape { noise: Noise::Additive, trend: Trend::Damped, season: Season::None };

    /// Parameters that are estimated, the noise's variance included.
    pub fn degrees(self, season: usize) -> usize {
        let trend = match self.trend {
            Trend::None => 0,
            Trend::Additive => 2,
            Trend::Damped => 3,
        };
        let season = if self.season == Season::None { 0 } else { season };
        3 + trend + season
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let noise = if self.noise == Noise::Additive { "A" } else { "M" };
        let trend = match self.trend {
            Trend::None => "N",
            Trend::Additive => "A",
            Trend::Damped => "Ad",
        };
        let season = match self.season {
            Season::None => "N",
            Season::Additive => "A",
            Season::Multiplicative => "M",
        };
        write!(f, "ETS({noise},{trend},{season})")
    }
}

impl State {
    /// Takes a sample and returns what was expected.
    pub fn step(&mut self, season: Season, rates: &Rates, sample: f64) -> f64 {
        let slope = rates.keep * self.trend;
        let base = self.level + slope;
        let (expected, error) = match season {
            Season::None => (base, sample - base),
            Season::Additive => {
                let factor = &mut self.season[self.next];
                let expected = base + *factor;
                let error = sample - expected;
                *factor += rates.season * error;
                self.advance();
                (expected, error)
            }
            Season::Multiplicative => {
                let factor = &mut self.season[self.next];
                let expected = base * *factor;
                let error = sample - expected;
                let level_error = if factor.abs() > 1e-9 { error / *factor } else { 0.0 };
                if base.abs() > 1e-9 {
                    *factor += rates.season * error / base;
                }
                self.advance();
                (expected, level_error)
            }
        };
        self.level = base + rates.level * error;
        self.trend = slope + rates.trend * error;
        expected
    }

    /// What is expected of the coming samples, without end.
    pub fn ahead<'a>(
        &'a self,
        season: Season,
        rates: &'a Rates,
    ) -> impl Iterator<Item = f64> + use<'a> {
        let (mut slope, mut kept) = (0.0, 1.0);
        (0..).map(move |step| {
            kept *= rates.keep;
            slope += kept * self.trend;
            let base = self.level + slope;
            match season {
                Season::None => base,
                Season::Additive => base + self.season_at(step),
                Season::Multiplicative => base * self.season_at(step),
            }
        })
    }

    /// The season's part in the sample `step` after the coming one.
    pub fn season_at(&self, step: usize) -> f64 {
        self.season[(self.next + step) % self.season.len()]
    }

    fn advance(&mut self) {
        self.next += 1;
        if self.next == self.season.len() {
            self.next = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATES: Rates = Rates { level: 0.5, trend: 0.1, season: 0.2, keep: 0.9 };

    #[test]
    fn a_sample_as_expected_moves_only_the_trend() {
        for season in [Season::Additive, Season::Multiplicative] {
            let mut state = State { level: 10.0, trend: 1.0, season: vec![2.0, 3.0], next: 0 };
            let expected = if season == Season::Additive { 12.9 } else { 21.8 };
            assert_eq!(state.step(season, &RATES, expected), expected);
            assert_eq!(state, State { level: 10.9, trend: 0.9, season: vec![2.0, 3.0], next: 1 });
        }
    }

    #[test]
    fn an_error_is_shared_out_by_the_rates() {
        let mut state = State { level: 10.0, trend: 0.0, season: vec![2.0], next: 0 };
        state.step(Season::Multiplicative, &RATES, 24.0);
        assert_eq!(state, State { level: 11.0, trend: 0.2, season: vec![2.08], next: 0 });
    }

    #[test]
    fn shapes_are_written_as_in_the_books() {
        assert_eq!(Shape::SIMPLE.to_string(), "ETS(A,N,N)");
        assert_eq!(Shape::DAMPED.to_string(), "ETS(A,Ad,N)");
        assert_eq!(Shape::DAMPED.degrees(24), 6);
    }
}
