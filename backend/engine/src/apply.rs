//! `apply`: how the state changes. Pure integer arithmetic over a logged command.
//!
//! No clock, no search, no randomness: the same commands give the same state, bit for bit. It
//! trusts that the command was validated when it was proposed, and still checks all of its own
//! arithmetic; a command that does not apply means that log and state do not belong together.

mod plans;
mod reports;

use crate::command::{Adoption, Command, Entry, Hold, Placing, Resizing};
use crate::effects::{Change, Changes};
use crate::planted::{self, Bug};
use crate::state::{ConstraintEntry, DecisionId, Health, HostEntry, State, VmEntry};
use cluster::{
    Amounts, Constraint, Foreign, Generation, Host, HostIx, HostState, Name, Qos, Revision,
    Strategy, Vm, VmIx, VmKey,
};
use solver::fragmentation::Wanted;
use std::sync::Arc;

/// A command that contradicts the state it is applied to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("command {revision} does not apply: {what}")]
pub struct Broken {
    pub revision: Revision,
    pub what: String,
}

/// Applies one entry. On `Err` the state is no longer usable.
pub fn apply(state: &mut State, entry: &Entry) -> Result<Changes, Broken> {
    let mut step = Step { revision: state.revision.next(), state, changes: Changes::default() };
    step.state.revision = step.revision;
    if entry.ts_ms < step.state.time_ms {
        return Err(step.broken("its time is before the state's".into()));
    }
    step.state.time_ms = entry.ts_ms;
    step.command(&entry.command, &entry.actor)?;
    let changes = step.changes;
    state.hash = changes.roll(state);
    Ok(changes)
}

/// What is kept of a description: who the host is and what others use of it is not said there.
fn described(host: &Host, incarnation: u64) -> Arc<Host> {
    Arc::new(Host { incarnation, foreign: Foreign::default(), ..host.clone() })
}

struct Step<'a> {
    state: &'a mut State,
    revision: Revision,
    changes: Changes,
}

