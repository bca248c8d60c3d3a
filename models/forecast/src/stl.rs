//! Decomposition of a series into trend, season and rest by local regression (STL), and into
//! several seasons by taking turns (MSTL).

/// What a series is made of; the parts add up to it.
#[derive(Clone, Debug, PartialEq)]
pub struct Parts {
    pub trend: Vec<f64>,
    /// One series for each season asked for, in their order.
    pub seasons: Vec<Vec<f64>>,
    pub rest: Vec<f64>,
}

impl Parts {
    /// How much of what is not trend the `index`th season explains: 0 to 1.
    pub fn strength(&self, index: usize) -> f64 {
        let with: Vec<f64> = self
            .rest
            .iter()
            .zip(&self.seasons[index])
            .map(|(rest, season)| rest + season)
            .collect();
        let total = variance(&with);
        if total <= 0.0 { 0.0 } else { (1.0 - variance(&self.rest) / total).clamp(0.0, 1.0) }
    }
}

/// Takes `values` apart. Each season has to be seen twice; the seasons' shapes may change slowly.
pub fn decompose(values: &[f64], seasons: &[usize]) -> Parts {
    let n = values.len();
    assert!(seasons.iter().all(|&m| m > 1 && 2 * m <= n), "a season was not seen twice");
    let mut parts = Parts {
        trend: vec![0.0; n],
        seasons: vec![vec![0.0; n]; seasons.len()],
        rest: values.to_vec(),
    };
    let turns = if seasons.len() > 1 { 2 } else { 1 };
    let mut without = values.to_vec();
    for _ in 0..turns {
        for (index, &season) in seasons.iter().enumerate() {
            let found = &mut parts.seasons[index];
            add(&mut without, found);
            // Longer seasons are seen less often, so their shape is believed more slowly.
            let (shape, trend) = stl(&without, season, 11 + 4 * index);
            *found = shape;
            parts.trend = trend;
            for (value, season) in without.iter_mut().zip(&*found) {
                *value -= season;
            }
        }
    }
    parts.rest = without.iter().zip(&parts.trend).map(|(value, trend)| value - trend).collect();
    parts
}

fn add(to: &mut [f64], what: &[f64]) {
    to.iter_mut().zip(what).for_each(|(to, what)| *to += what);
}

fn variance(values: &[f64]) -> f64 {
    let n = values.len().max(1) as f64;
    let mean = values.iter().sum::<f64>() / n;
    values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / n
}

/// Season and trend of a series with one season.
fn stl(values: &[f64], period: usize, season_window: usize) -> (Vec<f64>, Vec<f64>) {
    let n = values.len();
    let trend_window = odd(1.5 * period as f64 / (1.0 - 1.5 / season_window as f64));
    let low_window = odd(period as f64);
    let mut trend = vec![0.0; n];
    let mut season = vec![0.0; n];
    let mut cycle = vec![0.0; n + 2 * period];
    let mut row = Vec::with_capacity(n / period + 1);
    let mut smooth = Vec::with_capacity(n / period + 3);
    for _ in 0..2 {
        for place in 0..period {
            row.clear();
            row.extend((place..n).step_by(period).map(|at| values[at] - trend[at]));
            smooth_beyond(&row, season_window, &mut smooth);
            for (turn, value) in smooth.iter().enumerate() {
                cycle[place + turn * period] = *value;
            }
        }
        let low = moving(&moving(&moving(&cycle, period), period), 3);
        let low = loess(&low, low_window, low_window.div_ceil(10));
        for at in 0..n {
            season[at] = cycle[at + period] - low[at];
        }
        let plain: Vec<f64> = values.iter().zip(&season).map(|(v, s)| v - s).collect();
        trend = loess(&plain, trend_window, trend_window.div_ceil(10));
    }
    (season, trend)
}

/// The next odd whole number.
fn odd(value: f64) -> usize {
    let whole = value.ceil() as usize;
    if whole.is_multiple_of(2) { whole + 1 } else { whole }
}

fn moving(values: &[f64], width: usize) -> Vec<f64> {
    let mut sum: f64 = values[..width].iter().sum();
    let mut means = vec![sum / width as f64];
    for at in width..values.len() {
        sum += values[at] - values[at - width];
        means.push(sum / width as f64);
    }
    means
}

