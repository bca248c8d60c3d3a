//! Reports: what another system, which runs the VMs, says of hosts and VMs.
//!
//! That system counts everything that runs on a host, also the VMs that were placed here. What it
//! counts beyond them is foreign use: reported use less the VMs of ours that the report includes,
//! never below zero. A report includes a VM if it was taken after the VM was last heard of; the
//! times of both are the reporter's, so they can be compared. Where one of them is missing, the
//! order of arrival stands in for it. A VM that is not known to be included is counted beside the
//! report, so doubt takes room and never gives any.
//!
//! Here are the words and the sums; which command comes of a report is in `proposal::reports`, what
//! it does to the state in `apply::reports`.

use crate::command::Adoption;
use crate::state::{HostEntry, VmEntry};
use cluster::{Amounts, Foreign, Name, Vm, VmKey};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The use of many hosts, or a piece of such a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UseReports {
    /// The number that the inventory has after this.
    pub generation: u64,
    /// The inventory that this is a change of. `None`: it is the whole one.
    pub base: Option<u64>,
    /// Fingerprint of the whole list, so that a change that comes twice is known.
    pub digest: [u8; 16],
    /// When the reporter looked, in nanoseconds of its own clock.
    pub taken_ns: Option<u64>,
    /// The generation is reached with the last piece.
    pub last: bool,
    pub reports: Vec<UseReport>,
}

/// What is in use on one host, whoever uses it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UseReport {
    pub host: Name,
    pub used: Amounts,
    pub vms: Option<u32>,
}

/// What has been heard of one VM.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum VmNews {
    /// It runs on this host. With a description it can be taken in when it is not known here.
    Runs { host: Name, vm: Option<Arc<Vm>> },
    /// It is no more.
    Gone,
}

/// News of a VM as the log keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VmReport {
    pub vm: VmKey,
    /// When it happened, by the reporter's clock.
    pub at_ns: u64,
    pub fact: VmFact,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum VmFact {
    /// Where it is recorded and as large: a reservation becomes a placement.
    AsRecorded,
    /// Here and like this, whatever was recorded before.
    Otherwise(Adoption),
    Gone,
    /// Where a migration under way takes it.
    Arrived,
}

/// What news of a VM came to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Told {
    /// Something later is known already.
    Late,
    /// Nothing new.
    Known,
    Confirmed,
    Adopted {
        over_capacity: bool,
    },
    Moved {
        from: Name,
        over_capacity: bool,
    },
    Resized {
        over_capacity: bool,
    },
    Released,
    /// The end of a VM that is not recorded; remembered in case older news of it come later.
    Remembered,
    /// It is not recorded and nothing says how large it is: the next report counts it as foreign.
    NotDescribed,
}

/// What was last reported of a host, and how much of that is ours.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    pub used: Amounts,
    pub vms: Option<u32>,
    pub taken_ns: Option<u64>,
    /// What the VMs that it includes take. Kept up to date as they go.
    pub included: Amounts,
    pub included_vms: u32,
}

/// How far the inventory of hosts has been reported.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inventory {
    pub generation: u64,
    pub digest: [u8; 16],
    /// When the last change was taken: it also says of the hosts which it does not name that they
    /// are as they were reported. `None` while a whole inventory is coming in.
    pub taken_ns: Option<u64>,
}

impl Inventory {
    /// Up to when a report is good.
    pub(crate) fn taken_ns(&self, report: &Report) -> Option<u64> {
        report.taken_ns.max(report.taken_ns.and(self.taken_ns))
    }
}

impl HostEntry {
    /// What others use of the host, as far as is known.
    pub fn foreign(&self) -> Foreign {
        self.report.as_ref().map_or_else(Foreign::default, |report| Foreign {
            used: report.used.saturating_sub(&report.included),
            vms: report.vms.map_or(0, |vms| vms.saturating_sub(report.included_vms)),
        })
    }
}

impl VmEntry {
    /// Whether a report of its host that comes in now includes the VM.
    pub(crate) fn is_in(&self, taken_ns: Option<u64>) -> bool {
        self.hold.is_none() && taken_ns.is_none_or(|taken_ns| self.heard_ns < taken_ns)
    }
}

/// Ends of VMs that are remembered; beyond it the oldest goes. Late news are seconds late, and at
/// a hundred deletions a second this reaches back for most of a minute.
const MOST_GONE: usize = 4_096;

/// VMs that are no more, so that late news do not bring them back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gone {
    by_vm: BTreeMap<VmKey, u64>,
    by_time: BTreeSet<(u64, VmKey)>,
}

impl Gone {
    pub(crate) fn from_rows(rows: BTreeMap<VmKey, u64>) -> Self {
        let by_time = rows.iter().map(|(vm, at_ns)| (*at_ns, vm.clone())).collect();
        Self { by_vm: rows, by_time }
    }

    pub(crate) fn rows(&self) -> &BTreeMap<VmKey, u64> {
        &self.by_vm
    }

    /// When the VM of this name ended, if that is remembered.
    pub fn at_ns(&self, vm: &VmKey) -> Option<u64> {
        self.by_vm.get(vm).copied()
    }

    pub(crate) fn note(&mut self, vm: &VmKey, at_ns: u64) {
        if let Some(before) = self.by_vm.insert(vm.clone(), at_ns) {
            self.by_time.remove(&(before, vm.clone()));
        }
        self.by_time.insert((at_ns, vm.clone()));
        if self.by_vm.len() > MOST_GONE
            && let Some((_, oldest)) = self.by_time.pop_first()
        {
            self.by_vm.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_end_is_forgotten_first_and_a_later_one_replaces_an_earlier() {
        let key = |n: usize| VmKey::in_default_tenant(Name::new(&format!("v{n}")).expect("a name"));
        let mut gone = Gone::default();
        gone.note(&key(0), 1);
        gone.note(&key(0), 1_000_000);
        for n in 1..=MOST_GONE {
            gone.note(&key(n), 10 + n as u64);
        }
        assert_eq!(gone.at_ns(&key(0)), Some(1_000_000));
        assert_eq!(gone.at_ns(&key(1)), None, "the oldest by its own time");
        assert_eq!(gone.rows().len(), MOST_GONE);
        assert_eq!(Gone::from_rows(gone.rows().clone()), gone);
    }
}
