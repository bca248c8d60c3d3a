//! What a host's free room is worth to the VMs that will come, in thousand-millionths of a GPU.
//!
//! Two parts. What the dearest filling of its holes is worth, times the part of it that the free
//! CPU and memory could feed, as the mean over the futures of `fillings`. And, with less weight,
//! what the host could give to each known shape if only that shape came (`givable`), which keeps
//! room in one piece.

use super::fillings::{ByFuture, FUTURES, Fillings};
use super::givable::{Givable, Given};
use super::host_state::HostState;
use super::mix::Mix;
use super::prices::Prices;
use super::shape::Shape;

/// One GPU.
pub const GPU_WORTH: i64 = 1_000_000_000;

/// Weight of what the host could give, in thousandths of the first part.
const GIVABLE_PERMILLE: i64 = 150;

/// A fed part of 1.
const ALL: u64 = 1 << 16;

#[derive(Clone, Debug)]
pub struct Worth {
    fillings: Fillings,
    givable: Givable,
}

/// Sums over the holes of one host, from which the sums after a placement are one step away.
#[derive(Clone, Copy, Debug)]
pub struct Sums {
    /// Millionths of a GPU.
    pub value: u32,
    cpu_millis: ByFuture,
    memory_mib: ByFuture,
    given: Given,
}

impl Worth {
    pub fn of(mix: &Mix, prices: &Prices) -> Self {
        Self { fillings: Fillings::of(mix, prices), givable: Givable::of(mix) }
    }

    pub fn sums(&self, state: &HostState) -> Sums {
        let mut sums = Sums {
            value: 0,
            cpu_millis: ByFuture::default(),
            memory_mib: ByFuture::default(),
            given: Given::default(),
        };
        state.holes().iter().for_each(|hole| self.add(&mut sums, *hole));
        sums
    }

    /// What a host in this state is worth.
    #[cfg(test)]
    fn of_state(&self, state: &HostState) -> i64 {
        self.of_sums(&self.sums(state), state)
    }

    /// `sums` being those of `state`.
    pub fn of_sums(&self, sums: &Sums, state: &HostState) -> i64 {
        self.weigh(sums, state.cpu_millis, state.memory_mib, state.whole_gpus(), state.model)
    }

    /// What the host would be worth after taking a shape in one of its ways.
    pub fn after(&self, sums: &Sums, state: &HostState, shape: &Shape, way: usize) -> i64 {
        let mut left = *sums;
        let mut whole = state.whole_gpus();
        if shape.gpus > 0 {
            let hole = state.holes()[way];
            for _ in 0..shape.gpus {
                self.remove(&mut left, hole);
                self.add(&mut left, hole - shape.milli);
            }
            if hole == super::shape::WHOLE {
                whole -= usize::from(shape.gpus);
            }
        }
        let (cpu, memory) =
            (state.cpu_millis - shape.cpu_millis, state.memory_mib - shape.memory_mib);
        self.weigh(&left, cpu, memory, whole, state.model)
    }

    fn weigh(&self, sums: &Sums, cpu: u32, memory: u32, whole: usize, model: u8) -> i64 {
        let fed: u64 = (0..FUTURES)
            .map(|future| fed(cpu, memory, sums.cpu_millis[future], sums.memory_mib[future]))
            .sum();
        let filled = (u64::from(sums.value) * 1000).wrapping_mul(fed) / (ALL * FUTURES as u64);
        filled as i64
            + self.givable.worth(&sums.given, cpu, memory, whole, model) * GIVABLE_PERMILLE / 1000
    }

    fn add(&self, sums: &mut Sums, hole: u16) {
        let filling = self.fillings.of_hole(hole);
        sums.value = sums.value.wrapping_add(filling.value);
        for future in 0..FUTURES {
            sums.cpu_millis[future] =
                sums.cpu_millis[future].wrapping_add(filling.cpu_millis[future]);
            sums.memory_mib[future] =
                sums.memory_mib[future].wrapping_add(filling.memory_mib[future]);
        }
        self.givable.add(&mut sums.given, hole);
    }

    fn remove(&self, sums: &mut Sums, hole: u16) {
        let filling = self.fillings.of_hole(hole);
        sums.value = sums.value.wrapping_sub(filling.value);
        for future in 0..FUTURES {
            sums.cpu_millis[future] =
                sums.cpu_millis[future].wrapping_sub(filling.cpu_millis[future]);
            sums.memory_mib[future] =
                sums.memory_mib[future].wrapping_sub(filling.memory_mib[future]);
        }
        self.givable.remove(&mut sums.given, hole);
    }
}

/// The part of a filling that can be fed: the scarcer of CPU and memory decides.
fn fed(cpu: u32, memory: u32, cpu_needed: u32, memory_needed: u32) -> u64 {
    if cpu >= cpu_needed && memory >= memory_needed {
        return ALL;
    }
    let (cpu, memory) = (u64::from(cpu), u64::from(memory));
    let (cpu_needed, memory_needed) = (u64::from(cpu_needed), u64::from(memory_needed));
    // The smaller of two fractions, by one division.
    if cpu.wrapping_mul(memory_needed) < memory.wrapping_mul(cpu_needed) {
        cpu.wrapping_mul(ALL) / cpu_needed
    } else {
        memory.wrapping_mul(ALL) / memory_needed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn worth() -> Worth {
        let mix = Mix::given([
            (Shape::of_whole(8000, 32_768, 1), 50),
            (Shape::of_share(3000, 6144, 810), 15),
            (Shape::of_share(10_000, 40_960, 470), 10),
            (Shape::of_share(4000, 16_384, 230), 5),
            (Shape::of_whole(64_000, 262_144, 8), 1),
            (Shape::without_gpus(12_000, 49_152), 10),
        ]);
        Worth::of(&mix, &Prices::of(&mix))
    }

    #[test]
    fn more_cpu_or_memory_is_never_worth_less() {
        let worth = worth();
        for holes in [&[1000; 8][..], &[190, 350, 530, 1000], &[60, 470], &[]] {
            let of = |cpu: u32, memory: u32| {
                worth.of_state(&HostState::new(cpu * 1000, memory * 1024, 0, holes))
            };
            for amount in 0..128 {
                assert!(of(amount, 256) <= of(amount + 1, 256));
                assert!(of(64, 4 * amount) <= of(64, 4 * amount + 4));
            }
        }
    }

    #[test]
    fn a_fed_gpu_is_worth_more_than_a_starving_one_and_no_gpu_is_worth_nothing() {
        let worth = worth();
        let of = |cpu: u32, holes: &[u16]| worth.of_state(&HostState::new(cpu, 1 << 20, 0, holes));
        assert!(of(64_000, &[1000]) > of(4000, &[1000]));
        assert!(of(64_000, &[1000]) > GPU_WORTH / 2);
        assert_eq!(of(64_000, &[]), 0);
    }

    #[test]
    fn the_step_to_the_state_after_agrees_with_a_fresh_look_at_it() {
        let worth = worth();
        let state = HostState::new(70_000, 300_000, 0, &[60, 190, 470, 530, 810, 1000, 1000, 1000]);
        let sums = worth.sums(&state);
        let shapes = [
            Shape::of_share(3000, 6144, 470),
            Shape::of_share(3000, 6144, 1000),
            Shape::of_whole(10_000, 100_000, 3),
            Shape::without_gpus(12_000, 5000),
        ];
        for shape in shapes {
            for way in state.ways(&shape) {
                assert_eq!(
                    worth.after(&sums, &state, &shape, way),
                    worth.of_state(&state.after(&shape, way))
                );
            }
        }
    }
}
