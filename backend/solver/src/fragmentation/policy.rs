//! How a host is chosen among those that can take a shape: six ways to count the cost.

use super::confined::{ByModel, Confined};
use super::fgd::{self, Fragmentation};
use super::guards::{Guards, Lost, Places};
use super::host_state::HostState;
use super::mix::Mix;
use super::prices::Prices;
use super::search::Scarcity;
use super::shape::{Shape, WHOLE};
use super::worth::{Sums, Worth};

/// The lowest cost wins; ties go to the lowest host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Policy {
    /// Where the host's room falls least in worth to the mix, and what is scarce is kept.
    Default,
    /// The host that is left least fragmented, by the published score.
    Fgd,
    /// The first host with room.
    FirstFit,
    /// The host that is left with least CPU and GPU, as parts of the largest host's.
    BestFit,
    /// The host whose free room points least in the direction of the demand.
    DotProduct,
    /// GPUs in use before idle ones, idle ones of hosts in use before idle hosts.
    Packing,
}

impl Policy {
    pub const ALL: [(&'static str, Policy); 6] = [
        ("default", Policy::Default),
        ("fgd", Policy::Fgd),
        ("first_fit", Policy::FirstFit),
        ("best_fit", Policy::BestFit),
        ("dot_product", Policy::DotProduct),
        ("packing", Policy::Packing),
    ];

    /// Whether it looks at the mix of shapes.
    pub fn knows_the_mix(self) -> bool {
        matches!(self, Policy::Default | Policy::Fgd)
    }
}

/// A policy, made ready for one mix and one fleet.
#[derive(Clone, Debug)]
pub struct Scoring {
    policy: Policy,
    /// The most that any host has of each.
    largest: Largest,
    pub prices: Prices,
    pub worth: Worth,
    pub guards: Guards,
    pub confined: Confined,
    fragmentation: Fragmentation,
}

#[derive(Clone, Copy, Debug)]
pub struct Largest {
    pub cpu_millis: u32,
    pub memory_mib: u32,
    pub gpu_millis: u32,
    /// The models that hosts have, by bit.
    pub models: u64,
}

/// What a shape costs on a host, apart from what is scarce in the whole fleet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cost {
    pub cost: i64,
    pub lost: Lost,
    /// Which hole is taken (see `HostState::ways`).
    pub way: u8,
}

/// One thousand-millionth of a GPU, as a cost. The steps between tell apart what is worth the same:
/// the less CPU is left, the better.
pub const STEP: i64 = 1 << 12;
const CPU_STEP: u32 = 128;

impl Scoring {
    pub fn new(policy: Policy, mix: &Mix, largest: Largest) -> Self {
        let none = Mix::default();
        let of_interest = if policy == Policy::Default { mix } else { &none };
        let prices = Prices::of(of_interest);
        Self {
            policy,
            largest,
            worth: Worth::of(of_interest, &prices),
            guards: Guards::of(of_interest, &prices),
            confined: Confined::of(of_interest, &prices, largest.models),
            fragmentation: Fragmentation::of(if policy == Policy::Fgd { mix } else { &none }),
            prices,
        }
    }

    /// What is kept with a state, so that costs on it are quickly known.
    pub fn measure(&self, state: &HostState) -> Measured {
        let sums = self.worth.sums(state);
        let level = match self.policy {
            Policy::Default => self.worth.of_sums(&sums, state),
            Policy::Fgd => self.fragmentation.of_state(state),
            _ => 0,
        };
        Measured { sums, level }
    }

    /// The cheapest way to take a shape; none if it does not fit.
    pub fn cost(&self, shape: &Shape, state: &HostState, measured: &Measured) -> Option<Cost> {
        if !state.fits(shape) {
            return None;
        }
        state.ways(shape).map(|way| self.cost_of_way(shape, state, measured, way)).min()
    }

    /// The same, if a share has to come from the smallest hole that has it.
    pub fn cost_of_tightest(
        &self,
        shape: &Shape,
        state: &HostState,
        measured: &Measured,
    ) -> Option<Cost> {
        let way = state.fits(shape).then(|| state.ways(shape).next())??;
        Some(self.cost_of_way(shape, state, measured, way))
    }

    /// What is scarce just now, for one shape, in a fleet that has these places and this much left.
    pub fn scarcity(&self, shape: &Shape, places: &Places, left: &ByModel) -> Scarcity {
        Scarcity {
            places: self.guards.costs(shape, places, left.iter().sum()),
            models: self.confined.costs(shape, left),
            price: i64::from(shape.gpus) * i64::from(self.prices.of_share(shape.milli)),
        }
    }

    fn cost_of_way(
        &self,
        shape: &Shape,
        state: &HostState,
        measured: &Measured,
        way: usize,
    ) -> Cost {
        let mut lost = 0;
        let cost = match self.policy {
            Policy::Default => {
                let loss = measured.level - self.worth.after(&measured.sums, state, shape, way);
                lost = self.guards.lost(state, shape, way);
                loss * STEP
                    + i64::from((state.cpu_millis - shape.cpu_millis) / CPU_STEP).min(STEP - 1)
            }
            Policy::Fgd => {
                -fgd::score(measured.level, self.fragmentation.of_state(&state.after(shape, way)))
            }
            Policy::FirstFit => 0,
            Policy::BestFit => self.left_over(&state.after(shape, way)),
            Policy::DotProduct => self.alignment(shape, state),
            Policy::Packing => unpacked(shape, state, way),
        };
        Cost { cost, lost, way: way as u8 }
    }

    fn left_over(&self, after: &HostState) -> i64 {
        let part = |left: u32, most: u32| i64::from(left) * 1_000_000 / i64::from(most.max(1));
        part(after.cpu_millis, self.largest.cpu_millis)
            + part(after.idle_millis(), self.largest.gpu_millis)
    }

    fn alignment(&self, shape: &Shape, state: &HostState) -> i64 {
        let part = |amount: u32, most: u32| i64::from(amount) * 100_000 / i64::from(most.max(1));
        let Largest { cpu_millis, memory_mib, gpu_millis, .. } = self.largest;
        part(shape.cpu_millis, cpu_millis) * part(state.cpu_millis, cpu_millis)
            + part(shape.memory_mib, memory_mib) * part(state.memory_mib, memory_mib)
            + part(shape.gpu_millis(), gpu_millis) * part(state.idle_millis(), gpu_millis)
    }
}

/// What a `Scoring` keeps with each state.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    pub sums: Sums,
    /// Worth, or fragmentation.
    level: i64,
}

impl Measured {
    /// What the whole host is worth, by the policy that counts worth.
    pub fn worth(&self) -> i64 {
        self.level
    }
}

fn unpacked(shape: &Shape, state: &HostState, way: usize) -> i64 {
    let idle_host = state.whole_gpus() == state.holes().len();
    let idle_gpu = shape.gpus > 0 && state.holes()[way] == WHOLE;
    i64::from(idle_gpu) + i64::from(idle_host && !state.holes().is_empty())
}
