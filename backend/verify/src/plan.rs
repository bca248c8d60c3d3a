//! Whether a plan is safe at every instant, whichever steps of a wave happen to be done.
//!
//! While a wave runs, nobody knows which of its steps are done. So two worlds are kept. In one,
//! everything is that may be: VMs on the move stand on both hosts, arrivals have arrived, nobody
//! has left. What a rule forbids near a VM, and what takes room, is looked up there. In the other,
//! only what is certain: VMs that neither come, nor move, nor leave. What a rule needs near a VM is
//! looked up there; spread compares the one with the other. What passes holds after every prefix
//! of the plan, in any order of a wave's steps, and also if some of them fail.

use crate::certificate::{Finding, placed};
use crate::inside;
use crate::policies::filter_on;
use crate::reading::demand_on;
use crate::world::{Case, World};
use crate::{Violation, ViolationKind};
use cluster::{
    Amounts, Bindings, Dimensions, Migratability, Name, Plan, Snapshot, Step, Vm, VmKey, Wave,
};
use policy::ActiveSet;
use std::collections::{BTreeMap, BTreeSet};

/// What is wrong with a plan that starts from the snapshot. Rules bind the VMs that come to a
/// host; what happens to the rules of others because a VM leaves is drift, as it is elsewhere.
pub(crate) fn findings(snapshot: &Snapshot, plan: &Plan, policies: &ActiveSet) -> Vec<Finding> {
    let mut course = Course::new(snapshot, policies);
    for (number, wave) in plan.waves.iter().enumerate() {
        course.run(number, wave);
    }
    course.found
}

/// The snapshot after a plan, as far as its steps can be done.
pub(crate) fn outcome(snapshot: &Snapshot, plan: &Plan) -> Snapshot {
    let mut after = snapshot.clone();
    for step in plan.waves.iter().flat_map(|wave| &wave.steps) {
        let row = after.placed.iter().position(|placed| placed.vm.key == *step.vm());
        let host = step.to().map(|to| after.hosts.iter().find(|host| host.id == *to));
        match (step, row, host) {
            (Step::Place { vm, to, bindings }, None, Some(Some(host))) => {
                after.placed.push(placed(vm, to, host, bindings.as_ref()));
            }
            (Step::Move { to, bindings, .. }, Some(row), Some(Some(host))) => {
                let held = after.placed[row].held;
                let vm = after.placed[row].vm.clone();
                after.placed[row] = placed(&vm, to, host, bindings.as_ref());
                after.placed[row].held = held;
            }
            (Step::Release { .. }, Some(row), _) => {
                after.placed.remove(row);
            }
            _ => {}
        }
    }
    after
}

struct Course<'a> {
    dimensions: &'a Dimensions,
    policies: &'a ActiveSet,
    /// Everything that may be.
    most: World<'a>,
    /// Only what is certain.
    sure: World<'a>,
    /// Where each VM is between waves.
    at: BTreeMap<&'a VmKey, Resident<'a>>,
    found: Vec<Finding>,
}

#[derive(Clone)]
struct Resident<'a> {
    vm: &'a Vm,
    row: usize,
    committed: Amounts,
    bindings: Option<&'a Bindings>,
}

/// A VM that comes to a host in this wave.
struct Arrival<'a> {
    step: usize,
    to: Resident<'a>,
}

impl<'a> Course<'a> {
    fn new(snapshot: &'a Snapshot, policies: &'a ActiveSet) -> Self {
        let most = World::new(snapshot);
        let mut at = BTreeMap::new();
        for placed in &snapshot.placed {
            if let Some(row) = most.row(&placed.host) {
                let (vm, committed) = (placed.vm.as_ref(), placed.committed.clone());
                let bindings = placed.bindings.as_deref();
                at.entry(&vm.key).or_insert(Resident { vm, row, committed, bindings });
            }
        }
        let (sure, found) = (World::new(snapshot), Vec::new());
        Self { dimensions: &snapshot.dimensions, policies, most, sure, at, found }
    }

