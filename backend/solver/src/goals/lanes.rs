//! Goals as lanes: `weight x max(0, x)` for each host, where every VM adds an amount to x.

use super::{Goals, Overload, Stranded};
use crate::assignment::Model;

/// The hosts' costs of a model that has no other goals for hosts. Resources come first.
#[derive(Debug)]
pub(crate) struct Lanes<'g> {
    pub(crate) weights: Vec<i32>,
    resources: usize,
    overload: Option<&'g Overload>,
    stranded: &'g [Stranded],
}

/// Amounts of a lane stay below, so that sums and differences of two fit in 32 bits.
const MOST: i64 = 1 << 30;

impl Goals {
    /// None if a goal is of another kind, or an amount too large.
    pub(crate) fn lanes(&self, model: &Model) -> Option<Lanes<'_>> {
        let other = self.energy.len() + self.peak.len() + self.overload.len().saturating_sub(1);
        if other > 0 || self.has_more() || model.has_standing() {
            return None;
        }
        let resources = model.resources();
        let overload = self.overload.first();
        let mut weights = vec![0; resources];
        if let Some(overload) = overload {
            for (weight, &own) in weights.iter_mut().zip(&overload.weights) {
                *weight = i32::try_from(own).ok()?;
            }
        }
        for goal in &self.stranded {
            weights.push(i32::try_from(goal.weight).ok()?);
            let fits = |&(plenty, scarce): &(i32, i32)| {
                goal.target.saturating_mul(plenty.into()) < MOST && i64::from(scarce) < MOST
            };
            goal.capacity.iter().all(fits).then_some(())?;
            let fits = |vm| goal.added(model.demand(vm)).abs() < MOST;
            (0..model.vms() as u32).all(fits).then_some(())?;
        }
        let small = |host| model.capacity(host).iter().all(|&amount| i64::from(amount) < MOST);
        (0..model.hosts() as u32).all(small).then_some(())?;
        Some(Lanes { weights, resources, overload, stranded: &self.stranded })
    }
}

impl Lanes<'_> {
    /// The lanes of a host without VMs.
    pub(crate) fn empty_host(&self, host: u32) -> Vec<i32> {
        let mut lanes = match self.overload {
            Some(overload) => {
                let safe = &overload.safe[host as usize * overload.stride..][..self.resources];
                // What is safe may be far beyond what there is.
                safe.iter().map(|&safe| -safe.min(MOST as i32)).collect()
            }
            None => vec![0; self.resources],
        };
        lanes.extend(self.stranded.iter().map(|goal| {
            let (plenty, scarce) = goal.capacity[host as usize];
            (goal.target * i64::from(plenty) - i64::from(scarce)) as i32
        }));
        lanes
    }

    /// What a VM adds to each lane.
    pub(crate) fn vm(&self, demand: &[i32]) -> Vec<i32> {
        let mut lanes = demand[..self.resources].to_vec();
        lanes.extend(self.stranded.iter().map(|goal| goal.added(demand) as i32));
        lanes
    }
}
