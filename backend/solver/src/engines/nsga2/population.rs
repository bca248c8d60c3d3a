//! The algorithm itself, whatever members are: parents by tournament, as many children, and of
//! all of them the best by front and then the most alone.
//!
//! Every child has a stream of draws of its own, so that children may be made on any number of
//! threads. Members that do not survive are written over by the next children: nothing is
//! allocated for a generation but a few lists of numbers.

use super::sorting::{Survivor, survivors};
use super::worth::Worth;
use crate::dice::Dice;

/// What members are made of, and how they vary.
pub trait Variation<const N: usize>: Sync {
    type Genome: Send + Sync;

    /// Writes a child of two parents over `child` and says what it is worth.
    fn breed(
        &self,
        parents: [&Self::Genome; 2],
        child: &mut Self::Genome,
        dice: &mut Dice,
    ) -> Worth<N>;
}

#[derive(Clone, Debug)]
pub struct Population<G, const N: usize> {
    /// Parents in the first half, children in the second.
    genomes: Vec<G>,
    worths: Vec<Worth<N>>,
    standing: Vec<Survivor>,
    seed: u64,
    generation: u64,
    /// Children that were made last, at the beginning of the second half.
    bred: usize,
}

impl<G: Clone + Send + Sync, const N: usize> Population<G, N> {
    /// The best `size` of these members; some come twice if there are fewer.
    ///
    /// # Panics
    /// If there is no member at all.
    pub fn new(first: Vec<(G, Worth<N>)>, size: usize, seed: u64) -> Self {
        assert!(!first.is_empty(), "a population begins with somebody");
        let worths: Vec<Worth<N>> = first.iter().map(|(_, worth)| *worth).collect();
        let best = survivors(&worths, size);
        let rows: Vec<usize> =
            best.iter().map(|survivor| survivor.row as usize).cycle().take(size).collect();
        let twice = || rows.iter().chain(&rows);
        let mut made = Self {
            genomes: twice().map(|&row| first[row].0.clone()).collect(),
            worths: twice().map(|&row| worths[row]).collect(),
            standing: Vec::new(),
            seed,
            generation: 0,
            bred: 0,
        };
        made.standing = survivors(&made.worths[..size], size);
        made
    }

    pub fn size(&self) -> usize {
        self.genomes.len() / 2
    }

    /// Those that may be parents.
    pub fn members(&self) -> (&[G], &[Worth<N>]) {
        (&self.genomes[..self.size()], &self.worths[..self.size()])
    }

    /// Those of them that nobody dominates.
    pub fn best(&self) -> impl Iterator<Item = (&G, &Worth<N>)> {
        let best = self.standing.iter().take_while(|survivor| survivor.front == 0);
        best.map(|survivor| {
            (&self.genomes[survivor.row as usize], &self.worths[survivor.row as usize])
        })
    }

    /// Makes children: as many as there are parents, or fewer.
    pub fn breed<V: Variation<N, Genome = G>>(
        &mut self,
        variation: &V,
        children: usize,
        threads: u32,
    ) {
        let size = self.size();
        self.generation += 1;
        self.bred = children.min(size);
        let seed = Dice::stream(self.seed, self.generation).bits();
        let (parents, children) = self.genomes.split_at_mut(size);
        let children = &mut children[..self.bred];
        let worths = &mut self.worths[size..size + self.bred];
        let standing = &self.standing;
        let one = |number: usize, child: &mut G, worth: &mut Worth<N>| {
            let mut dice = Dice::stream(seed, number as u64);
            let chosen = [0, 1].map(|_| &parents[tournament(standing, &mut dice)]);
            *worth = variation.breed(chosen, child, &mut dice);
        };
        let each = self.bred.div_ceil(threads.max(1) as usize).max(1);
        if each >= self.bred {
            let children = children.iter_mut().zip(worths).enumerate();
            children.for_each(|(number, (child, worth))| one(number, child, worth));
            return;
        }
        std::thread::scope(|scope| {
            let parts = children.chunks_mut(each).zip(worths.chunks_mut(each));
            for (part, (children, worths)) in parts.enumerate() {
                scope.spawn(move || {
                    for (row, (child, worth)) in children.iter_mut().zip(worths).enumerate() {
                        one(part * each + row, child, worth);
                    }
                });
            }
        });
    }

    /// The children that `breed` made last.
    pub fn children(&self) -> (&[G], &[Worth<N>]) {
        let bred = self.size()..self.size() + self.bred;
        (&self.genomes[bred.clone()], &self.worths[bred])
    }

    /// Keeps the best of parents and children as the parents to come.
    pub fn select(&mut self) {
        let size = self.size();
        let all = size + self.bred;
        let best = survivors(&self.worths[..all], size);
        let mut stays = vec![false; all];
        best.iter().for_each(|survivor| stays[survivor.row as usize] = true);
        // Children that stay change places with parents that do not.
        let mut place: Vec<u32> = (0..all as u32).collect();
        let mut free = (0..size).filter(|&row| !stays[row]);
        for child in (size..all).filter(|&row| stays[row]) {
            if let Some(row) = free.next() {
                self.genomes.swap(row, child);
                self.worths.swap(row, child);
                place[child] = row as u32;
            }
        }
        let moved = |survivor: Survivor| Survivor { row: place[survivor.row as usize], ..survivor };
        self.standing = best.into_iter().map(moved).collect();
    }
}

/// The better of two that are drawn: on an earlier front, or more alone on the same.
fn tournament(standing: &[Survivor], dice: &mut Dice) -> usize {
    let draws = [0, 1].map(|_| &standing[dice.below(standing.len() as u32) as usize]);
    let [a, b] = draws;
    let b_is_better = (b.front, a.crowding) < (a.front, b.crowding);
    (if b_is_better { b.row } else { a.row }) as usize
}
