//! Policies: register, change, activate, tune, look back, take back.
//!
//! Every change is tried on the living fleet first, and the answer says what was found.

use super::{Answer, answer, nothing, tagged};
use crate::app::Problems;
use crate::ask::{Ask, Dry, Id, IdAndVersion, Params};
use crate::body::{Body, Written};
use crate::failure::Failure;
use crate::policies::{self, Done, dry_run_view, install, look_ahead};
use crate::policy_files::{PolicyFiles, RejectedFile};
use crate::service::Service;
use axum::extract::State as Handle;
use axum::http::StatusCode;
use engine::Refusal;
use policy::{Activation, AuditEntry, Edit, EditError, EditKind, Installed, PolicyType, Source};
use serde::Deserialize;
use std::sync::Arc;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use wire::novacron::Time;
use wire::{
    ActivationRequest, ActivationSpec, Code, ConflictList, ConflictView, CostView, DiagnosticView,
    NameSchema, PolicyAnswer, PolicyAudit, PolicyAuditView, PolicyList, PolicyRequest, PolicySpec,
    PolicyValidation, PolicyVersionView, PolicyVersions, PolicyView, RejectedFileView,
    RollbackRequest, RollbackSpec, TuneRequest, TuneSpec,
};

pub(super) fn routes() -> OpenApiRouter<Service> {
    OpenApiRouter::new()
        .routes(routes!(list, register))
        .routes(routes!(validate))
        .routes(routes!(conflicts))
        .routes(routes!(whole_audit))
        .routes(routes!(get, put, remove))
        .routes(routes!(activate))
        .routes(routes!(deactivate))
        .routes(routes!(tune))
        .routes(routes!(versions))
        .routes(routes!(version))
        .routes(routes!(rollback))
        .routes(routes!(audit))
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct Filter {
    /// Only policies of this type.
    #[serde(rename = "type")]
    #[param(value_type = Option<String>, pattern = "^(placement|migration|resource_allocation|maintenance|composite)$")]
    kind: Option<PolicyType>,
}

/// List the policies, active or not, and the files that are not in force.
#[utoipa::path(get, path = "/v1/policies", tag = "policy", params(Filter),
    responses((status = 200, description = "By id", body = PolicyList), Problems))]
async fn list(Handle(service): Handle<Service>, Params(filter): Params<Filter>) -> Answer {
    let files = service.policy_files().clone();
    let listed = service.beside(move |writer| {
        let (library, active, policy_revision, revision) = writer.look(|core| {
            let state = core.state();
            let library = state.library().clone();
            (library, Arc::clone(core.policies()), state.policy().revision, state.revision())
        });
        let wanted = |it: &&Installed| filter.kind.is_none_or(|kind| it.kind == kind);
        let items = library.iter().filter(wanted).map(|it| view(it, &files));
        let mut cost = CostView::default();
        for policy in active.policies() {
            let own = policy.program().cost();
            cost.per_host = cost.per_host.saturating_add(own.per_host);
            cost.per_request = cost.per_request.saturating_add(own.per_request);
        }
        let list = PolicyList {
            items: items.collect::<Result<_, Failure>>()?,
            policy_revision,
            cost,
            directory: files.directory().map(|directory| directory.display().to_string()),
            rejected_files: files.rejected().iter().map(rejected).collect(),
        };
        Ok((list, revision))
    });
    let listed = listed.await?;
    tagged(StatusCode::OK, listed.policy_revision, &listed)
}

fn rejected(file: &RejectedFile) -> RejectedFileView {
    RejectedFileView {
        file: file.file.clone(),
        seen_at: Time::from_unix_millis(file.at_ms),
        policy: file.policy.clone(),
        diagnostics: file.diagnostics.iter().map(DiagnosticView::from).collect(),
    }
}

fn view(installed: &Installed, files: &PolicyFiles) -> Result<PolicyView, Failure> {
    let unreadable = || Failure::new(Code::INTERNAL, format!("policy {} is lost", installed.id));
    let newest = installed.newest().ok_or_else(unreadable)?;
    let (program, warnings) = newest.source.load().map_err(|_| unreadable())?;
    let file = files.file_of(&installed.id);
    Ok(PolicyView { file, ..PolicyView::new(installed, &program, &warnings) })
}

/// Register a policy. It is in force only when it is activated.
#[utoipa::path(post, path = "/v1/policies", tag = "policy", params(Dry), request_body = PolicySpec,
    responses((status = 201, description = "Registered", body = PolicyAnswer),
              (status = 200, description = "A dry run", body = PolicyAnswer), Problems))]
