//! Orders, coefficients and the polynomials they stand for.

use std::fmt;

/// ARIMA(p,d,q)(P,D,Q)[season], with or without a mean of the differenced series.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Order {
    pub ar: usize,
    pub differences: usize,
    pub ma: usize,
    pub seasonal_ar: usize,
    pub seasonal_differences: usize,
    pub seasonal_ma: usize,
    /// 1 where there is no season.
    pub season: usize,
    pub mean: bool,
}

/// Coefficients with the signs of `x[t] = sum ar x[t-i] + e[t] + sum ma e[t-i]`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Coefficients {
    pub ar: Vec<f64>,
    pub ma: Vec<f64>,
    pub seasonal_ar: Vec<f64>,
    pub seasonal_ma: Vec<f64>,
    pub mean: f64,
}

impl Order {
    pub fn plain(ar: usize, differences: usize, ma: usize, mean: bool) -> Self {
        let (seasonal_ar, seasonal_differences, seasonal_ma) = (0, 0, 0);
        let season = 1;
        Self { ar, differences, ma, seasonal_ar, seasonal_differences, seasonal_ma, season, mean }
    }

    /// Coefficients of lags; the mean is counted apart.
    pub fn lags(&self) -> usize {
        self.ar + self.ma + self.seasonal_ar + self.seasonal_ma
    }

    /// Samples that differencing uses up.
    pub fn lost(&self) -> usize {
        self.differences + self.season * self.seasonal_differences
    }

    pub fn difference(&self, values: &[f64]) -> Vec<f64> {
        let mut out = values.to_vec();
        let steps = std::iter::repeat_n(self.season, self.seasonal_differences)
            .chain(std::iter::repeat_n(1, self.differences));
        for lag in steps {
            out = out.iter().zip(out.iter().skip(lag)).map(|(before, now)| now - before).collect();
        }
        out
    }

    /// Coefficients from numbers without bounds, such that the series is stationary and the noise
    /// can be told from it: every partial autocorrelation is below 1.
    pub fn bounded(&self, at: &[f64]) -> Coefficients {
        let (ar, rest) = at.split_at(self.ar);
        let (ma, rest) = rest.split_at(self.ma);
        let (seasonal_ar, rest) = rest.split_at(self.seasonal_ar);
        let (seasonal_ma, rest) = rest.split_at(self.seasonal_ma);
        let negated = |at: &[f64]| from_partial(at).into_iter().map(|c| -c).collect();
        Coefficients {
            ar: from_partial(ar),
            ma: negated(ma),
            seasonal_ar: from_partial(seasonal_ar),
            seasonal_ma: negated(seasonal_ma),
            mean: rest.first().copied().unwrap_or(0.0),
        }
    }
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ARIMA({},{},{})", self.ar, self.differences, self.ma)?;
        if self.season > 1 {
            let (ar, differences) = (self.seasonal_ar, self.seasonal_differences);
            write!(f, "({ar},{differences},{})[{}]", self.seasonal_ma, self.season)?;
        }
        match (self.mean, self.differences + self.seasonal_differences) {
            (false, _) => Ok(()),
            (true, 0) => f.write_str(" with mean"),
            (true, _) => f.write_str(" with drift"),
        }
    }
}

impl Coefficients {
    /// The whole autoregression by lag from 1 on, without differences.
    pub fn full_ar(&self, season: usize) -> Vec<f64> {
        let negated: Vec<f64> = self.ar.iter().map(|c| -c).collect();
        let seasonal: Vec<f64> = self.seasonal_ar.iter().map(|c| -c).collect();
        multiply(&negated, &seasonal, season).into_iter().map(|c| -c).collect()
    }

    /// The whole moving average by lag from 1 on.
    pub fn full_ma(&self, season: usize) -> Vec<f64> {
        multiply(&self.ma, &self.seasonal_ma, season)
    }

    /// Whether every root of every polynomial, in its own lag, is farther out than `distance`.
    ///
    /// A season is not asked for more than a step is: a moving average of -0.9 over a season of
    /// 24 is a season that hardly changes, which is what most are.
    pub fn roots_beyond(&self, distance: f64) -> bool {
        let negated = |c: &[f64]| c.iter().map(|c| -c).collect::<Vec<f64>>();
        is_stationary(&self.ar, distance)
            && is_stationary(&negated(&self.ma), distance)
            && is_stationary(&self.seasonal_ar, distance)
            && is_stationary(&negated(&self.seasonal_ma), distance)
    }
}

