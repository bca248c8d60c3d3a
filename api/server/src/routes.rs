//! One file per resource.

mod advice;
mod bulk;
mod cluster_wide;
mod constraints;
mod engines;
mod events;
mod explain;
mod fronts;
mod health;
mod hosts;
mod moving;
pub(crate) mod novacron;
mod optimisations;
mod page;
mod placements;
mod plans;
mod policies;
mod reservations;
mod slots;
mod validate;
mod vms;
mod weights;

pub(crate) use health::HealthView;

use crate::failure::Failure;
use crate::service::Service;
use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa_axum::router::OpenApiRouter;

pub(crate) fn all() -> OpenApiRouter<Service> {
    OpenApiRouter::new()
        .merge(hosts::routes())
        .merge(placements::routes())
        .merge(reservations::routes())
        .merge(vms::routes())
        .merge(explain::routes())
        .merge(validate::routes())
        .merge(slots::routes())
        .merge(cluster_wide::routes())
        .merge(weights::routes())
        .merge(optimisations::routes())
        .merge(fronts::routes())
        .merge(engines::routes())
        .merge(plans::routes())
        .merge(policies::routes())
        .merge(constraints::routes())
        .merge(events::routes())
        .merge(health::routes())
        .merge(advice::routes())
        .merge(novacron::routes())
}

type Answer = Result<Response, Failure>;

/// A JSON answer.
fn answer(status: StatusCode, body: &impl Serialize) -> Answer {
    Ok((status, Json(body)).into_response())
}

/// A JSON answer with its generation as `ETag`.
fn tagged(status: StatusCode, generation: u64, body: &impl Serialize) -> Answer {
    let mut response = (status, Json(body)).into_response();
    if let Ok(tag) = HeaderValue::try_from(format!("\"{generation}\"")) {
        response.headers_mut().insert(header::ETAG, tag);
    }
    Ok(response)
}

/// Done, and there is nothing to say about it.
fn nothing() -> Answer {
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// The engine's answer does not belong to the request: a mistake in here.
fn unexpected(outcome: &engine::Outcome) -> Failure {
    Failure::new(wire::Code::INTERNAL, format!("unexpected outcome {outcome:?}"))
}
