//! Sets of hosts as bits, and the mask that a request narrows step by step.
//!
//! A set is as long as its highest member needs: words that are not stored are empty. Loops here
//! add with wrapping arithmetic because overflow checks would keep them from being vectorised;
//! counts are bounded by the number of hosts.

use cluster::{HostIx, Index};
use std::ops::Range;

/// Hosts per word, and per block of every column.
pub(crate) const LANES: usize = 64;

/// A set of hosts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bits {
    words: Vec<u64>,
}

impl Bits {
    pub(crate) fn words(&self) -> &[u64] {
        &self.words
    }

    pub(crate) fn word(&self, word: usize) -> u64 {
        self.words.get(word).copied().unwrap_or(0)
    }

    pub(crate) fn contains(&self, host: HostIx) -> bool {
        self.word(host.row() / LANES) >> (host.row() % LANES) & 1 == 1
    }

    /// How many there are.
    pub(crate) fn count(&self) -> u32 {
        self.words.iter().map(|word| word.count_ones()).sum()
    }

    pub(crate) fn put(&mut self, host: HostIx, member: bool) {
        if member {
            self.insert(host);
        } else {
            self.remove(host);
        }
    }

    pub(crate) fn insert(&mut self, host: HostIx) {
        let word = host.row() / LANES;
        if self.words.len() <= word {
            self.words.resize(word + 1, 0);
        }
        self.words[word] |= 1 << (host.row() % LANES);
    }

    pub(crate) fn remove(&mut self, host: HostIx) {
        if let Some(word) = self.words.get_mut(host.row() / LANES) {
            *word &= !(1 << (host.row() % LANES));
        }
    }

    /// Removes these hosts of one word.
    pub(crate) fn clear_in(&mut self, word: usize, hosts: u64) {
        if let Some(word) = self.words.get_mut(word) {
            *word &= !hosts;
        }
    }

    pub(crate) fn clear(&mut self) {
        self.words.clear();
    }

    pub(crate) fn union(&mut self, other: &Bits) {
        if self.words.len() < other.words.len() {
            self.words.resize(other.words.len(), 0);
        }
        for (word, more) in self.words.iter_mut().zip(&other.words) {
            *word |= more;
        }
    }

    /// Keeps those that are in the other as well; none if there is no other.
    pub(crate) fn retain(&mut self, other: Option<&Bits>) {
        let kept = other.map_or(&[][..], Bits::words);
        self.words.truncate(kept.len());
        for (word, kept) in self.words.iter_mut().zip(kept) {
            *word &= kept;
        }
    }

    pub(crate) fn subtract(&mut self, other: &Bits) {
        for (word, gone) in self.words.iter_mut().zip(&other.words) {
            *word &= !gone;
        }
    }
}

impl FromIterator<u64> for Bits {
    fn from_iter<I: IntoIterator<Item = u64>>(words: I) -> Self {
        Self { words: words.into_iter().collect() }
    }
}

/// The hosts of one word, lowest first.
pub(crate) fn ones(word: usize, mut bits: u64) -> impl Iterator<Item = HostIx> {
    std::iter::from_fn(move || {
        if bits == 0 {
            return None;
        }
        let lane = bits.trailing_zeros() as usize;
        bits &= bits - 1;
        Some(HostIx::new(word * LANES + lane))
    })
}

/// The hosts that are still in the running, within a range of words; outside it there are none.
#[derive(Clone, Debug, Default)]
pub(crate) struct Mask {
    words: Vec<u64>,
    scope: Range<usize>,
}

impl Mask {
    /// Starts with every host of `all`.
    pub(crate) fn reset_to(&mut self, all: &Bits) {
        self.words.clear();
        self.words.extend_from_slice(&all.words);
        self.scope = 0..self.words.len();
    }

    /// Starts with one host.
    pub(crate) fn reset_to_one(&mut self, host: HostIx) {
        let word = host.row() / LANES;
        self.words.clear();
        self.words.resize(word + 1, 0);
        self.words[word] = 1 << (host.row() % LANES);
        self.scope = word..word + 1;
    }

    pub(crate) fn copy_from(&mut self, other: &Mask) {
        self.words.clear();
        self.words.extend_from_slice(&other.words);
        self.scope = other.scope.clone();
    }

    pub(crate) fn scope(&self) -> Range<usize> {
        self.scope.clone()
    }

    pub(crate) fn word(&self, word: usize) -> u64 {
        self.words[word]
    }

    pub(crate) fn contains(&self, host: HostIx) -> bool {
        let word = self.words.get(host.row() / LANES).copied().unwrap_or(0);
        word >> (host.row() % LANES) & 1 == 1
    }

