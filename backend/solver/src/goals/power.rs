//! Power: what hosts draw by curves of how much they have in use, and spares that are kept on.

use super::{After, Used};
use crate::assignment::Model;
use cluster::assignment::{Curves, Problem};
use rustc_hash::FxHashMap;

/// The curve of each host, and the resource that it goes by.
#[derive(Clone, Debug)]
pub(crate) struct Power {
    resource: usize,
    curve_of: Vec<u32>,
    curves: Vec<Vec<i64>>,
    /// All that each host has of the resource.
    whole: Vec<i64>,
    /// Hosts that have VMs which are no rows.
    on: Vec<bool>,
}

impl Power {
    pub(super) fn compile(problem: &Problem, resource: usize, curves: &Curves) -> Self {
        let hosts = 0..problem.hosts.len();
        Self {
            resource,
            curve_of: curves.of_host.clone(),
            curves: curves
                .points
                .iter()
                .map(|points| points.iter().map(|&point| point as i64).collect())
                .collect(),
            whole: hosts.clone().map(|host| problem.whole(host, resource) as i64).collect(),
            on: hosts.map(|host| problem.is_on(host)).collect(),
        }
    }

    #[inline]
    pub(super) fn host(&self, host: u32, vms: u32, used: &impl Used) -> i64 {
        if vms == 0 && !self.on[host as usize] {
            return 0;
        }
        self.at(host, used(self.resource).into())
    }

    pub(super) fn after(&self, after: &After<'_>) -> i64 {
        self.host(after.host, after.vms, &after.used)
    }

    /// What a host that is on draws.
    #[inline]
    fn at(&self, host: u32, used: i64) -> i64 {
        let points = &self.curves[self.curve_of[host as usize] as usize];
        let (whole, steps) = (self.whole[host as usize], points.len() as i64 - 1);
        if whole == 0 {
            return points[0];
        }
        let place = used.clamp(0, whole) * steps;
        let step = (place / whole).min(steps - 1);
        let (low, high) = (points[step as usize], points[step as usize + 1]);
        let rest = place - step * whole;
        // Both factors below 2^31, as a rule; the product of others needs more room.
        if high - low <= i64::from(i32::MAX) && rest <= i64::from(i32::MAX) {
            return low + ((high - low) * rest + whole - 1) / whole;
        }
        let product = i128::from(high - low) * i128::from(rest) + i128::from(whole) - 1;
        low + (product / i128::from(whole)) as i64
    }

    /// What a host takes for having any VM at all, unless it has some anyway.
    pub(super) fn idle(&self, host: u32) -> i64 {
        if self.on[host as usize] { 0 } else { self.first(host) }
    }

    pub(super) fn first(&self, host: u32) -> i64 {
        self.curves[self.curve_of[host as usize] as usize][0]
    }

    /// The most that an amount can add to any host, about.
    pub(super) fn weight(&self, amounts: &[i32]) -> f64 {
        let steepest = self.curves.iter().zip(0..).map(|(points, curve)| {
            let steps = points.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0);
            let hosts = self.curve_of.iter().zip(&self.whole).filter(|(of, _)| **of == curve);
            let least = hosts.map(|(_, &whole)| whole).filter(|&whole| whole > 0).min();
            least.map_or(0.0, |whole| steps as f64 * (points.len() - 1) as f64 / whole as f64)
        });
        steepest.fold(0.0, f64::max) * f64::from(amounts[self.resource])
    }

    /// What hosts draw now, the least that the demand adds to any of them, and the cheapest hosts
    /// that have to be switched on for it.
    pub(super) fn bound(&self, model: &Model) -> i64 {
        let hosts = 0..self.curve_of.len() as u32;
        let standing = |host: u32| i64::from(model.standing(host)[self.resource]);
        // A curve is rounded up, which may be the last unit of what it adds.
        let now = hosts.clone().filter(|&host| self.on[host as usize]);
        let now: i64 = now.map(|host| self.at(host, standing(host)) - 1).sum();
        let mut flattest: FxHashMap<(u32, i64, i64), f64> = FxHashMap::default();
        let mut least = f64::INFINITY;
        for host in hosts.clone() {
            let (curve, whole) = (self.curve_of[host as usize], self.whole[host as usize]);
            let from = standing(host);
            let slope = *flattest
                .entry((curve, whole, from))
                .or_insert_with(|| flattest_from(&self.curves[curve as usize], from, whole));
            least = least.min(slope);
        }
        let demand: f64 =
            (0..model.vms() as u32).map(|vm| f64::from(model.demand(vm)[self.resource])).sum();
        // Doubles err by far less than a millionth of the product.
        let work = if least.is_finite() { (least * demand * 0.999_999).floor() as i64 } else { 0 };
        let idle: Vec<i64> = hosts.map(|host| self.idle(host)).collect();
        now + work + super::energy::idle_of_all(model, &idle)
    }
}

