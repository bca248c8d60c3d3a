//! NovaCron's policy engine over HTTP: the same policies as `/v1/policies`, under its names.

use super::super::policies::validated;
use super::super::{Answer, answer, nothing};
use super::{Failures, senseless};
use crate::ask::{Ask, Id, IdAndVersion, Params};
use crate::body::{Sent, Written};
use crate::failure::Failure;
use crate::policies::{install, refused};
use crate::service::Service;
use axum::extract::State as Handle;
use axum::http::StatusCode;
use engine::{Refusal, State};
use policy::{
    AuditAction, Diagnostic, Edit, EditError, EditKind, Installed, PolicyType, Source, Syntax,
};
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use wire::novacron::{
    PolicyAnswer, PolicyAuditEntry, PolicyConfiguration, PolicyDraft, PolicyRollback,
    PolicyValidationResult, PolicyVersion, version_number, version_text,
};
use wire::{Code, ConflictView, Fault, NameSchema, PolicyRequest};

/// Bytes of a name of whoever changes a policy.
const MAX_USER: usize = 256;
/// Bytes of the reason for a change.
const MAX_DESCRIPTION: usize = 4_000;

pub(super) fn routes() -> OpenApiRouter<Service> {
    OpenApiRouter::new()
        .routes(routes!(list, register))
        .routes(routes!(validate))
        .routes(routes!(conflicts))
        .routes(routes!(get, update, remove))
        .routes(routes!(activate))
        .routes(routes!(deactivate))
        .routes(routes!(versions))
        .routes(routes!(version))
        .routes(routes!(rollback))
        .routes(routes!(audit))
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct Filter {
    /// Only policies of this type.
    #[serde(rename = "type")]
    #[param(value_type = Option<String>)]
    kind: Option<String>,
}

/// List policies, all of them or those of a type.
#[utoipa::path(get, path = "/scheduler/policies", tag = "novacron", params(Filter),
    responses((status = 200, description = "By id", body = Vec<PolicyAnswer>), Failures))]
async fn list(Handle(service): Handle<Service>, Params(filter): Params<Filter>) -> Answer {
    let kind = match filter.kind.as_deref() {
        None | Some("") => None,
        Some(word) => {
            let unknown =
                || Failure::new(Code::INVALID_QUERY, format!("unknown policy type: {word}"));
            Some(PolicyType::named(word).ok_or_else(unknown)?)
        }
    };
    let listed = service.read(move |state| {
        let wanted = |it: &&Installed| kind.is_none_or(|kind| it.kind == kind);
        let known = |it: &Installed| (it.clone(), status(state, it));
        state.library().iter().filter(wanted).map(known).collect::<Vec<_>>()
    });
    let listed = listed.await?;
    let shown = crate::body::aside(move || {
        listed.iter().map(|(it, status)| shown(it, None, status)).collect::<Result<Vec<_>, _>>()
    });
    answer(StatusCode::OK, &shown.await?)
}

/// NovaCron's word for whether a policy is in force.
fn status(state: &State, installed: &Installed) -> &'static str {
    if installed.activation.is_some() {
        return "active";
    }
    let mut past = state.library().audit().filter(|entry| entry.policy == installed.id);
    if past.any(|entry| entry.action == AuditAction::Deactivated) { "disabled" } else { "draft" }
}

/// A policy as of one of its versions, or as it is.
fn shown(
    installed: &Installed,
    number: Option<u32>,
    status: &str,
) -> Result<PolicyAnswer, Failure> {
    let version = match number {
        Some(number) => installed.version(number),
        None => installed.newest(),
    };
    let lost = || Failure::new(Code::INTERNAL, format!("policy {} is lost", installed.id));
    let version = version.ok_or_else(lost)?;
    let program = version.program().map_err(|_| lost())?;
    Ok(PolicyAnswer::new(installed, version, program.document(), status))
}

/// Register a policy. It is in force only when it is activated.
#[utoipa::path(post, path = "/scheduler/policies", tag = "novacron", request_body = PolicyDraft,
    responses((status = 201, description = "Registered", body = PolicyAnswer), Failures))]
