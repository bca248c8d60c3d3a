//! What one command changed: for the tables that follow the state, and for the state's hash.

use crate::plans::{PlanId, StepId};
use crate::state::{State, VmEntry};
use cluster::{Amounts, Bindings, HostIx, Name, Vm, VmIx, VmKey};
use policy::Edit;
use smallvec::SmallVec;
use std::sync::Arc;

/// The changes of one command, in order.
#[derive(Clone, Debug, Default)]
pub struct Changes(SmallVec<[Change; 2]>);

#[derive(Clone, Debug)]
pub enum Change {
    Dimensions,
    HostPut(HostIx),
    HostRemoved(HostIx, Name),
    VmAdded(VmIx),
    VmRemoved {
        host: HostIx,
        vm: Arc<Vm>,
        committed: Amounts,
        bindings: Option<Arc<Bindings>>,
    },
    /// Something about the VM changed that takes no room.
    VmKept(VmIx),
    /// Weights or the default strategy.
    Policy,
    /// What is installed or active. Names the policy that was edited.
    Library(Box<Edit>),
    /// A constraint was put in force, changed or removed.
    Constraint(Name),
    /// What was learned of the shapes that come is put to use.
    Mix,
    /// What others use of the host may be different.
    HostReported(HostIx),
    Inventory,
    Gone(VmKey),
    /// A plan was made, or its status changed.
    Plan(PlanId),
    PlanStep(PlanId, StepId),
    Budget,
}

impl Change {
    pub(crate) fn vm_removed(entry: &VmEntry) -> Self {
        Change::VmRemoved {
            host: entry.host,
            vm: Arc::clone(&entry.vm),
            committed: entry.committed.clone(),
            bindings: entry.bindings.clone(),
        }
    }
}

impl Changes {
    pub fn iter(&self) -> impl Iterator<Item = &Change> {
        self.0.iter()
    }

    pub(crate) fn push(&mut self, change: Change) {
        self.0.push(change);
    }

    /// The state's hash after these changes: the hash before, the revision and time, and what
    /// each changed row holds now. Costs what the command changed, not what the cluster has.
    pub(crate) fn roll(&self, state: &State) -> [u8; 32] {
        let mut bytes = Canon(SmallVec::new());
        bytes.raw(&state.hash);
        bytes.number(state.revision.0);
        bytes.number(state.time_ms);
        for change in &self.0 {
            bytes.change(state, change);
        }
        *blake3::hash(&bytes.0).as_bytes()
    }
}

/// A canonical byte string: every part has a fixed width or its length in front.
struct Canon(SmallVec<[u8; 512]>);

impl Canon {
    fn change(&mut self, state: &State, change: &Change) {
        match change {
            Change::Dimensions => {
                self.tag(1);
                for name in state.dimensions.extra() {
                    self.text(name);
                }
            }
            Change::HostPut(ix) => {
                self.tag(2);
                self.number(ix.0.into());
                if let Some(entry) = state.host(*ix) {
                    self.number(entry.generation.0);
                    self.tag(entry.health as u8);
                    self.raw(&postcard::to_stdvec(entry.host.as_ref()).unwrap_or_default());
                }
            }
            Change::HostRemoved(ix, id) => {
                self.tag(3);
                self.number(ix.0.into());
                self.text(id);
            }
            Change::VmAdded(ix) | Change::VmKept(ix) => {
                self.tag(4);
                self.number(ix.0.into());
                if let Some(entry) = state.vm(*ix) {
                    self.vm(entry);
                    self.usage(state, entry.host);
                }
            }
            Change::VmRemoved { host, vm, .. } => {
                self.tag(5);
                self.text(&vm.key.tenant);
                self.text(&vm.key.id);
                self.usage(state, *host);
            }
            Change::Policy => {
                self.tag(6);
                self.raw(&postcard::to_stdvec(&state.policy).unwrap_or_default());
            }
            Change::Library(edit) => {
                self.tag(10);
                self.number(state.policy.revision);
                let installed = state.library.get(&edit.policy);
                self.raw(&postcard::to_stdvec(&(edit, installed)).unwrap_or_default());
            }
            Change::Constraint(name) => {
                self.tag(11);
                self.text(name);
                let installed = state.find_constraint(name);
                self.raw(&postcard::to_stdvec(&installed).unwrap_or_default());
            }
            // It follows from the VMs that were added, which are in the hash.
            Change::Mix => {}
            Change::HostReported(ix) => {
                self.tag(7);
                self.number(ix.0.into());
                if let Some(entry) = state.host(*ix) {
                    self.raw(&postcard::to_stdvec(&entry.report).unwrap_or_default());
                    for vm in &entry.vms {
                        self.tag(state.vm(*vm).is_some_and(|vm| vm.included).into());
                    }
                }
            }
            Change::Inventory => {
                self.tag(8);
                self.raw(&postcard::to_stdvec(&state.inventory).unwrap_or_default());
            }
            Change::Gone(vm) => {
                self.tag(9);
                self.text(&vm.tenant);
                self.text(&vm.id);
                self.number(state.gone.at_ns(vm).unwrap_or(0));
            }
            Change::Plan(id) => {
                self.tag(12);
                self.number(id.0);
                // Its migrations follow from how it was made and from their own changes; a new
                // plan is in the hash as a whole.
                if let Some(plan) = state.plans().get(*id) {
                    let is_new = id.0 == state.revision.0;
                    let whole = is_new.then_some(plan.as_ref());
                    let now = (plan.status, &plan.because, plan.next_wave, whole);
                    self.raw(&postcard::to_stdvec(&now).unwrap_or_default());
                }
            }
            Change::PlanStep(id, step) => {
                self.tag(13);
                self.number(id.0);
                let migration = state.plans().get(*id).and_then(|plan| plan.step(*step));
                self.raw(&postcard::to_stdvec(&(step, migration)).unwrap_or_default());
            }
            Change::Budget => {
                self.tag(14);
                self.raw(&postcard::to_stdvec(&state.plans().budget()).unwrap_or_default());
            }
        }
    }

    fn vm(&mut self, entry: &VmEntry) {
        self.text(&entry.vm.key.tenant);
        self.text(&entry.vm.key.id);
        self.number(entry.generation.0);
        self.number(entry.host.0.into());
        self.amounts(&entry.committed);
        if let Some(bindings) = &entry.bindings {
            self.raw(&postcard::to_stdvec(bindings.as_ref()).unwrap_or_default());
        }
        self.tag(entry.over_capacity.into());
        self.number(entry.heard_ns);
        self.tag(entry.included.into());
        if let Some(hold) = entry.hold {
            self.number(hold.reservation);
            self.number(hold.expires_ms);
        }
    }

    fn usage(&mut self, state: &State, host: HostIx) {
        if let Some(entry) = state.host(host) {
            self.number(host.0.into());
            self.amounts(&entry.allocated);
        }
    }

    fn amounts(&mut self, amounts: &Amounts) {
        self.number(amounts.width() as u64);
        for (dim, amount) in amounts.iter() {
            self.tag(dim.0);
            self.number(amount);
        }
    }

    fn text(&mut self, name: &Name) {
        self.number(name.as_str().len() as u64);
        self.raw(name.as_str().as_bytes());
    }

    fn number(&mut self, number: u64) {
        self.raw(&number.to_le_bytes());
    }

    fn tag(&mut self, tag: u8) {
        self.0.push(tag);
    }

    fn raw(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }
}
