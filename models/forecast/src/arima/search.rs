//! Choosing the order: a walk from order to neighbouring order as long as the corrected
//! information criterion falls, on conditional sums of squares; then exact likelihood for the
//! order that won.

use super::css;
use super::kalman;
use super::order::{Coefficients, Order};
use super::unit_root;
use crate::optimise::{REFUSED, downhill};
use std::collections::BTreeMap;

/// Orders that are tried at most; the walk usually ends after 20 to 40.
const MOST_TRIED: usize = 94;
const MOST_LAGS: usize = 5;
const MOST_SEASONAL_LAGS: usize = 2;
/// Roots nearer to the unit circle than this promise more than the data can hold.
const NEAREST_ROOT: f64 = 1.01;

/// An order with coefficients.
#[derive(Clone, Debug)]
pub struct Estimate {
    pub order: Order,
    pub coefficients: Coefficients,
    /// The numbers without bounds behind the coefficients.
    pub at: Vec<f64>,
    pub log_likelihood: f64,
}

/// The order and coefficients for a history; `season` is 1 where there is none.
pub fn choose(history: &[f64], season: usize) -> Estimate {
    let seasonal_differences = unit_root::seasonal_differences(history, season);
    let seasonal = Order { seasonal_differences, season, ..Order::plain(0, 0, 0, false) };
    let differences =
        unit_root::differences(&seasonal.difference(history)).min(2 - seasonal_differences);
    let base = Order { differences, ..seasonal };
    let x = base.difference(history);
    let order = Walk::new(&x, base).run();
    estimate(history, order, None)
}

/// The coefficients of a given order by exact likelihood, starting from earlier ones if any.
pub fn estimate(history: &[f64], order: Order, warm: Option<&Estimate>) -> Estimate {
    let x = order.difference(history);
    let scale = deviation(&x);
    let exact = |at: &[f64]| {
        let mut c = order.bounded(at);
        c.mean *= scale;
        c
    };
    let cost = |at: &[f64]| {
        let found = kalman::likelihood(&x, &exact(at), order.season, None);
        found.map_or(REFUSED, |found| -found.best())
    };
    let starts: Vec<Vec<f64>> = match warm {
        Some(earlier) if earlier.order == order => {
            let mut at = earlier.at.clone();
            if order.mean {
                let mean = at.len() - 1;
                at[mean] = earlier.coefficients.mean / scale;
            }
            vec![css::minimise(&x, &order, &at, scale, 5).at, at]
        }
        _ => starts(&x, &order, scale)
            .iter()
            .map(|start| css::minimise(&x, &order, start, scale, 30).at)
            .collect(),
    };
    let mut best: Option<(Vec<f64>, f64)> = None;
    for start in starts {
        // Beyond 4 the slope of `tanh` is lost in rounding.
        let inside: Vec<f64> = start
            .iter()
            .enumerate()
            .map(|(axis, at)| if axis < order.lags() { at.clamp(-4.0, 4.0) } else { *at })
            .collect();
        let found = downhill(cost, &inside, 40);
        if best.as_ref().is_none_or(|best| found.1 < best.1) {
            best = Some(found);
        }
    }
    let (at, cost) = best.unwrap_or((vec![0.0; free(&order)], REFUSED));
    Estimate { order, coefficients: exact(&at), at, log_likelihood: -cost }
}

/// Where to start the search for coefficients: at nothing, and, where autoregression and moving
/// average can cancel each other, also near a walk with noise, which is another minimum.
fn starts(x: &[f64], order: &Order, scale: f64) -> Vec<Vec<f64>> {
    let mut nothing = vec![0.0; free(order)];
    if order.mean {
        let mean = nothing.len() - 1;
        nothing[mean] = x.iter().sum::<f64>() / x.len().max(1) as f64 / scale;
    }
    let mut starts = vec![nothing.clone()];
    if order.ar > 0 && order.ma > 0 {
        let mut walk = nothing;
        walk[0] = 2.5;
        walk[order.ar] = 1.5;
        starts.push(walk);
    }
    starts
}

fn free(order: &Order) -> usize {
    order.lags() + usize::from(order.mean)
}

