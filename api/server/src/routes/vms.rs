//! VMs: adopt those that run already, read, resize, remove.

mod resize;

use super::{Answer, answer, bulk, page, tagged, unexpected};
use crate::app::Problems;
use crate::ask::{Ask, Dry, Id, OfTenant, Params};
use crate::body::{Body, Lines};
use crate::service::Service;
use axum::extract::State as Handle;
use axum::http::StatusCode;
use cluster::{Dimensions, Name, Placed, VmKey};
use engine::{Outcome, Refusal, Request, State, VmEntry};
use serde::Deserialize;
use std::borrow::Cow;
use std::sync::Arc;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use wire::{AdoptRequest, AdoptSpec, BulkAnswer, Fault, NameSchema, Page, VmView};

pub(super) fn routes() -> OpenApiRouter<Service> {
    OpenApiRouter::new().routes(routes!(adopt, list)).routes(routes!(adopt_many)).routes(routes!(
        get,
        resize::resize,
        remove
    ))
}

/// Take in a VM that runs already, whether or not it fits.
#[utoipa::path(post, path = "/v1/vms", tag = "vms", params(Dry), request_body = AdoptSpec,
    responses((status = 201, description = "Adopted", body = VmView),
              (status = 200, description = "Was there already, or a dry run", body = VmView), Problems))]
async fn adopt(
    Handle(service): Handle<Service>,
    Params(dry): Params<Dry>,
    ask: Ask,
    Body(AdoptRequest { vm, host, bindings }): Body<AdoptRequest>,
) -> Answer {
    let ask = ask.dry(dry.dry_run);
    let vm = Arc::new(vm);
    let key = vm.key.clone();
    let bindings = bindings.map(Arc::new);
    let request =
        Request::Adopt { vm: Arc::clone(&vm), host: host.clone(), bindings: bindings.clone() };
    let reply = service.carry_out(&ask, &key.tenant, request).await.map_err(|mut failure| {
        if failure.problem.code == wire::Code::HOST_NOT_FOUND.code {
            failure.problem.errors.push(Fault {
                path: "host_id".into(),
                code: Cow::Borrowed("unknown_reference"),
                message: failure.problem.detail.clone(),
                hint: "register the host first".into(),
            });
        }
        failure
    })?;
    let Outcome::Adopted { generation, over_capacity, repeated } = reply.outcome else {
        return Err(unexpected(&reply.outcome));
    };
    if ask.dry_run && !repeated {
        let committed = vm.demand.clone();
        let placed =
            Placed { vm, host, committed, bindings, over_capacity, adopted: true, held: false };
        let dimensions = service.dimensions();
        let view = VmView::new(&placed, None, generation, reply.revision, &dimensions);
        return answer(StatusCode::OK, &view);
    }
    let status = if repeated { StatusCode::OK } else { StatusCode::CREATED };
    show(&service, key, status).await
}

/// Take in many VMs: one JSON object per line.
#[utoipa::path(post, path = "/v1/vms:bulk", tag = "vms", params(Dry),
    request_body(content = String, content_type = "application/x-ndjson"),
    responses((status = 200, description = "What became of them", body = BulkAnswer), Problems))]
async fn adopt_many(
    Handle(service): Handle<Service>,
    Params(dry): Params<Dry>,
    ask: Ask,
    Lines(adoptions): Lines<AdoptRequest>,
) -> Answer {
    let requests = adoptions.into_iter().map(|AdoptRequest { vm, host, bindings }| {
        let VmKey { tenant, id } = vm.key.clone();
        let (vm, bindings) = (Arc::new(vm), bindings.map(Arc::new));
        (id, tenant, Request::Adopt { vm, host, bindings })
    });
    bulk::carry_out(&service, &ask.dry(dry.dry_run), requests.collect()).await
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct Filter {
    /// Only VMs of this tenant.
    #[param(value_type = Option<NameSchema>)]
    tenant: Option<Name>,
    /// Only VMs on this host.
    #[param(value_type = Option<NameSchema>)]
    host_id: Option<Name>,
    /// `next_cursor` of the page before.
    cursor: Option<String>,
    /// Items in one page. Left out: 100.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u16>,
}

/// List VMs in order of tenant and id.
#[utoipa::path(get, path = "/v1/vms", tag = "vms", params(Filter),
    responses((status = 200, description = "One page", body = Page<VmView>), Problems))]
async fn list(Handle(service): Handle<Service>, Params(filter): Params<Filter>) -> Answer {
    let dimensions = service.dimensions();
    let listed = service.read(move |state| {
        let on = filter.host_id.as_ref().map(|host| state.find_host(host).map(|(ix, _)| ix));
        let wanted = |entry: &VmEntry| {
            filter.tenant.as_ref().is_none_or(|tenant| entry.vm.key.tenant == *tenant)
                && on.is_none_or(|host| host == Some(entry.host))
        };
        let found = state.vms().map(|(_, entry)| entry).filter(|entry| wanted(entry));
        let keyed = found.map(|entry| (entry.vm.key.to_string(), entry));
        let page = page::Cut { cursor: filter.cursor, limit: filter.limit };
        page.of(keyed, state.revision(), |entry| view(entry, state, &dimensions))
    });
    answer(StatusCode::OK, &listed.await?)
}

/// Read a VM with the host it is on.
#[utoipa::path(get, path = "/v1/vms/{id}", tag = "vms", params(("id" = NameSchema, Path), OfTenant),
    responses((status = 200, description = "The VM", body = VmView), Problems))]
async fn get(Handle(service): Handle<Service>, id: Id, Params(of): Params<OfTenant>) -> Answer {
    show(&service, of.key(&id)?, StatusCode::OK).await
}

/// Remove a VM and give its capacity back.
#[utoipa::path(delete, path = "/v1/vms/{id}", tag = "vms", params(("id" = NameSchema, Path), OfTenant),
    responses((status = 204, description = "Removed, or would be"), Problems))]
async fn remove(
    Handle(service): Handle<Service>,
    id: Id,
    Params(of): Params<OfTenant>,
    ask: Ask,
) -> Answer {
    let vm = of.key(&id)?;
    let ask = ask.dry(of.dry_run);
    let tenant = vm.tenant.clone();
    let if_generation = ask.generation();
    service.carry_out(&ask, &tenant, Request::RemoveVm { vm, if_generation }).await?;
    super::nothing()
}

async fn show(service: &Service, key: VmKey, status: StatusCode) -> Answer {
    let dimensions = service.dimensions();
    let wanted = key.clone();
    let found = service.read(move |state| {
        let (_, entry) = state.find_vm(&wanted)?;
        Some(view(entry, state, &dimensions))
    });
    match found.await? {
        Some(view) => tagged(status, view.generation, &view),
        None => Err(Refusal::UnknownVm(key).into()),
    }
}

fn view(entry: &VmEntry, state: &State, dimensions: &Dimensions) -> VmView {
    let host = state.host(entry.host).map(|host| host.host.id.clone());
    let placed = Placed {
        vm: Arc::clone(&entry.vm),
        // Every VM is on a host; the id stands in for one that the state has lost.
        host: host.unwrap_or_else(|| entry.vm.key.id.clone()),
        committed: entry.committed.clone(),
        bindings: entry.bindings.clone(),
        over_capacity: entry.over_capacity,
        adopted: entry.adopted,
        held: entry.hold.is_some(),
    };
    let reservation = entry.hold.map(|hold| format!("r{}", hold.reservation));
    VmView::new(&placed, reservation, entry.generation, state.revision(), dimensions)
}
