//! A dry run: the policies that would be in force, asked about VMs and hosts that are there.
//!
//! Works on a copy of the rows that the living state had, on the watcher's thread; nobody waits
//! for it.

use super::scan::finding;
use cluster::{Amounts, Dim, Dimensions, Host, Name, Vm, VmKey};
use engine::{HostEntry, State};
use policy::vocabulary::{HostField, HostView, VmField};
use policy::{
    ActiveSet, Diagnostic, PolicyType, Request, Scratch, Severity, Table, Value, Verdicts,
};
use std::sync::Arc;

/// VMs that a policy is tried with, taken evenly from all that there are.
const VMS: usize = 8;

#[derive(Debug)]
pub(super) struct Fleet {
    dimensions: Dimensions,
    hosts: Vec<Row>,
    vms: Vec<Arc<Vm>>,
}

/// A host with what runs on it, ours and others'.
#[derive(Debug)]
struct Row {
    host: Arc<Host>,
    allocated: Amounts,
    vms: u64,
}

impl Row {
    fn of(entry: &HostEntry) -> Self {
        let (host, allocated) = (entry.effective_host(), entry.allocated.clone());
        let vms = (entry.vms.len() as u64).saturating_add(u64::from(host.foreign.vms));
        Self { host, allocated, vms }
    }

    fn used(&self, dim: Dim) -> u64 {
        self.allocated.get(dim).saturating_add(self.host.foreign.used.get(dim))
    }
}

impl Fleet {
    pub(super) fn of(state: &State) -> Self {
        let every = state.vm_count().div_ceil(VMS).max(1);
        let mut vms: Vec<Arc<Vm>> =
            state.vms().step_by(every).map(|(_, entry)| Arc::clone(&entry.vm)).collect();
        if vms.is_empty()
            && let Ok(id) = Name::new("dry-run")
        {
            let key = VmKey::in_default_tenant(id);
            vms.push(Arc::new(Vm::new(key, Amounts::cpu_memory(1_000, 1_024))));
        }
        let hosts = state.hosts().map(|(_, entry)| Row::of(entry)).collect();
        Self { dimensions: state.dimensions().clone(), hosts, vms }
    }

    /// Evaluates the whole set for every question and a few VMs. Gives warnings about `policy`.
    pub(super) fn try_out(
        &self,
        set: &ActiveSet,
        policy: &str,
    ) -> Result<Vec<Diagnostic>, Vec<Diagnostic>> {
        let table = self.table(set);
        let resolve = |path| VmField::resolve(path, &self.dimensions);
        let fields: Vec<VmField> = set.paths().vm.iter().map(resolve).collect();
        let (mut scratch, mut verdicts) = (Scratch::default(), Verdicts::default());
        let mut without_host = 0usize;
        for vm in &self.vms {
            let values: Vec<Value> = fields.iter().map(|field| field.value(vm)).collect();
            for asked in PolicyType::ALL {
                let request = Request::new(asked, &values);
                set.evaluate(&request, &table, &mut scratch, &mut verdicts).map_err(|error| {
                    let message = format!("the dry run failed for VM {}: {error}", vm.key);
                    vec![finding("dry-run", message, "make the policy simpler")]
                })?;
                let by_it = asked == PolicyType::Placement
                    && !self.hosts.is_empty()
                    && (0..verdicts.rows()).all(|row| self.removes(set, policy, &verdicts, row));
                without_host = without_host.saturating_add(usize::from(by_it));
            }
        }
        let all = without_host > 0 && without_host == self.vms.len();
        Ok(all.then(|| removes_every_host(without_host)).into_iter().collect())
    }

    fn removes(&self, set: &ActiveSet, policy: &str, verdicts: &Verdicts, row: usize) -> bool {
        let Some(rule) = verdicts.filtered_by(row) else { return false };
        let mut policies = set.policies().iter();
        policies.any(|it| it.id() == policy && it.rules().any(|(own, _)| own == rule))
    }

    fn table(&self, set: &ActiveSet) -> Table {
        let resolve = |path| HostField::resolve(path, &self.dimensions);
        let fields: Vec<HostField> = set.paths().host.iter().map(resolve).collect();
        let mut table = Table::new(self.hosts.len(), fields.len());
        for (number, row) in self.hosts.iter().enumerate() {
            let used = |dim: Dim| row.used(dim);
            let view = HostView { host: &row.host, used: &used, vm_count: row.vms };
            for (column, field) in fields.iter().enumerate() {
                table.set(number, column, field.value(&view));
            }
        }
        table
    }
}

fn removes_every_host(vms: usize) -> Diagnostic {
    let message = format!("it removes every host for each of {vms} VMs that it was tried with");
    let hint = "a filter removes the hosts for which its `when` is true";
    Diagnostic { severity: Severity::Warning, ..finding("removes-every-host", message, hint) }
}
