//! Weights: how much each part of a score counts, by name, in the past, and what if.

use super::{Answer, answer, tagged, unexpected};
use crate::app::Problems;
use crate::ask::{Ask, Dry, Params};
use crate::body::Body;
use crate::failure::Failure;
use crate::service::Service;
use axum::extract::State as Handle;
use axum::http::StatusCode;
use engine::{Outcome, Request, WeightChange, WhatIf, WouldBe};
use policy::Profile;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use wire::novacron::Time;
use wire::{
    Code, ProfileList, ProfileView, WeightChangeView, WeightHistoryView, WeightMap,
    WeightRollbackRequest, WeightRollbackSpec, WeightsRequest, WeightsSpec, WhatIfRequest,
    WhatIfSpec, WhatIfView, WouldBeView,
};

pub(super) fn routes() -> OpenApiRouter<Service> {
    OpenApiRouter::new()
        .routes(routes!(weights, set_weights))
        .routes(routes!(profiles))
        .routes(routes!(what_if))
        .routes(routes!(weight_history))
        .routes(routes!(roll_weights_back))
}

/// Read how much each part of a score counts.
#[utoipa::path(get, path = "/v1/weights", tag = "policy",
    responses((status = 200, description = "The weights in force", body = WeightMap), Problems))]
async fn weights(Handle(service): Handle<Service>) -> Answer {
    let policy = service.read(|state| state.policy().clone()).await?;
    tagged(StatusCode::OK, policy.revision, &WeightMap::from(&policy.weights))
}

/// Set how much each part of a score counts, one by one or by the name of a profile.
///
/// What is left out counts nothing. A profile sets the default strategy as well.
#[utoipa::path(put, path = "/v1/weights", tag = "policy", params(Dry), request_body = WeightsSpec,
    responses((status = 200, description = "The weights in force", body = WeightMap), Problems))]
async fn set_weights(
    Handle(service): Handle<Service>,
    Params(dry): Params<Dry>,
    ask: Ask,
    Body(weights): Body<WeightsRequest>,
) -> Answer {
    let ask = ask.dry(dry.dry_run);
    let if_revision = ask.seen;
    let request = match weights {
        WeightsRequest::Weights(weights) => Request::SetWeights { weights, if_revision },
        WeightsRequest::Profile(profile) => Request::SetProfile { profile, if_revision },
    };
    let reply = service.carry_out(&ask, &ask.actor, request).await?;
    let Outcome::Policy(policy) = reply.outcome else { return Err(unexpected(&reply.outcome)) };
    tagged(StatusCode::OK, policy.revision, &WeightMap::from(&policy.weights))
}

/// List weights that have a name: for placing one VM, and for optimising many.
#[utoipa::path(get, path = "/v1/weights/profiles", tag = "policy",
    responses((status = 200, description = "Profiles", body = ProfileList), Problems))]
async fn profiles() -> Answer {
    let profiles = Profile::ALL.map(ProfileView::from).to_vec();
    answer(StatusCode::OK, &ProfileList { profiles })
}

/// See which of the last decisions other weights would have changed, and by how much.
///
/// Every decision is made again on the state that it was made on. Nothing is changed.
#[utoipa::path(post, path = "/v1/weights/whatif", tag = "policy", request_body = WhatIfSpec,
    responses((status = 200, description = "What would be different", body = WhatIfView), Problems))]
async fn what_if(
    Handle(service): Handle<Service>,
    Body(WhatIfRequest { weights, last }): Body<WhatIfRequest>,
) -> Answer {
    let what = match weights {
        WeightsRequest::Weights(weights) => WhatIf { weights, strategy: None, last },
        WeightsRequest::Profile(profile) => {
            WhatIf { weights: profile.weights(), strategy: Some(profile.strategy()), last }
        }
    };
    let newest = *service.durable().borrow();
    let found = service.recall(move |history| history.what_if(&what, newest)).await?;
    let shown = |it: &WouldBe| WouldBeView {
        decision_id: it.id.to_string(),
        tenant: it.vm.tenant.clone(),
        vm_id: it.vm.id.clone(),
        host_id: it.host.clone(),
        would_be: it.would_be.clone(),
        score: it.score,
        best_score: it.best_score,
    };
    let changes: Vec<WouldBeView> = found.iter().filter(|it| it.changes()).map(shown).collect();
    let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    let view = WhatIfView {
        decisions: count(found.len()),
        changed: count(changes.len()),
        changes,
        revision: newest.0,
    };
    answer(StatusCode::OK, &view)
}

/// List the weights that were in force: the last 64.
#[utoipa::path(get, path = "/v1/weights/history", tag = "policy",
    responses((status = 200, description = "Newest first", body = WeightHistoryView), Problems))]
async fn weight_history(Handle(service): Handle<Service>) -> Answer {
    let view = |change: &WeightChange| WeightChangeView {
        revision: change.revision,
        at: change.actor.is_some().then(|| Time::from_unix_millis(change.at_ms)),
        actor: change.actor.as_ref().map(ToString::to_string),
        weights: WeightMap::from(&change.weights),
    };
    let history = service.read(move |state| WeightHistoryView {
        items: state.weight_history().iter().rev().map(view).collect(),
        policy_revision: state.policy().revision,
    });
    let history = history.await?;
    tagged(StatusCode::OK, history.policy_revision, &history)
}

/// Put weights in force again that were before.
#[utoipa::path(post, path = "/v1/weights/rollback", tag = "policy", params(Dry),
    request_body = WeightRollbackSpec,
    responses((status = 200, description = "The weights in force", body = WeightMap), Problems))]
async fn roll_weights_back(
    Handle(service): Handle<Service>,
    Params(dry): Params<Dry>,
    ask: Ask,
    Body(WeightRollbackRequest { revision }): Body<WeightRollbackRequest>,
) -> Answer {
    let ask = ask.dry(dry.dry_run);
    let found = service.read(move |state| state.weight_history().at(revision).cloned()).await?;
    let Some(WeightChange { weights, .. }) = found else {
        let detail = format!("no weights came into force with policy revision {revision}");
        let mut failure = Failure::new(Code::REVISION_GONE, detail);
        failure.problem.hint = "GET /v1/weights/history lists those that did".into();
        return Err(failure);
    };
    let request = Request::SetWeights { weights, if_revision: ask.seen };
    let reply = service.carry_out(&ask, &ask.actor, request).await?;
    let Outcome::Policy(policy) = reply.outcome else { return Err(unexpected(&reply.outcome)) };
    tagged(StatusCode::OK, policy.revision, &WeightMap::from(&policy.weights))
}
