//! What the policies in force say about a chosen host, read rule by rule for this host alone.

use super::Ledger;
use crate::policies::filter;
use crate::{Violation, ViolationKind};
use cluster::{Dim, Dimensions, Host, HostIx, Vm};
use policy::ActiveSet;

impl Ledger {
    /// The filter that keeps the VM off the host, if one does. What is in use on the host comes
    /// from the ledger, everything else of it from `host`.
    pub fn check_policies(
        &self,
        policies: &ActiveSet,
        dimensions: &Dimensions,
        vm: &Vm,
        ix: HostIx,
        host: &Host,
    ) -> Option<Violation> {
        let about =
            |kind| Violation { vm: Some(vm.key.clone()), host: Some(host.id.clone()), kind };
        if policies.is_empty() {
            return None;
        }
        let Some(row) = self.fleet.row(ix) else { return Some(about(ViolationKind::UnknownHost)) };
        let used = |dim: Dim| row.room(dim).committed.saturating_add(row.room(dim).foreign);
        let vm_count = u64::from(row.vms).saturating_add(host.foreign.vms.into());
        filter(policies, dimensions, vm, host, &used, vm_count).map(about)
    }
}
