//! The incremental reading: what every host has given away and which VMs are near which.
//!
//! The engine reports every change as it happens and asks `check` about each chosen host. The
//! ledger keeps sums by host, the members of each group by domain, and who keeps whom away; it
//! knows VMs and groups by hashes of their names only. It is told where VMs are and never
//! decides it; adopted VMs are added without being checked.

mod check;
mod eligible;
mod fleet;
mod id;
mod installed;
mod parts;
mod policies;
mod tally;

use crate::reading::{apart_from, groups};
use cluster::{Amounts, Dim, Foreign, Host, HostIx, Level, Name, Shards, Subject, Vm, VmKey};
use fleet::Fleet;
use id::{Id, fingerprint};
use installed::Installed;
use parts::Parts;
use tally::Tally;

/// The verifier's own books, patched with every change of the cluster.
#[derive(Debug)]
pub struct Ledger {
    fleet: Fleet,
    placed: Shards<Id, Entry>,
    subjects: Shards<Id, Neighbours>,
    installed: Installed,
    parts: Parts,
}

/// Where a VM is, and a digest of everything that was counted for it.
#[derive(Clone, Copy, Debug)]
struct Entry {
    host: HostIx,
    fingerprint: u32,
}

/// The VMs that matter to a subject of rules. Dropped when the last of them goes.
#[derive(Debug, Default)]
struct Neighbours {
    /// Who belongs to the group; a VM as a subject is found in `placed`.
    members: Tally,
    /// Who must be apart from it, by level.
    repellers: Vec<(Level, Tally)>,
}

/// A report that does not fit what was reported before. The ledger is unchanged by it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LedgerError {
    #[error("host index {} is not in the ledger", .0.0)]
    UnknownHost(HostIx),
    #[error("host {host} still has {vms} VMs")]
    NotEmpty { host: Name, vms: u32 },
    #[error("vm {vm} is on host {on} already")]
    AlreadyPlaced { vm: VmKey, on: Name },
    #[error("vm {0} is not placed")]
    NotPlaced(VmKey),
    #[error("vm {vm} is on host {on}, not on {named}")]
    Elsewhere { vm: VmKey, on: Name, named: Name },
    #[error("vm {0} was added with other amounts, groups or rules than it is removed with")]
    Changed(VmKey),
    #[error("vm {0} still has parts of its host")]
    StillBound(VmKey),
    #[error("vm {0} does not have the parts that it is said to give back")]
    NotBound(VmKey),
    #[error("vm {vm} takes {amount} of dimension {}, more than can be counted", .dimension.0)]
    Uncountable { vm: VmKey, dimension: Dim, amount: u64 },
}

impl Ledger {
    /// An empty ledger of a cluster with this many resource dimensions.
    pub fn new(dimensions: usize) -> Self {
        Self {
            fleet: Fleet::new(dimensions),
            placed: Shards::default(),
            subjects: Shards::default(),
            installed: Installed::default(),
            parts: Parts::default(),
        }
    }

    /// Dimensions are only ever appended, so that what is counted stays.
    pub fn set_dimensions(&mut self, dimensions: usize) {
        self.fleet.set_dimensions(dimensions);
    }

    /// Adds the host, or replaces what is known of it; the VMs on it stay.
    ///
    /// A host that changes its place with VMs on it costs a pass over all groups.
    pub fn put_host(&mut self, ix: HostIx, host: &Host) {
        let Some(relocation) = self.fleet.put(ix, host) else { return };
        for neighbours in self.subjects.values_mut() {
            neighbours.members.relocate(&relocation);
            for (_, tally) in &mut neighbours.repellers {
                tally.relocate(&relocation);
            }
        }
        self.installed.relocate(&relocation);
    }

    /// Replaces what others use of a host. It is never a violation in itself, but takes room.
    pub fn set_foreign(&mut self, ix: HostIx, foreign: &Foreign) -> Result<(), LedgerError> {
        self.fleet.row(ix).ok_or(LedgerError::UnknownHost(ix))?;
        self.fleet.set_foreign(ix, foreign);
        Ok(())
    }

    /// Removes a host that has no VMs left.
    pub fn remove_host(&mut self, ix: HostIx) -> Result<(), LedgerError> {
        let row = self.fleet.row(ix).ok_or(LedgerError::UnknownHost(ix))?;
        if row.vms > 0 {
            return Err(LedgerError::NotEmpty { host: row.id.clone(), vms: row.vms });
        }
        if let Some(vm) = self.parts.first(ix) {
            return Err(LedgerError::StillBound(vm.clone()));
        }
        self.fleet.remove(ix);
        Ok(())
    }

