//! Fences: certain VMs on certain hosts only, and no others there if the hosts are reserved.

use crate::ViolationKind;
use crate::reading::vm_in;
use cluster::{Fence, Name, Vm};

/// Whether the VM must be inside the fence, must be outside, or may be anywhere.
pub(crate) fn side(fence: &Fence, vm: &Vm) -> Option<bool> {
    if vm_in(&fence.vms, vm) {
        return Some(true);
    }
    fence.reserved.then_some(false)
}

/// The VM has to be `inside` and the host is not, or the other way round.
pub(crate) fn violation(constraint: &Name, inside: bool) -> ViolationKind {
    ViolationKind::Fence { constraint: constraint.clone(), reserved: !inside }
}
