//! Layouts by what they describe: equal hosts share one.

use super::layout::Layout;
use cluster::{Hardware, Host};
use rustc_hash::{FxHashMap, FxHasher};
use smallvec::SmallVec;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// The layouts of a fleet.
#[derive(Debug, Default)]
pub(crate) struct Layouts {
    /// By a hash of the description.
    known: FxHashMap<u64, SmallVec<[Numbered; 1]>>,
    last: u32,
    /// When as many are known, those that no host has any more are dropped.
    sweep_at: usize,
}

/// A layout under a number that no other layout ever has.
#[derive(Clone, Debug)]
pub(crate) struct Numbered {
    pub number: u32,
    pub layout: Arc<Layout>,
}

impl Layouts {
    /// The layout of a host; `None` if its description contradicts itself.
    pub(crate) fn of(&mut self, host: &Host) -> Option<Numbered> {
        self.find(&host.hardware, host.cpu_overcommit_permille())
    }

    /// The layout of hosts that list no parts.
    pub(crate) fn nothing(&mut self) -> Numbered {
        self.find(&Hardware::default(), 1000).expect("nothing cannot contradict itself")
    }

    fn find(&mut self, hardware: &Hardware, overcommit_permille: u64) -> Option<Numbered> {
        let mut hasher = FxHasher::default();
        (hardware, overcommit_permille).hash(&mut hasher);
        let hash = hasher.finish();
        let same = |known: &&Numbered| known.layout.describes(hardware, overcommit_permille);
        if let Some(found) = self.known.get(&hash).and_then(|known| known.iter().find(same)) {
            return Some(found.clone());
        }
        let layout = Arc::new(Layout::new(hardware, overcommit_permille).ok()?);
        if self.known.len() >= self.sweep_at {
            self.known.retain(|_, known| {
                known.retain(|known| Arc::strong_count(&known.layout) > 1);
                !known.is_empty()
            });
            self.sweep_at = (self.known.len() * 2).max(64);
        }
        self.last += 1;
        let found = Numbered { number: self.last, layout };
        self.known.entry(hash).or_default().push(found.clone());
        Some(found)
    }
}
