//! What somebody means to do: decisions one after the other, and plans in waves.

use crate::{Bindings, Decision, Name, Vm, VmKey};
use std::sync::Arc;

/// A decision on one VM, ours or another scheduler's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    pub vm: Vm,
    /// Where the VM is said to go; `None` for nowhere.
    pub host: Option<Name>,
    /// The parts of the host that it is said to get.
    pub bindings: Option<Arc<Bindings>>,
    /// The whole record, where the claim is an answer of ours.
    pub decision: Option<Decision>,
}

/// Waves in order: each begins when the one before it is done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    pub waves: Vec<Wave>,
}

/// Steps that run together. They may begin and end in any order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wave {
    pub steps: Vec<Step>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    Place {
        vm: Arc<Vm>,
        to: Name,
        /// The parts of the host that it gets, if it asks for some.
        bindings: Option<Arc<Bindings>>,
    },
    /// While it is under way, the VM has its place on both hosts.
    Move {
        vm: VmKey,
        /// Where the planner believes it to be; `None` if it does not say.
        from: Option<Name>,
        to: Name,
        bindings: Option<Arc<Bindings>>,
    },
    Release {
        vm: VmKey,
        from: Option<Name>,
    },
}

impl Step {
    /// The VM that the step is about.
    pub fn vm(&self) -> &VmKey {
        match self {
            Step::Place { vm, .. } => &vm.key,
            Step::Move { vm, .. } | Step::Release { vm, .. } => vm,
        }
    }

    /// What the VM gets inside the host that it comes to.
    pub fn bindings(&self) -> Option<&Arc<Bindings>> {
        match self {
            Step::Place { bindings, .. } | Step::Move { bindings, .. } => bindings.as_ref(),
            Step::Release { .. } => None,
        }
    }

    /// Where the VM comes to.
    pub fn to(&self) -> Option<&Name> {
        match self {
            Step::Place { to, .. } | Step::Move { to, .. } => Some(to),
            Step::Release { .. } => None,
        }
    }
}
