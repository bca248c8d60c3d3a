//! What policies say: all that are active about placements and migrations, or one by itself.
//!
//! Never a call per node: the nodes come with the question, or are those of the inventory.

use super::super::{Answer, answer};
use super::Failures;
use crate::ask::Id;
use crate::body::{Sent, aside};
use crate::failure::Failure;
use crate::policies::over_maps::{evaluate, judge, named, points};
use crate::service::Service;
use axum::extract::State as Handle;
use axum::http::StatusCode;
use engine::{Core, Refusal};
use policy::{ActiveSet, Configuration, EvaluateError, PolicyType, Verdicts};
use std::sync::Arc;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use wire::novacron::{
    Evaluation, EvaluationRequest, FilterAnswer, FilterResult, Json, ScoreAnswer, ScoreResult,
    WorkloadOverNodes,
};
use wire::{Code, NameSchema};

pub(super) fn routes() -> OpenApiRouter<Service> {
    OpenApiRouter::new()
        .routes(routes!(evaluate_placement))
        .routes(routes!(evaluate_migration))
        .routes(routes!(filter))
        .routes(routes!(score))
}

/// Ask which nodes the active placement policies leave, and in which order.
#[utoipa::path(post, path = "/scheduler/policies/evaluate/placement", tag = "novacron",
    request_body = EvaluationRequest,
    responses((status = 200, description = "The nodes that are left, best first", body = Evaluation), Failures))]
async fn evaluate_placement(
    Handle(service): Handle<Service>,
    Sent(asked): Sent<EvaluationRequest>,
) -> Answer {
    evaluated(&service, PolicyType::Placement, asked).await
}

/// Ask the same of the migration policies.
#[utoipa::path(post, path = "/scheduler/policies/evaluate/migration", tag = "novacron",
    request_body = EvaluationRequest,
    responses((status = 200, description = "The nodes that are left, best first", body = Evaluation), Failures))]
async fn evaluate_migration(
    Handle(service): Handle<Service>,
    Sent(asked): Sent<EvaluationRequest>,
) -> Answer {
    evaluated(&service, PolicyType::Migration, asked).await
}

async fn evaluated(service: &Service, asked: PolicyType, request: EvaluationRequest) -> Answer {
    let EvaluationRequest { vm, source_node, candidate_nodes, limit } = request;
    let limit = usize::try_from(limit).unwrap_or(0);
    let told = match candidate_nodes {
        None => {
            let policies = Arc::clone(&service.policies);
            let ask = move |writer: &engine::Writer| {
                policies.living.evaluate(writer, asked, &vm, &source_node, limit)
            };
            service.beside(ask).await?
        }
        Some(nodes) => {
            let (set, policy_revision) = service.look(in_force).await?;
            let limit = if limit == 0 { usize::MAX } else { limit };
            let told = aside(move || {
                evaluate(&set, asked, &vm, &source_node, nodes, limit).map_err(unanswered)
            });
            Evaluation { policy_revision, ..told.await? }
        }
    };
    answer(StatusCode::OK, &told)
}

fn in_force(core: &Core) -> (Arc<ActiveSet>, u64) {
    (Arc::clone(core.policies()), core.state().policy().revision)
}

fn unanswered(error: EvaluateError) -> Failure {
    Failure::new(Code::INTERNAL, error.to_string())
}

/// Ask one policy, active or not, which of the nodes may take a workload.
#[utoipa::path(post, path = "/scheduler/policies/{id}/filter", tag = "novacron",
    params(("id" = NameSchema, Path)), request_body = WorkloadOverNodes,
    responses((status = 200, description = "In the order of the nodes", body = FilterAnswer), Failures))]
async fn filter(
    Handle(service): Handle<Service>,
    Id(id): Id,
    Sent(asked): Sent<WorkloadOverNodes>,
) -> Answer {
    let told = ask_one(&service, id, asked, |set, verdicts, row, node_id| {
        let rule = verdicts.filtered_by(row);
        let reason = rule.map(|rule| named(set, rule).2).unwrap_or_default();
        FilterResult { node_id, feasible: rule.is_none(), reason }
    });
    answer(StatusCode::OK, &FilterAnswer { results: told.await? })
}

/// Ask one policy, active or not, how well the nodes suit a workload.
#[utoipa::path(post, path = "/scheduler/policies/{id}/score", tag = "novacron",
    params(("id" = NameSchema, Path)), request_body = WorkloadOverNodes,
    responses((status = 200, description = "In the order of the nodes", body = ScoreAnswer), Failures))]
async fn score(
    Handle(service): Handle<Service>,
    Id(id): Id,
    Sent(asked): Sent<WorkloadOverNodes>,
) -> Answer {
    let told = ask_one(&service, id, asked, |_, verdicts, row, node_id| ScoreResult {
        node_id,
        score: points(verdicts.score_millis(row)),
    });
    answer(StatusCode::OK, &ScoreAnswer { results: told.await? })
}

/// Asks one policy about each node: with its parameters if it is active, else with its defaults.
async fn ask_one<T: Send + 'static>(
    service: &Service,
    id: String,
    asked: WorkloadOverNodes,
    each: impl Fn(&ActiveSet, &Verdicts, usize, String) -> T + Send + 'static,
) -> Result<Vec<T>, Failure> {
    let wanted = id.clone();
    let found = service.look(move |core| core.state().library().get(&wanted).cloned()).await?;
    let installed = found.ok_or(Refusal::UnknownPolicy(id))?;
    aside(move || {
        let lost = || Failure::new(Code::INTERNAL, format!("policy {} is lost", installed.id));
        let program = installed.newest().ok_or_else(lost)?.program().map_err(|_| lost())?;
        let configuration = match &installed.activation {
            Some(activation) => activation.configuration(),
            None => Configuration::default(),
        };
        let set = ActiveSet::new(vec![(program, configuration)])
            .map_err(|error| Failure::new(Code::POLICY_REFUSED, error.to_string()))?;
        let kind = match installed.kind {
            PolicyType::Composite => PolicyType::Placement,
            kind => kind,
        };
        let WorkloadOverNodes { workload, nodes } = asked;
        let verdicts = judge(&set, kind, &workload, &Json::Null, &nodes).map_err(unanswered)?;
        let ids = nodes.iter().map(|node| node.map_id().to_owned()).enumerate();
        Ok(ids.map(|(row, id)| each(&set, &verdicts, row, id)).collect())
    })
    .await
}
