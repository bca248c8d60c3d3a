//! The best answer so far, for engines on several threads and for whoever watches them.

use crate::assignment::Outcome;
use std::sync::{Mutex, PoisonError};

/// Where engines write down what they find on the way.
#[derive(Debug, Default)]
pub struct Board(Mutex<Answers>);

#[derive(Debug, Default)]
struct Answers {
    best: Option<(i64, Vec<u32>)>,
    /// Answers that were better than all before them.
    count: u64,
}

impl Board {
    /// Keeps an answer if it is better than all before it.
    pub fn offer(&self, objective: i64, hosts: &[u32]) {
        let mut answers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if answers.best.as_ref().is_none_or(|(known, _)| objective < *known) {
            answers.best = Some((objective, hosts.to_vec()));
            answers.count += 1;
        }
    }

    pub fn offer_outcome(&self, outcome: &Outcome) {
        if let (Some(objective), Some(hosts)) = (outcome.objective, &outcome.assignment) {
            self.offer(objective, hosts);
        }
    }

    pub fn best(&self) -> Option<(i64, Vec<u32>)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).best.clone()
    }

    /// The best answer if it is not the one that was there when `seen` answers had been kept, which
    /// is then brought up to date.
    pub fn news(&self, seen: &mut u64) -> Option<(i64, Vec<u32>)> {
        let answers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if answers.count == *seen {
            return None;
        }
        *seen = answers.count;
        answers.best.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_better_answers_are_news() {
        let (board, mut seen) = (Board::default(), 0);
        assert_eq!(board.news(&mut seen), None);
        board.offer(7, &[1]);
        board.offer(9, &[2]);
        assert_eq!(board.news(&mut seen), Some((7, vec![1])));
        assert_eq!(board.news(&mut seen), None);
        board.offer(5, &[3]);
        assert_eq!(board.news(&mut seen), Some((5, vec![3])));
    }
}
