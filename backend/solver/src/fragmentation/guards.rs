//! Keeps room for VMs that need several whole GPUs on one host.
//!
//! Such VMs are rare and cannot wait: once every large host is broken up, none of them fits. A
//! guard watches how many of one kind the fleet could still take, against how many are to come
//! until the fleet is full. While there are hardly enough, a placement that destroys such a place
//! pays for it. Kinds differ by GPUs, models, and by CPU and memory, because a host may be large
//! enough for one and not for another.

use super::host_state::HostState;
use super::mix::Mix;
use super::prices::{GPU, Prices};
use super::shape::Shape;
use super::worth::GPU_WORTH;

/// Bits of a signature.
pub const MOST_GUARDS: usize = 8;

/// What destroying a place costs at most, in thousandths of the GPUs of the place.
const PRICE_PERMILLE: i64 = 100;

/// Kinds whose CPU differs by less than an eighth are one.
const ALIKE: u32 = 8;

/// Counts of VMs are in thousandths, so that part of a VM can be expected.
const ONE: u64 = 1000;

/// Which guards lose a place, by bit.
pub type Lost = u8;

#[derive(Clone, Debug, Default)]
pub struct Guards {
    guards: Vec<Guard>,
}

#[derive(Clone, Copy, Debug)]
struct Guard {
    /// What a place has to have.
    shape: Shape,
    /// VMs (in millionths) that come while one GPU is filled.
    rate: u64,
}

/// What the fleet has: places for each guard.
pub type Places = [i64; MOST_GUARDS];

/// What losing a place for each guard costs just now.
pub type Costs = [i64; MOST_GUARDS];

impl Guards {
    pub fn of(mix: &Mix, prices: &Prices) -> Self {
        let filled = |(shape, weight): &(Shape, u64)| {
            u128::from(*weight) * u128::from(shape.gpus) * u128::from(prices.of_share(shape.milli))
        };
        let filled: u128 =
            mix.entries().iter().filter(|(shape, _)| shape.gpus > 0).map(filled).sum();
        let mut guards: Vec<Guard> =
            kinds(mix).iter().map(|kind| guard(mix, kind, filled)).collect();
        guards.sort_by_key(|guard| std::cmp::Reverse(guard.rate * u64::from(guard.shape.gpus)));
        guards.truncate(MOST_GUARDS);
        Self { guards }
    }

    /// Adds `hosts` times the places that a host in this state has.
    pub fn count(&self, places: &mut Places, state: &HostState, hosts: i64) {
        for (places, guard) in places.iter_mut().zip(&self.guards) {
            *places += hosts * guard.places(state);
        }
    }

    /// The guards that have fewer places when a shape was taken in one of its ways.
    pub fn lost(&self, state: &HostState, shape: &Shape, way: usize) -> Lost {
        if self.guards.is_empty() || state.whole_gpus() < 2 {
            return 0;
        }
        let after = state.after(shape, way);
        let lost = |guard: &Guard| guard.places(state) > guard.places(&after);
        self.guards.iter().enumerate().map(|(bit, guard)| u8::from(lost(guard)) << bit).sum()
    }

    /// What a shape pays for each guard's place. `free`: what is left of the fleet, in millionths
    /// of a GPU.
    pub fn costs(&self, shape: &Shape, places: &Places, free: i64) -> Costs {
        let mut costs = Costs::default();
        for ((cost, guard), places) in costs.iter_mut().zip(&self.guards).zip(places) {
            if !guard.is_for(shape) {
                *cost = guard.cost(*places, free);
            }
        }
        costs
    }

    /// The dearest of the places lost.
    pub fn dearest(costs: &Costs, lost: Lost) -> i64 {
        (0..MOST_GUARDS).filter(|bit| lost >> bit & 1 == 1).map(|bit| costs[bit]).max().unwrap_or(0)
    }
}

impl Guard {
    fn places(&self, state: &HostState) -> i64 {
        let fed =
            state.cpu_millis >= self.shape.cpu_millis && state.memory_mib >= self.shape.memory_mib;
        let places = state.whole_gpus() / usize::from(self.shape.gpus);
        if fed && self.shape.runs_on(state.model) { places as i64 } else { 0 }
    }

    /// Those whom the place is kept for may have it.
    fn is_for(&self, shape: &Shape) -> bool {
        let kept = &self.shape;
        shape.gpus == kept.gpus
            && shape.cpu_millis >= kept.cpu_millis
            && shape.memory_mib >= kept.memory_mib
    }

