//! From a report to the command that it comes to.
//!
//! Reports come late, twice, out of order and not at all; each is compared with what is known, by
//! the reporter's own numbers and times, and what is old or known already changes nothing.

use super::{Proposal, demand_on};
use crate::check;
use crate::command::{Adoption, Command};
use crate::core::Core;
use crate::report::{Told, UseReports, VmFact, VmNews, VmReport};
use crate::request::{Outcome, Refusal, fingerprint};
use crate::state::{HostEntry, VmEntry};
use cluster::{Amounts, Name, Qos, Vm, VmKey};
use std::sync::Arc;

impl Core {
    pub(super) fn propose_use(&self, reports: &UseReports) -> Result<Proposal, Refusal> {
        let inventory = self.state.inventory();
        let generation = reports.generation;
        if let Some(base) = reports.base.filter(|base| *base != inventory.generation) {
            if generation == inventory.generation && reports.digest == inventory.digest {
                return Proposal::nothing(Outcome::UseReported { generation, repeated: true });
            }
            return Err(Refusal::Gap { base, current: inventory.generation });
        }
        if reports.reports.len() > check::MAX_REPORTS {
            let problem = format!(
                "has {} hosts; at most {} go in one piece",
                reports.reports.len(),
                check::MAX_REPORTS
            );
            return Err(check::invalid("reports", &problem));
        }
        for report in &reports.reports {
            self.known_host(&report.host)?;
            check::use_report(report, self.state.dimensions())?;
        }
        let outcome = Outcome::UseReported { generation, repeated: false };
        Proposal::change(Command::ReportUse(Box::new(reports.clone())), outcome)
    }

    pub(super) fn propose_news(
        &self,
        key: &VmKey,
        at_ns: u64,
        news: &VmNews,
    ) -> Result<Proposal, Refusal> {
        check::key(key)?;
        let known = self.state.find_vm(key).map(|(_, entry)| entry);
        let heard_ns = known.map_or(0, |entry| entry.heard_ns);
        let gone_ns = self.state.gone().at_ns(key);
        let last_ns = heard_ns.max(gone_ns.unwrap_or(0));
        let (fact, told) = match news {
            // At the same instant the end comes last.
            VmNews::Gone if at_ns < last_ns => return nothing(Told::Late),
            VmNews::Gone if known.is_none() && gone_ns == Some(at_ns) => {
                return nothing(Told::Known);
            }
            VmNews::Gone if known.is_none() => (VmFact::Gone, Told::Remembered),
            VmNews::Gone => (VmFact::Gone, Told::Released),
            VmNews::Runs { host, vm } => {
                let (_, home) = self.known_host(host)?;
                if at_ns <= last_ns {
                    let again = known.is_some() && at_ns == heard_ns;
                    return nothing(if again { Told::Known } else { Told::Late });
                }
                match (known, vm) {
                    (None, None) => return nothing(Told::NotDescribed),
                    (None, Some(vm)) => self.taken_in(vm, home)?,
                    (Some(known), vm) => self.compared(known, vm.as_deref(), home)?,
                }
            }
        };
        let report = VmReport { vm: key.clone(), at_ns, fact };
        let outcome = Outcome::VmReported(told);
        Proposal::change(Command::ReportVm(Box::new(report)), outcome)
    }

    /// A VM that is not recorded and runs.
    fn taken_in(&self, vm: &Arc<Vm>, home: &HostEntry) -> Result<(VmFact, Told), Refusal> {
        check::vm(vm, self.state.dimensions())?;
        let host = home.host.id.clone();
        let request_hash = fingerprint(&(vm, &host));
        let adoption = self.adoption(Arc::clone(vm), home, None, request_hash);
        let over_capacity = adoption.over_capacity;
        Ok((VmFact::Otherwise(adoption), Told::Adopted { over_capacity }))
    }

    /// A recorded VM, which may run elsewhere, or be of another size.
    fn compared(
        &self,
        known: &VmEntry,
        described: Option<&Vm>,
        home: &HostEntry,
    ) -> Result<(VmFact, Told), Refusal> {
        let demand = described.map_or(&known.vm.demand, |vm| &vm.demand);
        let recorded = self.state.host(known.host).map(|host| &host.host.id);
        let here = recorded == Some(&home.host.id);
        if here && *demand == known.vm.demand {
            let held = known.hold.is_some();
            return Ok((VmFact::AsRecorded, if held { Told::Confirmed } else { Told::Known }));
        }
        let target = self.state.target_of(&known.vm.key).and_then(|it| self.state.host(it.host));
        let expected = target.is_some_and(|target| target.host.id == home.host.id);
        if let Some(from) = recorded.filter(|_| expected && *demand == known.vm.demand) {
            let told = Told::Moved { from: Name::clone(from), over_capacity: false };
            return Ok((VmFact::Arrived, told));
        }
        check::demand(demand, self.state.dimensions())?;
        let vm = Arc::new(Vm { demand: demand.clone(), ..known.vm.as_ref().clone() });
        // Adopting it again here is a repetition; where it was adopted first is no longer true.
        let request_hash = match known.adopted && !here {
            true => fingerprint(&(&vm, &home.host.id)),
            false => known.request_hash,
        };
        let mut adoption = self.adoption(vm, home, here.then_some(known), request_hash);
        if here && known.bindings.is_some() {
            // It is there already, whether or not its parts can grow with it.
            adoption.bindings =
                self.bound_anew(known, &adoption.vm, &adoption.committed).unwrap_or_default();
        }
        let over_capacity = adoption.over_capacity;
        let told = match recorded.filter(|_| !here) {
            Some(from) => Told::Moved { from: Name::clone(from), over_capacity },
            None => Told::Resized { over_capacity },
        };
        Ok((VmFact::Otherwise(adoption), told))
    }

    /// The VM on the host as it is, whatever the rules say; `known` if it is recorded there.
    /// Foreign use does not count when it is asked whether there was room: what others are said to
    /// use may be this very VM.
    pub(super) fn adoption(
        &self,
        vm: Arc<Vm>,
        home: &HostEntry,
        known: Option<&VmEntry>,
        request_hash: [u8; 16],
    ) -> Adoption {
        let committed = demand_on(&vm, &home.host);
        let own = known.map_or_else(Amounts::zero, |known| known.committed.clone());
        let allocated = home.allocated.saturating_sub(&own);
        let guaranteed = self.state.guaranteed_on(home, Some(&vm.key));
        let over_capacity = committed.iter().any(|(dim, amount)| {
            let beyond = |sum: &Amounts, most: u64| sum.get(dim).saturating_add(amount) > most;
            beyond(&allocated, home.host.allocatable(dim))
                || vm.qos == Qos::Guaranteed && beyond(&guaranteed, home.host.physical(dim))
        });
        let host = home.host.id.clone();
        Adoption { vm, host, committed, bindings: None, over_capacity, request_hash }
    }
}

fn nothing(told: Told) -> Result<Proposal, Refusal> {
    Proposal::nothing(Outcome::VmReported(told))
}
