//! Simulations: run one, read those that are kept, compare two.

use super::super::{Answer, answer};
use super::Failures;
use crate::ask::{Id, Params};
use crate::body::{Sent, aside};
use crate::failure::Failure;
use crate::policies::{refused, simulate};
use crate::service::Service;
use axum::extract::State as Handle;
use axum::http::StatusCode;
use engine::{Refusal, State};
use policy::{ActiveSet, Configuration, EditError};
use serde::Deserialize;
use solver::How;
use std::sync::Arc;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use wire::novacron::{SimulationComparison, SimulationRequest, SimulationResult, Time};
use wire::{Code, NameSchema};

pub(super) fn routes() -> OpenApiRouter<Service> {
    OpenApiRouter::new().routes(routes!(run, list)).routes(routes!(compare)).routes(routes!(get))
}

/// Place VMs on nodes that need not exist. Nothing is changed; the last 32 results are kept in
/// memory.
#[utoipa::path(post, path = "/scheduler/simulations", tag = "novacron", request_body = SimulationRequest,
    responses((status = 201, description = "What came of it", body = SimulationResult), Failures))]
async fn run(Handle(service): Handle<Service>, Sent(asked): Sent<SimulationRequest>) -> Answer {
    let timestamp = Time::from_unix_millis(service.now_ms());
    let (asked, policies, constraints, how) = service
        .read(move |state| {
            let policies = chosen(state, &asked);
            let policy = state.policy();
            let how =
                How { weights: policy.weights, strategy: policy.strategy, round_robin_after: None };
            let constraints: Vec<_> =
                state.constraints().map(|it| Arc::clone(&it.constraint)).collect();
            (asked, policies, constraints, how)
        })
        .await?;
    let policies = policies?;
    let policies_kept = Arc::clone(&service.policies);
    let result = aside(move || {
        let mut compiled = Vec::with_capacity(policies.len());
        for (version, configuration) in policies {
            let program = version.program().map_err(|error| refused(&error))?;
            compiled.push((program, configuration));
        }
        let set = ActiveSet::new(compiled).map_err(|error| refused(&EditError::from(error)))?;
        let result = simulate(&asked, Arc::new(set), &constraints, how)?;
        Ok(policies_kept.simulations.keep(SimulationResult { timestamp, ..result }))
    });
    answer(StatusCode::CREATED, result.await?.as_ref())
}

/// The policies that a simulation places by, and how they are activated.
fn chosen(
    state: &State,
    asked: &SimulationRequest,
) -> Result<Vec<(policy::Version, Configuration)>, Failure> {
    let library = state.library();
    let installed = match &asked.policy_ids {
        None => library.iter().filter(|it| it.activation.is_some()).collect(),
        Some(ids) => {
            let find = |id: &String| library.get(id).ok_or(Refusal::UnknownPolicy(id.clone()));
            ids.iter().map(find).collect::<Result<Vec<_>, _>>()?
        }
    };
    let mut chosen = Vec::with_capacity(installed.len());
    for policy in installed {
        let own = policy.activation.as_ref().map(|activation| activation.configuration());
        let given = asked.config_overrides.get(policy.id.as_str());
        let given = given.map(|given| given.activation().configuration());
        let configuration = given.or(own).unwrap_or_default();
        chosen.extend(policy.newest().map(|version| (version.clone(), configuration)));
    }
    Ok(chosen)
}

/// List the simulations that are kept, without where each VM went.
#[utoipa::path(get, path = "/scheduler/simulations", tag = "novacron",
    responses((status = 200, description = "Oldest first", body = Vec<SimulationResult>), Failures))]
async fn list(Handle(service): Handle<Service>) -> Answer {
    let brief = |result: Arc<SimulationResult>| {
        let mut result = SimulationResult { results: Vec::new(), ..result.as_ref().clone() };
        result.summary.node_utilization.clear();
        result
    };
    let kept = service.policies.simulations.list();
    answer(StatusCode::OK, &kept.into_iter().map(brief).collect::<Vec<_>>())
}

/// Read a simulation.
#[utoipa::path(get, path = "/scheduler/simulations/{id}", tag = "novacron", params(("id" = NameSchema, Path)),
    responses((status = 200, description = "What came of it", body = SimulationResult), Failures))]
async fn get(Handle(service): Handle<Service>, Id(id): Id) -> Answer {
    answer(StatusCode::OK, find(&service, &id)?.as_ref())
}

fn find(service: &Service, id: &str) -> Result<Arc<SimulationResult>, Failure> {
    let gone = || {
        let detail = format!("simulation {id} is not known; the last 32 are kept");
        Failure::new(Code::SIMULATION_NOT_FOUND, detail)
    };
    service.policies.simulations.get(id).ok_or_else(gone)
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct Pair {
    /// The id of a simulation.
    a: String,
    /// The id of another.
    b: String,
}

/// Say how two simulations differ.
#[utoipa::path(get, path = "/scheduler/simulations/compare", tag = "novacron", params(Pair),
    responses((status = 200, description = "How they differ", body = SimulationComparison), Failures))]
async fn compare(Handle(service): Handle<Service>, Params(pair): Params<Pair>) -> Answer {
    let (a, b) = (find(&service, &pair.a)?, find(&service, &pair.b)?);
    answer(StatusCode::OK, &SimulationComparison::new(&a, &b))
}
