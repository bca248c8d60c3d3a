//! Keeps models for the VMs that will take no other.
//!
//! For a set of models: what is left of them, against what is to come that is confined to the set,
//! until the fleet is full. The scarcer the set, the more a VM that could run elsewhere pays for
//! taking from it. Sets are those that shapes name, and unions of them, because two sets may each
//! have enough and not enough together.
//!
//! A mix that is learned does not know of the rare VM that has not come yet, and a model that nobody
//! asked for so far is the first to be used up. So for each model of the fleet as much is expected
//! as one large VM takes, on top of what came; the more has come, the less that matters.

use super::mix::Mix;
use super::prices::{GPU, Prices};
use super::shape::{MOST_MODELS, Shape};

/// Sets that are watched; beyond it, unions are left out.
const MOST_SETS: usize = 128;

/// What a GPU of the scarcest set costs those who could go elsewhere, in thousandths of it.
const PRICE_PERMILLE: i64 = 800;

/// GPUs of the VM that is expected for each model although it has not come: a usual server.
const UNSEEN_GPUS: u128 = 8;

/// Millionths of a GPU that are left, by model.
pub type ByModel = [i64; MOST_MODELS];

#[derive(Clone, Debug, Default)]
pub struct Confined {
    sets: Vec<Set>,
}

#[derive(Clone, Copy, Debug)]
struct Set {
    models: u64,
    /// Millionths of all demand that are confined to the set.
    demand: i64,
}

impl Confined {
    /// `fleet`: the models that hosts have.
    pub fn of(mix: &Mix, prices: &Prices, fleet: u64) -> Self {
        let worth = |(shape, weight): &(Shape, u64)| {
            u128::from(*weight) * u128::from(shape.gpus) * u128::from(prices.of_share(shape.milli))
        };
        let unseen = u128::from(mix.latest()) * UNSEEN_GPUS * u128::from(GPU);
        let unseen = |models: u64| u128::from((models & fleet).count_ones()) * unseen;
        let asked: u128 = mix.entries().iter().map(worth).sum::<u128>() + unseen(fleet);
        let demand = |models: u64| {
            let confined = mix
                .entries()
                .iter()
                .filter(|(shape, _)| shape.gpus > 0 && shape.confined_to(models));
            let confined = confined.map(worth).sum::<u128>() + unseen(models);
            (confined * 1_000_000 / asked.max(1)) as i64
        };
        let singles = if mix.latest() > 0 { fleet } else { 0 };
        Self {
            sets: unions(mix, singles)
                .into_iter()
                .map(|models| Set { models, demand: demand(models) })
                .collect(),
        }
    }

    /// Whether any shape is confined at all.
    pub fn is_empty(&self) -> bool {
        self.sets.is_empty()
    }

    /// What a shape pays on each model, in thousandths of the price of its GPUs.
    pub fn costs(&self, shape: &Shape, left: &ByModel) -> ByModel {
        let mut costs = [0; MOST_MODELS];
        if shape.gpus == 0 {
            return costs;
        }
        let total: i64 = left.iter().sum();
        for set in self.sets.iter().filter(|set| !shape.confined_to(set.models)) {
            let free: i64 = bits(set.models).map(|model| left[model]).sum();
            if free <= 0 {
                continue;
            }
            let to_come = total / 1000 * set.demand / 1000;
            let cost = PRICE_PERMILLE * to_come.clamp(0, free) / free;
            bits(set.models).for_each(|model| costs[model] = costs[model].max(cost));
        }
        costs
    }
}

/// The models of a set.
fn bits(mut set: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let lowest = (set != 0).then(|| set.trailing_zeros() as usize)?;
        set &= set - 1;
        Some(lowest)
    })
}

/// The sets that shapes name, each of these models alone, and all unions, as many as may be;
/// smaller ones first.
fn unions(mix: &Mix, singles: u64) -> Vec<u64> {
    let confined =
        mix.entries().iter().filter(|(shape, _)| shape.gpus > 0 && shape.models != u64::MAX);
    let mut named: Vec<u64> = confined.map(|(shape, _)| shape.models).collect();
    named.extend(bits(singles).map(|model| 1 << model));
    named.sort_unstable();
    named.dedup();
    named.truncate(MOST_SETS);
    let mut sets = named.clone();
    let mut next = 0;
    while next < sets.len() {
        for models in &named {
            let union = sets[next] | models;
            if sets.len() < MOST_SETS && !sets.contains(&union) {
                sets.push(union);
            }
        }
        next += 1;
    }
    sets
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(amounts: &[i64]) -> ByModel {
        std::array::from_fn(|model| amounts.get(model).map_or(0, |gpus| gpus * 1_000_000))
    }

    #[test]
    fn the_scarcer_a_model_the_more_others_pay_for_it() {
        let any = Shape::of_whole(1, 1, 1);
        let mix = Mix::given([(any, 3), (any.on_models(0b01), 1)]);
        let confined = Confined::of(&mix, &Prices::of(&mix), 0b111);
        let cost = |gpus: i64| confined.costs(&any, &left(&[gpus, 100 - gpus]))[0];
        assert_eq!(cost(25), PRICE_PERMILLE);
        assert!(cost(50) < cost(25) && cost(50) > cost(90));
        assert_eq!(confined.costs(&any, &left(&[25, 75]))[1], 0);
        assert_eq!(confined.costs(&any.on_models(0b01), &left(&[25, 75])), [0; MOST_MODELS]);
    }

    #[test]
    fn two_sets_may_be_scarce_only_together() {
        let any = Shape::of_whole(1, 1, 1);
        let mix = Mix::given([(any, 40), (any.on_models(0b001), 10), (any.on_models(0b011), 50)]);
        let confined = Confined::of(&mix, &Prices::of(&mix), 0b111);
        // Model 0 alone has three times what is confined to it; with model 1 there is just enough.
        let costs = confined.costs(&any, &left(&[30, 30, 40]));
        assert_eq!(costs[..3], [PRICE_PERMILLE, PRICE_PERMILLE, 0]);
    }

    #[test]
    fn a_model_that_nobody_asked_for_yet_is_kept_until_enough_have_come() {
        let any = Shape::of_whole(1, 1, 1);
        let after = |arrivals: usize| {
            let mut mix = Mix::default();
            (0..arrivals).for_each(|_| mix.observe(any));
            let confined = Confined::of(&mix, &Prices::of(&mix), 0b11);
            confined.costs(&any, &left(&[10, 990]))
        };
        assert!(after(8)[0] > after(1000)[0] && after(1000)[0] > after(100_000)[0]);
        assert!(after(1000)[0] > 2 * after(1000)[1], "the scarcer model is kept first");
        let given = Mix::given([(any, 8)]);
        let confined = Confined::of(&given, &Prices::of(&given), 0b11);
        assert_eq!(confined.costs(&any, &left(&[10, 990])), [0; MOST_MODELS], "all is known");
    }
}
