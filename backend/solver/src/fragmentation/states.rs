//! Hosts by the state they are in: hosts in one state are scored once.

use super::host_state::HostState;
use super::policy::{Measured, Scoring};
use rustc_hash::FxHashMap;

/// A row of the table of states.
pub type StateIx = u32;

#[derive(Debug, Default)]
pub struct States {
    row: FxHashMap<HostState, StateIx>,
    known: Vec<Known>,
    /// States that hosts are in, and for each state its place among them.
    live: Vec<StateIx>,
    /// Every state that hosts came into when there was none in it, in order.
    appeared: Vec<StateIx>,
}

#[derive(Debug)]
struct Known {
    state: HostState,
    measured: Measured,
    /// Hosts in the state, falling, so that the lowest is at the end.
    hosts: Vec<u32>,
    live_at: u32,
}

impl States {
    pub fn len(&self) -> usize {
        self.known.len()
    }

    /// The states that hosts are in, in no particular order.
    pub fn live(&self) -> &[StateIx] {
        &self.live
    }

    pub fn is_live(&self, state: StateIx) -> bool {
        !self.known[state as usize].hosts.is_empty()
    }

    /// The log of states that became live; readers remember how far they have read.
    pub fn appeared(&self) -> &[StateIx] {
        &self.appeared
    }

    pub fn state(&self, state: StateIx) -> &HostState {
        &self.known[state as usize].state
    }

    pub fn measured(&self, state: StateIx) -> &Measured {
        &self.known[state as usize].measured
    }

    /// Hosts in the state, falling.
    pub fn hosts(&self, state: StateIx) -> &[u32] {
        &self.known[state as usize].hosts
    }

    /// The lowest host in a live state.
    pub fn lowest(&self, state: StateIx) -> u32 {
        *self.known[state as usize].hosts.last().expect("a live state has hosts")
    }

    pub fn enter(&mut self, host: u32, state: HostState, scoring: &Scoring) -> StateIx {
        let next = self.known.len() as StateIx;
        let row = *self.row.entry(state).or_insert(next);
        if row == next {
            self.known.push(Known {
                state,
                measured: scoring.measure(&state),
                hosts: Vec::new(),
                live_at: 0,
            });
        }
        let known = &mut self.known[row as usize];
        if known.hosts.is_empty() {
            known.live_at = self.live.len() as u32;
            self.live.push(row);
            self.appeared.push(row);
        }
        let at = known.hosts.partition_point(|other| *other > host);
        known.hosts.insert(at, host);
        row
    }

    pub fn leave(&mut self, host: u32, row: StateIx) {
        let known = &mut self.known[row as usize];
        let at = known.hosts.partition_point(|other| *other > host);
        known.hosts.remove(at);
        if known.hosts.is_empty() {
            let hole = known.live_at;
            self.live.swap_remove(hole as usize);
            if let Some(moved) = self.live.get(hole as usize) {
                self.known[*moved as usize].live_at = hole;
            }
        }
    }
}
