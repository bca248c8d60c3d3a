//! What other weights would have decided: the last decisions made again, each on the state that it
//! was made on.

use crate::command::{Command, Entry, Placing};
use crate::core::Core;
use crate::history::{History, asked};
use crate::recover::OpenError;
use crate::request::PlaceRequest;
use crate::state::DecisionId;
use cluster::{Name, Revision, Strategy, Verdict, VmKey};
use policy::Weights;
use solver::How;
use solver::explain::compare;

/// Weights that might be in force.
#[derive(Clone, Copy, Debug)]
pub struct WhatIf {
    pub weights: Weights,
    /// `None`: as it was for each decision.
    pub strategy: Option<Strategy>,
    /// Decisions that are looked at, the newest.
    pub last: usize,
}

/// A decision, and what it would have been.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WouldBe {
    pub id: DecisionId,
    pub vm: VmKey,
    /// Where the VM went; decisions that found no host are not looked at, because weights do not
    /// change who may go where.
    pub host: Name,
    /// Where it would have gone.
    pub would_be: Name,
    /// By the other weights: the score of the host that it went to, and of where it would go.
    pub score: i64,
    pub best_score: i64,
}

impl WouldBe {
    pub fn changes(&self) -> bool {
        self.host != self.would_be
    }
}

/// Records that are looked through for decisions at most.
const MOST_RECORDS: u64 = 20_000;

impl History {
    /// What the last decisions up to `newest` would have been, oldest first. Each VM of a batch is
    /// looked at as if the rest of it were not there yet.
    pub fn what_if(&self, what: &WhatIf, newest: Revision) -> Result<Vec<WouldBe>, OpenError> {
        let Some(first) = self.first_of(what.last, newest)? else { return Ok(Vec::new()) };
        let Some(state) = self.state_at(Revision(first.0.saturating_sub(1)))? else {
            return Ok(Vec::new());
        };
        let mut core = Core::new(state)?;
        let mut found = Vec::new();
        let mut revision = first;
        while revision <= newest {
            let Some(entry) = self.entry(revision)? else { break };
            core.would_decide(&entry, revision, what, &mut found);
            core.apply(&entry)?;
            revision = revision.next();
        }
        let extra = found.len().saturating_sub(what.last);
        Ok(found.split_off(extra))
    }

    /// The revision from which on there are so many placed VMs.
    fn first_of(&self, last: usize, newest: Revision) -> Result<Option<Revision>, OpenError> {
        let (mut first, mut count) = (None, 0usize);
        let oldest = newest.0.saturating_sub(MOST_RECORDS).max(1);
        for revision in (oldest..=newest.0).rev().map(Revision) {
            let Some(entry) = self.entry(revision)? else { break };
            let placed = placings(&entry).filter(|placing| placing.decision.host().is_some());
            let placed = placed.count();
            if placed > 0 {
                first = Some(revision);
                count = count.saturating_add(placed);
            }
            if count >= last {
                break;
            }
        }
        Ok(first)
    }
}

fn placings(entry: &Entry) -> impl Iterator<Item = &Placing> {
    let (one, many) = match &entry.command {
        Command::Place(placing) => (Some(placing.as_ref()), &[][..]),
        Command::PlaceBatch { placings, .. } => (None, &placings[..]),
        _ => (None, &[][..]),
    };
    one.into_iter().chain(many)
}

impl Core {
    fn would_decide(
        &mut self,
        entry: &Entry,
        revision: Revision,
        what: &WhatIf,
        found: &mut Vec<WouldBe>,
    ) {
        for (position, placing) in (0u32..).zip(placings(entry)) {
            let Some(host) = placing.decision.host() else { continue };
            let request = asked(placing);
            let Some((would_be, best_score, score)) = self.by(&request, host, what) else {
                continue;
            };
            let id = DecisionId { revision, position };
            let (vm, host) = (placing.vm.key.clone(), host.clone());
            found.push(WouldBe { id, vm, host, would_be, score, best_score });
        }
    }

    /// Where a VM would go and what that scores, and what another host scores.
    fn by(
        &mut self,
        request: &PlaceRequest,
        host: &Name,
        what: &WhatIf,
    ) -> Option<(Name, i64, i64)> {
        let policy = self.state.policy();
        let how = How {
            weights: what.weights,
            strategy: what.strategy.or(request.strategy).unwrap_or(policy.strategy),
            round_robin_after: self.state.round_robin_after,
        };
        let (ix, _) = self.state.find_host(host)?;
        let decided = self.decide_by(request, &how).ok()?.decision;
        let (this, _) = compare(&mut self.problem, &mut self.scratch, &request.vm, &how, ix);
        let Verdict::Placed { host: would_be, score: best, .. } = decided.verdict else {
            return None;
        };
        Some((would_be, best, this.breakdown.total()))
    }
}
