//! How far off forecasts are.

/// The mean of absolute errors.
pub fn mae(truth: &[f64], point: &[f64]) -> f64 {
    mean(truth.iter().zip(point).map(|(truth, point)| (truth - point).abs()))
}

/// The symmetric percentage error of the M competitions, 0 to 200.
pub fn smape(truth: &[f64], point: &[f64]) -> f64 {
    mean(truth.iter().zip(point).map(|(truth, point)| {
        let size = truth.abs() + point.abs();
        if size == 0.0 { 0.0 } else { 200.0 * (truth - point).abs() / size }
    }))
}

/// The loss that a forecast of the quantile `level` minimises.
pub fn pinball(truth: &[f64], quantile: &[f64], level: f64) -> f64 {
    mean(truth.iter().zip(quantile).map(|(truth, quantile)| {
        let off = truth - quantile;
        (level * off).max((level - 1.0) * off)
    }))
}

/// The share of samples within an interval.
pub fn coverage(truth: &[f64], lower: &[f64], upper: &[f64]) -> f64 {
    let bounds = lower.iter().zip(upper);
    mean(truth.iter().zip(bounds).map(
        |(truth, (lower, upper))| {
            if lower <= truth && truth <= upper { 1.0 } else { 0.0 }
        },
    ))
}

/// The width of an interval with a penalty for what lies outside, in units of the data.
pub fn interval_score(truth: &[f64], lower: &[f64], upper: &[f64], level: f64) -> f64 {
    let penalty = 2.0 / (1.0 - level);
    let bounds = lower.iter().zip(upper);
    mean(truth.iter().zip(bounds).map(|(truth, (lower, upper))| {
        upper - lower + penalty * ((lower - truth).max(0.0) + (truth - upper).max(0.0))
    }))
}

/// What the naive forecast of `lag` samples ago gets wrong on average: the unit of scaled errors.
pub fn naive_scale(history: &[f64], lag: usize) -> f64 {
    if lag == 0 || history.len() <= lag {
        return 0.0;
    }
    mean(history.iter().zip(&history[lag..]).map(|(before, now)| (now - before).abs()))
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0u32), |(sum, count), value| (sum + value, count + 1));
    if count == 0 { 0.0 } else { sum / f64::from(count) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_are_those_of_the_books() {
        assert_eq!(mae(&[1.0, 2.0], &[2.0, 4.0]), 1.5);
        assert_eq!(smape(&[0.0, 1.0], &[0.0, 3.0]), 50.0);
        assert_eq!(pinball(&[10.0], &[6.0], 0.95), 3.8);
        assert!((pinball(&[6.0], &[10.0], 0.95) - 0.2).abs() < 1e-12);
        assert_eq!(coverage(&[1.0, 5.0], &[0.0, 0.0], &[1.0, 4.0]), 0.5);
        assert!((interval_score(&[5.0], &[0.0], &[4.0], 0.95) - 44.0).abs() < 1e-9);
        assert_eq!(naive_scale(&[1.0, 2.0, 4.0, 8.0], 2), 4.5);
    }

    #[test]
    fn nothing_is_off_by_nothing() {
        assert_eq!(mae(&[], &[]), 0.0);
        assert_eq!(naive_scale(&[1.0], 24), 0.0);
    }
}
