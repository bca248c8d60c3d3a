//! Hosts: register, read, change, remove, cordon, and hear their heartbeats.

use super::{Answer, answer, bulk, page, tagged, unexpected};
use crate::app::Problems;
use crate::ask::{Ask, Dry, Id, Params};
use crate::body::{Body, Lines};
use crate::failure::Failure;
use crate::service::Service;
use axum::extract::State as Handle;
use axum::http::StatusCode;
use cluster::{Dimensions, Generation, Hardware, Host, HostState, Name, VmKey};
use engine::{Health, HostEntry, Outcome, PutMode, Request, State};
use serde::Deserialize;
use solver::topology::{Devices, Layout, NodeHole, fragmentation};
use std::borrow::Cow;
use std::sync::Arc;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use wire::{
    BindingsView, BoundView, BulkAnswer, Code, HostHealth, HostSpec, HostStateWord, HostView,
    InsideView, NameSchema, NodeHoleView, Page,
};

pub(super) fn routes() -> OpenApiRouter<Service> {
    OpenApiRouter::new()
        .routes(routes!(create, list))
        .routes(routes!(create_many))
        .routes(routes!(get, put, remove))
        .routes(routes!(cordon))
        .routes(routes!(uncordon))
        .routes(routes!(heartbeat))
}

/// Register a host.
///
/// Repeating the same body changes nothing; another body for the same id is `host_exists`.
#[utoipa::path(post, path = "/v1/hosts", tag = "hosts", params(Dry), request_body = HostSpec,
    responses((status = 201, description = "Registered", body = HostView),
              (status = 200, description = "Was there already, or a dry run", body = HostView), Problems))]
async fn create(
    Handle(service): Handle<Service>,
    Params(dry): Params<Dry>,
    ask: Ask,
    Body(host): Body<Host>,
) -> Answer {
    store(&service, ask.dry(dry.dry_run), host, PutMode::Create).await
}

/// Register a host, or replace what is known of it.
#[utoipa::path(put, path = "/v1/hosts/{id}", tag = "hosts", params(("id" = NameSchema, Path), Dry),
    request_body = HostSpec,
    responses((status = 201, description = "Registered", body = HostView),
              (status = 200, description = "Replaced, or a dry run", body = HostView), Problems))]
async fn put(
    Handle(service): Handle<Service>,
    id: Id,
    Params(dry): Params<Dry>,
    ask: Ask,
    Body(host): Body<Host>,
) -> Answer {
    if host.id.as_str() != id.0 {
        let detail = format!("the path says {:?} and the body says {:?}", id.0, host.id);
        return Err(Failure::new(Code::INVALID_PATH, detail));
    }
    store(&service, ask.dry(dry.dry_run), host, PutMode::CreateOrReplace).await
}

async fn store(service: &Service, ask: Ask, host: Host, mode: PutMode) -> Answer {
    let id = host.id.clone();
    let if_generation = ask.generation();
    let request = Request::PutHost { host: Box::new(host.clone()), mode, if_generation };
    let reply = service.carry_out(&ask, &ask.actor, request).await?;
    let Outcome::Host { generation, created } = reply.outcome else {
        return Err(unexpected(&reply.outcome));
    };
    if ask.dry_run {
        return show_as(service, host, generation).await;
    }
    let status = if created { StatusCode::CREATED } else { StatusCode::OK };
    show(service, id, status).await
}

/// Register many hosts: one JSON object per line.
#[utoipa::path(post, path = "/v1/hosts:bulk", tag = "hosts", params(Dry),
    request_body(content = String, content_type = "application/x-ndjson"),
    responses((status = 200, description = "What became of them", body = BulkAnswer), Problems))]
async fn create_many(
    Handle(service): Handle<Service>,
    Params(dry): Params<Dry>,
    ask: Ask,
    Lines(hosts): Lines<Host>,
) -> Answer {
    let ask = ask.dry(dry.dry_run);
    let mode = PutMode::CreateOrReplace;
    let requests = hosts.into_iter().map(|host| {
        let id = host.id.clone();
        let tenant = ask.actor.clone();
        (id, tenant, Request::PutHost { host: Box::new(host), mode, if_generation: None })
    });
    bulk::carry_out(&service, &ask, requests.collect()).await
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct Filter {
    /// Only hosts of this pool.
    #[param(value_type = Option<NameSchema>)]
    pool: Option<Name>,
    /// Only hosts of this zone.
    #[param(value_type = Option<NameSchema>)]
    zone: Option<Name>,
    /// Only hosts in this state.
    state: Option<HostStateWord>,
    /// `next_cursor` of the page before.
    cursor: Option<String>,
    /// Items in one page. Left out: 100.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u16>,
}

/// List hosts in order of their ids.
#[utoipa::path(get, path = "/v1/hosts", tag = "hosts", params(Filter),
    responses((status = 200, description = "One page", body = Page<HostView>), Problems))]
