//! Placements: one VM, many VMs, and the decisions that came of them.

use super::{Answer, answer, unexpected};
use crate::app::Problems;
use crate::ask::{Ask, Dry, Id, Params};
use crate::body::{Batch, Body};
use crate::failure::Failure;
use crate::service::Service;
use axum::extract::State as Handle;
use axum::http::StatusCode;
use cluster::{Decision, Dimensions, VmKey};
use engine::{DecisionId, Hold, Outcome, PlaceRequest, Placement, Request};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use wire::{
    BatchAnswer, BatchOutcome, BatchRequest, BatchSpec, Code, PlacementAnswer, PlacementSpec, Word,
};

pub(super) fn routes() -> OpenApiRouter<Service> {
    OpenApiRouter::new()
        .routes(routes!(place))
        .routes(routes!(place_batch))
        .routes(routes!(decision))
}

/// Find a host for a VM and commit it there.
///
/// With `hold_ttl_ms` the place is only held until it is confirmed. The same VM with the same
/// body again gets the same answer; with another body it is `vm_exists`.
#[utoipa::path(post, path = "/v1/placements", tag = "placements", params(Dry), request_body = PlacementSpec,
    responses((status = 201, description = "Placed", body = PlacementAnswer),
              (status = 200, description = "No host can take the VM, or a dry run", body = PlacementAnswer),
              Problems))]
async fn place(
    Handle(service): Handle<Service>,
    Params(dry): Params<Dry>,
    ask: Ask,
    Body(request): Body<wire::PlaceRequest>,
) -> Answer {
    let ask = ask.dry(dry.dry_run);
    let key = request.vm.key.clone();
    let wire::PlaceRequest { vm, strategy, hold_ttl_ms } = request;
    let request = PlaceRequest { strategy, hold_ttl_ms, ..PlaceRequest::new(vm) };
    let reply = service.carry_out(&ask, &key.tenant, Request::Place(request)).await?;
    let Outcome::Placement(placement) = reply.outcome else {
        return Err(unexpected(&reply.outcome));
    };
    let placed = placement.host.is_some() && !ask.dry_run;
    let status = if placed { StatusCode::CREATED } else { StatusCode::OK };
    answer(status, &shown(&placement, &key, &service.dimensions()))
}

/// Find hosts for many VMs, each with the ones before it in place.
#[utoipa::path(post, path = "/v1/placements:batch", tag = "placements", params(Dry), request_body = BatchSpec,
    responses((status = 200, description = "One decision per VM", body = BatchAnswer), Problems))]
async fn place_batch(
    Handle(service): Handle<Service>,
    Params(dry): Params<Dry>,
    ask: Ask,
    Batch(request): Batch<BatchRequest>,
) -> Answer {
    let ask = ask.dry(dry.dry_run);
    let BatchRequest { vms, atomic, strategy } = request;
    let keys: Vec<VmKey> = vms.iter().map(|vm| vm.key.clone()).collect();
    let requests = vms.into_iter().map(|vm| PlaceRequest { strategy, ..PlaceRequest::new(vm) });
    let request = Request::PlaceBatch { requests: requests.collect(), atomic };
    let tenant = keys.first().map_or_else(|| ask.actor.clone(), |key| key.tenant.clone());
    let reply = service.carry_out(&ask, &tenant, request).await?;
    let Outcome::Batch(placements) = reply.outcome else {
        return Err(unexpected(&reply.outcome));
    };
    let dimensions = service.dimensions();
    let decisions: Vec<PlacementAnswer> =
        placements.iter().zip(&keys).map(|(it, key)| shown(it, key, &dimensions)).collect();
    let placed = decisions.iter().filter(|decision| decision.host_id.is_some()).count();
    let rejected = decisions.len().saturating_sub(placed);
    let outcome = match (placed, rejected) {
        (_, 0) => BatchOutcome::Placed,
        (0, _) => BatchOutcome::Rejected,
        _ => BatchOutcome::Partial,
    };
    let policy_revision = decisions.first().map_or(0, |decision| decision.policy_revision);
    let batch = BatchAnswer {
        outcome: Word(outcome),
        placed: u32::try_from(placed).unwrap_or(u32::MAX),
        rejected: u32::try_from(rejected).unwrap_or(u32::MAX),
        decisions,
        revision: reply.revision.0,
        policy_revision,
    };
    answer(StatusCode::OK, &batch)
}

/// Read a decision as it was made.
#[utoipa::path(get, path = "/v1/decisions/{id}", tag = "placements", params(("id" = String, Path, pattern = "^d[0-9]+(-[0-9]+)?$")),
    responses((status = 200, description = "The decision", body = PlacementAnswer), Problems))]
async fn decision(Handle(service): Handle<Service>, Id(id): Id) -> Answer {
    let unknown =
        || Failure::new(Code::DECISION_NOT_FOUND, format!("decision {id:?} is not known"));
    let wanted = DecisionId::parse(&id).ok_or_else(unknown)?;
    let placing = service.recall(move |history| history.placing(wanted)).await?;
    let placing = placing.ok_or_else(unknown)?;
    let shown = decided(&placing.decision, wanted, placing.hold.as_ref(), &service.dimensions());
    answer(StatusCode::OK, &shown)
}

fn shown(placement: &Placement, vm: &VmKey, dimensions: &Dimensions) -> PlacementAnswer {
    match &placement.decision {
        Some(decision) => decided(decision, placement.id, placement.hold.as_ref(), dimensions),
        None => PlacementAnswer::forgotten(
            placement.id.to_string(),
            vm,
            placement.host.clone(),
            placement.id.revision,
            reservation(placement.hold.as_ref()),
        ),
    }
}

fn decided(
    decision: &Decision,
    id: DecisionId,
    hold: Option<&Hold>,
    dimensions: &Dimensions,
) -> PlacementAnswer {
    PlacementAnswer::new(decision, id.to_string(), id.revision, reservation(hold), dimensions)
}

fn reservation(hold: Option<&Hold>) -> Option<String> {
    hold.map(|hold| format!("r{}", hold.reservation))
}
