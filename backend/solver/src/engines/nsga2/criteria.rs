//! The three values of a placement's front: what hosts and VMs cost, how unevenly hosts that are on
//! are filled, and how many VMs leave where they are.
//!
//! Cost is the sum of the problem's goals but for peak utilisation, which the second value stands
//! in for, and moves, which the third one counts. Each value has a natural worst case, so that
//! weights are comparable and hypervolumes are shares of the box that the worst cases span.

use crate::assignment::Model;
use cluster::assignment::{Goal, Problem, ProblemError};

/// Utilisation is kept in so many parts, in integers, so that sums over hosts never drift.
pub(super) const FULL: f64 = (1 << 20) as f64;

/// What a front is searched on.
#[derive(Clone, Debug)]
pub struct Criteria {
    pub(super) model: Model,
    /// One over the capacity, in parts of `FULL`, by padded row; 0 where a host has nothing.
    inverse: Vec<f64>,
    /// No placement has a value above these.
    pub worst: [f64; 3],
}

impl Criteria {
    pub fn of(problem: &Problem) -> Result<Self, ProblemError> {
        let mut costs = problem.clone();
        costs.goals.retain(|goal| !matches!(goal, Goal::Peak { .. } | Goal::Moves { .. }));
        let model = Model::compile(&costs)?;
        let rows = (0..model.hosts() as u32).flat_map(|host| model.capacity(host));
        let inverse = rows.map(|&capacity| match capacity {
            0 => 0.0,
            _ => FULL / f64::from(capacity),
        });
        let inverse = inverse.collect();
        // Values between 0 and 1 deviate by one half at most.
        let worst = [dearest(&model), 0.5, model.vms().max(1) as f64];
        Ok(Self { model, inverse, worst })
    }

    /// The highest utilisation of a host with this use, by rows and of what they may have: others
    /// stay where they are.
    #[inline]
    pub(super) fn fill(&self, host: u32, used: impl Fn(usize) -> i32) -> i64 {
        let stride = self.model.stride();
        let inverse = &self.inverse[host as usize * stride..][..stride];
        let standing = self.model.standing(host);
        let mut fill = 0.0f64;
        for (resource, (&inverse, &standing)) in inverse.iter().zip(standing).enumerate() {
            fill = fill.max(f64::from(used(resource).wrapping_sub(standing)) * inverse);
        }
        fill as i64
    }

    /// Values as shares of the worst ones.
    pub fn shares(&self, values: [f64; 3]) -> [f64; 3] {
        std::array::from_fn(|at| values[at] / self.worst[at])
    }
}

/// Every host full, and every VM where it costs most.
fn dearest(model: &Model) -> f64 {
    let hosts = 0..model.hosts() as u32;
    let host = |host: u32| {
        let full = model.whole(host);
        let (empty, full) =
            (model.goals.host(host, 0, |_| 0), model.goals.host(host, 1, |at| full[at]));
        empty.max(full) as f64
    };
    let vm = |vm: u32| hosts.clone().map(|host| model.goals.vm(vm, host)).max().unwrap_or(0) as f64;
    let sum = hosts.clone().map(host).sum::<f64>() + (0..model.vms() as u32).map(vm).sum::<f64>();
    sum.max(1.0)
}
