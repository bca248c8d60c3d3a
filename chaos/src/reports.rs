//! What the model makes of reports: who uses what of a host, and what became of a VM.
//!
//! Written from the rule and not from the engine: reported use, less the VMs of ours that the
//! report includes, is somebody else's. Sums are made anew each time.

use crate::model::{Guest, Home, Model};
use crate::sometimes::Rare;
use crate::violation::{Checked, Law, broken, ensure};
use cluster::{Dim, Generation, Name, Revision, Vm, VmKey};
use engine::{
    Adoption, DecisionId, Outcome, Placement, Told, UseReport, UseReports, VmFact, VmNews, VmReport,
};
use std::sync::Arc;

/// The inventory as reported so far.
#[derive(Debug, Default)]
pub(crate) struct Reported {
    pub(crate) generation: u64,
    pub(crate) digest: [u8; 16],
    taken_ns: Option<u64>,
}

/// The last report of a host.
#[derive(Debug)]
pub(crate) struct LastReport {
    pub(crate) told: UseReport,
    taken_ns: Option<u64>,
}

impl Model {
    /// What others use of a host.
    pub(crate) fn foreign(&self, host: &Name, dim: Dim) -> u128 {
        let Some(report) = self.hosts.get(host).and_then(|home| home.report.as_ref()) else {
            return 0;
        };
        let ours = self.on(host).filter(|(_, guest)| guest.included);
        let ours: u128 = ours.map(|(_, guest)| u128::from(guest.committed.get(dim))).sum();
        u128::from(report.told.used.get(dim)).saturating_sub(ours)
    }

    pub(crate) fn report_use(&mut self, reports: &UseReports) -> Checked<Outcome> {
        let UseReports { generation, base, digest, taken_ns, last, reports } = reports;
        ensure(base.is_none_or(|base| base == self.reported.generation), Law::Asked, || {
            format!("inventory {generation} changes {base:?}, not {}", self.reported.generation)
        })?;
        if base.is_none() {
            self.reported.taken_ns = None;
        }
        for told in reports {
            let home = self.home(&told.host)?;
            home.report = Some(LastReport { told: told.clone(), taken_ns: *taken_ns });
            self.for_guests_of(&told.host, |guest| {
                let seen = taken_ns.is_none_or(|taken_ns| taken_ns > guest.heard_ns);
                guest.included = guest.hold.is_none() && seen;
            });
            let counted = self.on(&told.host).any(|(_, guest)| guest.included);
            self.reached.hit_if(Rare::ReportIncluded, counted);
        }
        if *last {
            let (generation, digest) = (*generation, *digest);
            self.reported = Reported { generation, digest, taken_ns: *taken_ns };
            if base.is_some() {
                self.vouch_for_the_rest();
            }
        }
        Ok(Outcome::UseReported { generation: *generation, repeated: false })
    }

    /// Hosts that a change does not name are as they were reported, up to when it was taken.
    fn vouch_for_the_rest(&mut self) {
        let until_ns = self.reported.taken_ns;
        let reports = self.hosts.iter().filter_map(|(host, home)| {
            home.report.as_ref().map(|report| (host.clone(), report.taken_ns))
        });
        for (host, taken_ns) in reports.collect::<Vec<_>>() {
            self.for_guests_of(&host, |guest| {
                let newer = taken_ns.is_none_or(|taken_ns| guest.heard_ns >= taken_ns);
                let seen = taken_ns
                    .is_none_or(|taken_ns| taken_ns.max(until_ns.unwrap_or(0)) > guest.heard_ns);
                guest.included |= guest.hold.is_none() && newer && seen;
            });
        }
    }

    fn for_guests_of(&mut self, host: &Name, mut change: impl FnMut(&mut Guest)) {
        self.guests.values_mut().filter(|guest| guest.host == *host).for_each(&mut change);
    }

    pub(crate) fn report_vm(&mut self, report: &VmReport) -> Checked<Outcome> {
        let VmReport { vm, at_ns, fact } = report;
        ensure(*at_ns >= self.last_heard_ns(vm), Law::Order, || {
            format!("news of {vm} from {at_ns} were taken after later ones")
        })?;
        let told = match fact {
            VmFact::AsRecorded => self.confirm_where_it_is(vm)?,
            VmFact::Otherwise(adoption) => self.correct(vm, adoption)?,
            VmFact::Arrived => return broken(Law::Asked, "nobody is under way here"),
            VmFact::Gone => {
                self.gone.insert(vm.clone(), *at_ns);
                let known = self.guests.contains_key(vm);
                if known {
                    self.remove_guest(vm)?;
                }
                return Ok(Outcome::VmReported(if known {
                    Told::Released
                } else {
                    Told::Remembered
                }));
            }
        };
        self.heard(vm, *at_ns);
        Ok(Outcome::VmReported(told))
    }

