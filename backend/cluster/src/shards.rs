//! A map in many pieces, so that no single insert pays for the growth of all of it.
//!
//! A hash table that is full moves every entry at once. With a hundred thousand VMs that takes
//! tens of milliseconds, and whoever places the next VM waits for it. Pieces fill up at different
//! times, and each moves a small share.

use rustc_hash::{FxBuildHasher, FxHashMap};
use std::hash::{BuildHasher, Hash};

/// A power of two. A piece of a fleet of a million VMs has a few thousand entries.
const PIECES: usize = 256;

#[derive(Clone, Debug)]
pub struct Shards<K, V> {
    pieces: Box<[FxHashMap<K, V>]>,
    len: usize,
}

impl<K, V> Default for Shards<K, V> {
    fn default() -> Self {
        Self { pieces: (0..PIECES).map(|_| FxHashMap::default()).collect(), len: 0 }
    }
}

impl<K: Hash + Eq, V> Shards<K, V> {
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn get(&self, key: &K) -> Option<&V> {
        self.pieces[piece(key)].get(key)
    }

    pub fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        self.pieces[piece(key)].get_mut(key)
    }

    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        let before = self.pieces[piece(&key)].insert(key, value);
        self.len += usize::from(before.is_none());
        before
    }

    pub fn remove(&mut self, key: &K) -> Option<V> {
        let gone = self.pieces[piece(key)].remove(key);
        self.len -= usize::from(gone.is_some());
        gone
    }

    /// The value of a key, made if it is not there.
    pub fn or_default(&mut self, key: K) -> &mut V
    where
        V: Default,
    {
        let len = &mut self.len;
        self.pieces[piece(&key)].entry(key).or_insert_with(|| {
            *len += 1;
            V::default()
        })
    }

    /// In no particular order.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut V> {
        self.pieces.iter_mut().flat_map(FxHashMap::values_mut)
    }
}

/// By bits in the middle of the hash: a table of a piece goes by those at both ends.
fn piece<K: Hash>(key: &K) -> usize {
    (FxBuildHasher.hash_one(key) >> 40) as usize % PIECES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn behaves_like_one_map() {
        let mut shards: Shards<String, u32> = Shards::default();
        let mut map: FxHashMap<String, u32> = FxHashMap::default();
        for step in 0..20_000u32 {
            let key = format!("vm-{}", step.wrapping_mul(2_654_435_761) % 3_000);
            match step % 3 {
                0 => assert_eq!(shards.remove(&key), map.remove(&key)),
                1 => assert_eq!(shards.insert(key.clone(), step), map.insert(key, step)),
                _ => {
                    *shards.or_default(key.clone()) += 1;
                    *map.entry(key).or_default() += 1;
                }
            }
            assert_eq!(shards.len(), map.len());
        }
        assert!(!shards.is_empty());
        assert!(map.iter().all(|(key, value)| shards.get(key) == Some(value)));
        shards.values_mut().for_each(|value| *value += 7);
        assert!(map.iter().all(|(key, value)| shards.get_mut(key) == Some(&mut (value + 7))));
    }

    #[test]
    fn no_piece_holds_much_more_than_its_share() {
        let mut shards: Shards<String, ()> = Shards::default();
        (0..100_000).for_each(|number| {
            shards.insert(format!("vm-{number}"), ());
        });
        let fullest = shards.pieces.iter().map(FxHashMap::len).max();
        assert!(fullest < Some(100_000 / PIECES * 2), "{fullest:?}");
    }
}
