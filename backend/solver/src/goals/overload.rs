//! Overload: what is in use above the amount that a host bears well.

use super::Used;
use crate::assignment::Model;

#[derive(Clone, Debug)]
pub(crate) struct Overload {
    /// By host and resource, in padded rows.
    pub(super) safe: Vec<i32>,
    pub(super) weights: Vec<i64>,
    pub(super) stride: usize,
}

impl Overload {
    pub(super) fn compile(model: &Model, weights: &[u64], safe: &[Vec<u64>]) -> Self {
        let stride = model.stride();
        let row = |row: &Vec<u64>| {
            let mut padded: Vec<i32> = row.iter().map(|&amount| amount as i32).collect();
            padded.resize(stride, 0);
            padded
        };
        let weights = weights.iter().map(|&weight| weight as i64).collect();
        Self { safe: safe.iter().flat_map(row).collect(), weights, stride }
    }

    #[inline]
    pub(super) fn host(&self, host: u32, used: &impl Used) -> i64 {
        let safe = &self.safe[host as usize * self.stride..][..self.stride];
        let mut cost = 0i64;
        for (resource, (&safe, &weight)) in safe.iter().zip(&self.weights).enumerate() {
            // Cannot overflow: `Problem::check` limits what all hosts together may cost.
            let above = used(resource).wrapping_sub(safe).max(0);
            cost = cost.wrapping_add(weight.wrapping_mul(i64::from(above)));
        }
        cost
    }

    pub(super) fn weight(&self, amounts: &[i32]) -> f64 {
        let each = self.weights.iter().zip(amounts);
        each.map(|(&weight, &amount)| weight as f64 * f64::from(amount)).sum()
    }

    /// As if one host had everything: for each resource, demand above the sum of what is safe.
    pub(super) fn bound(&self, model: &Model) -> i64 {
        let above = |resource: usize| {
            let vms = 0..model.vms() as u32;
            let rows: i64 = vms.map(|vm| i64::from(model.demand(vm)[resource])).sum();
            let hosts = 0..model.hosts() as u32;
            let others: i64 = hosts.map(|host| i64::from(model.standing(host)[resource])).sum();
            let demand = rows + others;
            let safe = self.safe.iter().skip(resource).step_by(self.stride);
            (demand - safe.map(|&safe| i64::from(safe)).sum::<i64>()).max(0)
        };
        self.weights.iter().enumerate().map(|(resource, weight)| weight * above(resource)).sum()
    }
}
