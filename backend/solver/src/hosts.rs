//! What is known of each host by name: the attributes that predicates and rules read.
//!
//! Read when a predicate is compiled or a host changes, never in a loop over candidates.

use cluster::{Column, Host, HostIx, Index, Name};
use rustc_hash::FxHashMap;

use crate::bits::Bits;

#[derive(Debug, Default)]
pub(crate) struct Hosts {
    rows: Column<HostIx, Option<Box<Host>>>,
    by_name: FxHashMap<Name, HostIx>,
    present: Bits,
    count: u32,
}

impl Hosts {
    pub(crate) fn get(&self, ix: HostIx) -> Option<&Host> {
        self.rows.get(ix)?.as_deref()
    }

    pub(crate) fn find(&self, name: &Name) -> Option<HostIx> {
        self.by_name.get(name).copied()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (HostIx, &Host)> {
        self.rows.iter().filter_map(|(ix, host)| Some((ix, host.as_deref()?)))
    }

    /// Every host there is.
    pub(crate) fn present(&self) -> &Bits {
        &self.present
    }

    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    /// Highest row in use, plus one, at most.
    pub(crate) fn rows(&self) -> usize {
        self.rows.len()
    }

    pub(crate) fn put(&mut self, ix: HostIx, host: &Host) {
        self.remove(ix);
        self.rows.reach(ix, None);
        let mut kept = host.clone();
        // Large and of no use to placing.
        kept.hardware = Box::default();
        self.by_name.insert(kept.id.clone(), ix);
        self.rows[ix] = Some(Box::new(kept));
        self.present.insert(ix);
        self.count += 1;
    }

    pub(crate) fn remove(&mut self, ix: HostIx) -> Option<Box<Host>> {
        let host = self.rows.get_mut(ix)?.take()?;
        if self.by_name.get(&host.id) == Some(&ix) {
            self.by_name.remove(&host.id);
        }
        self.present.remove(ix);
        self.count -= 1;
        Some(host)
    }

    /// The first row after `ix`, or the first of all: where a round starts again.
    pub(crate) fn after(&self, ix: HostIx) -> HostIx {
        let next = ix.row().saturating_add(1);
        if next < self.rows() { HostIx::new(next) } else { HostIx(0) }
    }
}