    /// Counts a VM as placed, within the host's room or beyond it.
    pub fn add_vm(
        &mut self,
        host: HostIx,
        vm: &Vm,
        committed: &Amounts,
    ) -> Result<(), LedgerError> {
        let row = self.fleet.row(host).ok_or(LedgerError::UnknownHost(host))?;
        let id = Id::of_vm(&vm.key.tenant, &vm.key.id);
        if let Some(entry) = self.placed.get(&id) {
            let on = self.fleet.name(entry.host);
            return Err(LedgerError::AlreadyPlaced { vm: vm.key.clone(), on });
        }
        if let Some((dimension, amount)) = row.uncountable(committed) {
            return Err(LedgerError::Uncountable { vm: vm.key.clone(), dimension, amount });
        }
        self.fleet.commit(host, committed, vm.qos);
        self.placed.insert(id, Entry { host, fingerprint: fingerprint(vm, committed) });
        self.count(host, vm);
        Ok(())
    }

    /// Takes a VM back out, with exactly what it was added with.
    pub fn remove_vm(
        &mut self,
        host: HostIx,
        vm: &Vm,
        committed: &Amounts,
    ) -> Result<(), LedgerError> {
        let row = self.fleet.row(host).ok_or(LedgerError::UnknownHost(host))?;
        let id = Id::of_vm(&vm.key.tenant, &vm.key.id);
        let Some(entry) = self.placed.get(&id) else {
            return Err(LedgerError::NotPlaced(vm.key.clone()));
        };
        if entry.host != host {
            let on = self.fleet.name(entry.host);
            return Err(LedgerError::Elsewhere { vm: vm.key.clone(), on, named: row.id.clone() });
        }
        if entry.fingerprint != fingerprint(vm, committed) || !row.covers(committed) {
            return Err(LedgerError::Changed(vm.key.clone()));
        }
        self.fleet.give_back(host, committed, vm.qos);
        self.placed.remove(&id);
        self.uncount(host, vm);
        Ok(())
    }

    /// How many VMs are placed.
    pub fn vms(&self) -> usize {
        self.placed.len()
    }

    fn count(&mut self, host: HostIx, vm: &Vm) {
        let tenant = &vm.key.tenant;
        let places = self.fleet.places(host);
        for group in groups(vm) {
            let neighbours = self.subjects.or_default(Id::of_group(tenant, group));
            neighbours.members.add(&places);
        }
        self.installed.count(vm, &places);
        for (subject, level) in apart_from(vm) {
            let Some(id) = Id::of_subject(tenant, subject) else { continue };
            let repellers = &mut self.subjects.or_default(id).repellers;
            // Sorted by level, so that violations come in one order.
            let at = match repellers.binary_search_by(|(found, _)| found.cmp(level)) {
                Ok(at) => at,
                Err(at) => {
                    repellers.insert(at, (level.clone(), Tally::default()));
                    at
                }
            };
            repellers[at].1.add(&places);
        }
    }

    fn uncount(&mut self, host: HostIx, vm: &Vm) {
        let tenant = &vm.key.tenant;
        let places = self.fleet.places(host);
        for group in groups(vm) {
            self.patch(Id::of_group(tenant, group), |neighbours| neighbours.members.take(&places));
        }
        self.installed.uncount(vm, &places);
        for (subject, level) in apart_from(vm) {
            let Some(id) = Id::of_subject(tenant, subject) else { continue };
            self.patch(id, |neighbours| {
                let repellers = &mut neighbours.repellers;
                if let Ok(at) = repellers.binary_search_by(|(found, _)| found.cmp(level)) {
                    repellers[at].1.take(&places);
                    if repellers[at].1.total() == 0 {
                        repellers.remove(at);
                    }
                }
            });
        }
    }

    fn patch(&mut self, id: Id, change: impl FnOnce(&mut Neighbours)) {
        let Some(neighbours) = self.subjects.get_mut(&id) else { return };
        change(neighbours);
        if neighbours.members.total() == 0 && neighbours.repellers.is_empty() {
            self.subjects.remove(&id);
        }
    }

    /// Where the VM with this id is, if it is a subject that can be one.
    fn host_of(&self, tenant: &Name, subject: &Subject) -> Option<HostIx> {
        let Subject::Vm(id) = subject else { return None };
        self.placed.get(&Id::of_vm(tenant, id)).map(|entry| entry.host)
    }
}
