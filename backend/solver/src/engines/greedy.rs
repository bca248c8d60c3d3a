//! Greedy: the largest VMs first, each where the objective grows least.
//!
//! Fast, and a start for everything else. A step is one VM. Where the last VMs find no room, they
//! go first in another attempt; rules that only VMs to come could have made good are mended by
//! shifts afterwards.

use super::{Engine, Task};
use crate::assignment::{Budget, Model, Outcome, State, StopReason};

#[derive(Clone, Copy, Debug, Default)]
pub struct Greedy;

/// Orders that are tried; what did not fit in one goes first in the next.
const ATTEMPTS: usize = 20;

impl Engine for Greedy {
    fn name(&self) -> &'static str {
        "greedy"
    }

    fn solve(&self, task: Task<'_>, budget: &mut Budget) -> Outcome {
        let mut order = by_size(task.model);
        let mut found = None;
        for _ in 0..ATTEMPTS {
            match attempt(task.model, &order, budget) {
                Ok(state) => {
                    found = Some(state);
                    break;
                }
                // With nothing left over, another attempt would be the same.
                Err(left) if left.is_empty() || budget.is_over() => break,
                Err(left) => {
                    order.retain(|vm| !left.contains(vm));
                    order.splice(0..0, left);
                }
            }
        }
        let stop_reason = if budget.is_over() { budget.reason() } else { StopReason::Stalled };
        Outcome {
            engine: self.name().to_string(),
            objective: found.as_ref().map(State::objective),
            assignment: found.map(|state| state.assignment().to_vec()),
            bound: task.model.bound(),
            stop_reason,
            steps: budget.used(),
        }
    }
}

/// VMs by the share of the fleet that they take, largest first; equals by row.
pub(super) fn by_size(model: &Model) -> Vec<u32> {
    let mut fleet = vec![0.0; model.resources()];
    for host in 0..model.hosts() as u32 {
        for (sum, &capacity) in fleet.iter_mut().zip(model.capacity(host)) {
            *sum += f64::from(capacity);
        }
    }
    let size = |vm: u32| {
        let demand = model.demand(vm).iter().zip(&fleet);
        demand.map(|(&demand, &fleet)| f64::from(demand) / fleet.max(1.0)).fold(0.0, f64::max)
    };
    let mut order: Vec<(f64, u32)> = (0..model.vms() as u32).map(|vm| (size(vm), vm)).collect();
    order.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    order.into_iter().map(|(_, vm)| vm).collect()
}

/// A feasible state, or the VMs that were in the way.
fn attempt<'m>(
    model: &'m Model,
    order: &[u32],
    budget: &mut Budget,
) -> Result<State<'m>, Vec<u32>> {
    let mut state = State::empty(model);
    let mut left = Vec::new();
    for &vm in order {
        // Steps are counted and not a limit: a start is worth finishing, unless nobody waits for it.
        if budget.deadline().is_over() {
            return Err(Vec::new());
        }
        budget.spend(1);
        match cheapest(&state, vm) {
            Some(host) => place(&mut state, vm, host),
            None => left.push(vm),
        }
    }
    // What VMs leave behind may be more than a host has, wherever they go.
    let whole = left.is_empty() && mend(&mut state) && state.is_feasible();
    if whole { Ok(state) } else { Err(left) }
}

/// Places a VM where it costs least; if that breaks a rule which others do not, on the cheapest of
/// those. VMs that come later may make a rule good, but finding them takes long in large fleets.
pub(super) fn place(state: &mut State<'_>, vm: u32, cheapest: u32) {
    let before = state.broken();
    state.place(vm, cheapest);
    let model = state.model();
    if state.broken() <= before || model.tallies.of(vm).is_empty() {
        return;
    }
    state.remove(vm);
    let hosts = (0..model.hosts() as u32).filter(|&host| state.may_place(vm, host));
    let mut priced: Vec<(i64, u32)> =
        hosts.map(|host| (state.place_delta(vm, host), host)).collect();
    priced.sort_unstable();
    for (_, host) in priced {
        state.place(vm, host);
        if state.broken() <= before {
            return;
        }
        state.remove(vm);
    }
    state.place(vm, cheapest);
}

/// The host where a VM that is not placed costs least; of equals the one with least room left.
pub(super) fn cheapest(state: &State<'_>, vm: u32) -> Option<u32> {
    match state.model().listed(vm) {
        Some(hosts) => cheapest_of(state, vm, hosts),
        None => cheapest_of(state, vm, 0..state.model().hosts() as u32),
    }
}

/// Tests that fail often come first: room, then what host and VM cost by themselves, which the
/// rest of the fleet only adds to as a rule, then everything.
fn cheapest_of(state: &State<'_>, vm: u32, hosts: impl Iterator<Item = u32>) -> Option<u32> {
    let only_adds = state.model().goals.only_grow();
    let mut best: Option<(i64, i64, u32)> = None;
    for host in hosts.filter(|&host| state.fits(vm, host)) {
        let own = state.own_place_delta(vm, host);
        if only_adds && best.is_some_and(|best| own > best.0) {
            continue;
        }
        let cost = own + state.highest_place_delta(vm, host);
        if best.is_some_and(|best| cost > best.0) || !state.may_place(vm, host) {
            continue;
        }
        let room = state.free(host).iter().map(|&free| i64::from(free)).sum();
        let found = (cost, room, host);
        if best.is_none_or(|best| found < best) {
            best = Some(found);
        }
    }
    best.map(|(_, _, host)| host)
}

/// Shifts VMs while that brings the rules nearer to holding; whether they hold in the end.
pub(super) fn mend(state: &mut State<'_>) -> bool {
    let model = state.model();
    while state.broken() > 0 {
        let before = state.broken();
        for vm in model.movable().iter().copied() {
            let home = state.host_of(vm);
            for host in (0..model.hosts() as u32).filter(|&host| host != home) {
                if !state.fits(vm, host) {
                    continue;
                }
                let broken = state.broken();
                state.shift(vm, host);
                if state.broken() < broken {
                    break;
                }
                state.shift(vm, home);
            }
            if state.broken() == 0 {
                break;
            }
        }
        if state.broken() >= before {
            return false;
        }
    }
    true
}
