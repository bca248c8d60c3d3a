//! What policies read of every host, as columns, for questions that are asked beside placing.
//!
//! The solver keeps such columns of its own for the policies in force, and only the writer may
//! touch them. These follow the state when they are told to, rewriting only what is different, and
//! then need no lock to be evaluated. They serve any set of policies, and may become the solver's.

use crate::state::{HostEntry, State};
use cluster::{Column, Dim, Dimensions, Host, HostIx, HostState, Index, Name, Revision};
use policy::vocabulary::{HostField, HostView};
use policy::{ActiveSet, Table, Value};
use solver::PolicyColumns;
use std::sync::Arc;

/// Rows per word of a set.
const LANES: usize = 64;

/// The hosts of a state. Taking them copies pointers, so that the state is not held up. An entry
/// that is shared is never written to: a host that changes has another pointer.
#[derive(Clone, Debug, Default)]
pub struct HostRows {
    revision: Revision,
    rows: Column<HostIx, Option<Arc<HostEntry>>>,
}

impl HostRows {
    pub(crate) fn get(&self, ix: HostIx) -> Option<&Arc<HostEntry>> {
        self.rows.get(ix)?.as_ref()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (HostIx, &Arc<HostEntry>)> {
        self.rows.iter().filter_map(|(ix, entry)| Some((ix, entry.as_ref()?)))
    }
}

impl State {
    pub fn host_rows(&self) -> HostRows {
        HostRows { revision: self.revision, rows: self.hosts.rows().clone() }
    }
}

/// Attributes of the hosts for one set of policies.
#[derive(Debug)]
pub struct Fleet {
    columns: PolicyColumns,
    /// The hosts that the columns were written from.
    written: Option<HostRows>,
    /// The hosts that take VMs, one bit per row.
    open: Vec<u64>,
}

impl Fleet {
    /// An empty fleet, until it follows the hosts of a state.
    pub fn new(set: Arc<ActiveSet>, dimensions: &Dimensions) -> Self {
        Self { columns: PolicyColumns::new(set, dimensions), written: None, open: Vec::new() }
    }

    pub fn set(&self) -> &Arc<ActiveSet> {
        self.columns.set()
    }

    pub fn table(&self) -> &Table {
        self.columns.table()
    }

    /// The hosts that take VMs, one bit per row.
    pub fn open(&self) -> &[u64] {
        &self.open
    }

    /// Those of them that are wanted.
    pub fn open_where(&self, wanted: impl Fn(&Host) -> bool) -> Vec<u64> {
        let mut open = self.open.clone();
        for (ix, entry) in self.written.iter().flat_map(HostRows::iter) {
            if let Some(word) = open.get_mut(ix.row() / LANES).filter(|_| !wanted(&entry.host)) {
                *word &= !(1 << (ix.row() % LANES));
            }
        }
        open
    }

    /// Whether there is such a host, and it is wanted.
    pub fn is_at(&self, ix: HostIx, wanted: impl Fn(&Host) -> bool) -> bool {
        let entry = self.written.as_ref().and_then(|written| written.get(ix));
        entry.is_some_and(|entry| wanted(&entry.host))
    }

    /// How many hosts take VMs.
    pub fn open_count(&self) -> u32 {
        self.open.iter().map(|word| word.count_ones()).sum()
    }

    pub fn host(&self, row: usize) -> Option<&Name> {
        let entry = self.written.as_ref()?.get(HostIx::new(row))?;
        Some(&entry.host.id)
    }

    /// Brings the columns up to date. Costs a look at every host, and a write where one differs.
    pub fn follow(&mut self, hosts: HostRows) {
        let before = self.written.take();
        if before.as_ref().is_some_and(|before| before.revision == hosts.revision) {
            self.written = before;
            return;
        }
        let rows = hosts.rows.len();
        self.columns.resize(rows);
        self.open.clear();
        self.open.resize(rows.div_ceil(LANES), 0);
        for (ix, entry) in hosts.rows.iter() {
            if let Some(entry) = entry {
                self.put(ix, entry, before.as_ref().and_then(|before| before.get(ix)));
            }
        }
        self.written = Some(hosts);
    }

    fn put(&mut self, ix: HostIx, entry: &Arc<HostEntry>, before: Option<&Arc<HostEntry>>) {
        if entry.effective_state() == HostState::Available
            && let Some(word) = self.open.get_mut(ix.row() / LANES)
        {
            *word |= 1 << (ix.row() % LANES);
        }
        match before {
            Some(before) if Arc::ptr_eq(before, entry) => {}
            Some(before)
                if Arc::ptr_eq(&before.host, &entry.host) && before.health == entry.health =>
            {
                viewed(entry, |view| self.columns.put_load(ix, view));
            }
            _ => viewed(entry, |view| self.columns.put(ix, view)),
        }
    }

    /// The columns, and the hosts of `state` that are different from what they say.
    pub(crate) fn hand_over(self, state: &State) -> (PolicyColumns, Vec<(HostIx, Arc<Host>)>) {
        let written = |ix| self.written.as_ref().and_then(|written| written.get(ix));
        let different = state
            .hosts
            .iter()
            .filter(|(ix, entry)| written(*ix).is_none_or(|written| !Arc::ptr_eq(written, entry)));
        let different = different.map(|(ix, entry)| (ix, entry.effective_host())).collect();
        (self.columns, different)
    }
}

/// What a host's attribute is now.
pub fn host_attribute(field: &HostField, entry: &HostEntry) -> Value {
    viewed(entry, |view| field.value(view))
}

/// A host as policies see it.
fn viewed<T>(entry: &HostEntry, read: impl FnOnce(&HostView<'_>) -> T) -> T {
    let foreign = entry.foreign();
    let used = |dim: Dim| entry.allocated.get(dim).saturating_add(foreign.used.get(dim));
    let vm_count = (entry.vms.len() as u64).saturating_add(foreign.vms.into());
    // Only its state can be other than what its operator says; copying the host is for that.
    if entry.effective_state() == entry.host.state {
        return read(&HostView { host: &entry.host, used: &used, vm_count });
    }
    read(&HostView { host: &entry.effective_host(), used: &used, vm_count })
}
