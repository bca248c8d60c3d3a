//! What the policies in force say about a chosen host, read rule by rule for this host alone.

use super::Ledger;
use crate::{Violation, ViolationKind};
use cluster::{Dim, Dimensions, Host, HostIx, Vm};
use policy::vocabulary::{HostField, HostView, VmField};
use policy::{ActiveSet, Path, PolicyType, Root, Value, scalar};

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
        if policies.is_empty() {
            return None;
        }
        let about =
            |kind| Violation { vm: Some(vm.key.clone()), host: Some(host.id.clone()), kind };
        let Some(row) = self.fleet.row(ix) else { return Some(about(ViolationKind::UnknownHost)) };
        let used = |dim: Dim| row.room(dim).committed.saturating_add(row.room(dim).foreign);
        let vm_count = u64::from(row.vms).saturating_add(host.foreign.vms.into());
        let view = HostView { host, used: &used, vm_count };
        let lookup = |path: &Path| match path.root {
            Root::Vm => VmField::resolve(path, dimensions).value(vm),
            Root::Candidate => HostField::resolve(path, dimensions).value(&view),
            Root::Source => Value::Null,
        };
        let verdict = scalar::evaluate(policies, PolicyType::Placement, &lookup);
        let (policy, rule) = policies.rule(verdict.filtered_by?)?;
        let reason = rule.filter_reason().unwrap_or_default().to_owned();
        let (policy, rule) = (policy.id().to_owned(), rule.id.to_string());
        Some(about(ViolationKind::Policy { policy, rule, reason }))
    }
}
