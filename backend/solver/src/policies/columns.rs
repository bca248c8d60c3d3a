//! What a set of policies reads of the hosts: one column for each attribute, one row for each host.
//!
//! Knows no table of the solver's, so that it can be filled beside placing and be handed over.

use cluster::{Dimensions, HostIx, Index};
use policy::vocabulary::{HostField, HostView};
use policy::{ActiveSet, Table};
use std::sync::Arc;

/// The attributes that policies read, of every host.
#[derive(Debug, Default)]
pub struct PolicyColumns {
    set: Arc<ActiveSet>,
    fields: Vec<HostField>,
    /// The columns that change when a VM comes to a host or leaves it.
    of_load: Vec<usize>,
    table: Table,
}

impl PolicyColumns {
    /// The columns that the policies need, without any host.
    pub fn new(set: Arc<ActiveSet>, dimensions: &Dimensions) -> Self {
        let resolve = |path| HostField::resolve(path, dimensions);
        let fields: Vec<_> = set.host_paths().iter().map(resolve).collect();
        let of_load = fields.iter().enumerate().filter(|(_, field)| field.follows_load());
        let of_load = of_load.map(|(column, _)| column).collect();
        Self { set, of_load, table: Table::new(0, fields.len()), fields }
    }

    pub fn set(&self) -> &Arc<ActiveSet> {
        &self.set
    }

    pub(crate) fn field(&self, column: usize) -> Option<&HostField> {
        self.fields.get(column)
    }

    pub fn table(&self) -> &Table {
        &self.table
    }

    pub fn resize(&mut self, rows: usize) {
        self.table.resize(rows);
    }

    /// Whether anything of them changes with what runs on a host.
    pub(crate) fn follow_load(&self) -> bool {
        !self.of_load.is_empty()
    }

    /// Writes everything about a host.
    pub fn put(&mut self, ix: HostIx, host: &HostView<'_>) {
        if self.table.rows() <= ix.row() {
            self.table.resize(ix.row() + 1);
        }
        for (column, field) in self.fields.iter().enumerate() {
            self.table.set(ix.row(), column, field.value(host));
        }
    }

    /// Writes what runs on a host that has been put before, and nothing else of it.
    pub fn put_load(&mut self, ix: HostIx, host: &HostView<'_>) {
        for &column in &self.of_load {
            if let Some(field) = self.fields.get(column) {
                self.table.set(ix.row(), column, field.value(host));
            }
        }
    }
}