    pub(crate) fn count(&self) -> u32 {
        let words = &self.words[self.scope()];
        words.iter().fold(0, |sum: u32, word| sum.wrapping_add(word.count_ones()))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.words[self.scope()].iter().all(|&word| word == 0)
    }

    /// Removes one host; says how many were removed.
    pub(crate) fn remove(&mut self, host: HostIx) -> u32 {
        let Some(word) = self.words.get_mut(host.row() / LANES) else { return 0 };
        let bit = 1 << (host.row() % LANES);
        let removed = u32::from(*word & bit != 0);
        *word &= !bit;
        removed
    }

    /// Keeps only members of `keep`; says how many were removed.
    pub(crate) fn retain(&mut self, keep: &Bits) -> u32 {
        let known = self.scope.end.min(keep.words.len()).max(self.scope.start);
        let mut removed = 0u32;
        let kept = keep.words.get(self.scope.start..known).unwrap_or(&[]);
        for (word, keep) in self.words[self.scope.start..known].iter_mut().zip(kept) {
            removed = removed.wrapping_add((*word & !keep).count_ones());
            *word &= keep;
        }
        for word in &mut self.words[known..self.scope.end] {
            removed = removed.wrapping_add(word.count_ones());
            *word = 0;
        }
        removed
    }

    /// Removes the members of `gone`; says how many were removed.
    pub(crate) fn subtract(&mut self, gone: &Bits) -> u32 {
        let known = self.scope.end.min(gone.words.len()).max(self.scope.start);
        let mut removed = 0u32;
        let gone = gone.words.get(self.scope.start..known).unwrap_or(&[]);
        for (word, gone) in self.words[self.scope.start..known].iter_mut().zip(gone) {
            removed = removed.wrapping_add((*word & gone).count_ones());
            *word &= !gone;
        }
        removed
    }

    /// Removes every host; says how many were removed.
    pub(crate) fn subtract_all(&mut self) -> u32 {
        let removed = self.count();
        self.words[self.scope.clone()].fill(0);
        removed
    }

    /// Whether any host is also in `other`.
    pub(crate) fn meets(&self, other: &Bits) -> bool {
        self.words.iter().zip(&other.words).any(|(word, other)| word & other != 0)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = HostIx> + '_ {
        self.scope().flat_map(|word| ones(word, self.words[word]))
    }

    /// From `host` on, itself included.
    pub(crate) fn iter_from(&self, host: HostIx) -> impl Iterator<Item = HostIx> + '_ {
        let first = (host.row() / LANES).max(self.scope.start);
        let words = first..self.scope.end.max(first);
        let hosts = words.flat_map(|word| ones(word, self.words[word]));
        hosts.skip_while(move |&found| found < host)
    }
}

/// The lanes whose value is at least `least`, as bits.
///
/// In two steps that the compiler can do for several lanes at once: a byte for each lane, and
/// then eight bytes to eight bits by a product that brings every one of them to the top.
pub(crate) fn at_least(lanes: &[i32; LANES], least: i32) -> u64 {
    let passed: [u8; LANES] = std::array::from_fn(|lane| u8::from(lanes[lane] >= least));
    let (eights, _) = passed.as_chunks::<8>();
    eights.iter().rev().fold(0, |bits, &eight| {
        let product = u64::from_le_bytes(eight).wrapping_mul(0x0102_0408_1020_4080);
        bits << 8 | product >> 56
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comparing_lanes_gives_one_bit_for_each() {
        for least in [-1, 0, 5, 63, 64] {
            let lanes: [i32; LANES] = std::array::from_fn(|lane| (lane as i32 * 37) % 64);
            let expect =
                (0..LANES).fold(0, |bits, lane| bits | u64::from(lanes[lane] >= least) << lane);
            assert_eq!(at_least(&lanes, least), expect);
        }
    }

    #[test]
    fn a_mask_counts_what_each_step_removes() {
        let mut all = Bits::default();
        let mut even = Bits::default();
        for row in 0..200 {
            all.insert(HostIx(row));
            if row % 2 == 0 && row < 100 {
                even.insert(HostIx(row));
            }
        }
        let mut mask = Mask::default();
        mask.reset_to(&all);
        assert_eq!(mask.retain(&even), 150);
        assert_eq!(mask.remove(HostIx(4)), 1);
        assert_eq!(mask.remove(HostIx(4)), 0);
        assert_eq!(mask.subtract(&even), 49);
        assert_eq!(mask.count(), 0);

        mask.reset_to_one(HostIx(130));
        assert_eq!(mask.retain(&even), 1, "words that a set does not store are empty");
    }
}
