//! The best answer so far, for engines on several threads.

use solver::assignment::Outcome;
use std::sync::{Mutex, PoisonError};

#[derive(Debug, Default)]
pub(crate) struct Board(Mutex<Option<(i64, Vec<u32>)>>);

impl Board {
    /// Keeps an answer if it is better than all before it.
    pub(crate) fn offer(&self, objective: i64, hosts: &[u32]) {
        let mut best = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if best.as_ref().is_none_or(|(known, _)| objective < *known) {
            *best = Some((objective, hosts.to_vec()));
        }
    }

    pub(crate) fn offer_outcome(&self, outcome: &Outcome) {
        if let (Some(objective), Some(hosts)) = (outcome.objective, &outcome.assignment) {
            self.offer(objective, hosts);
        }
    }

    pub(crate) fn best(&self) -> Option<(i64, Vec<u32>)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
