//! The hosts that each VM may still go to, as bits, with a trail to undo what a branch removed.

use crate::assignment::Model;
use crate::bits::{LANES, ones};

#[derive(Clone, Debug)]
pub(super) struct Domains {
    words: usize,
    bits: Vec<u64>,
    sizes: Vec<u32>,
    /// Words as they were, newest last.
    trail: Vec<(u32, u32, u64)>,
}

impl Domains {
    /// What each VM's own list allows.
    pub(super) fn all(model: &Model) -> Self {
        let words = model.hosts().div_ceil(LANES).max(1);
        let mut bits = vec![0u64; words * model.vms()];
        for vm in 0..model.vms() as u32 {
            for host in (0..model.hosts() as u32).filter(|&host| model.allows(vm, host)) {
                bits[vm as usize * words + host as usize / LANES] |= 1 << (host as usize % LANES);
            }
        }
        let sizes =
            bits.chunks(words).map(|row| row.iter().map(|w| w.count_ones()).sum()).collect();
        Self { words, bits, sizes, trail: Vec::new() }
    }

    pub(super) fn size(&self, vm: u32) -> u32 {
        self.sizes[vm as usize]
    }

    pub(super) fn contains(&self, vm: u32, host: u32) -> bool {
        let word = self.bits[vm as usize * self.words + host as usize / LANES];
        word >> (host as usize % LANES) & 1 == 1
    }

    pub(super) fn hosts(&self, vm: u32) -> impl Iterator<Item = u32> + '_ {
        let row = &self.bits[vm as usize * self.words..][..self.words];
        row.iter().enumerate().flat_map(|(word, &bits)| ones(word, bits)).map(|host| host.0)
    }

    /// Removes a host; whether it was there.
    pub(super) fn remove(&mut self, vm: u32, host: u32) -> bool {
        if !self.contains(vm, host) {
            return false;
        }
        let word = host as usize / LANES;
        let bits = &mut self.bits[vm as usize * self.words + word];
        self.trail.push((vm, word as u32, *bits));
        *bits &= !(1 << (host as usize % LANES));
        self.sizes[vm as usize] -= 1;
        true
    }

    pub(super) fn mark(&self) -> usize {
        self.trail.len()
    }

    /// Brings back everything that was removed since the mark.
    pub(super) fn undo(&mut self, mark: usize) {
        for (vm, word, bits) in self.trail.drain(mark..).rev() {
            let now = &mut self.bits[vm as usize * self.words + word as usize];
            self.sizes[vm as usize] += bits.count_ones() - now.count_ones();
            *now = bits;
        }
    }
}
