//! Fronts: the trade-offs that an optimisation found, the point for some weights, and carrying a
//! point out.

use super::{Answer, answer, unexpected};
use crate::app::Problems;
use crate::ask::{Ask, Id, Params};
use crate::failure::Failure;
use crate::optimisations::{Record, move_view};
use crate::service::Service;
use axum::extract::{Path, State as Handle};
use axum::http::StatusCode;
use cluster::{Constraint, GoalKind, HostIx, VmKey};
use engine::{Outcome, PlaceRequest, Request, Tables};
use optimise::{Answer as Optimised, FrontPoint, Moved, Trade};
use planner::{Caps, Move, Ordered, Placed};
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
/// VMs to come are placed at once where there is room for them. Migrations are the core's to make:
/// they come back as waves, each of which is safe whatever of it is done. Placements that need
/// room which the moves make wait for a second call.
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
    let study = Arc::clone(&service.study);
    let revision = service.read(|state| state.revision().0).await?;
    let ordered = service.beside(move |writer| study.ask(writer, |tables| order(tables, &moves)));
    let (waves, blocked) = ordered.await?;
    let applied = AppliedView { placed, waiting, waves, blocked, revision };
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

type Waves = (Vec<Vec<MoveView>>, Vec<MoveView>);

/// Moves in waves, for VMs that are still where they were.
fn order(tables: &mut Tables, moved: &[Moved]) -> Result<Waves, Failure> {
    if moved.is_empty() {
        return Ok(Waves::default());
    }
    let entries: Vec<_> = tables.vms().map(Arc::clone).collect();
    let rows: HashMap<&VmKey, usize> =
        entries.iter().enumerate().map(|(row, entry)| (&entry.vm.key, row)).collect();
    let hosts: HashMap<_, _> = tables
        .hosts()
        .map(|(ix, entry)| (entry.host.id.clone(), (ix, entry.effective_host())))
        .collect();
    let by_row: HashMap<HostIx, _> =
        hosts.values().map(|(ix, host)| (*ix, host.as_ref())).collect();
    let mut wanted = Vec::new();
    for it in moved {
        let row = rows.get(&it.vm).copied();
        let from = it.from.as_ref().and_then(|from| hosts.get(from)).map(|(ix, _)| *ix);
        let to = hosts.get(&it.to).map(|(ix, _)| *ix);
        let here = row.and_then(|row| entries.get(row)).map(|entry| entry.host);
        match (row, to) {
            (Some(vm), Some(to)) if here == from || here == Some(to) => {
                wanted.push(Move { vm, to })
            }
            _ => {
                let detail = format!("VM {} or host {} is not where it was", it.vm, it.to);
                let mut failure = Failure::new(Code::CONFLICT, detail);
                failure.problem.hint = "optimise again on the state as it is".into();
                return Err(failure);
            }
        }
    }
    let fleet: Vec<Placed<'_>> = entries
        .iter()
        .map(|entry| Placed {
            vm: &entry.vm,
            host: entry.host,
            committed: entry.committed.clone(),
            bindings: entry.bindings.clone(),
        })
        .collect();
    let constraints: Vec<Arc<Constraint>> = tables.constraints().to_vec();
    let constraints: Vec<&Constraint> = constraints.iter().map(Arc::as_ref).collect();
    let host = |ix: HostIx| by_row.get(&ix).copied();
    let Ordered { waves, blocked } =
        planner::order(&mut tables.problem, &host, &fleet, &constraints, &wanted, &Caps::default());
    let named = |ix: HostIx| by_row.get(&ix).map(|host| host.id.clone());
    let view = |vm: usize, from: Option<HostIx>, to: HostIx| {
        let key = entries.get(vm)?.vm.key.clone();
        let from = from.and_then(named);
        Some(MoveView { tenant: key.tenant, vm_id: key.id, from, to: named(to)? })
    };
    let wave = |wave: &planner::Wave| {
        wave.iter().filter_map(|step| view(step.vm, Some(step.from), step.to)).collect()
    };
    let blocked = blocked
        .iter()
        .filter_map(|it| view(it.vm, entries.get(it.vm).map(|entry| entry.host), it.to));
    Ok((waves.iter().map(wave).collect(), blocked.collect()))
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
