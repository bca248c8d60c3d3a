//! A bounded table of things computed once per distinct key and kept by row number.

use rustc_hash::FxHashMap;
use std::borrow::Borrow;
use std::hash::Hash;

/// A row of a cache; good until the next `tick`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot(u32);

/// Up to `limit` values by key. What a request uses stays until the next request begins; beyond
/// the limit the least recently used goes.
#[derive(Debug)]
pub(crate) struct Cache<K, V> {
    limit: usize,
    clock: u64,
    slots: FxHashMap<K, Slot>,
    entries: Vec<Entry<K, V>>,
}

#[derive(Debug)]
struct Entry<K, V> {
    key: K,
    value: V,
    used_at: u64,
}

impl<K: Clone + Eq + Hash, V> Cache<K, V> {
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, clock: 0, slots: FxHashMap::default(), entries: Vec::new() }
    }

    /// A new request begins.
    pub(crate) fn tick(&mut self) {
        self.clock += 1;
    }

    /// The slot of a key, computing its value when it is not there.
    pub(crate) fn slot<Q>(&mut self, key: &Q, compute: impl FnOnce() -> V) -> Slot
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        if let Some(&slot) = self.slots.get(key) {
            self.entries[slot.0 as usize].used_at = self.clock;
            return slot;
        }
        let entry = Entry { key: key.to_owned(), value: compute(), used_at: self.clock };
        let slot = match self.oldest() {
            Some(slot) if self.entries.len() >= self.limit => {
                let gone = std::mem::replace(&mut self.entries[slot.0 as usize], entry);
                self.slots.remove(gone.key.borrow());
                slot
            }
            _ => {
                self.entries.push(entry);
                Slot(self.entries.len() as u32 - 1)
            }
        };
        self.slots.insert(key.to_owned(), slot);
        slot
    }

    /// The least recently used slot that the request in progress does not need.
    fn oldest(&self) -> Option<Slot> {
        let rows = self.entries.iter().enumerate();
        let idle = rows.filter(|(_, entry)| entry.used_at < self.clock);
        let (row, _) = idle.min_by_key(|(row, entry)| (entry.used_at, *row))?;
        Some(Slot(row as u32))
    }

    pub(crate) fn get(&self, slot: Slot) -> &V {
        &self.entries[slot.0 as usize].value
    }

    pub(crate) fn get_mut(&mut self, slot: Slot) -> &mut V {
        &mut self.entries[slot.0 as usize].value
    }

    pub(crate) fn for_each(&mut self, mut patch: impl FnMut(&K, &mut V)) {
        for entry in &mut self.entries {
            patch(&entry.key, &mut entry.value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_the_least_recently_used_but_nothing_that_the_request_uses() {
        let mut cache: Cache<String, u32> = Cache::new(2);
        cache.tick();
        cache.slot("a", || 1);
        cache.tick();
        cache.slot("b", || 2);
        cache.tick();
        let a = cache.slot("a", || 9);
        let c = cache.slot("c", || 3);
        assert_eq!((*cache.get(a), *cache.get(c)), (1, 3));
        let b = cache.slot("b", || 7);
        assert_eq!(*cache.get(b), 7, "b had been dropped, and now there is no idle slot");
        assert_eq!((*cache.get(a), *cache.get(c)), (1, 3));
    }
}
