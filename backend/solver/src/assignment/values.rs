//! A state's worth goal by goal, and how a change would change each: for searches that trade
//! several values against each other.
//!
//! Whoever keeps the worths of a state adds what `shift_deltas` and the like say, and never has to
//! ask for `worths` again. Searches for the sum of all goals do without.

use super::model::{Model, NOWHERE};
use super::state::{Change, State};
use crate::goals::After;

impl<'m> State<'m> {
    /// What each goal of the problem is worth; their sum is the objective.
    pub fn worths(&self) -> Vec<i64> {
        (0..self.model().goals()).map(|goal| self.worth_of(goal)).collect()
    }

    /// What one goal of the problem is worth, from nothing.
    pub fn worth_of(&self, goal: usize) -> i64 {
        let goals = &self.model().goals;
        let hosts = (0..self.model().hosts() as u32).map(|host| {
            let used = self.used(host);
            goals.row_host(goal, host, self.count(host), |resource| used[resource])
        });
        let placed = (0..).zip(self.assignment()).filter(|(_, host)| **host != NOWHERE);
        let vms = placed.map(|(vm, &host)| goals.row_vm(goal, vm, host));
        goals.row_constant(goal)
            + hosts.sum::<i64>()
            + vms.sum::<i64>()
            + self.highest.row_worth(goals, goal)
    }

    /// How each goal changes when a placed VM goes to another host that has room for it: a number
    /// for each goal, added to `deltas`.
    pub fn shift_deltas(&self, vm: u32, to: u32, deltas: &mut [i64]) {
        let change = self.shift_of(vm, to);
        if change.from == to {
            return;
        }
        let (model, demand) = (self.model(), self.model().demand(vm));
        let (used_from, used_to) = (self.used(change.from), self.used(to));
        let less = |resource: usize| used_from[resource].wrapping_sub(demand[resource]);
        let more = |resource: usize| used_to[resource].wrapping_add(demand[resource]);
        let after = [
            After { host: change.from, vms: self.count(change.from) - 1, used: &less },
            After { host: to, vms: self.count(to) + 1, used: &more },
        ];
        self.deltas(model, &[change], &after, deltas);
    }

    /// Likewise, when two placed VMs change places.
    pub fn swap_deltas(&self, a: u32, b: u32, deltas: &mut [i64]) {
        let changes = self.swap_of(a, b);
        let (from, to) = (changes[0].from, changes[0].to);
        if from == to {
            return;
        }
        let model = self.model();
        let (goes, comes) = (model.demand(a), model.demand(b));
        let (used_from, used_to) = (self.used(from), self.used(to));
        let change = |resource: usize| comes[resource].wrapping_sub(goes[resource]);
        let at_from = |resource: usize| used_from[resource].wrapping_add(change(resource));
        let at_to = |resource: usize| used_to[resource].wrapping_sub(change(resource));
        let after = [
            After { host: from, vms: self.count(from), used: &at_from },
            After { host: to, vms: self.count(to), used: &at_to },
        ];
        self.deltas(model, &changes, &after, deltas);
    }

    /// Likewise, when a VM that is not placed comes to a host that has room.
    pub fn place_deltas(&self, vm: u32, host: u32, deltas: &mut [i64]) {
        let (model, used) = (self.model(), self.used(host));
        let demand = model.demand(vm);
        let more = |resource: usize| used[resource].wrapping_add(demand[resource]);
        let after = [After { host, vms: self.count(host) + 1, used: &more }];
        self.deltas(model, &[Change { vm, from: NOWHERE, to: host }], &after, deltas);
    }

    fn deltas(&self, model: &Model, changes: &[Change], after: &[After<'_>], deltas: &mut [i64]) {
        let goals = &model.goals;
        for (goal, delta) in deltas.iter_mut().enumerate() {
            for after in after {
                let used = self.used(after.host);
                *delta += goals.row_host(goal, after.host, after.vms, after.used)
                    - goals.row_host(goal, after.host, self.count(after.host), |at| used[at]);
            }
            for change in changes {
                let cost = |host: u32| match host {
                    NOWHERE => 0,
                    _ => goals.row_vm(goal, change.vm, host),
                };
                *delta += cost(change.to) - cost(change.from);
            }
            *delta += self.highest.row_delta(goals, goal, changes, after, self.assignment());
        }
    }
}
