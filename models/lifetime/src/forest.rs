//! Many trees, each grown on lives drawn with repetition, whose curves are averaged.
//!
//! Names of tenants and images become numbers: how quickly VMs of the name ended, drawn to what is
//! usual where few were seen. Every tree is shown some lives without their names, so that it knows
//! what to make of a newcomer by its shape and hour. Before anything was seen, everybody is judged
//! by a prior that knows nothing but that life is short for some and long for others.

use crate::counts::{Counts, Spans};
use crate::curve::{Class, Curve, EDGES};
use crate::seen::{Life, Traits};
use crate::tree::{Growth, Lessons, Row, Tree};
use std::collections::BTreeMap;

/// How to train.
#[derive(Clone, Copy, Debug)]
pub struct Training {
    pub trees: usize,
    pub depth: usize,
    /// Lives that a tree learns from, at most.
    pub most: usize,
    pub seed: u64,
}

impl Default for Training {
    fn default() -> Self {
        Self { trees: 24, depth: 9, most: 50_000, seed: 1 }
    }
}

#[derive(Clone, Debug)]
pub struct Forest {
    trees: Vec<Tree>,
    tenants: Pace,
    images: Pace,
    prior: Curve,
    seen: usize,
}

/// How quickly VMs of each name ended: the logarithm of ends a span of age.
#[derive(Clone, Debug)]
struct Pace {
    by_name: BTreeMap<String, f32>,
}

/// A share of those alive that ends in every span: half live for half an hour, a tenth for a year.
const PRIOR_HAZARD: f64 = 0.07;
/// Lives that the prior counts for.
const PRIOR_STRENGTH: f64 = 5.0;
/// The first features of a row are names.
const NAMES: usize = 2;
/// Below this many lives nothing is told apart.
const FEWEST: usize = 30;
/// Names that are told apart, of tenants and of images.
const MOST_NAMES: usize = 100_000;
/// Stands for a name that was never seen; below every pace.
const UNSEEN: f32 = -1e6;
/// One life in so many is shown without its tenant, and one without its image.
const HIDDEN: usize = 6;
/// Spans of age at the usual pace that every name starts with.
const USUAL_SPANS: f64 = 40.0;

impl Forest {
    /// Learns from lives; the same lives and seed make the same forest.
    pub fn train(lives: &[Life], training: Training) -> Self {
        let spans: Vec<Spans> = lives.iter().map(Spans::of).collect();
        let prior = Counts::of(&spans).hazards(&[PRIOR_HAZARD; EDGES], PRIOR_STRENGTH);
        let mut forest = Self {
            trees: Vec::new(),
            tenants: Pace::of(lives, &spans, |traits| &traits.tenant),
            images: Pace::of(lives, &spans, |traits| &traits.image),
            prior: Curve::from_hazards(&prior),
            seen: lives.len(),
        };
        if lives.len() < FEWEST {
            return forest;
        }
        let rows: Vec<Row> = lives.iter().map(|life| forest.row(&life.traits)).collect();
        let growth = Growth { depth: training.depth, fewest: 15.0, tried: 5, strength: 5.0 };
        let grow = |number: usize| {
            let mut state = training.seed ^ (number as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let mut draw = move |end: usize| below(&mut state, end);
            let taken = lives.len().min(training.most);
            let (mut shown, mut lived) = (Vec::with_capacity(taken), Vec::with_capacity(taken));
            for _ in 0..taken {
                let life = draw(lives.len());
                let mut row = rows[life];
                for name in &mut row[..NAMES] {
                    *name = if draw(HIDDEN) == 0 { UNSEEN } else { *name };
                }
                shown.push(row);
                lived.push(spans[life]);
            }
            let lessons = Lessons { rows: &shown, lives: &lived };
            Tree::grow(lessons, &prior, growth, &mut draw)
        };
        forest.trees = (0..training.trees).map(grow).collect();
        forest
    }

    /// How long a VM like this lives.
    pub fn predict(&self, traits: &Traits) -> Curve {
        let row = self.row(traits);
        let curves = self.trees.iter().map(|tree| tree.curve(&row).clone());
        Curve::mean(curves).unwrap_or_else(|| self.prior.clone())
    }

    /// The class of what is left at an age, unknown while too little was seen.
    pub fn class(&self, traits: &Traits, age_s: u64) -> Class {
        if self.seen < FEWEST {
            return Class::Unknown;
        }
        self.predict(traits).at_age(age_s).class()
    }

    fn row(&self, traits: &Traits) -> Row {
        [
            self.tenants.at(&traits.tenant),
            self.images.at(&traits.image),
            traits.cpu_millis as f32,
            traits.memory_mib as f32,
            f32::from(traits.hour),
            f32::from(traits.weekday),
            f32::from(traits.priority),
        ]
    }
}

impl Pace {
    fn of(lives: &[Life], spans: &[Spans], name: impl Fn(&Traits) -> &String) -> Self {
        let total = Counts::of(spans);
        let (ended, lived) = ends_and_spans(&total);
        let usual = (ended + 1.0) / (lived + 1.0 / PRIOR_HAZARD);
        let mut counts: BTreeMap<&str, Counts> = BTreeMap::new();
        for (life, spans) in lives.iter().zip(spans) {
            let name = name(&life.traits).as_str();
            if counts.len() < MOST_NAMES || counts.contains_key(name) {
                counts.entry(name).or_insert(Counts::NONE).add(spans);
            }
        }
        let pace = |counts: &Counts| {
            let (ended, lived) = ends_and_spans(counts);
            ((ended + USUAL_SPANS * usual) / (lived + USUAL_SPANS)).ln() as f32
        };
        let by_name = counts.iter().map(|(name, counts)| (String::from(*name), pace(counts)));
        Self { by_name: by_name.collect() }
    }

