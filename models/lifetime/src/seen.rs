//! What was seen of VMs: what was known when they started, and how long they lived.

/// What is known of a VM before it runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Traits {
    pub tenant: String,
    pub image: String,
    pub cpu_millis: u32,
    pub memory_mib: u32,
    /// The hour of the day at which it starts, 0 to 23.
    pub hour: u8,
    /// The day of the week at which it starts, 0 to 6.
    pub weekday: u8,
    pub priority: u8,
}

/// A VM that ended, or that still ran when it was last seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Life {
    pub traits: Traits,
    /// Its age when it was first seen: 0 unless it was adopted. Who had died by then was never
    /// seen, so that nothing is learned about younger ages.
    pub first_seen_s: u64,
    /// Its age when it ended or was last seen.
    pub last_seen_s: u64,
    pub ended: bool,
}

impl Life {
    /// A whole life.
    pub fn whole(traits: Traits, seconds: u64) -> Self {
        Self { traits, first_seen_s: 0, last_seen_s: seconds, ended: true }
    }
}
