//! How long an engine may search, and what it hands back.

use super::Model;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// How much of the time is gone, as told by whoever has a clock. Nothing waits for it.
#[derive(Debug, Default)]
pub struct Deadline(AtomicU32);

impl Deadline {
    const OVER: u32 = 1 << 16;
    const CANCELLED: u32 = Self::OVER + 1;

    /// Tells the share of the time that is gone; from 1 on it is over.
    pub fn tell(&self, share: f64) {
        self.0.fetch_max((share.clamp(0.0, 1.0) * f64::from(Self::OVER)) as u32, Ordering::Relaxed);
    }

    pub fn cancel(&self) {
        self.0.store(Self::CANCELLED, Ordering::Relaxed);
    }

    pub fn is_over(&self) -> bool {
        self.0.load(Ordering::Relaxed) >= Self::OVER
    }

    fn share(&self) -> f64 {
        f64::from(self.0.load(Ordering::Relaxed).min(Self::OVER)) / f64::from(Self::OVER)
    }
}

/// The limit of a search: a number of steps, and a deadline that the caller drives.
///
/// Engines say what a step is. A search that is limited by steps alone is the same every time.
#[derive(Clone, Debug)]
pub struct Budget {
    steps: u64,
    used: u64,
    deadline: Arc<Deadline>,
    /// The share of the deadline's time at which this budget began, and at which it ends.
    from_time: f64,
    of_time: f64,
}

impl Budget {
    pub fn steps(steps: u64) -> Self {
        Self { steps, used: 0, deadline: Arc::default(), from_time: 0.0, of_time: 1.0 }
    }

    /// No limit but the deadline.
    pub fn until(deadline: Arc<Deadline>) -> Self {
        Self { steps: u64::MAX, used: 0, deadline, from_time: 0.0, of_time: 1.0 }
    }

    /// The same limit of steps with a deadline as well.
    pub fn and_until(mut self, deadline: Arc<Deadline>) -> Self {
        self.deadline = deadline;
        self
    }

    /// A budget of its own that ends with this one at the latest.
    pub fn part(&self, steps: u64) -> Self {
        Self { steps: steps.min(self.left()), used: 0, ..self.clone() }
    }

    /// The same budget, but that it ends after this share of the deadline's time.
    pub fn share_of(&self, of_time: f64) -> Self {
        Self { of_time, ..self.clone() }
    }

    /// One of `parts` equal parts of what is left, of steps and of time: a search that ends with it
    /// cools as if it were the whole.
    pub fn one_of(&self, parts: u64) -> Self {
        let now = self.deadline.share().clamp(self.from_time, self.of_time);
        let parts = parts.max(1);
        Self {
            steps: if self.steps == u64::MAX { u64::MAX } else { self.left().div_ceil(parts) },
            used: 0,
            from_time: now,
            of_time: now + (self.of_time - now) / parts as f64,
            ..self.clone()
        }
    }

    /// Counts steps; false when there is nothing left to spend.
    pub fn spend(&mut self, steps: u64) -> bool {
        self.used = self.used.saturating_add(steps);
        !self.is_over()
    }

    pub fn is_over(&self) -> bool {
        self.used >= self.steps || self.deadline.share() >= self.of_time
    }

    pub fn used(&self) -> u64 {
        self.used
    }

    pub fn left(&self) -> u64 {
        self.steps.saturating_sub(self.used)
    }

    pub fn deadline(&self) -> &Arc<Deadline> {
        &self.deadline
    }

    /// The share that is spent, of steps or of time, whichever is further; for cooling schedules.
    pub fn share(&self) -> f64 {
        let span = (self.of_time - self.from_time).max(f64::MIN_POSITIVE);
        let of_time = ((self.deadline.share() - self.from_time) / span).max(0.0);
        (self.used as f64 / self.steps.max(1) as f64).max(of_time).min(1.0)
    }

    /// Why a search that spent this budget ended.
    pub fn reason(&self) -> StopReason {
        if self.deadline.0.load(Ordering::Relaxed) == Deadline::CANCELLED {
            StopReason::Cancelled
        } else if self.used >= self.steps {
            StopReason::Steps
        } else {
            StopReason::Deadline
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// Nothing better exists, or nothing at all.
    Optimal,
    /// The objective that was asked for is reached.
    Target,
    Steps,
    Deadline,
    /// The search has nothing left to try.
    Stalled,
    Cancelled,
}

impl StopReason {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Optimal => "optimal",
            Self::Target => "target",
            Self::Steps => "steps",
            Self::Deadline => "deadline",
            Self::Stalled => "stalled",
            Self::Cancelled => "cancelled",
        }
    }
}

/// What an engine found.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The engine, and what it chose to do where it has a choice.
    pub engine: String,
    /// A host for every VM; `None` if none was found, and with `Optimal` that there is none.
    pub assignment: Option<Vec<u32>>,
    /// The goals' worth of the assignment.
    pub objective: Option<i64>,
    /// No assignment is worth less.
    pub bound: i64,
    pub stop_reason: StopReason,
    pub steps: u64,
}

impl Outcome {
    /// What an engine starts from: no assignment, and what the goals alone say of the worth of any.
    pub(crate) fn nothing(engine: &str, model: &Model) -> Self {
        Self {
            engine: engine.to_string(),
            assignment: None,
            objective: None,
            bound: model.bound(),
            stop_reason: StopReason::Stalled,
            steps: 0,
        }
    }

    /// Whether it is certain that there is no assignment.
    pub fn is_infeasible(&self) -> bool {
        self.assignment.is_none() && self.stop_reason == StopReason::Optimal
    }

    /// How far the objective can at most be from the best one, as a share of it.
    pub fn gap(&self) -> Option<f64> {
        let objective = self.objective?;
        if objective <= self.bound {
            return Some(0.0);
        }
        Some((objective - self.bound) as f64 / (objective as f64).abs().max(1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_ends_by_steps_by_time_or_by_being_cancelled() {
        let mut budget = Budget::steps(4);
        assert!(budget.spend(3));
        assert_eq!(budget.share(), 0.75);
        assert!(!budget.spend(1));
        assert_eq!(budget.reason(), StopReason::Steps);

        let deadline = Arc::new(Deadline::default());
        let mut budget = Budget::until(Arc::clone(&deadline));
        assert!(budget.spend(1 << 40));
        deadline.tell(0.5);
        assert_eq!(budget.share(), 0.5);
        assert!(budget.spend(1));
        assert!(budget.share_of(0.5).is_over() && !budget.share_of(0.6).is_over());
        let half = budget.one_of(2);
        assert!(half.share() < 1e-9 && !half.is_over(), "it begins where the whole is now");
        deadline.tell(0.75);
        assert!(half.is_over() && !budget.is_over());
        let mut part = budget.part(2);
        deadline.tell(1.0);
        assert!(!budget.spend(1) && !part.spend(1));
        assert_eq!(budget.reason(), StopReason::Deadline);
        deadline.cancel();
        assert_eq!(budget.reason(), StopReason::Cancelled);
    }

    #[test]
    fn the_gap_is_a_share_of_the_objective() {
        let outcome = |objective, bound| Outcome {
            engine: String::new(),
            assignment: None,
            objective,
            bound,
            stop_reason: StopReason::Steps,
            steps: 0,
        };
        assert_eq!(outcome(Some(200), 150).gap(), Some(0.25));
        assert_eq!(outcome(Some(0), 0).gap(), Some(0.0));
        assert_eq!(outcome(None, 0).gap(), None);
    }
}