fn deviation(x: &[f64]) -> f64 {
    let n = x.len().max(1) as f64;
    let mean = x.iter().sum::<f64>() / n;
    let variance = x.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / n;
    variance.sqrt().max(1e-12)
}

struct Walk<'a> {
    x: &'a [f64],
    base: Order,
    scale: f64,
    tried: BTreeMap<Order, (f64, Vec<f64>)>,
}

impl<'a> Walk<'a> {
    fn new(x: &'a [f64], base: Order) -> Self {
        Self { x, base, scale: deviation(x), tried: BTreeMap::new() }
    }

    fn run(mut self) -> Order {
        // Two differences leave nothing for a mean to say.
        let mean = self.base.differences + self.base.seasonal_differences < 2;
        let at = |ar, ma, seasonal_ar, seasonal_ma| Order {
            ar,
            ma,
            seasonal_ar: if self.base.season > 1 { seasonal_ar } else { 0 },
            seasonal_ma: if self.base.season > 1 { seasonal_ma } else { 0 },
            mean,
            ..self.base
        };
        let corners = [at(2, 2, 1, 1), at(0, 0, 0, 0), at(1, 0, 1, 0), at(0, 1, 0, 1)];
        let mut best = (f64::INFINITY, corners[1]);
        for order in corners {
            best = self.better(best, order).unwrap_or(best);
        }
        loop {
            let next = neighbours(best.1).into_iter().find_map(|order| self.better(best, order));
            match next {
                Some(next) if self.tried.len() < MOST_TRIED => best = next,
                Some(next) => return next.1,
                None => return best.1,
            }
        }
    }

    /// The order with its criterion, if that is lower than the best so far.
    fn better(&mut self, best: (f64, Order), order: Order) -> Option<(f64, Order)> {
        if self.tried.contains_key(&order) || self.tried.len() >= MOST_TRIED {
            return None;
        }
        let nearby = self.nearby(&order);
        let found = self.criterion(&order, nearby);
        let criterion = found.0;
        self.tried.insert(order, found);
        (criterion < best.0).then_some((criterion, order))
    }

    /// The coefficients of an order with one lag less are a good start.
    fn nearby(&self, order: &Order) -> Option<Vec<f64>> {
        let shorter = [
            (order.ar > 0).then(|| (Order { ar: order.ar - 1, ..*order }, order.ar - 1)),
            (order.ma > 0).then(|| (Order { ma: order.ma - 1, ..*order }, order.ar + order.ma - 1)),
        ];
        shorter.into_iter().flatten().find_map(|(shorter, place)| {
            let (_, at) = self.tried.get(&shorter)?;
            let mut at = at.clone();
            at.insert(place, 0.0);
            Some(at)
        })
    }

    fn criterion(&self, order: &Order, nearby: Option<Vec<f64>>) -> (f64, Vec<f64>) {
        let n = self.x.len() as f64;
        let k = free(order) as f64 + 1.0;
        if n < k + 2.0 {
            return (f64::INFINITY, vec![0.0; free(order)]);
        }
        let start = nearby.unwrap_or_else(|| starts(self.x, order, self.scale).swap_remove(0));
        let found = css::minimise(self.x, order, &start, self.scale, 12);
        let criterion = n * (found.squares / n).max(1e-300).ln()
            + 2.0 * k
            + 2.0 * k * (k + 1.0) / (n - k - 1.0);
        let sound = found.coefficients.roots_beyond(NEAREST_ROOT);
        (if sound { criterion } else { f64::INFINITY }, found.at)
    }
}

