//! The state as a snapshot keeps it: every row at its place, in one canonical encoding.

use crate::plans::FrozenPlans;
use crate::report::{Gone, Inventory};
use crate::slots::Slots;
use crate::state::{ConstraintEntry, HostEntry, State, VmEntry};
use crate::weights::WeightHistory;
use cluster::{Column, Dimensions, HostIx, Name, Revision, VmIx, VmKey};
use policy::{Library, Policy};
use serde::{Deserialize, Serialize};
use solver::fragmentation::{Learning, Wanted};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A state that no longer changes. Taking one copies pointers, not the cluster, so that it can be
/// encoded on another thread while placing goes on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frozen {
    pub revision: Revision,
    pub time_ms: u64,
    pub hash: [u8; 32],
    dimensions: Dimensions,
    policy: Policy,
    library: Library,
    weights: WeightHistory,
    constraints: BTreeMap<Name, ConstraintEntry>,
    hosts: Column<HostIx, Option<Arc<HostEntry>>>,
    vms: Column<VmIx, Option<Arc<VmEntry>>>,
    next_reservation: u64,
    round_robin_after: Option<HostIx>,
    inventory: Inventory,
    gone: BTreeMap<VmKey, u64>,
    /// Written after all the rest, so that snapshots from before it was kept can be read.
    #[serde(skip)]
    mix: Arc<Learning<Wanted>>,
    /// After that, for the same reason.
    #[serde(skip)]
    plans: FrozenPlans,
}

impl Frozen {
    pub fn encode(&self) -> Vec<u8> {
        // As for `Entry::encode`: the types are fixed and covered by a round-trip test.
        let bytes = postcard::to_stdvec(self).unwrap_or_default();
        let bytes = postcard::to_extend(&self.mix, bytes).unwrap_or_default();
        postcard::to_extend(&self.plans, bytes).unwrap_or_default()
    }

    pub fn decode(bytes: &[u8]) -> Result<Self, postcard::Error> {
        let (mut frozen, rest): (Self, _) = postcard::take_from_bytes(bytes)?;
        if rest.is_empty() {
            return Ok(frozen);
        }
        let (mix, rest) = postcard::take_from_bytes(rest)?;
        frozen.mix = mix;
        if rest.is_empty() {
            return Ok(frozen);
        }
        let (plans, rest) = postcard::take_from_bytes(rest)?;
        if !rest.is_empty() {
            return Err(postcard::Error::DeserializeBadEncoding);
        }
        frozen.plans = plans;
        Ok(frozen)
    }

    /// A hash over everything in the state, recomputed from scratch. Two states that answer any
    /// question differently have different ones; audits compare them.
    pub fn full_hash(&self) -> [u8; 32] {
        *blake3::hash(&self.encode()).as_bytes()
    }

    /// The living state again. Reservations and usage are derived from the VMs, so that a
    /// snapshot cannot contradict itself.
    pub fn thaw(self) -> State {
        let vms = Slots::from_rows(self.vms);
        let mut holds = BTreeMap::new();
        let mut expiries = BTreeSet::new();
        for (ix, entry) in vms.iter() {
            if let Some(hold) = entry.hold {
                holds.insert(hold.reservation, ix);
                expiries.insert((hold.expires_ms, hold.reservation));
            }
        }
        State {
            revision: self.revision,
            time_ms: self.time_ms,
            hash: self.hash,
            dimensions: self.dimensions,
            policy: self.policy,
            library: self.library,
            weights: self.weights,
            constraints: self.constraints,
            hosts: Slots::from_rows(self.hosts),
            vms,
            holds,
            expiries,
            next_reservation: self.next_reservation,
            round_robin_after: self.round_robin_after,
            inventory: self.inventory,
            gone: Gone::from_rows(self.gone),
            mix: self.mix,
            plans: self.plans.thaw(),
        }
    }
}

impl State {
    pub fn freeze(&self) -> Frozen {
        Frozen {
            revision: self.revision,
            time_ms: self.time_ms,
            hash: self.hash,
            dimensions: self.dimensions.clone(),
            policy: self.policy.clone(),
            library: self.library.clone(),
            weights: self.weights.clone(),
            constraints: self.constraints.clone(),
            hosts: trimmed(self.hosts.rows()),
            vms: trimmed(self.vms.rows()),
            next_reservation: self.next_reservation,
            round_robin_after: self.round_robin_after,
            inventory: self.inventory.clone(),
            gone: self.gone.rows().clone(),
            mix: Arc::clone(&self.mix),
            plans: self.plans.freeze(),
        }
    }
}

/// Without the vacant rows at the end: a table that shrank encodes like one that never grew.
fn trimmed<I: cluster::Index, T>(rows: &Column<I, Option<Arc<T>>>) -> Column<I, Option<Arc<T>>> {
    let taken =
        rows.as_slice().iter().rposition(Option::is_some).map_or(0, |row| row.saturating_add(1));
    rows.as_slice().iter().take(taken).cloned().collect()
}
