//! What every host has left of one dimension, and who has enough of it.
//!
//! VMs come in shapes, so the same amounts are asked for again and again. The hosts with at least
//! an amount are kept as a set from the first request for it. A host that changes enters or
//! leaves only the sets of the amounts between its old and its new value, so that following every
//! change costs less than one comparison of the fleet.

use crate::bits::{Bits, LANES, at_least};
use cluster::{HostIx, Index};

/// Rows without a host: no demand fits there.
pub(crate) const NO_HOST: i32 = i32::MIN;

/// Amounts kept; beyond it the least recently used goes. A set takes 12.5 KB for 100,000 hosts.
const LIMIT: usize = 256;

#[derive(Debug, Default)]
pub(crate) struct Free {
    lanes: Vec<i32>,
    /// By amount.
    sets: Vec<Enough>,
    clock: u64,
}

/// The hosts with at least this much.
#[derive(Debug)]
struct Enough {
    amount: i32,
    hosts: Bits,
    used_at: u64,
}

impl Free {
    /// Rows that have nothing.
    pub(crate) fn with_rows(rows: usize) -> Self {
        Self { lanes: vec![0; rows], ..Self::default() }
    }

    /// Makes room for more rows, without hosts as yet.
    pub(crate) fn reach(&mut self, rows: usize) {
        self.lanes.resize(rows, NO_HOST);
    }

    pub(crate) fn set(&mut self, row: usize, value: i32) {
        let old = std::mem::replace(&mut self.lanes[row], value);
        let (low, high) = (old.min(value), old.max(value));
        let first = self.sets.partition_point(|set| set.amount <= low);
        let between = self.sets[first..].iter_mut().take_while(|set| set.amount <= high);
        between.for_each(|set| set.hosts.put(HostIx::new(row), value > old));
    }

    /// The hosts with at least `amount`.
    pub(crate) fn at_least(&mut self, amount: i32) -> &Bits {
        self.clock += 1;
        let row = match self.sets.binary_search_by_key(&amount, |set| set.amount) {
            Ok(row) => row,
            Err(row) => self.make(row, amount),
        };
        let set = &mut self.sets[row];
        set.used_at = self.clock;
        &set.hosts
    }

    /// Adds the set of an amount that belongs at `row`; says where it is.
    fn make(&mut self, mut row: usize, amount: i32) -> usize {
        if self.sets.len() >= LIMIT
            && let Some(oldest) = (0..self.sets.len()).min_by_key(|&row| self.sets[row].used_at)
        {
            self.sets.remove(oldest);
            row -= usize::from(oldest < row);
        }
        let blocks: &[[i32; LANES]] = self.lanes.as_chunks().0;
        let hosts = blocks.iter().map(|lanes| at_least(lanes, amount)).collect();
        self.sets.insert(row, Enough { amount, hosts, used_at: 0 });
        row
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_follow_every_change_and_come_back_after_they_were_dropped() {
        let mut free = Free::default();
        free.reach(LANES * 2);
        for step in 0..20_000_usize {
            let row = step * 7 % 100;
            let value = if step % 11 == 0 { NO_HOST } else { (step * 31 % 400) as i32 - 20 };
            free.set(row, value);
            let amount = (step * 13 % (LIMIT + 40)) as i32 + 1;
            let expect = free.lanes.clone().into_iter().map(|left| left >= amount);
            let hosts = free.at_least(amount);
            let found = (0..LANES * 2).map(|row| hosts.contains(HostIx::new(row)));
            assert!(found.eq(expect), "step {step}, amount {amount}");
            assert!(free.sets.len() <= LIMIT);
        }
    }
}
