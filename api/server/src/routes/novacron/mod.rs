//! NovaCron's own routes: its paths, its keys, its errors.
//!
//! Translates between NovaCron's words and the engine's, which are `wire::novacron`'s. Failures
//! are the same as on `/v1`; the envelope writes those of these paths in NovaCron's form.

mod advice;
mod advise;
mod ai;
mod evaluate;
mod fleet;
mod inventory;
mod migration;
mod news;
mod nodes;
mod orchestration;
mod policies;
mod policy_questions;
mod prepare;
mod rules;
mod samples;
mod schedule;
mod simulations;
mod stats;

pub(crate) use samples::Samples;

use crate::failure::Failure;
use crate::service::Service;
use std::collections::BTreeMap;
use utoipa::openapi::{ContentBuilder, Ref, RefOr, Response, ResponseBuilder};
use utoipa::{IntoResponses, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use wire::Fault;

pub(super) fn routes() -> OpenApiRouter<Service> {
    OpenApiRouter::new()
        .merge(nodes::routes())
        .merge(inventory::routes())
        .merge(news::routes())
        .merge(schedule::routes())
        .merge(orchestration::routes())
        .merge(ai::routes())
        .merge(policies::routes())
        .merge(policy_questions::routes())
        .merge(simulations::routes())
}

/// Where NovaCron's routes begin.
const PREFIXES: [&str; 6] =
    ["/scheduler/", "/api/", "/predict/", "/optimize/", "/analyze/", "/detect/"];

/// Whether failures at this path are written in NovaCron's form.
pub(crate) fn speaks(path: &str) -> bool {
    PREFIXES.iter().any(|prefix| path.starts_with(prefix))
}

/// A body that makes no sense, however well it is written.
fn senseless(fault: Fault) -> Failure {
    Failure::faults(vec![fault])
}

/// The answers that any of NovaCron's operations may give instead of its own.
pub(super) struct Failures;

impl IntoResponses for Failures {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        const STATUSES: [(u16, &str); 13] = [
            (400, "`invalid_argument`"),
            (403, "`forbidden`"),
            (404, "`not_found`"),
            (405, "`method_not_allowed`"),
            (408, "`request_timeout`"),
            (409, "`conflict`, `INSUFFICIENT_CAPACITY`, `PLACEMENT_UNAVAILABLE`"),
            (410, "`conflict`"),
            (413, "`invalid_argument`"),
            (415, "`invalid_argument`"),
            (422, "`validation_failed`"),
            (500, "`internal`"),
            (503, "`overloaded`, `not_ready`, `outcome_unknown`"),
            (504, "`deadline_exceeded`"),
        ];
        let response = |codes: &str| -> RefOr<Response> {
            let failure = Ref::from_schema_name(wire::novacron::Failure::name());
            let content = ContentBuilder::new().schema(Some(failure)).build();
            ResponseBuilder::new().description(codes).content("application/json", content).into()
        };
        STATUSES.iter().map(|(status, codes)| (status.to_string(), response(codes))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_novacrons_paths_have_its_errors() {
        for path in ["/scheduler/nodes", "/api/orchestration/placement", "/detect/anomaly"] {
            assert!(speaks(path), "{path}");
        }
        for path in ["/v1/hosts", "/", "/openapi.json", "/scheduler-of-mine", "/health"] {
            assert!(!speaks(path), "{path}");
        }
    }
}
