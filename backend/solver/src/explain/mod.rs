//! Answers "why not?": every rule in a VM's way, and the least change that would make it fit.
//!
//! Placing needs the first rule that each host fails and stops there. This looks at all of them,
//! one host at a time, on the same tables; it is for questions that are asked beside placing, on
//! a copy of the tables, and polls `stop` where it loops over hosts.

mod change;
mod counterfactual;
mod minimise;
mod obstacle;
mod parts;
mod unknown;
mod winner;

pub use change::{Change, Cost, WHOLE, changed};
pub use counterfactual::Counterfactual;
pub use obstacle::Obstacle;
pub use parts::Part;
pub use unknown::{Unknown, UnknownKind};
pub use winner::{Scored, compare};

use crate::problem::Problem;
use cluster::{HostIx, Reason, Vm};
use obstacle::Case;
use std::collections::BTreeMap;

/// Why a VM can or cannot be placed anywhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    pub considered: u32,
    /// Hosts that can take the VM as it is.
    pub fits: u32,
    /// By reason, in the order in which rules are tried.
    pub reasons: BTreeMap<Reason, Blocked>,
    pub unknown: Vec<Unknown>,
    /// The least change with which it fits somewhere; `None` if it does, or if nothing helps.
    pub counterfactual: Option<Counterfactual>,
}

/// How many hosts one reason keeps a VM off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Blocked {
    /// Hosts for which it is the first reason: what a decision counts.
    pub first: u32,
    /// Hosts that fail it at all.
    pub any: u32,
    /// Hosts that fail nothing else: what would be gained without it.
    pub alone: u32,
}

/// Why a VM can or cannot be placed on one host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostExplanation {
    /// In the order in which rules are tried; empty if the host can take the VM.
    pub obstacles: Vec<Obstacle>,
    pub unknown: Vec<Unknown>,
    /// The least change with which it fits on this host; `None` if it does, or if nothing helps.
    pub counterfactual: Option<Counterfactual>,
}

/// The caller said stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stopped;

/// Hosts between two looks at the time.
const BETWEEN_STOPS: usize = 64;

/// Explains a VM that is not in the tables against every host.
pub fn explain(
    problem: &mut Problem,
    vm: &Vm,
    stop: &dyn Fn() -> bool,
) -> Result<Explanation, Stopped> {
    let case = Case::new(problem, vm, &[]);
    let mut reasons: BTreeMap<Reason, Blocked> = BTreeMap::new();
    let mut bounds = Vec::new();
    let mut fits = 0;
    let hosts: Vec<HostIx> = problem.hosts.iter().map(|(ix, _)| ix).collect();
    for (number, &host) in hosts.iter().enumerate() {
        if number % BETWEEN_STOPS == 0 && stop() {
            return Err(Stopped);
        }
        let obstacles = case.obstacles(problem, host, &[]);
        let mut failed: Vec<Reason> = obstacles.iter().map(Obstacle::reason).collect();
        failed.dedup();
        let Some(first) = failed.first() else {
            fits += 1;
            continue;
        };
        reasons.entry(*first).or_default().first += 1;
        for reason in &failed {
            let blocked = reasons.entry(*reason).or_default();
            blocked.any += 1;
            blocked.alone += u32::from(failed.len() == 1);
        }
        bounds.push((counterfactual::bound(problem, &case, vm, host, &obstacles), host));
    }
    let unknown = unknown::unknown(&problem.hosts, vm);
    let counterfactual = match fits {
        0 => counterfactual::anywhere(problem, vm, bounds, stop)?,
        _ => None,
    };
    let considered = problem.hosts.count();
    Ok(Explanation { considered, fits, reasons, unknown, counterfactual })
}

/// Every rule that keeps a VM that is not in the tables off a host, in the order in which rules
/// are tried.
pub fn obstacles(problem: &mut Problem, vm: &Vm, host: HostIx) -> Vec<Obstacle> {
    Case::new(problem, vm, &[]).obstacles(problem, host, &[])
}

/// Explains a VM that is not in the tables against one host; `None` if there is no such host.
pub fn explain_host(problem: &mut Problem, vm: &Vm, host: HostIx) -> Option<HostExplanation> {
    problem.hosts.get(host)?;
    let obstacles = obstacles(problem, vm, host);
    let unknown = unknown::unknown(&problem.hosts, vm);
    let counterfactual = match obstacles.is_empty() {
        true => None,
        false => counterfactual::on_host(problem, vm, host),
    };
    Some(HostExplanation { obstacles, unknown, counterfactual })
}
