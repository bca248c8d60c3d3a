//! The state together with the two tables that follow it: the solver's and the verifier's.

use crate::apply::{Broken, apply};
use crate::command::Entry;
use crate::effects::{Change, Changes};
use crate::prepared::Prepared;
use crate::state::State;
use cluster::{HostIx, Vm};
use policy::ActiveSet;
use solver::topology::Clash;
use solver::{Problem, Scratch};
use std::sync::Arc;
use verify::Ledger;

/// From this many VMs on, the tables are compiled side by side.
const WORTH_A_THREAD: usize = 10_000;

/// Everything that changes when a command is applied. One writer, any number of readers.
#[derive(Debug)]
pub struct Core {
    pub(crate) state: State,
    pub(crate) problem: Problem,
    pub(crate) ledger: Ledger,
    pub(crate) scratch: Scratch,
    /// The policies in force, compiled.
    pub(crate) policies: Arc<ActiveSet>,
    /// The change of policies that is being made, if somebody has worked it out beforehand.
    pub(crate) prepared: Option<Box<Prepared>>,
}

impl Core {
    /// Compiles the tables for a state. Costs the whole cluster; done once, when the log is open.
    pub fn new(state: State) -> Result<Self, Broken> {
        let dimensions = state.dimensions().len();
        let compile = || {
            let mut problem = Problem::new(dimensions);
            for (ix, entry) in state.hosts() {
                problem.put_host(ix, &entry.effective_host());
            }
            for (_, entry) in state.entries() {
                problem.add_vm(entry.host, &entry.vm, &entry.committed);
                if let Some(bindings) = &entry.bindings {
                    let taken = problem.take(entry.host, bindings);
                    taken.map_err(|clash| broken(&state, twice(&entry.vm, &clash)))?;
                }
            }
            problem.set_mix(Arc::clone(state.mix().priced()));
            Ok(problem)
        };
        let open_ledger = || {
            let mut ledger = Ledger::new(dimensions);
            for (ix, entry) in state.hosts() {
                ledger.put_host(ix, &entry.effective_host());
            }
            for (_, entry) in state.entries() {
                ledger
                    .add_vm(entry.host, &entry.vm, &entry.committed)
                    .map_err(|error| broken(&state, error.to_string()))?;
                if let Some(bindings) = &entry.bindings {
                    ledger
                        .bind(entry.host, &entry.vm.key, bindings)
                        .map_err(|error| broken(&state, error.to_string()))?;
                }
            }
            Ok(ledger)
        };
        // The two tables share nothing, so a large cluster is compiled on both cores.
        let (problem, ledger) = if state.vm_count() < WORTH_A_THREAD {
            (compile()?, open_ledger()?)
        } else {
            std::thread::scope(|scope| {
                let ledger = scope.spawn(open_ledger);
                let problem = compile()?;
                match ledger.join() {
                    Ok(ledger) => Ok((problem, ledger?)),
                    Err(_) => Err(broken(&state, "the verifier's table panicked".into())),
                }
            })?
        };
        let policies = Arc::new(ActiveSet::default());
        let scratch = Scratch::default();
        let mut core = Self { state, problem, ledger, scratch, policies, prepared: None };
        core.install_policies()?;
        if core.state.constraints().len() > 0 {
            core.hand_out_constraints();
        }
        Ok(core)
    }

    pub fn state(&self) -> &State {
        &self.state
    }

    /// The policies in force.
    pub fn policies(&self) -> &Arc<ActiveSet> {
        &self.policies
    }

