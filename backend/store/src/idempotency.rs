//! How long replies are kept. Both logs prune by this rule, a few entries with each commit.

/// An entry may go when it is older than `keep_ms`, counted back from the newest entry since the
/// log reads no clock, or when more than `max_keys` are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdempotencyLimits {
    pub keep_ms: u64,
    pub max_keys: u64,
}

impl Default for IdempotencyLimits {
    fn default() -> Self {
        IdempotencyLimits { keep_ms: 24 * 60 * 60 * 1000, max_keys: 1_000_000 }
    }
}

impl IdempotencyLimits {
    /// How many entries a commit of `added` new ones may remove: more than it adds, so that a
    /// backlog shrinks, and few enough that no commit stalls.
    pub(crate) fn budget(added: usize) -> usize {
        added.saturating_mul(2).saturating_add(16)
    }

    pub(crate) fn may_go(&self, ts_ms: u64, newest_ms: u64, keys: u64) -> bool {
        keys > self.max_keys || ts_ms.saturating_add(self.keep_ms) < newest_ms
    }
}
