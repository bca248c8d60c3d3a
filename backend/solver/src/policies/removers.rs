//! All rules of policies that remove one host for one VM, not only the first.

use crate::problem::Problem;
use cluster::{Dim, Host, HostIx, HostState, Index, Vm};
use policy::vocabulary::{HostField, HostView};
use policy::{Path, PolicyType, Root, RuleIx, Value, scalar};

/// The rules that remove the host, in the order of evaluation. Reads the columns as they were
/// when hosts were last narrowed by policies; `reopened` reads the host as if it were available.
pub(crate) fn removers(problem: &Problem, vm: &Vm, ix: HostIx, reopened: bool) -> Vec<RuleIx> {
    let policies = &problem.policies;
    let Some(host) = problem.hosts.get(ix) else { return Vec::new() };
    let open = reopened.then(|| Host { state: HostState::Available, ..host.clone() });
    let used = |dim: Dim| problem.room.used(ix, dim);
    let vm_count = u64::from(problem.room.host(ix).vms);
    let read = |field: &HostField, host| field.value(&HostView { host, used: &used, vm_count });
    let paths = policies.set().paths();
    let place = |list: &[Path], path: &Path| list.iter().position(|known| known == path);
    let lookup = |path: &Path| match path.root {
        Root::Vm => {
            let field = place(&paths.vm, path).and_then(|row| policies.vm_fields.get(row));
            field.map_or(Value::Null, |field| field.value(vm))
        }
        Root::Candidate => {
            let Some(column) = place(&paths.host, path) else { return Value::Null };
            // What a host is made of is in the columns only; its state may be another here.
            let other = open.as_ref().zip(policies.columns.field(column));
            let other = other.map(|(open, field)| (read(field, host), read(field, open)));
            match other {
                Some((now, then)) if now != then => then,
                _ => policies.columns.table().value(ix.row(), column),
            }
        }
        Root::Source => Value::Null,
    };
    scalar::removers(policies.set(), PolicyType::Placement, &lookup)
}
