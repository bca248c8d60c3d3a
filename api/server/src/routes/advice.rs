//! Advice: where the service would have chosen otherwise.

use super::{Answer, answer};
use crate::app::Problems;
use crate::service::Service;
use axum::extract::State as Handle;
use axum::http::StatusCode;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use wire::AdviceView;

pub(super) fn routes() -> OpenApiRouter<Service> {
    OpenApiRouter::new().routes(routes!(read))
}

/// Read where the service would have placed VMs otherwise, and what that would have gained.
///
/// Filled in when the service runs with `--advise`.
#[utoipa::path(get, path = "/v1/advice", tag = "advice",
    responses((status = 200, description = "Sums and the newest comparisons", body = AdviceView), Problems))]
async fn read(Handle(service): Handle<Service>) -> Answer {
    answer(StatusCode::OK, &service.advice.shown(service.options.advise))
}