impl Step<'_> {
    fn command(&mut self, command: &Command, actor: &Name) -> Result<(), Broken> {
        match command {
            Command::DeclareDimensions(dimensions) => {
                self.state.dimensions = dimensions.clone();
                self.changes.push(Change::Dimensions);
                Ok(())
            }
            Command::PutHost(host) => self.put_host(host),
            Command::SetHostState { host, state } => self.set_host_state(host, *state),
            Command::RemoveHost { host } => self.remove_host(host),
            Command::Place(placing) => self.place(placing, 0),
            Command::PlaceBatch { placings, .. } => {
                for (position, placing) in (0u32..).zip(placings) {
                    self.place(placing, position)?;
                }
                Ok(())
            }
            Command::Adopt(adoption) => self.adopt(adoption),
            Command::Resize(resizing) => self.resize(resizing),
            Command::RemoveVm { vm } => {
                let ix = self.vm_row(vm)?;
                self.remove_vm(ix)
            }
            Command::Confirm { reservation } => self.confirm(*reservation),
            Command::Release { reservation } => self.end_hold(*reservation),
            Command::Expire { reservations } => {
                reservations.iter().try_for_each(|reservation| self.end_hold(*reservation))
            }
            Command::InstallPolicy(policy) => {
                self.state.policy = policy.clone();
                self.state.weights.note(policy, self.state.time_ms, actor);
                self.changes.push(Change::Policy);
                Ok(())
            }
            Command::EditPolicy(edit) => {
                let time_ms = self.state.time_ms;
                self.state.library.apply(edit, time_ms);
                self.state.policy.revision = self.state.policy.revision.saturating_add(1);
                self.changes.push(Change::Library(edit.clone()));
                Ok(())
            }
            Command::PutConstraint(constraint) => {
                self.put_constraint(constraint);
                Ok(())
            }
            Command::RemoveConstraint { name } => self.remove_constraint(name),
            Command::Tick => Ok(()),
            Command::SetHostHealth { host, health } => self.set_host_health(host, *health),
            Command::ReportUse(reports) => self.report_use(reports),
            Command::ReportVm(report) => self.report_vm(report),
            Command::CreatePlan(draft) => self.create_plan(draft, actor),
            Command::ChangePlan(change) => self.change_plan(change),
            Command::StartWave(start) => self.start_wave(start),
            Command::ReportMigration { plan, step, failed } => {
                self.report_migration(*plan, *step, failed.as_deref())
            }
            Command::SetBudget(budget) => {
                self.set_budget(budget);
                Ok(())
            }
        }
    }

    fn put_constraint(&mut self, constraint: &Constraint) {
        let name = constraint.name.clone();
        let before = self.state.constraints.get(&name).map_or(Generation(0), |it| it.generation);
        let entry =
            ConstraintEntry { constraint: Arc::new(constraint.clone()), generation: before.next() };
        self.state.constraints.insert(name.clone(), entry);
        self.changes.push(Change::Constraint(name));
    }

    fn remove_constraint(&mut self, name: &Name) -> Result<(), Broken> {
        if self.state.constraints.remove(name).is_none() {
            return Err(self.broken(format!("constraint {name} is not there")));
        }
        self.changes.push(Change::Constraint(name.clone()));
        Ok(())
    }

    fn put_host(&mut self, host: &Host) -> Result<(), Broken> {
        let ix = match self.state.hosts.find(&host.id) {
            Some(ix) => {
                let entry = self.host_mut(ix)?;
                let incarnation = entry.host.incarnation;
                entry.host = described(host, incarnation);
                entry.generation = entry.generation.next();
                ix
            }
            None => {
                // The revision is never used twice, so neither is an incarnation.
                let entry = HostEntry {
                    host: described(host, self.revision.0),
                    generation: Generation(1),
                    health: Health::Healthy,
                    allocated: Amounts::zero(),
                    vms: Vec::new(),
                    report: None,
                };
                let inserted = self.state.hosts.insert(entry);
                inserted.ok_or_else(|| self.broken("the host is there already".into()))?
            }
        };
        self.changes.push(Change::HostPut(ix));
        Ok(())
    }

    fn set_host_state(&mut self, host: &Name, state: HostState) -> Result<(), Broken> {
        let ix = self.host_row(host)?;
        let entry = self.host_mut(ix)?;
        entry.host = Arc::new(Host { state, ..entry.host.as_ref().clone() });
        entry.generation = entry.generation.next();
        self.changes.push(Change::HostPut(ix));
        Ok(())
    }

    fn set_host_health(&mut self, host: &Name, health: Health) -> Result<(), Broken> {
        let ix = self.host_row(host)?;
        self.host_mut(ix)?.health = health;
        self.changes.push(Change::HostPut(ix));
        Ok(())
    }

    fn remove_host(&mut self, host: &Name) -> Result<(), Broken> {
        let ix = self.host_row(host)?;
        // Removing a VM that is under way takes its stand-in along, so the list is read anew.
        while let Some(vm) = self.host_mut(ix)?.vms.first().copied() {
            self.remove_vm(vm)?;
        }
        self.state.hosts.remove(ix);
        if self.state.round_robin_after == Some(ix) {
            self.state.round_robin_after = None;
        }
        self.changes.push(Change::HostRemoved(ix, host.clone()));
        Ok(())
    }

    fn place(&mut self, placing: &Placing, position: u32) -> Result<(), Broken> {
        let Some(host) = placing.decision.host() else { return Ok(()) };
        let host = self.host_row(host)?;
        if let Some(hold) = placing.hold {
            self.state.next_reservation = hold.reservation.saturating_add(1);
        }
        if placing.decision.strategy == Strategy::RoundRobin {
            self.state.round_robin_after = Some(host);
        }
        self.add_vm(VmEntry {
            vm: Arc::clone(&placing.vm),
            host,
            committed: placing.committed.clone(),
            bindings: placing.decision.bindings().cloned(),
            generation: Generation(1),
            adopted: false,
            over_capacity: false,
            hold: placing.hold,
            decided: DecisionId { revision: self.revision, position },
            request_hash: placing.request_hash,
            heard_ns: 0,
            included: false,
        })
    }

    fn adopt(&mut self, adoption: &Adoption) -> Result<(), Broken> {
        let host = self.host_row(&adoption.host)?;
        self.add_vm(VmEntry {
            vm: Arc::clone(&adoption.vm),
            host,
            committed: adoption.committed.clone(),
            bindings: adoption.bindings.clone(),
            generation: Generation(1),
            adopted: true,
            over_capacity: adoption.over_capacity,
            hold: None,
            decided: DecisionId { revision: self.revision, position: 0 },
            request_hash: adoption.request_hash,
            heard_ns: 0,
            included: false,
        })
    }

    fn resize(&mut self, resizing: &Resizing) -> Result<(), Broken> {
        let ix = self.vm_row(&resizing.vm)?;
        // What the reporter counts is the old size; the next report will have the new one.
        self.set_included(ix, false)?;
        let before = self.vm_mut(ix)?.clone();
        self.give_back(before.host, &before.committed)?;
        self.changes.push(Change::vm_removed(&before));
        self.take(before.host, &resizing.committed)?;
        let exceeds = self.exceeds(before.host, &before.vm, &resizing.committed)?;
        let entry = self.vm_mut(ix)?;
        let mut vm = before.vm.as_ref().clone();
        vm.demand = resizing.demand.clone();
        entry.vm = Arc::new(vm);
        entry.committed = resizing.committed.clone();
        entry.bindings = resizing.bindings.clone();
        entry.generation = entry.generation.next();
        // A VM may shrink on a host that is over its room, and the host may be over it still.
        entry.over_capacity = before.over_capacity && exceeds;
        self.changes.push(Change::VmAdded(ix));
        Ok(())
    }

    /// Whether a host is over its room in a dimension that the VM takes something of.
    fn exceeds(&mut self, ix: HostIx, vm: &Vm, committed: &Amounts) -> Result<bool, Broken> {
        let host = self.host_mut(ix)?.clone();
        let others = self.state.guaranteed_on(&host, Some(&vm.key));
        Ok(committed.iter().any(|(dim, amount)| {
            let guaranteed = others.get(dim).saturating_add(amount);
            host.allocated.get(dim) > host.host.allocatable(dim)
                || vm.qos == Qos::Guaranteed && guaranteed > host.host.physical(dim)
        }))
    }

    fn confirm(&mut self, reservation: u64) -> Result<(), Broken> {
        let ix = self.forget_hold(reservation)?;
        let entry = self.vm_mut(ix)?;
        entry.hold = None;
        entry.generation = entry.generation.next();
        self.changes.push(Change::VmKept(ix));
        Ok(())
    }

    fn end_hold(&mut self, reservation: u64) -> Result<(), Broken> {
        let ix = self.forget_hold(reservation)?;
        self.vm_mut(ix)?.hold = None;
        self.remove_vm(ix)
    }

    fn forget_hold(&mut self, reservation: u64) -> Result<VmIx, Broken> {
        let unknown = || self.broken(format!("reservation {reservation} is not held"));
        let ix = self.state.holds.get(&reservation).copied().ok_or_else(unknown)?;
        self.state.holds.remove(&reservation);
        if let Some(Hold { expires_ms, .. }) = self.vm_mut(ix)?.hold {
            self.state.expiries.remove(&(expires_ms, reservation));
        }
        Ok(ix)
    }

    fn add_vm(&mut self, entry: VmEntry) -> Result<(), Broken> {
        let wanted = Wanted::of(&entry.vm);
        self.add_entry(entry)?;
        if Arc::make_mut(&mut self.state.mix).observe(wanted).is_some() {
            self.changes.push(Change::Mix);
        }
        Ok(())
    }

    /// Adds a VM, or a stand-in, which is nobody who came.
    fn add_entry(&mut self, entry: VmEntry) -> Result<(), Broken> {
        let (host, hold, committed) = (entry.host, entry.hold, entry.committed.clone());
        let inserted = self.state.vms.insert(entry);
        let ix =
            inserted.ok_or_else(|| self.broken("a VM of this name is there already".into()))?;
        self.take(host, &committed)?;
        self.list_on(host, ix)?;
        if let Some(Hold { reservation, expires_ms }) = hold {
            self.state.holds.insert(reservation, ix);
            self.state.expiries.insert((expires_ms, reservation));
        }
        self.changes.push(Change::VmAdded(ix));
        Ok(())
    }

    /// Lists a VM on its host, in order of rows.
    fn list_on(&mut self, host: HostIx, ix: VmIx) -> Result<(), Broken> {
        let vms = &mut self.host_mut(host)?.vms;
        let row = vms.partition_point(|&other| other < ix);
        vms.insert(row, ix);
        Ok(())
    }

    /// Removes a VM; one that is under way gives its place on the target back as well, and of one
    /// that only stands in for another the migration fails.
    fn remove_vm(&mut self, ix: VmIx) -> Result<(), Broken> {
        let key = self.vm_mut(ix)?.vm.key.clone();
        if key.is_stand_in() {
            return self.lose_stand_in(&key, "its target was removed");
        }
        self.stop_moving(&key, "the VM was removed or runs elsewhere")?;
        self.remove_row(ix)
    }

    fn remove_row(&mut self, ix: VmIx) -> Result<(), Broken> {
        // Nobody knows yet that the reporter stopped counting it: until the next report its share
        // is somebody else's.
        self.set_included(ix, false)?;
        let removed = self.state.vms.remove(ix);
        let entry = removed.ok_or_else(|| self.broken(format!("VM row {} is empty", ix.0)))?;
        if let Some(Hold { reservation, expires_ms }) = entry.hold {
            self.state.holds.remove(&reservation);
            self.state.expiries.remove(&(expires_ms, reservation));
        }
        if !planted::is(Bug::UsageNotReleased) {
            self.give_back(entry.host, &entry.committed)?;
        }
        self.host_mut(entry.host)?.vms.retain(|&other| other != ix);
        self.changes.push(Change::vm_removed(&entry));
        Ok(())
    }

    fn take(&mut self, host: HostIx, committed: &Amounts) -> Result<(), Broken> {
        if self.host_mut(host)?.allocated.try_add(committed) {
            return Ok(());
        }
        Err(self.broken("usage would overflow".into()))
    }

    fn give_back(&mut self, host: HostIx, committed: &Amounts) -> Result<(), Broken> {
        if self.host_mut(host)?.allocated.try_sub(committed) {
            return Ok(());
        }
        Err(self.broken("usage would fall below zero".into()))
    }

    fn host_row(&self, host: &Name) -> Result<HostIx, Broken> {
        let unknown = || self.broken(format!("host {host} is not there"));
        self.state.hosts.find(host).ok_or_else(unknown)
    }

    fn vm_row(&self, vm: &VmKey) -> Result<VmIx, Broken> {
        let unknown = || self.broken(format!("VM {vm} is not there"));
        self.state.vms.find(vm).ok_or_else(unknown)
    }

    fn host_mut(&mut self, ix: HostIx) -> Result<&mut HostEntry, Broken> {
        let revision = self.revision;
        let broken = move || Broken { revision, what: format!("host row {} is empty", ix.0) };
        self.state.hosts.get_mut(ix).ok_or_else(broken)
    }

    fn vm_mut(&mut self, ix: VmIx) -> Result<&mut VmEntry, Broken> {
        let revision = self.revision;
        let broken = move || Broken { revision, what: format!("VM row {} is empty", ix.0) };
        self.state.vms.get_mut(ix).ok_or_else(broken)
    }

    fn broken(&self, what: String) -> Broken {
        Broken { revision: self.revision, what }
    }
}
