//! How long moving a running VM takes, and for how long it stands still.
//!
//! Memory is copied while the VM runs, then again what it changed meanwhile, and so on; when what
//! is left can be copied within 300 ms, or after 30 rounds, the VM stops for the rest. Switching
//! over takes another 200 ms.

/// What is left when the VM is stopped can be copied in this time.
const STOP_BELOW_S: f64 = 0.3;
const MOST_ROUNDS: u32 = 30;
const SWITCH_OVER_S: f64 = 0.2;
/// A VM whose dirty rate nobody told changes a hundredth of its memory each second.
const ASSUMED_DIRTY_SHARE: f64 = 0.01;
/// Taken where neither host says what its network carries.
const ASSUMED_MBPS: f64 = 1_000.0;
const MIB_PER_PAGE: f64 = 4.0 / 1024.0;
const BITS_PER_MIB: f64 = 8.0 * 1024.0 * 1024.0;

/// What is known of a move.
#[derive(Clone, Copy, Debug)]
pub(super) struct Move {
    pub(super) memory_mib: f64,
    pub(super) pages_dirtied_per_s: Option<f64>,
    pub(super) mbps: Option<f64>,
}

/// What it comes to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Estimate {
    pub(super) downtime_s: f64,
    pub(super) duration_s: f64,
    pub(super) transferred_mib: f64,
    pub(super) mbps: f64,
    pub(super) dirty_rate_is_assumed: bool,
}

impl Move {
    pub(super) fn estimate(&self) -> Estimate {
        let mbps = self.mbps.filter(|mbps| *mbps > 0.0).unwrap_or(ASSUMED_MBPS);
        let mib_per_s = mbps * 1e6 / BITS_PER_MIB;
        let told = self.pages_dirtied_per_s.filter(|rate| rate.is_finite() && *rate >= 0.0);
        let dirty_mib_per_s =
            told.map_or(self.memory_mib * ASSUMED_DIRTY_SHARE, |pages| pages * MIB_PER_PAGE);
        let mut left = self.memory_mib;
        let (mut transferred, mut duration) = (0.0, 0.0);
        for _ in 0..MOST_ROUNDS {
            if left <= mib_per_s * STOP_BELOW_S {
                break;
            }
            let round = left / mib_per_s;
            transferred += left;
            duration += round;
            // No more can be dirty than there is.
            left = (dirty_mib_per_s * round).min(self.memory_mib);
        }
        let last = left / mib_per_s;
        Estimate {
            downtime_s: last + SWITCH_OVER_S,
            duration_s: duration + last + SWITCH_OVER_S,
            transferred_mib: transferred + left,
            mbps,
            dirty_rate_is_assumed: told.is_none(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(memory_mib: f64, pages: Option<f64>, mbps: f64) -> Estimate {
        Move { memory_mib, pages_dirtied_per_s: pages, mbps: Some(mbps) }.estimate()
    }

    #[test]
    fn a_quiet_vm_stands_still_only_to_switch_over() {
        let quiet = of(4096.0, Some(0.0), 8388.608);
        assert_eq!((quiet.downtime_s, quiet.transferred_mib), (0.2, 4096.0));
        assert!((quiet.duration_s - 4.296).abs() < 1e-9, "{quiet:?}");
        assert!(!quiet.dirty_rate_is_assumed);
    }

    #[test]
    fn a_vm_that_writes_faster_than_the_network_is_copied_standing() {
        let busy = of(4096.0, Some(1e9), 8388.608);
        assert!((busy.downtime_s - 4.296).abs() < 1e-9, "all of its memory: {busy:?}");
        assert!(busy.transferred_mib > 30.0 * 4096.0);
    }

    #[test]
    fn more_writing_and_less_network_stop_it_longer() {
        let downtime = |pages, mbps| of(16_384.0, Some(pages), mbps).downtime_s;
        assert!(downtime(20_000.0, 1_000.0) > downtime(1_000.0, 1_000.0));
        assert!(downtime(20_000.0, 1_000.0) > downtime(20_000.0, 10_000.0));
        let unknown = Move { memory_mib: 1.0, pages_dirtied_per_s: None, mbps: None }.estimate();
        assert_eq!((unknown.mbps, unknown.dirty_rate_is_assumed), (1000.0, true));
    }
}
