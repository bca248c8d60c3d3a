//! Fronts: the trade-offs that an optimisation found, the point for some weights, and carrying a
//! point out.

use super::{Answer, answer, unexpected};
use crate::app::Problems;
use crate::ask::{Ask, Id, Params};
use crate::failure::Failure;
use crate::optimisations::{Record, move_view};
use crate::plans::{Wanted, ordered};
use crate::service::Service;
use axum::extract::{Path, State as Handle};
use axum::http::StatusCode;
use cluster::{GoalKind, Name, VmKey};
use engine::{Outcome, PlaceRequest, PlanKind, Request, Terms, WantedMove};
use optimise::{Answer as Optimised, FrontPoint, Moved, Trade};
use serde::Deserialize;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use wire::{AppliedView, Code, FrontView, MoveView, NearestView};

pub(super) fn routes() -> OpenApiRouter<Service> {
    OpenApiRouter::new()
        .routes(routes!(front))
        .routes(routes!(nearest))
        .routes(routes!(apply_point))
        .routes(routes!(apply))
}

/// Read a front: points of which none is better than another in every goal.
#[utoipa::path(get, path = "/v1/fronts/{id}", tag = "optimisation",
    params(("id" = String, Path, pattern = "^f[0-9]{1,18}$")),
    responses((status = 200, description = "The front", body = FrontView), Problems))]
async fn front(Handle(service): Handle<Service>, Id(id): Id) -> Answer {
    let (record, answered) = known(&service, &id)?;
    let revision = record.now().revision;
    let view = record.front_view(trade(&answered, &id)?, revision, &answered);
    answer(StatusCode::OK, &view)
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct Slider {
    /// Weights of goals, such as `energy:3,latency:1`. What is left out counts nothing.
    #[param(pattern = "^[a-z]+:[0-9]{1,5}(,[a-z]+:[0-9]{1,5})*$")]
    weights: String,
}

/// Find the point of a front that is best for some weights.
#[utoipa::path(get, path = "/v1/fronts/{id}/nearest", tag = "optimisation",
    params(("id" = String, Path, pattern = "^f[0-9]{1,18}$"), Slider),
    responses((status = 200, description = "The point", body = NearestView), Problems))]
async fn nearest(
    Handle(service): Handle<Service>,
    Id(id): Id,
    Params(Slider { weights }): Params<Slider>,
) -> Answer {
    let (record, answered) = known(&service, &id)?;
    let trade = trade(&answered, &id)?;
    let weights = read_weights(&weights)?;
    let empty = || Failure::new(Code::FRONT_NOT_FOUND, format!("front {id} has no points"));
    let row = trade.nearest(&weights).ok_or_else(empty)?;
    let point = trade.points.get(row).ok_or_else(empty)?;
    let number = u32::try_from(row).unwrap_or(u32::MAX);
    let named = weights.iter().map(|(kind, weight)| (kind.name().to_owned(), *weight));
    let view = NearestView {
        front: id,
        weights: named.collect::<BTreeMap<String, u32>>(),
        point: record.point_view(number, point, &answered.before),
    };
    answer(StatusCode::OK, &view)
}

/// `energy:3,latency:1`.
fn read_weights(text: &str) -> Result<Vec<(GoalKind, u32)>, Failure> {
    let wrong = |detail: String| Failure::new(Code::INVALID_QUERY, detail);
    let mut weights = Vec::new();
    for part in text.split(',') {
        let (name, number) = part
            .split_once(':')
            .ok_or_else(|| wrong(format!("weights: {part:?} is not GOAL:WEIGHT")))?;
        let known = || GoalKind::ALL.map(GoalKind::name).join(", ");
        let kind = GoalKind::named(name)
            .ok_or_else(|| wrong(format!("weights: {name:?} is no goal; there are {}", known())))?;
        let weight = number.parse().ok().filter(|weight| *weight <= 10_000);
        let weight = weight
            .ok_or_else(|| wrong(format!("weights: {number:?} is no number from 0 to 10000")))?;
        if weights.iter().any(|(found, _)| *found == kind) {
            return Err(wrong(format!("weights: {name:?} is there twice")));
        }
        weights.push((kind, weight));
    }
    Ok(weights)
}

/// Carry out a point of a front: VMs that have no host get theirs, moves are put in order.
///
/// VMs to come are placed at once where there is room for them. Moves become a plan, which is approved
/// and begins with `POST /v1/plans/{id}/apply`. Placements that need room which the moves make wait
/// for a second call.
#[utoipa::path(post, path = "/v1/fronts/{id}/points/{k}/apply", tag = "optimisation",
    params(("id" = String, Path, pattern = "^f[0-9]{1,18}$"), ("k" = u32, Path)),
    responses((status = 200, description = "What was done, and what is left to do", body = AppliedView), Problems))]
async fn apply_point(
    Handle(service): Handle<Service>,
    path: Result<Path<(String, u32)>, axum::extract::rejection::PathRejection>,
    ask: Ask,
) -> Answer {
    let wrong = |wrong: axum::extract::rejection::PathRejection| {
        Failure::new(Code::INVALID_PATH, wrong.body_text())
    };
    let Path((id, k)) = path.map_err(wrong)?;
    let (record, answered) = known(&service, &id)?;
    let trade = trade(&answered, &id)?;
    let points = trade.points.len();
    let point = usize::try_from(k).ok().and_then(|row| trade.points.get(row));
    let point: &FrontPoint = point.ok_or_else(|| {
        Failure::new(Code::FRONT_NOT_FOUND, format!("front {id} has {points} points, not {k}"))
    })?;
    carried_out(&service, &ask, &record, &point.moved).await
}

