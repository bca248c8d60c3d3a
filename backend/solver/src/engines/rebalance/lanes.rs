//! The ground of fleets whose hosts cost by what is in use, resource by resource.
//!
//! Load above what is safe and stranded capacity are both `weight x max(0, something that each VM
//! adds to)`: a *lane*. With the moves' costs that is all there is, so that a host is two short
//! rows, a VM is one, each in the cache line of what is asked with it, and a proposal is judged in
//! a few instructions on whole registers. Cheap tests that fail often come first: room, the hosts'
//! costs, what the move itself costs, maxima over the fleet, rules.

use super::ground::{Ground, Patience};
use crate::assignment::{Change, Counts, Model};
use crate::goals::Highest;

/// Up to `L` lanes; resources have the first ones.
#[derive(Clone, Debug)]
pub(super) struct Lanes<'m, const L: usize> {
    model: &'m Model,
    vms: Vec<VmRow<L>>,
    hosts: Vec<HostRow<L>>,
    weights: [i32; L],
    /// All ones in lanes of transient resources.
    transient: [i32; L],
    /// All ones in lanes that have a capacity.
    limited: [i32; L],
    counts: Counts,
    highest: Highest,
    /// Whether some VMs may not go everywhere.
    lists: bool,
    objective: i64,
}

#[derive(Clone, Copy, Debug)]
#[repr(C, align(16))]
struct VmRow<const L: usize> {
    /// What it adds to each lane of its host.
    adds: [i32; L],
    host: u32,
    home: u32,
    /// What it costs where it is.
    cost: i64,
    left_behind: f32,
}

#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct HostRow<const L: usize> {
    /// Room that is left; what moved VMs go on taking is taken off.
    free: [i32; L],
    /// What is above zero costs.
    above: [i32; L],
    cost: i64,
}

/// Lanes without a capacity have this much room.
const UNLIMITED: i32 = i32::MAX / 2;

impl<'m, const L: usize> Lanes<'m, L> {
    /// None if something that counts is not a lane, or does not fit in 32 bits.
    pub(super) fn new(model: &'m Model, hosts: &[u32], left_behind: &[f64]) -> Option<Self> {
        let lanes = model.goals.lanes(model).filter(|lanes| lanes.weights.len() <= L)?;
        let mut made = Self {
            model,
            vms: Vec::with_capacity(model.vms()),
            hosts: Vec::with_capacity(model.hosts()),
            weights: row(&lanes.weights),
            transient: row(&model.transient()[..model.resources()]),
            limited: row(&vec![-1; model.resources()]),
            counts: Counts::none(&model.tallies),
            highest: Highest::none(model),
            lists: (0..model.vms() as u32).any(|vm| model.limited_to(vm).is_some()),
            objective: 0,
        };
        for host in 0..model.hosts() as u32 {
            let mut free = [UNLIMITED; L];
            let capacity = &model.capacity(host)[..model.resources()];
            free[..capacity.len()].copy_from_slice(capacity);
            let above = row(&lanes.empty_host(host));
            made.hosts.push(HostRow { free, above, cost: 0 });
        }
        for (vm, (&host, &left_behind)) in (0..).zip(hosts.iter().zip(left_behind)) {
            let adds = row(&lanes.vm(model.demand(vm)));
            let (home, cost) = (model.initial(vm), model.goals.vm(vm, host));
            let left_behind = left_behind as f32;
            let vm_row = VmRow { adds, host, home, cost, left_behind };
            made.vms.push(vm_row);
            made.comes(&vm_row, host);
            // Taken at home whether it is there or has left it behind.
            if let Some(at_home) = made.hosts.get_mut(home as usize) {
                for (free, (adds, transient)) in
                    at_home.free.iter_mut().zip(adds.iter().zip(&made.transient))
                {
                    *free -= adds & transient;
                }
            }
            made.counts.arrive(&model.tallies, vm, host);
            let change = Change { vm, from: crate::assignment::NOWHERE, to: host };
            made.highest.moved(&model.goals, change, &[]);
            made.objective += cost;
        }
        (0..made.hosts.len() as u32).for_each(|host| made.price(host));
        made.objective += made.highest.worth(&model.goals);
        Some(made)
    }

