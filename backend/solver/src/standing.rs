//! The part of a score that depends on the host and the demand alone, kept ready for every host.
//!
//! Fit, load and cost change only when the host changes, so a column of their sum serves every
//! request with the same demand and weights; whatever else a request says adds to it.
//!
//! A value starts as a bound from above, which costs next to nothing: the sum without a demand,
//! kept for all demands together, and the most that this demand can add to it on a host of its
//! kind (see `sizes`). It is made exact
//! when a search for the best looks at it, and stays so until the host changes. So a demand that
//! is new, or rare, or finds many hosts changed, costs only what the best hosts cost. Columns
//! follow the hosts lazily: a log of changed rows tells which values to start again with.

use crate::bits::{Bits, LANES};
use crate::cache::{Cache, Slot};
use crate::changes::Changes;
use crate::prices::Prices;
use crate::room::{Ask, Room};
use crate::score::{FitBy, LoadBy};
use cluster::{Amounts, CpuUnit, HostIx, Index, Vm};

/// Columns kept; beyond it the least recently used goes. Each takes about four bytes a host.
const LIMIT: usize = 256;

/// Sums without a demand kept: one for each way of weighing that requests ask for.
const BASE_LIMIT: usize = 32;

/// Which parts of the score depend on the host and the demand, and how much they weigh.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct View {
    pub(crate) fit_by: FitBy,
    pub(crate) load_by: LoadBy,
    pub(crate) fit: i64,
    pub(crate) load: i64,
    pub(crate) cost: i64,
}

/// What a column is made for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    view: View,
    demand: Amounts,
    cpu_unit: CpuUnit,
}

#[derive(Debug)]
pub(crate) struct Standings {
    columns: Cache<Key, Standing>,
    bases: Cache<View, Base>,
    changes: Changes,
}

/// The sums for one demand, each exact or a bound from above.
#[derive(Debug, Default)]
pub(crate) struct Standing {
    values: Vec<i32>,
    /// The hosts whose value is exact.
    exact: Bits,
    /// At least the highest value of each block.
    highest: Vec<i32>,
    /// What was added to the base to make bounds, by kind of host.
    slack: Vec<i32>,
    /// The sizes that the slack was worked out from.
    sizes: (u64, usize),
    /// How many changes the column has followed.
    followed: u64,
    /// The prices' epoch that the column was made in.
    epoch: u64,
}

/// The sums without a demand.
#[derive(Debug, Default)]
struct Base {
    values: Vec<i32>,
    followed: u64,
    epoch: u64,
}

impl Default for Standings {
    fn default() -> Self {
        let (columns, bases) = (Cache::new(LIMIT), Cache::new(BASE_LIMIT));
        Self { columns, bases, changes: Changes::default() }
    }
}

impl Standings {
    /// Brings the column to judge hosts by up to date.
    pub(crate) fn prepare(
        &mut self,
        view: View,
        vm: &Vm,
        asks: &[Ask],
        room: &Room,
        prices: &Prices,
    ) -> Slot {
        self.columns.tick();
        self.bases.tick();
        let base = self.bases.slot(&view, Base::default);
        let base = self.bases.get_mut(base);
        base.follow(view, &self.changes, room, prices);
        let key = Key { view, demand: vm.demand.clone(), cpu_unit: vm.cpu_unit };
        let slot = self.columns.slot(&key, Standing::default);
        self.columns.get_mut(slot).follow(base, &self.changes, view, asks, room);
        slot
    }

    /// Takes a column out for a search, which makes values exact; it must be put back.
    pub(crate) fn take(&mut self, slot: Slot) -> Standing {
        std::mem::take(self.columns.get_mut(slot))
    }

    pub(crate) fn put_back(&mut self, slot: Slot, standing: Standing) {
        *self.columns.get_mut(slot) = standing;
    }

    /// A host changed, or what runs on it.
    pub(crate) fn note(&mut self, ix: HostIx) {
        self.changes.note(ix);
    }
}

impl Standing {
    /// The values of a block of hosts.
    pub(crate) fn block(&self, block: usize) -> &[i32; LANES] {
        &self.values.as_chunks().0[block]
    }

    /// At least the highest value in a block.
    pub(crate) fn highest(&self, block: usize) -> i32 {
        self.highest[block]
    }

    /// Finds the highest value in a block again, after some have become less.
    pub(crate) fn tighten(&mut self, block: usize) {
        self.highest[block] = highest(self.block(block));
    }

    pub(crate) fn is_exact(&self, host: HostIx) -> bool {
        self.exact.contains(host)
    }

    pub(crate) fn value(&self, host: HostIx) -> i32 {
        self.values[host.row()]
    }

    /// Replaces a bound by the sum itself.
    pub(crate) fn settle(&mut self, host: HostIx, sum: i32) {
        debug_assert!(sum <= self.values[host.row()], "a bound was too low");
        self.values[host.row()] = sum;
        self.exact.insert(host);
    }

    fn follow(&mut self, base: &Base, changes: &Changes, view: View, asks: &[Ask], room: &Room) {
        let same = self.epoch == base.epoch
            && self.values.len() == base.values.len()
            && !self.learn_slack(view, asks, room);
        match changes.since(self.followed) {
            Some(rows) if same => rows.for_each(|host| {
                let bound = base.values[host.row()] + self.slack[room.kind(host.row())];
                self.values[host.row()] = bound;
                self.exact.remove(host);
                let highest = &mut self.highest[host.row() / LANES];
                *highest = bound.max(*highest);
            }),
            _ => {
                self.learn_slack(view, asks, room);
                self.values.clear();
                let rows = base.values.iter().enumerate();
                self.values.extend(rows.map(|(row, sum)| sum + self.slack[room.kind(row)]));
                self.exact.clear();
                let blocks: &[[i32; LANES]] = self.values.as_chunks().0;
                self.highest.clear();
                self.highest.extend(blocks.iter().map(highest));
                self.epoch = base.epoch;
            }
        }
        self.followed = changes.count();
    }

    /// Works the slack out again after a change of sizes; says whether it is another.
    fn learn_slack(&mut self, view: View, asks: &[Ask], room: &Room) -> bool {
        if self.sizes == room.sizes_epoch() {
            return false;
        }
        self.sizes = room.sizes_epoch();
        let added = room.most_added(view.fit_by, asks).into_iter();
        let slack = added.map(|most| (view.fit * most) as i32).collect();
        std::mem::replace(&mut self.slack, slack) != self.slack
    }
}

impl Base {
    fn follow(&mut self, view: View, changes: &Changes, room: &Room, prices: &Prices) {
        let sum = |host| view.sum(None, room, prices, host);
        let same = self.epoch == prices.epoch() && self.values.len() == room.rows();
        match changes.since(self.followed) {
            Some(rows) if same => rows.for_each(|host| self.values[host.row()] = sum(host)),
            _ => {
                self.values.clear();
                self.values.extend((0..room.rows()).map(|row| sum(HostIx::new(row))));
                self.epoch = prices.epoch();
            }
        }
        self.followed = changes.count();
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

fn highest(lanes: &[i32; LANES]) -> i32 {
    lanes.iter().fold(i32::MIN, |highest, &value| highest.max(value))
}