async fn register(
    Handle(service): Handle<Service>,
    ask: Ask,
    Written(draft): Written<PolicyDraft>,
) -> Answer {
    let (text, syntax) = text_of(&draft)?;
    let (program, _) =
        policy::load(&text, syntax).map_err(|found| refused(&EditError::Text(found)))?;
    let policy = program.id().to_owned();
    let change = EditKind::Register { source: Source::new(text, syntax), activation: None };
    let (user, why) = (draft.user(), &draft.change_description);
    make(&service, &ask, &policy, change, user, why).await?;
    show(&service, policy, StatusCode::CREATED).await
}

/// The text that a draft stands for. A policy that comes as an object is kept in NovaCron's
/// language, so that what is shown is what is kept.
fn text_of(draft: &PolicyDraft) -> Result<(String, Syntax), Failure> {
    let object = draft.policy.as_ref().filter(|object| !object.rules.is_empty());
    let object = match (object, &draft.dsl, &draft.policy) {
        (_, Some(dsl), _) => return Ok((dsl.clone(), Syntax::of_text(dsl))),
        (Some(object), ..) => object,
        (None, None, Some(object)) if !object.dsl.is_empty() => {
            return Ok((object.dsl.clone(), Syntax::of_text(&object.dsl)));
        }
        (None, None, object) => object.as_ref().ok_or_else(no_policy)?,
    };
    if object.id.is_empty() && object.name.is_empty() {
        return Err(Failure::new(Code::POLICY_REFUSED, "policy ID cannot be empty"));
    }
    let form = serde_json::to_string(&object.to_yaml_form());
    let form = form.map_err(|error| Failure::new(Code::INTERNAL, error.to_string()))?;
    let (document, _) = policy::parse(&form, Syntax::Yaml).map_err(|found| {
        // Lines and columns would be those of a text that the caller has never seen.
        let placed = |it: Diagnostic| Diagnostic { line: 0, column: 0, ..it };
        refused(&EditError::Text(found.into_iter().map(placed).collect()))
    })?;
    Ok((policy::format(&document, Syntax::Dsl), Syntax::Dsl))
}

fn no_policy() -> Failure {
    senseless(Fault {
        path: "policy".into(),
        code: "missing_field".into(),
        message: "there is no policy in the body".into(),
        hint: "send its text as dsl, or the policy as an object".into(),
    })
}

async fn make(
    service: &Service,
    ask: &Ask,
    policy: &str,
    change: EditKind,
    user: &str,
    description: &str,
) -> Result<(), Failure> {
    for (path, text, most) in
        [("author", user, MAX_USER), ("change_description", description, MAX_DESCRIPTION)]
    {
        if text.len() > most {
            return Err(senseless(Fault {
                path: path.into(),
                code: "string_too_long".into(),
                message: format!("{} bytes, at most {most} are kept", text.len()),
                hint: "shorten it".into(),
            }));
        }
    }
    let user = if user.is_empty() { ask.actor.to_string() } else { user.to_owned() };
    let description = description.to_owned();
    install(service, ask, Edit { policy: policy.into(), change, user, description }).await?;
    Ok(())
}

async fn show(service: &Service, id: String, code: StatusCode) -> Answer {
    let (installed, status) = find(service, id).await?;
    answer(code, &shown(&installed, None, status)?)
}

async fn find(service: &Service, id: String) -> Result<(Installed, &'static str), Failure> {
    let wanted = id.clone();
    let found = service.read(move |state| {
        let installed = state.library().get(&wanted)?;
        Some((installed.clone(), status(state, installed)))
    });
    found.await?.ok_or_else(|| Refusal::UnknownPolicy(id).into())
}

/// Read a policy.
#[utoipa::path(get, path = "/scheduler/policies/{id}", tag = "novacron", params(("id" = NameSchema, Path)),
    responses((status = 200, description = "The policy", body = PolicyAnswer), Failures))]
async fn get(Handle(service): Handle<Service>, Id(id): Id) -> Answer {
    show(&service, id, StatusCode::OK).await
}

