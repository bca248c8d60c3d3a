//! The linear relaxation without rules but fences: a bound at any size, and a start.
//!
//! How loose: it lets hosts be on in part and VMs be cut, and groups meet. For fleets with many
//! VMs on a host these are small things, and the bound is within a few per mille of the best
//! answers known; where one VM fills a host it can be far off.

use crate::programme::{Column, Programme};
use crate::run::{Limits, run, whole};
use cluster::VmIx;
use cluster::assignment::{Problem, Rule};
use solver::assignment::{Deadline, Model, State};
use std::sync::Arc;

#[derive(Clone, Debug)]
pub struct Relaxation {
    pub bound: i64,
    /// The relaxation's numbers rounded down, the rest placed greedily; `None` if that failed.
    pub start: Option<Vec<u32>>,
}

/// Solves the relaxation; `None` if the deadline is over before.
pub fn relaxation(
    problem: &Problem,
    model: &Model,
    deadline: &Arc<Deadline>,
) -> Option<Relaxation> {
    let mut free = problem.clone();
    free.rules.retain(|rule| matches!(rule, Rule::Fence { .. }));
    let programme = Programme::of(&free, false, 0.0, deadline)?;
    let (columns, members) = (programme.columns.clone(), programme.members.clone());
    let limits = Limits { deadline, seconds: None, threads: 1, gap: 0.0 };
    let answer = run(programme, None, limits);
    let bound = whole(answer.bound?).max(model.bound());
    Some(Relaxation { bound, start: round(model, &columns, &members, &answer.values?) })
}

/// How much a value may be below a whole number and still be that number.
const NEARLY: f64 = 1e-6;

fn round(
    model: &Model,
    columns: &[Column],
    members: &[Vec<VmIx>],
    values: &[f64],
) -> Option<Vec<u32>> {
    let mut state = State::empty(model);
    let mut left: Vec<Vec<VmIx>> = members.to_vec();
    for (column, value) in columns.iter().zip(values) {
        let Column::Count { class, host } = *column else { continue };
        let host = host as u32;
        for _ in 0..(value + NEARLY).floor() as u64 {
            let fits = |vm: &VmIx| state.may_place(vm.0, host);
            let Some(row) = left[class].iter().position(fits) else { break };
            state.place(left[class].remove(row).0, host);
        }
    }
    let mut rest: Vec<u32> = left.into_iter().flatten().map(|vm| vm.0).collect();
    let size = |vm: u32| model.demand(vm).iter().map(|&demand| i64::from(demand)).sum::<i64>();
    rest.sort_by_key(|&vm| (std::cmp::Reverse(size(vm)), vm));
    for vm in rest {
        let hosts = (0..model.hosts() as u32).filter(|&host| state.may_place(vm, host));
        let cheapest = hosts.min_by_key(|&host| (state.place_delta(vm, host), host))?;
        state.place(vm, cheapest);
    }
    state.is_feasible().then(|| state.assignment().to_vec())
}
