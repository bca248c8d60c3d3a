//! The cheapest set of changes with which a VM fits: on one host, or on any.
//!
//! On one host nearly nothing is left to choose: each rule that the host fails has to go by its
//! own change, in the amount that is missing. Only a few rules depend on the other changes. Spread
//! compares with the domains that are eligible, and those become more when selectors and the like
//! are dropped; policies, spare room and parts of hosts read the demand. These are therefore looked
//! at again after the other changes are made, and what comes out is applied and tried before it is
//! returned. Of the parts that a VM asks for, the cheapest that have to go are found by trying.
//!
//! Over all hosts the cheapest is taken. Every change costs something and more of it costs more,
//! so a cheapest set has no part that would do alone and no number that could be one unit smaller:
//! whatever host that would do on would have had a cheaper set. Policies can read anything of the
//! VM, and one that is cut may find its parts where the whole one does not: there that argument does
//! not hold, and `minimise` tries instead.

use super::Stopped;
use super::change::{Change, Cost, changed, remedy, total};
use super::minimise::minimise;
use super::obstacle::{Case, Obstacle};
use super::parts::relaxed;
use crate::place::feasible;
use crate::problem::Problem;
use cluster::{HostIx, Reason, Vm};

/// Changes that make the VM fit on a host, checked by making them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counterfactual {
    /// In the order of the rules that they are about.
    pub changes: Vec<Change>,
    pub cost: Cost,
    /// The host that can take the VM then.
    pub host: HostIx,
    /// Whether nothing smaller does, or else only that nothing smaller was found in the time.
    pub proved: bool,
}

/// Rounds of changes on one host: of the host's own rules, then of spreads, then of policies that
/// read what these changed. More are needed only by policies that contradict each other.
const ROUNDS: usize = 8;

/// Hosts that are worked out exactly before the search is content with the best so far.
const MOST_HOSTS: usize = 20_000;

/// The cheapest changes with which the VM fits on this host.
pub(super) fn on_host(problem: &mut Problem, vm: &Vm, host: HostIx) -> Option<Counterfactual> {
    let found = forced(problem, vm, host)?;
    Some(minimise(problem, vm, found, &[host]))
}

/// The cheapest changes with which the VM fits on any host. `bounds` is below what each costs.
pub(super) fn anywhere(
    problem: &mut Problem,
    vm: &Vm,
    mut bounds: Vec<(Cost, HostIx)>,
    stop: &dyn Fn() -> bool,
) -> Result<Option<Counterfactual>, Stopped> {
    bounds.sort_unstable();
    let mut best: Option<Counterfactual> = None;
    let mut looked_at = 0;
    for &(bound, host) in &bounds {
        if best.as_ref().is_some_and(|best| bound > best.cost) || looked_at == MOST_HOSTS {
            break;
        }
        if stop() {
            return Err(Stopped);
        }
        looked_at += 1;
        let Some(found) = forced(problem, vm, host) else { continue };
        let better = |best: &Counterfactual| (found.cost, found.host) < (best.cost, best.host);
        if best.as_ref().is_none_or(better) {
            best = Some(found);
        }
    }
    let Some(best) = best else { return Ok(None) };
    if stop() {
        return Err(Stopped);
    }
    let hosts: Vec<HostIx> = bounds.into_iter().map(|(_, host)| host).collect();
    let best = minimise(problem, vm, best, &hosts);
    Ok(Some(Counterfactual { proved: best.proved && looked_at < MOST_HOSTS, ..best }))
}

/// At most what taking these obstacles away costs. What policies say may change with the rest.
pub(super) fn bound(
    problem: &Problem,
    case: &Case<'_>,
    vm: &Vm,
    host: HostIx,
    obstacles: &[Obstacle],
) -> Cost {
    let sure = obstacles.iter().filter(|it| !matches!(it, Obstacle::Policy { .. }));
    let mut changes: Vec<Change> = Vec::new();
    for change in sure.filter_map(|it| remedy(problem, case, vm, host, it)) {
        if !changes.contains(&change) {
            changes.push(change);
        }
    }
    total(&changes)
}

/// Whether the VM, with these changes made to it and around it, may be placed on the host.
pub(super) fn does(problem: &mut Problem, vm: &Vm, changes: &[Change], host: HostIx) -> bool {
    let vm = changed(vm, changes);
    let outside: Vec<Change> = changes.iter().filter(|it| it.is_outside()).cloned().collect();
    if outside.is_empty() {
        return feasible(problem, &vm, host).is_ok();
    }
    Case::new(problem, &vm, &outside).obstacles(problem, host, &outside).is_empty()
}

/// The changes that the host's obstacles force, tried on the tables.
fn forced(problem: &mut Problem, vm: &Vm, host: HostIx) -> Option<Counterfactual> {
    let mut changes: Vec<Change> = Vec::new();
    for _ in 0..ROUNDS {
        let now = changed(vm, &changes);
        let outside: Vec<Change> = changes.iter().filter(|it| it.is_outside()).cloned().collect();
        let case = Case::new(problem, &now, &outside);
        let obstacles = case.obstacles(problem, host, &outside);
        if obstacles.is_empty() {
            break;
        }
        // Spread and policies depend on the others, so they wait until those are out of the way.
        let round = obstacles.iter().map(rank).min();
        for obstacle in obstacles.iter().filter(|it| Some(rank(it)) == round) {
            let remedies = match obstacle {
                Obstacle::Parts { .. } => relaxed(problem, &now, host),
                _ => vec![remedy(problem, &case, &now, host, obstacle)?],
            };
            for change in remedies {
                if !changes.contains(&change) {
                    changes.push(change);
                }
            }
        }
    }
    does(problem, vm, &changes, host).then(|| Counterfactual {
        cost: total(&changes),
        proved: true,
        changes,
        host,
    })
}

fn rank(obstacle: &Obstacle) -> u8 {
    match obstacle {
        Obstacle::Policy { .. } => 2,
        Obstacle::Spread { .. } | Obstacle::Parts { .. } => 1,
        Obstacle::Constraint { reason: Reason::Spare, .. } => 1,
        _ => 0,
    }
}
