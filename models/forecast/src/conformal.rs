//! Intervals from errors that were made, not from errors that a model expects.
//!
//! Split conformal prediction: of the errors at earlier origins, in units of what the model
//! expected there, the one at the wanted rank sets the width. Steps near each other are ranked
//! together, because a single step has few errors. Where many series are forecast at once, their
//! errors together steady the rank of each.

use crate::model::Prediction;

/// Errors of one series by step, each divided by the spread that was expected for it.
#[derive(Clone, Debug, Default)]
pub struct Scores {
    by_step: Vec<Vec<f64>>,
}

/// Half-widths of an interval, in units of the expected spread, for each step.
#[derive(Clone, Debug, PartialEq)]
pub struct Widths(pub Vec<f64>);

impl Scores {
    pub fn new(horizon: usize) -> Self {
        Self { by_step: vec![Vec::new(); horizon] }
    }

    /// Adds what one prediction got wrong. `floor` keeps a model that expects no error at all
    /// from making every error infinitely surprising.
    pub fn add(&mut self, prediction: &Prediction, truth: &[f64], floor: f64) {
        for (step, (scores, truth)) in self.by_step.iter_mut().zip(truth).enumerate() {
            let error = truth - prediction.point[step];
            let side = if error < 0.0 { &prediction.below } else { &prediction.above };
            scores.push(error.abs() / side[step].max(floor));
        }
    }

    pub fn is_empty(&self) -> bool {
        self.by_step.iter().all(Vec::is_empty)
    }

    /// All scores of steps within a sixth of the horizon of `step`.
    fn near(&self, step: usize) -> impl Iterator<Item = f64> + '_ {
        let reach = (self.by_step.len() / 6).max(1);
        let from = step.saturating_sub(reach);
        let to = (step + reach + 1).min(self.by_step.len());
        self.by_step[from..to].iter().flatten().copied()
    }

    /// Widths that would have held `level` of the errors.
    pub fn widths(&self, level: f64) -> Widths {
        Widths((0..self.by_step.len()).map(|step| rank(self.near(step).collect(), level)).collect())
    }
}

/// Widths of many series together: what would have held `level` of all errors.
pub fn pooled(all: &[&Scores], level: f64) -> Widths {
    let horizon = all.iter().map(|scores| scores.by_step.len()).max().unwrap_or(0);
    let at = |step| {
        let known = all.iter().filter(|scores| step < scores.by_step.len());
        rank(known.flat_map(|scores| scores.near(step)).collect(), level)
    };
    Widths((0..horizon).map(at).collect())
}

impl Widths {
    /// Between these widths and others: the geometric mean with weight `share` on these.
    pub fn blended(&self, other: &Widths, share: f64) -> Widths {
        let mix = |a: &f64, b: &f64| match (*a > 0.0, *b > 0.0) {
            (true, true) => (share * a.ln() + (1.0 - share) * b.ln()).exp(),
            _ => a.max(*b),
        };
        Widths(self.0.iter().zip(&other.0).map(|(a, b)| mix(a, b)).collect())
    }

    pub fn scaled(&self, factor: f64) -> Widths {
        Widths(self.0.iter().map(|width| width * factor).collect())
    }
}

/// The score at the rank that holds `level` of them and one more that is to come.
fn rank(mut scores: Vec<f64>, level: f64) -> f64 {
    if scores.is_empty() {
        return crate::normal::quantile(0.5 + level / 2.0);
    }
    let n = scores.len();
    let place = (((n + 1) as f64 * level).ceil() as usize).clamp(1, n) - 1;
    *scores.select_nth_unstable_by(place, f64::total_cmp).1
}

/// Adaptive conformal inference: the level that is asked for inside, moved by what is covered
/// outside, so that coverage is right in the long run whatever the series does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdaptiveLevel {
    wanted: f64,
    level: f64,
    rate: f64,
}

impl AdaptiveLevel {
    pub fn new(wanted: f64, rate: f64) -> Self {
        Self { wanted, level: wanted, rate }
    }

    /// What to ask for now; never everything or nothing.
    pub fn level(&self) -> f64 {
        self.level.clamp(0.01, 0.999)
    }

    pub fn observe(&mut self, covered: bool) {
        let missed = if covered { 0.0 } else { 1.0 };
        self.level += self.rate * (missed - (1.0 - self.wanted));
        // Far outside, it would take too long to come back.
        self.level = self.level.clamp(0.0, 1.1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made;

    fn flat(horizon: usize) -> Prediction {
        Prediction::even(vec![0.0; horizon], vec![1.0; horizon])
    }

    #[test]
    fn new_errors_of_the_same_kind_are_covered_as_asked() {
        let mut scores = Scores::new(1);
        // Skewed errors with a long tail, nothing like normal ones.
        let error = |t| made::noise(1, t).exp();
        (0..2_000).for_each(|t| scores.add(&flat(1), &[error(t)], 0.0));
        let width = scores.widths(0.9).0[0];
        let covered = (2_000..12_000).filter(|&t| error(t) <= width).count();
        assert!((8_850..9_150).contains(&covered), "{covered}");
    }

    #[test]
    fn few_errors_give_the_largest_and_none_the_normal_width() {
        let mut scores = Scores::new(2);
        assert!((scores.widths(0.95).0[1] - 1.96).abs() < 1e-2);
        scores.add(&flat(2), &[1.0, -5.0], 0.0);
        assert_eq!(scores.widths(0.95).0, [5.0, 5.0]);
    }

    #[test]
    fn steps_far_apart_have_widths_of_their_own() {
        let mut scores = Scores::new(24);
        let truth: Vec<f64> = (1..=24).map(f64::from).collect();
        (0..10).for_each(|_| scores.add(&flat(24), &truth, 0.0));
        let widths = scores.widths(0.9).0;
        assert!(widths[0] <= 5.0 && widths[23] >= 20.0, "{widths:?}");
        let both = pooled(&[&scores, &Scores::new(24)], 0.9);
        assert_eq!(both.0, widths);
        let between = both.blended(&both.scaled(4.0), 0.5);
        let off = between.0.iter().zip(both.scaled(2.0).0).map(|(a, b)| (a - b).abs());
        assert!(off.sum::<f64>() < 1e-9);
    }

    #[test]
    fn the_adaptive_level_brings_coverage_back() {
        // The inner level 0.9 covers only 70 %: covered when the draw is below 0.8 x level - 0.02.
        let mut adaptive = AdaptiveLevel::new(0.9, 0.02);
        let mut covered = 0;
        for t in 0..4_000 {
            let draw = (t * 7_919 % 1_000) as f64 / 1_000.0;
            let hit = draw < 0.93 * adaptive.level();
            adaptive.observe(hit);
            covered += u32::from(hit && t >= 1_000);
        }
        assert!((2_640..2_760).contains(&covered), "{covered}");
    }
}
