//! How a walk cools: which temperature at which share of the time.
//!
//! What a fleet can gain at which temperature differs by orders of magnitude: one has large VMs to
//! arrange, another is soon as good as can be but for what moving costs. A short walk from hot to
//! cold tells: the long one ends where that one had nothing more to gain, and some of its time goes
//! to the temperatures at which most of the distance to the bound was covered.

use crate::dice::{exp, ln};

/// Temperatures between hot and cold are told apart this finely.
const BINS: usize = 48;
/// Points of the schedule in between which it is a straight line.
const POINTS: usize = 256;
/// The coldest temperature: objectives are whole numbers.
const COLDEST: f64 = 1.0;
/// Bins at the cold end that cover less of the distance than this are left out.
const NEGLIGIBLE: f64 = 0.02;
/// The distance is measured to what may still be reached: this share of what is left.
const BEYOND: f64 = 0.02;

/// Logarithms of temperatures, at even shares of the time.
#[derive(Clone, Debug)]
pub(super) struct Schedule(Vec<f64>);

impl Schedule {
    /// The same factor in the same time.
    pub(super) fn even(hot: f64) -> Self {
        Self(vec![ln(hot.max(COLDEST)), ln(COLDEST)])
    }

    pub(super) fn temperature(&self, share: f64) -> f64 {
        let points = self.0.len() - 1;
        let place = share.clamp(0.0, 1.0) * points as f64;
        let row = (place as usize).min(points - 1);
        exp(self.0[row] + (self.0[row + 1] - self.0[row]) * (place - row as f64))
    }

    /// What a walk by `Schedule::even(hot)` teaches. `even` of the time is spread over all
    /// temperatures that are of use, the rest goes where the distance was covered.
    pub(super) fn learned(hot: f64, walk: &Course, bound: i64, even: f64) -> Self {
        let covered = walk.covered(bound);
        let whole: f64 = covered.iter().sum();
        if whole <= 0.0 {
            return Self::even(hot);
        }
        let of_use = |part: &f64| *part > NEGLIGIBLE * whole;
        let bins = covered.iter().rposition(of_use).map_or(BINS, |last| (last + 2).min(BINS));
        let smooth = |bin: usize| {
            let (before, after) = (bin.saturating_sub(1), (bin + 1).min(BINS - 1));
            (covered[before] + 2.0 * covered[bin] + covered[after]) / (4.0 * whole)
        };
        let learned: Vec<f64> = (0..bins).map(smooth).collect();
        let sum: f64 = learned.iter().sum();
        let times = learned.iter().map(|part| part / sum * (1.0 - even) + even / bins as f64);
        let times: Vec<f64> = times.collect();
        let (top, step) = (ln(hot.max(COLDEST)), ln(hot.max(COLDEST) / COLDEST) / BINS as f64);
        let (mut bin, mut before) = (0, 0.0);
        let points = (0..=POINTS).map(|point| {
            let time = point as f64 / POINTS as f64;
            while bin + 1 < bins && before + times[bin] < time {
                before += times[bin];
                bin += 1;
            }
            let inside = ((time - before) / times[bin].max(1e-12)).clamp(0.0, 1.0);
            top - step * (bin as f64 + inside)
        });
        Self(points.collect())
    }
}

/// The lowest objective of a walk by share of its cooling.
#[derive(Clone, Debug)]
pub(super) struct Course {
    start: i64,
    lowest: [i64; BINS],
}

impl Course {
    pub(super) fn new(start: i64) -> Self {
        Self { start, lowest: [i64::MAX; BINS] }
    }

    pub(super) fn note(&mut self, cooled: f64, objective: i64) {
        let bin = ((cooled * BINS as f64) as usize).min(BINS - 1);
        self.lowest[bin] = self.lowest[bin].min(objective);
    }

    pub(super) fn end(&self) -> i64 {
        self.lowest.iter().copied().min().unwrap_or(self.start).min(self.start)
    }

    /// By how much the logarithm of the distance to what can be reached fell in each bin.
    fn covered(&self, bound: i64) -> [f64; BINS] {
        let end = self.end();
        let reachable = end as f64 - BEYOND * ((end - bound).max(1) as f64);
        let mut lowest = self.start;
        let mut before = ln(lowest as f64 - reachable);
        self.lowest.map(|objective| {
            lowest = lowest.min(objective);
            let after = ln(lowest as f64 - reachable);
            std::mem::replace(&mut before, after) - after
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A walk whose objective falls from 1,000,000 to 1,000 between two shares of its cooling.
    fn falls(from: f64, to: f64) -> Course {
        let mut course = Course::new(1_000_000);
        for step in 0..=480 {
            let cooled = f64::from(step) / 480.0;
            let fallen = ((cooled - from) / (to - from)).clamp(0.0, 1.0);
            course.note(cooled, 1_000 + ((1.0 - fallen) * 999_000.0) as i64);
        }
        course
    }

    #[test]
    fn a_walk_ends_where_nothing_more_was_gained() {
        let hot = exp(10.0);
        let learned = Schedule::learned(hot, &falls(0.1, 0.5), 0, 0.5);
        assert!((ln(learned.temperature(0.0)) - 10.0).abs() < 0.1);
        let end = ln(learned.temperature(1.0));
        assert!((4.0..5.5).contains(&end), "ends at e^{end}");
        assert!(ln(Schedule::even(hot).temperature(1.0)).abs() < 1e-6);
        let nothing = Schedule::learned(hot, &Course::new(7), 0, 0.5);
        assert!((ln(nothing.temperature(0.5)) - 5.0).abs() < 1e-6);
    }

    #[test]
    fn more_time_goes_where_the_distance_was_covered_unless_all_is_spread_evenly() {
        let hot = exp(10.0);
        let course = falls(0.4, 0.6);
        let share_between = |even: f64| {
            let learned = Schedule::learned(hot, &course, 0, even);
            let inside = |step: &i32| {
                (4.0..6.0).contains(&ln(learned.temperature(f64::from(*step) / 1000.0)))
            };
            (0..1000).filter(inside).count()
        };
        assert!(share_between(0.2) > share_between(1.0) + 200);
    }
}
