//! Whether the process lives, whether it takes requests, and what it has counted.

use super::Answer;
use crate::app::Problems;
use crate::failure::Failure;
use crate::metrics::Sizes;
use crate::service::Service;
use axum::Json;
use axum::extract::State as Handle;
use axum::http::header;
use axum::response::IntoResponse;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use wire::Code;

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

pub(super) fn routes() -> OpenApiRouter<Service> {
    OpenApiRouter::new()
        .routes(routes!(health))
        .routes(routes!(healthz))
        .routes(routes!(ready))
        .routes(routes!(metrics))
}

/// How the service is.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct HealthView {
    /// `ok`, or `starting` while the state is being recovered.
    pub(crate) status: &'static str,
    /// The newest revision that the log has.
    pub(crate) revision: u64,
}

/// Whether the process lives.
#[utoipa::path(get, path = "/health", tag = "service",
    responses((status = 200, description = "It does", body = HealthView), Problems))]
async fn health(Handle(service): Handle<Service>) -> Answer {
    Ok(view(&service).into_response())
}

/// The same as `/health`, under the name that Kubernetes uses.
#[utoipa::path(get, path = "/healthz", tag = "service",
    responses((status = 200, description = "It does", body = HealthView), Problems))]
async fn healthz(Handle(service): Handle<Service>) -> Answer {
    Ok(view(&service).into_response())
}

/// Whether the state is recovered and verified and requests are taken.
#[utoipa::path(get, path = "/ready", tag = "service",
    responses((status = 200, description = "They are", body = HealthView), Problems))]
async fn ready(Handle(service): Handle<Service>) -> Answer {
    if !service.is_alive() {
        return Err(Failure::new(Code::NOT_READY, "the log has stopped"));
    }
    Ok(view(&service).into_response())
}

/// Read counters, gauges and histograms in the format that Prometheus scrapes.
#[utoipa::path(get, path = "/metrics", tag = "service",
    responses((status = 200, description = "Metrics", body = String, content_type = OPEN_METRICS), Problems))]
async fn metrics(Handle(service): Handle<Service>) -> Answer {
    let sizes = service.look(Sizes::of).await?;
    let rejected = service.policy_files().rejected_count();
    let shown = service.metrics.shown(&sizes, service.writer().waiting(), rejected);
    Ok(([(header::CONTENT_TYPE, OPEN_METRICS)], shown).into_response())
}

fn view(service: &Service) -> Json<HealthView> {
    let revision = service.durable().borrow().0;
    Json(HealthView { status: "ok", revision })
}