    /// How often a rule of a policy had no value on a host while placing, since the start.
    pub fn policy_errors(&self) -> u64 {
        self.problem.policy_errors()
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
                    // Names of dimensions may be among the attributes that policies read.
                    self.hand_out_policies();
                    Ok(())
                }
                Change::Constraint(_) => {
                    self.hand_out_constraints();
                    Ok(())
                }
                Change::Mix => {
                    self.problem.set_mix(Arc::clone(self.state.mix().priced()));
                    Ok(())
                }
                Change::Library(_) => {
                    self.install_policies()?;
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
                        let added = self.ledger.add_vm(entry.host, &entry.vm, &entry.committed);
                        if let Some(bindings) = &entry.bindings {
                            let taken = self.problem.take(entry.host, bindings);
                            taken.map_err(|clash| broken(&self.state, twice(&entry.vm, &clash)))?;
                            added.and_then(|()| {
                                self.ledger.bind(entry.host, &entry.vm.key, bindings)
                            })
                        } else {
                            added
                        }
                    }
                    None => Ok(()),
                },
                Change::VmRemoved { host, vm, committed, bindings } => {
                    if let Some(bindings) = bindings {
                        let given = self.problem.give_back(*host, bindings);
                        given.map_err(|clash| broken(&self.state, twice(vm, &clash)))?;
                        let unbound = self.ledger.unbind(*host, &vm.key, bindings);
                        unbound.map_err(|error| broken(&self.state, error.to_string()))?;
                    }
                    self.problem.remove_vm(*host, vm, committed);
                    self.ledger.remove_vm(*host, vm, committed)
                }
                Change::HostReported(ix) => match self.state.host(*ix) {
                    Some(entry) => {
                        let foreign = entry.foreign();
                        self.problem.set_foreign(*ix, &foreign);
                        self.ledger.set_foreign(*ix, &foreign)
                    }
                    // It was removed by the same command, and its row is empty.
                    None => Ok(()),
                },
                Change::VmKept(_)
                | Change::Policy
                | Change::Inventory
                | Change::Gone(_)
                | Change::Plan(_)
                | Change::PlanStep(..)
                | Change::Budget => Ok(()),
            };
            followed.map_err(|error| broken(&self.state, error.to_string()))?;
        }
        Ok(())
    }

    /// Puts the active policies in force for the requests that follow; compiles them, unless that
    /// is done already.
    fn install_policies(&mut self) -> Result<(), Broken> {
        if let Some(prepared) = self.prepared.take() {
            let (columns, different) = prepared.into_fleet().hand_over(&self.state);
            self.policies = Arc::clone(columns.set());
            let different = different.iter().map(|(ix, host)| (*ix, host.as_ref()));
            self.problem.install_policies(columns, self.state.dimensions(), different);
            return Ok(());
        }
        let active = self.state.library.active_set();
        let active = active.map_err(|error| broken(&self.state, error.to_string()))?;
        self.policies = Arc::new(active);
        self.hand_out_policies();
        Ok(())
    }

    fn hand_out_policies(&mut self) {
        let hosts: Vec<_> =
            self.state.hosts().map(|(ix, entry)| (ix, entry.effective_host())).collect();
        let hosts = hosts.iter().map(|(ix, host)| (*ix, host.as_ref()));
        let policies = Arc::clone(&self.policies);
        self.problem.set_policies(policies, self.state.dimensions(), hosts);
    }

    /// Puts the constraints in force for the requests that follow. Costs a pass over all VMs.
    fn hand_out_constraints(&mut self) {
        let Self { state, problem, ledger, .. } = self;
        let all: Vec<_> = state.constraints().map(|it| Arc::clone(&it.constraint)).collect();
        let vms = || state.entries().map(|(_, entry)| (entry.host, entry.vm.as_ref()));
        problem.set_constraints(&all, vms());
        ledger.set_constraints(&all, vms());
    }

    fn put_host(&mut self, ix: HostIx) {
        if let Some(entry) = self.state.host(ix) {
            let host = entry.effective_host();
            self.problem.put_host(ix, &host);
            self.ledger.put_host(ix, &host);
        }
    }
}

/// Parts that are taken twice, or given back twice.
fn twice(vm: &Vm, clash: &Clash) -> String {
    format!("bindings of VM {} do not fit those of others: {clash}", vm.key)
}

fn broken(state: &State, what: String) -> Broken {
    Broken { revision: state.revision(), what }
}
