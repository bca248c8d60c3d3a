//! Choosing a shape of exponential smoothing.
//!
//! Where there is a season, the question is what comes after whole turns of it, and the
//! likelihood of one step hardly knows that: a level that follows every sample has a good one
//! without any season. So shapes are compared by their errors several steps ahead, from moments
//! of the last third of the history. Without a season the corrected information criterion decides.

use super::fit::{self, COMPARE, Estimate};
use super::shape::{Noise, Season, Shape, Trend};
use crate::optimise::REFUSED;

/// Moments from which shapes look ahead.
const LOOKS: usize = 16;

/// The best shape with its season, 1 where it has none. `None` if no shape can be fitted.
pub fn choose(
    history: &[f64],
    seasons: &[usize],
    without_season: bool,
) -> Option<(Estimate, usize)> {
    let seasons = usable(history, seasons);
    let ahead = seasons.first().map(|season| (2 * season).min(history.len() / 4));
    let mut candidates: Vec<(Shape, usize)> = plain(history).map(|shape| (shape, 1)).collect();
    if !without_season {
        for &season in &seasons {
            candidates.extend(seasonal(history).map(|shape| (shape, season)));
        }
    }
    let fitted = candidates.into_iter().map(|(shape, season)| {
        let estimate = fit::fit(history, shape, season, None, COMPARE);
        let criterion = match ahead {
            Some(_) if estimate.criterion >= REFUSED => REFUSED,
            Some(ahead) => error_ahead(&estimate, history, ahead),
            None => estimate.criterion,
        };
        (criterion, estimate, season)
    });
    let best = fitted.min_by(|a, b| a.0.total_cmp(&b.0));
    best.map(|(_, estimate, season)| (estimate, season))
}

/// Seasons that were seen three times, shortest first; two at most.
pub fn usable(history: &[f64], seasons: &[usize]) -> Vec<usize> {
    let seen = |&&m: &&usize| m > 1 && 3 * m <= history.len();
    let mut usable: Vec<usize> = seasons.iter().filter(seen).copied().collect();
    usable.sort_unstable();
    usable.dedup();
    usable.truncate(2);
    usable
}

fn plain(history: &[f64]) -> impl Iterator<Item = Shape> + use<> {
    shapes(Season::None, is_positive(history))
}

fn seasonal(history: &[f64]) -> impl Iterator<Item = Shape> + use<> {
    let positive = is_positive(history);
    let multiplied = positive.then(|| shapes(Season::Multiplicative, true));
    shapes(Season::Additive, positive).chain(multiplied.into_iter().flatten())
}

fn is_positive(history: &[f64]) -> bool {
    history.iter().all(|value| *value > 0.0)
}

fn shapes(season: Season, positive: bool) -> impl Iterator<Item = Shape> {
    let noises = [Noise::Additive, Noise::Multiplicative].into_iter().filter(move |noise| {
        match noise {
            // Additive noise around a multiplied season is numerically fragile.
            Noise::Additive => season != Season::Multiplicative,
            Noise::Multiplicative => positive,
        }
    });
    noises.flat_map(move |noise| {
        [Trend::None, Trend::Additive, Trend::Damped].into_iter().map(move |trend| Shape {
            noise,
            trend,
            season,
        })
    })
}

/// The mean absolute error over the next `ahead` samples, from moments of the last third.
fn error_ahead(estimate: &Estimate, history: &[f64], ahead: usize) -> f64 {
    let Estimate { shape, rates, .. } = estimate;
    let n = history.len();
    let first = n - n / 3;
    let last = n - ahead;
    let stride = (last.saturating_sub(first) / LOOKS).max(1);
    let mut state = estimate.start.clone();
    let (mut sum, mut count) = (0.0, 0usize);
    for (at, &sample) in history.iter().enumerate().take(last + 1) {
        if at >= first.min(last) && (last - at).is_multiple_of(stride) {
            let points = state.ahead(shape.season, rates).zip(&history[at..at + ahead]);
            sum += points.map(|(point, truth)| (truth - point).abs()).sum::<f64>();
            count += ahead;
        }
        state.step(shape.season, rates, sample);
    }
    let mean = sum / count.max(1) as f64;
    if mean.is_finite() { mean } else { REFUSED }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made;

    fn chosen(history: &[f64], seasons: &[usize]) -> (String, usize) {
        let (estimate, season) = choose(history, seasons, false).expect("a shape");
        (estimate.shape.to_string(), season)
    }

    #[test]
    fn a_week_is_preferred_to_a_day_where_weekends_differ() {
        let weekend = |t: usize| if t % 168 >= 120 { -15.0 } else { 0.0 };
        let days = made::daily(1, 168 * 5, 24);
        assert_eq!(chosen(&days, &[24, 168]).1, 24);
        let weeks: Vec<f64> = days.iter().enumerate().map(|(t, day)| day + weekend(t)).collect();
        assert_eq!(chosen(&weeks, &[24, 168]).1, 168);
    }

    #[test]
    fn a_season_under_much_noise_is_kept() {
        // Steps are large beside the season, so that following them pays one step ahead.
        let walk = made::walk(4, 600);
        let season = |t: usize| if t % 24 < 8 { 25.0 } else { 0.0 };
        let history: Vec<f64> = walk.iter().enumerate().map(|(t, v)| v + season(t)).collect();
        assert_eq!(chosen(&history, &[24]).1, 24);
        assert_eq!(chosen(&history, &[]).1, 1);
    }

    #[test]
    fn seasons_have_to_be_seen_three_times() {
        assert_eq!(usable(&[0.0; 100], &[168, 24, 24, 1, 12]), [12, 24]);
        assert!(usable(&[0.0; 20], &[24]).is_empty());
    }
}
