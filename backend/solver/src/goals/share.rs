//! Share: hosts that cost by how full they are, such as what is paid for by use.

use super::Used;
use crate::assignment::Model;
use cluster::assignment::{PARTS, Rates};

/// How full hosts are by rates.
#[derive(Clone, Debug)]
pub(crate) struct Share {
    /// By class and resource, in padded rows.
    rates: Vec<i64>,
    pub(super) class_of: Vec<u32>,
    stride: usize,
}

impl Share {
    pub(super) fn compile(model: &Model, rates: &Rates) -> Self {
        let stride = model.stride();
        let row = |row: &Vec<u64>| {
            let mut padded: Vec<i64> = row.iter().map(|&rate| rate as i64).collect();
            padded.resize(stride, 0);
            padded
        };
        Self {
            rates: rates.classes.iter().flat_map(row).collect(),
            class_of: rates.of_host.clone(),
            stride,
        }
    }

    #[inline]
    pub(super) fn host(&self, host: u32, used: &impl Used) -> i64 {
        self.of_class(self.class_of[host as usize], used)
    }

    #[inline]
    pub(super) fn of_class(&self, class: u32, used: &impl Used) -> i64 {
        let rates = &self.rates[class as usize * self.stride..][..self.stride];
        let mut most = 0i128;
        for (resource, &rate) in rates.iter().enumerate() {
            most = most.max(i128::from(rate) * i128::from(used(resource)));
        }
        (most >> PARTS) as i64
    }

    pub(super) fn weight(&self, amounts: &[i32]) -> f64 {
        let classes = self.rates.len() / self.stride;
        let fills = (0..classes as u32).map(|class| self.of_class(class, &|at: usize| amounts[at]));
        fills.max().unwrap_or(0) as f64
    }

    /// Each resource as if it were the only one: all demand at the rates of the cheapest hosts,
    /// as far as their room goes; the dearest resource counts.
    pub(super) fn bound(&self, model: &Model) -> i64 {
        let hosts = 0..model.hosts() as u32;
        let mut now = 0i128;
        for host in hosts.clone() {
            let standing = model.standing(host);
            now += i128::from(self.host(host, &|at: usize| standing[at]));
        }
        let added = (0..model.resources()).map(|resource| {
            let mut rooms: Vec<(i64, i64)> = hosts
                .clone()
                .map(|host| {
                    let class = self.class_of[host as usize] as usize;
                    let rate = self.rates[class * self.stride + resource];
                    // Another resource may be what fills the host: then more of this one is free.
                    let standing = model.standing(host);
                    let full = self.host(host, &|at: usize| standing[at]);
                    let free = i128::from(full) << PARTS;
                    let own = i128::from(rate) * i128::from(standing[resource]);
                    let paid = match rate {
                        0 => 0,
                        _ => ((free - own).max(0) / i128::from(rate)) as i64 + 1,
                    };
                    let room = i64::from(model.capacity(host)[resource]);
                    (rate, if rate == 0 { room } else { (room - paid).max(0) })
                })
                .collect();
            let paid: i64 = hosts
                .clone()
                .zip(&rooms)
                .map(|(host, (_, left))| i64::from(model.capacity(host)[resource]) - left)
                .sum();
            let vms = 0..model.vms() as u32;
            let demand: i64 = vms.map(|vm| i64::from(model.demand(vm)[resource])).sum();
            let free: i64 = rooms.iter().filter(|(rate, _)| *rate == 0).map(|(_, room)| room).sum();
            let mut needed = demand - paid - free;
            rooms.retain(|(rate, _)| *rate > 0);
            rooms.sort_unstable();
            let mut cost = 0i128;
            for (rate, room) in rooms {
                if needed <= 0 {
                    break;
                }
                cost += i128::from(rate) * i128::from(needed.min(room));
                needed -= room;
            }
            // Every host rounds down once.
            (cost >> PARTS) - model.hosts() as i128
        });
        (now + added.max().unwrap_or(0).max(0)) as i64
    }
}
