//! An assignment that can be changed step by step, and priced before it is.
//!
//! Asking is cheap and in stages, from the test that fails most often to the dearest: `fits` looks
//! at resources, `shift_delta` at goals, `rules_allow` at groups. Nothing is checked on a change
//! itself: a state may break rules while an engine builds it, and `is_feasible` tells.

use super::clashes::Crowds;
use super::counts::Counts;
use super::flows::Flows;
use super::model::{Model, NOWHERE};
use super::spares::Sums;
use crate::goals::{After, Highest};

/// One VM goes from a host to another; either may be `NOWHERE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    pub vm: u32,
    pub from: u32,
    pub to: u32,
}

#[derive(Debug)]
pub struct State<'m> {
    model: &'m Model,
    host_of: Vec<u32>,
    /// VMs on each host, in no order, and where in that list each VM is.
    on_host: Vec<Vec<u32>>,
    place_in_list: Vec<u32>,
    placed: usize,
    /// In use on each host, by padded row, also by VMs that are no rows.
    used: Vec<i32>,
    /// Capacity less what is in use and what moved VMs go on taking; below zero if over capacity.
    free: Vec<i32>,
    counts: Counts,
    pub(crate) sums: Sums,
    pub(crate) flows: Flows,
    pub(crate) crowds: Crowds,
    host_cost: Vec<i64>,
    pub(super) highest: Highest,
    /// Worth of all goals but the parts in `highest`.
    sum: i64,
}

impl Clone for State<'_> {
    fn clone(&self) -> Self {
        Self {
            model: self.model,
            host_of: self.host_of.clone(),
            on_host: self.on_host.clone(),
            place_in_list: self.place_in_list.clone(),
            placed: self.placed,
            used: self.used.clone(),
            free: self.free.clone(),
            counts: self.counts.clone(),
            sums: self.sums.clone(),
            flows: self.flows.clone(),
            crowds: self.crowds.clone(),
            host_cost: self.host_cost.clone(),
            highest: self.highest.clone(),
            sum: self.sum,
        }
    }

    /// Into tables that are there already: populations copy states by the thousand.
    fn clone_from(&mut self, other: &Self) {
        self.model = other.model;
        self.host_of.clone_from(&other.host_of);
        self.on_host.clone_from(&other.on_host);
        self.place_in_list.clone_from(&other.place_in_list);
        self.placed = other.placed;
        self.used.clone_from(&other.used);
        self.free.clone_from(&other.free);
        self.counts.copy(&other.counts);
        self.sums.clone_from(&other.sums);
        self.flows.copy(&other.flows);
        self.crowds.copy(&other.crowds);
        self.host_cost.clone_from(&other.host_cost);
        self.highest.clone_from(&other.highest);
        self.sum = other.sum;
    }
}

impl<'m> State<'m> {
    /// Nothing is placed.
    pub fn empty(model: &'m Model) -> Self {
        let hosts = 0..model.hosts() as u32;
        let price = |host| {
            let standing = model.standing(host);
            model.goals.host(host, 0, |resource| standing[resource])
        };
        let host_cost: Vec<i64> = hosts.clone().map(price).collect();
        let mut state = Self {
            model,
            host_of: vec![NOWHERE; model.vms()],
            on_host: vec![Vec::new(); model.hosts()],
            place_in_list: vec![0; model.vms()],
            placed: 0,
            used: hosts.clone().flat_map(|host| model.standing(host)).copied().collect(),
            free: hosts.flat_map(|host| model.capacity(host)).copied().collect(),
            counts: Counts::none(&model.tallies),
            sums: Sums::none(&model.spares),
            flows: Flows::none(&model.networks),
            crowds: Crowds::none(&model.clashes),
            sum: host_cost.iter().sum::<i64>() + model.goals.constant(),
            host_cost,
            highest: Highest::none(model),
        };
        // What an unplaced VM leaves behind is counted from the start: until it is placed at home,
        // it is as if it had moved away.
        for vm in 0..model.vms() as u32 {
            state.leave_behind(vm, true);
        }
        state
    }

    /// The state with this host for every VM.
    ///
    /// # Panics
    /// If a VM's host is not one of the model's, or a host's use does not fit in 31 bits.
    pub fn new(model: &'m Model, assignment: &[u32]) -> Self {
        assert_eq!(assignment.len(), model.vms(), "an assignment names a host for every VM");
        let mut state = Self::empty(model);
        for (vm, &host) in (0..).zip(assignment) {
            state.place(vm, host);
        }
        state
    }

