//! Proof that rare states were reached: a run that never tore a write proves nothing about
//! torn writes.

use serde::Serialize;

macro_rules! rare {
    ($($variant:ident => $text:literal,)*) => {
        /// A state that a simulation must reach now and then to be worth anything.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Rare { $($variant,)* }

        impl Rare {
            pub const ALL: &'static [Rare] = &[$(Rare::$variant,)*];

            pub fn name(self) -> &'static str {
                match self { $(Rare::$variant => $text,)* }
            }
        }
    };
}

rare! {
    TornTail => "a crash tore the last write",
    LostTail => "a crash took back an un-synced write",
    KeptTail => "a crash kept an un-synced write",
    UnknownDone => "an unknown outcome turned out as done",
    UnknownNotDone => "an unknown outcome turned out as not done",
    BatchUnknown => "a commit failed and its batch was there all the same",
    RetryFromTable => "a retry was answered from the idempotency table",
    RetryExecuted => "a retry was carried out because the first try was lost",
    DuplicateInBatch => "the same request came twice in one batch",
    KeyConflict => "a key came with another body and was refused",
    SnapshotUsed => "recovery started from a snapshot",
    SnapshotFellBack => "recovery passed over a damaged snapshot",
    HistoryCut => "records older than the snapshots were cut",
    CrashInSnapshot => "the machine died while a snapshot was written",
    CrashInRecovery => "the machine died while recovering",
    RefusedFlippedBit => "recovery refused a log with a flipped bit",
    HarmlessFlippedBit => "a flipped bit hit nothing that recovery needs",
    Expiry => "a reservation expired",
    ConfirmTooLate => "a confirmation came too late",
    Confirmed => "a reservation was confirmed",
    HoldEndedWithVm => "a reservation ended with its VM or host",
    AtomicBatchRejected => "an atomic batch was rejected",
    BatchPartlyPlaced => "a batch was placed in part",
    NoRoom => "no host could take a VM",
    PinnedRejected => "a VM was refused on the host it was pinned to",
    RepeatedPlacement => "an equal request got the first answer",
    AntiAffinityBound => "required anti-affinity kept a VM away",
    LimitBound => "an installed limit kept a VM away",
    OverCapacity => "an adopted VM exceeded its host",
    HostReAdded => "a host removed with VMs came back under its name",
    HostKeptRoom => "a host was not allowed to shrink below its VMs",
    ResizeRefused => "a VM had no room to grow",
    StaleGeneration => "a stale generation was refused",
    ReportIncluded => "a report of others included a VM",
    ForeignBound => "what others use kept a VM away",
    ConfirmedByNews => "news of a VM confirmed its reservation",
    MovedByNews => "news of a VM found it elsewhere",
    LateNews => "news of a VM came too late",
    RepeatedReport => "a report came twice",
    GapRefused => "a change of another inventory was refused",
    TimeStepCapped => "a clock jump was cut to thirty seconds",
    TimeStoodStill => "the clock went back and time stood still",
}

/// How often each rare state was reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sometimes {
    hits: Vec<u64>,
}

impl Default for Sometimes {
    fn default() -> Self {
        Self { hits: vec![0; Rare::ALL.len()] }
    }
}

impl Sometimes {
    pub fn hit(&mut self, rare: Rare) {
        self.hits[rare as usize] += 1;
    }

    pub fn hit_if(&mut self, rare: Rare, reached: bool) {
        if reached {
            self.hit(rare);
        }
    }

    pub fn count(&self, rare: Rare) -> u64 {
        self.hits[rare as usize]
    }

    pub fn add(&mut self, other: &Sometimes) {
        self.hits.iter_mut().zip(&other.hits).for_each(|(sum, hits)| *sum += hits);
    }

    /// The states that were never reached.
    pub fn missed(&self) -> impl Iterator<Item = Rare> + '_ {
        Rare::ALL.iter().copied().filter(|rare| self.count(*rare) == 0)
    }
}

impl Serialize for Sometimes {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(Rare::ALL.iter().map(|rare| (rare.name(), self.count(*rare))))
    }
}
