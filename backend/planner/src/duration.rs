//! How long a migration takes: memory is copied while the VM goes on writing to it.
//!
//! Each round copies what was written during the one before. When what is left can be copied
//! within the accepted pause, or a round leaves no less than the one before, the VM is stopped
//! and the rest is copied. Integers throughout, so that equal plans have equal times.

/// What a migration goes over, and how long a VM may stand still.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// Megabits per second for one migration.
    pub mbps: u32,
    /// The pause that is accepted at the end.
    pub pause_ms: u32,
    /// What the VM writes anew, in thousandths of its memory per second.
    pub dirty_permille_per_s: u32,
}

/// What a migration takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timing {
    /// From start to end.
    pub total_ms: u64,
    /// While the VM stands still.
    pub downtime_ms: u64,
}

/// Rounds after which the VM is stopped whatever is left.
const ROUNDS: usize = 30;

/// Bits of a MiB.
const BITS_PER_MIB: u128 = 8 << 20;

impl Default for Link {
    fn default() -> Self {
        Self { mbps: 10_000, pause_ms: 300, dirty_permille_per_s: 10 }
    }
}

/// How long it takes to move a VM of this size; `live` is false where it is stopped all along.
pub fn timing(memory_mib: u64, live: bool, link: &Link) -> Timing {
    let memory = u128::from(memory_mib) * BITS_PER_MIB;
    let copy_us = |bits: u128| bits.div_ceil(u128::from(link.mbps.max(1)));
    if !live {
        let whole = ms(copy_us(memory));
        return Timing { total_ms: whole, downtime_ms: whole };
    }
    let written = |us: u128| {
        let bits = memory * u128::from(link.dirty_permille_per_s) * us / 1_000_000_000;
        bits.min(memory)
    };
    let (mut copied_us, mut left) = (0, memory);
    for _ in 0..ROUNDS {
        let took = copy_us(left);
        if took <= u128::from(link.pause_ms) * 1_000 {
            break;
        }
        let next = written(took);
        if next >= left {
            break;
        }
        copied_us += took;
        left = next;
    }
    let pause_us = copy_us(left);
    Timing { total_ms: ms(copied_us + pause_us), downtime_ms: ms(pause_us) }
}

fn ms(us: u128) -> u64 {
    u64::try_from(us.div_ceil(1_000)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vm_that_writes_little_pauses_shortly_and_a_busy_one_for_long() {
        let link = Link { mbps: 8_389, pause_ms: 300, dirty_permille_per_s: 10 };
        // About 1,000 MiB a second: 16 s for the first round, a sixth of the memory is new.
        let calm = timing(16_000, true, &link);
        assert!((16_000..21_000).contains(&calm.total_ms), "{calm:?}");
        assert!(calm.downtime_ms <= 300);
        let busy = timing(16_000, true, &Link { dirty_permille_per_s: 2_000, ..link });
        assert_eq!(busy.downtime_ms, busy.total_ms, "copying does not catch up, so it is stopped");
        let small = timing(100, true, &link);
        assert_eq!(small.downtime_ms, small.total_ms, "all of it goes in one pause");
    }

    #[test]
    fn a_stopped_vm_stands_still_for_all_of_it() {
        let cold = timing(1_000, false, &Link { mbps: 8_389, ..Link::default() });
        assert_eq!((cold.total_ms, cold.downtime_ms), (1_000, 1_000));
        assert_eq!(timing(0, true, &Link::default()), Timing::default());
    }

    #[test]
    fn the_pause_is_kept_as_soon_as_copying_is_faster_than_writing() {
        // The VM writes 640 MiB, about 5,400 megabits, a second.
        let pause = |mbps| timing(64_000, true, &Link { mbps, ..Link::default() }).downtime_ms;
        assert!(pause(1_000) > pause(5_000) && pause(5_000) > 100_000);
        assert!([10_000, 25_000, 100_000].into_iter().all(|mbps| pause(mbps) <= 300));
    }
}