async fn register(
    Handle(service): Handle<Service>,
    Params(dry): Params<Dry>,
    ask: Ask,
    Written(asked): Written<PolicyRequest>,
) -> Answer {
    let ask = ask.dry(dry.dry_run);
    let policy = id_of(&asked)?;
    let PolicyRequest { text, syntax, activation, description } = asked;
    let change = EditKind::Register { source: Source::new(text, syntax), activation };
    let status = if ask.dry_run { StatusCode::OK } else { StatusCode::CREATED };
    change_policy(&service, &ask, &policy, change, description, status).await
}

/// The id that a text gives itself.
fn id_of(asked: &PolicyRequest) -> Result<String, Failure> {
    let read = policy::load(&asked.text, asked.syntax);
    let (program, _) = read.map_err(|found| policies::refused(&EditError::Text(found)))?;
    Ok(program.id().to_owned())
}

/// Read a policy with its text.
#[utoipa::path(get, path = "/v1/policies/{id}", tag = "policy", params(("id" = NameSchema, Path)),
    responses((status = 200, description = "The policy", body = PolicyView), Problems))]
async fn get(Handle(service): Handle<Service>, Id(id): Id) -> Answer {
    let (installed, revision) = find(&service, id).await?;
    let text = installed.newest().map(|version| version.source.text().to_owned());
    let view = PolicyView { text, ..view(&installed, service.policy_files())? };
    tagged(StatusCode::OK, revision, &view)
}

/// A policy and the policy revision.
async fn find(service: &Service, id: String) -> Result<(Installed, u64), Failure> {
    let wanted = id.clone();
    let found =
        service.read(move |state| (state.library().get(&wanted).cloned(), state.policy().revision));
    match found.await? {
        (Some(installed), revision) => Ok((installed, revision)),
        (None, _) => Err(Refusal::UnknownPolicy(id).into()),
    }
}

/// Give a policy a new version, or register it under this id. Without `activate`, whether it is in
/// force stays as it is.
#[utoipa::path(put, path = "/v1/policies/{id}", tag = "policy", params(("id" = NameSchema, Path), Dry),
    request_body = PolicySpec,
    responses((status = 200, description = "The policy with its new version", body = PolicyAnswer),
              (status = 201, description = "Registered", body = PolicyAnswer), Problems))]
async fn put(
    Handle(service): Handle<Service>,
    Id(id): Id,
    Params(dry): Params<Dry>,
    ask: Ask,
    Written(asked): Written<PolicyRequest>,
) -> Answer {
    let ask = ask.dry(dry.dry_run);
    let PolicyRequest { text, syntax, activation, description } = asked;
    let change = EditKind::Put { source: Source::new(text, syntax), activation };
    let edit = Edit { policy: id.into(), change, user: ask.actor.to_string(), description };
    let done = install(&service, &ask, edit).await?;
    let created = !done.outlook.existed && !ask.dry_run;
    let status = if created { StatusCode::CREATED } else { StatusCode::OK };
    told(&service, done, status)
}

/// Remove a policy that is not active, with its versions.
#[utoipa::path(delete, path = "/v1/policies/{id}", tag = "policy", params(("id" = NameSchema, Path), Dry),
    responses((status = 204, description = "Removed, or would be"), Problems))]
async fn remove(
    Handle(service): Handle<Service>,
    Id(id): Id,
    Params(dry): Params<Dry>,
    ask: Ask,
) -> Answer {
    let ask = ask.dry(dry.dry_run);
    let (user, description) = (ask.actor.to_string(), String::new());
    let edit = Edit { policy: id.into(), change: EditKind::Remove, user, description };
    install(&service, &ask, edit).await?;
    nothing()
}

/// Put a policy in force, or give it other parameters. What is left out has its default.
#[utoipa::path(post, path = "/v1/policies/{id}/activate", tag = "policy",
    params(("id" = NameSchema, Path), Dry), request_body = ActivationSpec,
    responses((status = 200, description = "The policy in force", body = PolicyAnswer), Problems))]
async fn activate(
    Handle(service): Handle<Service>,
    Id(id): Id,
    Params(dry): Params<Dry>,
    ask: Ask,
    Body(ActivationRequest { activation, description }): Body<ActivationRequest>,
) -> Answer {
    let ask = ask.dry(dry.dry_run);
    let change = EditKind::Activate(activation);
    change_policy(&service, &ask, &id, change, description, StatusCode::OK).await
}

/// Take a policy out of force and keep it.
#[utoipa::path(post, path = "/v1/policies/{id}/deactivate", tag = "policy",
    params(("id" = NameSchema, Path), Dry),
    responses((status = 200, description = "The policy", body = PolicyAnswer), Problems))]
