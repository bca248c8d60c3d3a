//! The cluster as a whole: capacity, state hash.

use super::{Answer, answer};
use crate::app::Problems;
use crate::ask::Params;
use crate::failure::Failure;
use crate::service::Service;
use axum::extract::State as Handle;
use axum::http::StatusCode;
use cluster::{Dim, Dimensions, Name, Revision};
use engine::HostEntry;
use serde::Deserialize;
use std::collections::BTreeMap;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use wire::{CapacityView, Choice, Code, PoolCapacity, Quantities, StateHash};

pub(super) fn routes() -> OpenApiRouter<Service> {
    OpenApiRouter::new().routes(routes!(capacity)).routes(routes!(state_hash))
}

/// Read what all hosts have, what is promised and what is free.
#[utoipa::path(get, path = "/v1/cluster/capacity", tag = "cluster",
    responses((status = 200, description = "Sums over all hosts and by pool", body = CapacityView), Problems))]
async fn capacity(Handle(service): Handle<Service>) -> Answer {
    let dimensions = service.dimensions();
    let summed = service.read(move |state| {
        let mut all = Sums::default();
        let mut pools: BTreeMap<&Name, Sums> = BTreeMap::new();
        let mut hosts_by_state = BTreeMap::new();
        for (_, entry) in state.hosts() {
            all.add(entry, &dimensions);
            if let Some(pool) = &entry.host.pool {
                pools.entry(pool).or_default().add(entry, &dimensions);
            }
            let count: &mut u64 =
                hosts_by_state.entry(entry.effective_state().word().to_owned()).or_default();
            *count = count.saturating_add(1);
        }
        let pools = pools.into_iter().map(|(pool, sums)| PoolCapacity {
            pool: pool.clone(),
            hosts: sums.hosts,
            vms: sums.vms,
            capacity: sums.of(Row::Capacity, &dimensions),
            allocatable: sums.of(Row::Allocatable, &dimensions),
            allocated: sums.of(Row::Allocated, &dimensions),
            free: sums.of(Row::Free, &dimensions),
        });
        CapacityView {
            revision: state.revision().0,
            hosts: all.hosts,
            vms: all.vms,
            hosts_by_state,
            capacity: all.of(Row::Capacity, &dimensions),
            allocatable: all.of(Row::Allocatable, &dimensions),
            allocated: all.of(Row::Allocated, &dimensions),
            free: all.of(Row::Free, &dimensions),
            pools: pools.collect(),
        }
    });
    answer(StatusCode::OK, &summed.await?)
}

/// Sums over hosts. One host's amount is below 2^31, so billions of hosts fit.
#[derive(Default)]
struct Sums {
    hosts: u64,
    vms: u64,
    rows: BTreeMap<(Row, u8), u64>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Row {
    Capacity,
    Allocatable,
    Allocated,
    Free,
}

impl Sums {
    fn add(&mut self, entry: &HostEntry, dimensions: &Dimensions) {
        self.hosts = self.hosts.saturating_add(1);
        self.vms = self.vms.saturating_add(entry.vms.len() as u64);
        let foreign = entry.foreign().used;
        for dim in dimensions.iter() {
            let allocatable = entry.host.allocatable(dim);
            let allocated = entry.allocated.get(dim);
            self.count(Row::Capacity, dim, entry.host.capacity.get(dim));
            self.count(Row::Allocatable, dim, allocatable);
            self.count(Row::Allocated, dim, allocated);
            let taken = allocated.saturating_add(foreign.get(dim));
            self.count(Row::Free, dim, allocatable.saturating_sub(taken));
        }
    }

    fn count(&mut self, row: Row, dim: Dim, amount: u64) {
        let sum = self.rows.entry((row, dim.0)).or_default();
        *sum = sum.saturating_add(amount);
    }

    fn of(&self, row: Row, dimensions: &Dimensions) -> Quantities {
        let sum = |dim: Dim| self.rows.get(&(row, dim.0)).copied().unwrap_or(0);
        Quantities::of(dimensions.iter().map(|dim| (dim, sum(dim))), dimensions)
    }
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct AtRevision {
    /// The state at this revision, if history reaches back that far. Left out: now.
    revision: Option<u64>,
}

/// Read the hash of the state: equal hashes, equal states.
#[utoipa::path(get, path = "/v1/state/hash", tag = "cluster", params(AtRevision),
    responses((status = 200, description = "The hash", body = StateHash), Problems))]
async fn state_hash(Handle(service): Handle<Service>, Params(at): Params<AtRevision>) -> Answer {
    let (revision, hash) = match at.revision.map(Revision) {
        None => service.read(|state| (state.revision(), state.hash())).await?,
        Some(revision) => {
            let past = service.recall(move |history| history.state_at(revision)).await?;
            let gone = || {
                let detail = format!("revision {revision} is not there yet, or no longer");
                Failure::new(Code::REVISION_GONE, detail)
            };
            (revision, past.ok_or_else(gone)?.hash())
        }
    };
    let hash = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    answer(StatusCode::OK, &StateHash { revision: revision.0, hash })
}
