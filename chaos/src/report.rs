//! What a simulation found, for people and for programs.

use crate::faults::{Fault, FaultCounts};
use crate::sometimes::{Rare, Sometimes};
use crate::violation::Violation;
use crate::world::Outline;
use serde::Serialize;
use std::fmt;
use std::time::Duration;

#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    pub first_seed: u64,
    pub seeds: u64,
    /// Fault cycles, each counted once although each was run twice.
    pub cycles: u64,
    pub acknowledged: u64,
    pub refused: u64,
    /// Operations whose clients were left in the dark.
    pub unknown: u64,
    /// Log entries that were checked.
    pub entries: u64,
    pub recoveries: u64,
    pub checks: u64,
    pub faults: FaultCounts,
    pub sometimes: Sometimes,
    pub violations: Vec<Violation>,
    pub elapsed: Duration,
}

impl Report {
    pub(crate) fn count(&mut self, outline: &Outline) {
        self.seeds += 1;
        self.cycles += outline.cycles;
        self.acknowledged += outline.acknowledged;
        self.refused += outline.refused;
        self.unknown += outline.unknown;
        self.entries += outline.entries;
        self.recoveries += outline.recoveries;
        self.checks += outline.checks;
        self.faults.add(&outline.faults);
        self.sometimes.add(&outline.sometimes);
    }

    pub fn add(&mut self, other: &Report) {
        self.seeds += other.seeds;
        self.cycles += other.cycles;
        self.acknowledged += other.acknowledged;
        self.refused += other.refused;
        self.unknown += other.unknown;
        self.entries += other.entries;
        self.recoveries += other.recoveries;
        self.checks += other.checks;
        self.faults.add(&other.faults);
        self.sometimes.add(&other.sometimes);
        self.violations.extend(other.violations.iter().cloned());
    }

    pub fn cycles_per_second(&self) -> f64 {
        self.cycles as f64 / self.elapsed.as_secs_f64().max(f64::MIN_POSITIVE)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} fault cycles of {} seeds from {} on, each run twice, in {:.1} s ({:.0} cycles/s)",
            self.cycles,
            self.seeds,
            self.first_seed,
            self.elapsed.as_secs_f64(),
            self.cycles_per_second()
        )?;
        writeln!(
            f,
            "{} operations acknowledged, {} refused, {} unknown; {} entries, {} recoveries, {} checks",
            self.acknowledged,
            self.refused,
            self.unknown,
            self.entries,
            self.recoveries,
            self.checks
        )?;
        writeln!(f, "faults (ordered, hit):")?;
        for fault in Fault::ALL {
            let (ordered, hit) = (self.faults.ordered(*fault), self.faults.hit(*fault));
            writeln!(f, "  {ordered:>9} {hit:>9}  {}", fault.name())?;
        }
        writeln!(f, "sometimes:")?;
        for rare in Rare::ALL {
            writeln!(f, "  {:>9}  {}", self.sometimes.count(*rare), rare.name())?;
        }
        writeln!(f, "violations: {}", self.violations.len())?;
        self.violations.iter().try_for_each(|violation| write!(f, "{violation}"))
    }
}