    fn run(&mut self, wave: usize, steps: &'a Wave) {
        let mut seen = BTreeSet::new();
        let (mut arrivals, mut leaving) = (Vec::new(), Vec::new());
        for (number, step) in steps.steps.iter().enumerate() {
            let wrong = match seen.insert(step.vm()) {
                false => Err(ViolationKind::TwiceInWave),
                true => self.understood(number, step),
            };
            match wrong {
                Ok((arrival, source)) => {
                    arrivals.extend(arrival);
                    leaving.extend(source);
                }
                Err(kind) => self.report(wave, number, step.vm(), step.to(), kind),
            }
        }
        for Resident { vm, row, committed, .. } in &leaving {
            self.sure.remove(vm, *row, committed);
        }
        for Arrival { to: Resident { vm, row, committed, bindings }, .. } in &arrivals {
            self.most.add(vm, *row, committed, *bindings);
        }
        for arrival in &arrivals {
            self.check(wave, arrival);
        }
        for Resident { vm, row, committed, .. } in &leaving {
            self.most.remove(vm, *row, committed);
            self.at.remove(&vm.key);
        }
        for Arrival { to, .. } in arrivals {
            self.sure.add(to.vm, to.row, &to.committed, to.bindings);
            self.at.insert(&to.vm.key, to);
        }
    }

    /// Where the step takes its VM to, and where from.
    fn understood(
        &self,
        step: usize,
        it: &'a Step,
    ) -> Result<(Option<Arrival<'a>>, Option<Resident<'a>>), ViolationKind> {
        let source = self.at.get(it.vm());
        let vm: &Vm = match (it, source) {
            (Step::Place { .. }, Some(source)) => {
                let on = self.most.hosts[source.row].id.clone();
                return Err(ViolationKind::AlreadyPlaced { on });
            }
            (Step::Place { vm, .. }, None) => vm,
            (Step::Move { .. } | Step::Release { .. }, Some(source)) => source.vm,
            (Step::Move { .. } | Step::Release { .. }, None) => {
                return Err(ViolationKind::NotPlaced);
            }
        };
        if let (
            Step::Move { from: Some(stated), .. } | Step::Release { from: Some(stated), .. },
            Some(source),
        ) = (it, source)
        {
            let found = &self.most.hosts[source.row].id;
            if stated != found {
                let (stated, found) = (stated.clone(), found.clone());
                return Err(ViolationKind::WrongSource { stated, found });
            }
        }
        let Some(to) = it.to() else { return Ok((None, source.cloned())) };
        let row = self.most.row(to).ok_or(ViolationKind::UnknownHost)?;
        if let Some(source) = source {
            if source.row == row {
                return Err(ViolationKind::AlreadyPlaced { on: to.clone() });
            }
            if source.vm.migratability == Migratability::Pinned {
                return Err(ViolationKind::Pinned);
            }
        }
        let committed = demand_on(self.most.hosts[row], vm);
        let bindings = it.bindings().map(AsRef::as_ref);
        let to = Resident { vm, row, committed, bindings };
        Ok((Some(Arrival { step, to }), source.cloned()))
    }

    fn check(&mut self, wave: usize, arrival: &Arrival<'a>) {
        let Arrival { step, to: Resident { vm, row, committed, bindings } } = arrival;
        let host = self.most.hosts[*row];
        let case = Case::between(&self.most, &self.sure, vm);
        let mut kinds = case.rules(*row);
        kinds.extend(filter_on(self.policies, self.dimensions, vm, host, &self.most, *row));
        case.room_beside(*row, committed, &mut kinds);
        let inside = inside::decided(&self.most, *row, vm, *bindings);
        kinds.extend(inside.into_iter().map(|violation| violation.kind));
        for kind in kinds {
            self.report(wave, *step, &vm.key, Some(&host.id), kind);
        }
    }

    fn report(
        &mut self,
        wave: usize,
        step: usize,
        vm: &VmKey,
        host: Option<&Name>,
        kind: ViolationKind,
    ) {
        let violation = Violation { vm: Some(vm.clone()), host: host.cloned(), kind };
        self.found.push(Finding { wave: Some(wave), step: Some(step), ..Finding::from(violation) });
    }
}