    fn confirm_where_it_is(&mut self, vm: &VmKey) -> Checked<Told> {
        let Some(guest) = self.guests.get_mut(vm) else {
            return broken(
                Law::OnePlace,
                format!("{vm} is said to be where it is, and is nowhere"),
            );
        };
        let Some(hold) = guest.hold.take() else { return Ok(Told::Known) };
        guest.generation = guest.generation.next();
        self.holds.remove(&hold.reservation);
        self.reached.hit(Rare::ConfirmedByNews);
        Ok(Told::Confirmed)
    }

    /// Takes over what is said of a VM in place of what was recorded.
    fn correct(&mut self, vm: &VmKey, adoption: &Adoption) -> Checked<Told> {
        let Adoption { host, over_capacity, committed, .. } = adoption;
        let before = self.guests.remove(vm);
        if let Some(hold) = before.as_ref().and_then(|guest| guest.hold) {
            self.holds.remove(&hold.reservation);
        }
        let moved = before.as_ref().filter(|guest| guest.host != *host);
        let first = match (&before, moved) {
            (Some(guest), None) => guest.first.clone(),
            (Some(guest), Some(_)) if !guest.adopted => Some(Placement {
                id: DecisionId { revision: Revision(self.revision), position: 0 },
                host: Some(host.clone()),
                hold: None,
                decision: None,
                repeated: false,
            }),
            _ => None,
        };
        let over_capacity = *over_capacity;
        let told = match (&before, moved) {
            (None, _) => Told::Adopted { over_capacity },
            (_, Some(guest)) => Told::Moved { from: guest.host.clone(), over_capacity },
            (Some(_), None) => Told::Resized { over_capacity },
        };
        self.reached.hit_if(Rare::MovedByNews, moved.is_some());
        self.add_guest(Guest {
            vm: Arc::clone(&adoption.vm),
            host: host.clone(),
            committed: committed.clone(),
            bindings: adoption.bindings.clone(),
            generation: before.as_ref().map_or(Generation(1), |guest| guest.generation.next()),
            adopted: before.as_ref().is_none_or(|guest| {
                let lost = guest.bindings.is_some() && adoption.bindings.is_none();
                guest.adopted || guest.host != *host || lost
            }),
            over_capacity,
            hold: None,
            first,
            heard_ns: 0,
            included: false,
        })?;
        let exceeds = self.exceeds(host, committed);
        ensure(exceeds == over_capacity, Law::Capacity, || {
            format!("{vm} on {host} is flagged {over_capacity}, but exceeds: {exceeds}")
        })?;
        Ok(told)
    }

    fn heard(&mut self, vm: &VmKey, at_ns: u64) {
        let until_ns = self.reported.taken_ns;
        let Some(guest) = self.guests.get_mut(vm) else { return };
        guest.heard_ns = at_ns;
        let report = self.hosts.get(&guest.host).and_then(|home: &Home| home.report.as_ref());
        let taken_ns = report.and_then(|report| report.taken_ns);
        guest.included =
            taken_ns.is_some_and(|taken_ns| taken_ns.max(until_ns.unwrap_or(0)) > at_ns);
    }

    fn last_heard_ns(&self, vm: &VmKey) -> u64 {
        let lived = self.guests.get(vm).map_or(0, |guest| guest.heard_ns);
        lived.max(self.gone.get(vm).copied().unwrap_or(0))
    }

    /// Whether the log took from the news what it should.
    pub(crate) fn is_news(&self, vm: &VmKey, news: &VmNews, fact: &VmFact) -> bool {
        match (news, fact) {
            (VmNews::Gone, VmFact::Gone) => true,
            (VmNews::Runs { host, vm: described }, fact) => {
                let guest = self.guests.get(vm);
                let Some(known) = guest.map(|guest| &guest.vm).or(described.as_ref()) else {
                    return false;
                };
                let demand = &described.as_ref().unwrap_or(known).demand;
                match fact {
                    VmFact::AsRecorded => {
                        guest.is_some_and(|guest| guest.host == *host && guest.vm.demand == *demand)
                    }
                    VmFact::Otherwise(adoption) => {
                        let due = Vm { demand: demand.clone(), ..known.as_ref().clone() };
                        adoption.host == *host && *adoption.vm == due
                    }
                    VmFact::Gone | VmFact::Arrived => false,
                }
            }
            _ => false,
        }
    }

    /// Whether news rightly changed nothing.
    pub(crate) fn nothing_new(&self, vm: &VmKey, at_ns: u64, news: &VmNews, told: &Told) -> bool {
        let (last_ns, guest) = (self.last_heard_ns(vm), self.guests.get(vm));
        match (told, news) {
            (Told::Late, VmNews::Gone) => at_ns < last_ns,
            (Told::Late, VmNews::Runs { .. }) => at_ns <= last_ns,
            (Told::Known, VmNews::Gone) => {
                guest.is_none() && self.gone.get(vm).copied() == Some(at_ns)
            }
            (Told::Known, VmNews::Runs { .. }) => guest.is_some_and(|it| it.heard_ns == at_ns),
            (Told::NotDescribed, VmNews::Runs { vm: None, .. }) => guest.is_none(),
            _ => false,
        }
    }
}
