//! Constraints: what can be installed, what is, and changing that.

use super::{Answer, answer, nothing, tagged, unexpected};
use crate::app::Problems;
use crate::ask::{Ask, Dry, Id, Params};
use crate::body::Body;
use crate::failure::Failure;
use crate::service::Service;
use axum::extract::State as Handle;
use axum::http::StatusCode;
use cluster::{Constraint, ConstraintRule};
use engine::{ConstraintEntry, Outcome, Refusal, Request};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use wire::{ConstraintList, ConstraintSpec, ConstraintView, NameSchema, constraint_types};

pub(super) fn routes() -> OpenApiRouter<Service> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(get, put, remove))
}

/// List the types of constraints with their parameters, and the constraints in force.
#[utoipa::path(get, path = "/v1/constraints", tag = "policy",
    responses((status = 200, description = "Types, and what is installed", body = ConstraintList), Problems))]
async fn list(Handle(service): Handle<Service>) -> Answer {
    let listed = service.read(|state| ConstraintList {
        types: constraint_types(),
        items: state.constraints().map(view).collect(),
        revision: state.revision().0,
    });
    answer(StatusCode::OK, &listed.await?)
}

/// Read a constraint in force.
#[utoipa::path(get, path = "/v1/constraints/{name}", tag = "policy",
    params(("name" = NameSchema, Path)),
    responses((status = 200, description = "The constraint", body = ConstraintView), Problems))]
async fn get(Handle(service): Handle<Service>, id: Id) -> Answer {
    let name = id.name()?;
    let wanted = name.clone();
    match service.read(move |state| state.find_constraint(&wanted).map(view)).await? {
        Some(found) => tagged(StatusCode::OK, found.generation, &found),
        None => Err(Refusal::UnknownConstraint(name).into()),
    }
}

/// Put a constraint in force, in place of the one of the same name if there is one.
///
/// It binds VMs that are placed from now on. Constraints that cannot hold together are refused
/// with `constraints_contradict`, which lists the fewest that are in each other's way.
#[utoipa::path(put, path = "/v1/constraints/{name}", tag = "policy",
    params(("name" = NameSchema, Path), Dry), request_body = ConstraintSpec,
    responses((status = 201, description = "In force", body = ConstraintView),
              (status = 200, description = "Replaced, the same as before, or a dry run", body = ConstraintView), Problems))]
async fn put(
    Handle(service): Handle<Service>,
    id: Id,
    Params(dry): Params<Dry>,
    ask: Ask,
    Body(rule): Body<ConstraintRule>,
) -> Answer {
    let ask = ask.dry(dry.dry_run);
    let constraint = Box::new(Constraint { name: id.name()?, rule });
    let if_generation = ask.generation();
    let request = Request::PutConstraint { constraint: constraint.clone(), if_generation };
    let reply = service.carry_out(&ask, &ask.actor, request).await?;
    let Outcome::Constraint { generation, created, warnings } = reply.outcome else {
        return Err(unexpected(&reply.outcome));
    };
    let shown = ConstraintView { warnings, ..ConstraintView::new(&constraint, generation.0) };
    let status = if created && !ask.dry_run { StatusCode::CREATED } else { StatusCode::OK };
    tagged(status, shown.generation, &shown)
}

/// Take a constraint out of force.
#[utoipa::path(delete, path = "/v1/constraints/{name}", tag = "policy",
    params(("name" = NameSchema, Path), Dry),
    responses((status = 204, description = "Removed, or would be"), Problems))]
async fn remove(
    Handle(service): Handle<Service>,
    id: Id,
    Params(dry): Params<Dry>,
    ask: Ask,
) -> Answer {
    let ask = ask.dry(dry.dry_run);
    let request = Request::RemoveConstraint { name: id.name()?, if_generation: ask.generation() };
    let reply = service.carry_out(&ask, &ask.actor, request).await?;
    match reply.outcome {
        Outcome::ConstraintRemoved => nothing(),
        other => Err::<_, Failure>(unexpected(&other)),
    }
}

fn view(entry: &ConstraintEntry) -> ConstraintView {
    ConstraintView::new(&entry.constraint, entry.generation.0)
}
