//! Which shapes come, and how often: given as ratios, or learned from those that came.

use super::shape::Shape;
use serde::{Deserialize, Serialize};

/// Arrivals after which an arrival counts half as much as a new one.
const HALF_LIFE: u64 = 1 << 14;

/// The weight of the first arrival. Later ones weigh more and more instead of the earlier ones
/// weighing less and less, so that an arrival touches one entry.
const FIRST: u64 = 1 << 20;

/// When a new arrival would weigh this much, all weights are scaled back to `FIRST`.
const HIGHEST: u64 = 1 << 40;

/// Shapes remembered while learning; beyond it those that count least are forgotten.
const MOST_SHAPES: usize = 4096;

/// Shapes with weights. Only ratios of the weights mean anything.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mix<S = Shape> {
    /// In order of the shapes, so that it does not matter in which order they came.
    entries: Vec<(S, u64)>,
    next: u64,
    arrivals: u64,
}

impl<S> Default for Mix<S> {
    fn default() -> Self {
        Self { entries: Vec::new(), next: 0, arrivals: 0 }
    }
}

impl<S: Clone + Ord> Mix<S> {
    /// Shapes with the ratios in which they come.
    pub fn given(ratios: impl IntoIterator<Item = (S, u64)>) -> Self {
        let mut mix = Self::default();
        for (shape, weight) in ratios {
            mix.add(shape, weight);
        }
        mix
    }

    /// Counts an arrival, so that what came lately counts most.
    pub fn observe(&mut self, shape: S) {
        self.next = self.next.max(FIRST);
        self.add(shape, self.next);
        self.arrivals += 1;
        // 1 + ln 2 / HALF_LIFE a step doubles the weight in HALF_LIFE steps.
        self.next += self.next * 693 / (1000 * HALF_LIFE);
        if self.next >= HIGHEST {
            self.scale_back();
        }
        if self.entries.len() > MOST_SHAPES {
            self.forget_the_rarest();
        }
    }

    /// Arrivals counted so far.
    pub fn arrivals(&self) -> u64 {
        self.arrivals
    }

    /// What the latest arrival weighs; nothing in a mix that is given.
    pub fn latest(&self) -> u64 {
        self.next
    }

    /// The same of other shapes. Those that become equal are counted together.
    pub fn map<T: Clone + Ord>(&self, shape: impl Fn(&S) -> T) -> Mix<T> {
        let entries = self.entries.iter().map(|(one, weight)| (shape(one), *weight));
        Mix { next: self.next, arrivals: self.arrivals, ..Mix::given(entries) }
    }

    /// Shapes and weights.
    pub fn entries(&self) -> &[(S, u64)] {
        &self.entries
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// How much of one mix would have to change to become the other: 0 to 1000.
    pub fn distance_permille(&self, other: &Mix<S>) -> u64 {
        let (total, others) = (self.total(), other.total());
        if total == 0 || others == 0 {
            return if total == others { 0 } else { 1000 };
        }
        let gained = self.entries.iter().map(|(shape, weight)| {
            let before = other.row(shape).map_or(0, |row| other.entries[row].1);
            (u128::from(*weight) * others).saturating_sub(u128::from(before) * total)
        });
        (gained.sum::<u128>() * 1000 / (total * others)) as u64
    }

    fn total(&self) -> u128 {
        self.entries.iter().map(|(_, weight)| u128::from(*weight)).sum()
    }

    fn add(&mut self, shape: S, weight: u64) {
        match self.row(&shape) {
            Ok(row) => self.entries[row].1 += weight,
            Err(row) => self.entries.insert(row, (shape, weight)),
        }
    }

    fn row(&self, shape: &S) -> Result<usize, usize> {
        self.entries.binary_search_by(|(other, _)| other.cmp(shape))
    }

    fn scale_back(&mut self) {
        let factor = self.next / FIRST;
        self.next = FIRST;
        self.entries.iter_mut().for_each(|entry| entry.1 /= factor);
        self.entries.retain(|entry| entry.1 > 0);
    }

    fn forget_the_rarest(&mut self) {
        let mut weights: Vec<u64> = self.entries.iter().map(|entry| entry.1).collect();
        let (_, median, _) = weights.select_nth_unstable(MOST_SHAPES / 2);
        let median = *median;
        self.entries.retain(|entry| entry.1 > median);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(milli: u16) -> Shape {
        Shape::of_share(1000, 1024, milli)
    }

    #[test]
    fn only_ratios_count() {
        let once = Mix::given([(shape(100), 1), (shape(500), 3)]);
        let tenfold = Mix::given([(shape(500), 30), (shape(100), 10)]);
        assert_eq!(once.distance_permille(&tenfold), 0);
        assert_eq!(once.distance_permille(&Mix::given([(shape(100), 3), (shape(500), 1)])), 500);
    }

    #[test]
    fn what_came_lately_counts_most() {
        let mut mix = Mix::default();
        (0..HALF_LIFE).for_each(|_| mix.observe(shape(100)));
        (0..HALF_LIFE).for_each(|_| mix.observe(shape(200)));
        let weight = |milli| mix.entries()[mix.row(&shape(milli)).unwrap()].1 as f64;
        assert!((weight(200) / weight(100) - 2.0).abs() < 0.05, "{}", weight(200) / weight(100));
    }

    #[test]
    fn a_long_run_neither_overflows_nor_forgets_what_still_comes() {
        let mut mix = Mix::default();
        for arrival in 0..40 * HALF_LIFE {
            mix.observe(shape(100 + (arrival % 2) as u16));
        }
        assert!(mix.next < HIGHEST);
        assert!(mix.distance_permille(&Mix::given([(shape(100), 1), (shape(101), 1)])) <= 1);
    }

    #[test]
    fn the_number_of_shapes_is_limited() {
        let mut mix = Mix::default();
        (0..5000).for_each(|cpu| mix.observe(Shape::without_gpus(cpu, 1)));
        assert!(mix.entries().len() <= MOST_SHAPES);
    }
}
