//! Shapes that ask for parts of their host: how many VMs of one can be bound there.
//!
//! From below by binding one after the other, as placing does. From above by what each kind of part
//! adds up to, as if where it is did not matter, but for VMs that have to be on one NUMA node.

use super::Shape;
use crate::inside::Inside;
use crate::topology::{Devices, at_most, try_bind};
use cluster::{Amounts, HostIx, Topology};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// What is free inside a host, and what each shape asks for there; empty if none asks.
#[derive(Clone, Debug, Default)]
pub(super) struct Parts {
    devices: Option<Box<Devices>>,
    state: u64,
    asked: Arc<[Option<(Topology, Amounts)>]>,
}

/// Counts that are known by state, shape and number by amounts.
pub(super) type Known = FxHashMap<(u64, usize, u64), (u64, u64)>;

impl Parts {
    pub(super) fn of(inside: &Inside, shapes: &[Shape], host: HostIx) -> Self {
        if shapes.iter().all(|shape| shape.vm.topology.is_none()) {
            return Self::default();
        }
        let asked = shapes.iter().map(|shape| {
            let topology = shape.vm.topology.as_deref()?.clone();
            Some((topology, inside.demand(&shape.vm, host)))
        });
        let devices = Some(Box::new(inside.devices(host).clone()));
        Self { devices, state: inside.state(host), asked: asked.collect() }
    }

    /// How many of a shape can be bound, and how many at most could, of those that amounts allow.
    pub(super) fn count(&self, shape: usize, by_amounts: u64, known: &mut Known) -> (u64, u64) {
        let Some((devices, (topology, demand))) = self.asks(shape) else {
            return (by_amounts, by_amounts);
        };
        *known.entry((self.state, shape, by_amounts)).or_insert_with(|| {
            let at_most = by_amounts.min(at_most(devices, topology, demand));
            let mut left = self.clone();
            let mut sure = 0;
            while sure < at_most && left.take(shape) {
                sure += 1;
            }
            (sure, at_most)
        })
    }

    /// Takes parts for one VM of a shape; false if they are not there.
    pub(super) fn take(&mut self, shape: usize) -> bool {
        let asked = Arc::clone(&self.asked);
        let Some((topology, demand)) = asked.get(shape).and_then(Option::as_ref) else {
            return true;
        };
        let Some(devices) = self.devices.as_deref_mut() else { return false };
        let bound = try_bind(devices, topology, demand);
        bound.is_some_and(|bindings| devices.take(&bindings).is_ok())
    }

    fn asks(&self, shape: usize) -> Option<(&Devices, &(Topology, Amounts))> {
        let asked = self.asked.get(shape)?.as_ref()?;
        Some((self.devices.as_deref()?, asked))
    }
}