/// Orders one step away, seasonal steps first: they tend to matter more.
fn neighbours(order: Order) -> Vec<Order> {
    let up = |value: usize, most: usize| (value < most).then_some(value + 1);
    let down = |value: usize| value.checked_sub(1);
    let mut found = Vec::with_capacity(17);
    let mut push = |order: Option<Order>| found.extend(order);
    if order.season > 1 {
        let (p, q) = (order.seasonal_ar, order.seasonal_ma);
        let at = |p: Option<usize>, q: Option<usize>| {
            Some(Order { seasonal_ar: p?, seasonal_ma: q?, ..order })
        };
        let (p_up, q_up) = (up(p, MOST_SEASONAL_LAGS), up(q, MOST_SEASONAL_LAGS));
        push(at(down(p), Some(q)));
        push(at(Some(p), down(q)));
        push(at(p_up, Some(q)));
        push(at(Some(p), q_up));
        push(at(down(p), down(q)));
        push(at(down(p), q_up));
        push(at(p_up, down(q)));
        push(at(p_up, q_up));
    }
    let (p, q) = (order.ar, order.ma);
    let at = |p: Option<usize>, q: Option<usize>| Some(Order { ar: p?, ma: q?, ..order });
    let (p_up, q_up) = (up(p, MOST_LAGS), up(q, MOST_LAGS));
    push(at(down(p), Some(q)));
    push(at(Some(p), down(q)));
    push(at(p_up, Some(q)));
    push(at(Some(p), q_up));
    push(at(down(p), down(q)));
    push(at(down(p), q_up));
    push(at(p_up, down(q)));
    push(at(p_up, q_up));
    if order.differences + order.seasonal_differences < 2 {
        push(Some(Order { mean: !order.mean, ..order }));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made;

    fn made_by(ar: &[f64], ma: &[f64], len: usize) -> Vec<f64> {
        let mut x: Vec<f64> = Vec::new();
        let e: Vec<f64> = (0..len).map(|t| made::noise(11, t)).collect();
        for t in 0..len {
            let back: f64 = ar.iter().enumerate().take(t).map(|(i, c)| c * x[t - 1 - i]).sum();
            let noise: f64 = ma.iter().enumerate().take(t).map(|(i, c)| c * e[t - 1 - i]).sum();
            x.push(back + noise + e[t]);
        }
        x
    }

    #[test]
    fn the_exact_fit_is_at_least_as_likely_as_the_truth() {
        let x = made_by(&[0.6, -0.3], &[0.5], 400);
        let order = Order::plain(2, 0, 1, false);
        let found = estimate(&x, order, None);
        let truth = Coefficients { ar: vec![0.6, -0.3], ma: vec![0.5], ..Default::default() };
        let truth = kalman::likelihood(&x, &truth, 1, None).expect("stationary").best();
        assert!(found.log_likelihood >= truth, "{} < {truth}", found.log_likelihood);
        assert!((found.coefficients.ar[0] - 0.6).abs() < 0.25, "{:?}", found.coefficients);
    }

    #[test]
    fn the_better_of_two_hills_is_climbed() {
        // A slow walk under much noise: from nothing, the search ends on a lower hill.
        let mut level = 0.0;
        let x: Vec<f64> = (0..400)
            .map(|t| {
                level = 0.995 * level + 0.15 * made::noise(21, t);
                level + made::noise(22, t)
            })
            .collect();
        let found = estimate(&x, Order::plain(1, 0, 1, true), None);
        assert!(found.coefficients.ar[0] > 0.9, "{:?}", found.coefficients);
        assert!(found.coefficients.ma[0] < -0.5, "{:?}", found.coefficients);
    }

    #[test]
    fn a_simple_series_gets_a_simple_order() {
        let order = choose(&made_by(&[0.8], &[], 500), 1).order;
        assert!(order.differences == 0 && order.lags() <= 2 && order.ar >= 1, "{order}");
        let walk = choose(&made::walk(1, 300), 1).order;
        assert_eq!((walk.differences, walk.lags()), (1, 0), "{walk}");
        let days = choose(&made::daily(1, 24 * 20, 24), 24).order;
        assert_eq!((days.seasonal_differences, days.season), (1, 24), "{days}");
    }

    #[test]
    fn a_warm_start_finds_the_same_hill() {
        let x = made_by(&[0.6], &[0.3], 500);
        let cold = estimate(&x[..450], Order::plain(1, 0, 1, true), None);
        let warm = estimate(&x, cold.order, Some(&cold));
        let fresh = estimate(&x, cold.order, None);
        assert!((warm.log_likelihood - fresh.log_likelihood).abs() < 1e-3);
    }
}
