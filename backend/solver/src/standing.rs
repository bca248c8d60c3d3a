//! The part of a score that depends on the host and the demand alone, kept ready for every host.
//!
//! Fit, load and cost change only when the host changes, so a column of their sum serves every
//! request with the same demand and weights; whatever else a request says adds to it. Columns
//! follow the hosts lazily: a log of changed rows tells which to compute again before use.
//!
//! The first request with a demand reads a column that is made for any demand and bounds the sum
//! from above; if the demand soon comes back, it gets a column of its own, which is exact. So
//! fleets with a few hundred shapes pay for a column once, and rare demands do not pay at all.

use crate::bits::LANES;
use crate::cache::{Cache, Slot};
use crate::prices::Prices;
use crate::room::{Ask, Room};
use crate::score::{FitBy, LoadBy};
use cluster::{Amounts, CpuUnit, HostIx, Index, Vm};
use rustc_hash::FxHasher;
use std::collections::VecDeque;
use std::hash::{Hash, Hasher};

/// Columns kept; beyond it the least recently used goes. Each takes four bytes a host.
const LIMIT: usize = 256;

/// Changes remembered. A demand that comes back after more of them counts as new: catching up
/// would cost more than scoring the hosts that the bound leaves.
const LOG_LIMIT: usize = 2048;

/// Demands remembered as seen.
const SEEN: usize = 1024;

/// Which parts of the score depend on the host and the demand, and how much they weigh.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct View {
    pub(crate) fit_by: FitBy,
    pub(crate) load_by: LoadBy,
    pub(crate) fit: i64,
    pub(crate) load: i64,
    pub(crate) cost: i64,
}

/// What a column is made for; without a demand it is an upper bound for all, short of
/// `Formula::most_fit`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    view: View,
    demand: Option<(Amounts, CpuUnit)>,
}

#[derive(Debug)]
pub(crate) struct Standings {
    columns: Cache<Key, Standing>,
    changes: Changes,
    /// Hashes of demands, and how many changes there had been when each was last seen.
    seen: Vec<(u64, u64)>,
}

/// A column that is up to date for the request in progress.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Prepared {
    slot: Slot,
    /// Made for the request's own demand.
    pub(crate) exact: bool,
}

#[derive(Debug, Default)]
struct Standing {
    column: Vec<i32>,
    /// How many changes the column has followed.
    followed: u64,
    /// The prices' epoch that the column was made in.
    epoch: u64,
}

/// The rows that changed lately, oldest first.
#[derive(Debug, Default)]
struct Changes {
    rows: VecDeque<HostIx>,
    /// Changes that are no longer remembered.
    forgotten: u64,
    /// The number of each row's latest change.
    latest: Vec<u64>,
}

impl Default for Standings {
    fn default() -> Self {
        let columns = Cache::new(LIMIT);
        Self { columns, changes: Changes::default(), seen: vec![(0, 0); SEEN] }
    }
}

impl Standings {
    /// Finds or makes the column to judge hosts by, and brings it up to date.
    pub(crate) fn prepare(
        &mut self,
        view: View,
        vm: &Vm,
        asks: &[Ask],
        room: &Room,
        prices: &Prices,
    ) -> Prepared {
        self.columns.tick();
        let mut key = Key { view, demand: Some((vm.demand.clone(), vm.cpu_unit)) };
        let exact = self.is_known(&key);
        if !exact {
            key.demand = None;
        }
        let slot = self.columns.slot(&key, Standing::default);
        let asks = exact.then_some(asks);
        self.columns
            .get_mut(slot)
            .follow(&self.changes, room, prices, |ix| view.sum(asks, room, prices, ix));
        Prepared { slot, exact }
    }

    /// Whether the demand was asked for lately; remembers that it is now.
    fn is_known(&mut self, key: &Key) -> bool {
        let now = self.changes.count();
        if let Some(standing) = self.columns.find(key)
            && self.changes.since(standing.followed).is_some()
        {
            return true;
        }
        let mut hasher = FxHasher::default();
        key.hash(&mut hasher);
        // Zero stands for an empty place.
        let hash = hasher.finish() | 1;
        let place = &mut self.seen[(hash >> 7) as usize % SEEN];
        let (seen, at) = std::mem::replace(place, (hash, now));
        seen == hash && self.changes.since(at).is_some()
    }

    pub(crate) fn column(&self, prepared: Prepared) -> &[[i32; LANES]] {
        self.columns.get(prepared.slot).column.as_chunks().0
    }

    /// A host changed, or what runs on it.
    pub(crate) fn note(&mut self, ix: HostIx) {
        self.changes.note(ix);
    }
}

impl View {
    /// Fit, load and cost of a host, weighed: exactly for these asks, or without asks a bound
    /// from which only what the demand adds to the mean utilisation is missing.
    pub(crate) fn sum(
        &self,
        asks: Option<&[Ask]>,
        room: &Room,
        prices: &Prices,
        ix: HostIx,
    ) -> i32 {
        let host = room.host(ix);
        let (highest, mean) = match asks {
            Some(asks) => room.after(asks, ix),
            None => (host.highest.into(), host.mean()),
        };
        let sum = self.fit * self.fit_by.value(highest, mean)
            + self.load * self.load_by.value(&host)
            + self.cost * prices.cost(ix);
        // Weights are at most 20,000 and values 1,000, so this is far inside `i32`.
        sum as i32
    }
}

impl Standing {
    fn follow(
        &mut self,
        changes: &Changes,
        room: &Room,
        prices: &Prices,
        compute: impl Fn(HostIx) -> i32,
    ) {
        let fresh = self.epoch == prices.epoch() && self.column.len() == room.rows();
        match changes.since(self.followed) {
            Some(rows) if fresh => {
                rows.for_each(|ix| self.column[ix.row()] = compute(ix));
            }
            _ => {
                self.column.clear();
                self.column.extend((0..room.rows()).map(|row| compute(HostIx::new(row))));
                self.epoch = prices.epoch();
            }
        }
        self.followed = changes.count();
    }
}

impl Changes {
    fn note(&mut self, ix: HostIx) {
        if self.rows.len() == LOG_LIMIT {
            self.rows.pop_front();
            self.forgotten += 1;
        }
        if self.latest.len() <= ix.row() {
            self.latest.resize(ix.row() + 1, 0);
        }
        self.latest[ix.row()] = self.count();
        self.rows.push_back(ix);
    }

    fn count(&self) -> u64 {
        self.forgotten + self.rows.len() as u64
    }

    /// The rows that changed after the first `followed` changes, each once, if all are remembered.
    fn since(&self, followed: u64) -> Option<impl Iterator<Item = HostIx> + '_> {
        let skip = followed.checked_sub(self.forgotten)?;
        let rows = self.rows.range(skip as usize..).zip(followed..);
        let last = rows.filter(|&(ix, number)| self.latest[ix.row()] == number);
        Some(last.map(|(ix, _)| *ix))
    }
}
