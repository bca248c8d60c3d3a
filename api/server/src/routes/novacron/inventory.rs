//! The inventory: every node at once, or what has changed since the last time.

use super::fleet::{self, Nodes};
use super::news::described;
use super::{Failures, senseless};
use crate::ask::Ask;
use crate::body::Sent;
use crate::failure::Failure;
use crate::routes::{Answer, answer};
use crate::service::Service;
use axum::extract::State as Handle;
use axum::http::StatusCode;
use cluster::{Name, VmKey};
use engine::{Outcome, Refusal, Request, State, UseReports, VmNews, fingerprint};
use std::collections::{BTreeMap, BTreeSet};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use wire::novacron::{Inventory, InventoryAnswer, InventoryDelta, InventoryVm, Time};

pub(super) fn routes() -> OpenApiRouter<Service> {
    OpenApiRouter::new().routes(routes!(replace, change))
}

/// Send the whole inventory.
///
/// Nodes that are not in it and were in an earlier one are removed. Any generation will do: this
/// is how a sender that has started again, or was told that it is behind, begins anew.
#[utoipa::path(put, path = "/scheduler/inventory", tag = "novacron", request_body = Inventory,
    responses((status = 200, description = "Taken over", body = InventoryAnswer), Failures))]
async fn replace(
    Handle(service): Handle<Service>,
    ask: Ask,
    Sent(sent): Sent<Inventory>,
) -> Answer {
    let nodes = Nodes::new(&service, "nodes", sent.nodes.as_deref().unwrap_or_default())?;
    let named: BTreeSet<Name> = nodes.names().cloned().collect();
    let missing = service.read(move |state| {
        let reported = state.hosts().filter(|(_, entry)| entry.report.is_some());
        let missing = reported.filter(|(_, entry)| !named.contains(&entry.host.id));
        missing.map(|(_, entry)| entry.host.id.clone()).collect::<Vec<Name>>()
    });
    let step = Step {
        generation: sent.generation,
        base: None,
        digest: [0; 16],
        taken_at: sent.taken_at,
        removed: missing.await?,
        vms: sent.vms,
    };
    let done = step.take(&service, &ask, nodes).await?;
    sent.nodes.iter().flatten().for_each(|node| service.observe(node));
    Ok(done)
}

/// Send what has changed in the inventory.
///
/// 409 unless it is a change of the inventory that is known: then send the whole one. The same
/// change twice is taken once.
#[utoipa::path(patch, path = "/scheduler/inventory", tag = "novacron", request_body = InventoryDelta,
    responses((status = 200, description = "Taken over", body = InventoryAnswer), Failures))]
async fn change(
    Handle(service): Handle<Service>,
    ask: Ask,
    Sent(sent): Sent<InventoryDelta>,
) -> Answer {
    let nodes = Nodes::new(&service, "upsert", sent.upsert.as_deref().unwrap_or_default())?;
    let (generation, digest) = (sent.next_generation(), fingerprint(&sent));
    let known = service.read(|state| state.inventory().clone()).await?;
    if sent.base_generation != known.generation {
        if known.generation == generation && known.digest == digest {
            let count = service.read(State::host_count).await?;
            let repeated = InventoryAnswer {
                generation,
                nodes: u64::try_from(count).unwrap_or(u64::MAX),
                repeated: true,
                ..InventoryAnswer::default()
            };
            return answer(StatusCode::OK, &repeated);
        }
        let (base, current) = (sent.base_generation, known.generation);
        return Err(Refusal::Gap { base, current }.into());
    }
    let removed = sent.removed().map_err(senseless)?;
    let (base, taken_at) = (Some(sent.base_generation), sent.taken_at);
    let step = Step { generation, base, digest, taken_at, removed, vms: sent.vms };
    let done = step.take(&service, &ask, nodes).await?;
    sent.upsert.iter().flatten().for_each(|node| service.observe(node));
    Ok(done)
}

/// From one inventory to the next.
struct Step {
    generation: u64,
    base: Option<u64>,
    digest: [u8; 16],
    taken_at: Option<Time>,
    removed: Vec<Name>,
    vms: Option<Vec<InventoryVm>>,
}

