//! Plain statistics over a handful of numbers: order statistics, spread, trend.
//!
//! All of it stands up to outliers, because monitoring data has them. Empty input gives zeros.

use wire::novacron::MetricSummary;

/// Most points that a trend is taken from; the pairs of these are looked at.
const MOST_POINTS: usize = 256;

/// Turns the median distance from the median into a standard deviation, for normal data.
const MAD_TO_SIGMA: f64 = 1.4826;

/// The value that `share` of the values are at most, between the two nearest ranks.
pub(super) fn quantile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let last = sorted.len().saturating_sub(1);
    let rank = share.clamp(0.0, 1.0) * last as f64;
    let at = |rank: f64| sorted.get(rank as usize).copied().unwrap_or(0.0);
    let (below, above) = (at(rank.floor()), at(rank.ceil()));
    below + (above - below) * rank.fract()
}

pub(super) fn median(values: &[f64]) -> f64 {
    quantile(values, 0.5)
}

pub(super) fn mean(values: &[f64]) -> f64 {
    if values.is_empty() { 0.0 } else { values.iter().sum::<f64>() / values.len() as f64 }
}

/// Standard deviation over mean; 0 for a mean of 0.
pub(super) fn variation(values: &[f64]) -> f64 {
    let mean = mean(values);
    if mean == 0.0 {
        return 0.0;
    }
    let squares: Vec<f64> = values.iter().map(|value| (value - mean) * (value - mean)).collect();
    self::mean(&squares).sqrt() / mean.abs()
}

/// How many robust standard deviations `value` is away from the median of `values`.
///
/// Where the values do not vary, the unit is a hundredth of the median, or of 1 if that is 0.
pub(super) fn robust_z(values: &[f64], value: f64) -> f64 {
    let middle = median(values);
    let distances: Vec<f64> = values.iter().map(|value| (value - middle).abs()).collect();
    let sigma = MAD_TO_SIGMA * median(&distances);
    let smallest = if middle == 0.0 { 0.01 } else { middle.abs() * 0.01 };
    (value - middle) / sigma.max(smallest)
}

/// The median of the slopes between all pairs of the latest points, as Theil and Sen have it.
/// Points with the same `x` have no slope.
pub(super) fn slope(points: &[(f64, f64)]) -> f64 {
    let latest = points.get(points.len().saturating_sub(MOST_POINTS)..).unwrap_or_default();
    let mut slopes = Vec::new();
    for (row, (x, y)) in latest.iter().enumerate() {
        for (earlier_x, earlier_y) in latest.iter().take(row) {
            if x > earlier_x {
                slopes.push((y - earlier_y) / (x - earlier_x));
            }
        }
    }
    median(&slopes)
}

pub(super) fn summary(values: &[f64]) -> MetricSummary {
    let points: Vec<(f64, f64)> =
        values.iter().enumerate().map(|(row, value)| (row as f64, *value)).collect();
    MetricSummary {
        samples: values.len(),
        mean: mean(values),
        p50: median(values),
        p95: quantile(values, 0.95),
        peak: quantile(values, 1.0),
        slope_per_sample: slope(&points),
        variation: variation(values),
    }
}

/// What the series comes to at `x`: its last value, moved along by the trend.
pub(super) fn extrapolate(points: &[(f64, f64)], x: f64) -> Option<f64> {
    let (last_x, last) = points.last()?;
    Some(last + slope(points) * (x - last_x))
}

/// From 0 to 1: how close each value came to the one before it, less for few values.
///
/// 1 less the mean distance as a share of the mean value, times n / (n + 8).
pub(super) fn predictability(values: &[f64]) -> f64 {
    let steps: Vec<f64> =
        values.iter().zip(values.iter().skip(1)).map(|(a, b)| (b - a).abs()).collect();
    if steps.is_empty() {
        return 0.0;
    }
    let scale = mean(values).abs().max(1e-9);
    let count = values.len() as f64;
    (1.0 - mean(&steps) / scale).clamp(0.0, 1.0) * count / (count + 8.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: f64, b: f64) {
        assert!((a - b).abs() < 1e-9, "{a} is not {b}");
    }

    #[test]
    fn quantiles_lie_between_the_nearest_ranks() {
        let values = [4.0, 1.0, 3.0, 2.0];
        close(quantile(&values, 0.0), 1.0);
        close(median(&values), 2.5);
        close(quantile(&values, 0.95), 3.85);
        close(quantile(&values, 1.0), 4.0);
        close(median(&[]), 0.0);
        close(median(&[7.0]), 7.0);
    }

    #[test]
    fn one_outlier_moves_neither_trend_nor_middle() {
        let mut points: Vec<(f64, f64)> = (0..20).map(|x| (x.into(), 2.0 * f64::from(x))).collect();
        close(slope(&points), 2.0);
        points[10].1 = 1e9;
        close(slope(&points), 2.0);
        close(extrapolate(&points, 30.0).expect("points"), 60.0);
        close(slope(&[(1.0, 5.0), (1.0, 9.0)]), 0.0);
    }

    #[test]
    fn z_scores_count_robust_deviations() {
        let values: Vec<f64> = (0..11).map(f64::from).collect();
        close(robust_z(&values, 5.0), 0.0);
        close(robust_z(&values, 5.0 + 3.0 * 1.4826), 1.0);
        assert!(robust_z(&[0.5; 20], 0.9) > 3.5, "what never moved has moved");
        close(robust_z(&[0.5; 20], 0.5), 0.0);
    }

    #[test]
    fn a_flat_series_is_predictable_and_a_wild_one_is_not() {
        close(predictability(&[0.4; 24]), 0.75);
        let wild: Vec<f64> = (0..24).map(|row| f64::from(row % 2)).collect();
        close(predictability(&wild), 0.0);
        close(predictability(&[1.0]), 0.0);
    }
}
