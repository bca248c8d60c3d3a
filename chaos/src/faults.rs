//! What can go wrong, when in a cycle it does, and whether it really did.

use fixture::Dice;
use serde::Serialize;

macro_rules! faults {
    ($($variant:ident => $text:literal,)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Fault { $($variant,)* }

        impl Fault {
            pub const ALL: &'static [Fault] = &[$(Fault::$variant,)*];

            pub fn name(self) -> &'static str {
                match self { $(Fault::$variant => $text,)* }
            }
        }
    };
}

faults! {
    PowerCut => "power cut between two steps",
    PowerCutInWrite => "power cut in place of a write or sync",
    Kill => "process killed",
    WriteError => "write fails (EIO)",
    SyncError => "sync fails (EIO)",
    DiskFull => "disk full (ENOSPC)",
    BitFlip => "bit flipped in stored data",
    PowerCutInRecovery => "power cut while recovering",
    SyncErrorInRecovery => "sync fails while recovering",
    ClockJump => "clock jumps by hours",
    AnswerLost => "answer lost on the way",
    Duplicate => "request delivered twice",
}

/// How often each fault was ordered, and how often it happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FaultCounts {
    counts: Vec<(u64, u64)>,
}

impl Default for FaultCounts {
    fn default() -> Self {
        Self { counts: vec![(0, 0); Fault::ALL.len()] }
    }
}

impl FaultCounts {
    pub fn ordered(&self, fault: Fault) -> u64 {
        self.counts[fault as usize].0
    }

    pub fn hit(&self, fault: Fault) -> u64 {
        self.counts[fault as usize].1
    }

    pub fn total_hit(&self) -> u64 {
        self.counts.iter().map(|(_, hit)| hit).sum()
    }

    pub(crate) fn order(&mut self, fault: Fault) {
        self.counts[fault as usize].0 += 1;
    }

    /// Counts a fault that happened, `times` times.
    pub(crate) fn happened(&mut self, fault: Fault, times: u64) {
        self.counts[fault as usize].1 += times;
    }

    pub(crate) fn both(&mut self, fault: Fault) {
        self.order(fault);
        self.happened(fault, 1);
    }

    pub fn add(&mut self, other: &FaultCounts) {
        for (sum, count) in self.counts.iter_mut().zip(&other.counts) {
            *sum = (sum.0 + count.0, sum.1 + count.1);
        }
    }
}

impl Serialize for FaultCounts {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(Fault::ALL.iter().map(|fault| (fault.name(), self.hit(*fault))))
    }
}

/// Something that is wrong with the disk from some round on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DiskFault {
    /// The `n`-th change from now loses power instead.
    CutPowerAt(u64),
    FailWrite(u64),
    FailSync(u64),
    /// Room for this many bytes is left.
    FillUpAfter(u64),
}

/// Where between two steps the process dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Point {
    BeforePropose,
    BetweenProposes,
    BeforeCommit,
    BeforeAnswers,
    AfterAnswers,
}

/// What happens to the machine when the process has died.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Death {
    PowerCut,
    /// The kernel and its cache live on.
    Kill,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RecoveryFault {
    CutPowerAt(u64),
    FailSync(u64),
    /// A bit flips before the log is opened, or after it was opened and before it is replayed.
    FlipBit {
        opened: bool,
    },
}

/// One fault cycle: live for some rounds, go wrong, die, come back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) rounds: u64,
    /// From which round on the disk misbehaves, and how.
    pub(crate) disk: Option<(u64, DiskFault)>,
    /// In the last round, if the process lives until then.
    pub(crate) point: Point,
    pub(crate) death: Death,
    pub(crate) recovery: [Option<RecoveryFault>; 2],
}

impl Plan {
    /// A cycle on a log that takes about `steps` writes and syncs for a commit.
    pub(crate) fn draw(dice: &mut Dice, steps: u64) -> Plan {
        let rounds = dice.between(1, 8);
        let disk = dice.chance(600).then(|| {
            let fault = match dice.below(8) {
                0..=3 => DiskFault::CutPowerAt(dice.between(1, 5 * steps)),
                4 => DiskFault::FailWrite(dice.between(1, 2 * steps)),
                5 | 6 => DiskFault::FailSync(dice.between(1, 4)),
                _ => DiskFault::FillUpAfter(dice.below(5_000)),
            };
            (dice.below(rounds), fault)
        });
        let points = [
            (Point::BeforePropose, 1),
            (Point::BetweenProposes, 2),
            (Point::BeforeCommit, 3),
            (Point::BeforeAnswers, 3),
            (Point::AfterAnswers, 3),
        ];
        let recovery = |dice: &mut Dice| match dice.below(20) {
            0 => Some(RecoveryFault::CutPowerAt(dice.between(1, 2 * steps))),
            1 => Some(RecoveryFault::FailSync(dice.between(1, 2))),
            2 => Some(RecoveryFault::FlipBit { opened: false }),
            3 => Some(RecoveryFault::FlipBit { opened: true }),
            _ => None,
        };
        Plan {
            rounds,
            disk,
            point: *dice.weighted(&points),
            death: *dice.weighted(&[(Death::PowerCut, 3), (Death::Kill, 1)]),
            recovery: [recovery(dice), recovery(dice)],
        }
    }
}
