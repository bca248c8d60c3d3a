//! What reports do to the state: who is counted in them, who is confirmed, moved or gone.

use super::{Broken, Step};
use crate::effects::Change;
use crate::report::{Report, UseReport, UseReports, VmFact, VmReport};
use crate::state::{DecisionId, VmEntry};
use cluster::{Amounts, Generation, HostIx, VmIx};
use std::sync::Arc;

impl Step<'_> {
    pub(super) fn report_use(&mut self, reports: &UseReports) -> Result<(), Broken> {
        let inventory = &mut self.state.inventory;
        if reports.base.is_none() {
            // Until the last piece is there, each host is as old as its own report.
            inventory.taken_ns = None;
        }
        for report in &reports.reports {
            self.report_host(report, reports.taken_ns)?;
        }
        if reports.last {
            let inventory = &mut self.state.inventory;
            inventory.generation = reports.generation;
            inventory.digest = reports.digest;
            inventory.taken_ns = reports.taken_ns;
            self.changes.push(Change::Inventory);
            if reports.base.is_some() {
                self.count_in_unchanged()?;
            }
        }
        Ok(())
    }

    fn report_host(&mut self, report: &UseReport, taken_ns: Option<u64>) -> Result<(), Broken> {
        let ix = self.host_row(&report.host)?;
        self.host_mut(ix)?.report = Some(Box::new(Report {
            used: report.used.clone(),
            vms: report.vms,
            taken_ns,
            included: Amounts::zero(),
            included_vms: 0,
        }));
        self.count_in(ix, |vm| vm.is_in(taken_ns))
    }

    /// A change says of the hosts that it does not name that nothing is different there, so
    /// their VMs that were too new for the last report are in it now. Those that it left out for
    /// another reason, such as a new size, stay out until their host is named.
    fn count_in_unchanged(&mut self) -> Result<(), Broken> {
        let behind = self.state.hosts().filter_map(|(ix, entry)| {
            let report = entry.report.as_ref()?;
            let whole = usize::try_from(report.included_vms) == Ok(entry.vms.len());
            let until_ns = self.state.inventory.taken_ns(report);
            (!whole).then_some((ix, report.taken_ns, until_ns))
        });
        for (ix, taken_ns, until_ns) in behind.collect::<Vec<_>>() {
            let too_new = |vm: &VmEntry| taken_ns.is_none_or(|taken_ns| vm.heard_ns >= taken_ns);
            self.count_in(ix, |vm| vm.included || (too_new(vm) && vm.is_in(until_ns)))?;
        }
        Ok(())
    }

    /// Decides for every VM of a host whether its report includes it.
    fn count_in(&mut self, ix: HostIx, is_in: impl Fn(&VmEntry) -> bool) -> Result<(), Broken> {
        let (mut included, mut included_vms) = (Amounts::zero(), 0u32);
        for vm in self.host_mut(ix)?.vms.clone() {
            let entry = self.vm_mut(vm)?;
            entry.included = is_in(entry);
            if entry.included {
                included_vms = included_vms.saturating_add(1);
                if !included.try_add(&entry.committed) {
                    return Err(self.broken("reported use would overflow".into()));
                }
            }
        }
        if let Some(report) = &mut self.host_mut(ix)?.report {
            (report.included, report.included_vms) = (included, included_vms);
        }
        self.changes.push(Change::HostReported(ix));
        Ok(())
    }

    /// Counts one VM in or out of its host's report.
    pub(super) fn set_included(&mut self, ix: VmIx, included: bool) -> Result<(), Broken> {
        let entry = self.vm_mut(ix)?;
        if std::mem::replace(&mut entry.included, included) == included {
            return Ok(());
        }
        let (host, committed) = (entry.host, entry.committed.clone());
        let Some(report) = &mut self.host_mut(host)?.report else {
            return Err(self.broken("a VM is included in a report that is not there".into()));
        };
        let counted = if included {
            report.included_vms = report.included_vms.saturating_add(1);
            report.included.try_add(&committed)
        } else {
            report.included_vms = report.included_vms.saturating_sub(1);
            report.included.try_sub(&committed)
        };
        if !counted {
            return Err(self.broken("a report includes less than its VMs take".into()));
        }
        self.changes.push(Change::HostReported(host));
        Ok(())
    }

    pub(super) fn report_vm(&mut self, report: &VmReport) -> Result<(), Broken> {
        let ix = match &report.fact {
            VmFact::AsRecorded => {
                let ix = self.vm_row(&report.vm)?;
                if let Some(hold) = self.vm_mut(ix)?.hold {
                    self.confirm(hold.reservation)?;
                }
                ix
            }
            VmFact::Otherwise(adoption) => {
                let host = self.host_row(&adoption.host)?;
                let mut entry = VmEntry {
                    vm: Arc::clone(&adoption.vm),
                    host,
                    committed: adoption.committed.clone(),
                    bindings: adoption.bindings.clone(),
                    generation: Generation(1),
                    adopted: true,
                    over_capacity: adoption.over_capacity,
                    hold: None,
                    decided: DecisionId { revision: self.revision, position: 0 },
                    request_hash: adoption.request_hash,
                    heard_ns: 0,
                    included: false,
                };
                if let Some(ix) = self.state.vms.find(&report.vm) {
                    let before = self.vm_mut(ix)?.clone();
                    entry.generation = before.generation.next();
                    if before.host == host {
                        // Whoever changed its size knows better where it runs now.
                        let lost = before.bindings.is_some() && entry.bindings.is_none();
                        entry.adopted = before.adopted || lost;
                        entry.decided = before.decided;
                    }
                    self.remove_vm(ix)?;
                }
                self.add_vm(entry)?;
                self.vm_row(&report.vm)?
            }
            VmFact::Arrived => {
                if let Some(under_way) = self.state.plans.under_way(&report.vm) {
                    self.report_migration(under_way.plan, under_way.step, None)?;
                }
                self.vm_row(&report.vm)?
            }
            VmFact::Gone => {
                if let Some(ix) = self.state.vms.find(&report.vm) {
                    self.remove_vm(ix)?;
                }
                self.state.gone.note(&report.vm, report.at_ns);
                self.changes.push(Change::Gone(report.vm.clone()));
                return Ok(());
            }
        };
        let entry = self.vm_mut(ix)?;
        entry.heard_ns = report.at_ns;
        let host = entry.host;
        let report = self.host_mut(host)?.report.clone();
        let taken_ns = report.and_then(|report| self.state.inventory.taken_ns(&report));
        // Without a time the report came before the news, and did not know of them.
        let included = taken_ns.is_some() && self.vm_mut(ix)?.is_in(taken_ns);
        self.set_included(ix, included)?;
        self.changes.push(Change::VmKept(ix));
        Ok(())
    }
}
