//! The part of a score that depends on the host alone, kept ready for every host.
//!
//! A standing is an upper bound, short of what the request itself can add: comparing it with the
//! best scores so far tells which hosts are worth scoring exactly. One column is kept for each
//! combination of weights in use, patched when a host changes.

use crate::bits::LANES;
use crate::room::{Room, Use};
use crate::score::{FitBy, LoadBy};
use cluster::{HostIx, Index};
use std::collections::BTreeMap;

/// Combinations of weights kept; beyond it the least recently used goes. Four bytes a host each.
const LIMIT: usize = 8;

/// Below every score, with room to add to it.
const NO_HOST: i32 = i32::MIN / 2;

/// Which parts of the score depend on the host alone, and how much they weigh.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct View {
    pub(crate) fit_by: FitBy,
    pub(crate) load_by: LoadBy,
    pub(crate) fit: i64,
    pub(crate) load: i64,
    pub(crate) cost: i64,
}

impl View {
    fn bound(&self, host: &Use, cost: i64) -> i32 {
        let fit = match self.fit_by {
            FitBy::Evenness => 1000 - i64::from(host.highest) + host.mean(),
            FitBy::Mean => host.mean(),
            FitBy::Spare => 1000 - host.mean(),
        };
        let bound = self.fit * fit + self.load * self.load_by.value(host) + self.cost * cost;
        // Weights are at most 20,000 and values 2,000, so this is far inside `i32`.
        bound as i32
    }
}

#[derive(Debug, Default)]
pub(crate) struct Standings {
    clock: u64,
    kept: Vec<Standing>,
}

#[derive(Debug)]
struct Standing {
    view: View,
    column: Vec<i32>,
    used_at: u64,
    /// The prices' epoch that the column was made in.
    epoch: u64,
}

impl Standings {
    /// The row of a view's column, made or brought up to date if need be.
    pub(crate) fn prepare(&mut self, view: View, room: &Room, prices: &Prices) -> usize {
        self.clock += 1;
        let row = self.kept.iter().position(|kept| kept.view == view).unwrap_or_else(|| {
            let fresh = Standing { view, column: Vec::new(), used_at: 0, epoch: 0 };
            self.keep(fresh)
        });
        let standing = &mut self.kept[row];
        standing.used_at = self.clock;
        if standing.epoch != prices.epoch() || standing.column.len() != room.rows() {
            standing.epoch = prices.epoch();
            standing.column.resize(room.rows(), NO_HOST);
            for row in 0..room.rows() {
                standing.put(HostIx::new(row), room, prices);
            }
        }
        row
    }

    fn keep(&mut self, fresh: Standing) -> usize {
        if self.kept.len() < LIMIT {
            self.kept.push(fresh);
            return self.kept.len() - 1;
        }
        let rows = 0..self.kept.len();
        let oldest = rows.min_by_key(|&row| self.kept[row].used_at).unwrap_or(0);
        self.kept[oldest] = fresh;
        oldest
    }

    pub(crate) fn block(&self, row: usize, block: usize) -> &[i32; LANES] {
        &self.kept[row].column.as_chunks().0[block]
    }

    /// Follows a change of one host.
    pub(crate) fn patch(&mut self, ix: HostIx, room: &Room, prices: &Prices) {
        for standing in &mut self.kept {
            if ix.row() < standing.column.len() {
                standing.put(ix, room, prices);
            }
        }
    }
}

impl Standing {
    fn put(&mut self, ix: HostIx, room: &Room, prices: &Prices) {
        self.column[ix.row()] = self.view.bound(&room.host(ix), prices.cost(ix));
    }
}

/// What each host costs against the dearest.
#[derive(Debug, Default)]
pub(crate) struct Prices {
    by_host: Vec<Option<u64>>,
    hosts_at: BTreeMap<u64, u32>,
    cost: Vec<u16>,
    /// The highest price that `cost` was computed against.
    highest: u64,
    epoch: u64,
}

impl Prices {
    /// The cost term, 0 to 1000.
    pub(crate) fn cost(&self, ix: HostIx) -> i64 {
        self.cost.get(ix.row()).copied().unwrap_or(0).into()
    }

    /// Changes whenever the costs of all hosts may have changed.
    fn epoch(&self) -> u64 {
        self.epoch
    }

    pub(crate) fn put(&mut self, ix: HostIx, price: Option<u64>) {
        if self.by_host.len() <= ix.row() {
            self.by_host.resize(ix.row() + 1, None);
            self.cost.resize(ix.row() + 1, 0);
        }
        let old = std::mem::replace(&mut self.by_host[ix.row()], price);
        if let Some(price) = price {
            *self.hosts_at.entry(price).or_insert(0) += 1;
        }
        if let Some(old) = old
            && let Some(count) = self.hosts_at.get_mut(&old)
        {
            *count -= 1;
            if *count == 0 {
                self.hosts_at.remove(&old);
            }
        }
        self.cost[ix.row()] = cost(price, self.highest);
    }

    /// Recomputes every cost if the highest price has changed.
    pub(crate) fn refresh(&mut self) {
        let highest = self.hosts_at.last_key_value().map_or(0, |(&price, _)| price);
        if highest == self.highest && self.epoch > 0 {
            return;
        }
        self.highest = highest;
        self.epoch += 1;
        for (value, &price) in self.cost.iter_mut().zip(&self.by_host) {
            *value = cost(price, highest);
        }
    }
}

fn cost(price: Option<u64>, highest: u64) -> u16 {
    let price = price.unwrap_or(0).min(highest);
    if highest == 0 {
        return 1000;
    }
    1000 - (u128::from(price) * 1000 / u128::from(highest)) as u16
}
