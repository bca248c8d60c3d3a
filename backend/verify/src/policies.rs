//! What the policies in force say about one host of a world, read rule by rule.

use crate::ViolationKind;
use crate::world::World;
use cluster::{Dim, Dimensions, Host, Vm};
use policy::vocabulary::{HostField, HostView, VmField};
use policy::{ActiveSet, Path, PolicyType, Root, Value, scalar};

/// The filter that keeps the VM off the host, if one does. `used` and `vm_count` are what is on
/// the host, those of others included.
pub(crate) fn filter(
    policies: &ActiveSet,
    dimensions: &Dimensions,
    vm: &Vm,
    host: &Host,
    used: &dyn Fn(Dim) -> u64,
    vm_count: u64,
) -> Option<ViolationKind> {
    if policies.is_empty() {
        return None;
    }
    let view = HostView { host, used, vm_count };
    let lookup = |path: &Path| match path.root {
        Root::Vm => VmField::resolve(path, dimensions).value(vm),
        Root::Candidate => HostField::resolve(path, dimensions).value(&view),
        Root::Source => Value::Null,
    };
    let verdict = scalar::evaluate(policies, PolicyType::Placement, &lookup);
    let (policy, rule) = policies.rule(verdict.filtered_by?)?;
    let reason = rule.filter_reason().unwrap_or_default().to_owned();
    let (policy, rule) = (policy.id().to_owned(), rule.id.to_string());
    Some(ViolationKind::Policy { policy, rule, reason })
}

/// The same for a host of a world. The VM may stand on it already and is not counted then.
pub(crate) fn filter_on(
    policies: &ActiveSet,
    dimensions: &Dimensions,
    vm: &Vm,
    host: &Host,
    world: &World<'_>,
    row: usize,
) -> Option<ViolationKind> {
    let (own, vms) = world.beside(vm, row);
    let used = |dim: Dim| {
        let others = world.committed(row).get(dim).saturating_sub(own.get(dim));
        others.saturating_add(host.foreign.used.get(dim))
    };
    let vm_count = vms.saturating_add(host.foreign.vms.into());
    filter(policies, dimensions, vm, host, &used, vm_count)
}