/// The smoothed row with one more value at either end.
fn smooth_beyond(row: &[f64], window: usize, smooth: &mut Vec<f64>) {
    let n = row.len();
    smooth.clear();
    let width = window.min(n);
    smooth.push(fit_at(row, 0, width, -1.0, window));
    for at in 0..n {
        let left = at.saturating_sub(width / 2).min(n - width);
        smooth.push(fit_at(row, left, left + width, at as f64, window));
    }
    smooth.push(fit_at(row, n - width, n, n as f64, window));
}

/// Local lines at every `jump`th place, straight lines between them.
fn loess(values: &[f64], window: usize, jump: usize) -> Vec<f64> {
    let n = values.len();
    let width = window.min(n);
    let at = |place: usize| {
        let left = place.saturating_sub(width / 2).min(n - width);
        fit_at(values, left, left + width, place as f64, window)
    };
    let mut smooth = Vec::with_capacity(n);
    let mut place = 0;
    let mut value = at(0);
    while place + 1 < n {
        let next = (place + jump.max(1)).min(n - 1);
        let next_value = at(next);
        let slope = (next_value - value) / (next - place) as f64;
        smooth.extend((0..next - place).map(|step| value + slope * step as f64));
        (place, value) = (next, next_value);
    }
    smooth.push(value);
    smooth
}

/// The line through `values[left..right]`, weighted by nearness to `x`, at `x`.
fn fit_at(values: &[f64], left: usize, right: usize, x: f64, window: usize) -> f64 {
    let n = values.len();
    let mut reach = (x - left as f64).max((right - 1) as f64 - x);
    if window > n {
        reach += ((window - n) / 2) as f64;
    }
    let (mut w0, mut w1, mut w2, mut wy, mut wxy) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for (offset, value) in values[left..right].iter().enumerate() {
        let from = (left + offset) as f64 - x;
        let far = from.abs() / reach;
        if far < 0.999 {
            let near = 1.0 - far * far * far;
            let weight = near * near * near;
            w0 += weight;
            w1 += weight * from;
            w2 += weight * from * from;
            wy += weight * value;
            wxy += weight * from * value;
        }
    }
    if w0 <= 0.0 {
        return values[left..right].iter().sum::<f64>() / (right - left).max(1) as f64;
    }
    let spread = w0 * w2 - w1 * w1;
    // With nearly all weight on one sample there is no line, only a mean.
    if spread <= 1e-9 * w0 * w0 { wy / w0 } else { (wy * w2 - w1 * wxy) / spread }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made;
    use std::f64::consts::TAU;

    #[test]
    fn the_parts_add_up() {
        let values = made::daily(1, 24 * 14, 24);
        let parts = decompose(&values, &[24, 168]);
        for (at, value) in values.iter().enumerate() {
            let sum =
                parts.trend[at] + parts.seasons[0][at] + parts.seasons[1][at] + parts.rest[at];
            assert!((sum - value).abs() < 1e-9);
        }
    }

    #[test]
    fn a_day_and_a_week_are_told_apart() {
        let day = |t: usize| 10.0 * (t as f64 * TAU / 24.0).sin();
        let week = |t: usize| if t % 168 < 120 { 4.0 } else { -10.0 };
        let values: Vec<f64> = (0..168 * 6)
            .map(|t| 100.0 + 0.01 * t as f64 + day(t) + week(t) + 0.3 * made::noise(1, t))
            .collect();
        let parts = decompose(&values, &[24, 168]);
        let off = |found: &[f64], truth: &dyn Fn(usize) -> f64| {
            (0..values.len()).map(|t| (found[t] - truth(t)).abs()).sum::<f64>()
                / values.len() as f64
        };
        let both: Vec<f64> =
            parts.seasons[0].iter().zip(&parts.seasons[1]).map(|(a, b)| a + b).collect();
        assert!(off(&both, &|t| day(t) + week(t)) < 0.5);
        assert!(parts.strength(0) > 0.9 && parts.strength(1) > 0.9);
    }

    #[test]
    fn noise_has_no_strong_season() {
        let noise: Vec<f64> = (0..24 * 30).map(|t| made::noise(3, t)).collect();
        assert!(decompose(&noise, &[24]).strength(0) < 0.5);
        assert_eq!(decompose(&[1.0; 96], &[24]).strength(0), 0.0);
    }
}