    fn at(&self, name: &str) -> f32 {
        self.by_name.get(name).copied().unwrap_or(UNSEEN)
    }
}

fn ends_and_spans(counts: &Counts) -> (f64, f64) {
    counts.by_span().fold((0.0, 0.0), |(ended, lived), (e, all)| (ended + e, lived + all))
}

/// The next draw below `end` of a stream.
fn below(state: &mut u64, end: usize) -> usize {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut bits = *state;
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^= bits >> 31;
    ((u128::from(bits) * end as u128) >> 64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generated;

    fn trained(count: usize, seed: u64) -> Forest {
        let lives: Vec<Life> = generated::trace(count, seed).iter().map(|vm| vm.life()).collect();
        Forest::train(&lives, Training { trees: 8, ..Training::default() })
    }

    #[test]
    fn nothing_seen_is_unknown_and_still_answered() {
        let forest = Forest::train(&[], Training::default());
        assert_eq!(forest.class(&Traits::default(), 0), Class::Unknown);
        let middle = forest.predict(&Traits::default()).at_age(0).quantile_s(0.5);
        assert!((600..7_200).contains(&middle), "{middle}");
    }

    #[test]
    fn tenants_are_told_apart_and_newcomers_are_judged_by_shape() {
        let forest = trained(4_000, 1);
        let traits = |tenant: &str, memory_mib| Traits {
            tenant: tenant.into(),
            image: "unheard-of".into(),
            cpu_millis: 2_000,
            memory_mib,
            hour: 12,
            weekday: 2,
            priority: 0,
        };
        let middle = |traits: &Traits| forest.predict(traits).at_age(0).quantile_s(0.5);
        assert!(middle(&traits("ci-1", 4_096)) < 7_200);
        assert!(middle(&traits("db-1", 65_536)) > 7 * 86_400);
        let (small, large) = (traits("newcomer", 2_048), traits("newcomer", 65_536));
        assert!(middle(&small) * 4 < middle(&large), "shape says nothing");
    }

    #[test]
    fn the_same_seed_grows_the_same_forest() {
        let (one, two) = (trained(1_000, 3), trained(1_000, 3));
        for vm in generated::trace(50, 4) {
            assert_eq!(one.predict(&vm.traits), two.predict(&vm.traits));
        }
    }

    #[test]
    fn those_still_running_lengthen_lives() {
        let traits = Traits::default();
        let ended: Vec<Life> = (0..100).map(|_| Life::whole(traits.clone(), 600)).collect();
        let mut both = ended.clone();
        let running = Life { ended: false, ..Life::whole(traits.clone(), 86_400) };
        both.extend((0..300).map(|_| running.clone()));
        let survives = |lives: &[Life]| {
            Forest::train(lives, Training::default()).predict(&traits).at_age(0).survives(3_600)
        };
        assert!(survives(&ended) < 0.1 && survives(&both) > 0.6);
    }
}
