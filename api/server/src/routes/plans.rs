//! Plans: migrations in waves, approved by somebody, carried out by the core.

use super::{Answer, answer, unexpected};
use crate::app::Problems;
use crate::ask::{Ask, Dry, Id, Params};
use crate::body::Batch;
use crate::failure::Failure;
use crate::plans::{diff_view, draft, plan_view};
use crate::service::Service;
use axum::extract::{Path, State as Handle};
use axum::http::{HeaderValue, StatusCode, header};
use cluster::{Name, VmKey};
use engine::{
    DisruptionBudget, MigrationReport, Outcome, PlanAction, PlanId, Refusal, Request, State,
};
use serde::Deserialize;
use std::collections::BTreeMap;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use wire::{
    BudgetSpec, BudgetView, Code, NameSchema, PlanDiffView, PlanList, PlanRequest, PlanSpec,
    PlanView, SpentView,
};

/// VMs that are listed with what they have spent of the budget.
const SPENT_LISTED: usize = 100;

pub(super) fn routes() -> OpenApiRouter<Service> {
    OpenApiRouter::new()
        .routes(routes!(list, create))
        .routes(routes!(maintain))
        .routes(routes!(plan))
        .routes(routes!(diff))
        .routes(routes!(approve))
        .routes(routes!(apply))
        .routes(routes!(pause))
        .routes(routes!(resume))
        .routes(routes!(cancel))
        .routes(routes!(roll_back))
        .routes(routes!(confirm))
        .routes(routes!(fail))
        .routes(routes!(budget, set_budget))
}

/// Make a plan. Nothing moves before it is approved and applied.
///
/// Moves are put in waves that are safe at every instant, whatever of a wave is done or fails. Moves
/// that cannot be are named in `blocked` with what is in their way. A plan without migrations is
/// complete at once.
#[utoipa::path(post, path = "/v1/plans", tag = "plans", params(Dry), request_body = PlanSpec,
    responses((status = 201, description = "The plan", body = PlanView), Problems))]
async fn create(
    Handle(service): Handle<Service>,
    Params(dry): Params<Dry>,
    ask: Ask,
    Batch(request): Batch<PlanRequest>,
) -> Answer {
    created(&service, ask.dry(dry.dry_run), request).await
}

/// Plan the maintenance of hosts: batch by batch, with every rule kept throughout.
///
/// The same as a plan of kind `maintenance`. VMs that no host would take, and the rules that are in
/// their way, are in `blocked` before anything moves.
#[utoipa::path(post, path = "/v1/maintenance", tag = "plans", params(Dry), request_body = PlanSpec,
    responses((status = 201, description = "The plan", body = PlanView), Problems))]
async fn maintain(
    Handle(service): Handle<Service>,
    Params(dry): Params<Dry>,
    ask: Ask,
    Batch(request): Batch<PlanRequest>,
) -> Answer {
    if request.hosts.is_empty() {
        let detail = "hosts is empty; name the hosts that are to be maintained";
        return Err(Failure::new(Code::INVALID_BODY, detail));
    }
    let request = PlanRequest { kind: wire::PlanKind::Maintenance, ..request };
    created(&service, ask.dry(dry.dry_run), request).await
}

async fn created(service: &Service, ask: Ask, request: PlanRequest) -> Answer {
    let draft = draft(service, &request).await?;
    let request = Request::CreatePlan(Box::new(draft.clone()));
    let reply = service.carry_out(&ask, &ask.actor, request).await?;
    let Outcome::Plan { plan, .. } = reply.outcome else { return Err(unexpected(&reply.outcome)) };
    if ask.dry_run {
        let actor = ask.actor.clone();
        let view = service.read(move |state| {
            let entry = draft.as_planned(plan, &actor, state.time_ms());
            plan_view(&entry, state, true)
        });
        return answer(StatusCode::OK, &view.await?);
    }
    let view = shown(service, plan).await?;
    let mut response = answer(StatusCode::CREATED, &view)?;
    if let Ok(place) = HeaderValue::try_from(format!("/v1/plans/{plan}")) {
        response.headers_mut().insert(header::LOCATION, place);
    }
    Ok(response)
}

