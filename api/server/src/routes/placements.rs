//! Placements: one VM, many VMs, and the decisions that came of them.

use super::{Answer, answer, unexpected};
use crate::app::Problems;
use crate::ask::{Ask, Dry, Id, Params};
use crate::body::{Batch, Body};
use crate::failure::Failure;
use crate::service::Service;
use axum::extract::State as Handle;
use axum::http::StatusCode;
use cluster::{Bindings, Decision, Dimensions, Name, Vm, VmKey};
use engine::{DecisionId, Hold, Outcome, PlaceRequest, Placement, Request, Tables};
use optimise::timed;
use solver::assignment::{Budget, Deadline};
use solver::joint::{Joint, best_order, keeps_order};
use std::sync::Arc;
use std::time::{Duration, Instant};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use wire::{
    BatchAnswer, BatchOutcome, BatchRequest, BatchSpec, Code, JointView, PlacementAnswer,
    PlacementSpec, Word,
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
    let mut placed = [shown(&placement, &key, &service.dimensions())];
    link_scores(&service, [placement.decision.as_deref()].into_iter(), &mut placed).await?;
    let [placed] = placed;
    answer(status, &placed)
}

/// Says how near the GPUs are that VMs were given, by what their hosts report now.
async fn link_scores(
    service: &Service,
    decisions: impl Iterator<Item = Option<&Decision>>,
    shown: &mut [PlacementAnswer],
) -> Result<(), Failure> {
    let several = |decision: &Decision| {
        let bindings = decision.bindings().filter(|bindings| bindings.gpus.len() > 1)?;
        Some((decision.host()?.clone(), Arc::clone(bindings)))
    };
    let bound: Vec<_> = decisions.map(|decision| decision.and_then(several)).collect();
    if bound.iter().all(Option::is_none) {
        return Ok(());
    }
    let links = service.look(move |core| {
        let link = |(host, bindings): (Name, Arc<Bindings>)| {
            let (_, entry) = core.state().find_host(&host)?;
            bindings.gpu_link(&entry.host.hardware)
        };
        bound.into_iter().map(|bound| bound.and_then(link)).collect::<Vec<_>>()
    });
    for (shown, link) in shown.iter_mut().zip(links.await?) {
        shown.link_score = link;
    }
    Ok(())
}

/// Find hosts for many VMs, each with the ones before it in place.
///
/// With `joint_ms` they are placed in the order in which most of them get a host, and good ones.
#[utoipa::path(post, path = "/v1/placements:batch", tag = "placements", params(Dry), request_body = BatchSpec,
    responses((status = 200, description = "One decision per VM", body = BatchAnswer), Problems))]
async fn place_batch(
    Handle(service): Handle<Service>,
    Params(dry): Params<Dry>,
    ask: Ask,
    Batch(request): Batch<BatchRequest>,
) -> Answer {
    let ask = ask.dry(dry.dry_run);
    let BatchRequest { vms, atomic, strategy, joint_ms } = request;
    let keys: Vec<VmKey> = vms.iter().map(|vm| vm.key.clone()).collect();
    let requests = vms.into_iter().map(|vm| PlaceRequest { strategy, ..PlaceRequest::new(vm) });
    let mut requests: Vec<PlaceRequest> = requests.collect();
    let order = jointly(&service, &ask, &requests, joint_ms).await?;
    if let Some(joint) = &order {
        requests = joint.order.iter().filter_map(|&row| requests.get(row).cloned()).collect();
    }
    let request = Request::PlaceBatch { requests, atomic };
    let tenant = keys.first().map_or_else(|| ask.actor.clone(), |key| key.tenant.clone());
    let reply = service.carry_out(&ask, &tenant, request).await?;
    let Outcome::Batch(mut placements) = reply.outcome else {
        return Err(unexpected(&reply.outcome));
    };
    if let Some(joint) = &order {
        // Back to the order of the request.
        let mut placed: Vec<(usize, Placement)> =
            joint.order.iter().copied().zip(placements).collect();
        placed.sort_unstable_by_key(|(row, _)| *row);
        placements = placed.into_iter().map(|(_, placement)| placement).collect();
    }
    let dimensions = service.dimensions();
    let mut decisions: Vec<PlacementAnswer> =
        placements.iter().zip(&keys).map(|(it, key)| shown(it, key, &dimensions)).collect();
    let made = placements.iter().map(|placement| placement.decision.as_deref());
    link_scores(&service, made, &mut decisions).await?;
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
        joint: order.as_ref().map(joint_view),
    };
    answer(StatusCode::OK, &batch)
}

/// The order in which VMs are best placed, if there is time to look for one.
async fn jointly(
    service: &Service,
    ask: &Ask,
    requests: &[PlaceRequest],
    joint_ms: u32,
) -> Result<Option<Joint>, Failure> {
    let allowed = ask.time_left().checked_div(4).unwrap_or_default();
    let longest = Duration::from_millis(joint_ms.into()).min(allowed);
    if requests.len() < 2 || longest.is_zero() {
        return Ok(None);
    }
    let vms: Vec<Arc<Vm>> = requests.iter().map(|request| Arc::clone(&request.vm)).collect();
    let strategy = requests.first().and_then(|request| request.strategy);
    let study = Arc::clone(&service.study);
    let found = service.beside(move |writer| {
        let started = Instant::now();
        study.ask(writer, |tables| {
            let mut how = tables.how();
            how.strategy = strategy.unwrap_or(how.strategy);
            if !keeps_order(how.strategy) || vms.iter().any(|vm| tables.find_vm(&vm.key).is_some())
            {
                return Ok(None);
            }
            let deadline = Arc::new(Deadline::default());
            let mut budget = Budget::until(Arc::clone(&deadline));
            let vms: Vec<&Vm> = vms.iter().map(Arc::as_ref).collect();
            let Tables { problem, scratch, .. } = tables;
            let joint = timed(
                &deadline,
                (started, longest),
                |_| (),
                || best_order(problem, scratch, &vms, &how, 1, &mut budget),
            );
            let failed = |_| Failure::new(Code::INTERNAL, "the search for an order panicked");
            joint.map(Some).map_err(failed)
        })
    });
    found.await
}

fn joint_view(joint: &Joint) -> JointView {
    let count = |placed: usize| u32::try_from(placed).unwrap_or(u32::MAX);
    JointView {
        placed: count(joint.served.placed),
        score: joint.served.score,
        placed_as_given: count(joint.as_given.placed),
        score_as_given: joint.as_given.score,
        steps: joint.steps,
    }
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
    let dimensions = service.dimensions();
    let mut shown = [decided(&placing.decision, wanted, placing.hold.as_ref(), &dimensions)];
    link_scores(&service, [Some(&placing.decision)].into_iter(), &mut shown).await?;
    let [shown] = shown;
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