/// Give a policy a new version. Whether it is in force stays as it is.
#[utoipa::path(put, path = "/scheduler/policies/{id}", tag = "novacron", params(("id" = NameSchema, Path)),
    request_body = PolicyDraft,
    responses((status = 200, description = "The policy", body = PolicyAnswer), Failures))]
async fn update(
    Handle(service): Handle<Service>,
    Id(id): Id,
    ask: Ask,
    Written(draft): Written<PolicyDraft>,
) -> Answer {
    find(&service, id.clone()).await?;
    let (text, syntax) = text_of(&draft)?;
    let change = EditKind::Put { source: Source::new(text, syntax), activation: None };
    make(&service, &ask, &id, change, draft.user(), &draft.change_description).await?;
    show(&service, id, StatusCode::OK).await
}

/// Take a policy out of force and forget it.
#[utoipa::path(delete, path = "/scheduler/policies/{id}", tag = "novacron", params(("id" = NameSchema, Path)),
    responses((status = 204, description = "Removed"), Failures))]
async fn remove(Handle(service): Handle<Service>, Id(id): Id, mut ask: Ask) -> Answer {
    let (installed, _) = find(&service, id.clone()).await?;
    // A key would be taken for a repetition of the first of the two.
    ask.idempotency_key = None;
    if installed.activation.is_some() {
        make(&service, &ask, &id, EditKind::Deactivate, "", "removed").await?;
        ask.seen = None;
    }
    make(&service, &ask, &id, EditKind::Remove, "", "").await?;
    nothing()
}

/// Put a policy in force with these parameters.
#[utoipa::path(post, path = "/scheduler/policies/{id}/activate", tag = "novacron",
    params(("id" = NameSchema, Path)), request_body = PolicyConfiguration,
    responses((status = 200, description = "The policy in force", body = PolicyAnswer), Failures))]
async fn activate(
    Handle(service): Handle<Service>,
    Id(id): Id,
    ask: Ask,
    Sent(configuration): Sent<PolicyConfiguration>,
) -> Answer {
    let change = EditKind::Activate(configuration.activation());
    make(&service, &ask, &id, change, "", "").await?;
    show(&service, id, StatusCode::OK).await
}

/// Take a policy out of force and keep it.
#[utoipa::path(post, path = "/scheduler/policies/{id}/deactivate", tag = "novacron",
    params(("id" = NameSchema, Path)),
    responses((status = 200, description = "The policy", body = PolicyAnswer), Failures))]
async fn deactivate(Handle(service): Handle<Service>, Id(id): Id, ask: Ask) -> Answer {
    make(&service, &ask, &id, EditKind::Deactivate, "", "").await?;
    show(&service, id, StatusCode::OK).await
}

/// Say everything that is wrong with a policy.
#[utoipa::path(post, path = "/scheduler/policies/validate", tag = "novacron", request_body = PolicyDraft,
    responses((status = 200, description = "What was found", body = PolicyValidationResult), Failures))]
async fn validate(
    Handle(service): Handle<Service>,
    Written(draft): Written<PolicyDraft>,
) -> Answer {
    let said = match text_of(&draft) {
        Ok((text, syntax)) => {
            let description = String::new();
            let asked = PolicyRequest { text, syntax, activation: None, description };
            let said = validated(&service, asked).await?;
            let (errors, warnings) = (said.errors, said.warnings);
            PolicyValidationResult { valid: said.valid, errors, warnings }
        }
        // An object that cannot be written down as a policy.
        Err(failure) if !failure.problem.diagnostics.is_empty() => {
            let found = failure.problem.diagnostics.into_iter();
            let (errors, warnings) = found.partition(|found| found.severity == "error");
            PolicyValidationResult { valid: false, errors, warnings }
        }
        Err(failure) => return Err(failure),
    };
    answer(StatusCode::OK, &said)
}

