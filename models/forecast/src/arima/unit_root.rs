//! How often a series has to be differenced before it stands still.

use crate::stl;

/// Seasons stronger than this are better differenced than modelled by autoregression.
const STRONG: f64 = 0.64;
/// Critical value of the KPSS test of a level at 5 %.
const LEVEL_5_PERCENT: f64 = 0.463;

/// 1 if the season is strong, else 0.
pub fn seasonal_differences(values: &[f64], season: usize) -> usize {
    if season < 2 || values.len() < 3 * season {
        return 0;
    }
    usize::from(stl::decompose(values, &[season]).strength(0) > STRONG)
}

/// The smallest number of differences, at most 2, after which the KPSS test sees a level.
pub fn differences(values: &[f64]) -> usize {
    let mut left = values.to_vec();
    for taken in 0..2 {
        if kpss(&left) <= LEVEL_5_PERCENT {
            return taken;
        }
        left = left.windows(2).map(|pair| pair[1] - pair[0]).collect();
    }
    2
}

/// The statistic of Kwiatkowski, Phillips, Schmidt and Shin: large when the sums of deviations
/// from the mean wander.
pub fn kpss(values: &[f64]) -> f64 {
    let n = values.len();
    if n < 8 {
        return 0.0;
    }
    let mean = values.iter().sum::<f64>() / n as f64;
    let off: Vec<f64> = values.iter().map(|value| value - mean).collect();
    let mut at = 0.0;
    let wander: f64 = off
        .iter()
        .map(|value| {
            at += value;
            at * at
        })
        .sum();
    let lags = (4.0 * (n as f64 / 100.0).powf(0.25)) as usize;
    let product = |lag: usize| off.iter().zip(&off[lag..]).map(|(a, b)| a * b).sum::<f64>();
    let mut power = product(0);
    for lag in 1..=lags.min(n - 1) {
        power += 2.0 * (1.0 - lag as f64 / (lags + 1) as f64) * product(lag);
    }
    if power <= 0.0 { 0.0 } else { wander / (n as f64 * power) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made;

    #[test]
    fn walks_are_differenced_and_noise_is_not() {
        let noise: Vec<f64> = (0..300).map(|t| made::noise(1, t)).collect();
        assert_eq!(differences(&noise), 0);
        assert_eq!(differences(&made::walk(1, 300)), 1);
        let mut at = 0.0;
        let twice: Vec<f64> = made::walk(2, 300)
            .iter()
            .map(|step| {
                at += step - 100.0;
                at
            })
            .collect();
        assert_eq!(differences(&twice), 2);
        assert_eq!(differences(&[5.0; 40]), 0);
        assert_eq!(differences(&[]), 0);
    }

    #[test]
    fn days_are_differenced_and_noise_is_not() {
        assert_eq!(seasonal_differences(&made::daily(1, 240, 24), 24), 1);
        let noise: Vec<f64> = (0..480).map(|t| made::noise(1, t)).collect();
        assert_eq!(seasonal_differences(&noise, 24), 0);
        assert_eq!(seasonal_differences(&made::daily(1, 50, 24), 24), 0);
    }
}
