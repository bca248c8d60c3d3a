//! The state of the cluster: hosts, VMs, reservations and the policy in force.
//!
//! Holds what is true and answers questions about it. How it changes is in `apply`; how it is
//! written down is in `frozen`.

use crate::command::Hold;
use crate::plans::Plans;
use crate::report::{Gone, Inventory, Report};
use crate::slots::{Keyed, Slots};
use crate::weights::WeightHistory;
use cluster::{
    Amounts, Bindings, Constraint, Dimensions, Foreign, Generation, Host, HostIx, HostState, Index,
    Name, Placed, Qos, Revision, Snapshot, Vm, VmIx, VmKey,
};
use policy::{Library, Policy};
use serde::{Deserialize, Serialize};
use solver::fragmentation::{Learning, Wanted};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

#[derive(Clone, Debug)]
pub struct State {
    pub(crate) revision: Revision,
    pub(crate) time_ms: u64,
    pub(crate) hash: [u8; 32],
    pub(crate) dimensions: Dimensions,
    pub(crate) policy: Policy,
    pub(crate) library: Library,
    pub(crate) weights: WeightHistory,
    pub(crate) constraints: BTreeMap<Name, ConstraintEntry>,
    pub(crate) hosts: Slots<HostIx, HostEntry>,
    pub(crate) vms: Slots<VmIx, VmEntry>,
    /// Unconfirmed reservations: which VM each one holds capacity for.
    pub(crate) holds: BTreeMap<u64, VmIx>,
    /// The same reservations in the order in which they end.
    pub(crate) expiries: BTreeSet<(u64, u64)>,
    pub(crate) next_reservation: u64,
    /// The host that round robin used last.
    pub(crate) round_robin_after: Option<HostIx>,
    pub(crate) inventory: Inventory,
    pub(crate) gone: Gone,
    /// Which shapes came, for those who are placed where least is lost to shapes to come.
    pub(crate) mix: Arc<Learning<Wanted>>,
    pub(crate) plans: Plans,
}

/// A constraint in force.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConstraintEntry {
    pub constraint: Arc<Constraint>,
    pub generation: Generation,
}

/// A host and what is committed on it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostEntry {
    pub host: Arc<Host>,
    pub generation: Generation,
    pub health: Health,
    pub allocated: Amounts,
    /// The VMs on this host, in order of their rows.
    pub vms: Vec<VmIx>,
    /// What was last said to be in use on it.
    pub report: Option<Box<Report>>,
}

/// What a host's heartbeats say, beside what its operator says (`Host::state`).
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub enum Health {
    #[default]
    Healthy,
    /// Missed its deadline: takes no new VMs.
    Suspect,
    Down,
}

impl HostEntry {
    /// The host's state for placing: its operator's word, unless its heartbeats are worse.
    pub fn effective_state(&self) -> HostState {
        match self.health {
            Health::Healthy => self.host.state,
            Health::Suspect => self.host.state.max(HostState::Cordoned),
            Health::Down => HostState::Down,
        }
    }

    /// The host as the solver and the verifier see it.
    pub fn effective_host(&self) -> Arc<Host> {
        let (state, foreign) = (self.effective_state(), self.foreign());
        if state == self.host.state && foreign.is_zero() {
            return Arc::clone(&self.host);
        }
        Arc::new(Host { state, foreign, ..self.host.as_ref().clone() })
    }
}

/// A VM and where it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VmEntry {
    pub vm: Arc<Vm>,
    pub host: HostIx,
    pub committed: Amounts,
    /// The parts of its host that it has. `None` for VMs that ask for none, and for adopted ones
    /// of which nobody said it.
    pub bindings: Option<Arc<Bindings>>,
    pub generation: Generation,
    /// Was running already when it was recorded.
    pub adopted: bool,
    /// Adopted although it did not fit.
    pub over_capacity: bool,
    pub hold: Option<Hold>,
    /// Where the decision that placed it stands in the log.
    pub decided: DecisionId,
    pub request_hash: [u8; 16],
    /// When it was last heard to run, by the reporter's clock; 0 if never.
    pub heard_ns: u64,
    /// The last report of its host counts it already.
    pub included: bool,
}

/// A decision's place in the log: the command's revision and the position within its batch.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct DecisionId {
    pub revision: Revision,
    pub position: u32,
}

impl Keyed for HostEntry {
    type Key = Name;
    fn key(&self) -> &Name {
        &self.host.id
    }
}

impl Keyed for VmEntry {
    type Key = VmKey;
    fn key(&self) -> &VmKey {
        &self.vm.key
    }
}

