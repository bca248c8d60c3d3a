//! What a hole in a GPU is worth, and what CPU and memory its filling would need.
//!
//! A hole is worth the dearest set of shares that fits into it. How much CPU and memory that set
//! needs is not one number: shares of one size come with little and with much. The mix is cut into
//! `FUTURES` bands of equal mass, from the leanest to the hungriest, and each is a future of its
//! own. VMs without GPUs feed on the same hosts; the hungrier the future, the more of them.

use super::mix::Mix;
use super::prices::{GPU, HOLES, Prices, steps, steps_within};

/// Bands of CPU and memory need.
pub const FUTURES: usize = 8;

/// An amount for each future.
pub type ByFuture = [u32; FUTURES];

#[derive(Clone, Copy, Debug, Default)]
pub struct Filling {
    /// Millionths of a GPU.
    pub value: u32,
    pub cpu_millis: ByFuture,
    pub memory_mib: ByFuture,
}

/// The filling of each hole.
#[derive(Clone, Debug)]
pub struct Fillings {
    by_steps: Vec<Filling>,
}

impl Fillings {
    pub fn of(mix: &Mix, prices: &Prices) -> Self {
        let needs: Vec<Filling> =
            prices.sizes().iter().map(|size| need_of_size(mix, size.steps)).collect();
        let beside = Beside::of(mix, prices);
        let last = dearest_last(prices);
        let mut by_steps = vec![Filling::default(); HOLES];
        for hole in 1..HOLES {
            by_steps[hole] = match last[hole] {
                None => by_steps[hole - 1],
                Some(row) => {
                    let size = prices.sizes()[row];
                    by_steps[hole - size.steps].with(&needs[row], size.price)
                }
            };
        }
        by_steps.iter_mut().for_each(|filling| beside.add_to(filling));
        Self { by_steps }
    }

    pub fn of_hole(&self, hole: u16) -> &Filling {
        &self.by_steps[steps_within(hole)]
    }
}

impl Filling {
    fn with(mut self, need: &Filling, price: u32) -> Self {
        self.value += price;
        for future in 0..FUTURES {
            self.cpu_millis[future] =
                self.cpu_millis[future].saturating_add(need.cpu_millis[future]);
            self.memory_mib[future] =
                self.memory_mib[future].saturating_add(need.memory_mib[future]);
        }
        self
    }
}

/// For each hole the share that its dearest set ends with; among equals the one that comes most.
fn dearest_last(prices: &Prices) -> [Option<usize>; HOLES] {
    let mut best = [0u32; HOLES];
    let mut last: [Option<usize>; HOLES] = [None; HOLES];
    for hole in 1..HOLES {
        best[hole] = best[hole - 1];
        let sizes = prices.sizes().iter().enumerate();
        for (row, size) in
            sizes.take_while(|(_, size)| size.steps <= hole).filter(|(_, size)| size.price > 0)
        {
            let value = best[hole - size.steps] + size.price;
            let commoner =
                last[hole].is_some_and(|other| prices.sizes()[other].demand < size.demand);
            if value > best[hole] || value == best[hole] && commoner {
                (best[hole], last[hole]) = (value, Some(row));
            }
        }
    }
    last
}

/// What a GPU cut to this size needs in each future.
fn need_of_size(mix: &Mix, size: usize) -> Filling {
    let of_size =
        mix.entries().iter().filter(|(shape, _)| shape.gpus > 0 && steps(shape.milli) == size);
    let mut cpu = Vec::new();
    let mut memory = Vec::new();
    for (shape, weight) in of_size {
        let gpus = u32::from(shape.gpus);
        cpu.push((shape.cpu_millis / gpus, weight * u64::from(gpus)));
        memory.push((shape.memory_mib / gpus, weight * u64::from(gpus)));
    }
    Filling { value: 0, cpu_millis: bands(cpu), memory_mib: bands(memory) }
}

