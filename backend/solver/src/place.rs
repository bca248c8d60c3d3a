//! Chooses a host for one VM.

use crate::bits::{at_least, ones};
use crate::constraints::{self, Masks};
use crate::fragmentation::points;
use crate::policies::RulesThatRemoved;
use crate::problem::Problem;
use crate::request::Request;
use crate::score::Formula;
use crate::standing::Standing;
use crate::wishes::Wishes;
use cluster::{Amounts, Bindings, Breakdown, HostIx, Index, Reason, Rejections, Strategy, Vm};
use policy::Weights;
use smallvec::SmallVec;
use std::cmp::Reverse;
use std::sync::Arc;

/// Buffers that are kept between requests, so that placing allocates nothing.
#[derive(Debug, Default)]
pub struct Scratch {
    pub(crate) masks: Masks,
    wishes: Wishes,
    /// The most that a host of each block can come to.
    bounds: Vec<i32>,
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
    /// The rules of policies that left hosts out.
    pub by_rule: RulesThatRemoved,
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
    /// The parts of this host that the VM gets, if it asks for any.
    pub bindings: Option<Arc<Bindings>>,
}

/// The chosen host and its alternatives.
pub(crate) const WANTED: usize = 4;

/// Chooses a host for a VM that is not placed. The tables change only in what they remember of
/// predicates and levels.
pub fn place(problem: &mut Problem, scratch: &mut Scratch, vm: &Vm, how: &How) -> Choice {
    let formula = Formula::new(how.strategy, &how.weights, vm.hints.bursty);
    let mut request = Request::for_strategy(problem, vm, &formula, how.strategy);
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
        Strategy::LeastFragmentation => by_loss(problem, &request, scratch),
        _ => {
            let Problem { standings, room, prices, .. } = &mut *problem;
            let slot = standings.prepare(formula.view(), vm, &request.asks, room, prices);
            let mut standing = standings.take(slot);
            let best = by_score(problem, &request, &formula, scratch, &mut standing);
            problem.standings.put_back(slot, standing);
            best
        }
    };
    let by_rule = std::mem::take(&mut scratch.masks.by_rule);
    Choice { by_rule, ..choice(problem, vm, &request, &formula, rejections, &best) }
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
struct Scored {
    score: i64,
    host: HostIx,
}

/// The best hosts so far, best first. Offered in order of index, so equals stay in order.
type Best = SmallVec<[Scored; WANTED]>;

fn choice(
    problem: &Problem,
    vm: &Vm,
    request: &Request,
    formula: &Formula,
    rejections: Rejections,
    best: &[Scored],
) -> Choice {
    let host = best.first().map(|&Scored { host, score }| {
        let breakdown = formula.score(problem, request, host);
        debug_assert_eq!(breakdown.total(), score, "a standing was not what its host comes to");
        let bindings = problem.bind(vm, host).and_then(Result::ok).map(Arc::new);
        debug_assert_eq!(bindings.is_some(), vm.topology.is_some(), "a host that cannot bind");
        Chosen { host, score, breakdown, committed: request.committed(problem, host), bindings }
    });
    let others = best.iter().skip(1).take(WANTED - 1);
    Choice {
        host,
        alternatives: others.map(|other| (other.host, other.score)).collect(),
        rejections,
        by_rule: RulesThatRemoved::new(),
        considered: problem.hosts.count(),
    }
}

/// The best hosts of the mask.
///
/// A host is scored only if its standing and the most that the request can add reach the last of
/// the best so far, which leaves out nearly all of a large fleet and never a winner. The block
/// that promises most is searched first, for a limit to start with.
fn by_score(
    problem: &Problem,
    request: &Request,
    formula: &Formula,
    scratch: &mut Scratch,
    standing: &mut Standing,
) -> Best {
    let Scratch { masks: Masks { left: mask, .. }, wishes, bounds } = scratch;
    wishes.collect(problem, request, formula);
    bounds.clear();
    bounds.extend(mask.scope().map(|block| match mask.word(block) {
        0 => NO_HOST,
        lanes => standing.highest(block) + wishes.most(problem, block, lanes),
    }));
    let mut search =
        Search { problem, request, formula, wishes, standing, best: Best::new(), least: NO_LIMIT };
    let first = mask.scope().start;
    let promising = (0..bounds.len()).max_by_key(|&row| bounds[row]);
    if let Some(row) = promising.filter(|&row| bounds[row] != NO_HOST) {
        search.visit(first + row, mask.word(first + row));
        search.start_over();
    }
    for (row, &bound) in bounds.iter().enumerate() {
        if bound >= search.least {
            search.visit(first + row, mask.word(first + row));
        }
    }
    search.best
}