/// List the plans that are kept, newest first: open ones, and the last that ended.
#[utoipa::path(get, path = "/v1/plans", tag = "plans",
    responses((status = 200, description = "Without their migrations", body = PlanList), Problems))]
async fn list(Handle(service): Handle<Service>) -> Answer {
    let list = service.read(|state| PlanList {
        items: state.plans().iter().rev().map(|plan| plan_view(plan, state, false)).collect(),
        revision: state.revision().0,
    });
    answer(StatusCode::OK, &list.await?)
}

/// Read a plan and how far each of its migrations is.
#[utoipa::path(get, path = "/v1/plans/{id}", tag = "plans",
    params(("id" = String, Path, pattern = "^p[0-9]{1,18}$")),
    responses((status = 200, description = "As it is now", body = PlanView), Problems))]
async fn plan(Handle(service): Handle<Service>, Id(id): Id) -> Answer {
    answer(StatusCode::OK, &shown(&service, number(&id)?).await?)
}

/// Read what is different after what is left of a plan, host by host.
#[utoipa::path(get, path = "/v1/plans/{id}/diff", tag = "plans",
    params(("id" = String, Path, pattern = "^p[0-9]{1,18}$")),
    responses((status = 200, description = "Before and after", body = PlanDiffView), Problems))]
async fn diff(Handle(service): Handle<Service>, Id(id): Id) -> Answer {
    let id = number(&id)?;
    let view = service.read(move |state| state.plans().get(id).map(|plan| diff_view(plan, state)));
    let view = view.await?.ok_or_else(|| Failure::from(Refusal::UnknownPlan(id)))?;
    answer(StatusCode::OK, &view)
}

/// Approve a plan.
#[utoipa::path(post, path = "/v1/plans/{id}/approve", tag = "plans",
    params(("id" = String, Path, pattern = "^p[0-9]{1,18}$"), Dry),
    responses((status = 200, description = "The plan", body = PlanView), Problems))]
async fn approve(
    Handle(service): Handle<Service>,
    id: Id,
    Params(dry): Params<Dry>,
    ask: Ask,
) -> Answer {
    changed(&service, id, ask.dry(dry.dry_run), PlanAction::Approve).await
}

/// Carry a plan out: its first wave begins, and each next one when the core has reported.
#[utoipa::path(post, path = "/v1/plans/{id}/apply", tag = "plans",
    params(("id" = String, Path, pattern = "^p[0-9]{1,18}$"), Dry),
    responses((status = 200, description = "The plan", body = PlanView), Problems))]
async fn apply(
    Handle(service): Handle<Service>,
    id: Id,
    Params(dry): Params<Dry>,
    ask: Ask,
) -> Answer {
    changed(&service, id, ask.dry(dry.dry_run), PlanAction::Apply).await
}

/// Let nothing more of a plan begin. What is under way goes on.
#[utoipa::path(post, path = "/v1/plans/{id}/pause", tag = "plans",
    params(("id" = String, Path, pattern = "^p[0-9]{1,18}$"), Dry),
    responses((status = 200, description = "The plan", body = PlanView), Problems))]
async fn pause(
    Handle(service): Handle<Service>,
    id: Id,
    Params(dry): Params<Dry>,
    ask: Ask,
) -> Answer {
    changed(&service, id, ask.dry(dry.dry_run), PlanAction::Pause).await
}

/// Let a plan that is paused or stale go on, if its next wave holds.
#[utoipa::path(post, path = "/v1/plans/{id}/resume", tag = "plans",
    params(("id" = String, Path, pattern = "^p[0-9]{1,18}$"), Dry),
    responses((status = 200, description = "The plan", body = PlanView), Problems))]