impl Step {
    async fn take(self, service: &Service, ask: &Ask, nodes: Nodes) -> Answer {
        let taken = nodes.put(service, ask).await?;
        if let (Some(vms), Some(taken_at)) = (&self.vms, self.taken_at) {
            self.compare_vms(service, ask, &nodes, vms, nanos(&taken_at)).await?;
        }
        let mut removed = 0u64;
        let removals = self
            .removed
            .into_iter()
            .map(|host| ((), Request::RemoveHost { host, evict: true, if_generation: None }));
        for (_, reply) in fleet::all(service, ask, removals.collect()).await {
            match reply {
                Ok(_) => removed = removed.saturating_add(1),
                // What is not there is removed.
                Err(failure) if failure.problem.status == 404 => {}
                Err(failure) => return Err(failure),
            }
        }
        let whole = UseReports {
            generation: self.generation,
            base: self.base,
            digest: self.digest,
            taken_ns: self.taken_at.as_ref().map(nanos),
            last: true,
            reports: Vec::new(),
        };
        let mut done = InventoryAnswer {
            added: taken.added,
            removed,
            refused: taken.refused,
            ..InventoryAnswer::default()
        };
        // One after the other: the generation is reached with the last.
        for piece in nodes.reports(&whole) {
            let request = Request::ReportUse(Box::new(piece));
            let reply = service.carry_out(ask, &ask.actor, request).await?;
            if let Outcome::UseReported { generation, .. } = reply.outcome {
                done.generation = generation;
            }
        }
        let count = service.read(State::host_count).await?;
        done.nodes = u64::try_from(count).unwrap_or(u64::MAX);
        answer(StatusCode::OK, &done)
    }

    /// A list of the VMs on the named nodes stands in for events that were lost: who is on it
    /// runs, and who is not, although it was heard of earlier, is gone.
    async fn compare_vms(
        &self,
        service: &Service,
        ask: &Ask,
        nodes: &Nodes,
        vms: &[InventoryVm],
        taken_ns: u64,
    ) -> Result<(), Failure> {
        let mut listed: BTreeMap<VmKey, VmNews> = BTreeMap::new();
        for (row, vm) in vms.iter().enumerate() {
            let at = |fault: wire::Fault| {
                let path = format!("vms[{row}].{}", fault.path);
                senseless(wire::Fault { path, ..fault })
            };
            let (key, news) =
                described(service, &vm.vm_id, &vm.node_id, vm.config.as_ref()).map_err(at)?;
            listed.insert(key, news);
        }
        let named: BTreeSet<Name> = nodes.names().cloned().collect();
        let names: BTreeSet<VmKey> = listed.keys().cloned().collect();
        let gone = service.read(move |state| {
            let here = state.vms().filter(|(_, vm)| {
                let host = state.host(vm.host).map(|host| &host.host.id);
                let heard = vm.hold.is_none() && (1..taken_ns).contains(&vm.heard_ns);
                heard && host.is_some_and(|host| named.contains(host))
            });
            let keys = here.map(|(_, vm)| vm.vm.key.clone());
            keys.filter(|key| !names.contains(key)).collect::<Vec<VmKey>>()
        });
        // Just before the inventory was taken, so that its use includes them.
        let at_ns = taken_ns.saturating_sub(1);
        let gone = gone.await?.into_iter().map(|vm| (vm, VmNews::Gone));
        let news = listed.into_iter().chain(gone);
        let requests = news.map(|(vm, news)| ((), Request::ReportVm { vm, at_ns, news }));
        for (_, reply) in fleet::all(service, ask, requests.collect()).await {
            match reply {
                // On a node that nobody has registered: the VM is nobody's here.
                Err(failure) if failure.problem.status == 404 => {}
                other => {
                    other?;
                }
            }
        }
        Ok(())
    }
}

/// Nanoseconds since 1970; at least 1, because 0 stands for never.
pub(super) fn nanos(time: &Time) -> u64 {
    u64::try_from(time.unix_nanos()).unwrap_or(0).max(1)
}
