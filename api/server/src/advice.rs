//! The book of advice: what was advised for VMs that have not started yet, and what became of
//! those that have. Kept in memory and bounded; it is a report to people, not state.

use cluster::VmKey;
use engine::PlaceRequest;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use wire::{AdviceEntry, AdviceTotals, AdviceView};

/// VMs whose start is waited for; beyond it the oldest is forgotten.
const MOST_PENDING: usize = 10_000;
/// Comparisons that are shown.
const MOST_ENTRIES: usize = 200;

#[derive(Debug, Default)]
pub(crate) struct Book {
    pages: Mutex<Pages>,
}

#[derive(Debug, Default)]
struct Pages {
    pending: BTreeMap<VmKey, PlaceRequest>,
    /// The same in the order of asking. May name VMs that are no longer pending.
    order: VecDeque<VmKey>,
    entries: VecDeque<AdviceEntry>,
    totals: AdviceTotals,
}

impl Book {
    /// Remembers what was asked for a VM, to ask it again when the VM has started.
    pub(crate) fn asked(&self, request: PlaceRequest) {
        let mut pages = self.open();
        pages.totals.asked = pages.totals.asked.saturating_add(1);
        let key = request.vm.key.clone();
        if pages.pending.insert(key.clone(), request).is_none() {
            pages.order.push_back(key);
        }
        while pages.order.len() > MOST_PENDING {
            if let Some(oldest) = pages.order.pop_front() {
                pages.pending.remove(&oldest);
            }
        }
    }

    /// What was asked for the VM, once.
    pub(crate) fn take(&self, vm: &VmKey) -> Option<PlaceRequest> {
        self.open().pending.remove(vm)
    }

    pub(crate) fn note(&self, entry: AdviceEntry) {
        let mut pages = self.open();
        let totals = &mut pages.totals;
        totals.compared = totals.compared.saturating_add(1);
        let one_if = |condition: bool| u64::from(condition);
        totals.agreed = totals.agreed.saturating_add(one_if(entry.agreed));
        totals.broken = totals.broken.saturating_add(one_if(entry.broken.is_some()));
        let gain = entry.score_gain.filter(|gain| *gain > 0);
        totals.better_known = totals.better_known.saturating_add(one_if(gain.is_some()));
        totals.score_gain = totals.score_gain.saturating_add(gain.unwrap_or(0));
        pages.entries.push_front(entry);
        pages.entries.truncate(MOST_ENTRIES);
    }

    pub(crate) fn shown(&self, advising: bool) -> AdviceView {
        let pages = self.open();
        let entries = pages.entries.iter().cloned().collect();
        AdviceView { advising, totals: pages.totals, entries }
    }

    fn open(&self) -> MutexGuard<'_, Pages> {
        // Every change leaves the pages whole, so what a panic left behind is good.
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cluster::{Amounts, Name, Vm};

    #[test]
    fn the_book_has_a_last_page() {
        let book = Book::default();
        let key = |n: usize| VmKey::in_default_tenant(Name::new(&format!("v{n}")).expect("a name"));
        for n in 0..=MOST_PENDING {
            book.asked(PlaceRequest::new(Vm::new(key(n), Amounts::zero())));
        }
        assert!(book.take(&key(0)).is_none(), "the oldest is forgotten");
        assert!(book.take(&key(1)).is_some());
        assert!(book.take(&key(1)).is_none(), "compared once");
        for _ in 0..=MOST_ENTRIES {
            book.note(AdviceEntry { score_gain: Some(2), ..AdviceEntry::default() });
        }
        let shown = book.shown(true);
        assert_eq!(shown.entries.len(), MOST_ENTRIES);
        assert_eq!((shown.totals.compared, shown.totals.score_gain), (201, 402));
    }
}
