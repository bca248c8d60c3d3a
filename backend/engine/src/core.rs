//! The state together with the two tables that follow it: the solver's and the verifier's.

use crate::apply::{Broken, apply};
use crate::command::Entry;
use crate::effects::{Change, Changes};
use crate::state::State;
use cluster::HostIx;
use solver::{Problem, Scratch};
use std::sync::Arc;
use verify::Ledger;

/// Everything that changes when a command is applied. One writer, any number of readers.
#[derive(Debug)]
pub struct Core {
    pub(crate) state: State,
    pub(crate) problem: Problem,
    pub(crate) ledger: Ledger,
    pub(crate) scratch: Scratch,
}

impl Core {
    /// Compiles the tables for a state. Costs the whole cluster; done once, when the log is open.
    pub fn new(state: State) -> Result<Self, Broken> {
        let dimensions = state.dimensions().len();
        let mut core = Self {
            problem: Problem::new(dimensions),
            ledger: Ledger::new(dimensions),
            scratch: Scratch::default(),
            state: State::new(),
        };
        for (ix, entry) in state.hosts() {
            let host = entry.effective_host();
            core.problem.put_host(ix, &host);
            core.ledger.put_host(ix, &host);
        }
        for (_, entry) in state.vms() {
            core.problem.add_vm(entry.host, &entry.vm, &entry.committed);
            core.ledger
                .add_vm(entry.host, &entry.vm, &entry.committed)
                .map_err(|error| broken(&state, error.to_string()))?;
        }
        core.state = state;
        Ok(core)
    }

    pub fn state(&self) -> &State {
        &self.state
    }

    /// Applies one entry to the state and patches both tables.
    pub(crate) fn apply(&mut self, entry: &Entry) -> Result<(), Broken> {
        let changes = apply(&mut self.state, entry)?;
        self.follow(&changes)
    }

    fn follow(&mut self, changes: &Changes) -> Result<(), Broken> {
        for change in changes.iter() {
            let followed = match change {
                Change::Dimensions => {
                    self.problem.set_dimensions(self.state.dimensions().len());
                    self.ledger.set_dimensions(self.state.dimensions().len());
                    Ok(())
                }
                Change::HostPut(ix) => {
                    self.put_host(*ix);
                    Ok(())
                }
                Change::HostRemoved(ix, _) => {
                    self.problem.remove_host(*ix);
                    self.ledger.remove_host(*ix)
                }
                Change::VmAdded(ix) => match self.state.vms.get(*ix).map(Arc::clone) {
                    Some(entry) => {
                        self.problem.add_vm(entry.host, &entry.vm, &entry.committed);
                        self.ledger.add_vm(entry.host, &entry.vm, &entry.committed)
                    }
                    None => Ok(()),
                },
                Change::VmRemoved { host, vm, committed } => {
                    self.problem.remove_vm(*host, vm, committed);
                    self.ledger.remove_vm(*host, vm, committed)
                }
                Change::VmKept(_) | Change::Policy => Ok(()),
            };
            followed.map_err(|error| broken(&self.state, error.to_string()))?;
        }
        Ok(())
    }

    fn put_host(&mut self, ix: HostIx) {
        if let Some(entry) = self.state.host(ix) {
            let host = entry.effective_host();
            self.problem.put_host(ix, &host);
            self.ledger.put_host(ix, &host);
        }
    }
}

fn broken(state: &State, what: String) -> Broken {
    Broken { revision: state.revision(), what }
}
