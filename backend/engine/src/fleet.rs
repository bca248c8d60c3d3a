//! What policies read of every host, as columns, for questions that are asked beside placing.
//!
//! The solver keeps such a table of its own for the policies in force, and only the writer may
//! touch it. This one follows the state when it is told to, rewriting only what is different, and
//! then needs no lock to be evaluated. It serves any set of policies, in force or not.

use crate::state::{Health, HostEntry, State};
use cluster::{
    Amounts, Column, Dim, Dimensions, Foreign, Generation, HostIx, HostState, Name, Revision,
};
use policy::vocabulary::{HostField, HostView};
use policy::{ActiveSet, Table, Value};
use std::sync::Arc;

/// Rows per word of a set.
const LANES: usize = 64;

/// The hosts of a state. Taking them copies pointers, so that the state is not held up.
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
    set: Arc<ActiveSet>,
    fields: Vec<HostField>,
    table: Table,
    rows: Vec<Option<Row>>,
    /// The hosts that take VMs, one bit per row.
    open: Vec<u64>,
    followed: Option<Revision>,
}

/// What was last written of a host: while this is the same, so are its columns.
#[derive(Debug, PartialEq)]
struct Row {
    id: Name,
    incarnation: u64,
    generation: Generation,
    health: Health,
    allocated: Amounts,
    vms: usize,
    foreign: Foreign,
}

impl Row {
    fn of(entry: &HostEntry) -> Self {
        Self {
            id: entry.host.id.clone(),
            incarnation: entry.host.incarnation,
            generation: entry.generation,
            health: entry.health,
            allocated: entry.allocated.clone(),
            vms: entry.vms.len(),
            foreign: entry.foreign(),
        }
    }

    /// Whether only the load is different.
    fn same_host(&self, entry: &HostEntry) -> bool {
        self.incarnation == entry.host.incarnation
            && self.generation == entry.generation
            && self.health == entry.health
    }

    fn same_load(&self, entry: &HostEntry) -> bool {
        self.vms == entry.vms.len()
            && self.allocated == entry.allocated
            && self.foreign == entry.foreign()
    }
}

impl Fleet {
    /// An empty fleet, until it follows the hosts of a state.
    pub fn new(set: Arc<ActiveSet>, dimensions: &Dimensions) -> Self {
        let resolve = |path| HostField::resolve(path, dimensions);
        let fields: Vec<HostField> = set.host_paths().iter().map(resolve).collect();
        let table = Table::new(0, fields.len());
        Self { set, fields, table, rows: Vec::new(), open: Vec::new(), followed: None }
    }

    pub fn set(&self) -> &Arc<ActiveSet> {
        &self.set
    }

    pub fn table(&self) -> &Table {
        &self.table
    }

    /// The hosts that take VMs, one bit per row.
    pub fn open(&self) -> &[u64] {
        &self.open
    }

    /// How many hosts take VMs.
    pub fn open_count(&self) -> u32 {
        self.open.iter().map(|word| word.count_ones()).sum()
    }

    pub fn host(&self, row: usize) -> Option<&Name> {
        self.rows.get(row)?.as_ref().map(|row| &row.id)
    }

    /// Brings the columns up to date. Costs a look at every host, and a write where one differs.
    pub fn follow(&mut self, hosts: &HostRows) {
        if self.followed == Some(hosts.revision) {
            return;
        }
        self.followed = Some(hosts.revision);
        let rows = hosts.rows.len();
        self.table.resize(rows);
        self.rows.resize_with(rows, || None);
        self.open.clear();
        self.open.resize(rows.div_ceil(LANES), 0);
        for (row, entry) in hosts.rows.as_slice().iter().enumerate() {
            match entry {
                Some(entry) => self.put(row, entry),
                None => {
                    if let Some(vacant) = self.rows.get_mut(row) {
                        *vacant = None;
                    }
                }
            }
        }
    }

    fn put(&mut self, row: usize, entry: &HostEntry) {
        let state = entry.effective_state();
        if state == HostState::Available
            && let Some(word) = self.open.get_mut(row / LANES)
        {
            *word |= 1 << (row % LANES);
        }
        let known = self.rows.get(row).and_then(Option::as_ref);
        let same_host = known.is_some_and(|known| known.same_host(entry));
        if same_host && known.is_some_and(|known| known.same_load(entry)) {
            return;
        }
        for (column, field) in self.fields.iter().enumerate() {
            if !same_host || field.follows_load() {
                self.table.set(row, column, host_attribute(field, entry));
            }
        }
        if let Some(known) = self.rows.get_mut(row) {
            *known = Some(Row::of(entry));
        }
    }
}

/// What a host's attribute is now.
pub fn host_attribute(field: &HostField, entry: &HostEntry) -> Value {
    let foreign = entry.foreign();
    let used = |dim: Dim| entry.allocated.get(dim).saturating_add(foreign.used.get(dim));
    let vm_count = (entry.vms.len() as u64).saturating_add(foreign.vms.into());
    // Only its state can be other than what its operator says; copying the host is for that.
    if entry.effective_state() == entry.host.state {
        return field.value(&HostView { host: &entry.host, used: &used, vm_count });
    }
    field.value(&HostView { host: &entry.effective_host(), used: &used, vm_count })
}
