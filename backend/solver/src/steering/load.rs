//! What hosts are expected to use, and what that costs: power, and the risk that it is too much.

use super::outlook::Demand;
use super::{HostKind, Steering};
use crate::dice::{exp, ln};

/// What is expected of every host, and who is on it.
#[derive(Clone, Debug)]
pub(super) struct Loads<'a> {
    kinds: &'a [HostKind],
    risk: Risk,
    pub(super) demands: &'a [Demand],
    pub(super) vms: Vec<Vec<u32>>,
    expected: Vec<Demand>,
    /// In watts; hosts without VMs are off.
    pub(super) cost: Vec<f64>,
    /// Hosts that are on, in no order.
    pub(super) on: Vec<u32>,
    /// All hosts, those that do most for a watt first.
    thrifty: &'a [u32],
}

impl<'a> Loads<'a> {
    pub(super) fn new(
        kinds: &'a [HostKind],
        thrifty: &'a [u32],
        risk: Risk,
        demands: &'a [Demand],
        hosts: &[Option<u32>],
    ) -> Self {
        let mut loads = Self {
            kinds,
            risk,
            demands,
            vms: vec![Vec::new(); kinds.len()],
            expected: vec![Demand::default(); kinds.len()],
            cost: vec![0.0; kinds.len()],
            on: Vec::new(),
            thrifty,
        };
        for (vm, host) in (0..).zip(hosts) {
            if let Some(host) = *host {
                loads.vms[host as usize].push(vm);
                let expected = &mut loads.expected[host as usize];
                *expected = expected.plus(&demands[vm as usize], 1.0);
            }
        }
        loads.on = (0..kinds.len() as u32).filter(|&host| loads.is_on(host)).collect();
        loads.on.iter().for_each(|&host| {
            loads.cost[host as usize] =
                risk.cost(&kinds[host as usize], &loads.expected[host as usize]);
        });
        loads
    }

    pub(super) fn is_on(&self, host: u32) -> bool {
        !self.vms[host as usize].is_empty()
    }

    /// The thriftiest host that is off.
    pub(super) fn fresh(&self) -> Option<u32> {
        self.thrifty.iter().copied().find(|&host| !self.is_on(host))
    }

    /// What it costs that a VM comes to a host, or what it gains (below 0) that it leaves.
    #[inline]
    pub(super) fn delta(&self, vm: u32, host: u32, times: f64) -> f64 {
        let host = host as usize;
        let left = self.vms[host].len() as f64 + times;
        let changed = self.expected[host].plus(&self.demands[vm as usize], times);
        let cost = if left < 1.0 { 0.0 } else { self.risk.cost(&self.kinds[host], &changed) };
        cost - self.cost[host]
    }

    /// What it costs that a VM and a partner on another host change places.
    #[inline]
    pub(super) fn exchange_delta(&self, vm: u32, host: u32, partner: u32, other: u32) -> f64 {
        let (host, other) = (host as usize, other as usize);
        let moved = self.demands[vm as usize].plus(&self.demands[partner as usize], -1.0);
        let here = self.risk.cost(&self.kinds[host], &self.expected[host].plus(&moved, -1.0));
        let there = self.risk.cost(&self.kinds[other], &self.expected[other].plus(&moved, 1.0));
        here + there - self.cost[host] - self.cost[other]
    }

    /// The host where a VM costs least; the thriftiest one that is off is a choice, if so wished.
    pub(super) fn best(&self, vm: u32, but: Option<u32>, may_open: bool) -> Option<(f64, u32)> {
        let fresh = self.fresh().filter(|_| may_open);
        let hosts = self.on.iter().copied().filter(|&host| Some(host) != but).chain(fresh);
        let priced = hosts.map(|host| (self.delta(vm, host, 1.0), host));
        priced.min_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)))
    }

    pub(super) fn add(&mut self, vm: u32, host: u32) {
        self.cost[host as usize] += self.delta(vm, host, 1.0);
        let expected = &mut self.expected[host as usize];
        *expected = expected.plus(&self.demands[vm as usize], 1.0);
        if !self.is_on(host) {
            self.on.push(host);
        }
        self.vms[host as usize].push(vm);
    }

    pub(super) fn remove(&mut self, vm: u32, host: u32) {
        let row = host as usize;
        self.vms[row].retain(|&other| other != vm);
        if self.vms[row].is_empty() {
            (self.expected[row], self.cost[row]) = (Demand::default(), 0.0);
            self.on.retain(|&other| other != host);
        } else {
            self.expected[row] = self.expected[row].plus(&self.demands[vm as usize], -1.0);
            self.cost[row] = self.risk.cost(&self.kinds[row], &self.expected[row]);
        }
    }
}

/// What being close to capacity costs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Risk {
    /// Watts that a host costs which has too little.
    pub(super) price: f64,
    /// How much the next step counts, and the rest the ones after.
    pub(super) soon: f64,
}

/// Steps of the table by standard deviation, and how many deviations it covers on either side.
const FINENESS: f64 = 16.0;
const REACH: f64 = 8.0;
/// Makes a logistic curve as wide as the normal distribution's.
const WIDTH: f64 = 1.702;
/// A little noise is always there, as a share of capacity.
const NOISE: f64 = 0.002;
/// Watts for each unit that is expected above capacity, as a multiple of what it draws below: no
/// host is ever worth giving up.
const HOPELESS: f64 = 4.0;

impl Risk {
    pub(super) fn new(price: f64, settings: &Steering) -> Self {
        Self { price, soon: settings.soon }
    }

    #[inline]
    pub(super) fn cost(&self, kind: &HostKind, expected: &Demand) -> f64 {
        let capacity = kind.capacity as f64;
        let noise = NOISE * capacity;
        let short = |[mean, variance]: [f64; 2]| {
            let spread = (variance.max(0.0) + noise * noise).sqrt();
            too_little((capacity - mean) / spread)
        };
        let risk = self.soon * short(expected.soon) + (1.0 - self.soon) * short(expected.later);
        let above = (expected.soon[0].max(expected.later[0]) - capacity).max(0.0);
        let watts = kind.watts(expected.later[0]);
        watts + self.price * risk + HOPELESS * kind.watts(capacity) * above / capacity
    }
}

/// About the probability of being so many standard deviations above the mean, with the longer tails
/// that use has; where that is likely it goes on rising, so that worse stays worse.
#[inline]
fn too_little(deviations: f64) -> f64 {
    static TABLE: std::sync::LazyLock<Vec<f64>> = std::sync::LazyLock::new(|| {
        let at = |row: usize| ln(1.0 + exp(WIDTH * (REACH - row as f64 / FINENESS)));
        (0..=(2.0 * REACH * FINENESS) as usize + 1).map(at).collect()
    });
    if deviations >= REACH {
        return 0.0;
    }
    if deviations < -REACH {
        return -WIDTH * deviations;
    }
    let place = (deviations + REACH) * FINENESS;
    let row = place as usize;
    let (here, next) = (TABLE[row], TABLE[row + 1]);
    here + (next - here) * (place - row as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_risk_falls_with_room_and_never_stops_rising_without() {
        assert!((too_little(2.0) - 0.0327).abs() < 0.001);
        assert!(too_little(-3.0) > too_little(-2.0) + 1.0);
        assert_eq!(too_little(9.0), 0.0);
    }
}
