//! What a request can ask of a host's attributes, compiled once to a set of hosts.
//!
//! Each distinct pool, selector, datastore, toleration set and user region costs a walk over a
//! column when it is first seen; after that it is patched when a host changes. The number kept of
//! each kind is bounded.

use crate::attributes::Attributes;
use crate::bits::Bits;
use crate::cache::{Cache, Slot};
use cluster::{
    Host, HostIx, HostState, Index, Name, RegionLatency, Selector, Taint, TaintEffect, Toleration,
};

/// Distinct predicates kept of each kind. Bits for 100,000 hosts take 12.5 KB, so all kinds
/// together stay within a few dozen megabytes there.
const LIMIT: usize = 512;

/// Distinct user regions kept; each takes two bytes a host.
const REGION_LIMIT: usize = 64;

/// From here on, latency to the user counts nothing.
const FAR_US: u64 = 100_000;

/// Soft taints beyond this change nothing: four of them use up the whole affinity term.
pub(crate) const MAX_SOFT: u8 = 4;

#[derive(Debug)]
pub(crate) struct Predicates {
    pub(crate) available: Bits,
    present: Bits,
    attributes: Attributes,
    pools: Cache<Name, Bits>,
    selectors: Cache<Selector, Bits>,
    datastores: Cache<Name, Bits>,
    tolerations: Cache<Vec<Toleration>, Tolerated>,
    regions: Cache<Name, Vec<u16>>,
}

/// What one set of tolerations makes of the fleet's taints.
#[derive(Debug, Default)]
pub(crate) struct Tolerated {
    /// Hosts on which every `NoSchedule` and `NoExecute` taint is tolerated.
    pub(crate) hosts: Bits,
    /// Untolerated `PreferNoSchedule` taints by row, up to `MAX_SOFT`; rows not stored have none.
    soft: Vec<u8>,
}

impl Default for Predicates {
    fn default() -> Self {
        Self {
            available: Bits::default(),
            present: Bits::default(),
            attributes: Attributes::default(),
            pools: Cache::new(LIMIT),
            selectors: Cache::new(LIMIT),
            datastores: Cache::new(LIMIT),
            tolerations: Cache::new(LIMIT),
            regions: Cache::new(REGION_LIMIT),
        }
    }
}

impl Predicates {
    pub(crate) fn tick(&mut self) {
        self.pools.tick();
        self.selectors.tick();
        self.datastores.tick();
        self.tolerations.tick();
        self.regions.tick();
    }

    pub(crate) fn pool(&mut self, pool: &Name) -> Slot {
        self.pools.slot(pool, || self.attributes.pools.select(|one| one == pool))
    }

    pub(crate) fn selector(&mut self, selector: &Selector) -> Slot {
        self.selectors.slot(selector, || self.attributes.selected(selector, &self.present))
    }

    pub(crate) fn datastore(&mut self, datastore: &Name) -> Slot {
        self.datastores
            .slot(datastore, || self.attributes.datastores.select(|all| all.contains(datastore)))
    }

    pub(crate) fn tolerations(&mut self, tolerations: &[Toleration]) -> Slot {
        self.tolerations.slot(tolerations, || {
            let taints = &self.attributes.taints;
            let mut hosts = self.present.clone();
            hosts.subtract(&taints.select(|taints| untolerated(taints, tolerations).hard));
            Tolerated { hosts, soft: taints.map(0, |taints| untolerated(taints, tolerations).soft) }
        })
    }

    pub(crate) fn region(&mut self, region: &Name) -> Slot {
        self.regions
            .slot(region, || self.attributes.latencies.map(0, |known| closeness(known, region)))
    }

    pub(crate) fn pool_hosts(&self, slot: Slot) -> &Bits {
        self.pools.get(slot)
    }

    pub(crate) fn selected_hosts(&self, slot: Slot) -> &Bits {
        self.selectors.get(slot)
    }

    pub(crate) fn datastore_hosts(&self, slot: Slot) -> &Bits {
        self.datastores.get(slot)
    }

    pub(crate) fn tolerated(&self, slot: Slot) -> &Tolerated {
        self.tolerations.get(slot)
    }

    /// How near a host is to the region's users, 0 to 1000, by row; rows not stored are far.
    pub(crate) fn closeness(&self, slot: Slot) -> &[u16] {
        self.regions.get(slot)
    }

    /// Patches every compiled predicate for a host that came, changed or went.
    pub(crate) fn put_host(&mut self, ix: HostIx, host: Option<&Host>) {
        self.attributes.put_host(ix, host);
        self.present.put(ix, host.is_some());
        let is = |test: &dyn Fn(&Host) -> bool| host.is_some_and(test);
        self.available.put(ix, is(&|host| host.state == HostState::Available));
        self.pools.for_each(|pool, bits| bits.put(ix, is(&|host| in_pool(host, pool))));
        self.selectors.for_each(|selector, bits| {
            bits.put(ix, is(&|host| selector.matches(&host.labels)));
        });
        self.datastores.for_each(|name, bits| bits.put(ix, is(&|host| reaches(host, name))));
        self.tolerations.for_each(|tolerations, made| made.put(ix, host, tolerations));
        self.regions.for_each(|region, column| {
            if column.len() <= ix.row() {
                column.resize(ix.row() + 1, 0);
            }
            column[ix.row()] = host.map_or(0, |host| closeness(&host.latencies, region));
        });
    }
}

impl Tolerated {
    pub(crate) fn soft(&self, ix: HostIx) -> u8 {
        self.soft.get(ix.row()).copied().unwrap_or(0)
    }

    fn put(&mut self, ix: HostIx, host: Option<&Host>, tolerations: &[Toleration]) {
        let taints = host.map_or(&[][..], |host| &host.taints);
        let Untolerated { hard, soft } = untolerated(taints, tolerations);
        self.hosts.put(ix, host.is_some() && !hard);
        if soft > 0 && self.soft.len() <= ix.row() {
            self.soft.resize(ix.row() + 1, 0);
        }
        if let Some(kept) = self.soft.get_mut(ix.row()) {
            *kept = soft;
        }
    }
}

/// What is left of a host's taints when the tolerated ones are taken away.
#[derive(Clone, Copy)]
struct Untolerated {
    hard: bool,
    /// Up to `MAX_SOFT`.
    soft: u8,
}

fn untolerated(taints: &[Taint], tolerations: &[Toleration]) -> Untolerated {
    let mut left = Untolerated { hard: false, soft: 0 };
    for taint in taints {
        if tolerations.iter().any(|toleration| toleration.tolerates(taint)) {
            continue;
        }
        match taint.effect {
            TaintEffect::NoSchedule | TaintEffect::NoExecute => left.hard = true,
            TaintEffect::PreferNoSchedule => left.soft = MAX_SOFT.min(left.soft + 1),
        }
    }
    left
}

fn in_pool(host: &Host, pool: &Name) -> bool {
    host.pool.as_ref() == Some(pool)
}

fn reaches(host: &Host, datastore: &Name) -> bool {
    host.datastores.contains(datastore)
}

/// 1000 at no latency, falling evenly to 0 at 100 ms; 0 when the latency is not known.
fn closeness(known: &[RegionLatency], region: &Name) -> u16 {
    let known = known.iter().find(|latency| latency.region == *region);
    let Some(latency) = known else { return 0 };
    let us = FAR_US.min(latency.latency_us.into());
    ((FAR_US - us) * 1000 / FAR_US) as u16
}
