//! Chooses a host for one VM.

use crate::bits::{LANES, any_at_least, at_least, ones, sum_at_least};
use crate::constraints::{self, Masks};
use crate::problem::Problem;
use crate::request::Request;
use crate::score::Formula;
use crate::standing::Prepared;
use crate::wishes;
use cluster::{Amounts, Breakdown, HostIx, Index, Reason, Rejections, Strategy, Vm};
use policy::Weights;
use smallvec::SmallVec;

/// Buffers that are kept between requests, so that placing allocates nothing.
#[derive(Debug, Default)]
pub struct Scratch {
    pub(crate) masks: Masks,
    /// What the request's wishes add to each host's standing at most.
    pub(crate) wishes: Vec<i32>,
}

/// How a host is chosen among those that may take the VM.
#[derive(Clone, Copy, Debug, Default)]
pub struct How {
    pub weights: Weights,
    pub strategy: Strategy,
    /// For `RoundRobin`: the host that was used last.
    pub round_robin_after: Option<HostIx>,
}

/// Where a VM goes, or why nowhere.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Choice {
    pub host: Option<Chosen>,
    /// The next best hosts and their scores, best first.
    pub alternatives: SmallVec<[(HostIx, i64); 3]>,
    /// Hosts left out, by the first rule that each fails.
    pub rejections: Rejections,
    /// Every host there is.
    pub considered: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chosen {
    pub host: HostIx,
    pub score: i64,
    pub breakdown: Breakdown,
    /// What the VM takes on this host.
    pub committed: Amounts,
}

/// The chosen host and its alternatives.
pub(crate) const WANTED: usize = 4;

/// Chooses a host for a VM that is not placed. The tables change only in what they remember of
/// predicates and levels.
pub fn place(problem: &mut Problem, scratch: &mut Scratch, vm: &Vm, how: &How) -> Choice {
    let formula = Formula::new(how.strategy, &how.weights, vm.hints.bursty);
    let mut request = Request::compile(problem, vm, formula.crowding());
    let rejections = constraints::filter(problem, &mut request, &mut scratch.masks);
    problem.prices.refresh();
    let best = match how.strategy {
        _ if scratch.masks.left.is_empty() => Best::new(),
        Strategy::FirstFit | Strategy::FirstFitDecreasing => {
            by_index(problem, &request, &formula, scratch, HostIx(0))
        }
        Strategy::RoundRobin => {
            let start = how.round_robin_after.map_or(HostIx(0), |last| problem.hosts.after(last));
            by_index(problem, &request, &formula, scratch, start)
        }
        _ => {
            problem.room.refresh();
            let (room, prices) = (&problem.room, &problem.prices);
            let view = formula.view();
            let standing = problem.standings.prepare(view, vm, &request.asks, room, prices);
            by_score(problem, &request, &formula, scratch, standing)
        }
    };
    choice(problem, &request, rejections, &best)
}

/// Whether the VM may be placed on this host: what it takes there, or the first rule in its way.
pub fn feasible(problem: &mut Problem, vm: &Vm, host: HostIx) -> Result<Amounts, Reason> {
    if problem.hosts.get(host).is_none() {
        return Err(Reason::HostState);
    }
    let mut request = Request::compile(problem, vm, false);
    let mut scratch = std::mem::take(&mut problem.scratch);
    let result = constraints::check(problem, &mut request, &mut scratch.masks, host);
    problem.scratch = scratch;
    result.map(|()| request.committed(problem, host))
}

/// A host with its score.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scored {
    pub(crate) score: i64,
    pub(crate) host: HostIx,
    pub(crate) breakdown: Breakdown,
}

/// The best hosts so far, best first. Offered in order of index, so equals stay in order.
pub(crate) type Best = SmallVec<[Scored; WANTED]>;

pub(crate) fn choice(
    problem: &Problem,
    request: &Request,
    rejections: Rejections,
    best: &[Scored],
) -> Choice {
    let host = best.first().map(|best| Chosen {
        host: best.host,
        score: best.score,
        breakdown: best.breakdown,
        committed: request.committed(problem, best.host),
    });
    let others = best.iter().skip(1).take(WANTED - 1);
    Choice {
        host,
        alternatives: others.map(|other| (other.host, other.score)).collect(),
        rejections,
        considered: problem.hosts.count(),
    }
}

pub(crate) fn score(
    problem: &Problem,
    request: &Request,
    formula: &Formula,
    host: HostIx,
) -> Scored {
    let breakdown = formula.score(problem, request, host);
    Scored { score: breakdown.total(), host, breakdown }
}

/// The best hosts of the mask.
///
/// A host is scored only if its standing and the most that the request can add reach the last of
/// the best so far, which leaves out nearly all of a large fleet and never a winner.
fn by_score(
    problem: &Problem,
    request: &Request,
    formula: &Formula,
    scratch: &mut Scratch,
    standing: Prepared,
) -> Best {
    let view = formula.view();
    let own = |host| view.sum(Some(&request.asks), &problem.room, &problem.prices, host);
    let most = wishes::bound(problem, request, formula, &mut scratch.wishes);
    let slack = if standing.exact { 0 } else { formula.most_fit(problem, request) as i32 };
    let standings = problem.standings.column(standing);
    let wishes = scratch.wishes.as_chunks().0;
    let mask = &scratch.masks.left;
    let mut best = Best::new();
    // What fit, load, cost and wishes must come to. Equal scores go to the lower index, so once
    // there are enough hosts, only more than the last of them will do.
    let mut least = NO_LIMIT;
    for block in mask.scope() {
        let mut lanes = mask.word(block);
        if lanes == 0 {
            continue;
        }
        let standings = &standings[block];
        let wishes = wishes.get(block);
        lanes &= match wishes {
            None if !any_at_least(standings, least - slack) => continue,
            None => at_least(standings, least - slack),
            Some(wishes) => sum_at_least(standings, wishes, least - slack),
        };
        for host in ones(block, lanes) {
            let lane = host.row() % LANES;
            let wish = wishes.map_or(0, |wishes| wishes[lane]);
            let sum = if standing.exact { standings[lane] } else { own(host) };
            if sum + wish < least {
                continue;
            }
            offer(&mut best, score(problem, request, formula, host));
            if let Some(last) = best.get(WANTED - 1) {
                least = (last.score + 1 - most).max(NO_LIMIT.into()) as i32;
            }
        }
    }
    best
}

/// Below what any host comes to. Scores are under 2^27 by the limits of weights and terms.
const NO_LIMIT: i32 = i32::MIN / 2;

fn offer(best: &mut Best, scored: Scored) {
    if best.len() == WANTED {
        if scored.score <= best[WANTED - 1].score {
            return;
        }
        best.pop();
    }
    let row = best.iter().position(|kept| kept.score < scored.score).unwrap_or(best.len());
    best.insert(row, scored);
}

/// The first hosts of the mask in order of index, starting at `start` and going round.
fn by_index(
    problem: &Problem,
    request: &Request,
    formula: &Formula,
    scratch: &Scratch,
    start: HostIx,
) -> Best {
    let mask = &scratch.masks.left;
    let later = mask.iter_from(start);
    let earlier = mask.iter().take_while(|host| host.row() < start.row());
    let hosts = later.chain(earlier).take(WANTED);
    hosts.map(|host| score(problem, request, formula, host)).collect()
}
