//! What a share of a GPU is worth, in millionths of a GPU: the duals of cutting one GPU.
//!
//! If GPUs were cut into shares for an endless stream of the mix with as little waste as possible,
//! each size would have a price: what one more of it costs in GPUs. 810 of 1000 costs a whole GPU
//! where nothing comes that fits beside it; 160 costs nothing where there are more leftovers of
//! that size than takers. Such duals jump with the smallest change of the mix, so that the mean
//! over a few changed demands is taken. The arithmetic is +, -, x and / of doubles in a fixed
//! order, which is the same everywhere; the result is rounded to integers.

use super::mix::Mix;
use super::shape::WHOLE;

/// Millionths: the price of a whole GPU.
pub const GPU: u32 = 1_000_000;

/// Shares are priced in steps of ten thousandths, rounded up.
const STEP: usize = 10;
const STEPS: usize = WHOLE as usize / STEP;

/// Changed demands that are averaged, and by how much of itself a demand is changed at most.
const CHANGED: u64 = 16;
const CHANGE: f64 = 0.15;

/// A dual simplex ends long before; a bound on what rounding could do.
const MOST_PIVOTS: usize = 400;

const NEARLY_ZERO: f64 = 1e-9;

/// A size of share with how often it comes and what it is worth.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Priced {
    /// The size in steps.
    pub steps: usize,
    /// Its share of all GPUs asked for, by number.
    pub demand: f64,
    /// In millionths of a GPU.
    pub price: u32,
}

/// Prices of all sizes of a mix, by rising size.
#[derive(Clone, Debug, Default)]
pub struct Prices {
    sizes: Vec<Priced>,
}

impl Prices {
    pub fn of(mix: &Mix) -> Self {
        let mut weight = [0u64; STEPS + 1];
        for (shape, count) in mix.entries().iter().filter(|(shape, _)| shape.gpus > 0) {
            weight[steps(shape.milli)] += count * u64::from(shape.gpus);
        }
        let total: u64 = weight.iter().sum();
        let asked = weight.iter().enumerate().skip(1).filter(|(_, weight)| **weight > 0);
        let mut sizes: Vec<Priced> = asked
            .map(|(steps, weight)| Priced {
                steps,
                demand: *weight as f64 / total as f64,
                price: 0,
            })
            .collect();
        price(&mut sizes);
        Self { sizes }
    }

    pub fn sizes(&self) -> &[Priced] {
        &self.sizes
    }

    /// The price of one share: that of the smallest priced size that is as large.
    pub fn of_share(&self, milli: u16) -> u32 {
        let row = self.sizes.partition_point(|size| size.steps < steps(milli));
        self.sizes.get(row).map_or(GPU, |size| size.price)
    }
}

/// A share in steps, rounded up.
pub fn steps(milli: u16) -> usize {
    usize::from(milli).div_ceil(STEP).clamp(1, STEPS)
}

/// A hole in steps, rounded down.
pub fn steps_within(hole: u16) -> usize {
    usize::from(hole.min(WHOLE)) / STEP
}

/// Sizes that a hole can have, in steps: 0 to a whole GPU.
pub const HOLES: usize = STEPS + 1;

fn price(sizes: &mut [Priced]) {
    let mut sum = vec![0.0; sizes.len()];
    let mut random = 1u64;
    for _ in 0..CHANGED {
        let demand: Vec<f64> = sizes
            .iter()
            .map(|size| size.demand * (1.0 - CHANGE + 2.0 * CHANGE * fraction(&mut random)))
            .collect();
        let duals = Cutting::new(sizes, &demand).duals();
        sum.iter_mut().zip(duals).for_each(|(sum, dual)| *sum += dual);
    }
    for (size, sum) in sizes.iter_mut().zip(sum) {
        let price = (sum / CHANGED as f64 * f64::from(GPU)) as u32;
        // Within rounding of a whole GPU is a whole GPU.
        size.price = if price + 1000 >= GPU { GPU } else { price };
    }
}

/// A number from 0 to 1 of a fixed sequence (splitmix64).
fn fraction(state: &mut u64) -> f64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1u64 << 53) as f64
}

/// The fewest GPUs for a demand, by column generation: a column is a way to cut one GPU.
struct Cutting<'a> {
    sizes: &'a [Priced],
    /// Row i of the inverse of the basis.
    inverse: Vec<Vec<f64>>,
    /// GPUs that each column of the basis costs: 1, or 0 where a size is cut more than asked.
    cost: Vec<f64>,
    /// How often each column of the basis is used.
    used: Vec<f64>,
}

impl<'a> Cutting<'a> {
    /// Begins with every GPU cut into one size only.
    fn new(sizes: &'a [Priced], demand: &[f64]) -> Self {
        let rows = sizes.len();
        let per_gpu = |row: usize| (STEPS / sizes[row].steps) as f64;
        let inverse = (0..rows).map(|row| {
            (0..rows).map(|at| if at == row { 1.0 / per_gpu(row) } else { 0.0 }).collect()
        });
        Self {
            sizes,
            inverse: inverse.collect(),
            cost: vec![1.0; rows],
            used: (0..rows).map(|row| demand[row] / per_gpu(row)).collect(),
        }
    }

