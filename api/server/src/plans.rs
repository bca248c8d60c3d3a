//! Making plans of what is asked for: which moves, in which waves, and what they are worth.
//!
//! Works beside placing, on tables and snapshots of its own. What comes out was accepted by the
//! verifier, and becomes a plan by a request to the engine.

mod search;
mod view;

pub(crate) use view::{diff_view, plan_view};

use crate::failure::Failure;
use crate::service::Service;
use cluster::{Level, Name};
use engine::{Draft, Drafted, PlanKind, Tables, Terms, WantedMove};
use optimise::{Answer as Optimised, Moved};
use planner::{Caps, Link};
use wire::{Code, OnFailure, PlanRequest};

/// What is wanted, before anybody looked whether it can be.
pub(crate) enum Wanted {
    Moves(PlanKind, Vec<WantedMove>),
    Drain(Vec<Name>),
    Maintenance(Vec<Name>, usize),
}

/// The draft of what a request asks for.
pub(crate) async fn draft(service: &Service, request: &PlanRequest) -> Result<Draft, Failure> {
    let terms = terms(request);
    let found = match request.kind {
        wire::PlanKind::Moves => Found::plain(Wanted::Moves(PlanKind::Moves, moves(request))),
        wire::PlanKind::Optimisation => Found::searched(&chosen(service, request)?),
        wire::PlanKind::Drain => Found::plain(Wanted::Drain(request.hosts.clone())),
        wire::PlanKind::Maintenance => {
            let batch = usize::try_from(request.batch).unwrap_or(usize::MAX);
            Found::plain(Wanted::Maintenance(request.hosts.clone(), batch))
        }
        wire::PlanKind::Rebalance
        | wire::PlanKind::Consolidation
        | wire::PlanKind::Defragmentation
        | wire::PlanKind::Rollback => search::found(service, request).await?,
    };
    let Found { wanted, worth, note } = found;
    let mut draft = ordered(service, wanted, terms).await?;
    draft.worth = worth;
    draft.asked = engine::fingerprint(&format!("{request:?}"));
    draft.note = note;
    if draft.note.is_empty() {
        draft.note = summary(&draft);
    }
    Ok(draft)
}

/// Moves, and what the search that found them says.
pub(crate) struct Found {
    pub(crate) wanted: Wanted,
    pub(crate) worth: engine::Worth,
    pub(crate) note: String,
}

impl Found {
    fn plain(wanted: Wanted) -> Self {
        Self { wanted, worth: engine::Worth::default(), note: String::new() }
    }

    /// The moves of an answer of the optimiser. VMs to come are not moves.
    fn searched((answered, moved): &(std::sync::Arc<Optimised>, Vec<Moved>)) -> Self {
        let moves = moved.iter().filter(|it| it.from.is_some()).map(|it| WantedMove {
            vm: it.vm.clone(),
            from: it.from.clone(),
            to: it.to.clone(),
            gain: None,
        });
        let worth = engine::Worth {
            objective: answered.objective,
            bound: Some(answered.bound),
            stop_reason: Some(answered.stop_reason.as_str().to_owned()),
            ..engine::Worth::default()
        };
        let wanted = Wanted::Moves(PlanKind::Optimisation, moves.collect());
        Self { wanted, worth, note: String::new() }
    }
}

/// Puts what is wanted in waves, and has them verified.
pub(crate) async fn ordered(
    service: &Service,
    wanted: Wanted,
    terms: Terms,
) -> Result<Draft, Failure> {
    let study = std::sync::Arc::clone(&service.study);
    let drafted = service.beside(move |writer| {
        let (drafted, revision) = study.ask(writer, |tables| drafted(tables, &wanted, &terms))?;
        let (snapshot, policies) =
            writer.look(|core| (core.state().snapshot(), std::sync::Arc::clone(core.policies())));
        // What changed meanwhile is not the plan's fault; it is looked at again before every wave.
        if snapshot.revision == revision {
            let violations = drafted.violations(snapshot, &policies);
            if let Some(violation) = violations.first() {
                let detail = format!("the plan did not pass verification: {violation}");
                return Err(Failure::new(Code::INTERNAL, detail));
            }
        }
        Ok((drafted.draft, revision))
    });
    drafted.await
}

fn drafted(tables: &mut Tables, wanted: &Wanted, terms: &Terms) -> Result<Drafted, Failure> {
    let drafted = match wanted {
        Wanted::Moves(kind, moves) => tables.draft_moves(*kind, moves, terms),
        Wanted::Drain(hosts) => tables.draft_drain(hosts, terms),
        Wanted::Maintenance(hosts, batch) => tables.draft_maintenance(hosts, *batch, terms),
    };
    drafted.map_err(Failure::from)
}

fn moves(request: &PlanRequest) -> Vec<WantedMove> {
    let wanted = |it: &wire::MoveRequest| WantedMove {
        vm: it.vm.clone(),
        from: it.from.clone(),
        to: it.to.clone(),
        gain: None,
    };
    request.moves.iter().map(wanted).collect()
}

/// What an optimisation found, or a point of its front.
fn chosen(
    service: &Service,
    request: &PlanRequest,
) -> Result<(std::sync::Arc<Optimised>, Vec<Moved>), Failure> {
    let id = request.optimisation.clone().unwrap_or_default();
    let unknown = |what: &str| Failure::new(Code::OPTIMISATION_NOT_FOUND, format!("{id:?} {what}"));
    let number = id.strip_prefix('o').and_then(|digits| digits.parse().ok());
    let record = number.and_then(|number| service.jobs.get(number));
    let record = record.ok_or_else(|| unknown("is not known"))?;
    let answered = record.now().answer.ok_or_else(|| unknown("has no answer yet"))?;
    let moved = match request.point {
        None => answered.moved.clone(),
        Some(point) => {
            let front = answered.front.as_ref();
            let row = usize::try_from(point).unwrap_or(usize::MAX);
            let found = front.and_then(|front| front.points.get(row));
            found.ok_or_else(|| unknown(&format!("has no point {point}")))?.moved.clone()
        }
    };
    Ok((answered, moved))
}

fn terms(request: &PlanRequest) -> Terms {
    let usual = Caps::default();
    let number = |asked: Option<u32>, usual: usize| {
        asked.map_or(usual, |asked| usize::try_from(asked).unwrap_or(usize::MAX))
    };
    let per_rack = usual.per_domain.first().map_or(usize::MAX, |(_, most)| *most);
    Terms {
        caps: Caps {
            in_all: number(request.at_once, usual.in_all),
            per_host: number(request.at_once_per_host, usual.per_host),
            per_domain: vec![(Level::Rack, number(request.at_once_per_rack, per_rack))],
        },
        link: Link::default(),
        on_failure: match request.on_failure {
            OnFailure::Pause => engine::OnFailure::Pause,
            OnFailure::Continue => engine::OnFailure::Continue,
        },
        approved: request.approve,
    }
}

/// A plan in a sentence.
fn summary(draft: &Draft) -> String {
    let steps: usize = draft.waves.iter().map(Vec::len).sum();
    let blocked = draft.blocked.len();
    match (steps, blocked) {
        (0, 0) => "nothing has to move".into(),
        (0, _) => format!("nothing can move: {blocked} VMs are blocked"),
        (_, 0) => format!("{steps} migrations in {} waves", draft.waves.len()),
        _ => format!("{steps} migrations in {} waves, {blocked} VMs blocked", draft.waves.len()),
    }
}