/// List the versions of a policy that are kept.
#[utoipa::path(get, path = "/scheduler/policies/{id}/versions", tag = "novacron", params(("id" = NameSchema, Path)),
    responses((status = 200, description = "Oldest first", body = Vec<PolicyVersion>), Failures))]
async fn versions(Handle(service): Handle<Service>, Id(id): Id) -> Answer {
    let (installed, status) = find(&service, id).await?;
    let numbers = installed.versions.iter().map(|version| version.number);
    let listed = numbers.map(|number| one_version(&installed, &version_text(number), status));
    answer(StatusCode::OK, &listed.collect::<Result<Vec<_>, _>>()?)
}

/// Read one of them.
#[utoipa::path(get, path = "/scheduler/policies/{id}/versions/{version}", tag = "novacron",
    params(("id" = NameSchema, Path), ("version" = String, Path)),
    responses((status = 200, description = "The version", body = PolicyVersion), Failures))]
async fn version(
    Handle(service): Handle<Service>,
    IdAndVersion(id, version): IdAndVersion,
) -> Answer {
    let (installed, status) = find(&service, id).await?;
    answer(StatusCode::OK, &one_version(&installed, &version, status)?)
}

fn one_version(
    installed: &Installed,
    version: &str,
    status: &str,
) -> Result<PolicyVersion, Failure> {
    let known = version_number(version).and_then(|number| installed.version(number));
    let known = known.ok_or_else(|| no_version(version, &installed.id))?;
    Ok(PolicyVersion {
        policy_id: installed.id.to_string(),
        version: version_text(known.number),
        policy: shown(installed, Some(known.number), status)?,
        created_at: wire::novacron::Time::from_unix_millis(known.created_ms),
        created_by: known.author.clone(),
        change_description: known.description.clone(),
    })
}

fn no_version(version: &str, policy: &str) -> Failure {
    let detail = format!("version {version} not found for policy {policy}");
    Failure::new(Code::POLICY_VERSION_NOT_FOUND, detail)
}

/// Make the text of an older version the newest one.
#[utoipa::path(post, path = "/scheduler/policies/{id}/rollback", tag = "novacron",
    params(("id" = NameSchema, Path)), request_body = PolicyRollback,
    responses((status = 200, description = "The policy", body = PolicyAnswer), Failures))]
async fn rollback(
    Handle(service): Handle<Service>,
    Id(id): Id,
    ask: Ask,
    Sent(asked): Sent<PolicyRollback>,
) -> Answer {
    let (installed, _) = find(&service, id.clone()).await?;
    let version = version_number(&asked.version).filter(|it| installed.version(*it).is_some());
    let version = version.ok_or_else(|| no_version(&asked.version, &id))?;
    let change = EditKind::Rollback { version };
    make(&service, &ask, &id, change, &asked.user, &asked.description).await?;
    show(&service, id, StatusCode::OK).await
}

/// List what was done to a policy.
#[utoipa::path(get, path = "/scheduler/policies/{id}/audit", tag = "novacron", params(("id" = NameSchema, Path)),
    responses((status = 200, description = "Oldest first", body = Vec<PolicyAuditEntry>), Failures))]
async fn audit(Handle(service): Handle<Service>, Id(id): Id) -> Answer {
    let wanted = id.clone();
    let read = service.read(move |state| {
        let past = state.library().audit().filter(|entry| entry.policy == wanted);
        past.map(PolicyAuditEntry::from).collect::<Vec<_>>()
    });
    let past = read.await?;
    if past.is_empty() {
        find(&service, id).await?;
    }
    answer(StatusCode::OK, &past)
}

/// List rules of active policies that work against each other.
#[utoipa::path(get, path = "/scheduler/policies/conflicts", tag = "novacron",
    responses((status = 200, description = "Conflicts", body = Vec<ConflictView>), Failures))]
async fn conflicts(Handle(service): Handle<Service>) -> Answer {
    let set = service.look(|core| std::sync::Arc::clone(core.policies())).await?;
    let found = crate::body::aside(move || Ok(set.conflicts())).await?;
    answer(StatusCode::OK, &found.iter().map(ConflictView::from).collect::<Vec<_>>())
}
