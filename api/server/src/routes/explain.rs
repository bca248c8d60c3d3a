//! Why a VM goes nowhere, or not there, and what would help.

use super::{Answer, answer};
use crate::app::Problems;
use crate::ask::Ask;
use crate::body::Body;
use crate::explain::explained;
use crate::service::Service;
use axum::extract::State as Handle;
use axum::http::StatusCode;
use std::sync::Arc;
use std::time::Instant;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use wire::{ExplainRequest, ExplainSpec, ExplanationView};

pub(super) fn routes() -> OpenApiRouter<Service> {
    OpenApiRouter::new().routes(routes!(explain))
}

/// Say what is in a VM's way, everywhere or on one host, and the least change that would help.
///
/// Changes nothing and holds up nobody. For a placed VM it also says how its host compares with
/// the next best. What changes cost, and in which sense the change is the least, is written in
/// `backend/ARCHITECTURE.md`, "Explanations".
#[utoipa::path(post, path = "/v1/explain", tag = "placements", request_body = ExplainSpec,
    responses((status = 200, description = "What is in the way, if anything", body = ExplanationView),
              Problems))]
async fn explain(
    Handle(service): Handle<Service>,
    ask: Ask,
    Body(request): Body<ExplainRequest>,
) -> Answer {
    let now = Instant::now();
    let deadline = now.checked_add(ask.time_left()).unwrap_or(now);
    let study = Arc::clone(&service.study);
    let told = service
        .beside(move |writer| study.ask(writer, |tables| explained(tables, &request, deadline)));
    answer(StatusCode::OK, &told.await?)
}
