//! Our exact likelihood beside fits that others have made of the same series.
//!
//! A directory holds `golden_arima.json` with orders, parameters and log likelihoods of two other
//! packages, and the series that they were fitted to, read by the caller. Series with differences
//! are compared after differencing: that is the sample that all of them share.

use forecast::arima::kalman;
use forecast::arima::order::{Coefficients, Order};
use forecast::arima::search;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One fit of others.
#[derive(Clone, Debug, Deserialize)]
pub struct Golden {
    pub series: String,
    pub n: usize,
    order: [usize; 3],
    seasonal: [usize; 4],
    sm_params: BTreeMap<String, Option<f64>>,
    sm_loglik: Option<f64>,
    sf_loglik: Option<f64>,
}

/// The comparison of one fit.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Compared {
    pub series: String,
    pub order: String,
    /// Their log likelihoods.
    pub sm: Option<f64>,
    pub sf: Option<f64>,
    /// Our likelihood at their parameters, and how far off it is.
    pub ours_at_sm: Option<f64>,
    pub relative: Option<f64>,
    /// The likelihood of our own fit, and how much better it is than the better of theirs.
    pub ours: f64,
    pub gain: Option<f64>,
}

/// Reads fits; numbers that are not numbers are left out, as JSON has none.
pub fn read(text: &str) -> serde_json::Result<Vec<Golden>> {
    serde_json::from_str(&text.replace("NaN", "null"))
}

/// Compares one fit; `values` are the `n` samples that it was made on.
pub fn compare(golden: &Golden, values: &[f64]) -> Compared {
    let [ar, differences, ma] = golden.order;
    let [seasonal_ar, seasonal_differences, seasonal_ma, season] = golden.seasonal;
    let mean = golden.sm_params.contains_key("const");
    let season = season.max(1);
    let order = Order {
        seasonal_ar,
        seasonal_differences,
        seasonal_ma,
        season,
        ..Order::plain(ar, differences, ma, mean)
    };
    let x = order.difference(values);
    let ours_at_sm = theirs(golden, &order).and_then(|(coefficients, variance)| {
        kalman::likelihood(&x, &coefficients, season, None).map(|found| found.at(variance))
    });
    let relative =
        golden.sm_loglik.zip(ours_at_sm).map(|(theirs, ours)| ((ours - theirs) / theirs).abs());
    let ours = search::estimate(values, order, None).log_likelihood;
    let best = match (golden.sm_loglik, golden.sf_loglik) {
        (Some(sm), Some(sf)) => Some(sm.max(sf)),
        (one, other) => one.or(other),
    };
    Compared {
        series: golden.series.clone(),
        order: order.to_string(),
        sm: golden.sm_loglik,
        sf: golden.sf_loglik,
        ours_at_sm,
        relative,
        ours,
        gain: best.map(|best| ours - best),
    }
}

/// Their coefficients and the variance of the noise.
fn theirs(golden: &Golden, order: &Order) -> Option<(Coefficients, f64)> {
    let at = |name: String| golden.sm_params.get(&name).copied().flatten();
    let lags = |kind: &str, count: usize, step: usize| -> Option<Vec<f64>> {
        (1..=count).map(|lag| at(format!("{kind}{}", lag * step))).collect()
    };
    let coefficients = Coefficients {
        ar: lags("ar.L", order.ar, 1)?,
        ma: lags("ma.L", order.ma, 1)?,
        seasonal_ar: lags("ar.S.L", order.seasonal_ar, order.season)?,
        seasonal_ma: lags("ma.S.L", order.seasonal_ma, order.season)?,
        mean: at("const".into()).unwrap_or(0.0),
    };
    Some((coefficients, at("sigma2".into())?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn likelihoods_of_white_noise_are_known() {
        let text = r#"[{"series": "a", "n": 3, "order": [0,0,0], "seasonal": [0,0,0,0],
            "sm_params": {"const": 1.0, "sigma2": 2.0}, "sm_loglik": -5.0, "sf_loglik": NaN}]"#;
        let golden = read(text).expect("JSON");
        let found = compare(&golden[0], &[0.0, 1.0, 2.0]);
        let expected = -0.5 * (3.0 * (std::f64::consts::TAU * 2.0).ln() + 1.0);
        assert!(found.ours_at_sm.is_some_and(|ours| (ours - expected).abs() < 1e-12), "{found:?}");
        assert_eq!((found.sf, found.gain), (None, Some(found.ours + 5.0)));
    }
}
