//! Plans that are searched for: better places by goals, fewer hosts, less stranded capacity.
//!
//! The search runs while its caller waits. One that takes longer than that is an optimisation, and
//! a plan is made of its answer.

use super::{Found, Wanted};
use crate::body::aside;
use crate::failure::Failure;
use crate::service::Service;
use cluster::{Name, Snapshot};
use engine::{PlanKind, WantedMove, Worth};
use optimise::{Answer, Ask, Method, Prices, Scope, timed};
use solver::assignment::{Budget, Deadline};
use solver::engines::Board;
use solver::objective::Wish;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};
use wire::{Code, PlanRequest};

/// A search that is limited by steps ends after this long all the same.
const LONGEST: Duration = Duration::from_secs(600);

pub(super) async fn found(service: &Service, request: &PlanRequest) -> Result<Found, Failure> {
    let kind = match request.kind {
        wire::PlanKind::Consolidation => PlanKind::Consolidation,
        wire::PlanKind::Defragmentation => PlanKind::Defragmentation,
        _ => PlanKind::Rebalance,
    };
    let snapshot = service.look(|core| core.state().snapshot()).await?;
    let asked = ask(request, &snapshot)?;
    let request = request.clone();
    aside(move || {
        let answer = searched(&snapshot, &asked, &request)?;
        Ok(Found {
            note: note(&answer, &request),
            worth: worth(kind, &snapshot, &answer),
            wanted: Wanted::Moves(kind, moves(&answer)),
        })
    })
    .await
}

fn searched(snapshot: &Snapshot, ask: &Ask, request: &PlanRequest) -> Result<Answer, Failure> {
    let deadline = Arc::new(Deadline::default());
    let (longest, mut budget) = match request.steps {
        Some(steps) => (LONGEST, Budget::steps(steps).and_until(Arc::clone(&deadline))),
        None => (Duration::from_millis(request.budget_ms), Budget::until(Arc::clone(&deadline))),
    };
    let board = Board::default();
    let answer = timed(
        &deadline,
        (Instant::now(), longest),
        |_| {},
        || optimise::optimise(snapshot, ask, &mut budget, &board),
    );
    match answer {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(error)) => Err(Failure::new(Code::CONFLICT, error.to_string())),
        Err(_) => Err(Failure::new(Code::INTERNAL, "the search panicked")),
    }
}

/// The question in the optimiser's words.
fn ask(request: &PlanRequest, snapshot: &Snapshot) -> Result<Ask, Failure> {
    let wishes = request.goals.iter().filter(|(_, weight)| *weight > 0);
    Ok(Ask {
        scope: scope(request, snapshot)?,
        wishes: wishes.map(|&(kind, weight)| Wish { kind, weight }).collect(),
        method: Method::Auto,
        seed: request.seed,
        threads: 2,
        timed: request.steps.is_none(),
        max_moves: request.max_moves.and_then(|most| usize::try_from(most).ok()),
        prices: Prices {
            per_move_ppm: request.price_per_move_ppm,
            per_second_ppm: request.price_per_second_ppm,
        },
        ..Ask::default()
    })
}

/// The VMs that may move: all, or those on hosts of a pool, of a rack, or on one host.
fn scope(request: &PlanRequest, snapshot: &Snapshot) -> Result<Scope, Failure> {
    let PlanRequest { pool, rack, host, .. } = request;
    if pool.is_none() && rack.is_none() && host.is_none() {
        return Ok(Scope::Cluster);
    }
    let is_asked = |asked: &Option<Name>, found: Option<&Name>| {
        asked.as_ref().is_none_or(|asked| Some(asked) == found)
    };
    let hosts = snapshot.hosts.iter().filter(|it| {
        is_asked(pool, it.pool.as_ref())
            && is_asked(rack, it.location.rack.as_ref())
            && is_asked(host, Some(&it.id))
    });
    let hosts: std::collections::HashSet<Name> = hosts.map(|it| it.id.clone()).collect();
    if hosts.is_empty() {
        let detail = "no host is in the pool, rack and host that are named";
        return Err(Failure::new(Code::HOST_NOT_FOUND, detail));
    }
    Ok(Scope::Hosts(hosts))
}

fn moves(answer: &Answer) -> Vec<WantedMove> {
    let moves = answer.moved.iter().map(|it| WantedMove {
        vm: it.vm.clone(),
        from: it.from.clone(),
        to: it.to.clone(),
        gain: Some(it.gain),
    });
    moves.collect()
}

fn worth(kind: PlanKind, snapshot: &Snapshot, answer: &Answer) -> Worth {
    let (power_down, wake) = match kind {
        PlanKind::Consolidation => switched(snapshot, answer),
        _ => Default::default(),
    };
    Worth {
        before: answer.start,
        objective: answer.objective,
        bound: Some(answer.bound),
        stop_reason: Some(answer.stop_reason.as_str().to_owned()),
        power_down,
        wake,
    }
}

/// Hosts that are empty after the moves and were not, and those that were and are not.
fn switched(snapshot: &Snapshot, answer: &Answer) -> (Vec<Name>, Vec<Name>) {
    let to: BTreeMap<_, _> = answer.moved.iter().map(|it| (&it.vm, &it.to)).collect();
    let before: BTreeSet<&Name> = snapshot.placed.iter().map(|it| &it.host).collect();
    let after: BTreeSet<&Name> =
        snapshot.placed.iter().map(|it| to.get(&it.vm.key).copied().unwrap_or(&it.host)).collect();
    let named = |hosts: Vec<&&Name>| hosts.into_iter().map(|host| (*host).clone()).collect();
    (named(before.difference(&after).collect()), named(after.difference(&before).collect()))
}

fn note(answer: &Answer, request: &PlanRequest) -> String {
    let priced = request.price_per_move_ppm > 0 || request.price_per_second_ppm > 0;
    match (answer.moved.is_empty(), priced) {
        (true, true) => "nothing gains more than it costs to move".into(),
        (true, false) => "nothing better was found".into(),
        (false, _) => String::new(),
    }
}
