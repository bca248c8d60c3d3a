//! Six mistakes made on purpose, to show that the checker would find them.

use crate::simulate::{Spec, simulate};
use crate::violation::Violation;
use store::PlantedBug;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    AckBeforeSync,
    NoRevalidation,
    ExpiryByWallClock,
    SkippedBadRecord,
    IdempotencyByKeyOnly,
    UsageNotReleased,
}

impl Bug {
    pub const ALL: [Bug; 6] = [
        Bug::AckBeforeSync,
        Bug::NoRevalidation,
        Bug::ExpiryByWallClock,
        Bug::SkippedBadRecord,
        Bug::IdempotencyByKeyOnly,
        Bug::UsageNotReleased,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Bug::AckBeforeSync => "acknowledge before sync",
            Bug::NoRevalidation => "no re-validation",
            Bug::ExpiryByWallClock => "expiry by wall clock",
            Bug::SkippedBadRecord => "skipped bad record",
            Bug::IdempotencyByKeyOnly => "idempotency by key only",
            Bug::UsageNotReleased => "usage not released on delete",
        }
    }

    pub(crate) fn in_engine(self) -> Option<engine::planted::Bug> {
        match self {
            Bug::NoRevalidation => Some(engine::planted::Bug::NoRevalidation),
            Bug::ExpiryByWallClock => Some(engine::planted::Bug::ExpiryByWallClock),
            Bug::IdempotencyByKeyOnly => Some(engine::planted::Bug::IdempotencyByKeyOnly),
            Bug::UsageNotReleased => Some(engine::planted::Bug::UsageNotReleased),
            Bug::AckBeforeSync | Bug::SkippedBadRecord => None,
        }
    }

    pub(crate) fn in_store(self) -> Option<PlantedBug> {
        match self {
            Bug::AckBeforeSync => Some(PlantedBug::AckBeforeSync),
            Bug::SkippedBadRecord => Some(PlantedBug::SkipBadRecord),
            _ => None,
        }
    }
}

/// How many seeds it took to find a bug, and how it showed.
#[derive(Clone, Debug)]
pub struct Hunt {
    pub bug: Bug,
    pub seeds: u64,
    pub found: Option<Violation>,
}

/// Runs seeds one after the other until the bug shows or `limit` seeds are over.
pub fn hunt(bug: Bug, first_seed: u64, limit: u64) -> Hunt {
    let spec = Spec { first_seed, seeds: limit, threads: 1, bug: Some(bug), ..Spec::default() };
    let report = simulate(&spec);
    let found = report.violations.into_iter().next();
    let seeds = found.as_ref().map_or(limit, |violation| violation.seed - spec.first_seed + 1);
    Hunt { bug, seeds, found }
}
