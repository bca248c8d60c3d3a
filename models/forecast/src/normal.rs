//! Quantiles of the standard normal distribution.

/// The value below which a standard normal variable stays with probability `level`.
///
/// Rational approximation of the tails and the middle, improved by one step of Halley's method
/// on the complementary error function; good to about 1e-9. Levels outside (0, 1) are infinite.
pub fn quantile(level: f64) -> f64 {
    if level.is_nan() || level <= 0.0 {
        return f64::NEG_INFINITY;
    }
    if level >= 1.0 {
        return f64::INFINITY;
    }
    if level == 0.5 {
        return 0.0;
    }
    let tail = level.min(1.0 - level);
    // Abramowitz and Stegun 26.2.23, within 4.5e-4, then polished.
    let t = (-2.0 * tail.ln()).sqrt();
    let above = t
        - (2.515_517 + t * (0.802_853 + t * 0.010_328))
            / (1.0 + t * (1.432_788 + t * (0.189_269 + t * 0.001_308)));
    let mut z = -above;
    for _ in 0..3 {
        let density = (-0.5 * z * z).exp() / (2.0 * std::f64::consts::PI).sqrt();
        let step = (below(z) - tail) / density;
        z -= step / (1.0 + 0.5 * z * step);
    }
    if level < 0.5 { z } else { -z }
}

/// The probability that a standard normal variable is below `z`, for `z <= 0`.
fn below(z: f64) -> f64 {
    let x = -z / std::f64::consts::SQRT_2;
    if x < 3.0 {
        // Series of erf.
        let mut term = x;
        let mut sum = x;
        for n in 1..80 {
            let n = f64::from(n);
            term *= -x * x / n;
            sum += term / (2.0 * n + 1.0);
        }
        return 0.5 - sum / std::f64::consts::PI.sqrt();
    }
    // Continued fraction of erfc, which converges quickly out here.
    let mut fraction = x;
    for n in (1..=40).rev() {
        fraction = x + f64::from(n) / 2.0 / fraction;
    }
    0.5 * (-x * x).exp() / std::f64::consts::PI.sqrt() / fraction
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_tables() {
        let known = [
            (0.975, 1.959_963_984_540_054),
            (0.95, 1.644_853_626_951_472_2),
            (0.999_9, 3.719_016_485_455_68),
            (0.25, -0.674_489_750_196_081_7),
            (1e-6, -4.753_424_308_822_899),
        ];
        for (level, z) in known {
            assert!((quantile(level) - z).abs() < 1e-8, "{level}: {} not {z}", quantile(level));
        }
        assert_eq!(quantile(0.5), 0.0);
        assert_eq!(quantile(0.0), f64::NEG_INFINITY);
        assert_eq!(quantile(1.0), f64::INFINITY);
    }
}