/// A search for the best hosts in order of index.
struct Search<'a> {
    problem: &'a Problem,
    request: &'a Request,
    formula: &'a Formula,
    wishes: &'a Wishes,
    standing: &'a mut Standing,
    best: Best,
    /// What standing and wishes of a host must come to at least, beside the base of the wishes.
    least: i32,
}

impl Search<'_> {
    /// Looks at these hosts of a block.
    fn visit(&mut self, block: usize, lanes: u64) {
        let most = self.wishes.most(self.problem, block, lanes);
        let mut settled = false;
        let high = at_least(self.standing.block(block), self.least - most);
        for host in ones(block, high & lanes) {
            let wish = self.wishes.at(self.problem, host);
            if self.standing.value(host) + wish < self.least {
                continue;
            }
            if !self.standing.is_exact(host) {
                let (room, prices) = (&self.problem.room, &self.problem.prices);
                let sum = self.formula.view().sum(Some(&self.request.asks), room, prices, host);
                self.standing.settle(host, sum);
                settled = true;
                if sum + wish < self.least {
                    continue;
                }
            }
            let wishes = self.formula.wishes(self.problem, self.request, host);
            self.offer(Scored { score: i64::from(self.standing.value(host)) + wishes, host });
        }
        if settled || high == 0 {
            self.standing.tighten(block);
        }
    }

    fn offer(&mut self, scored: Scored) {
        let best = &mut self.best;
        if best.len() == WANTED {
            if scored.score <= best[WANTED - 1].score {
                return;
            }
            best.pop();
        }
        let row = best.iter().position(|kept| kept.score < scored.score).unwrap_or(best.len());
        best.insert(row, scored);
        // Equal scores go to the lower index, so once there are enough hosts, only more than the
        // last of them will do.
        if let Some(last) = best.get(WANTED - 1) {
            self.least = self.least.max(limit(last.score + 1 - self.wishes.base));
        }
    }

    /// Forgets the hosts, but not that there are some as good as these.
    fn start_over(&mut self) {
        let last = self.best.get(WANTED - 1);
        self.least = last.map_or(NO_LIMIT, |last| limit(last.score - self.wishes.base));
        self.best.clear();
    }
}

/// Below what any host comes to. Scores are under 2^27 by the limits of weights and terms.
const NO_LIMIT: i32 = i32::MIN / 2;

/// The bound of a block without a host.
const NO_HOST: i32 = i32::MIN;

fn limit(score: i64) -> i32 {
    score.max(NO_LIMIT.into()) as i32
}

/// The hosts of the mask that lose least; among equal scores the least that was not rounded.
fn by_loss(problem: &mut Problem, request: &Request, scratch: &Scratch) -> Best {
    let Some(keeping) = &request.keeping else { return Best::new() };
    let Problem { losses, policies, .. } = problem;
    let mut best: SmallVec<[(Reverse<i64>, i64, HostIx); WANTED + 1]> = SmallVec::new();
    for host in scratch.masks.left.iter() {
        let cost = losses.cost(keeping, host);
        let candidate = (Reverse(points(cost) + i64::from(policies.points(host))), cost, host);
        if best.len() == WANTED && best[WANTED - 1] < candidate {
            continue;
        }
        let row = best.partition_point(|kept| *kept < candidate);
        best.insert(row, candidate);
        best.truncate(WANTED);
    }
    best.into_iter().map(|(Reverse(score), _, host)| Scored { score, host }).collect()
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
    let score = |host| formula.score(problem, request, host).total();
    hosts.map(|host| Scored { score: score(host), host }).collect()
}
