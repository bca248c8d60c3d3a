//! Peak: the highest utilisation of any resource of any host.
//!
//! Rounding up keeps the order of utilisations, so that the highest worth of all hosts is the worth
//! of the highest utilisation, and a bound on the real number is a bound on the rounded one.

use super::Used;
use crate::assignment::Model;

#[derive(Clone, Debug)]
pub(crate) struct Peak {
    weight: i64,
    /// By host and resource, in padded rows; zero where a host has nothing of it.
    capacity: Vec<i32>,
    /// The weight over the capacity, to see quickly that a host is far from the highest.
    slope: Vec<f64>,
    stride: usize,
}

impl Peak {
    pub(super) fn compile(model: &Model, weight: u64) -> Self {
        let rows = (0..model.hosts() as u32).flat_map(|host| model.whole(host));
        let capacity: Vec<i32> = rows.copied().collect();
        let slope = |&capacity: &i32| match capacity {
            0 => 0.0,
            _ => weight as f64 / f64::from(capacity),
        };
        let slope = capacity.iter().map(slope).collect();
        Self { weight: weight as i64, capacity, slope, stride: model.stride() }
    }

    /// What the host would be worth if it were the highest.
    pub(super) fn host(&self, host: u32, used: &impl Used) -> i64 {
        let capacity = &self.capacity[host as usize * self.stride..][..self.stride];
        let worth = capacity
            .iter()
            .enumerate()
            .filter(|(_, capacity)| **capacity > 0)
            .map(|(resource, &capacity)| self.worth(used(resource), capacity));
        worth.max().unwrap_or(0)
    }

    /// The weight x a utilisation, rounded up; in half the registers where the product fits.
    #[inline]
    fn worth(&self, used: i32, capacity: i32) -> i64 {
        if self.weight <= i64::from(i32::MAX) {
            let capacity = i64::from(capacity);
            return (self.weight * i64::from(used) + capacity - 1) / capacity;
        }
        let (product, capacity) =
            (i128::from(self.weight) * i128::from(used), i128::from(capacity));
        ((product + capacity - 1) / capacity) as i64
    }

    /// The higher of `least` and what the host is worth.
    #[inline]
    pub(super) fn raise(&self, least: i64, host: u32, used: &impl Used) -> i64 {
        let slope = &self.slope[host as usize * self.stride..][..self.stride];
        let mut about = 0.0f64;
        for (resource, &slope) in slope.iter().enumerate() {
            about = about.max(slope * f64::from(used(resource)));
        }
        // Two units are far more than the error of a product of two numbers below 2^31 and 2^56;
        // relative rounding matters beyond 2^52 only, where the exact way is taken.
        if about + 2.0 < least as f64 && about < 4e15 {
            least
        } else {
            least.max(self.host(host, used))
        }
    }

    /// The fleet as one host, and each VM on the host that it fills least.
    pub(super) fn bound(&self, model: &Model) -> i64 {
        let mut worth = 0;
        for resource in 0..model.resources() {
            let of = |row: &[i32]| i128::from(row[resource]);
            let rows: i128 = (0..model.vms() as u32).map(|vm| of(model.demand(vm))).sum();
            let others = (0..model.hosts() as u32).map(|host| of(model.standing(host)));
            let demand = rows + others.sum::<i128>();
            let hosts = (0..model.hosts() as u32).map(|host| of(model.whole(host)));
            let (capacity, largest) = hosts.fold((0, 0), |(sum, most), c| (sum + c, c.max(most)));
            let tallest = (0..model.vms() as u32).map(|vm| of(model.demand(vm))).max().unwrap_or(0);
            for (amount, room) in [(demand, capacity), (tallest, largest)] {
                if room > 0 {
                    worth = worth.max((i128::from(self.weight) * amount + room - 1) / room);
                }
            }
        }
        i64::try_from(worth).unwrap_or(i64::MAX)
    }
}

/// What each host is worth, and the three highest: enough to leave out any two.
#[derive(Clone, Debug)]
pub(crate) struct Peaks {
    hosts: Vec<i64>,
    top: [(i64, u32); 3],
}

const NONE: (i64, u32) = (0, u32::MAX);

impl Peaks {
    pub(super) fn none(hosts: usize) -> Self {
        Self { hosts: vec![0; hosts], top: [NONE; 3] }
    }

    pub(super) fn highest(&self) -> i64 {
        self.top[0].0
    }

    #[inline]
    pub(super) fn highest_without(&self, one: u32, other: u32) -> i64 {
        let found = self.top.iter().find(|(_, host)| *host != one && *host != other);
        found.map_or(0, |(worth, _)| *worth)
    }

    pub(super) fn set(&mut self, host: u32, worth: i64) {
        let before = std::mem::replace(&mut self.hosts[host as usize], worth);
        let was_on_top = self.top.iter().any(|(_, top)| *top == host);
        if was_on_top && worth < before {
            self.top = [NONE; 3];
            for (host, &worth) in (0..).zip(&self.hosts) {
                insert(&mut self.top, worth, host);
            }
        } else if was_on_top {
            for entry in self.top.iter_mut().filter(|(_, top)| *top == host) {
                entry.0 = worth;
            }
            self.top.sort_unstable_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
        } else {
            insert(&mut self.top, worth, host);
        }
    }
}

#[inline]
fn insert(top: &mut [(i64, u32); 3], worth: i64, host: u32) {
    if worth <= top[2].0 {
        return;
    }
    top[2] = (worth, host);
    if top[2].0 > top[1].0 {
        top.swap(1, 2);
    }
    if top[1].0 > top[0].0 {
        top.swap(0, 1);
    }
}
