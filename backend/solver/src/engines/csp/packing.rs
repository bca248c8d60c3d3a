//! Packing by sums: whether what is left to place could fit, all VMs and hosts taken together.

use super::propagate::{Branch, DeadEnd};
use crate::assignment::NOWHERE;

impl Branch<'_> {
    /// Packing by sums: what is left to place fits into all that is free; VMs that need more than
    /// half of the largest hole get a hole each; equal VMs are no more than fit by themselves.
    pub(super) fn sums_fit(&self) -> Result<(), DeadEnd> {
        let model = self.model();
        let open: Vec<u32> = (0..model.vms() as u32).filter(|&vm| !self.is_placed(vm)).collect();
        for resource in 0..model.resources() {
            let mut holes: Vec<i32> =
                (0..model.hosts() as u32).map(|host| self.state.free(host)[resource]).collect();
            let mut needs: Vec<i32> = open.iter().map(|&vm| self.least(vm, resource)).collect();
            let sum = |amounts: &[i32]| -> i64 {
                amounts.iter().map(|&amount| i64::from(amount.max(0))).sum()
            };
            if sum(&needs) > sum(&holes) {
                return Err(DeadEnd);
            }
            holes.sort_unstable_by(|a, b| b.cmp(a));
            needs.sort_unstable_by(|a, b| b.cmp(a));
            let largest = holes.first().copied().unwrap_or(0);
            let alone = needs.iter().take_while(|&&need| need > largest - need);
            for (row, &need) in alone.enumerate() {
                if holes.get(row).is_none_or(|&hole| hole < need) {
                    return Err(DeadEnd);
                }
            }
        }
        self.spares_fit(&open)?;
        self.equals_fit(&open)
    }

    /// VMs that can only go to the hosts of a rule about spare room leave what is kept, if one of
    /// them, or one that is there, is bound by it.
    fn spares_fit(&self, open: &[u32]) -> Result<(), DeadEnd> {
        let model = self.model();
        for (row, rule) in (0..).zip(model.spares.all()) {
            let inside = |host: u32| rule.hosts.binary_search(&host).is_ok();
            let confined = open.iter().copied().filter(|&vm| self.domains.hosts(vm).all(inside));
            let confined: Vec<u32> = confined.collect();
            for (resource, usable) in rule.usable.iter().enumerate() {
                let Some(usable) = *usable else { continue };
                let asks = |vm: &&u32| model.demand(**vm)[resource] > 0;
                let bound = self.state.sums.is_bound(&model.spares, row, resource)
                    || confined.iter().filter(asks).any(|&vm| rule.binds[vm as usize]);
                let comes = confined.iter().map(|&vm| i64::from(model.demand(vm)[resource]));
                let used = self.state.sums.used(&model.spares, row, resource);
                if bound && used + comes.sum::<i64>() > usable {
                    return Err(DeadEnd);
                }
            }
        }
        Ok(())
    }

    fn equals_fit(&self, open: &[u32]) -> Result<(), DeadEnd> {
        let model = self.model();
        let mut of_shape = vec![(0u32, NOWHERE); model.shapes()];
        for &vm in open {
            let entry = &mut of_shape[model.shape_of(vm) as usize];
            *entry = (entry.0 + 1, vm);
        }
        // What a VM left behind at home makes equal shapes unequal: then there is nothing to say.
        if model.transient().iter().any(|&transient| transient != 0) {
            return Ok(());
        }
        for (count, vm) in of_shape.into_iter().filter(|(count, _)| *count > 1) {
            let fits = (0..model.hosts() as u32).map(|host| {
                let room = model.demand(vm).iter().zip(self.state.free(host));
                let times = room.filter(|(demand, _)| **demand > 0);
                times.map(|(demand, free)| (free / demand).max(0) as u64).min().unwrap_or(u64::MAX)
            });
            if fits.fold(0u64, u64::saturating_add) < u64::from(count) {
                return Err(DeadEnd);
            }
        }
        Ok(())
    }

    /// The least that a VM will take: nothing of a transient resource while it may stay at home.
    fn least(&self, vm: u32, resource: usize) -> i32 {
        let model = self.model();
        let home = model.initial(vm);
        let may_stay = home != NOWHERE && self.domains.contains(vm, home);
        if may_stay && model.transient()[resource] != 0 {
            return 0;
        }
        model.demand(vm)[resource]
    }
}