/// Carry out what an optimisation found, as for a point of a front.
#[utoipa::path(post, path = "/v1/optimisations/{id}/apply", tag = "optimisation",
    params(("id" = String, Path, pattern = "^o[0-9]{1,18}$")),
    responses((status = 200, description = "What was done, and what is left to do", body = AppliedView), Problems))]
async fn apply(Handle(service): Handle<Service>, Id(id): Id, ask: Ask) -> Answer {
    let (record, answered) = ended(&service, &id, 'o', Code::OPTIMISATION_NOT_FOUND)?;
    carried_out(&service, &ask, &record, &answered.moved).await
}

async fn carried_out(service: &Service, ask: &Ask, record: &Record, moved: &[Moved]) -> Answer {
    let (arrivals, moves): (Vec<Moved>, Vec<Moved>) =
        moved.iter().cloned().partition(|it| it.from.is_none());
    let (placed, waiting) = place(service, ask, record, arrivals).await?;
    let planned = planned(service, ask, &moves).await?;
    let revision = service.read(|state| state.revision().0).await?;
    let Planned { plan, waves, blocked } = planned;
    let applied = AppliedView { placed, waiting, plan, waves, blocked, revision };
    answer(StatusCode::OK, &applied)
}

/// Places VMs on the hosts that were found for them; those for which there is no room yet wait.
async fn place(
    service: &Service,
    ask: &Ask,
    record: &Record,
    arrivals: Vec<Moved>,
) -> Result<(Vec<MoveView>, Vec<MoveView>), Failure> {
    if arrivals.is_empty() {
        return Ok((Vec::new(), Vec::new()));
    }
    let described: HashMap<&VmKey, &cluster::Vm> =
        record.request.vms.iter().map(|vm| (&vm.key, vm)).collect();
    let requests = arrivals.iter().filter_map(|it| {
        let vm = (*described.get(&it.vm)?).clone();
        Some(PlaceRequest { pinned: Some(it.to.clone()), ..PlaceRequest::new(vm) })
    });
    let request = Request::PlaceBatch { requests: requests.collect(), atomic: false };
    let reply = service.carry_out(ask, &ask.actor, request).await?;
    let Outcome::Batch(placements) = reply.outcome else {
        return Err(unexpected(&reply.outcome));
    };
    let found = arrivals.iter().zip(&placements);
    let (placed, waiting): (Vec<_>, Vec<_>) = found.partition(|(_, it)| it.host.is_some());
    let views = |list: Vec<(&Moved, _)>| list.iter().map(|(it, _)| move_view(it)).collect();
    Ok((views(placed), views(waiting)))
}

/// The plan that was made of moves.
#[derive(Default)]
struct Planned {
    plan: Option<String>,
    waves: Vec<Vec<MoveView>>,
    blocked: Vec<MoveView>,
}

/// Makes an approved plan of the moves, for VMs that are still where they were.
async fn planned(service: &Service, ask: &Ask, moved: &[Moved]) -> Result<Planned, Failure> {
    if moved.is_empty() {
        return Ok(Planned::default());
    }
    let wanted = moved.iter().map(|it| WantedMove {
        vm: it.vm.clone(),
        from: it.from.clone(),
        to: it.to.clone(),
        gain: Some(it.gain),
    });
    let wanted = Wanted::Moves(PlanKind::Optimisation, wanted.collect());
    let terms = Terms { approved: true, ..Terms::default() };
    let draft = ordered(service, wanted, terms).await.map_err(|failure| {
        let mut moved_on = Failure::new(Code::CONFLICT, failure.problem.detail.clone());
        moved_on.problem.hint = "optimise again on the state as it is".into();
        moved_on
    })?;
    let view = |vm: &VmKey, from: &Name, to: &Name| MoveView {
        tenant: vm.tenant.clone(),
        vm_id: vm.id.clone(),
        from: Some(from.clone()),
        to: to.clone(),
    };
    let wave = |wave: &Vec<engine::Planned>| {
        wave.iter().map(|it| view(&it.vm, &it.from, &it.to)).collect()
    };
    let waves = draft.waves.iter().map(wave).collect();
    let blocked = draft.blocked.iter();
    let blocked = blocked.filter_map(|it| Some(view(&it.vm, &it.from, it.to.as_ref()?))).collect();
    let request = Request::CreatePlan(Box::new(draft));
    // The key stands for the placements.
    let reply = service.carry_out(&ask.without_key(), &ask.actor, request).await?;
    let Outcome::Plan { plan, .. } = reply.outcome else { return Err(unexpected(&reply.outcome)) };
    Ok(Planned { plan: Some(plan.to_string()), waves, blocked })
}

fn known(service: &Service, id: &str) -> Result<(Arc<Record>, Arc<Optimised>), Failure> {
    ended(service, id, 'f', Code::FRONT_NOT_FOUND)
}

/// An optimisation that has an answer, by the number in an id.
fn ended(
    service: &Service,
    id: &str,
    letter: char,
    code: Code,
) -> Result<(Arc<Record>, Arc<Optimised>), Failure> {
    let number = id.strip_prefix(letter).and_then(|digits| digits.parse().ok());
    let record = number.and_then(|number| service.jobs.get(number));
    let answered = record.as_ref().and_then(|record| record.now().answer);
    match (record, answered) {
        (Some(record), Some(answered)) => Ok((record, answered)),
        (Some(_), None) => Err(Failure::new(code, format!("{id} has no answer yet"))),
        (None, _) => Err(Failure::new(code, format!("{id:?} is not known"))),
    }
}

fn trade<'a>(answered: &'a Optimised, id: &str) -> Result<&'a Trade, Failure> {
    let none = || {
        let detail = format!("{id} was not made with mode pareto");
        Failure::new(Code::FRONT_NOT_FOUND, detail)
    };
    answered.front.as_ref().ok_or_else(none)
}
