//! Names as 128-bit hashes: the ledger needs to recognise VMs and groups, never to show them.

use crate::reading::{apart_from, groups};
use cluster::{Amounts, Name, Subject, Vm};
use rustc_hash::FxHasher;
use std::hash::{DefaultHasher, Hash, Hasher};

/// A VM or a group of a tenant.
///
/// 128 bits of SipHash: tenants choose their names, and with a weaker hash one of them could
/// make two VMs look like one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Id([u64; 2]);

impl Id {
    pub(super) fn of_vm(tenant: &Name, id: &Name) -> Self {
        Self::of(0, tenant, id)
    }

    pub(super) fn of_group(tenant: &Name, group: &Name) -> Self {
        Self::of(1, tenant, group)
    }

    /// `None` for hosts, which are no subject that VMs belong to.
    pub(super) fn of_subject(tenant: &Name, subject: &Subject) -> Option<Self> {
        match subject {
            Subject::Vm(id) => Some(Self::of_vm(tenant, id)),
            Subject::Group(group) => Some(Self::of_group(tenant, group)),
            Subject::Hosts(_) => None,
        }
    }

    fn of(kind: u8, tenant: &Name, name: &Name) -> Self {
        let half = |number: u8| {
            let mut hasher = DefaultHasher::new();
            hasher.write_u8(number);
            hasher.write_u8(kind);
            tenant.hash(&mut hasher);
            name.hash(&mut hasher);
            hasher.finish()
        };
        Self([half(0), half(1)])
    }
}

impl Hash for Id {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        hasher.write_u64(self.0[0]);
    }
}

/// A digest of all that the ledger counts for a VM, so that what is taken out is known to be
/// what was put in. It guards against mistakes, not against malice: 32 bits are enough.
pub(super) fn fingerprint(vm: &Vm, committed: &Amounts) -> u32 {
    let mut hasher = FxHasher::default();
    committed.hash(&mut hasher);
    vm.qos.hash(&mut hasher);
    for group in groups(vm) {
        group.hash(&mut hasher);
    }
    for rule in apart_from(vm) {
        rule.hash(&mut hasher);
    }
    vm.labels.hash(&mut hasher);
    hasher.finish() as u32
}