async fn resume(
    Handle(service): Handle<Service>,
    id: Id,
    Params(dry): Params<Dry>,
    ask: Ask,
) -> Answer {
    changed(&service, id, ask.dry(dry.dry_run), PlanAction::Resume).await
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct Cancelling {
    /// The core does nothing more of what is under way: those migrations count as failed.
    #[serde(default)]
    #[param(required = false)]
    abandon: bool,
    /// Say what would happen, and do nothing.
    #[serde(default)]
    #[param(required = false)]
    dry_run: bool,
}

/// End a plan. What is under way holds its places until the core has reported, or with `abandon`
/// gives them back at once.
#[utoipa::path(post, path = "/v1/plans/{id}/cancel", tag = "plans",
    params(("id" = String, Path, pattern = "^p[0-9]{1,18}$"), Cancelling),
    responses((status = 200, description = "The plan", body = PlanView), Problems))]
async fn cancel(
    Handle(service): Handle<Service>,
    id: Id,
    Params(how): Params<Cancelling>,
    ask: Ask,
) -> Answer {
    let action = PlanAction::Cancel { abandon: how.abandon };
    changed(&service, id, ask.dry(how.dry_run), action).await
}

/// Turn the done migrations of a plan round, the last wave first. Answers with the plan that does it.
#[utoipa::path(post, path = "/v1/plans/{id}/rollback", tag = "plans",
    params(("id" = String, Path, pattern = "^p[0-9]{1,18}$"), Dry),
    responses((status = 200, description = "The plan that goes back", body = PlanView), Problems))]
async fn roll_back(
    Handle(service): Handle<Service>,
    id: Id,
    Params(dry): Params<Dry>,
    ask: Ask,
) -> Answer {
    changed(&service, id, ask.dry(dry.dry_run), PlanAction::Rollback).await
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct Reported {
    /// The VM's tenant. Left out: `default`.
    #[param(value_type = Option<NameSchema>)]
    tenant: Option<Name>,
    /// The host that the migration goes to; tells those of a VM apart that moves more than once.
    #[param(value_type = Option<NameSchema>)]
    to: Option<Name>,
    /// Why it failed.
    reason: Option<String>,
}

type VmOfPlan = Result<Path<(String, String)>, axum::extract::rejection::PathRejection>;

/// The core has moved a VM. Said again, it changes nothing.
#[utoipa::path(post, path = "/v1/plans/{id}/migrations/{vm}/confirm", tag = "plans",
    params(("id" = String, Path, pattern = "^p[0-9]{1,18}$"), ("vm" = NameSchema, Path), Reported),
    responses((status = 200, description = "The plan", body = PlanView), Problems))]
async fn confirm(
    Handle(service): Handle<Service>,
    path: VmOfPlan,
    Params(told): Params<Reported>,
    ask: Ask,
) -> Answer {
    reported(&service, path, told, ask, |_| MigrationReport::Confirmed).await
}

/// The core could not move a VM: it is where it was. Said again, it changes nothing.
#[utoipa::path(post, path = "/v1/plans/{id}/migrations/{vm}/fail", tag = "plans",
    params(("id" = String, Path, pattern = "^p[0-9]{1,18}$"), ("vm" = NameSchema, Path), Reported),
    responses((status = 200, description = "The plan", body = PlanView), Problems))]
async fn fail(
    Handle(service): Handle<Service>,
    path: VmOfPlan,
    Params(told): Params<Reported>,
    ask: Ask,
) -> Answer {
    let because = |reason: Option<String>| {
        MigrationReport::Failed(reason.unwrap_or_else(|| "the core gave no reason".into()))
    };
    reported(&service, path, told, ask, because).await
}

async fn reported(
    service: &Service,
    path: VmOfPlan,
    told: Reported,
    ask: Ask,
    report: impl FnOnce(Option<String>) -> MigrationReport,
) -> Answer {
    let wrong = |wrong: axum::extract::rejection::PathRejection| {
        Failure::new(Code::INVALID_PATH, wrong.body_text())
    };
    let Path((id, vm)) = path.map_err(wrong)?;
    let plan = number(&id)?;
    let mut key = VmKey::in_default_tenant(crate::ask::name(&vm)?);
    key.tenant = told.tenant.unwrap_or(key.tenant);
    let request =
        Request::ReportMigration { plan, vm: key, to: told.to, report: report(told.reason) };
    service.carry_out(&ask, &ask.actor, request).await?;
    answer(StatusCode::OK, &shown(service, plan).await?)
}

