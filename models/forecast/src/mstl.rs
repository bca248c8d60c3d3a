//! Several seasons are taken off, the rest is smoothed, and the last seasons are put on again.

use crate::ets::Ets;
use crate::model::{Fitted, Model, Prediction};
use crate::stl;

#[derive(Clone, Copy, Debug, Default)]
pub struct Mstl;

#[derive(Debug)]
struct Seasoned {
    /// The last turn of each season; `next` is the place of the coming sample in each.
    seasons: Vec<Vec<f64>>,
    next: Vec<usize>,
    inner: Box<dyn Fitted>,
}

const INNER: Ets = Ets { without_season: true };

impl Model for Mstl {
    fn name(&self) -> &'static str {
        "mstl"
    }

    fn fit(&self, history: &[f64], seasons: &[usize]) -> Box<dyn Fitted> {
        seasoned(history, seasons, |rest| INNER.fit(rest, seasons))
            .map_or_else(|| INNER.fit(history, &[]), |fitted| Box::new(fitted) as Box<dyn Fitted>)
    }
}

fn seasoned(
    history: &[f64],
    seasons: &[usize],
    fit: impl FnOnce(&[f64]) -> Box<dyn Fitted>,
) -> Option<Seasoned> {
    let n = history.len();
    let mut seasons: Vec<usize> = seasons.iter().copied().filter(|&m| m > 1 && 2 * m < n).collect();
    seasons.sort_unstable();
    seasons.dedup();
    if seasons.is_empty() {
        return None;
    }
    let parts = stl::decompose(history, &seasons);
    let mut rest = history.to_vec();
    for season in &parts.seasons {
        rest.iter_mut().zip(season).for_each(|(rest, season)| *rest -= season);
    }
    let turns = seasons.iter().zip(&parts.seasons).map(|(m, season)| season[n - m..].to_vec());
    Some(Seasoned { seasons: turns.collect(), next: vec![0; seasons.len()], inner: fit(&rest) })
}

impl Fitted for Seasoned {
    fn predict(&self, horizon: usize) -> Prediction {
        let mut prediction = self.inner.predict(horizon);
        for (season, next) in self.seasons.iter().zip(&self.next) {
            for (step, point) in prediction.point.iter_mut().enumerate() {
                *point += season[(next + step) % season.len()];
            }
        }
        prediction
    }

    /// The shapes of the seasons stay as they were found; the rest is followed.
    fn update(&mut self, value: f64) {
        let mut rest = value;
        for (season, next) in self.seasons.iter().zip(&mut self.next) {
            rest -= season[*next];
            *next = (*next + 1) % season.len();
        }
        self.inner.update(rest);
    }

    fn refit(&self, history: &[f64], seasons: &[usize]) -> Box<dyn Fitted> {
        seasoned(history, seasons, |rest| self.inner.refit(rest, seasons)).map_or_else(
            || Mstl.fit(history, seasons),
            |fitted| Box::new(fitted) as Box<dyn Fitted>,
        )
    }

    fn describe(&self) -> String {
        let seasons: Vec<String> = self.seasons.iter().map(|s| s.len().to_string()).collect();
        format!("MSTL[{}] + {}", seasons.join(","), self.inner.describe())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made;

    #[test]
    fn a_weekend_is_foreseen() {
        let at = |t: usize| {
            let weekend = if t % 168 >= 120 { -15.0 } else { 0.0 };
            made::daily(1, t + 1, 24)[t] + weekend
        };
        let history: Vec<f64> = (0..168 * 5 + 100).map(at).collect();
        let fitted = Mstl.fit(&history, &[24, 168]);
        let ahead = fitted.predict(48).point;
        let off: f64 = ahead
            .iter()
            .enumerate()
            .map(|(step, point)| (point - at(history.len() + step)).abs())
            .sum();
        assert!(off / 48.0 < 2.5, "{}", off / 48.0);
        assert!(fitted.describe().starts_with("MSTL[24,168] + ETS("));
    }

    #[test]
    fn updates_go_round_the_seasons() {
        let history = made::daily(2, 240, 24);
        let mut fitted = Mstl.fit(&history[..230], &[24]);
        let before = fitted.predict(34).point;
        history[230..].iter().for_each(|value| fitted.update(*value));
        let after = fitted.predict(24).point;
        let off = after.iter().zip(&before[10..]).map(|(a, b)| (a - b).abs()).sum::<f64>();
        assert!(off / 24.0 < 2.0, "{}", off / 24.0);
    }

    #[test]
    fn without_a_season_the_series_is_smoothed() {
        assert!(Mstl.fit(&made::walk(1, 40), &[24]).describe().starts_with("ETS("));
    }
}