async fn list(Handle(service): Handle<Service>, Params(filter): Params<Filter>) -> Answer {
    let dimensions = service.dimensions();
    let listed = service.read(move |state| {
        let wanted = |entry: &HostEntry| {
            let host = &entry.host;
            filter.pool.as_ref().is_none_or(|pool| host.pool.as_ref() == Some(pool))
                && filter.zone.as_ref().is_none_or(|zone| host.location.zone.as_ref() == Some(zone))
                && filter.state.is_none_or(|state| host.state == state.0)
        };
        let found = state.hosts().map(|(_, entry)| entry).filter(|entry| wanted(entry));
        let keyed = found.map(|entry| (entry.host.id.to_string(), entry));
        let page = page::Cut { cursor: filter.cursor, limit: filter.limit };
        page.of(keyed, state.revision(), |entry| view(entry, state, &dimensions))
    });
    answer(StatusCode::OK, &listed.await?)
}

/// Read a host with what it has, what is promised and what is free.
#[utoipa::path(get, path = "/v1/hosts/{id}", tag = "hosts", params(("id" = NameSchema, Path)),
    responses((status = 200, description = "The host", body = HostView), Problems))]
async fn get(Handle(service): Handle<Service>, id: Id) -> Answer {
    show(&service, id.name()?, StatusCode::OK).await
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct Removal {
    /// Remove the VMs on the host with it. Left out: a host with VMs is kept.
    #[serde(default)]
    #[param(required = false)]
    evict: bool,
    /// Say what would happen, and do nothing.
    #[serde(default)]
    #[param(required = false)]
    dry_run: bool,
}

/// Remove a host.
#[utoipa::path(delete, path = "/v1/hosts/{id}", tag = "hosts", params(("id" = NameSchema, Path), Removal),
    responses((status = 204, description = "Removed, or would be"), Problems))]
async fn remove(
    Handle(service): Handle<Service>,
    id: Id,
    Params(removal): Params<Removal>,
    ask: Ask,
) -> Answer {
    let ask = ask.dry(removal.dry_run);
    let (host, evict, if_generation) = (id.name()?, removal.evict, ask.generation());
    let request = Request::RemoveHost { host, evict, if_generation };
    service.carry_out(&ask, &ask.actor, request).await?;
    super::nothing()
}

/// Let a host take no new VMs.
#[utoipa::path(post, path = "/v1/hosts/{id}/cordon", tag = "hosts", params(("id" = NameSchema, Path), Dry),
    responses((status = 200, description = "The host", body = HostView), Problems))]
async fn cordon(
    Handle(service): Handle<Service>,
    id: Id,
    Params(dry): Params<Dry>,
    ask: Ask,
) -> Answer {
    set_state(&service, id.name()?, ask.dry(dry.dry_run), HostState::Cordoned).await
}

/// Let a host take VMs again.
#[utoipa::path(post, path = "/v1/hosts/{id}/uncordon", tag = "hosts", params(("id" = NameSchema, Path), Dry),
    responses((status = 200, description = "The host", body = HostView), Problems))]
async fn uncordon(
    Handle(service): Handle<Service>,
    id: Id,
    Params(dry): Params<Dry>,
    ask: Ask,
) -> Answer {
    set_state(&service, id.name()?, ask.dry(dry.dry_run), HostState::Available).await
}

async fn set_state(service: &Service, host: Name, ask: Ask, state: HostState) -> Answer {
    let if_generation = ask.generation();
    let request = Request::SetHostState { host: host.clone(), state, if_generation };
    let reply = service.carry_out(&ask, &ask.actor, request).await?;
    let Outcome::Host { generation, .. } = reply.outcome else {
        return Err(unexpected(&reply.outcome));
    };
    if !ask.dry_run {
        return show(service, host, StatusCode::OK).await;
    }
    let id = host.clone();
    let present = service.read(move |now| now.find_host(&id).map(|(_, it)| (*it.host).clone()));
    match present.await? {
        Some(present) => show_as(service, Host { state, ..present }, generation).await,
        None => Err(unknown(&host)),
    }
}

