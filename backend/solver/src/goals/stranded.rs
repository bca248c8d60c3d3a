//! Stranded capacity: free amounts of one resource that lack the other one that goes with it.

use super::Used;
use crate::assignment::Model;

#[derive(Clone, Debug)]
pub(crate) struct Stranded {
    plenty: usize,
    scarce: usize,
    pub(super) target: i64,
    pub(super) weight: i64,
    /// Capacity of both, by host.
    pub(super) capacity: Vec<(i32, i32)>,
}

impl Stranded {
    pub(super) fn compile(
        model: &Model,
        plenty: usize,
        scarce: usize,
        target: u64,
        weight: u64,
    ) -> Self {
        let hosts = (0..model.hosts() as u32).map(|host| model.whole(host));
        let capacity = hosts.map(|capacity| (capacity[plenty], capacity[scarce])).collect();
        Self { plenty, scarce, target: target as i64, weight: weight as i64, capacity }
    }

    #[inline]
    pub(super) fn host(&self, host: u32, used: &impl Used) -> i64 {
        let (plenty, scarce) = self.capacity[host as usize];
        let plenty = i64::from(plenty) - i64::from(used(self.plenty));
        let scarce = i64::from(scarce) - i64::from(used(self.scarce));
        self.weight * (self.target * plenty - scarce).max(0)
    }

    /// What a VM adds to what is stranded on its host, were it not for the limit at zero.
    pub(super) fn added(&self, demand: &[i32]) -> i64 {
        let plenty = self.target.saturating_mul(demand[self.plenty].into());
        i64::from(demand[self.scarce]).saturating_sub(plenty)
    }

    pub(super) fn weight(&self, amounts: &[i32]) -> f64 {
        let plenty = self.target as f64 * f64::from(amounts[self.plenty]);
        self.weight as f64 * (plenty - f64::from(amounts[self.scarce])).abs()
    }

    /// As if one host had everything that is free.
    pub(super) fn bound(&self, model: &Model) -> i64 {
        let mut sum = (0, 0);
        for &(plenty, scarce) in &self.capacity {
            sum = (sum.0 + i64::from(plenty), sum.1 + i64::from(scarce));
        }
        let standing = (0..model.hosts() as u32).map(|host| model.standing(host));
        let demands = (0..model.vms() as u32).map(|vm| model.demand(vm));
        for demand in standing.chain(demands) {
            sum.0 -= i64::from(demand[self.plenty]);
            sum.1 -= i64::from(demand[self.scarce]);
        }
        self.weight * (self.target * sum.0 - sum.1).max(0)
    }
}