    fn duals(mut self) -> Vec<f64> {
        for _ in 0..MOST_PIVOTS {
            let duals = self.current();
            let (column, cost) = match duals.iter().position(|dual| *dual < -NEARLY_ZERO) {
                Some(row) => (self.surplus(row), 0.0),
                None => match self.best_cut(&duals) {
                    Some(cut) => (cut, 1.0),
                    None => break,
                },
            };
            if !self.enter(&column, cost) {
                break;
            }
        }
        self.current().into_iter().map(|dual| dual.max(0.0)).collect()
    }

    fn current(&self) -> Vec<f64> {
        let rows = 0..self.sizes.len();
        rows.clone()
            .map(|at| rows.clone().map(|row| self.cost[row] * self.inverse[row][at]).sum())
            .collect()
    }

    fn surplus(&self, row: usize) -> Vec<f64> {
        (0..self.sizes.len()).map(|at| if at == row { -1.0 } else { 0.0 }).collect()
    }

    /// The cut that is worth most at these prices, if it is worth more than the GPU.
    fn best_cut(&self, duals: &[f64]) -> Option<Vec<f64>> {
        let mut best = [0.0f64; HOLES];
        let mut last = [usize::MAX; HOLES];
        for hole in 1..HOLES {
            best[hole] = best[hole - 1];
            for (row, size) in
                self.sizes.iter().enumerate().take_while(|(_, size)| size.steps <= hole)
            {
                let value = best[hole - size.steps] + duals[row];
                if value > best[hole] + 1e-12 {
                    (best[hole], last[hole]) = (value, row);
                }
            }
        }
        if best[STEPS] <= 1.0 + 1e-7 {
            return None;
        }
        let mut cut = vec![0.0; self.sizes.len()];
        let mut hole = STEPS;
        while hole > 0 {
            match last[hole] {
                usize::MAX => hole -= 1,
                row => {
                    cut[row] += 1.0;
                    hole -= self.sizes[row].steps;
                }
            }
        }
        Some(cut)
    }

    /// One pivot. False if nothing limits the column, which only rounding could bring about.
    fn enter(&mut self, column: &[f64], cost: f64) -> bool {
        let dot = |row: &Vec<f64>| row.iter().zip(column).map(|(a, b)| a * b).sum::<f64>();
        let change: Vec<f64> = self.inverse.iter().map(dot).collect();
        let mut leaving: Option<(f64, usize)> = None;
        for (row, change) in change.iter().enumerate().filter(|(_, change)| **change > NEARLY_ZERO)
        {
            let limit = self.used[row] / change;
            if leaving.is_none_or(|(least, _)| limit < least - 1e-12) {
                leaving = Some((limit, row));
            }
        }
        let Some((amount, leaves)) = leaving else { return false };
        let pivot = self.inverse[leaves].clone();
        let by = change[leaves];
        for row in (0..self.sizes.len()).filter(|row| *row != leaves) {
            self.used[row] -= amount * change[row];
            let factor = change[row] / by;
            self.inverse[row]
                .iter_mut()
                .zip(&pivot)
                .for_each(|(value, pivot)| *value -= factor * pivot);
        }
        self.inverse[leaves].iter_mut().for_each(|value| *value /= by);
        self.used[leaves] = amount;
        self.cost[leaves] = cost;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fragmentation::shape::Shape;

    fn priced(shares: &[(u16, u64)]) -> Vec<(usize, u32)> {
        let mix = Mix::given(
            shares.iter().map(|(milli, weight)| (Shape::of_share(1000, 1024, *milli), *weight)),
        );
        Prices::of(&mix).sizes().iter().map(|size| (size.steps, size.price)).collect()
    }

    #[test]
    fn a_size_that_leaves_room_for_nothing_costs_a_gpu() {
        assert_eq!(priced(&[(810, 5), (1000, 1)]), [(81, GPU), (100, GPU)]);
    }

    #[test]
    fn sizes_that_go_twice_cost_half() {
        assert_eq!(priced(&[(470, 5), (1000, 1)]), [(47, GPU / 2), (100, GPU)]);
    }

    #[test]
    fn what_fits_into_plentiful_leftovers_costs_nothing() {
        assert_eq!(priced(&[(160, 1), (810, 20)]), [(16, 0), (81, GPU)]);
    }

    #[test]
    fn no_cut_is_worth_more_than_a_gpu_and_larger_sizes_cost_no_less() {
        let prices = priced(&[
            (110, 3),
            (230, 20),
            (320, 50),
            (470, 90),
            (550, 10),
            (650, 40),
            (810, 100),
            (1000, 300),
        ]);
        assert!(prices.windows(2).all(|pair| pair[0].1 <= pair[1].1), "{prices:?}");
        let mut best = [0u32; HOLES];
        for hole in 1..HOLES {
            let cuts = prices.iter().filter(|(steps, _)| *steps <= hole);
            best[hole] = cuts
                .map(|(steps, price)| best[hole - steps] + price)
                .max()
                .unwrap_or(0)
                .max(best[hole - 1]);
        }
        // Prices are rounded to a whole GPU from 1000 millionths below.
        assert!(best[STEPS] <= GPU + 1000, "{}", best[STEPS]);
    }

    #[test]
    fn a_size_nobody_asked_for_costs_what_the_next_larger_does() {
        let mix = Mix::given([(Shape::of_share(1, 1, 470), 1), (Shape::of_share(1, 1, 1000), 1)]);
        assert_eq!(Prices::of(&mix).of_share(400), GPU / 2);
        assert_eq!(Prices::of(&mix).of_share(480), GPU);
        assert_eq!(Prices::default().of_share(10), GPU);
    }
}
