//! Optimisations: many VMs at once, by what matters, within a limit.

use super::{Answer, answer, nothing};
use crate::app::Problems;
use crate::ask::Id;
use crate::body::Batch;
use crate::failure::Failure;
use crate::optimisations::Record;
use crate::service::Service;
use axum::extract::State as Handle;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::IntoResponse;
use axum::response::sse::{Event as Sent, KeepAlive, Sse};
use futures_util::stream::{self, Stream};
use std::convert::Infallible;
use std::sync::Arc;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use wire::{
    Code, OptimisationList, OptimisationRequest, OptimisationSpec, OptimisationView, StreamedEvent,
};

pub(super) fn routes() -> OpenApiRouter<Service> {
    OpenApiRouter::new()
        .routes(routes!(list, optimise))
        .routes(routes!(optimisation, cancel))
        .routes(routes!(follow))
}

/// Look for better hosts for many VMs at once. Nothing is changed by it.
///
/// Answers at once; the search goes on beside placing until its budget is spent, and keeps the best
/// answer it has found at every moment.
#[utoipa::path(post, path = "/v1/optimisations", tag = "optimisation", request_body = OptimisationSpec,
    responses((status = 202, description = "Taken in", body = OptimisationView), Problems))]
async fn optimise(
    Handle(service): Handle<Service>,
    Batch(request): Batch<OptimisationRequest>,
) -> Answer {
    let record = service.jobs.add(&service, request)?;
    let view = record.view();
    let mut response = answer(StatusCode::ACCEPTED, &view)?;
    if let Ok(place) = HeaderValue::try_from(format!("/v1/optimisations/{}", view.id)) {
        response.headers_mut().insert(header::LOCATION, place);
    }
    Ok(response)
}

/// List the optimisations that are remembered, newest first: the last 64.
#[utoipa::path(get, path = "/v1/optimisations", tag = "optimisation",
    responses((status = 200, description = "Without placements and moves", body = OptimisationList), Problems))]
async fn list(Handle(service): Handle<Service>) -> Answer {
    let brief = |record: &Arc<Record>| OptimisationView {
        placements: Vec::new(),
        moves: Vec::new(),
        ..record.view()
    };
    let items = service.jobs.list().iter().map(brief).collect();
    answer(StatusCode::OK, &OptimisationList { items })
}

/// Read how far an optimisation is and what it found.
#[utoipa::path(get, path = "/v1/optimisations/{id}", tag = "optimisation",
    params(("id" = String, Path, pattern = "^o[0-9]{1,18}$")),
    responses((status = 200, description = "As it is now", body = OptimisationView), Problems))]
async fn optimisation(Handle(service): Handle<Service>, Id(id): Id) -> Answer {
    answer(StatusCode::OK, &known(&service, &id)?.view())
}

/// Stop an optimisation. What it has found until then can still be read.
#[utoipa::path(delete, path = "/v1/optimisations/{id}", tag = "optimisation",
    params(("id" = String, Path, pattern = "^o[0-9]{1,18}$")),
    responses((status = 204, description = "Stopped, or over already"), Problems))]
async fn cancel(Handle(service): Handle<Service>, Id(id): Id) -> Answer {
    let record = known(&service, &id)?;
    service.jobs.cancel(&record);
    let mut changes = record.changes();
    while !record.has_ended() && changes.changed().await.is_ok() {}
    nothing()
}

/// Follow an optimisation: better answers as they are found, then the end.
#[utoipa::path(get, path = "/v1/optimisations/{id}/events", tag = "optimisation",
    params(("id" = String, Path, pattern = "^o[0-9]{1,18}$")),
    responses((status = 200, description = "Events `incumbent` and `end`",
               content((StreamedEvent = "text/event-stream"))), Problems))]
async fn follow(Handle(service): Handle<Service>, Id(id): Id) -> Answer {
    let record = known(&service, &id)?;
    Ok(Sse::new(told(record)).keep_alive(KeepAlive::default()).into_response())
}

fn told(record: Arc<Record>) -> impl Stream<Item = Result<Sent, Infallible>> {
    let changes = record.changes();
    let start = Some((record, changes, None::<u64>));
    stream::unfold(start, |state| async move {
        let (record, mut changes, last) = state?;
        loop {
            changes.mark_unchanged();
            let now = record.now();
            let newer = now.incumbents.iter().find(|it| last.is_none_or(|last| it.at_ms > last));
            if let Some(it) = newer {
                let (event, at) = (event("incumbent", it.at_ms, it), Some(it.at_ms));
                return Some((Ok(event), Some((record, changes, at))));
            }
            if record.has_ended() {
                let view =
                    OptimisationView { placements: Vec::new(), moves: Vec::new(), ..record.view() };
                return Some((Ok(event("end", view.elapsed_ms, &view)), None));
            }
            changes.changed().await.ok()?;
        }
    })
}

fn event(kind: &str, id: u64, data: &impl serde::Serialize) -> Sent {
    let data = serde_json::to_string(data).unwrap_or_default();
    Sent::default().id(id.to_string()).event(kind).data(data)
}

fn known(service: &Service, id: &str) -> Result<Arc<Record>, Failure> {
    let number = id.strip_prefix('o').and_then(|digits| digits.parse().ok());
    let unknown =
        || Failure::new(Code::OPTIMISATION_NOT_FOUND, format!("optimisation {id:?} is not known"));
    number.and_then(|number| service.jobs.get(number)).ok_or_else(unknown)
}
