//! What plans do to the state: who takes a second place, who takes it over, who gives it back.

use super::{Broken, Step};
use crate::effects::Change;
use crate::plans::{
    DisruptionBudget, Draft, MigrationStatus, OnFailure, PlanChange, PlanEntry, PlanId, PlanKind,
    PlanStatus, Spending, StepId, UnderWay, WaveStart,
};
use crate::state::{DecisionId, VmEntry};
use cluster::{Generation, Migratability, Name, Vm, VmIx, VmKey};
use std::sync::Arc;

impl Step<'_> {
    pub(super) fn create_plan(&mut self, draft: &Draft, actor: &Name) -> Result<(), Broken> {
        let id = PlanId(self.revision.0);
        self.state.plans.insert(PlanEntry::new(id, draft, actor, self.state.time_ms));
        self.changes.push(Change::Plan(id));
        if let PlanKind::Rollback(of) = draft.kind {
            self.cancel_waiting(of)?;
            let time_ms = self.state.time_ms;
            let plan = self.plan_mut(of)?;
            plan.rolled_back_by = Some(id);
            if !plan.status.is_over() {
                plan.status = PlanStatus::Cancelled;
            }
            plan.changed_ms = time_ms;
            self.changes.push(Change::Plan(of));
        }
        Ok(())
    }

    pub(super) fn change_plan(&mut self, change: &PlanChange) -> Result<(), Broken> {
        if change.status == PlanStatus::Cancelled {
            self.cancel_waiting(change.plan)?;
        }
        if change.abandon {
            let plan = Arc::clone(self.known_plan(change.plan)?);
            let running = plan.steps().filter(|(_, it)| it.status == MigrationStatus::Running);
            for (step, _) in running {
                let failed = MigrationStatus::Failed("given up by an operator".into());
                self.end_migration(change.plan, step, failed)?;
            }
        }
        self.set_plan_status(change.plan, change.status, change.because.clone())?;
        // The last migrations may have ended while it was paused.
        match self.known_plan(change.plan)?.waiting_wave() {
            Some(_) => Ok(()),
            None => self.settle(change.plan),
        }
    }

    pub(super) fn start_wave(&mut self, start: &WaveStart) -> Result<(), Broken> {
        let time_ms = self.state.time_ms;
        let wave = self.known_plan(start.plan)?.next_wave;
        for started in &start.started {
            let step = StepId { wave, position: started.position };
            let (planned, stand_in) = {
                let plan = self.known_plan(start.plan)?;
                match (plan.step(step), plan.stand_in(step)) {
                    (Some(migration), Some(key)) => (migration.planned.clone(), key),
                    _ => return Err(self.broken(format!("plan {} has no such step", start.plan))),
                }
            };
            let host = self.host_row(&planned.to)?;
            let ix = self.vm_row(&planned.vm)?;
            let vm = Arc::clone(&self.vm_mut(ix)?.vm);
            self.add_entry(VmEntry {
                vm: Arc::new(stand_in_of(&vm, stand_in)),
                host,
                committed: started.committed.clone(),
                bindings: started.bindings.clone(),
                generation: Generation(1),
                adopted: false,
                over_capacity: false,
                hold: None,
                decided: DecisionId { revision: self.revision, position: started.position },
                request_hash: [0; 16],
                heard_ns: 0,
                included: false,
            })?;
            let under_way = UnderWay { plan: start.plan, step };
            self.state.plans.set_moving(&planned.vm, Some(under_way));
            let brownout_ms = planned.brownout_ms;
            let spending = Spending { at_ms: time_ms, vm: planned.vm, brownout_ms };
            self.state.plans.spent.note(spending);
            self.note_step(start.plan, step, MigrationStatus::Running)?;
        }
        for (position, why) in &start.skipped {
            let step = StepId { wave, position: *position };
            self.note_step(start.plan, step, MigrationStatus::Skipped(why.clone()))?;
        }
        let plan = self.plan_mut(start.plan)?;
        plan.next_wave = plan.next_wave.saturating_add(1);
        self.settle(start.plan)
    }

    /// The core says what became of a migration.
    pub(super) fn report_migration(
        &mut self,
        plan: PlanId,
        step: StepId,
        failed: Option<&str>,
    ) -> Result<(), Broken> {
        match failed {
            Some(why) => self.end_migration(plan, step, MigrationStatus::Failed(why.into()))?,
            None => self.arrive(plan, step)?,
        }
        self.settle(plan)
    }

    /// The VM takes over what its stand-in has, and gives back what it had before.
    pub(super) fn arrive(&mut self, plan: PlanId, step: StepId) -> Result<(), Broken> {
        let (vm, stand_in) = self.migration_rows(plan, step)?;
        let at = self.vm_mut(stand_in)?.clone();
        self.remove_row(stand_in)?;
        // The core's report of the source counts it until the next one, as somebody else's.
        self.set_included(vm, false)?;
        let before = self.vm_mut(vm)?.clone();
        self.give_back(before.host, &before.committed)?;
        self.host_mut(before.host)?.vms.retain(|&other| other != vm);
        self.changes.push(Change::vm_removed(&before));
        self.take(at.host, &at.committed)?;
        self.list_on(at.host, vm)?;
        let entry = self.vm_mut(vm)?;
        entry.host = at.host;
        entry.committed = at.committed;
        entry.bindings = at.bindings;
        entry.over_capacity = false;
        entry.generation = entry.generation.next();
        self.changes.push(Change::VmAdded(vm));
        self.state.plans.set_moving(&before.vm.key, None);
        self.note_step(plan, step, MigrationStatus::Done)?;
        self.turn_round(plan, &before.vm.key)
    }

    /// A VM that is about to go, or to be taken for somewhere else, is no longer under way.
    pub(super) fn stop_moving(&mut self, vm: &VmKey, why: &str) -> Result<(), Broken> {
        let Some(UnderWay { plan, step }) = self.state.plans.under_way(vm) else { return Ok(()) };
        self.end_migration(plan, step, MigrationStatus::Failed(why.into()))?;
        self.settle(plan)
    }

    /// The same for whoever is under way to a place that is about to go.
    pub(super) fn lose_stand_in(&mut self, stand_in: &VmKey, why: &str) -> Result<(), Broken> {
        let owner = self.state.plans.moving().find(|(_, it)| {
            let plan = self.state.plans.get(it.plan);
            plan.and_then(|plan| plan.stand_in(it.step)).as_ref() == Some(stand_in)
        });
        match owner.map(|(vm, _)| vm.clone()) {
            Some(vm) => self.stop_moving(&vm, why),
            None => Err(self.broken(format!("stand-in {stand_in} is nobody's"))),
        }
    }

    pub(super) fn set_budget(&mut self, budget: &DisruptionBudget) {
        self.state.plans.spent.budget = *budget;
        self.changes.push(Change::Budget);
    }

    fn end_migration(
        &mut self,
        plan: PlanId,
        step: StepId,
        status: MigrationStatus,
    ) -> Result<(), Broken> {
        let (vm, stand_in) = self.migration_rows(plan, step)?;
        self.remove_row(stand_in)?;
        let key = self.vm_mut(vm)?.vm.key.clone();
        self.state.plans.set_moving(&key, None);
        self.note_step(plan, step, status)
    }

    /// The rows of a VM under way and of its stand-in.
    fn migration_rows(&self, plan: PlanId, step: StepId) -> Result<(VmIx, VmIx), Broken> {
        let entry = self.known_plan(plan)?;
        let running = entry.step(step).filter(|it| it.status == MigrationStatus::Running);
        let (Some(migration), Some(stand_in)) = (running, entry.stand_in(step)) else {
            return Err(self.broken(format!("plan {plan} has no such migration under way")));
        };
        Ok((self.vm_row(&migration.planned.vm)?, self.vm_row(&stand_in)?))
    }

    fn note_step(
        &mut self,
        plan: PlanId,
        step: StepId,
        status: MigrationStatus,
    ) -> Result<(), Broken> {
        let time_ms = self.state.time_ms;
        let known = self.plan_mut(plan)?;
        known.changed_ms = time_ms;
        let Some(migration) = known.step_mut(step) else {
            return Err(self.broken(format!("plan {plan} has no such step")));
        };
        match status {
            MigrationStatus::Running => migration.started_ms = time_ms,
            // Never 0, which stands for not ended.
            _ => migration.ended_ms = time_ms.max(1),
        }
        migration.status = status;
        self.changes.push(Change::PlanStep(plan, step));
        Ok(())
    }

    /// What follows when no migration of a running plan is under way: the next wave, or an end.
    fn settle(&mut self, id: PlanId) -> Result<(), Broken> {
        let plan = Arc::clone(self.known_plan(id)?);
        if plan.status != PlanStatus::Running || plan.is_under_way() {
            return Ok(());
        }
        let last = plan.next_wave.checked_sub(1).and_then(|wave| plan.waves.get(wave as usize));
        let failed = last.into_iter().flatten().find_map(|it| match &it.status {
            MigrationStatus::Failed(why) => Some(format!("VM {}: {why}", it.planned.vm)),
            _ => None,
        });
        if plan.waiting_wave().is_some() {
            return match failed {
                Some(why) if plan.on_failure == OnFailure::Pause => {
                    self.set_plan_status(id, PlanStatus::Paused, why)
                }
                _ => Ok(()),
            };
        }
        let undone = plan.count(|it| *it != MigrationStatus::Done);
        if undone > 0 {
            let why = format!("{undone} of {} migrations were not done", plan.step_count());
            return self.set_plan_status(id, PlanStatus::Incomplete, why);
        }
        self.set_plan_status(id, PlanStatus::Completed, String::new())?;
        match plan.kind {
            PlanKind::Rollback(of) if self.state.plans.get(of).is_some() => {
                self.set_plan_status(of, PlanStatus::RolledBack, format!("by plan {id}"))
            }
            _ => Ok(()),
        }
    }

    /// A migration of a rollback is done: those of the other plan that brought the VM there are
    /// undone.
    fn turn_round(&mut self, rollback: PlanId, vm: &VmKey) -> Result<(), Broken> {
        let PlanKind::Rollback(of) = self.known_plan(rollback)?.kind else { return Ok(()) };
        let Some(plan) = self.state.plans.get(of) else { return Ok(()) };
        let done = plan
            .steps()
            .filter(|(_, it)| it.planned.vm == *vm && it.status == MigrationStatus::Done);
        // The last one: a VM that was put aside on its way goes back by way of there.
        match done.map(|(step, _)| step).last() {
            Some(step) => self.note_step(of, step, MigrationStatus::RolledBack),
            None => Ok(()),
        }
    }

    fn cancel_waiting(&mut self, id: PlanId) -> Result<(), Broken> {
        let plan = Arc::clone(self.known_plan(id)?);
        let waiting = plan.steps().filter(|(_, it)| it.status == MigrationStatus::Waiting);
        for (step, _) in waiting {
            self.note_step(id, step, MigrationStatus::Cancelled)?;
        }
        Ok(())
    }

    fn set_plan_status(
        &mut self,
        id: PlanId,
        status: PlanStatus,
        because: String,
    ) -> Result<(), Broken> {
        let time_ms = self.state.time_ms;
        let plan = self.plan_mut(id)?;
        (plan.status, plan.because, plan.changed_ms) = (status, because, time_ms);
        self.changes.push(Change::Plan(id));
        Ok(())
    }

    fn known_plan(&self, id: PlanId) -> Result<&Arc<PlanEntry>, Broken> {
        self.state.plans.get(id).ok_or_else(|| self.broken(format!("plan {id} is not there")))
    }

    fn plan_mut(&mut self, id: PlanId) -> Result<&mut PlanEntry, Broken> {
        let revision = self.revision;
        let broken = move || Broken { revision, what: format!("plan {id} is not there") };
        self.state.plans.get_mut(id).ok_or_else(broken)
    }
}

/// What a VM under way has on its target: everything that others must know of it, under another
/// name. It moves with nobody.
fn stand_in_of(vm: &Vm, key: VmKey) -> Vm {
    Vm { key, migratability: Migratability::Pinned, ..vm.clone() }
}