    /// What a host with these amounts costs.
    #[inline]
    fn cost(&self, above: &[i32; L]) -> i64 {
        let mut cost = 0i64;
        for (&above, &weight) in above.iter().zip(&self.weights) {
            // Cannot overflow: `Problem::check` limits what all hosts together may cost.
            let lane = i64::from(above.max(0)).wrapping_mul(i64::from(weight));
            cost = cost.wrapping_add(lane);
        }
        cost
    }

    fn price(&mut self, host: u32) {
        let cost = self.cost(&self.hosts[host as usize].above);
        let before = std::mem::replace(&mut self.hosts[host as usize].cost, cost);
        self.objective += cost - before;
    }

    /// All ones in the lanes in which the VM takes room at that host only while it is there.
    #[inline]
    fn taken(&self, vm: &VmRow<L>, host: u32) -> [i32; L] {
        let at_home = -i32::from(vm.home == host);
        std::array::from_fn(|lane| self.limited[lane] & !(self.transient[lane] & at_home))
    }

    #[inline]
    fn fits(&self, vm: &VmRow<L>, host: u32) -> bool {
        let (taken, free) = (self.taken(vm, host), &self.hosts[host as usize].free);
        let mut lacks = 0i32;
        for ((adds, taken), free) in vm.adds.iter().zip(&taken).zip(free) {
            lacks |= i32::from(adds & taken > *free);
        }
        lacks == 0
    }

    /// Whether a VM has room where another one leaves.
    #[inline]
    fn fits_instead(&self, vm: &VmRow<L>, other: &VmRow<L>) -> bool {
        let host = other.host;
        let (comes, goes) = (self.taken(vm, host), self.taken(other, host));
        let free = &self.hosts[host as usize].free;
        let mut lacks = 0i32;
        let comes = vm.adds.iter().zip(&comes).map(|(adds, comes)| adds & comes);
        let goes = other.adds.iter().zip(&goes).map(|(adds, goes)| adds & goes);
        for ((comes, goes), free) in comes.zip(goes).zip(free) {
            lacks |= i32::from(comes > free.wrapping_add(goes));
        }
        lacks == 0
    }

    #[inline]
    fn comes(&mut self, vm: &VmRow<L>, host: u32) {
        let taken = self.taken(vm, host);
        let row = &mut self.hosts[host as usize];
        for (lane, (&adds, &taken)) in vm.adds.iter().zip(&taken).enumerate() {
            row.free[lane] -= adds & taken;
            row.above[lane] += adds;
        }
    }

    #[inline]
    fn goes(&mut self, vm: &VmRow<L>) {
        let taken = self.taken(vm, vm.host);
        let row = &mut self.hosts[vm.host as usize];
        for (lane, (&adds, &taken)) in vm.adds.iter().zip(&taken).enumerate() {
            row.free[lane] += adds & taken;
            row.above[lane] -= adds;
        }
    }

    /// Changes the VM's place in everything but the hosts' costs and the maxima's worth.
    fn put(&mut self, change: Change, cost: i64) {
        let vm = self.vms[change.vm as usize];
        self.goes(&vm);
        self.comes(&vm, change.to);
        self.objective += cost - vm.cost;
        let row = &mut self.vms[change.vm as usize];
        (row.host, row.cost) = (change.to, cost);
        self.counts.leave(&self.model.tallies, change.vm, change.from);
        self.counts.arrive(&self.model.tallies, change.vm, change.to);
        self.highest.moved(&self.model.goals, change, &[]);
    }

    /// How the maxima over the fleet change; none of them looks at what hosts use, or at who is where.
    #[inline]
    fn highest_delta(&self, changes: &[Change]) -> i64 {
        let (from, to) = (changes[0].from, changes[0].to);
        self.highest.delta(&self.model.goals, changes, (from, 0, |_| 0), (to, 0, |_| 0), &[])
    }

    fn allows(&self, vm: u32, host: u32) -> bool {
        !self.lists || self.model.allows(vm, host)
    }
}