    pub fn model(&self) -> &'m Model {
        self.model
    }

    pub fn assignment(&self) -> &[u32] {
        &self.host_of
    }

    pub fn host_of(&self, vm: u32) -> u32 {
        self.host_of[vm as usize]
    }

    pub fn vms_on(&self, host: u32) -> &[u32] {
        &self.on_host[host as usize]
    }

    /// VMs on a host that are rows.
    #[inline]
    pub(super) fn count(&self, host: u32) -> u32 {
        self.on_host[host as usize].len() as u32
    }

    /// What is in use on a host, also by VMs that are no rows.
    pub fn used(&self, host: u32) -> &[i32] {
        &self.used[host as usize * self.model.stride()..][..self.model.stride()]
    }

    /// What a VM that comes may take, what others leave behind taken off.
    pub fn free(&self, host: u32) -> &[i32] {
        &self.free[host as usize * self.model.stride()..][..self.model.stride()]
    }

    /// The worth of all goals.
    pub fn objective(&self) -> i64 {
        self.sum + self.highest.worth(&self.model.goals)
    }

    /// What the VMs placed so far cost whatever the others do; stranded capacity, which may yet
    /// be used, is left out.
    pub fn certain_cost(&self) -> i64 {
        let goals = &self.model.goals;
        let vms = self.sum - self.host_cost.iter().sum::<i64>();
        let hosts = (0..self.model.hosts() as u32).map(|host| {
            let used = self.used(host);
            goals.certain_host(host, self.vms_on(host).len() as u32, &|resource| used[resource])
        });
        vms + hosts.sum::<i64>() + self.highest.certain(goals)
    }

    /// Whether every VM is placed where it may be, within capacity and all rules.
    pub fn is_feasible(&self) -> bool {
        self.placed == self.model.vms()
            && self.broken() == 0
            && self.free.iter().all(|&free| free >= 0)
            && (0..).zip(&self.host_of).all(|(vm, &host)| self.model.allows(vm, host))
    }

    /// How much is missing until every rule holds; unplaced VMs may make it good.
    pub fn broken(&self) -> u64 {
        self.counts.broken() + self.sums.broken() + self.flows.broken() + self.crowds.broken()
    }

    /// Whether the host has room for a VM that is not on it, and is one of those that it may use.
    #[inline]
    pub fn fits(&self, vm: u32, host: u32) -> bool {
        let (demand, free) = (self.model.demand(vm), self.free(host));
        let mut lacks = 0i32;
        if self.model.initial(vm) == host {
            // What it left behind is still held for it.
            for ((demand, free), transient) in demand.iter().zip(free).zip(self.model.transient()) {
                lacks |= i32::from(demand & !transient > *free);
            }
        } else {
            for (demand, free) in demand.iter().zip(free) {
                lacks |= i32::from(demand > free);
            }
        }
        lacks == 0 && self.model.allows(vm, host)
    }

    /// Whether two VMs have room in each other's place.
    #[inline]
    pub fn fits_swap(&self, a: u32, b: u32) -> bool {
        self.fits_instead(a, b) && self.fits_instead(b, a)
    }

    /// Whether a VM has room on another's host when that one is gone.
    #[inline]
    pub fn fits_instead(&self, vm: u32, other: u32) -> bool {
        let host = self.host_of(other);
        let (model, free) = (self.model, self.free(host));
        let comes_home = -i32::from(model.initial(vm) == host);
        let leaves_home = -i32::from(model.initial(other) == host);
        let mut lacks = 0i32;
        let demands = model.demand(vm).iter().zip(model.demand(other));
        let rooms = model.transient().iter().zip(free);
        for ((&comes, &goes), (&transient, &free)) in demands.zip(rooms) {
            let comes = comes & !(transient & comes_home);
            let goes = goes & !(transient & leaves_home);
            lacks |= i32::from(comes > free.wrapping_add(goes));
        }
        lacks == 0 && model.allows(vm, host)
    }

    /// Whether all rules, which hold now, hold after these changes at once.
    pub fn rules_allow(&self, changes: &[Change]) -> bool {
        let model = self.model;
        self.counts.hold_after(&model.tallies, changes)
            && self.sums.hold_after(&model.spares, |vm| model.demand(vm), changes)
            && self.flows.hold_after(&model.networks, changes)
            && self.crowds.hold_after(&model.clashes, changes)
    }

    /// The change that a shift is.
    pub fn shift_of(&self, vm: u32, to: u32) -> Change {
        Change { vm, from: self.host_of(vm), to }
    }

    /// The changes that a swap is.
    pub fn swap_of(&self, a: u32, b: u32) -> [Change; 2] {
        [self.shift_of(a, self.host_of(b)), self.shift_of(b, self.host_of(a))]
    }

    /// Room and rules at once, for a placed VM of a state whose rules hold.
    pub fn may_shift(&self, vm: u32, to: u32) -> bool {
        self.fits(vm, to) && self.rules_allow(&[self.shift_of(vm, to)])
    }

    pub fn may_swap(&self, a: u32, b: u32) -> bool {
        self.fits_swap(a, b) && self.rules_allow(&self.swap_of(a, b))
    }

    /// Room and those rules that VMs placed later cannot make good, for a VM that is not placed.
    pub fn may_place(&self, vm: u32, host: u32) -> bool {
        let model = self.model;
        self.fits(vm, host)
            && self.counts.may_arrive(&model.tallies, vm, host)
            && self.sums.may_arrive(&model.spares, vm, model.demand(vm), host)
            && self.flows.may_arrive(&model.networks, vm, host)
            && self.crowds.may_arrive(&model.clashes, vm, host)
    }

    /// How the objective changes when a placed VM goes to another host that has room for it.
    #[inline]
    pub fn shift_delta(&self, vm: u32, to: u32) -> i64 {
        let change = self.shift_of(vm, to);
        let from = change.from;
        if from == to {
            return 0;
        }
        let (goals, demand) = (&self.model.goals, self.model.demand(vm));
        let (used_from, used_to) = (self.used(from), self.used(to));
        let less = |resource: usize| used_from[resource].wrapping_sub(demand[resource]);
        let more = |resource: usize| used_to[resource].wrapping_add(demand[resource]);
        let (fewer, one_more) = (self.count(from) - 1, self.count(to) + 1);
        goals.host(from, fewer, less) + goals.host(to, one_more, more)
            - self.host_cost[from as usize]
            - self.host_cost[to as usize]
            + goals.vm(vm, to)
            - goals.vm(vm, from)
            + self.highest.delta(
                goals,
                &[change],
                (from, fewer, less),
                (to, one_more, more),
                &self.host_of,
            )
    }

    /// How the objective changes when two placed VMs change places.
    #[inline]
    pub fn swap_delta(&self, a: u32, b: u32) -> i64 {
        let changes = self.swap_of(a, b);
        let (from, to) = (changes[0].from, changes[0].to);
        if from == to {
            return 0;
        }
        let (goals, comes, goes) = (&self.model.goals, self.model.demand(b), self.model.demand(a));
        let (used_from, used_to) = (self.used(from), self.used(to));
        let at_from = |resource: usize| {
            used_from[resource].wrapping_sub(goes[resource]).wrapping_add(comes[resource])
        };
        let at_to = |resource: usize| {
            used_to[resource].wrapping_sub(comes[resource]).wrapping_add(goes[resource])
        };
        let (here, there) = (self.count(from), self.count(to));
        goals.host(from, here, at_from) + goals.host(to, there, at_to)
            - self.host_cost[from as usize]
            - self.host_cost[to as usize]
            + goals.vm(a, to)
            - goals.vm(a, from)
            + goals.vm(b, from)
            - goals.vm(b, to)
            + self.highest.delta(
                goals,
                &changes,
                (from, here, at_from),
                (to, there, at_to),
                &self.host_of,
            )
    }

    /// How the objective changes when a VM that is not placed comes to a host that has room.
    pub fn place_delta(&self, vm: u32, host: u32) -> i64 {
        self.own_place_delta(vm, host) + self.highest_place_delta(vm, host)
    }

    /// The part of it that is about the VM and the host alone.
    #[inline]
    pub(crate) fn own_place_delta(&self, vm: u32, host: u32) -> i64 {
        let (goals, demand, used) = (&self.model.goals, self.model.demand(vm), self.used(host));
        let more = |resource: usize| used[resource].wrapping_add(demand[resource]);
        goals.host(host, self.count(host) + 1, more) - self.host_cost[host as usize]
            + goals.vm(vm, host)
    }

    /// The part of it that is about the rest of the fleet: never below 0, for who comes only adds,
    /// unless the host was a spare that was kept on.
    #[inline]
    pub(crate) fn highest_place_delta(&self, vm: u32, host: u32) -> i64 {
        let (demand, used) = (self.model.demand(vm), self.used(host));
        let more = |resource: usize| used[resource].wrapping_add(demand[resource]);
        let change = Change { vm, from: NOWHERE, to: host };
        let after = After { host, vms: self.count(host) + 1, used: &more };
        self.highest.arrival_delta(&self.model.goals, change, after, &self.host_of)
    }

    pub fn shift(&mut self, vm: u32, to: u32) {
        self.remove(vm);
        self.place(vm, to);
    }

    pub fn swap(&mut self, a: u32, b: u32) {
        let (of_a, of_b) = (self.host_of(a), self.host_of(b));
        self.remove(a);
        self.remove(b);
        self.place(a, of_b);
        self.place(b, of_a);
    }

    /// Places a VM that is not placed.
    pub fn place(&mut self, vm: u32, host: u32) {
        debug_assert_eq!(self.host_of(vm), NOWHERE);
        self.host_of[vm as usize] = host;
        self.place_in_list[vm as usize] = self.on_host[host as usize].len() as u32;
        self.on_host[host as usize].push(vm);
        self.placed += 1;
        self.take(vm, host, 1);
        if self.model.initial(vm) == host {
            self.leave_behind(vm, false);
        }
        self.counts.arrive(&self.model.tallies, vm, host);
        self.sums.count(&self.model.spares, vm, self.model.demand(vm), host, 1);
        self.flows.arrive(&self.model.networks, vm, host);
        self.crowds.count(&self.model.clashes, vm, host, true);
        let change = Change { vm, from: NOWHERE, to: host };
        self.highest.moved(&self.model.goals, change, &self.host_of);
        self.sum += self.model.goals.vm(vm, host);
        self.price(host);
    }

    /// Takes a placed VM from its host.
    pub fn remove(&mut self, vm: u32) {
        let host = std::mem::replace(&mut self.host_of[vm as usize], NOWHERE);
        let list = &mut self.on_host[host as usize];
        let place = self.place_in_list[vm as usize];
        list.swap_remove(place as usize);
        if let Some(&other) = list.get(place as usize) {
            self.place_in_list[other as usize] = place;
        }
        self.placed -= 1;
        self.take(vm, host, -1);
        if self.model.initial(vm) == host {
            self.leave_behind(vm, true);
        }
        self.counts.leave(&self.model.tallies, vm, host);
        self.sums.count(&self.model.spares, vm, self.model.demand(vm), host, -1);
        self.flows.leave(&self.model.networks, vm, host);
        self.crowds.count(&self.model.clashes, vm, host, false);
        let change = Change { vm, from: host, to: NOWHERE };
        self.highest.moved(&self.model.goals, change, &self.host_of);
        self.sum -= self.model.goals.vm(vm, host);
        self.price(host);
    }

    fn take(&mut self, vm: u32, host: u32, times: i32) {
        let start = host as usize * self.model.stride();
        for (resource, &demand) in self.model.demand(vm).iter().enumerate() {
            self.used[start + resource] += times * demand;
            self.free[start + resource] -= times * demand;
        }
    }

    /// Counts, or counts no more, what the VM goes on taking from its initial host.
    fn leave_behind(&mut self, vm: u32, begins: bool) {
        let initial = self.model.initial(vm);
        if initial == NOWHERE {
            return;
        }
        let start = initial as usize * self.model.stride();
        let demand = self.model.demand(vm).iter().zip(self.model.transient());
        for (resource, (&demand, &transient)) in demand.enumerate() {
            let held = demand & transient;
            self.free[start + resource] -= if begins { held } else { -held };
        }
    }

    /// Prices a host anew.
    fn price(&mut self, host: u32) {
        let stride = self.model.stride();
        let used = &self.used[host as usize * stride..][..stride];
        let used = |resource: usize| used[resource];
        let vms = self.on_host[host as usize].len() as u32;
        let cost = self.model.goals.host(host, vms, used);
        self.sum += cost - std::mem::replace(&mut self.host_cost[host as usize], cost);
        self.highest.set_host(&self.model.goals, host, vms, used);
    }
}
