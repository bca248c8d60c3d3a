//! The same log, replayed from zero, beside the engine that lived through it.
//!
//! The one part of the checking that uses the engine's own `apply`: it shows that living,
//! recovering from a snapshot and replaying everything lead to one state. That the state is the
//! right one is the model's to say; it is compared here with every index of the engine.

use crate::model::Model;
use crate::violation::{Checked, Law, broken, ensure};
use engine::{Entry, State, apply};
use std::collections::BTreeSet;
use store::Record;

#[derive(Debug, Default)]
pub(crate) struct Replica {
    state: State,
}

impl Replica {
    pub(crate) fn apply(&mut self, entry: &Entry, record: &Record) -> Checked {
        if let Err(error) = apply(&mut self.state, entry) {
            return broken(Law::Replay, error.to_string());
        }
        ensure(self.state.hash() == record.state_hash, Law::Replay, || {
            format!("revision {} leads to another state than it did", record.revision)
        })
    }

    pub(crate) fn compare(&self, state: &State) -> Checked {
        let (here, there) = (self.state.revision(), state.revision());
        ensure(here == there, Law::Acknowledged, || {
            format!("the log leads to revision {here}, the engine is at {there}")
        })?;
        ensure(self.state.freeze().full_hash() == state.freeze().full_hash(), Law::Replay, || {
            format!("at revision {here} the engine's state is not the one that the log leads to")
        })
    }
}

/// Compares the engine's tables and sums with what the model makes of the log.
pub(crate) fn compare_with_model(model: &Model, state: &State) -> Checked {
    let same = state.revision().0 == model.revision
        && state.time_ms() == model.time_ms
        && *state.dimensions() == model.dimensions
        && *state.policy() == model.policy
        && state.reservation_count() == model.holds.len()
        && state.inventory().generation == model.reported.generation
        && state.host_count() == model.hosts.len()
        && state.vm_count() == model.guests.len();
    ensure(same, Law::Sums, || {
        format!(
            "the engine has revision {}, {} hosts, {} VMs and {} reservations; the log {}, {}, {}, {}",
            state.revision(),
            state.host_count(),
            state.vm_count(),
            state.reservation_count(),
            model.revision,
            model.hosts.len(),
            model.guests.len(),
            model.holds.len()
        )
    })?;
    for (_, entry) in state.hosts() {
        let name = &entry.host.id;
        let Some(home) = model.hosts.get(name) else {
            return broken(Law::Sums, format!("the log knows no host {name}"));
        };
        let same = *entry.host == home.host
            && entry.generation == home.generation
            && entry.health == home.health;
        ensure(same, Law::Sums, || format!("host {name} is not what the log says"))?;
        for dim in model.dimensions.iter() {
            let (due, kept) = (model.foreign(name, dim), u128::from(entry.foreign().used.get(dim)));
            ensure(due == kept, Law::Sums, || {
                format!("others use {due} of dimension {} of {name}, {kept} is counted", dim.0)
            })?;
            let (due, kept) = (model.used(name, dim), u128::from(entry.allocated.get(dim)));
            ensure(due == kept, Law::Sums, || {
                format!("host {name} gives {due} of dimension {}, {kept} is counted", dim.0)
            })?;
        }
        let listed = entry.vms.iter().filter_map(|ix| state.vm(*ix)).map(|vm| &vm.vm.key);
        let listed: BTreeSet<_> = listed.collect();
        let due: BTreeSet<_> = model.on(name).map(|(key, _)| key).collect();
        ensure(listed == due, Law::Sums, || format!("host {name} lists {listed:?}, not {due:?}"))?;
    }
    for (_, entry) in state.vms() {
        let key = &entry.vm.key;
        let Some(guest) = model.guests.get(key) else {
            return broken(Law::Sums, format!("the log knows no VM {key}"));
        };
        let host = state.host(entry.host).map(|host| &host.host.id);
        let same = entry.vm == guest.vm
            && host == Some(&guest.host)
            && entry.committed == guest.committed
            && entry.generation == guest.generation
            && entry.adopted == guest.adopted
            && entry.heard_ns == guest.heard_ns
            && entry.included == guest.included
            && entry.bindings == guest.bindings
            && entry.over_capacity == guest.over_capacity
            && entry.hold == guest.hold;
        ensure(same, Law::Sums, || format!("VM {key} is {entry:?}, the log says {guest:?}"))?;
    }
    Ok(())
}
