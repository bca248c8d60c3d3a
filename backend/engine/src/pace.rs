//! The state's own time: it goes at the caller's pace, but never back and never by a jump.
//!
//! Callers' clocks are set, stepped and skewed. What reservations need is how long they have been
//! held, so time here advances by what has passed between two looks at the clock, and at most 30 s
//! from one command to the next. While nothing is held there is nothing that a jump could end, and time catches up with
//! the clock, so that records show when things happened.

/// Longest step while reservations are held.
const LONGEST_STEP_MS: u64 = 30_000;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    time_ms: u64,
    /// The caller's clock at the last look.
    seen_ms: Option<u64>,
}

impl Pace {
    /// Goes on from where the log ended.
    pub(crate) fn from(time_ms: u64) -> Self {
        Self { time_ms, seen_ms: None }
    }

    /// The time of a command that comes in when the caller's clock says `now_ms`, after one at
    /// `last_ms`.
    pub(crate) fn look(&mut self, now_ms: u64, last_ms: u64, anything_held: bool) -> u64 {
        // After a restart the clock stands where the log ended, as far as is known.
        let seen_ms = self.seen_ms.replace(now_ms).unwrap_or(self.time_ms);
        self.time_ms = self.time_ms.saturating_add(now_ms.saturating_sub(seen_ms)).max(last_ms);
        if anything_held {
            self.time_ms = self.time_ms.min(last_ms.saturating_add(LONGEST_STEP_MS));
        } else {
            self.time_ms = self.time_ms.max(now_ms);
        }
        self.time_ms
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HELD: bool = true;
    const NOTHING_HELD: bool = false;

    #[test]
    fn time_passes_as_the_clock_does() {
        let mut pace = Pace::from(1_000);
        assert_eq!(pace.look(1_250, 1_000, HELD), 1_250);
        assert_eq!(pace.look(2_000, 1_000, HELD), 2_000);
    }

    #[test]
    fn a_jump_counts_for_thirty_seconds_and_only_once() {
        let mut pace = Pace::from(1_000);
        pace.look(1_000, 1_000, HELD);
        assert_eq!(pace.look(90_000_000, 1_000, HELD), 31_000);
        assert_eq!(pace.look(90_000_500, 31_000, HELD), 31_500, "the right pace, not catching up");
        assert_eq!(pace.look(5, 31_500, HELD), 31_500, "never back");
        assert_eq!(pace.look(105, 31_500, HELD), 31_600);
    }

    #[test]
    fn without_reservations_time_follows_the_clock_forward() {
        let mut pace = Pace::from(1_000);
        assert_eq!(pace.look(3_600_000, 1_000, NOTHING_HELD), 3_600_000);
        assert_eq!(pace.look(3_660_000, 3_600_000, HELD), 3_630_000, "from here on in steps");
    }
}
