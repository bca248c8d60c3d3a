//! Commands: the facts in the log.
//!
//! A command says what happened, not what was asked: it names the host that was chosen. Applying
//! one never searches, so that recovery costs arithmetic and a replayed state cannot differ.

use crate::plans::{DisruptionBudget, Draft, PlanChange, PlanId, StepId, WaveStart};
use crate::report::{UseReports, VmReport};
use crate::state::Health;
use cluster::{
    Amounts, Bindings, Constraint, Decision, Dimensions, Host, HostState, Name, Strategy, Vm, VmKey,
};
use policy::Policy;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// One log entry: a command, when it happened in the state's own time, and who asked for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    pub ts_ms: u64,
    pub actor: Name,
    pub command: Command,
}

/// Something that happened. New variants go at the end: the log is read by position.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Command {
    DeclareDimensions(Dimensions),
    /// Registers a host or replaces what is known of it. What runs on it stays.
    PutHost(Box<Host>),
    SetHostState {
        host: Name,
        state: HostState,
    },
    /// Removes a host and, in the same step, every VM that was on it.
    RemoveHost {
        host: Name,
    },
    /// One decision, whichever way it went.
    Place(Box<Placing>),
    /// Decisions that were made together, each on the result of those before.
    PlaceBatch {
        atomic: bool,
        placings: Vec<Placing>,
    },
    /// A VM that runs already, wherever it fits or not.
    Adopt(Box<Adoption>),
    Resize(Box<Resizing>),
    RemoveVm {
        vm: VmKey,
    },
    Confirm {
        reservation: u64,
    },
    Release {
        reservation: u64,
    },
    /// Ends reservations whose time is over. The only way in which time frees capacity.
    Expire {
        reservations: Vec<u64>,
    },
    InstallPolicy(Policy),
    /// Moves the state's time forward and does nothing else.
    Tick,
    SetHostHealth {
        host: Name,
        health: Health,
    },
    /// What hosts are said to have in use.
    ReportUse(Box<UseReports>),
    /// What has become of a VM, according to whoever runs it.
    ReportVm(Box<VmReport>),
    /// A policy was registered, changed, activated or removed.
    EditPolicy(Box<policy::Edit>),
    /// Puts a constraint in force, or another one in place of that of the same name.
    PutConstraint(Box<Constraint>),
    RemoveConstraint {
        name: Name,
    },
    CreatePlan(Box<Draft>),
    ChangePlan(PlanChange),
    /// The migrations of a wave take their second places.
    StartWave(Box<WaveStart>),
    /// A migration is done, or failed for this reason.
    ReportMigration {
        plan: PlanId,
        step: StepId,
        failed: Option<String>,
    },
    SetBudget(DisruptionBudget),
}

/// A request to place one VM, and what came of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placing {
    pub vm: Arc<Vm>,
    /// As requested; the strategy used is in the decision.
    pub strategy: Option<Strategy>,
    /// The host the caller insisted on, if any.
    pub pinned: Option<Name>,
    /// The hosts the caller would have, if not all of them.
    pub among: Vec<Name>,
    pub hold: Option<Hold>,
    /// Fingerprint of the request, so that the same request again gets the same answer.
    pub request_hash: [u8; 16],
    pub committed: Amounts,
    pub decision: Decision,
}

/// A reservation: capacity that is given back at `expires_ms` unless it is confirmed before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hold {
    pub reservation: u64,
    pub expires_ms: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Adoption {
    pub vm: Arc<Vm>,
    pub host: Name,
    pub committed: Amounts,
    /// The parts of the host that it has, as far as anybody knows.
    pub bindings: Option<Arc<Bindings>>,
    /// The VM did not fit and was taken in all the same.
    pub over_capacity: bool,
    pub request_hash: [u8; 16],
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resizing {
    pub vm: VmKey,
    pub demand: Amounts,
    pub committed: Amounts,
    /// What it has of its host from now on, if it is bound.
    pub bindings: Option<Arc<Bindings>>,
}

impl Entry {
    /// The entry as the log keeps it.
    pub fn encode(&self) -> Vec<u8> {
        // Encoding into a growing vector fails only for types that postcard cannot express,
        // and a round-trip test covers every variant.
        postcard::to_stdvec(self).unwrap_or_default()
    }

    pub fn decode(bytes: &[u8]) -> Result<Self, postcard::Error> {
        let (entry, rest) = postcard::take_from_bytes(bytes)?;
        if rest.is_empty() { Ok(entry) } else { Err(postcard::Error::DeserializeBadEncoding) }
    }
}
