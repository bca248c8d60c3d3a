//! Answers about the cluster as a whole: capacity, weights, hash, events, pages, bulk loads.

use crate::fault::code;
use crate::json::Value;
use crate::quantities::Quantities;
use crate::read::{At, Read};
use crate::schema::{NameSchema, TotalsSchema};
use cluster::{Name, Term};
use policy::{MAX_WEIGHT, Weights};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// What all hosts have, what is promised and what is left.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CapacityView {
    pub revision: u64,
    pub hosts: u64,
    pub vms: u64,
    /// Hosts by state.
    pub hosts_by_state: BTreeMap<String, u64>,
    #[schema(value_type = TotalsSchema)]
    pub capacity: Quantities,
    #[schema(value_type = TotalsSchema)]
    pub allocatable: Quantities,
    #[schema(value_type = TotalsSchema)]
    pub allocated: Quantities,
    #[schema(value_type = TotalsSchema)]
    pub free: Quantities,
    /// The same by pool; hosts without a pool are in none.
    pub pools: Vec<PoolCapacity>,
}

/// What the hosts of one pool have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PoolCapacity {
    #[schema(value_type = NameSchema)]
    pub pool: Name,
    pub hosts: u64,
    pub vms: u64,
    #[schema(value_type = TotalsSchema)]
    pub capacity: Quantities,
    #[schema(value_type = TotalsSchema)]
    pub allocatable: Quantities,
    #[schema(value_type = TotalsSchema)]
    pub allocated: Quantities,
    #[schema(value_type = TotalsSchema)]
    pub free: Quantities,
}

/// How much each part of a score counts. What a request leaves out counts nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WeightMap {
    #[schema(maximum = 10000, required = false)]
    pub fit: u32,
    #[schema(maximum = 10000, required = false)]
    pub affinity: u32,
    #[schema(maximum = 10000, required = false)]
    pub load: u32,
    #[schema(maximum = 10000, required = false)]
    pub locality: u32,
    #[schema(maximum = 10000, required = false)]
    pub cost: u32,
}

/// The hash of the state at a revision: equal hashes, equal states.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StateHash {
    pub revision: u64,
    /// BLAKE3 in hexadecimal.
    pub hash: String,
}

/// One change of the cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Event {
    pub revision: u64,
    /// Milliseconds since 1970, in the service's own time.
    pub at_ms: u64,
    /// What happened, such as `vm_placed` or `host_put`.
    pub kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<NameSchema>)]
    pub host_id: Option<Name>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<NameSchema>)]
    pub vm_id: Option<Name>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<NameSchema>)]
    pub tenant: Option<Name>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reservation_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan_id: Option<String>,
}

/// Events after a revision, for callers that poll.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EventPage {
    pub events: Vec<Event>,
    /// Ask for what comes after this.
    pub revision: u64,
}

/// One event of the stream, by the fields of the server-sent event protocol.
#[derive(Debug, ToSchema)]
pub struct StreamedEvent {
    /// The revision; give it back as `Last-Event-ID` to go on after it.
    pub id: String,
    /// The event's kind.
    pub event: String,
    /// The event as JSON.
    pub data: String,
}

/// One page of a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Page<T> {
    pub items: Vec<T>,
    /// Give it back as `cursor` for the next page; left out on the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
    pub revision: u64,
}

/// What became of a bulk load. Nothing is taken from a body with wrong lines; lines that are
/// right and still cannot be carried out are listed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BulkAnswer {
    pub accepted: u64,
    pub failed: u64,
    /// The first hundred of those that failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<BulkFailure>,
    pub revision: u64,
}

/// A line of a bulk load that could not be carried out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BulkFailure {
    /// The number of the document, from 0; blank lines do not count.
    pub item: u64,
    #[schema(value_type = NameSchema)]
    pub id: Name,
    /// The code of the problem that the line alone would have had.
    pub code: String,
    pub message: String,
}

impl From<&Weights> for WeightMap {
    fn from(weights: &Weights) -> Self {
        Self {
            fit: weights.get(Term::Fit),
            affinity: weights.get(Term::Affinity),
            load: weights.get(Term::Load),
            locality: weights.get(Term::Locality),
            cost: weights.get(Term::Cost),
        }
    }
}

impl Read for Weights {
    fn read<'v>(value: &'v Value<'v>, at: &mut At<'v>) -> Option<Self> {
        let mut fields = at.fields(value)?;
        let weights = Term::ALL
            .map(|term| fields.integer(term.name(), 0..=u64::from(MAX_WEIGHT)).unwrap_or(0));
        fields.finish();
        match Weights::new(weights) {
            Ok(weights) => Some(weights),
            Err(error) => {
                // Not worth saying when a weight that was given could not be read.
                if at.is_faultless() {
                    let hint = "set at least one weight above zero";
                    at.fault(code::NUMBER_TOO_SMALL, error.to_string(), hint);
                }
                None
            }
        }
    }
}
