//! How many connections there may be, in all and from one address.

use rustc_hash::FxHashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

/// Counts connections and turns away those that are too many.
#[derive(Debug)]
pub struct Gate {
    most: usize,
    most_per_address: usize,
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    all: usize,
    by_address: FxHashMap<IpAddr, usize>,
}

/// One connection's place. Dropping it gives the place back.
#[derive(Debug)]
pub struct Pass {
    gate: Arc<Gate>,
    address: IpAddr,
}

impl Gate {
    /// Loopback addresses count towards `most` only: behind a proxy or under a load test, all
    /// callers have the same one.
    pub fn new(most: usize, most_per_address: usize) -> Arc<Self> {
        Arc::new(Self { most, most_per_address, open: Mutex::default() })
    }

    pub fn enter(self: &Arc<Self>, address: IpAddr) -> Option<Pass> {
        let address = address.to_canonical();
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let here = open.by_address.get(&address).copied().unwrap_or(0);
        let crowded = here >= self.most_per_address && !address.is_loopback();
        if open.all >= self.most || crowded {
            return None;
        }
        open.all = open.all.saturating_add(1);
        open.by_address.insert(address, here.saturating_add(1));
        Some(Pass { gate: Arc::clone(self), address })
    }

    /// Connections that are open now.
    pub fn open(&self) -> usize {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).all
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        let mut open = self.gate.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.all = open.all.saturating_sub(1);
        let left = open.by_address.get(&self.address).copied().unwrap_or(0).saturating_sub(1);
        // Addresses without connections are forgotten, so that the table stays as small as `most`.
        match left {
            0 => open.by_address.remove(&self.address),
            left => open.by_address.insert(self.address, left),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn one_address_cannot_take_all_places() {
        let gate = Gate::new(4, 2);
        let first = gate.enter(address("10.0.0.1"));
        let second = gate.enter(address("::ffff:10.0.0.1"));
        assert!(first.is_some() && second.is_some());
        assert!(gate.enter(address("10.0.0.1")).is_none(), "two are the most for one address");
        drop(first);
        assert!(gate.enter(address("10.0.0.1")).is_some());
        assert_eq!(gate.open(), 1, "a pass that is dropped gives its place back");
    }

    #[test]
    fn loopback_is_bound_by_the_total_only() {
        let gate = Gate::new(4, 2);
        let passes: Vec<_> = (0..5).map(|_| gate.enter(address("127.0.0.1"))).collect();
        assert_eq!(passes.iter().flatten().count(), 4);
        drop(passes);
        assert_eq!(gate.open(), 0);
        assert!(gate.open.lock().expect("unpoisoned").by_address.is_empty());
    }
}
