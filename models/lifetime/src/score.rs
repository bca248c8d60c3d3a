//! How good predictions of lives were: surprise, and whether shares came out as said.

use crate::curve::{Curve, EDGE_S, span_of};
use crate::seen::Life;

/// The mean over the lives that reached an age.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Score {
    pub lives: usize,
    /// Minus the logarithm of the chance that was given to what happened; lower is better.
    pub log_loss: f64,
    /// How far the share that ended within each tenth of its distribution is from a tenth, on
    /// average; 0 is perfect, 0.18 is all in one tenth. Of those whose end was seen.
    pub calibration: f64,
    /// The share that ended before the time by which a tenth, half, or nine tenths were to end.
    pub ended_by: [f64; 3],
}

/// Judges predictions that are asked for when a VM has reached `age_s`.
pub fn score<'a>(lives: impl IntoIterator<Item = (&'a Life, Curve)>, age_s: u64) -> Score {
    let mut score = Score::default();
    let mut tenths = [0usize; 10];
    let mut ended_by = [0usize; 3];
    for (life, curve) in lives {
        if life.last_seen_s < age_s {
            continue;
        }
        score.lives += 1;
        score.log_loss += surprise(life, &curve, age_s);
        if life.ended {
            let gone = 1.0 - curve.at_age(age_s).survives(life.last_seen_s - age_s);
            tenths[((gone * 10.0) as usize).min(9)] += 1;
            for (count, level) in ended_by.iter_mut().zip([0.1, 0.5, 0.9]) {
                *count += usize::from(gone <= level);
            }
        }
    }
    let ended = tenths.iter().sum::<usize>().max(1) as f64;
    score.log_loss /= score.lives.max(1) as f64;
    score.calibration =
        tenths.iter().map(|&count| (count as f64 / ended - 0.1).abs()).sum::<f64>() / 10.0;
    score.ended_by = ended_by.map(|count| count as f64 / ended);
    score
}

/// Minus the logarithm of the chance of ending in the span of age in which it ended, or of living
/// as long as it was seen.
fn surprise(life: &Life, curve: &Curve, age_s: u64) -> f64 {
    let alive = curve.alive(age_s);
    let chance = if life.ended {
        let span = span_of(life.last_seen_s);
        let from = span.checked_sub(1).map_or(0, |edge| EDGE_S[edge]).max(age_s);
        let until = EDGE_S.get(span).map_or(0.0, |edge| curve.alive(*edge));
        curve.alive(from) - until
    } else {
        curve.alive(life.last_seen_s)
    };
    -(chance / alive).max(1e-9).ln()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forest::{Forest, Training};
    use crate::generated;
    use crate::seen::Traits;

    #[test]
    fn surprise_is_that_of_the_chance() {
        let curve = Curve::from_alive(|age_s| if age_s < 100 { 1.0 } else { 0.25 });
        let of = |life: Life| score([(&life, curve.clone())], 0).log_loss;
        let ended = Life::whole(Traits::default(), 100);
        assert!((of(ended.clone()) + 0.75f64.ln()).abs() < 1e-9);
        assert!((of(Life { ended: false, ..ended.clone() }) - 0.0).abs() < 0.2);
        assert_eq!(score([(&ended, curve.clone())], 101).lives, 0);
    }

    #[test]
    fn a_forest_is_nearly_as_good_as_the_truth_at_every_age() {
        let seen: Vec<Life> = generated::trace(8_000, 1).iter().map(|vm| vm.life()).collect();
        let forest = Forest::train(&seen, Training::default());
        let nobody = Forest::train(&[], Training::default());
        let ahead = generated::trace(2_000, 2);
        let lives: Vec<Life> = ahead.iter().map(|vm| vm.life()).collect();
        for age_s in [0, 3_600, 86_400] {
            let by = |curve: &dyn Fn(&generated::Vm) -> Curve| {
                score(lives.iter().zip(ahead.iter().map(curve)), age_s)
            };
            let truth = by(&|vm| vm.truth.clone());
            let model = by(&|vm| forest.predict(&vm.traits));
            let prior = by(&|vm| nobody.predict(&vm.traits));
            assert!(model.log_loss < truth.log_loss + 0.16, "{age_s}: {model:?} {truth:?}");
            assert!(prior.log_loss > truth.log_loss + 0.25, "{age_s}: {prior:?} {truth:?}");
            assert!(model.calibration < 0.025, "{age_s}: {model:?}");
        }
    }
}
