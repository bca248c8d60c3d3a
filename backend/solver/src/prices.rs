//! What each host costs against the dearest host of the fleet.

use cluster::{HostIx, Index};
use std::collections::BTreeMap;

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
    pub(crate) fn epoch(&self) -> u64 {
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