/// The product of `1 + sum short[i] B^(i+1)` and `1 + sum long[j] B^((j+1) season)`, from lag 1.
pub fn multiply(short: &[f64], long: &[f64], season: usize) -> Vec<f64> {
    let mut product = vec![0.0; short.len() + season * long.len()];
    product[..short.len()].copy_from_slice(short);
    for (j, b) in long.iter().enumerate() {
        let at = (j + 1) * season;
        product[at - 1] += b;
        for (i, a) in short.iter().enumerate() {
            product[at + i] += a * b;
        }
    }
    product
}

/// Autoregressive coefficients whose partial autocorrelations are `tanh` of the given numbers.
fn from_partial(at: &[f64]) -> Vec<f64> {
    let mut coefficients: Vec<f64> = Vec::with_capacity(at.len());
    for u in at {
        let partial = u.tanh();
        let n = coefficients.len();
        let turned: Vec<f64> =
            (0..n).map(|i| coefficients[i] - partial * coefficients[n - 1 - i]).collect();
        coefficients = turned;
        coefficients.push(partial);
    }
    coefficients
}

/// Whether `1 - sum c[i] z^(i+1)` has no root with a modulus up to `distance`.
fn is_stationary(coefficients: &[f64], distance: f64) -> bool {
    let mut scale = 1.0;
    let mut left: Vec<f64> = Vec::with_capacity(coefficients.len());
    for c in coefficients {
        scale *= distance;
        left.push(c * scale);
    }
    while let Some(partial) = left.pop() {
        if partial.abs() >= 1.0 {
            return false;
        }
        let n = left.len();
        let rest = 1.0 - partial * partial;
        left = (0..n).map(|i| (left[i] + partial * left[n - 1 - i]) / rest).collect();
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn polynomials_multiply() {
        assert_eq!(multiply(&[0.5], &[0.3], 4), [0.5, 0.0, 0.0, 0.3, 0.15]);
        let c = Coefficients { ar: vec![0.5], seasonal_ar: vec![0.3], ..Default::default() };
        assert_eq!(c.full_ar(4), [0.5, 0.0, 0.0, 0.3, -0.15]);
    }

    #[test]
    fn whatever_the_search_tries_is_stationary() {
        let order = Order { seasonal_ar: 1, season: 12, ..Order::plain(3, 0, 2, true) };
        for at in [[0.3, -2.0, 4.0, 1.0, -5.0, 2.0, 7.0], [9.0; 7], [-9.0; 7]] {
            let c = order.bounded(&at);
            assert!(is_stationary(&c.ar, 0.999) && is_stationary(&c.seasonal_ar, 0.999), "{c:?}");
            assert_eq!(c.mean, at[6]);
        }
    }

    #[test]
    fn roots_near_one_are_seen() {
        let near = Coefficients { ar: vec![0.995], ..Default::default() };
        assert!(near.roots_beyond(1.001) && !near.roots_beyond(1.01));
        let far = Coefficients { ar: vec![0.5, 0.3], ma: vec![-0.9], ..Default::default() };
        assert!(far.roots_beyond(1.01));
        let seasonal = Coefficients { seasonal_ma: vec![-0.9], ..Default::default() };
        assert!(seasonal.roots_beyond(1.01) && !seasonal.roots_beyond(1.2));
    }

    #[test]
    fn differences_are_taken_and_counted() {
        let order = Order { seasonal_differences: 1, season: 2, ..Order::plain(0, 1, 0, false) };
        assert_eq!(order.difference(&[1.0, 4.0, 9.0, 16.0, 25.0]), [4.0, 4.0]);
        assert_eq!(order.lost(), 3);
        assert!(order.difference(&[1.0]).is_empty());
    }

    #[test]
    fn orders_are_written_as_in_the_books() {
        let order = Order { seasonal_ma: 1, season: 24, ..Order::plain(2, 1, 1, true) };
        assert_eq!(order.to_string(), "ARIMA(2,1,1)(0,0,1)[24] with drift");
        assert_eq!(Order::plain(1, 0, 0, true).to_string(), "ARIMA(1,0,0) with mean");
    }
}
