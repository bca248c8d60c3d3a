//! Classical decomposition: lines, moving averages, and the mean shape of a season.

/// Level at place 0 and slope of the least-squares line.
pub fn line(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    if values.len() < 2 {
        return (values.first().copied().unwrap_or(0.0), 0.0);
    }
    let middle = (n - 1.0) / 2.0;
    let mean = values.iter().sum::<f64>() / n;
    let (mut up, mut down) = (0.0, 0.0);
    for (place, value) in values.iter().enumerate() {
        let from_middle = place as f64 - middle;
        up += from_middle * (value - mean);
        down += from_middle * from_middle;
    }
    let slope = up / down;
    (mean - slope * middle, slope)
}

/// The centred moving average over a season, where a whole season lies around the sample:
/// the first belongs to place `season / 2`.
pub fn moving_average(values: &[f64], season: usize) -> Vec<f64> {
    if season < 2 || values.len() <= season {
        return Vec::new();
    }
    let mut sum: f64 = values[..season].iter().sum();
    let mut plain = vec![sum / season as f64];
    for place in season..values.len() {
        sum += values[place] - values[place - season];
        plain.push(sum / season as f64);
    }
    if season % 2 == 1 {
        return plain;
    }
    plain.windows(2).map(|pair| (pair[0] + pair[1]) / 2.0).collect()
}

/// What each place of the season adds to the level; sums to 0.
pub fn summands(values: &[f64], season: usize) -> Vec<f64> {
    let mut mean = by_place(values, season, |value, level| value - level);
    let centre = mean.iter().sum::<f64>() / season as f64;
    mean.iter_mut().for_each(|value| *value -= centre);
    mean
}

/// What each place of the season multiplies the level by; 1 on average and never near 0.
pub fn factors(values: &[f64], season: usize) -> Vec<f64> {
    let ratio = |value: f64, level: f64| if level.abs() > 1e-12 { value / level } else { 1.0 };
    let mut mean = by_place(values, season, ratio);
    let centre = mean.iter().sum::<f64>() / season as f64;
    for value in &mut mean {
        *value = if centre.abs() > 1e-12 { *value / centre } else { 1.0 };
        if !value.is_finite() || *value < 1e-2 {
            *value = 1e-2;
        }
    }
    mean
}

/// Whether the correlation with the season before is larger than chance makes it, with a
/// confidence of 90 %.
pub fn has_season(values: &[f64], season: usize) -> bool {
    let n = values.len();
    if season < 2 || n < 3 * season {
        return false;
    }
    let mean = values.iter().sum::<f64>() / n as f64;
    let centred: Vec<f64> = values.iter().map(|value| value - mean).collect();
    let power: f64 = centred.iter().map(|value| value * value).sum();
    if power <= 0.0 {
        return false;
    }
    let correlation =
        |lag: usize| centred.iter().zip(&centred[lag..]).map(|(a, b)| a * b).sum::<f64>() / power;
    let before: f64 = (1..season).map(|lag| correlation(lag).powi(2)).sum();
    correlation(season).abs() > 1.645 * ((1.0 + 2.0 * before) / n as f64).sqrt()
}

/// The mean of `compared(value, level)` at each place of the season.
fn by_place(values: &[f64], season: usize, compared: impl Fn(f64, f64) -> f64) -> Vec<f64> {
    let levels = moving_average(values, season);
    let mut sums = vec![(0.0, 0.0); season];
    for (offset, level) in levels.iter().enumerate() {
        let place = offset + season / 2;
        let (sum, count) = &mut sums[place % season];
        *sum += compared(values[place], *level);
        *count += 1.0;
    }
    // With less than two seasons some places were never in the middle of one.
    let (total, seen) = sums.iter().fold((0.0, 0.0), |(s, c), (sum, count)| (s + sum, c + count));
    let neutral = if seen > 0.0 { total / seen } else { compared(1.0, 1.0) };
    sums.iter().map(|(sum, count)| if *count > 0.0 { sum / count } else { neutral }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made;

    #[test]
    fn a_line_is_found_again() {
        let (level, slope) = line(&[3.0, 5.0, 7.0]);
        assert!((level - 3.0).abs() < 1e-12 && (slope - 2.0).abs() < 1e-12);
        assert_eq!(line(&[]), (0.0, 0.0));
        assert_eq!(line(&[4.0]), (4.0, 0.0));
    }

    #[test]
    fn a_season_on_a_slope_is_found_again() {
        let shape = [5.0, -1.0, -3.0, -1.0];
        let values: Vec<f64> = (0..40).map(|t| 2.0 * t as f64 + shape[t % 4]).collect();
        for (found, made) in summands(&values, 4).iter().zip(shape) {
            assert!((found - made).abs() < 1e-9, "{found} {made}");
        }
        let shape = [1.5, 1.0, 0.5];
        let values: Vec<f64> = (0..30).map(|t| 10.0 * shape[t % 3]).collect();
        for (found, made) in factors(&values, 3).iter().zip(shape) {
            assert!((found - made).abs() < 1e-9, "{found} {made}");
        }
    }

    #[test]
    fn seasons_are_told_from_noise() {
        assert!(has_season(&made::daily(1, 240, 24), 24));
        let noise: Vec<f64> = (0..240).map(|place| made::noise(7, place)).collect();
        assert!(!has_season(&noise, 24));
        assert!(!has_season(&[1.0; 240], 24));
        assert!(!has_season(&[1.0, 2.0, 1.0, 2.0], 2));
    }
}