/// Means of the bands of equal mass, rising.
fn bands(mut amounts: Vec<(u32, u64)>) -> ByFuture {
    amounts.sort_unstable();
    let mass: u128 = amounts.iter().map(|(_, weight)| u128::from(*weight)).sum();
    let mut means = ByFuture::default();
    if mass == 0 {
        return means;
    }
    for (band, mean) in means.iter_mut().enumerate() {
        // Everything is scaled by FUTURES, so that the limits of bands are integers.
        let (from, to) = (mass * band as u128, mass * (band as u128 + 1));
        let (mut passed, mut sum) = (0u128, 0u128);
        for (amount, weight) in &amounts {
            let next = passed + u128::from(*weight) * FUTURES as u128;
            sum += u128::from(*amount) * next.min(to).saturating_sub(passed.max(from));
            passed = next;
        }
        *mean = (sum / mass) as u32;
    }
    means
}

/// What VMs without GPUs take, by GPU that is taken meanwhile.
struct Beside {
    cpu_millis: u128,
    memory_mib: u128,
}

impl Beside {
    fn of(mix: &Mix, prices: &Prices) -> Self {
        let (mut cpu, mut memory, mut gpus) = (0u128, 0u128, 0u128);
        for (shape, weight) in mix.entries() {
            let weight = u128::from(*weight);
            if shape.gpus == 0 {
                cpu += weight * u128::from(shape.cpu_millis);
                memory += weight * u128::from(shape.memory_mib);
            } else {
                gpus += weight * u128::from(shape.gpus) * u128::from(prices.of_share(shape.milli));
            }
        }
        let by_gpu = |sum: u128| (sum * u128::from(GPU)).checked_div(gpus).unwrap_or(0);
        Self { cpu_millis: by_gpu(cpu), memory_mib: by_gpu(memory) }
    }

    /// From next to nothing in the leanest future to twice the mean in the hungriest.
    fn add_to(&self, filling: &mut Filling) {
        for future in 0..FUTURES {
            let share = u128::from(filling.value) * (2 * future as u128 + 1);
            let scaled =
                |amount: u128| (amount * share / (u128::from(GPU) * FUTURES as u128)) as u32;
            filling.cpu_millis[future] =
                filling.cpu_millis[future].saturating_add(scaled(self.cpu_millis));
            filling.memory_mib[future] =
                filling.memory_mib[future].saturating_add(scaled(self.memory_mib));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fragmentation::shape::Shape;

    fn fillings(entries: &[(Shape, u64)]) -> Fillings {
        let mix = Mix::given(entries.iter().copied());
        Fillings::of(&mix, &Prices::of(&mix))
    }

    #[test]
    fn a_hole_is_worth_what_fits_into_it() {
        let fillings =
            fillings(&[(Shape::of_share(4000, 1024, 500), 1), (Shape::of_whole(8000, 1024, 1), 1)]);
        let values = [490, 500, 999, 1000].map(|hole| fillings.of_hole(hole).value);
        assert_eq!(values, [0, GPU / 2, GPU / 2, GPU]);
    }

    #[test]
    fn lean_and_hungry_futures_need_differently_much() {
        let fillings =
            fillings(&[(Shape::of_whole(2000, 1024, 1), 1), (Shape::of_whole(10_000, 4096, 1), 1)]);
        let whole = fillings.of_hole(1000);
        assert_eq!((whole.cpu_millis[0], whole.cpu_millis[FUTURES - 1]), (2000, 10_000));
        assert_eq!((whole.memory_mib[0], whole.memory_mib[FUTURES - 1]), (1024, 4096));
    }

    #[test]
    fn vms_without_gpus_are_fed_beside_the_filling() {
        let alone = fillings(&[(Shape::of_whole(8000, 1024, 1), 1)]);
        let beside =
            fillings(&[(Shape::of_whole(8000, 1024, 1), 1), (Shape::without_gpus(4000, 0), 1)]);
        let more = |future: usize| {
            beside.of_hole(1000).cpu_millis[future] - alone.of_hole(1000).cpu_millis[future]
        };
        assert_eq!((more(0), more(FUTURES - 1)), (500, 7500));
    }
}
