//! Disruption as a budget: how long migrations may slow down a VM, and the VMs of a tenant
//! together, within a window of time.
//!
//! A migration is charged when it begins, by its estimate; a failed one stays charged, because the
//! VM was slowed down all the same.

use cluster::{Name, VmKey};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Most spendings that are remembered. When so many are within the window, nothing more begins.
const MAX_SPENDINGS: usize = 65_536;

/// Milliseconds of brown-out that may be spent within any `window_ms`; `None` is without limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DisruptionBudget {
    pub per_vm_ms: Option<u64>,
    pub per_tenant_ms: Option<u64>,
    pub window_ms: u64,
}

impl Default for DisruptionBudget {
    fn default() -> Self {
        Self { per_vm_ms: None, per_tenant_ms: None, window_ms: 3_600_000 }
    }
}

/// What one migration was charged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spending {
    pub at_ms: u64,
    pub vm: VmKey,
    pub brownout_ms: u64,
}

/// Whether a migration may be charged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Charge {
    Fits,
    /// Not before something spent leaves the window.
    Later,
    /// More than the whole budget.
    Never,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Spent {
    pub(crate) budget: DisruptionBudget,
    /// Oldest first.
    spendings: VecDeque<Spending>,
}

impl Spent {
    /// What is charged within the window that ends at `time_ms`.
    pub(crate) fn within(&self, time_ms: u64) -> impl Iterator<Item = &Spending> {
        let window_ms = self.budget.window_ms;
        let counts = move |it: &&Spending| it.at_ms.saturating_add(window_ms) > time_ms;
        self.spendings.iter().filter(counts)
    }

    /// Whether a VM may be charged, on top of `also`, which begins at the same time.
    pub(crate) fn charge(
        &self,
        vm: &VmKey,
        brownout_ms: u64,
        also: &[(&VmKey, u64)],
        time_ms: u64,
    ) -> Charge {
        let DisruptionBudget { per_vm_ms, per_tenant_ms, .. } = self.budget;
        if per_vm_ms.is_none() && per_tenant_ms.is_none() {
            return Charge::Fits;
        }
        if [per_vm_ms, per_tenant_ms].into_iter().flatten().any(|most| brownout_ms > most) {
            return Charge::Never;
        }
        let (mut by_vm, mut by_tenant, mut count) = (0u64, 0u64, also.len());
        let mut add = |key: &VmKey, ms: u64| {
            if *key == *vm {
                by_vm = by_vm.saturating_add(ms);
            }
            if key.tenant == vm.tenant {
                by_tenant = by_tenant.saturating_add(ms);
            }
        };
        for it in self.within(time_ms) {
            add(&it.vm, it.brownout_ms);
            count = count.saturating_add(1);
        }
        also.iter().for_each(|(key, ms)| add(key, *ms));
        let fits = |spent: u64, most: Option<u64>| {
            most.is_none_or(|most| spent.saturating_add(brownout_ms) <= most)
        };
        let all = fits(by_vm, per_vm_ms) && fits(by_tenant, per_tenant_ms);
        if all && count < MAX_SPENDINGS { Charge::Fits } else { Charge::Later }
    }

    pub(crate) fn note(&mut self, spending: Spending) {
        let (time_ms, window_ms) = (spending.at_ms, self.budget.window_ms);
        let over = |it: &Spending| it.at_ms.saturating_add(window_ms) <= time_ms;
        while self.spendings.front().is_some_and(over) || self.spendings.len() >= MAX_SPENDINGS {
            self.spendings.pop_front();
        }
        self.spendings.push_back(spending);
    }

    /// What a tenant has spent within the window.
    pub(crate) fn by_tenant(&self, tenant: &Name, time_ms: u64) -> u64 {
        let own = self.within(time_ms).filter(|it| it.vm.tenant == *tenant);
        own.fold(0, |sum, it| sum.saturating_add(it.brownout_ms))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(tenant: &str, id: &str) -> VmKey {
        let name = |text| Name::new(text).expect("a valid name");
        VmKey { tenant: name(tenant), id: name(id) }
    }

    #[test]
    fn what_was_spent_counts_for_a_window_and_then_no_more() {
        let budget =
            DisruptionBudget { per_vm_ms: Some(100), per_tenant_ms: Some(150), window_ms: 1_000 };
        let mut spent = Spent { budget, ..Spent::default() };
        let (a, b, c) = (key("t", "a"), key("t", "b"), key("u", "c"));
        assert_eq!(spent.charge(&a, 101, &[], 0), Charge::Never);
        assert_eq!(spent.charge(&a, 100, &[], 0), Charge::Fits);
        spent.note(Spending { at_ms: 0, vm: a.clone(), brownout_ms: 100 });
        assert_eq!(spent.charge(&a, 1, &[], 999), Charge::Later, "the VM has spent all of it");
        assert_eq!(spent.charge(&b, 51, &[], 999), Charge::Later, "and its tenant most of it");
        assert_eq!(spent.charge(&b, 50, &[], 999), Charge::Fits);
        assert_eq!(spent.charge(&b, 50, &[(&b, 1)], 999), Charge::Later, "with what begins too");
        assert_eq!(spent.charge(&c, 100, &[], 999), Charge::Fits, "another tenant");
        assert_eq!(spent.charge(&a, 100, &[], 1_000), Charge::Fits, "the window has moved on");
        assert_eq!((spent.by_tenant(&a.tenant, 999), spent.by_tenant(&a.tenant, 1_000)), (100, 0));
    }
}
