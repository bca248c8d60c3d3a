//! How good a model would have been: forecasts from several earlier moments of every series,
//! compared with what came.

use crate::accuracy;
use crate::batch::{self, Forecast, Spec};

/// What a model got wrong, averaged over all windows.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Score {
    pub windows: usize,
    pub mae: f64,
    pub smape: f64,
    /// Absolute errors in units of what the naive forecast gets wrong in the series.
    pub mase: f64,
    /// Mean pinball loss of both bounds and the middle, in the same units.
    pub pinball: f64,
    /// The share of samples within the interval.
    pub coverage: f64,
    /// Width of the interval and penalty for what is outside, in the same units.
    pub interval: f64,
}

/// Which moments are looked at, and who teaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    pub origins: usize,
    /// Samples between two origins.
    pub stride: usize,
    /// Global models are trained on one half of the series and asked about the other: how good
    /// they are for series they have never seen.
    pub leave_series_out: bool,
}

/// A forecast that was made at an earlier moment, and what came.
#[derive(Clone, Debug)]
pub struct Window {
    pub series: usize,
    /// Samples known then.
    pub origin: usize,
    pub forecast: Forecast,
    pub truth: Vec<f64>,
}

/// Forecasts from every origin of the plan. Series that are too short for one are left out there.
pub fn windows(series: &[Vec<f64>], spec: &Spec, plan: &Plan) -> Vec<Window> {
    let mut found = Vec::new();
    for turn in 0..plan.origins {
        let back = spec.horizon + turn * plan.stride;
        let rows: Vec<usize> =
            (0..series.len()).filter(|&row| series[row].len() > back + 1).collect();
        let known: Vec<Vec<f64>> =
            rows.iter().map(|&row| series[row][..series[row].len() - back].to_vec()).collect();
        let forecasts = if plan.leave_series_out {
            by_halves(&known, spec)
        } else {
            batch::forecast(&known, spec)
        };
        for ((&row, known), forecast) in rows.iter().zip(&known).zip(forecasts) {
            let origin = known.len();
            let truth = series[row][origin..origin + spec.horizon].to_vec();
            found.push(Window { series: row, origin, forecast, truth });
        }
    }
    found
}

/// Each half is forecast by models that were trained on the other.
fn by_halves(series: &[Vec<f64>], spec: &Spec) -> Vec<Forecast> {
    let half = |parity: usize| -> Vec<Vec<f64>> {
        series.iter().skip(parity).step_by(2).cloned().collect()
    };
    let (even, odd) = (half(0), half(1));
    let mut even_forecasts = batch::forecast_from(&odd, &even, spec).into_iter();
    let mut odd_forecasts = batch::forecast_from(&even, &odd, spec).into_iter();
    (0..series.len())
        .filter_map(|row| if row % 2 == 0 { even_forecasts.next() } else { odd_forecasts.next() })
        .collect()
}

/// The mean over all windows.
pub fn score(series: &[Vec<f64>], windows: &[Window], spec: &Spec) -> Score {
    let mut sum = Score { windows: windows.len(), ..Score::default() };
    for Window { series: row, origin, forecast, truth } in windows {
        let known: Vec<f64> =
            series[*row][..*origin].iter().copied().filter(|v| v.is_finite()).collect();
        let season = spec.seasons.iter().copied().filter(|&m| 2 * m <= known.len()).min();
        let unit = accuracy::naive_scale(&known, season.unwrap_or(1));
        let unit = if unit > 0.0 { unit } else { 1.0 };
        // What was never known cannot be missed.
        let seen: Vec<usize> = (0..truth.len()).filter(|&step| truth[step].is_finite()).collect();
        let at = |values: &[f64]| -> Vec<f64> { seen.iter().map(|&step| values[step]).collect() };
        let (truth, point) = (at(truth), at(&forecast.point));
        let (lower, upper) = (at(&forecast.lower), at(&forecast.upper));
        let mae = accuracy::mae(&truth, &point);
        sum.mae += mae;
        sum.mase += mae / unit;
        sum.smape += accuracy::smape(&truth, &point);
        let outside = (1.0 - spec.level) / 2.0;
        let losses = accuracy::pinball(&truth, &lower, outside)
            + accuracy::pinball(&truth, &point, 0.5)
            + accuracy::pinball(&truth, &upper, 1.0 - outside);
        sum.pinball += losses / 3.0 / unit;
        sum.coverage += accuracy::coverage(&truth, &lower, &upper);
        sum.interval += accuracy::interval_score(&truth, &lower, &upper, spec.level) / unit;
    }
    let n = windows.len().max(1) as f64;
    Score {
        windows: sum.windows,
        mae: sum.mae / n,
        smape: sum.smape / n,
        mase: sum.mase / n,
        pinball: sum.pinball / n,
        coverage: sum.coverage / n,
        interval: sum.interval / n,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made;
    use crate::method::Method;

    fn spec(method: Method) -> Spec {
        Spec {
            horizon: 12,
            seasons: vec![24],
            level: 0.9,
            method,
            threads: 2,
            floor: None,
            ceiling: None,
        }
    }

    fn days() -> Vec<Vec<f64>> {
        (0..8).map(|seed| made::daily(seed, 24 * 16 + seed as usize, 24)).collect()
    }

    #[test]
    fn a_model_that_knows_days_beats_one_that_does_not() {
        let series = days();
        let plan = Plan { origins: 3, stride: 24, leave_series_out: false };
        let of = |method| {
            let spec = spec(method);
            score(&series, &windows(&series, &spec, &plan), &spec)
        };
        let (last, seasonal, ridge) =
            (of(Method::Last), of(Method::SeasonalNaive), of(Method::Ridge));
        assert_eq!(last.windows, 24);
        assert!(seasonal.mae < 0.5 * last.mae, "{seasonal:?} {last:?}");
        assert!(ridge.mae < seasonal.mae, "{ridge:?} {seasonal:?}");
        assert!((0.75..=1.0).contains(&seasonal.coverage), "{seasonal:?}");
    }

    #[test]
    fn series_that_were_left_out_are_forecast_by_the_others() {
        let mut series = days();
        // Nobody else has this one's scale or shape.
        series[3].iter_mut().for_each(|value| *value *= 1_000.0);
        let plan = Plan { origins: 1, stride: 1, leave_series_out: true };
        let found = windows(&series, &spec(Method::Ridge), &plan);
        assert_eq!(found.len(), 8);
        assert!(found.iter().enumerate().all(|(row, window)| window.series == row));
        let off = accuracy::smape(&found[3].truth, &found[3].forecast.point);
        assert!(off < 10.0, "{off}");
    }

    #[test]
    fn short_series_are_left_out() {
        let series = vec![made::walk(1, 10), made::walk(2, 100)];
        let plan = Plan { origins: 2, stride: 90, leave_series_out: false };
        assert_eq!(windows(&series, &spec(Method::Last), &plan).len(), 1);
    }
}