async fn deactivate(
    Handle(service): Handle<Service>,
    Id(id): Id,
    Params(dry): Params<Dry>,
    ask: Ask,
) -> Answer {
    let ask = ask.dry(dry.dry_run);
    let change = EditKind::Deactivate;
    change_policy(&service, &ask, &id, change, String::new(), StatusCode::OK).await
}

/// Change parameters of an active policy, or its priority. What is left out stays.
#[utoipa::path(patch, path = "/v1/policies/{id}/parameters", tag = "policy",
    params(("id" = NameSchema, Path), Dry), request_body = TuneSpec,
    responses((status = 200, description = "The policy in force", body = PolicyAnswer), Problems))]
async fn tune(
    Handle(service): Handle<Service>,
    Id(id): Id,
    Params(dry): Params<Dry>,
    ask: Ask,
    Body(TuneRequest { priority, values, description }): Body<TuneRequest>,
) -> Answer {
    let ask = ask.dry(dry.dry_run);
    let change = EditKind::Tune { priority, settings: values.settings() };
    change_policy(&service, &ask, &id, change, description, StatusCode::OK).await
}

/// List the versions of a policy that are kept.
#[utoipa::path(get, path = "/v1/policies/{id}/versions", tag = "policy", params(("id" = NameSchema, Path)),
    responses((status = 200, description = "Oldest first", body = PolicyVersions), Problems))]
async fn versions(Handle(service): Handle<Service>, Id(id): Id) -> Answer {
    let (installed, policy_revision) = find(&service, id).await?;
    let items = installed.versions.iter().map(|it| PolicyVersionView::new(it, false)).collect();
    tagged(StatusCode::OK, policy_revision, &PolicyVersions { items, policy_revision })
}

/// Read one version of a policy with its text.
#[utoipa::path(get, path = "/v1/policies/{id}/versions/{version}", tag = "policy",
    params(("id" = NameSchema, Path), ("version" = u32, Path)),
    responses((status = 200, description = "The version", body = PolicyVersionView), Problems))]
async fn version(
    Handle(service): Handle<Service>,
    IdAndVersion(id, version): IdAndVersion,
) -> Answer {
    let (installed, _) = find(&service, id).await?;
    let number = version.parse().ok();
    match number.and_then(|number| installed.version(number)) {
        Some(found) => answer(StatusCode::OK, &PolicyVersionView::new(found, true)),
        None => {
            let detail = format!("version {version} not found for policy {}", installed.id);
            Err(Failure::new(Code::POLICY_VERSION_NOT_FOUND, detail))
        }
    }
}

/// Make the text of an older version the newest one.
#[utoipa::path(post, path = "/v1/policies/{id}/rollback", tag = "policy",
    params(("id" = NameSchema, Path), Dry), request_body = RollbackSpec,
    responses((status = 200, description = "The policy", body = PolicyAnswer), Problems))]
async fn rollback(
    Handle(service): Handle<Service>,
    Id(id): Id,
    Params(dry): Params<Dry>,
    ask: Ask,
    Body(RollbackRequest { version, description }): Body<RollbackRequest>,
) -> Answer {
    let ask = ask.dry(dry.dry_run);
    let change = EditKind::Rollback { version };
    change_policy(&service, &ask, &id, change, description, StatusCode::OK).await
}

/// List what was done to a policy, also to one that is removed by now.
#[utoipa::path(get, path = "/v1/policies/{id}/audit", tag = "policy", params(("id" = NameSchema, Path)),
    responses((status = 200, description = "Newest first", body = PolicyAudit), Problems))]
async fn audit(Handle(service): Handle<Service>, Id(id): Id) -> Answer {
    let audit = audited(&service, Some(id.clone())).await?;
    if audit.items.is_empty() {
        // Installed so long ago that nothing is remembered, or never.
        find(&service, id).await?;
    }
    answer(StatusCode::OK, &audit)
}

/// List what was done to policies: the last 1024 changes.
#[utoipa::path(get, path = "/v1/policies/audit", tag = "policy",
    responses((status = 200, description = "Newest first", body = PolicyAudit), Problems))]
async fn whole_audit(Handle(service): Handle<Service>) -> Answer {
    answer(StatusCode::OK, &audited(&service, None).await?)
}

async fn audited(service: &Service, id: Option<String>) -> Result<PolicyAudit, Failure> {
    let read = service.read(move |state| {
        let wanted = |entry: &&AuditEntry| id.as_ref().is_none_or(|id| entry.policy == id);
        let entries = state.library().audit().filter(wanted);
        let mut items: Vec<PolicyAuditView> = entries.map(PolicyAuditView::from).collect();
        items.reverse();
        PolicyAudit { items, policy_revision: state.policy().revision }
    });
    read.await
}