impl Default for State {
    fn default() -> Self {
        Self::new()
    }
}

impl State {
    /// The state before any command.
    pub fn new() -> Self {
        Self {
            revision: Revision(0),
            time_ms: 0,
            hash: [0; 32],
            dimensions: Dimensions::default(),
            policy: Policy::default(),
            library: Library::default(),
            weights: WeightHistory::default(),
            constraints: BTreeMap::new(),
            hosts: Slots::new(),
            vms: Slots::new(),
            holds: BTreeMap::new(),
            expiries: BTreeSet::new(),
            next_reservation: 1,
            round_robin_after: None,
            inventory: Inventory::default(),
            gone: Gone::default(),
            mix: Arc::default(),
            plans: Plans::default(),
        }
    }

    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// The state's own time: never goes back, and never jumps.
    pub fn time_ms(&self) -> u64 {
        self.time_ms
    }

    /// Rolls over the effects of every command so far.
    pub fn hash(&self) -> [u8; 32] {
        self.hash
    }

    pub fn dimensions(&self) -> &Dimensions {
        &self.dimensions
    }

    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// How far the inventory of hosts has been reported.
    pub fn inventory(&self) -> &Inventory {
        &self.inventory
    }

    /// VMs that are known to be no more.
    pub fn gone(&self) -> &Gone {
        &self.gone
    }

    /// The mix of shapes that came, as it is learned.
    pub fn mix(&self) -> &Learning<Wanted> {
        &self.mix
    }

    /// The policies that are installed.
    pub fn library(&self) -> &Library {
        &self.library
    }

    /// The constraints in force, in order of their names.
    pub fn constraints(&self) -> impl ExactSizeIterator<Item = &ConstraintEntry> {
        self.constraints.values()
    }

    pub fn find_constraint(&self, name: &Name) -> Option<&ConstraintEntry> {
        self.constraints.get(name)
    }

    /// The weights that were in force lately.
    pub fn weight_history(&self) -> &WeightHistory {
        &self.weights
    }

    pub fn host_count(&self) -> usize {
        self.hosts.len()
    }

    /// VMs that are placed; stand-ins of those under way are none.
    pub fn vm_count(&self) -> usize {
        self.vms.len().saturating_sub(self.plans.moving().len())
    }

    /// Plans, and who is under way.
    pub fn plans(&self) -> &Plans {
        &self.plans
    }

    pub fn hosts(&self) -> impl Iterator<Item = (HostIx, &HostEntry)> {
        self.hosts.iter().map(|(ix, entry)| (ix, entry.as_ref()))
    }

    /// Rows that hosts have or had.
    pub(crate) fn row_count(&self) -> usize {
        self.hosts.rows().len()
    }

    /// The hosts in these rows.
    pub(crate) fn hosts_between(
        &self,
        first: usize,
        last: usize,
    ) -> impl Iterator<Item = (HostIx, &HostEntry)> {
        let rows = self.hosts.rows().as_slice().iter().enumerate();
        let rows = rows.take(last).skip(first);
        rows.filter_map(|(row, entry)| Some((HostIx::new(row), entry.as_deref()?)))
    }

    pub fn vms(&self) -> impl Iterator<Item = (VmIx, &VmEntry)> {
        self.entries().filter(|(_, entry)| !entry.vm.key.is_stand_in())
    }

