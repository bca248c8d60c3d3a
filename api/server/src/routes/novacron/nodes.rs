//! NovaCron's node registry.

use super::fleet::{Nodes, shown};
use super::{Failures, senseless};
use crate::ask::{Ask, Id};
use crate::body::Sent;
use crate::failure::Failure;
use crate::routes::{Answer, answer, nothing};
use crate::service::Service;
use axum::extract::State as Handle;
use axum::http::StatusCode;
use cluster::Name;
use engine::Request;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use wire::novacron::NodeResourceInfo;
use wire::{Code, NameSchema};

pub(super) fn routes() -> OpenApiRouter<Service> {
    OpenApiRouter::new().routes(routes!(list, create)).routes(routes!(get, put, remove))
}

/// List the nodes, in order of their ids.
#[utoipa::path(get, path = "/scheduler/nodes", tag = "novacron",
    responses((status = 200, description = "Every node", body = Vec<NodeResourceInfo>), Failures))]
async fn list(Handle(service): Handle<Service>) -> Answer {
    let nodes = service.read(|state| {
        let mut nodes: Vec<_> = state.hosts().map(|(_, entry)| shown(entry)).collect();
        nodes.sort_by(|a, b| a.node_id.cmp(&b.node_id));
        nodes
    });
    answer(StatusCode::OK, &nodes.await?)
}

/// Register a node.
#[utoipa::path(post, path = "/scheduler/nodes", tag = "novacron", request_body = NodeResourceInfo,
    responses((status = 201, description = "Registered", body = NodeResourceInfo), Failures))]
async fn create(
    Handle(service): Handle<Service>,
    ask: Ask,
    Sent(node): Sent<NodeResourceInfo>,
) -> Answer {
    let name = node.name().map_err(senseless)?;
    if known(&service, &name).await? {
        let detail = format!("node {name} is already registered");
        return Err(Failure::new(Code::CONFLICT, detail));
    }
    store(&service, &ask, node).await?;
    show(&service, name, StatusCode::CREATED).await
}

/// Read a node.
#[utoipa::path(get, path = "/scheduler/nodes/{id}", tag = "novacron", params(("id" = NameSchema, Path)),
    responses((status = 200, description = "The node", body = NodeResourceInfo), Failures))]
async fn get(Handle(service): Handle<Service>, id: Id) -> Answer {
    show(&service, id.name()?, StatusCode::OK).await
}

/// Replace what is known of a node.
#[utoipa::path(put, path = "/scheduler/nodes/{id}", tag = "novacron", params(("id" = NameSchema, Path)),
    request_body = NodeResourceInfo,
    responses((status = 200, description = "Replaced", body = NodeResourceInfo), Failures))]
async fn put(
    Handle(service): Handle<Service>,
    id: Id,
    ask: Ask,
    Sent(mut node): Sent<NodeResourceInfo>,
) -> Answer {
    let name = id.name()?;
    if !node.node_id.trim().is_empty() && node.node_id.trim() != name.as_str() {
        let detail = format!("the path says {name:?} and the body says {:?}", node.node_id);
        return Err(Failure::new(Code::INVALID_PATH, detail));
    }
    node.node_id = name.to_string();
    if !known(&service, &name).await? {
        return Err(not_registered(&name));
    }
    store(&service, &ask, node).await?;
    show(&service, name, StatusCode::OK).await
}

/// Remove a node and forget what ran on it.
#[utoipa::path(delete, path = "/scheduler/nodes/{id}", tag = "novacron", params(("id" = NameSchema, Path)),
    responses((status = 204, description = "Removed"), Failures))]
async fn remove(Handle(service): Handle<Service>, id: Id, ask: Ask) -> Answer {
    let name = id.name()?;
    if !known(&service, &name).await? {
        return Err(not_registered(&name));
    }
    let request = Request::RemoveHost { host: name, evict: true, if_generation: None };
    service.carry_out(&ask, &ask.actor, request).await?;
    nothing()
}

async fn store(service: &Service, ask: &Ask, node: NodeResourceInfo) -> Result<(), Failure> {
    let nodes = Nodes::new(service, "", std::slice::from_ref(&node))?;
    let taken = nodes.take_over(service, ask).await?;
    service.observe(&node);
    match taken.refused.into_iter().next() {
        Some(refused) => Err(Failure::new(Code::CONFLICT, refused.reason)),
        None => Ok(()),
    }
}

async fn known(service: &Service, name: &Name) -> Result<bool, Failure> {
    let name = name.clone();
    service.read(move |state| state.find_host(&name).is_some()).await
}

async fn show(service: &Service, name: Name, status: StatusCode) -> Answer {
    let looked_for = name.clone();
    let node =
        service.read(move |state| state.find_host(&looked_for).map(|(_, entry)| shown(entry)));
    match node.await? {
        Some(node) => answer(status, &node),
        None => Err(not_registered(&name)),
    }
}

fn not_registered(name: &Name) -> Failure {
    Failure::new(Code::HOST_NOT_FOUND, format!("node {name} is not registered"))
}
