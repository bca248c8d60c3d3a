//! All plans, those that ended included as long as there is room, and who is under way.

use super::budget::Spent;
use super::{DisruptionBudget, MigrationStatus, PlanEntry, PlanId, PlanStatus, Spending, StepId};
use cluster::{Name, VmKey};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Plans that may be open at a time.
pub const MAX_OPEN_PLANS: usize = 64;
/// Migrations in one plan.
pub const MAX_STEPS: usize = 20_000;
/// Plans that are kept, open or not; of those that are over the oldest go first.
const MAX_PLANS: usize = 256;
/// Migrations in all plans that are kept.
const MAX_STEPS_KEPT: usize = 100_000;

#[derive(Clone, Debug, Default)]
pub struct Plans {
    by_id: BTreeMap<PlanId, Arc<PlanEntry>>,
    /// VMs under way. Follows from the plans.
    moving: BTreeMap<VmKey, UnderWay>,
    pub(crate) spent: Spent,
}

/// The migration that a VM is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnderWay {
    pub plan: PlanId,
    pub step: StepId,
}

/// Plans as a snapshot keeps them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FrozenPlans {
    plans: Vec<Arc<PlanEntry>>,
    spent: Spent,
}

impl Plans {
    pub fn get(&self, id: PlanId) -> Option<&Arc<PlanEntry>> {
        self.by_id.get(&id)
    }

    /// Newest last.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Arc<PlanEntry>> {
        self.by_id.values()
    }

    pub fn open_count(&self) -> usize {
        self.iter().filter(|plan| !plan.status.is_over()).count()
    }

    /// The migration that a VM is in, if it is in one.
    pub fn under_way(&self, vm: &VmKey) -> Option<UnderWay> {
        self.moving.get(vm).copied()
    }

    /// Every VM under way.
    pub fn moving(&self) -> impl ExactSizeIterator<Item = (&VmKey, UnderWay)> {
        self.moving.iter().map(|(vm, under_way)| (vm, *under_way))
    }

    /// Plans whose next wave may begin.
    pub fn due(&self) -> Vec<PlanId> {
        let open = self.iter().filter(|plan| plan.is_due());
        open.map(|plan| plan.id).collect()
    }

    pub fn budget(&self) -> DisruptionBudget {
        self.spent.budget
    }

    /// What was charged within the window that ends now, oldest first.
    pub fn spendings(&self, time_ms: u64) -> impl Iterator<Item = &Spending> {
        self.spent.within(time_ms)
    }

    /// What the VMs of a tenant have spent within the window.
    pub fn spent_by_tenant(&self, tenant: &Name, time_ms: u64) -> u64 {
        self.spent.by_tenant(tenant, time_ms)
    }

    /// Whether there is room for a plan of so many migrations, after forgetting those that are over.
    pub(crate) fn has_room(&self, steps: usize) -> bool {
        let held = self.iter().filter(|plan| is_held(plan));
        let kept: usize = held.map(|plan| plan.step_count()).sum();
        self.open_count() < MAX_OPEN_PLANS && kept.saturating_add(steps) <= MAX_STEPS_KEPT
    }

    /// Adds a plan, and forgets as many of those that are over as that needs.
    pub(crate) fn insert(&mut self, plan: PlanEntry) {
        let mut steps: usize = self.iter().map(|plan| plan.step_count()).sum();
        steps = steps.saturating_add(plan.step_count());
        while self.by_id.len() >= MAX_PLANS || steps > MAX_STEPS_KEPT {
            let Some(oldest) = self.iter().find(|plan| !is_held(plan)).map(|plan| plan.id) else {
                break;
            };
            let gone = self.by_id.remove(&oldest).map_or(0, |plan| plan.step_count());
            steps = steps.saturating_sub(gone);
        }
        self.by_id.insert(plan.id, Arc::new(plan));
    }

    pub(crate) fn get_mut(&mut self, id: PlanId) -> Option<&mut PlanEntry> {
        self.by_id.get_mut(&id).map(Arc::make_mut)
    }

    pub(crate) fn set_moving(&mut self, vm: &VmKey, under_way: Option<UnderWay>) {
        match under_way {
            Some(under_way) => self.moving.insert(vm.clone(), under_way),
            None => self.moving.remove(vm),
        };
    }

    pub(crate) fn freeze(&self) -> FrozenPlans {
        FrozenPlans { plans: self.iter().cloned().collect(), spent: self.spent.clone() }
    }
}

impl FrozenPlans {
    pub(crate) fn thaw(self) -> Plans {
        let mut plans = Plans { spent: self.spent, ..Plans::default() };
        for plan in self.plans {
            let running = plan.steps().filter(|(_, it)| it.status == MigrationStatus::Running);
            for (step, it) in running {
                plans.moving.insert(it.planned.vm.clone(), UnderWay { plan: plan.id, step });
            }
            plans.by_id.insert(plan.id, plan);
        }
        plans
    }
}

/// Whether a plan must be kept: it goes on, or something of it is still under way.
fn is_held(plan: &PlanEntry) -> bool {
    !plan.status.is_over() || plan.status == PlanStatus::Cancelled && plan.is_under_way()
}
