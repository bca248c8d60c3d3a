//! A broken promise, and the story that led to it.

use serde::{Serialize, Serializer};
use std::fmt;

/// What was promised and not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Law {
    /// I1: no host promises more than it has.
    Capacity,
    /// I2: a VM is on one host.
    OnePlace,
    /// I3: what was acknowledged is in the log, as it was acknowledged, once.
    Acknowledged,
    /// I4: nothing is in the log that nobody asked for.
    Asked,
    /// I5: rules hold when a VM is placed.
    Rules,
    /// I6: the log has no holes and its chain is whole.
    Chain,
    /// I7: the same log leads to the same state, whichever way.
    Replay,
    /// I8: the engine's sums are the sums of what the log says.
    Sums,
    /// I9: what was acknowledged first comes first.
    Order,
    /// I12: what can be done is done once nothing fails any more.
    Progress,
    /// A reservation ends by a logged command only, and in time.
    Reservations,
    /// An answer says what is so.
    Honest,
    /// The same seed gives the same run.
    Deterministic,
}

impl Law {
    pub fn name(self) -> &'static str {
        match self {
            Law::Capacity => "I1 capacity",
            Law::OnePlace => "I2 one place per VM",
            Law::Acknowledged => "I3 acknowledged is kept, once",
            Law::Asked => "I4 nothing unasked",
            Law::Rules => "I5 rules",
            Law::Chain => "I6 dense and chained",
            Law::Replay => "I7 replay",
            Law::Sums => "I8 sums",
            Law::Order => "I9 order",
            Law::Progress => "I12 progress",
            Law::Reservations => "reservations",
            Law::Honest => "honest answers",
            Law::Deterministic => "determinism",
        }
    }
}

impl Serialize for Law {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// What a check found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    pub law: Law,
    pub what: String,
}

pub(crate) type Checked<T = ()> = Result<T, Finding>;

pub(crate) fn broken<T>(law: Law, what: impl Into<String>) -> Checked<T> {
    Err(Finding { law, what: what.into() })
}

/// Fails with `what` unless `kept`.
pub(crate) fn ensure(kept: bool, law: Law, what: impl FnOnce() -> String) -> Checked {
    if kept { Ok(()) } else { broken(law, what()) }
}

/// A finding with the run that it came from. The seed reproduces it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Violation {
    pub seed: u64,
    pub cycle: u32,
    pub finding: Finding,
    /// The last things that happened, oldest first.
    pub story: Vec<String>,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Finding { law, what } = &self.finding;
        writeln!(f, "seed {} cycle {}: {}: {what}", self.seed, self.cycle, law.name())?;
        self.story.iter().try_for_each(|line| writeln!(f, "    {line}"))
    }
}
