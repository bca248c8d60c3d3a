//! Nodes as hosts: how NovaCron's nodes are taken over, and how they are shown again.
//!
//! A node is two things here: a host with what it has, and a report of what is in use on it. What
//! NovaCron does not know about a host, such as its price or pool, stays as it was set on `/v1`.

use super::senseless;
use crate::ask::Ask;
use crate::failure::Failure;
use crate::options::VM_SLOTS;
use crate::service::Service;
use cluster::{Amounts, Dim, Host, HostState, Name};
use engine::{HostEntry, MAX_REPORTS, Outcome, PutMode, Reply, Request, UseReport, UseReports};
use futures_util::future::join_all;
use std::collections::BTreeMap;
use wire::Fault;
use wire::novacron::{NodeResourceInfo, RefusedNode};

/// Requests in flight at once: as many as the writer commits together.
const AT_ONCE: usize = 256;

/// Nodes that make sense, by name.
#[derive(Debug, Default)]
pub(super) struct Nodes(BTreeMap<Name, (Host, UseReport)>);

/// What became of nodes that were sent.
#[derive(Debug, Default)]
pub(super) struct TakenOver {
    pub(super) added: u64,
    pub(super) refused: Vec<RefusedNode>,
}

impl Nodes {
    /// `path` is where the nodes are in the body.
    pub(super) fn new(
        service: &Service,
        path: &str,
        nodes: &[NodeResourceInfo],
    ) -> Result<Self, Failure> {
        let mut named = BTreeMap::new();
        for (row, node) in nodes.iter().enumerate() {
            let at = |fault: Fault| {
                let path = match path {
                    "" => fault.path,
                    path => format!("{path}[{row}].{}", fault.path),
                };
                senseless(Fault { path, ..fault })
            };
            let (host, report) = host_and_use(service, node).map_err(at)?;
            if named.insert(host.id.clone(), (host, report)).is_some() {
                return Err(at(Fault {
                    path: "node_id".into(),
                    code: "duplicate_id".into(),
                    message: format!("{:?} is there twice", node.node_id),
                    hint: "send each node once".into(),
                }));
            }
        }
        Ok(Self(named))
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &Name> {
        self.0.keys()
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// What is in use, in pieces that each fit one command. There is always a last one.
    pub(super) fn reports(&self, whole: &UseReports) -> Vec<UseReports> {
        let reports: Vec<&UseReport> = self.0.values().map(|(_, report)| report).collect();
        let mut pieces: Vec<UseReports> = reports
            .chunks(MAX_REPORTS)
            .map(|piece| UseReports {
                last: false,
                reports: piece.iter().map(|report| UseReport::clone(report)).collect(),
                ..whole.clone()
            })
            .collect();
        match pieces.last_mut() {
            Some(piece) => piece.last = whole.last,
            None => pieces.push(whole.clone()),
        }
        pieces
    }

    /// Takes the nodes over without making them an inventory.
    pub(super) async fn take_over(
        &self,
        service: &Service,
        ask: &Ask,
    ) -> Result<TakenOver, Failure> {
        let taken = self.put(service, ask).await?;
        // Pieces of an inventory that has no last one.
        let whole = UseReports {
            generation: 0,
            base: None,
            digest: [0; 16],
            taken_ns: None,
            last: false,
            reports: Vec::new(),
        };
        let pieces = self.reports(&whole).into_iter();
        let requests = pieces.map(|piece| ((), Request::ReportUse(Box::new(piece)))).collect();
        for (_, reply) in all(service, ask, requests).await {
            reply?;
        }
        Ok(taken)
    }

    /// Registers the hosts that are new and changes those that are different.
    pub(super) async fn put(&self, service: &Service, ask: &Ask) -> Result<TakenOver, Failure> {
        let hosts: Vec<Host> = self.0.values().map(|(host, _)| host.clone()).collect();
        let changed = service.read(move |state| {
            let merged = hosts.into_iter().filter_map(|host| match state.find_host(&host.id) {
                None => Some(host),
                Some((_, entry)) => {
                    let merged = merged(&entry.host, host);
                    (merged != *entry.host).then_some(merged)
                }
            });
            merged.collect::<Vec<Host>>()
        });
        let changed = changed.await?;
        let mut taken = TakenOver::default();
        let requests: Vec<(Name, Request)> = changed
            .into_iter()
            .map(|host| {
                let (id, mode) = (host.id.clone(), PutMode::CreateOrReplace);
                (id, Request::PutHost { host: Box::new(host), mode, if_generation: None })
            })
            .collect();
        let mut cordon = Vec::new();
        for (id, reply) in all(service, ask, requests).await {
            match reply {
                Ok(Reply { outcome: Outcome::Host { created, .. }, .. }) => {
                    taken.added = taken.added.saturating_add(u64::from(created));
                }
                Ok(_) => {}
                // It has less than what is promised on it. What it has left is nobody's to give.
                Err(failure) if failure.problem.status < 500 => {
                    let reason = match failure.problem.errors.first() {
                        Some(fault) => format!("{} {}", fault.path, fault.message),
                        None => failure.problem.detail.clone(),
                    };
                    taken.refused.push(RefusedNode { node_id: id.to_string(), reason });
                    let (state, if_generation) = (HostState::Cordoned, None);
                    let request = Request::SetHostState { host: id.clone(), state, if_generation };
                    cordon.push((id, request));
                }
                Err(failure) => return Err(failure),
            }
        }
        for (_, reply) in all(service, ask, cordon).await {
            reply?;
        }
        Ok(taken)
    }
}

/// Carries requests out, many at a time, and keeps their order.
pub(super) async fn all<K>(
    service: &Service,
    ask: &Ask,
    requests: Vec<(K, Request)>,
) -> Vec<(K, Result<Reply, Failure>)> {
    // One key cannot stand for many requests, and repeating any of these is safe without one.
    let ask = ask.without_key();
    let mut replies = Vec::with_capacity(requests.len());
    let mut requests = requests.into_iter().peekable();
    while requests.peek().is_some() {
        let chunk = requests.by_ref().take(AT_ONCE).map(|(key, request)| {
            let (service, ask) = (service, &ask);
            async move { (key, service.carry_out(ask, &ask.actor, request).await) }
        });
        replies.extend(join_all(chunk).await);
    }
    replies
}

/// The dimension that counts VMs, if there is a limit on their number.
pub(super) fn slots(service: &Service) -> Option<Dim> {
    let limited = service.options.max_vms_per_node > 0;
    limited.then(|| service.dimensions().find(VM_SLOTS)).flatten()
}

/// A host as a node, with everything that is taken of it.
pub(super) fn shown(entry: &HostEntry) -> NodeResourceInfo {
    let foreign = entry.foreign();
    let used = entry.allocated.checked_add(&foreign.used).unwrap_or_default();
    let ours = u64::try_from(entry.vms.len()).unwrap_or(u64::MAX);
    NodeResourceInfo::new(&entry.host, &used, ours.saturating_add(foreign.vms.into()))
}

fn host_and_use(service: &Service, node: &NodeResourceInfo) -> Result<(Host, UseReport), Fault> {
    let (mut host, mut used): (Host, Amounts) = (node.to_host()?, node.used()?);
    let vms = u32::try_from(node.vm_count.max(0)).unwrap_or(u32::MAX);
    if let Some(dim) = slots(service) {
        host.capacity.set(dim, service.options.max_vms_per_node.into());
        used.set(dim, vms.into());
    }
    let report = UseReport { host: host.id.clone(), used, vms: Some(vms) };
    Ok((host, report))
}

/// What is known of a host, with what NovaCron says of it now.
fn merged(known: &Host, sent: Host) -> Host {
    let mut host = known.clone();
    for (dim, _) in known.capacity.iter().chain(sent.capacity.iter()) {
        let told = dim.row() <= Dim::DISK_GIB.row() || sent.capacity.get(dim) > 0;
        if told {
            host.capacity.set(dim, sent.capacity.get(dim));
        }
    }
    host.labels = sent.labels;
    host.location.region = sent.location.region.or(host.location.region);
    host.location.zone = sent.location.zone.or(host.location.zone);
    host.location.rack = sent.location.rack.or(host.location.rack);
    host.state = sent.state;
    host
}