/// List rules of active policies that work against each other.
#[utoipa::path(get, path = "/v1/policies/conflicts", tag = "policy",
    responses((status = 200, description = "Conflicts", body = ConflictList), Problems))]
async fn conflicts(Handle(service): Handle<Service>) -> Answer {
    let (set, policy_revision) =
        service.look(|core| (Arc::clone(core.policies()), core.state().policy().revision)).await?;
    let found = crate::body::aside(move || Ok(set.conflicts())).await?;
    let items = found.iter().map(ConflictView::from).collect();
    tagged(StatusCode::OK, policy_revision, &ConflictList { items, policy_revision })
}

/// Say everything that is wrong with a text, and what it would do if it were in force.
#[utoipa::path(post, path = "/v1/policies:validate", tag = "policy", request_body = PolicySpec,
    responses((status = 200, description = "What was found", body = PolicyValidation), Problems))]
async fn validate(
    Handle(service): Handle<Service>,
    Written(asked): Written<PolicyRequest>,
) -> Answer {
    answer(StatusCode::OK, &validated(&service, asked).await?)
}

/// What is to be said of a text. As it is active, or as the request says, or by its defaults.
pub(in crate::routes) async fn validated(
    service: &Service,
    asked: PolicyRequest,
) -> Result<PolicyValidation, Failure> {
    let PolicyRequest { text, syntax, activation, .. } = asked;
    let source = Source::new(text, syntax);
    let (program, warnings) = match source.load() {
        Ok(loaded) => loaded,
        Err(found) => {
            let (errors, warnings): (Vec<_>, Vec<_>) =
                found.iter().partition(|found| found.is_error());
            return Ok(PolicyValidation {
                errors: errors.into_iter().map(DiagnosticView::from).collect(),
                warnings: warnings.into_iter().map(DiagnosticView::from).collect(),
                ..PolicyValidation::default()
            });
        }
    };
    let id = program.id().to_owned();
    let activation = match activation {
        Some(given) => given,
        None => present_activation(service, &id).await?,
    };
    let change = EditKind::Put { source, activation: Some(activation) };
    let edit = Edit {
        policy: id.as_str().into(),
        change,
        user: String::new(),
        description: String::new(),
    };
    let mut said = PolicyValidation {
        id: Some(id),
        warnings: warnings.iter().map(DiagnosticView::from).collect(),
        cost: Some(program.cost().into()),
        ..PolicyValidation::default()
    };
    match look_ahead(service, edit).await {
        Ok((outlook, _)) => {
            said.valid = true;
            said.conflicts = outlook.conflicts.iter().map(ConflictView::from).collect();
            said.dry_run = Some(dry_run_view(&outlook.trial));
        }
        // The text is right, and it could not be in force all the same.
        Err(failure) if (400..500).contains(&failure.problem.status) => {
            said.errors.push(DiagnosticView {
                severity: "error".into(),
                code: "cannot-activate".into(),
                line: 0,
                column: 0,
                field: "policy".into(),
                message: failure.problem.detail.clone(),
                hint: Some(failure.problem.hint.clone()),
            });
        }
        Err(failure) => return Err(failure),
    }
    Ok(said)
}

async fn present_activation(service: &Service, id: &str) -> Result<Activation, Failure> {
    let id = id.to_owned();
    let found = service.read(move |state| {
        state.library().get(&id).and_then(|installed| installed.activation.clone())
    });
    Ok(found.await?.unwrap_or_default())
}

async fn change_policy(
    service: &Service,
    ask: &Ask,
    id: &str,
    change: EditKind,
    description: String,
    status: StatusCode,
) -> Answer {
    let edit = Edit { policy: id.into(), change, user: ask.actor.to_string(), description };
    told(service, install(service, ask, edit).await?, status)
}

fn told(service: &Service, done: Done, status: StatusCode) -> Answer {
    let Some(after) = &done.outlook.after else {
        return Err(Failure::new(Code::POLICY_NOT_FOUND, "the policy is gone"));
    };
    let text = after.newest().map(|version| version.source.text().to_owned());
    let body = PolicyAnswer {
        policy: PolicyView { text, ..view(after, service.policy_files())? },
        changed: done.outlook.is_new,
        policy_revision: done.policy_revision,
        conflicts: done.outlook.conflicts.iter().map(ConflictView::from).collect(),
        dry_run: dry_run_view(&done.outlook.trial),
    };
    tagged(status, done.policy_revision, &body)
}
