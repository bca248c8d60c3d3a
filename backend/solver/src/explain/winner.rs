//! Why one host was taken and not another: the scores of both, term by term.

use crate::bits::Mask;
use crate::place::{How, Scratch, place};
use crate::problem::Problem;
use crate::request::Request;
use crate::score::Formula;
use cluster::{Breakdown, HostIx, Vm};

/// A host's score.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scored {
    pub host: HostIx,
    pub breakdown: Breakdown,
}

/// The score of a host and of the best other host, for a VM that is not in the tables.
pub fn compare(
    problem: &mut Problem,
    scratch: &mut Scratch,
    vm: &Vm,
    how: &How,
    host: HostIx,
) -> (Scored, Option<Scored>) {
    let choice = place(problem, scratch, vm, how);
    let best = choice.host.iter().map(|chosen| chosen.host);
    let ranked = best.chain(choice.alternatives.iter().map(|(other, _)| *other));
    let other = ranked.into_iter().find(|other| *other != host);
    let this = score(problem, vm, how, host);
    (this, other.map(|other| score(problem, vm, how, other)))
}

fn score(problem: &mut Problem, vm: &Vm, how: &How, host: HostIx) -> Scored {
    let formula = Formula::new(how.strategy, &how.weights, vm.hints.bursty);
    let request = Request::for_strategy(problem, vm, &formula, how.strategy);
    let mut one = Mask::default();
    one.reset_to_one(host);
    // The points of policies are known once they were asked.
    let Problem { policies, hosts, room, .. } = &mut *problem;
    policies.narrow(&mut one, hosts, room);
    problem.prices.refresh();
    Scored { host, breakdown: formula.score(problem, &request, host) }
}