/// Note that a host is alive. Nothing is stored unless its health changes.
#[utoipa::path(post, path = "/v1/hosts/{id}/heartbeat", tag = "hosts", params(("id" = NameSchema, Path)),
    responses((status = 204, description = "Noted"), Problems))]
async fn heartbeat(Handle(service): Handle<Service>, id: Id) -> Answer {
    let host = id.name()?;
    let writer = service.writer().clone();
    let beat = host.clone();
    let known = crate::body::aside(move || Ok(writer.heartbeat(&beat))).await?;
    if known { super::nothing() } else { Err(unknown(&host)) }
}

async fn show(service: &Service, id: Name, status: StatusCode) -> Answer {
    let dimensions = service.dimensions();
    let host = id.clone();
    let found = service.read(move |state| {
        let (_, entry) = state.find_host(&id)?;
        let inside = inside(entry, state);
        Some(HostView { inside, ..view(entry, state, &dimensions) })
    });
    match found.await? {
        Some(view) => tagged(status, view.generation, &view),
        None => Err(unknown(&host)),
    }
}

/// The host as a change would make it, with what is on it now.
async fn show_as(service: &Service, host: Host, generation: Generation) -> Answer {
    let dimensions = service.dimensions();
    let shown = service.read(move |state| {
        let none = cluster::Amounts::zero();
        let (health, allocated, vms) = match state.find_host(&host.id) {
            Some((_, entry)) => (entry.health, &entry.allocated, entry.vms.len() as u64),
            None => (Health::Healthy, &none, 0),
        };
        let foreign = state.find_host(&host.id).map(|(_, entry)| entry.foreign());
        let host = Host { foreign: foreign.unwrap_or_default(), ..host };
        let revision = state.revision();
        HostView::new(&host, word(health), allocated, vms, generation, revision, &dimensions)
    });
    answer(StatusCode::OK, &shown.await?)
}

fn view(entry: &HostEntry, state: &State, dimensions: &Dimensions) -> HostView {
    let foreign = entry.foreign();
    // Most hosts are nobody else's, and need no copy.
    let host = match foreign.is_zero() {
        true => Cow::Borrowed(entry.host.as_ref()),
        false => Cow::Owned(Host { foreign, ..entry.host.as_ref().clone() }),
    };
    HostView::new(
        &host,
        word(entry.health),
        &entry.allocated,
        entry.vms.len() as u64,
        entry.generation,
        state.revision(),
        dimensions,
    )
}

/// What is left inside a host that lists its hardware.
fn inside(entry: &HostEntry, state: &State) -> Option<InsideView> {
    let host = &entry.host;
    if *host.hardware == Hardware::default() {
        return None;
    }
    let layout = Layout::new(&host.hardware, host.cpu_overcommit_permille()).ok()?;
    let mut devices = Devices::new(Arc::new(layout));
    let vms = entry.vms.iter().filter_map(|vm| state.vm(*vm));
    let bound: Vec<BoundView> = vms
        .filter_map(|vm| {
            let bindings = vm.bindings.as_deref()?;
            // Recorded bindings never clash; if they did, the rest would still be worth showing.
            let _ = devices.take(bindings);
            let VmKey { tenant, id } = vm.vm.key.clone();
            Some(BoundView { vm_id: id, tenant, bindings: BindingsView::from(bindings) })
        })
        .collect();
    let left = fragmentation(&devices);
    let hole = |hole: &NodeHole| NodeHoleView {
        free_cores: hole.free_cores,
        free_threads: hole.free_threads,
        free_memory_mib: hole.memory_mib,
        free_gpus: hole.unused_gpus,
    };
    Some(InsideView {
        numa: left.nodes.iter().map(hole).collect(),
        free_cores: left.free_cores,
        largest_node_cores: left.largest_node_cores,
        free_gpus: left.unused_gpus,
        partly_free_gpus: left.partly_free_gpus,
        largest_switch_gpus: left.largest_switch_gpus,
        largest_clique_gpus: left.largest_clique_gpus,
        gpu_milli_in_pieces: left.gpu_milli_in_pieces,
        largest_gpu_piece_milli: left.largest_gpu_piece_milli,
        mig_slices_in_pieces: left.mig_slices_in_pieces,
        stranded_gpus: left.stranded_gpus,
        bound,
    })
}

fn word(health: Health) -> HostHealth {
    match health {
        Health::Healthy => HostHealth::Healthy,
        Health::Suspect => HostHealth::Suspect,
        Health::Down => HostHealth::Down,
    }
}

fn unknown(host: &Name) -> Failure {
    Failure::from(engine::Refusal::UnknownHost(host.clone()))
}
