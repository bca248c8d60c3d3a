//! A table of rows that are given out lowest first and found by name.
//!
//! Rows are shared (`Arc`), so that freezing the table copies pointers; a row that is changed
//! while a frozen copy lives is copied then, and only that row. Which row a new entry gets depends
//! on nothing but which rows are taken, so that a state restored from a snapshot goes on exactly
//! like the one that wrote it.

use cluster::{Column, Index};
use hashbrown::{DefaultHashBuilder, HashTable};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::hash::{BuildHasher, Hash};
use std::sync::Arc;

/// What can be kept in `Slots`: an entry that carries its own key.
pub(crate) trait Keyed {
    type Key: Hash + Eq;
    fn key(&self) -> &Self::Key;
}

#[derive(Clone, Debug)]
pub(crate) struct Slots<I, T> {
    rows: Column<I, Option<Arc<T>>>,
    vacant: BinaryHeap<Reverse<I>>,
    /// Rows by the hash of their key. The hash is kept beside the row, so that only the row that
    /// is looked for is ever visited, and growing the table visits none.
    by_key: HashTable<(u32, I)>,
    hasher: DefaultHashBuilder,
}

impl<I: Index, T: Keyed + Clone> Slots<I, T> {
    pub(crate) fn new() -> Self {
        Self::from_rows(Column::new())
    }

    pub(crate) fn from_rows(rows: Column<I, Option<Arc<T>>>) -> Self {
        let hasher = DefaultHashBuilder::default();
        let mut by_key = HashTable::with_capacity(rows.len());
        let mut vacant = BinaryHeap::new();
        for (ix, row) in rows.iter() {
            match row {
                Some(entry) => {
                    let hash = hash(&hasher, entry.key());
                    by_key.insert_unique(spread(hash), (hash, ix), |row| spread(row.0));
                }
                None => vacant.push(Reverse(ix)),
            }
        }
        Self { rows, vacant, by_key, hasher }
    }

    /// The rows as they are, to be frozen or iterated.
    pub(crate) fn rows(&self) -> &Column<I, Option<Arc<T>>> {
        &self.rows
    }

    pub(crate) fn len(&self) -> usize {
        self.by_key.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (I, &Arc<T>)> {
        self.rows.iter().filter_map(|(ix, row)| row.as_ref().map(|entry| (ix, entry)))
    }

    pub(crate) fn find(&self, key: &T::Key) -> Option<I> {
        self.find_hashed(hash(&self.hasher, key), key)
    }

    pub(crate) fn get(&self, ix: I) -> Option<&Arc<T>> {
        self.rows.get(ix).and_then(Option::as_ref)
    }

    /// The entry, ready to be changed. Its key must stay the same.
    pub(crate) fn get_mut(&mut self, ix: I) -> Option<&mut T> {
        self.rows.get_mut(ix).and_then(Option::as_mut).map(Arc::make_mut)
    }

    /// Adds an entry at the lowest vacant row; `None` when its key is taken.
    pub(crate) fn insert(&mut self, entry: T) -> Option<I> {
        let hash = hash(&self.hasher, entry.key());
        if self.find_hashed(hash, entry.key()).is_some() {
            return None;
        }
        let ix = match self.vacant.pop() {
            Some(Reverse(ix)) => {
                *self.rows.get_mut(ix)? = Some(Arc::new(entry));
                ix
            }
            None => self.rows.push(Some(Arc::new(entry))),
        };
        self.by_key.insert_unique(spread(hash), (hash, ix), |row| spread(row.0));
        Some(ix)
    }

    pub(crate) fn remove(&mut self, ix: I) -> Option<Arc<T>> {
        let entry = self.rows.get_mut(ix)?.take()?;
        let hash = hash(&self.hasher, entry.key());
        if let Ok(found) = self.by_key.find_entry(spread(hash), |row| row.1 == ix) {
            found.remove();
        }
        self.vacant.push(Reverse(ix));
        Some(entry)
    }

    fn find_hashed(&self, hash: u32, key: &T::Key) -> Option<I> {
        let is_it =
            |row: &(u32, I)| row.0 == hash && self.get(row.1).is_some_and(|e| e.key() == key);
        self.by_key.find(spread(hash), is_it).map(|row| row.1)
    }
}

fn hash<K: Hash>(hasher: &DefaultHashBuilder, key: &K) -> u32 {
    (hasher.hash_one(key) >> 32) as u32
}

/// The table wants its bits at both ends of 64.
fn spread(hash: u32) -> u64 {
    u64::from(hash).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

#[cfg(test)]
mod tests {
    use super::*;
    use cluster::VmIx;

    impl Keyed for &'static str {
        type Key = &'static str;
        fn key(&self) -> &Self::Key {
            self
        }
    }

    #[test]
    fn the_lowest_vacant_row_is_used_first() {
        let mut slots: Slots<VmIx, &'static str> = Slots::new();
        let rows = ["a", "b", "c"].map(|name| slots.insert(name).expect("new"));
        slots.remove(rows[1]);
        slots.remove(rows[0]);
        assert_eq!(slots.insert("d"), Some(VmIx(0)));
        assert_eq!(slots.insert("e"), Some(VmIx(1)));
        assert_eq!(slots.insert("f"), Some(VmIx(3)));
        assert_eq!(slots.find(&"c"), Some(VmIx(2)));
        assert_eq!(slots.find(&"a"), None);
        assert_eq!(slots.insert("c"), None, "a key is there once");
    }

    #[test]
    fn a_restored_table_goes_on_like_the_original() {
        let mut slots: Slots<VmIx, &'static str> = Slots::new();
        let rows = ["a", "b", "c"].map(|name| slots.insert(name).expect("new"));
        slots.remove(rows[0]);
        slots.remove(rows[2]);
        let mut restored = Slots::from_rows(slots.rows().clone());
        for name in ["x", "y", "z"] {
            assert_eq!(slots.insert(name), restored.insert(name));
        }
        assert_eq!(restored.find(&"b"), Some(VmIx(1)));
    }

    #[test]
    fn a_frozen_copy_does_not_see_later_changes() {
        let mut slots: Slots<VmIx, &'static str> = Slots::new();
        let row = slots.insert("a").expect("new");
        let frozen = slots.rows().clone();
        slots.remove(row);
        assert!(frozen[row].is_some());
        assert!(slots.get(row).is_none());
    }
}
