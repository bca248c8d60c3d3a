//! `PATCH /v1/vms/{id}`: another size for a VM where it is, or what it would take.

use crate::app::Problems;
use crate::ask::{Ask, Id, OfTenant, Params};
use crate::body::Body;
use crate::failure::Failure;
use crate::routes::moving::moving;
use crate::routes::{Answer, tagged, unexpected};
use crate::service::Service;
use axum::extract::State as Handle;
use axum::http::StatusCode;
use cluster::{Amounts, Dim, Generation, Name, Revision, Verdict, VmKey};
use engine::{Command, Outcome, PlaceRequest, Refusal, Request, demand_on};
use wire::{
    AlternativeView, NameSchema, Quantities, ResizeAnswer, ResizeOutcome, ResizeRequest,
    ResizeSpec, Word,
};

/// Resize a VM where it is, or learn what it would take.
///
/// Dimensions that are not named stay as they are. What does not fit is not done: the answer says
/// what the host lacks, and which hosts could take the VM at the size that was asked for.
#[utoipa::path(patch, path = "/v1/vms/{id}", tag = "vms", params(("id" = NameSchema, Path), OfTenant),
    request_body = ResizeSpec,
    responses((status = 200, description = "Resized, or why it does not fit", body = ResizeAnswer), Problems))]
pub(super) async fn resize(
    Handle(service): Handle<Service>,
    id: Id,
    Params(of): Params<OfTenant>,
    ask: Ask,
    Body(ResizeRequest { changes }): Body<ResizeRequest>,
) -> Answer {
    let (key, ask) = (of.key(&id)?, ask.dry(of.dry_run));
    let dimensions = service.dimensions();
    let if_generation = ask.generation();
    let request = Request::Resize { vm: key.clone(), changes: changes.clone(), if_generation };
    let carried_out = service.carry_out(&ask, &key.tenant, request).await;
    let seen = look(&service, key.clone(), changes).await?;
    let answer = ResizeAnswer {
        outcome: Word(ResizeOutcome::Resized),
        vm_id: key.id.clone(),
        tenant: key.tenant.clone(),
        host_id: seen.host.clone(),
        demand: Quantities::sparse(&seen.asked, &dimensions),
        shortfall: Quantities::default(),
        alternatives: Vec::new(),
        generation: seen.generation.0,
        revision: seen.revision.0,
    };
    let answer = match carried_out {
        Ok(reply) => {
            let Outcome::Resized { generation } = reply.outcome else {
                return Err(unexpected(&reply.outcome));
            };
            let (generation, revision) = (generation.0, reply.revision.0);
            let answer = ResizeAnswer { generation, revision, ..answer };
            match logged(&service, &key, reply.revision).await?.filter(|_| !ask.dry_run) {
                // Since a request was first answered, others may have changed the VM.
                Some(demand) => {
                    ResizeAnswer { demand: Quantities::sparse(&demand, &dimensions), ..answer }
                }
                None => answer,
            }
        }
        Err(failure) if failure.problem.code == wire::Code::DOES_NOT_FIT.code => ResizeAnswer {
            outcome: Word(ResizeOutcome::DoesNotFit),
            demand: Quantities::sparse(&seen.demand, &dimensions),
            shortfall: Quantities::sparse(&seen.shortfall, &dimensions),
            alternatives: elsewhere(&service, &ask, key, seen.asked).await?,
            ..answer
        },
        Err(failure) => return Err(failure),
    };
    tagged(StatusCode::OK, answer.generation, &answer)
}

/// What a resize needs to know of a VM.
struct Seen {
    demand: Amounts,
    /// The demand with the changes made.
    asked: Amounts,
    /// What the host lacks for that.
    shortfall: Amounts,
    host: Name,
    generation: Generation,
    revision: Revision,
}

async fn look(service: &Service, key: VmKey, changes: Vec<(Dim, u64)>) -> Result<Seen, Failure> {
    let wanted = key.clone();
    let found = service.read(move |state| {
        let (_, entry) = state.find_vm(&wanted)?;
        let host = state.host(entry.host)?;
        let mut vm = entry.vm.as_ref().clone();
        let demand = std::mem::take(&mut vm.demand);
        vm.demand = demand.changed(&changes);
        let room = state.room_for(host, entry);
        let mut shortfall = Amounts::zero();
        for (dim, amount) in demand_on(&vm, &host.host).iter() {
            // What does not grow is not asked for.
            if amount > entry.committed.get(dim) {
                shortfall.set(dim, amount.saturating_sub(room.get(dim)));
            }
        }
        Some(Seen {
            demand,
            asked: vm.demand,
            shortfall,
            host: host.host.id.clone(),
            generation: entry.generation,
            revision: state.revision(),
        })
    });
    found.await?.ok_or_else(|| Refusal::UnknownVm(key).into())
}

/// The demand that the command at a revision gave the VM, if it is one of its.
async fn logged(
    service: &Service,
    key: &VmKey,
    revision: Revision,
) -> Result<Option<Amounts>, Failure> {
    let entry = service.recall(move |history| history.entry(revision)).await?;
    Ok(entry.and_then(|entry| match entry.command {
        Command::Resize(resizing) if resizing.vm == *key => Some(resizing.demand),
        _ => None,
    }))
}

/// Hosts that could take the VM with this demand, best first.
async fn elsewhere(
    service: &Service,
    ask: &Ask,
    key: VmKey,
    demand: Amounts,
) -> Result<Vec<AlternativeView>, Failure> {
    let (tenant, ask) = (key.tenant.clone(), ask.clone().dry(true));
    let moving = service.read(move |state| moving(state, &key)).await?;
    let Some((mut vm, _)) = moving else { return Ok(Vec::new()) };
    vm.demand = demand;
    let request = Request::Place(PlaceRequest::new(vm));
    let reply = service.carry_out(&ask, &tenant, request).await?;
    let Outcome::Placement(placement) = reply.outcome else {
        return Err(unexpected(&reply.outcome));
    };
    let Some(decision) = placement.decision else { return Ok(Vec::new()) };
    let best = match &decision.verdict {
        Verdict::Placed { host, score, .. } => {
            Some(AlternativeView { host_id: host.clone(), score: *score })
        }
        Verdict::Rejected => None,
    };
    Ok(best.into_iter().chain(decision.alternatives.iter().map(AlternativeView::from)).collect())
}
