//! A snapshot: an immutable view of the cluster at one revision.

use crate::{Amounts, Bindings, Constraint, Dimensions, Host, Name, Revision, Vm};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Every host and every placed VM at one revision. What verifiers and solver jobs read.
///
/// Rows are shared, so that taking a snapshot copies pointers and not the cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    pub revision: Revision,
    pub dimensions: Dimensions,
    /// In order of host index, which is the order of ties.
    pub hosts: Vec<Arc<Host>>,
    pub placed: Vec<Placed>,
    /// Those in force, in order of their names.
    pub constraints: Vec<Arc<Constraint>>,
}

/// One VM on one host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placed {
    pub vm: Arc<Vm>,
    pub host: Name,
    /// What the VM takes on this host: its demand, after CPU normalisation.
    pub committed: Amounts,
    /// What it has of this host's parts; `None` if it asked for none, or nobody knows.
    pub bindings: Option<Arc<Bindings>>,
    /// Adopted beyond the host's room: reported, and exempt from the capacity check.
    pub over_capacity: bool,
    /// Was running already when it was recorded; no rule was asked about its place.
    pub adopted: bool,
    /// A reservation that is not confirmed yet.
    pub held: bool,
}