    /// Full while places are fewer than the VMs to come, with a standard deviation and one more;
    /// nothing from twice as many on.
    fn cost(&self, places: i64, free: i64) -> i64 {
        let free_millis = free.max(0) as u64 * ONE / u64::from(GPU);
        let expected = free_millis * self.rate / 1_000_000;
        let wanted = (expected + (expected * ONE).isqrt() + ONE) as i64;
        let scarce = (2 * wanted - places * ONE as i64).clamp(0, wanted);
        let full = GPU_WORTH / 1000 * PRICE_PERMILLE * i64::from(self.shape.gpus);
        full * scarce / wanted
    }
}

/// Shapes of several GPUs in groups that are nearly alike.
fn kinds(mix: &Mix) -> Vec<Vec<(Shape, u64)>> {
    let mut several: Vec<(Shape, u64)> =
        mix.entries().iter().filter(|(shape, _)| shape.gpus > 1).copied().collect();
    several.sort_unstable_by_key(|(shape, _)| {
        (shape.gpus, shape.models, shape.cpu_millis, shape.memory_mib)
    });
    let alike = |a: &(Shape, u64), b: &(Shape, u64)| {
        a.0.gpus == b.0.gpus
            && a.0.models == b.0.models
            && b.0.cpu_millis - a.0.cpu_millis <= a.0.cpu_millis / ALIKE
    };
    several.chunk_by(alike).map(<[_]>::to_vec).collect()
}

/// A guard stands for its kind and for all larger ones, which need the same places.
fn guard(mix: &Mix, kind: &[(Shape, u64)], filled: u128) -> Guard {
    let commonest = kind.iter().max_by_key(|(_, weight)| *weight).expect("a kind has a shape").0;
    let least_cpu = kind.iter().map(|(shape, _)| shape.cpu_millis).min().unwrap_or(0);
    let least_memory = kind.iter().map(|(shape, _)| shape.memory_mib).min().unwrap_or(0);
    let needs_it = |shape: &Shape| {
        shape.gpus == commonest.gpus
            && shape.cpu_millis >= least_cpu
            && shape.memory_mib >= least_memory
            && shape.confined_to(commonest.models)
    };
    let weight: u128 = mix
        .entries()
        .iter()
        .filter(|(shape, _)| needs_it(shape))
        .map(|entry| u128::from(entry.1))
        .sum();
    Guard { shape: commonest, rate: (weight * u128::from(GPU) * 1_000_000 / filled.max(1)) as u64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guards() -> Guards {
        let mix = Mix::given([
            (Shape::of_whole(8000, 1024, 1), 92),
            (Shape::of_whole(64_000, 1024, 8), 1),
            (Shape::of_whole(120_000, 1024, 8), 1),
        ]);
        Guards::of(&mix, &Prices::of(&mix))
    }

    const ONE_GPU: Shape =
        Shape { cpu_millis: 8000, memory_mib: 1024, gpus: 1, milli: 1000, models: u64::MAX };

    #[test]
    fn breaking_up_the_last_places_costs_and_plenty_costs_nothing() {
        let guards = guards();
        // 1080 GPUs are filled by ten of either large kind.
        let free = 1080 * i64::from(GPU);
        let cost = |places: i64| guards.costs(&ONE_GPU, &[places; MOST_GUARDS], free);
        assert!(cost(10)[0] > 0 && cost(60)[0] == 0, "{:?}", cost(10));
        assert!(cost(10)[0] >= cost(40)[0]);
        assert!(cost(15)[1] > cost(22)[1], "the larger kind is expected half as often");
    }

    #[test]
    fn a_place_counts_for_those_it_is_large_enough_for() {
        let guards = guards();
        let mut places = Places::default();
        guards.count(&mut places, &HostState::new(96_000, 4096, 0, &[1000; 8]), 3);
        guards.count(&mut places, &HostState::new(128_000, 4096, 0, &[1000; 8]), 2);
        assert_eq!(places[..2], [5, 2]);
        let whole = HostState::new(128_000, 4096, 0, &[1000; 8]);
        assert_eq!(guards.lost(&whole, &ONE_GPU, 0), 0b11);
        assert_eq!(guards.lost(&whole, &Shape::without_gpus(20_000, 0), 0), 0b10);
    }

    #[test]
    fn those_whom_a_place_is_kept_for_do_not_pay() {
        let costs =
            guards().costs(&Shape::of_whole(120_000, 1024, 8), &Places::default(), 1_000_000_000);
        assert_eq!(costs, Costs::default());
    }
}