/// The least slope of a curve between a use and any larger one.
fn flattest_from(points: &[i64], from: i64, whole: i64) -> f64 {
    if from >= whole {
        return f64::INFINITY;
    }
    let steps = points.len() as i64 - 1;
    let exact = |used: f64| {
        let place = used * steps as f64 / whole as f64;
        let step = (place as usize).min(points.len() - 2);
        points[step] as f64 + (points[step + 1] - points[step]) as f64 * (place - step as f64)
    };
    let start = exact(from as f64);
    let ends = (1..=steps).map(|step| step as f64 * whole as f64 / steps as f64);
    let slopes =
        ends.filter(|&end| end > from as f64).map(|end| (exact(end) - start) / (end - from as f64));
    slopes.fold(f64::INFINITY, f64::min).max(0.0)
}

/// So many of the hosts without VMs are kept on, the cheapest.
#[derive(Clone, Debug)]
pub(crate) struct Spares {
    keep: u32,
    /// What hosts of each price draw, cheapest first.
    prices: Vec<i64>,
    /// The price of each host by row; beyond the last for those that have VMs anyway.
    price_of: Vec<u32>,
}

/// Which hosts are empty, and how many of each price.
#[derive(Clone, Debug)]
pub(crate) struct Empty {
    is_empty: Vec<bool>,
    of_price: Vec<u32>,
    worth: i64,
}

impl Spares {
    pub(super) fn compile(power: &Power, keep: u32) -> Self {
        let hosts = 0..power.curve_of.len() as u32;
        let mut prices: Vec<i64> = hosts.clone().map(|host| power.first(host)).collect();
        prices.sort_unstable();
        prices.dedup();
        let price_of = hosts.map(|host| match power.on[host as usize] {
            true => prices.len() as u32,
            false => prices.partition_point(|&price| price < power.first(host)) as u32,
        });
        Self { keep, price_of: price_of.collect(), prices }
    }

    fn worth(&self, of_price: impl Fn(usize) -> u32) -> i64 {
        let (mut left, mut worth) = (self.keep, 0);
        for (row, &price) in self.prices.iter().enumerate() {
            let kept = left.min(of_price(row));
            worth += i64::from(kept) * price;
            left -= kept;
            if left == 0 {
                break;
            }
        }
        worth
    }

    /// The cheapest spares, if every VM takes one of the hosts that are empty now.
    pub(super) fn bound(&self, model: &Model) -> i64 {
        let none = Empty::none(self);
        let empty = none.of_price.iter().sum::<u32>();
        let keep = self.keep.min(empty.saturating_sub(model.vms() as u32));
        Self { keep, ..self.clone() }.worth(|row| none.of_price[row])
    }
}

impl Empty {
    pub(super) fn none(goal: &Spares) -> Self {
        let mut of_price = vec![0; goal.prices.len()];
        let may_be = |&price: &u32| (price as usize) < goal.prices.len();
        let is_empty: Vec<bool> = goal.price_of.iter().map(may_be).collect();
        goal.price_of.iter().filter(|price| may_be(price)).for_each(|&price| {
            of_price[price as usize] += 1;
        });
        let worth = goal.worth(|row| of_price[row]);
        Self { is_empty, of_price, worth }
    }

    pub(super) fn worth(&self) -> i64 {
        self.worth
    }

    pub(super) fn set(&mut self, goal: &Spares, host: u32, vms: u32) {
        let price = goal.price_of[host as usize] as usize;
        let empty = vms == 0;
        if price >= goal.prices.len() || self.is_empty[host as usize] == empty {
            return;
        }
        self.is_empty[host as usize] = empty;
        match empty {
            true => self.of_price[price] += 1,
            false => self.of_price[price] -= 1,
        }
        self.worth = goal.worth(|row| self.of_price[row]);
    }

    pub(super) fn delta(&self, goal: &Spares, after: &[After<'_>]) -> i64 {
        let step = |after: &After<'_>| {
            let price = goal.price_of[after.host as usize];
            let then = i32::from(after.vms == 0);
            (price, then - i32::from(self.is_empty[after.host as usize]))
        };
        let known = |price: &(u32, i32)| (price.0 as usize) < goal.prices.len() && price.1 != 0;
        let mut steps = [(u32::MAX, 0); 2];
        for (slot, after) in steps.iter_mut().zip(after) {
            *slot = Some(step(after)).filter(known).unwrap_or((u32::MAX, 0));
        }
        if steps.iter().all(|(_, step)| *step == 0) {
            return 0;
        }
        let count = |row: usize| {
            let own = steps.iter().filter(|(price, _)| *price as usize == row);
            let change: i32 = own.map(|(_, step)| *step).sum();
            self.of_price[row].wrapping_add_signed(change)
        };
        goal.worth(count) - self.worth
    }
}
