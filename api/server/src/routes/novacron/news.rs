//! Events of VMs, in any order and more than once.

use super::inventory::nanos;
use super::{Failures, advise, fleet, senseless};
use crate::ask::Ask;
use crate::body::Sent;
use crate::routes::{Answer, answer, unexpected};
use crate::service::Service;
use axum::extract::State as Handle;
use axum::http::StatusCode;
use cluster::{Name, VmKey};
use engine::{Outcome, Request, Told, VmNews};
use std::sync::Arc;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use wire::Fault;
use wire::novacron::{
    EventKind, EventResult, EventsAnswer, NodeResourceInfo, VmConfig, VmEvent, VmEvents,
};

pub(super) fn routes() -> OpenApiRouter<Service> {
    OpenApiRouter::new().routes(routes!(hear))
}

/// Report what happened to VMs.
///
/// One event, or many as `{"events": [..]}`, whose answers come in the same order; among many, one
/// that is refused does not keep the others back.
#[utoipa::path(post, path = "/scheduler/events", tag = "novacron", request_body = VmEvents,
    responses((status = 200, description = "What they came to", body = EventsAnswer), Failures))]
async fn hear(Handle(service): Handle<Service>, ask: Ask, Sent(sent): Sent<VmEvents>) -> Answer {
    let (events, alone) = match sent {
        VmEvents::One(event) => (vec![*event], true),
        VmEvents::Many { events } => (events, false),
    };
    let mut results = Vec::with_capacity(events.len());
    let mut requests = Vec::new();
    for (row, event) in events.iter().enumerate() {
        let vm_id = event.vm_id.clone();
        let mut result = EventResult { vm_id, outcome: "ignored", ..EventResult::default() };
        match request(&service, event) {
            Ok(Some(request)) => {
                if service.options.advise {
                    advise::compare(&service, &ask, event, &request).await?;
                }
                requests.push((row, request));
            }
            Ok(None) => {}
            Err(fault) if alone => return Err(senseless(fault)),
            Err(fault) => {
                result.outcome = "refused";
                result.message = format!("{}: {}", fault.path, fault.message);
            }
        }
        results.push(result);
    }
    for (row, reply) in fleet::all(&service, &ask, requests).await {
        let told = match reply {
            Ok(reply) => match reply.outcome {
                Outcome::VmReported(told) => told,
                other => return Err(unexpected(&other)),
            },
            Err(failure) if alone || failure.problem.status >= 500 => return Err(failure),
            Err(failure) => {
                if let Some(result) = results.get_mut(row) {
                    result.outcome = "refused";
                    result.message = failure.problem.detail;
                }
                continue;
            }
        };
        if let Some(result) = results.get_mut(row) {
            tell(result, told);
        }
    }
    answer(StatusCode::OK, &EventsAnswer { results })
}

fn tell(result: &mut EventResult, told: Told) {
    result.outcome = match told {
        Told::Late => "late",
        Told::Known | Told::Remembered => "known",
        Told::Confirmed => "confirmed",
        Told::Released => "released",
        Told::NotDescribed => "ignored",
        Told::Adopted { over_capacity } => {
            result.over_capacity = over_capacity;
            "adopted"
        }
        Told::Resized { over_capacity } => {
            result.over_capacity = over_capacity;
            "resized"
        }
        Told::Moved { from, over_capacity } => {
            result.over_capacity = over_capacity;
            result.message = format!("was on {from}");
            "moved"
        }
    };
}

/// What an event asks of the engine. Nothing, if the VM stays where it is.
fn request(service: &Service, event: &VmEvent) -> Result<Option<Request>, Fault> {
    let (vm, news) = match event.known_kind() {
        Some(
            EventKind::Created
            | EventKind::Started
            | EventKind::Resumed
            | EventKind::Restarted
            | EventKind::Migrated
            | EventKind::Updated,
        ) => described(service, &event.vm_id, &event.node_id, event.config.as_ref())?,
        Some(EventKind::Deleted) => (key(&event.vm_id, event.config.as_ref())?, VmNews::Gone),
        // Stopped and paused VMs keep their room; the rest changes nothing.
        _ => return Ok(None),
    };
    let at_ns = match event.timestamp.is_zero() {
        // Whoever sends no time says that it is now.
        true => service.now_ms().saturating_mul(1_000_000).max(1),
        false => nanos(&event.timestamp),
    };
    Ok(Some(Request::ReportVm { vm, at_ns, news }))
}

/// A VM that runs on a node, in the engine's words.
pub(super) fn described(
    service: &Service,
    vm_id: &str,
    node_id: &str,
    config: Option<&VmConfig>,
) -> Result<(VmKey, VmNews), Fault> {
    let key = key(vm_id, config)?;
    let node = NodeResourceInfo { node_id: node_id.to_owned(), ..NodeResourceInfo::default() };
    let vm = match config {
        Some(config) => {
            let mut vm = config.to_vm(Some(&key.id), false)?;
            if let Some(dim) = fleet::slots(service) {
                vm.demand.set(dim, 1);
            }
            Some(Arc::new(vm))
        }
        None => None,
    };
    Ok((key, VmNews::Runs { host: node.name()?, vm }))
}

fn key(vm_id: &str, config: Option<&VmConfig>) -> Result<VmKey, Fault> {
    let named = VmConfig { id: vm_id.to_owned(), ..VmConfig::default() };
    let id: Name = named
        .key(None)
        .map(|key| key.id)
        .map_err(|fault| Fault { path: "vm_id".into(), ..fault })?;
    config.unwrap_or(&named).key(Some(&id))
}
