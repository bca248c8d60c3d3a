//! Energy: hosts that are on, and the work that VMs make on them.

use crate::assignment::Model;
use cluster::assignment::Power;
use rustc_hash::FxHashMap;

#[derive(Clone, Debug)]
pub(crate) struct Energy {
    idle: Vec<i64>,
    /// Of hosts that are on for VMs that are no rows; part of no other cost.
    pub(super) always: i64,
    /// Cost of each size of VM on each host, and the size of each VM. Fleets have few sizes.
    work: Vec<i64>,
    size_of: Vec<u32>,
    hosts: usize,
}

impl Energy {
    pub(super) fn compile(model: &Model, resource: usize, powers: &[Power]) -> Self {
        let mut sizes: FxHashMap<i32, u32> = FxHashMap::default();
        let mut work = Vec::new();
        let size_of =
            (0..model.vms() as u32).map(|vm| {
                let demand = model.demand(vm)[resource];
                let next = sizes.len() as u32;
                *sizes.entry(demand).or_insert_with(|| {
                    let hosts = (0..).zip(powers);
                    work.extend(hosts.map(|(host, power)| {
                        share(power.span, demand, model.whole(host)[resource])
                    }));
                    next
                })
            });
        let size_of = size_of.collect();
        let idle: Vec<i64> = powers.iter().map(|power| power.idle as i64).collect();
        let on = (0..).zip(&idle).filter(|(host, _)| model.is_on(*host));
        let always = on.map(|(_, idle)| idle).sum();
        let idle = (0..).zip(idle).map(|(host, idle)| if model.is_on(host) { 0 } else { idle });
        Self { idle: idle.collect(), always, work, size_of, hosts: powers.len() }
    }

    #[inline]
    pub(super) fn host(&self, host: u32, vms: u32) -> i64 {
        if vms > 0 { self.idle[host as usize] } else { 0 }
    }

    #[inline]
    pub(super) fn vm(&self, vm: u32, host: u32) -> i64 {
        self.work[self.size_of[vm as usize] as usize * self.hosts + host as usize]
    }

    /// Each VM where it makes least work, and for each resource the cheapest hosts, cut to size,
    /// that have enough of it; the dearest resource counts.
    pub(super) fn bound(&self, model: &Model) -> i64 {
        let everywhere = 0..self.hosts as u32;
        let least = |vm| everywhere.clone().map(|host| self.vm(vm, host)).min().unwrap_or(0);
        let mut least_of: FxHashMap<u32, i64> = FxHashMap::default();
        let vms = 0..model.vms() as u32;
        let work = vms
            .clone()
            .map(|vm| *least_of.entry(self.size_of[vm as usize]).or_insert_with(|| least(vm)));
        let work: i64 = work.sum();
        self.always + work + idle_of_all(model, &self.idle)
    }
}

/// What the cheapest hosts, cut to size, take for being on that have enough of a resource for all
/// VMs; the dearest resource counts.
pub(super) fn idle_of_all(model: &Model, idle: &[i64]) -> i64 {
    let idle = (0..model.resources()).map(|resource| {
        let vms = 0..model.vms() as u32;
        let needed = vms.map(|vm| i128::from(model.demand(vm)[resource])).sum();
        idle_for(model, idle, resource, needed)
    });
    idle.max().unwrap_or(0)
}

fn idle_for(model: &Model, idle: &[i64], resource: usize, mut needed: i128) -> i64 {
    let capacity = |host: u32| i128::from(model.capacity(host)[resource]);
    let idle_of = |host: u32| i128::from(idle[host as usize]);
    let mut hosts: Vec<u32> = (0..idle.len() as u32).filter(|&host| capacity(host) > 0).collect();
    hosts.sort_by(|&a, &b| {
        (idle_of(a) * capacity(b)).cmp(&(idle_of(b) * capacity(a))).then(a.cmp(&b))
    });
    let mut cost = 0;
    for host in hosts {
        if needed <= 0 {
            break;
        }
        cost += idle_of(host) * needed.min(capacity(host)) / capacity(host);
        needed -= capacity(host);
    }
    cost as i64
}

/// `span` x `demand` / `capacity`, rounded half up.
fn share(span: u64, demand: i32, capacity: i32) -> i64 {
    if capacity == 0 {
        return 0;
    }
    let (numerator, denominator) = (i128::from(span) * i128::from(demand), i128::from(capacity));
    ((2 * numerator + denominator) / (2 * denominator)) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_rounded_up() {
        assert_eq!(share(10, 1, 4), 3);
        assert_eq!(share(9, 1, 4), 2);
        assert_eq!(share(10, 1, 0), 0);
    }
}
