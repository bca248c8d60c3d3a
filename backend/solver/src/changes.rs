//! Which rows changed lately, for tables that follow the hosts only when somebody asks.

use cluster::HostIx;
use std::collections::VecDeque;

/// Changes remembered. Whoever is further behind starts again.
const LIMIT: usize = 4096;

/// The rows that changed lately, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    rows: VecDeque<HostIx>,
    /// Changes that are no longer remembered.
    forgotten: u64,
}

impl Changes {
    pub(crate) fn note(&mut self, ix: HostIx) {
        if self.rows.len() == LIMIT {
            self.rows.pop_front();
            self.forgotten += 1;
        }
        self.rows.push_back(ix);
    }

    pub(crate) fn count(&self) -> u64 {
        self.forgotten + self.rows.len() as u64
    }

    /// The rows that changed after the first `followed` changes, if all are remembered.
    pub(crate) fn since(&self, followed: u64) -> Option<impl Iterator<Item = HostIx> + '_> {
        let skip = followed.checked_sub(self.forgotten)?;
        Some(self.rows.range(skip as usize..).copied())
    }
}