/// What is added for leaving home, or given back for coming.
#[inline]
fn leaving<const L: usize>(vm: &VmRow<L>, to: u32, leaving: f64) -> f64 {
    let leaves = i32::from(vm.host == vm.home) - i32::from(to == vm.home);
    f64::from(leaves) * leaving * f64::from(vm.left_behind)
}

/// A row with zeros at its end.
fn row<const L: usize>(amounts: &[i32]) -> [i32; L] {
    std::array::from_fn(|lane| amounts.get(lane).copied().unwrap_or(0))
}

impl<'m, const L: usize> Ground<'m> for Lanes<'m, L> {
    fn model(&self) -> &'m Model {
        self.model
    }

    fn objective(&self) -> i64 {
        self.objective
    }

    #[inline]
    fn host_of(&self, vm: u32) -> u32 {
        self.vms[vm as usize].host
    }

    #[inline]
    fn shift(&mut self, vm: u32, to: u32, patience: Patience) -> bool {
        let row = &self.vms[vm as usize];
        let from = row.host;
        if from == to || !self.fits(row, to) {
            return false;
        }
        let (here, there) = (&self.hosts[from as usize], &self.hosts[to as usize]);
        let less = std::array::from_fn(|lane| here.above[lane].wrapping_sub(row.adds[lane]));
        let more = std::array::from_fn(|lane| there.above[lane].wrapping_add(row.adds[lane]));
        let (left, taken) = (self.cost(&less), self.cost(&more));
        let hosts = left + taken - here.cost - there.cost;
        let before = row.cost;
        let most = patience.most - leaving(row, to, patience.leaving);
        // Where it comes, a VM costs nothing at best.
        if (hosts - before) as f64 > most {
            return false;
        }
        let cost = self.model.goals.vm(vm, to);
        if (hosts - before + cost) as f64 > most {
            return false;
        }
        let change = Change { vm, from, to };
        let highest = self.highest_delta(&[change]);
        if (hosts - before + cost + highest) as f64 > most
            || !self.allows(vm, to)
            || !self.counts.hold_after(&self.model.tallies, &[change])
        {
            return false;
        }
        self.put(change, cost);
        (self.hosts[from as usize].cost, self.hosts[to as usize].cost) = (left, taken);
        self.objective += hosts + highest;
        true
    }

    #[inline]
    fn swap(&mut self, vm: u32, other: u32, patience: Patience) -> bool {
        let (one, two) = (&self.vms[vm as usize], &self.vms[other as usize]);
        let (here, there) = (one.host, two.host);
        if here == there || !self.fits_instead(one, two) || !self.fits_instead(two, one) {
            return false;
        }
        let (host_here, host_there) = (&self.hosts[here as usize], &self.hosts[there as usize]);
        let moved: [i32; L] =
            std::array::from_fn(|lane| one.adds[lane].wrapping_sub(two.adds[lane]));
        let less = std::array::from_fn(|lane| host_here.above[lane].wrapping_sub(moved[lane]));
        let more = std::array::from_fn(|lane| host_there.above[lane].wrapping_add(moved[lane]));
        let (left, taken) = (self.cost(&less), self.cost(&more));
        let hosts = left + taken - host_here.cost - host_there.cost;
        let before = one.cost + two.cost;
        let most = patience.most
            - leaving(one, there, patience.leaving)
            - leaving(two, here, patience.leaving);
        if (hosts - before) as f64 > most {
            return false;
        }
        let goals = &self.model.goals;
        let costs = (goals.vm(vm, there), goals.vm(other, here));
        if (hosts - before + costs.0 + costs.1) as f64 > most {
            return false;
        }
        let changes =
            [Change { vm, from: here, to: there }, Change { vm: other, from: there, to: here }];
        let highest = self.highest_delta(&changes);
        if (hosts - before + costs.0 + costs.1 + highest) as f64 > most
            || !self.allows(vm, there)
            || !self.allows(other, here)
            || !self.counts.hold_after(&self.model.tallies, &changes)
        {
            return false;
        }
        self.put(changes[0], costs.0);
        self.put(changes[1], costs.1);
        (self.hosts[here as usize].cost, self.hosts[there as usize].cost) = (left, taken);
        self.objective += hosts + highest;
        true
    }
}
