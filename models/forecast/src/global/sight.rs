//! What the networks see of a series: the last samples, how they moved, and what the day usually
//! brings next; all in units of how much the series moves lately.

/// Samples that have to be there before anything is worth saying.
pub const FEWEST: usize = 24;
/// Samples that are looked at, at most: a day of five minutes.
pub const MOST_RECENT: usize = 288;
/// Places of the coming horizon whose usual values are looked up.
const USUAL_STEPS: usize = 12;
/// Everything else that is seen, counted by a test.
const PLAIN: usize = 38;

/// Numbers in a look.
pub const WIDTH: usize = PLAIN + USUAL_STEPS + 3;

/// A series at one moment.
#[derive(Clone, Copy, Debug)]
pub struct Sight<'a> {
    /// The last samples, at most `MOST_RECENT`, oldest first.
    pub recent: &'a [f32],
    /// The mean step of the whole history.
    pub step: f32,
    /// The usual values of a season and the place of the coming sample in it, once it was seen.
    pub usual: Option<(&'a [f32], usize)>,
}

/// Where a look lies and how large its unit is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Frame {
    pub centre: f32,
    pub unit: f32,
}

impl Frame {
    pub fn inside(&self, value: f32) -> f32 {
        (value - self.centre) / self.unit
    }

    pub fn outside(&self, value: f32) -> f32 {
        self.centre + value * self.unit
    }
}

impl Sight<'_> {
    pub fn frame(&self) -> Frame {
        let recent = self.recent;
        let n = recent.len();
        let centre = smoothed(&recent[n.saturating_sub(36)..], 0.3);
        let lately = mean_step(&recent[n.saturating_sub(36)..]);
        // A series that never moves still needs a unit.
        let least = 1e-3 * centre.abs() + 1e-6;
        Frame { centre, unit: (0.5 * self.step + 0.5 * lately).max(least) }
    }

    /// Appends `WIDTH` numbers.
    pub fn look(&self, frame: Frame, horizon: usize, out: &mut Vec<f32>) {
        let start = out.len();
        let recent = self.recent;
        let n = recent.len();
        let last = |count: usize| &recent[n.saturating_sub(count.min(n))..];
        let back = |lag: usize| recent[n.saturating_sub(lag + 1)];
        let mut see = |value: f32| out.push(gentle(value));
        for lag in 0..12 {
            see(frame.inside(back(lag)));
        }
        for block in 0..4 {
            let end = n.saturating_sub(12 + 6 * block).max(1);
            see(frame.inside(mean(&recent[end.saturating_sub(6).min(end - 1)..end])));
        }
        for count in [48, 96, 144, 288] {
            see(frame.inside(mean(last(count))));
        }
        for count in [6, 12, 36, 144, 288] {
            see(deviation(last(count)) / frame.unit);
        }
        for count in [12, 48, 288] {
            let (least, most) = extremes(last(count));
            see(frame.inside(least));
            see(frame.inside(most));
        }
        for rate in [0.6, 0.1, 0.03] {
            see(frame.inside(smoothed(last(96), rate)));
        }
        see(self.step / frame.unit);
        see(frame.centre / frame.unit);
        see((frame.unit + 1e-6).ln());
        see((frame.centre.abs() / 100.0).min(3.0));
        match self.usual {
            Some((usual, next)) if !usual.is_empty() => {
                let at = |step: usize| usual[(next + step) % usual.len()];
                let before =
                    |lag: usize| usual[(next + usual.len() - 1 - lag % usual.len()) % usual.len()];
                let here = (0..6).map(before).sum::<f32>() / 6.0;
                for step in 0..USUAL_STEPS {
                    let ahead = (step * horizon / USUAL_STEPS).min(horizon.saturating_sub(1));
                    see((at(ahead) - here) / frame.unit);
                }
                see(frame.inside(here));
                let coming = (0..horizon.max(1)).map(at).sum::<f32>() / horizon.max(1) as f32;
                see(frame.inside(coming));
                see(1.0);
            }
            _ => (0..USUAL_STEPS + 3).for_each(|_| see(0.0)),
        }
        debug_assert_eq!(out.len() - start, WIDTH);
    }
}

/// Keeps small numbers as they are and large ones from drowning them.
fn gentle(value: f32) -> f32 {
    let value = if value.is_finite() { value } else { 0.0 };
    value / (1.0 + value.abs() / 8.0)
}

fn mean(values: &[f32]) -> f32 {
    values.iter().sum::<f32>() / values.len().max(1) as f32
}

fn deviation(values: &[f32]) -> f32 {
    let mean = mean(values);
    let squares: f32 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (squares / values.len().max(1) as f32).sqrt()
}

fn extremes(values: &[f32]) -> (f32, f32) {
    values.iter().fold((f32::INFINITY, f32::NEG_INFINITY), |(low, high), value| {
        (low.min(*value), high.max(*value))
    })
}

fn smoothed(values: &[f32], rate: f32) -> f32 {
    let mut level = values.first().copied().unwrap_or(0.0);
    for value in values {
        level += rate * (value - level);
    }
    level
}

pub fn mean_step(values: &[f32]) -> f32 {
    let steps: f32 = values.windows(2).map(|pair| (pair[1] - pair[0]).abs()).sum();
    steps / (values.len().max(2) - 1) as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_has_its_width_however_much_is_known() {
        let usual = [1.0, 2.0, 3.0];
        for len in [1, 2, 24, 288] {
            let recent: Vec<f32> = (0..len).map(|t| t as f32).collect();
            for usual in [None, Some((&usual[..], 1))] {
                let sight = Sight { recent: &recent, step: 1.0, usual };
                let mut out = Vec::new();
                sight.look(sight.frame(), 12, &mut out);
                assert_eq!(out.len(), WIDTH);
                assert!(out.iter().all(|value| value.is_finite()));
            }
        }
    }

    #[test]
    fn a_larger_series_looks_the_same() {
        let of = |by: f32| {
            let recent: Vec<f32> = (0..60).map(|t| by * ((t * 37 % 11) as f32 + 20.0)).collect();
            let sight = Sight { recent: &recent, step: mean_step(&recent), usual: None };
            let mut out = Vec::new();
            sight.look(sight.frame(), 12, &mut out);
            out
        };
        let (one, ten) = (of(1.0), of(10.0));
        let same = one.iter().zip(&ten).filter(|(a, b)| (*a - *b).abs() < 1e-3).count();
        // All but the two that tell how large it is.
        assert_eq!(same, WIDTH - 2);
    }
}
