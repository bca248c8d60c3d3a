//! The solver's tables once more, for questions that are asked beside placing.
//!
//! The tables that placing reads belong to the writer. These follow the state when they are told
//! to, changing only what is different, and may then be asked, and changed for a moment, without
//! holding up anybody.

use crate::state::{HostEntry, State, VmEntry};
use crate::{Core, fleet::HostRows};
use cluster::{Column, Constraint, Dimensions, HostIx, Name, Revision, VmIx, VmKey};
use policy::ActiveSet;
use solver::fragmentation::{Mix, Wanted};
use solver::{How, Problem, Scratch};
use std::sync::Arc;

/// What is read of a state at one moment. Taking it copies pointers, so that the state is not
/// held up.
#[derive(Clone, Debug)]
pub struct Rows {
    pub revision: Revision,
    pub policy_revision: u64,
    hosts: HostRows,
    vms: Column<VmIx, Option<Arc<VmEntry>>>,
    dimensions: Dimensions,
    policies: Arc<ActiveSet>,
    constraints: Vec<Arc<Constraint>>,
    mix: Arc<Mix<Wanted>>,
    how: How,
}

impl Core {
    /// Hosts, VMs and policies as they are.
    pub fn rows(&self) -> Rows {
        let state: &State = &self.state;
        let policy = state.policy();
        Rows {
            revision: state.revision(),
            policy_revision: policy.revision,
            hosts: state.host_rows(),
            vms: state.vms.rows().clone(),
            dimensions: state.dimensions().clone(),
            policies: Arc::clone(self.policies()),
            constraints: state.constraints().map(|it| Arc::clone(&it.constraint)).collect(),
            mix: Arc::clone(state.mix().priced()),
            how: How {
                weights: policy.weights,
                strategy: policy.strategy,
                round_robin_after: state.round_robin_after,
            },
        }
    }
}

/// Tables of the whole cluster at the revision that they last followed.
#[derive(Debug)]
pub struct Tables {
    pub problem: Problem,
    pub scratch: Scratch,
    rows: Rows,
}

impl Tables {
    /// Tables of a whole cluster. Costs all of it; following costs only what is different.
    pub fn new(rows: Rows) -> Self {
        let empty = Rows {
            hosts: HostRows::default(),
            vms: Column::new(),
            policies: Arc::default(),
            constraints: Vec::new(),
            ..rows.clone()
        };
        let problem = Problem::new(rows.dimensions.len());
        let mut tables = Self { problem, scratch: Scratch::default(), rows: empty };
        tables.move_to(rows);
        tables
    }

    /// Brings the tables to where the rows are. Costs a look at every row, and a change where one
    /// is different.
    pub fn follow(&mut self, rows: Rows) {
        if rows.revision != self.rows.revision {
            self.move_to(rows);
        }
    }

    pub fn rows(&self) -> &Rows {
        &self.rows
    }

    /// How the policy says that hosts are chosen.
    pub fn how(&self) -> How {
        self.rows.how
    }

    pub fn dimensions(&self) -> &Dimensions {
        &self.rows.dimensions
    }

    /// Constraints in force, in order of their names.
    pub fn constraints(&self) -> &[Arc<Constraint>] {
        &self.rows.constraints
    }

    pub fn host(&self, ix: HostIx) -> Option<&HostEntry> {
        self.rows.hosts.get(ix).map(Arc::as_ref)
    }

    pub fn find_host(&self, id: &Name) -> Option<HostIx> {
        self.rows.hosts.iter().find(|(_, entry)| entry.host.id == *id).map(|(ix, _)| ix)
    }

    pub fn find_vm(&self, key: &VmKey) -> Option<&Arc<VmEntry>> {
        self.vms().find(|entry| entry.vm.key == *key)
    }

    pub fn hosts(&self) -> impl Iterator<Item = (HostIx, &Arc<HostEntry>)> {
        self.rows.hosts.iter()
    }

    pub fn vms(&self) -> impl Iterator<Item = &Arc<VmEntry>> {
        self.rows.vms.iter().filter_map(|(_, entry)| entry.as_ref())
    }

    /// Asks something as if the VM were not placed.
    pub fn without<T>(&mut self, vm: &VmEntry, ask: impl FnOnce(&mut Self) -> T) -> T {
        remove(&mut self.problem, vm);
        let answer = ask(self);
        add(&mut self.problem, vm);
        answer
    }

    fn move_to(&mut self, rows: Rows) {
        self.problem.set_dimensions(rows.dimensions.len());
        let old = std::mem::replace(&mut self.rows, rows);
        let Self { problem, rows, .. } = self;
        problem.set_mix(Arc::clone(&rows.mix));
        let differs = |ix: VmIx| match (old.vms.get(ix), rows.vms.get(ix)) {
            (Some(Some(old)), Some(Some(new))) => !Arc::ptr_eq(old, new),
            _ => true,
        };
        for (_, gone) in old.vms.iter().filter(|(ix, _)| differs(*ix)) {
            if let Some(gone) = gone {
                remove(problem, gone);
            }
        }
        for (ix, _) in old.hosts.iter() {
            if rows.hosts.get(ix).is_none() {
                problem.remove_host(ix);
            }
        }
        for (ix, entry) in rows.hosts.iter() {
            if old.hosts.get(ix).is_none_or(|old| !same_host(old, entry)) {
                problem.put_host(ix, &entry.effective_host());
            }
        }
        for (_, came) in rows.vms.iter().filter(|(ix, _)| differs(*ix)) {
            if let Some(came) = came {
                add(problem, came);
            }
        }
        let same = |(one, other): (&Arc<Constraint>, &Arc<Constraint>)| Arc::ptr_eq(one, other);
        if old.constraints.len() != rows.constraints.len()
            || !old.constraints.iter().zip(&rows.constraints).all(same)
        {
            let vms = rows.vms.iter().filter_map(|(_, entry)| entry.as_ref());
            let vms = vms.map(|entry| (entry.host, entry.vm.as_ref()));
            problem.set_constraints(&rows.constraints, vms);
        }
        if !Arc::ptr_eq(&old.policies, &rows.policies) || old.dimensions != rows.dimensions {
            let hosts: Vec<_> =
                rows.hosts.iter().map(|(ix, entry)| (ix, entry.effective_host())).collect();
            let hosts = hosts.iter().map(|(ix, host)| (*ix, host.as_ref()));
            problem.set_policies(Arc::clone(&rows.policies), &rows.dimensions, hosts);
        }
    }
}

pub(crate) fn add(problem: &mut Problem, vm: &VmEntry) {
    problem.add_vm(vm.host, &vm.vm, &vm.committed);
    if let Some(bindings) = &vm.bindings {
        // The engine has seen that they are free, and found its own tables to agree.
        let _ = problem.take(vm.host, bindings);
    }
}

pub(crate) fn remove(problem: &mut Problem, vm: &VmEntry) {
    if let Some(bindings) = &vm.bindings {
        let _ = problem.give_back(vm.host, bindings);
    }
    problem.remove_vm(vm.host, &vm.vm, &vm.committed);
}

/// Whether nothing but the VMs on it is different.
fn same_host(old: &Arc<HostEntry>, new: &Arc<HostEntry>) -> bool {
    Arc::ptr_eq(old, new)
        || Arc::ptr_eq(&old.host, &new.host)
            && old.health == new.health
            && old.foreign() == new.foreign()
}
