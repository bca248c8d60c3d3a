//! Large neighbourhoods: a few hosts and all that is on them, as a programme of their own.
//!
//! What the rest of the fleet means for them is taken in roughly (what VMs leave behind, the
//! highest utilisation elsewhere); whether an answer holds and is better is asked of the state.

use crate::engine::deal;
use crate::programme::Programme;
use crate::run::{Limits, run};
use cluster::assignment::{Goal, Host, Problem, Rule, Scope, Vm};
use cluster::{HostIx, VmIx};
use solver::assignment::{Deadline, State};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Rearranges what is on `hosts` as well as that can be done within `seconds`; whether the state
/// is better for it. The state is feasible before and after.
pub fn improve(
    problem: &Problem,
    state: &mut State<'_>,
    hosts: &[u32],
    seconds: f64,
    deadline: &Arc<Deadline>,
) -> bool {
    let before = state.objective();
    let vms: Vec<u32> = hosts.iter().flat_map(|&host| state.vms_on(host)).copied().collect();
    let part = part(problem, state, hosts, &vms);
    let least_peak = highest_elsewhere(state, hosts);
    let lazy: HashSet<usize> = (0..part.rules.len()).collect();
    let mut relaxed = part.clone();
    relaxed.rules.clear();
    let made = Programme::of(&relaxed, true, least_peak, deadline);
    let Some(programme) = made else { return false };
    let (columns, members) = (programme.columns.clone(), programme.members.clone());
    let row_of: HashMap<u32, u32> = hosts.iter().copied().zip(0..).collect();
    let now: Vec<u32> = vms.iter().map(|&vm| row_of[&state.host_of(vm)]).collect();
    let start = programme.values(&relaxed, &now);
    let limits = Limits { deadline, seconds: Some(seconds), threads: 1, gap: 1e-6 };
    let Some(values) = run(programme, Some(&start), limits).values else { return false };
    let found = deal(&part, &columns, &members, &values, &lazy);
    let homes: Vec<u32> = vms.iter().map(|&vm| state.host_of(vm)).collect();
    put(state, &vms, found.iter().map(|&row| hosts[row as usize]));
    if state.objective() < before && state.is_feasible() {
        return true;
    }
    put(state, &vms, homes.into_iter());
    false
}

fn put(state: &mut State<'_>, vms: &[u32], hosts: impl Iterator<Item = u32>) {
    vms.iter().for_each(|&vm| state.remove(vm));
    vms.iter().zip(hosts).for_each(|(&vm, host)| state.place(vm, host));
}

/// The problem of these hosts and the VMs on them.
fn part(problem: &Problem, state: &State<'_>, hosts: &[u32], vms: &[u32]) -> Problem {
    let row_of: HashMap<u32, u32> = hosts.iter().copied().zip(0..).collect();
    let vm_row: HashMap<u32, u32> = vms.iter().copied().zip(0..).collect();
    let host = |&host: &u32| {
        let amounts = state.free(host).iter().zip(state.used(host));
        let amounts = amounts.zip(state.model().standing(host));
        let room = amounts.take(problem.resources.len());
        let capacity = room.map(|((&free, &used), &standing)| {
            (i64::from(free) + i64::from(used) - i64::from(standing)) as u64
        });
        Host { capacity: capacity.collect(), domains: Vec::new() }
    };
    let model = state.model();
    let vm = |&vm: &u32| {
        let row = &problem.vms[vm as usize];
        let known = |host: &HostIx| row_of.get(&host.0).map(|&row| HostIx(row));
        Vm {
            shape: row.shape,
            initial: row.initial.as_ref().and_then(known),
            // With the fences around it, which the part does not have as rules.
            allowed: model.limited_to(vm).map(|_| {
                let allowed = (0..).zip(hosts).filter(|(_, host)| model.allows(vm, **host));
                allowed.map(|(row, _)| HostIx(row)).collect()
            }),
        }
    };
    let mut part = Problem {
        resources: problem.resources.clone(),
        levels: Vec::new(),
        hosts: hosts.iter().map(host).collect(),
        shapes: problem.shapes.clone(),
        vms: vms.iter().map(vm).collect(),
        groups: Vec::new(),
        rules: Vec::new(),
        fabrics: Vec::new(),
        goals: problem.goals.iter().filter_map(|goal| part_of(goal, hosts, vms)).collect(),
        standing: match problem.standing.is_empty() {
            true => Vec::new(),
            false => hosts.iter().map(|&host| problem.standing[host as usize].clone()).collect(),
        },
    };
    // What is left behind is in the capacities already.
    part.resources.iter_mut().for_each(|resource| resource.transient = false);
    for rule in &problem.rules {
        if let Rule::Apart { group, scope: Scope::Host } = *rule {
            let members = problem.groups[group as usize].iter();
            let here: Vec<VmIx> =
                members.filter_map(|vm| vm_row.get(&vm.0).map(|&row| VmIx(row))).collect();
            if here.len() > 1 {
                let group = part.groups.len() as u32;
                part.groups.push(here);
                part.rules.push(Rule::Apart { group, scope: Scope::Host });
            }
        }
    }
    part
}

/// A goal as far as it is about these hosts and VMs; what is left out is priced by the state.
fn part_of(goal: &Goal, hosts: &[u32], vms: &[u32]) -> Option<Goal> {
    if let Goal::Moves { vms: costs, .. } = goal {
        let vms = vms.iter().map(|&vm| costs[vm as usize]).collect();
        return Some(Goal::Moves { vms, between: None, busiest: None });
    }
    let mut goal = goal.of_hosts(hosts)?;
    if let Goal::Table { vms: classes, .. } = &mut goal {
        *classes = vms.iter().map(|&vm| classes[vm as usize]).collect();
    }
    Some(goal)
}

/// The highest utilisation of the hosts that stay as they are.
fn highest_elsewhere(state: &State<'_>, hosts: &[u32]) -> f64 {
    let model = state.model();
    let others = (0..model.hosts() as u32).filter(|host| !hosts.contains(host));
    let shares = others.flat_map(|host| state.used(host).iter().zip(model.whole(host)));
    let shares = shares.filter(|(_, capacity)| **capacity > 0);
    shares.map(|(&used, &capacity)| f64::from(used) / f64::from(capacity)).fold(0.0, f64::max)
}
