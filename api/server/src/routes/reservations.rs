//! Reservations: held places that are confirmed or given back.

use super::{Answer, answer, unexpected};
use crate::app::Problems;
use crate::ask::{Ask, Dry, Id, Params};
use crate::failure::Failure;
use crate::service::Service;
use axum::extract::State as Handle;
use axum::http::StatusCode;
use cluster::VmKey;
use engine::{Outcome, Refusal, Request};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use wire::{Code, ReservationState, ReservationView, Word};

pub(super) fn routes() -> OpenApiRouter<Service> {
    OpenApiRouter::new().routes(routes!(get)).routes(routes!(confirm)).routes(routes!(release))
}

/// Read a reservation that is held.
#[utoipa::path(get, path = "/v1/reservations/{id}", tag = "reservations", params(("id" = String, Path, pattern = "^r[0-9]+$")),
    responses((status = 200, description = "The reservation", body = ReservationView), Problems))]
async fn get(Handle(service): Handle<Service>, Id(id): Id) -> Answer {
    let number = number(&id)?;
    let found = service.read(move |state| {
        let (_, entry) = state.reservation(number)?;
        let host = state.host(entry.host).map(|host| host.host.id.clone());
        Some(ReservationView {
            reservation_id: id,
            state: Word(ReservationState::Held),
            vm_id: Some(entry.vm.key.id.clone()),
            tenant: Some(entry.vm.key.tenant.clone()),
            host_id: host,
            expires_at_ms: entry.hold.map(|hold| hold.expires_ms),
            revision: state.revision().0,
        })
    });
    match found.await? {
        Some(view) => answer(StatusCode::OK, &view),
        None => Err(Refusal::UnknownReservation(number).into()),
    }
}

/// Make a held placement final.
#[utoipa::path(post, path = "/v1/reservations/{id}/confirm", tag = "reservations",
    params(("id" = String, Path, pattern = "^r[0-9]+$"), Dry),
    responses((status = 200, description = "Confirmed", body = ReservationView), Problems))]
async fn confirm(
    Handle(service): Handle<Service>,
    id: Id,
    Params(dry): Params<Dry>,
    ask: Ask,
) -> Answer {
    let request = Request::Confirm { reservation: number(&id.0)? };
    let ask = ask.dry(dry.dry_run);
    let reply = service.carry_out(&ask, &ask.actor, request).await?;
    let Outcome::Confirmed { vm } = reply.outcome else { return Err(unexpected(&reply.outcome)) };
    ended(id, ReservationState::Confirmed, Some(vm), reply.revision.0)
}

/// Give a held place back. Releasing again changes nothing.
#[utoipa::path(post, path = "/v1/reservations/{id}/release", tag = "reservations",
    params(("id" = String, Path, pattern = "^r[0-9]+$"), Dry),
    responses((status = 200, description = "Released", body = ReservationView), Problems))]
async fn release(
    Handle(service): Handle<Service>,
    id: Id,
    Params(dry): Params<Dry>,
    ask: Ask,
) -> Answer {
    let request = Request::Release { reservation: number(&id.0)? };
    let ask = ask.dry(dry.dry_run);
    let reply = service.carry_out(&ask, &ask.actor, request).await?;
    let Outcome::Released { vm } = reply.outcome else { return Err(unexpected(&reply.outcome)) };
    ended(id, ReservationState::Released, vm, reply.revision.0)
}

fn ended(id: Id, state: ReservationState, vm: Option<VmKey>, revision: u64) -> Answer {
    let (vm_id, tenant) = vm.map(|vm| (vm.id, vm.tenant)).unzip();
    let view = ReservationView {
        reservation_id: id.0,
        state: Word(state),
        vm_id,
        tenant,
        host_id: None,
        expires_at_ms: None,
        revision,
    };
    answer(StatusCode::OK, &view)
}

/// Reservations are named `r` and their number.
fn number(id: &str) -> Result<u64, Failure> {
    let number = id.strip_prefix('r').and_then(|digits| digits.parse().ok());
    let unknown =
        || Failure::new(Code::RESERVATION_NOT_FOUND, format!("there is no reservation {id:?}"));
    number.ok_or_else(unknown)
}
