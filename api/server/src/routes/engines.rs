//! Which engines there are, what each is for, and what it was measured to do.

use super::{Answer, answer};
use crate::app::Problems;
use crate::optimisations::method;
use crate::service::Service;
use axum::http::StatusCode;
use serde::Deserialize;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use wire::{EngineList, EngineMeasureView, EngineName, EngineView, Word};

/// What `novaplace bench engines --json` printed, as it was printed.
const MEASURED: &str = include_str!("engines.json");

pub(super) fn routes() -> OpenApiRouter<Service> {
    OpenApiRouter::new().routes(routes!(engines))
}

/// List the engines, their complexity, when to use them, and how they did on problems of several
/// sizes.
#[utoipa::path(get, path = "/v1/engines", tag = "optimisation",
    responses((status = 200, description = "Engines", body = EngineList), Problems))]
async fn engines() -> Answer {
    answer(StatusCode::OK, &list())
}

#[derive(Deserialize)]
struct Measured {
    rows: Vec<Row>,
}

#[derive(Deserialize)]
struct Row {
    engine: String,
    #[serde(flatten)]
    measured: EngineMeasureView,
}

fn list() -> EngineList {
    let rows = serde_json::from_str::<Measured>(MEASURED).map(|table| table.rows);
    let rows = rows.unwrap_or_default();
    let engine = |name: EngineName| {
        let facts = method(name).facts();
        let own = rows.iter().filter(|row| row.engine == method(name).name());
        let measured = own.map(|row| row.measured.clone());
        EngineView {
            name: Word(name),
            step: facts.step.to_owned(),
            complexity: facts.complexity.to_owned(),
            when: facts.when.to_owned(),
            proves: facts.proves,
            fronts: facts.fronts,
            measured: measured.collect(),
        }
    };
    EngineList {
        engines: EngineName::ALL.into_iter().map(engine).collect(),
        measured_by: "novaplace bench engines --json".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_engine_was_measured() {
        for engine in list().engines {
            assert!(!engine.measured.is_empty(), "{:?}", engine.name);
        }
    }
}