    /// Whoever takes room on a host: VMs, and stand-ins of those under way.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (VmIx, &VmEntry)> {
        self.vms.iter().map(|(ix, entry)| (ix, entry.as_ref()))
    }

    pub fn find_host(&self, id: &Name) -> Option<(HostIx, &HostEntry)> {
        let ix = self.hosts.find(id)?;
        Some((ix, self.hosts.get(ix)?))
    }

    pub fn find_vm(&self, key: &VmKey) -> Option<(VmIx, &VmEntry)> {
        if key.is_stand_in() {
            return None;
        }
        let ix = self.vms.find(key)?;
        Some((ix, self.vms.get(ix)?))
    }

    /// What a VM under way has on the host that it goes to.
    pub fn target_of(&self, key: &VmKey) -> Option<&VmEntry> {
        let under_way = self.plans.under_way(key)?;
        let stand_in = self.plans.get(under_way.plan)?.stand_in(under_way.step)?;
        self.vm(self.vms.find(&stand_in)?)
    }

    pub fn host(&self, ix: HostIx) -> Option<&HostEntry> {
        self.hosts.get(ix).map(Arc::as_ref)
    }

    pub fn vm(&self, ix: VmIx) -> Option<&VmEntry> {
        self.vms.get(ix).map(Arc::as_ref)
    }

    /// What the VMs of a host are guaranteed, without one of them.
    pub fn guaranteed_on(&self, host: &HostEntry, without: Option<&VmKey>) -> Amounts {
        let mut sum = Amounts::zero();
        let vms = host.vms.iter().filter_map(|ix| self.vm(*ix));
        for entry in vms.filter(|entry| entry.vm.qos == Qos::Guaranteed) {
            if Some(&entry.vm.key) != without {
                // What is committed in all can be counted, so a part of it can.
                let _ = sum.try_add(&entry.committed);
            }
        }
        sum
    }

    /// The host with what VMs under way will take on it counted as foreign use.
    fn host_with_arrivals(&self, entry: &HostEntry) -> Arc<Host> {
        let host = entry.effective_host();
        if self.plans.moving().len() == 0 {
            return host;
        }
        let on_it = entry.vms.iter().filter_map(|ix| self.vm(*ix));
        let arriving = on_it.filter(|vm| vm.vm.key.is_stand_in());
        let used = arriving.fold(host.foreign.used.clone(), |used, vm| {
            used.checked_add(&vm.committed).unwrap_or(used)
        });
        if used == host.foreign.used {
            return host;
        }
        let foreign = Foreign { used, ..host.foreign.clone() };
        Arc::new(Host { foreign, ..host.as_ref().clone() })
    }

    /// What its host could give a VM of each dimension in all, were the VM not there.
    pub fn room_for(&self, host: &HostEntry, entry: &VmEntry) -> Amounts {
        let others = host.allocated.saturating_sub(&entry.committed);
        let others = others.checked_add(&host.foreign().used).unwrap_or(others);
        let guaranteed = (entry.vm.qos == Qos::Guaranteed)
            .then(|| self.guaranteed_on(host, Some(&entry.vm.key)));
        let mut room = Amounts::zero();
        for dim in self.dimensions().iter() {
            let mut left = host.host.allocatable(dim).saturating_sub(others.get(dim));
            if let Some(guaranteed) = &guaranteed {
                left = left.min(host.host.physical(dim).saturating_sub(guaranteed.get(dim)));
            }
            room.set(dim, left);
        }
        room
    }

    /// The VM that an unconfirmed reservation holds capacity for.
    pub fn reservation(&self, reservation: u64) -> Option<(VmIx, &VmEntry)> {
        let ix = *self.holds.get(&reservation)?;
        Some((ix, self.vm(ix)?))
    }

    pub fn reservation_count(&self) -> usize {
        self.holds.len()
    }

    /// Reservations that are over at `time_ms`, oldest first, at most `limit`.
    pub fn due_reservations(&self, time_ms: u64, limit: usize) -> Vec<u64> {
        let due = self.expiries.iter().take_while(|(expires_ms, _)| *expires_ms <= time_ms);
        due.take(limit).map(|(_, reservation)| *reservation).collect()
    }

    /// Everything that is placed, for verifiers and solver jobs. Copies pointers only. VMs under way
    /// are where they come from; what they take where they go is somebody else's there, so that it
    /// takes room and no rule is asked about it twice.
    pub fn snapshot(&self) -> Snapshot {
        let placed = self.vms().filter_map(|(_, entry)| {
            let host = self.host(entry.host)?;
            Some(Placed {
                vm: Arc::clone(&entry.vm),
                host: host.host.id.clone(),
                committed: entry.committed.clone(),
                bindings: entry.bindings.clone(),
                over_capacity: entry.over_capacity,
                adopted: entry.adopted,
                held: entry.hold.is_some(),
            })
        });
        Snapshot {
            revision: self.revision,
            dimensions: self.dimensions.clone(),
            hosts: self.hosts().map(|(_, entry)| self.host_with_arrivals(entry)).collect(),
            placed: placed.collect(),
            constraints: self.constraints().map(|it| Arc::clone(&it.constraint)).collect(),
        }
    }
}

impl DecisionId {
    /// Reads what `Display` writes: `d12`, or `d12-3` for the fourth decision of a batch.
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix('d')?;
        let (revision, position) = match digits.split_once('-') {
            Some((revision, position)) => (revision, position.parse().ok()?),
            None => (digits, 0),
        };
        Some(Self { revision: Revision(revision.parse().ok()?), position })
    }
}

impl std::fmt::Display for DecisionId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.position {
            0 => write!(f, "d{}", self.revision),
            position => write!(f, "d{}-{position}", self.revision),
        }
    }
}