/// Read how long migrations may slow VMs down, and who has spent of it.
#[utoipa::path(get, path = "/v1/disruption-budget", tag = "plans",
    responses((status = 200, description = "The budget", body = BudgetView), Problems))]
async fn budget(Handle(service): Handle<Service>) -> Answer {
    let now_ms = service.now_ms();
    answer(StatusCode::OK, &service.read(move |state| budget_view(state, now_ms)).await?)
}

/// Limit how long migrations may slow VMs down within a window. Waves that would go beyond it wait.
#[utoipa::path(put, path = "/v1/disruption-budget", tag = "plans", params(Dry), request_body = BudgetSpec,
    responses((status = 200, description = "The budget", body = BudgetView), Problems))]
async fn set_budget(
    Handle(service): Handle<Service>,
    Params(dry): Params<Dry>,
    ask: Ask,
    Batch(spec): Batch<BudgetSpec>,
) -> Answer {
    let BudgetSpec { per_vm_ms, per_tenant_ms, window_ms } = spec;
    let request = Request::SetBudget(DisruptionBudget { per_vm_ms, per_tenant_ms, window_ms });
    let ask = ask.dry(dry.dry_run);
    service.carry_out(&ask, &ask.actor, request).await?;
    let now_ms = service.now_ms();
    answer(StatusCode::OK, &service.read(move |state| budget_view(state, now_ms)).await?)
}

async fn changed(service: &Service, id: Id, ask: Ask, action: PlanAction) -> Answer {
    let request = Request::ChangePlan { plan: number(&id.0)?, action };
    let reply = service.carry_out(&ask, &ask.actor, request).await?;
    let Outcome::Plan { plan, .. } = reply.outcome else { return Err(unexpected(&reply.outcome)) };
    // A dry run has made nothing: the plan is shown as it is.
    let plan = if ask.dry_run { number(&id.0)? } else { plan };
    answer(StatusCode::OK, &shown(service, plan).await?)
}

async fn shown(service: &Service, id: PlanId) -> Result<PlanView, Failure> {
    let view =
        service.read(move |state| state.plans().get(id).map(|plan| plan_view(plan, state, true)));
    view.await?.ok_or_else(|| Refusal::UnknownPlan(id).into())
}

fn budget_view(state: &State, now_ms: u64) -> BudgetView {
    let budget = state.plans().budget();
    let mut by_vm: BTreeMap<&VmKey, u64> = BTreeMap::new();
    for spending in state.plans().spendings(now_ms.max(state.time_ms())) {
        let sum = by_vm.entry(&spending.vm).or_default();
        *sum = sum.saturating_add(spending.brownout_ms);
    }
    let mut spent: Vec<SpentView> = by_vm
        .into_iter()
        .map(|(vm, brownout_ms)| SpentView {
            tenant: vm.tenant.clone(),
            vm_id: vm.id.clone(),
            brownout_ms,
        })
        .collect();
    spent.sort_by_key(|it| std::cmp::Reverse(it.brownout_ms));
    spent.truncate(SPENT_LISTED);
    BudgetView {
        budget: BudgetSpec {
            per_vm_ms: budget.per_vm_ms,
            per_tenant_ms: budget.per_tenant_ms,
            window_ms: budget.window_ms,
        },
        spent,
        revision: state.revision().0,
    }
}

/// Plans are named `p` and their number.
fn number(id: &str) -> Result<PlanId, Failure> {
    let unknown = || Failure::new(Code::PLAN_NOT_FOUND, format!("there is no plan {id:?}"));
    PlanId::parse(id).ok_or_else(unknown)
}
