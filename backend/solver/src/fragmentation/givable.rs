//! How much GPU a host could give to each known shape, if only that shape came.
//!
//! The mean over the shapes, weighted by how often they come, falls when room is cut into pieces
//! that fewer shapes can use. At most `KINDS` shapes are looked at, the heaviest; the others count
//! with the heavy shape that is most like them. Fixed arrays, so that a look is a few vector steps.

use super::host_state::MOST_GPUS;
use super::mix::Mix;
use super::prices::{HOLES, steps_within};
use super::shape::{MOST_MODELS, Shape, WHOLE};

/// Shapes that stand for all.
pub const KINDS: usize = 32;

/// Thousandths of GPU that the holes give to each kind that takes one GPU or less.
pub type Given = [u16; KINDS];

/// Sum of all weights.
const ALL: u64 = 1 << 16;

#[derive(Clone, Debug)]
pub struct Givable {
    /// What a hole gives to each kind, by steps of the hole.
    by_hole: Vec<Given>,
    /// What so many wholly free GPUs give to each kind that takes several.
    by_whole: Vec<Given>,
    /// Thousandths that one VM of the kind takes.
    unit: [u32; KINDS],
    /// 2^32 / what a VM of the kind needs, rounded up.
    per_cpu: [u64; KINDS],
    per_memory: [u64; KINDS],
    /// By model: weights of the kinds that run on it.
    weights: Vec<[u32; KINDS]>,
}

impl Givable {
    pub fn of(mix: &Mix) -> Self {
        let kinds = heaviest(mix);
        let shape = |kind: usize| kinds.get(kind).map(|(shape, _)| *shape);
        let per = |amount: u32| (1u64 << 32) / u64::from(amount.max(1)) + 1;
        let each =
            |value: &dyn Fn(Shape) -> u64| std::array::from_fn(|kind| shape(kind).map_or(0, value));
        let by_hole = |steps: usize| {
            std::array::from_fn(|kind| shape(kind).map_or(0, |shape| from_hole(&shape, steps)))
        };
        let by_whole = |whole: usize| {
            std::array::from_fn(|kind| shape(kind).map_or(0, |shape| from_whole(&shape, whole)))
        };
        Self {
            by_hole: (0..HOLES).map(by_hole).collect(),
            by_whole: (0..=MOST_GPUS).map(by_whole).collect(),
            unit: std::array::from_fn(|kind| shape(kind).map_or(0, |shape| shape.gpu_millis())),
            per_cpu: each(&|shape| per(shape.cpu_millis)),
            per_memory: each(&|shape| per(shape.memory_mib)),
            weights: (0..MOST_MODELS as u8).map(|model| weights(&kinds, model)).collect(),
        }
    }

    pub fn add(&self, given: &mut Given, hole: u16) {
        let of_hole = &self.by_hole[steps_within(hole)];
        given
            .iter_mut()
            .zip(of_hole)
            .for_each(|(given, of_hole)| *given = given.wrapping_add(*of_hole));
    }

    pub fn remove(&self, given: &mut Given, hole: u16) {
        let of_hole = &self.by_hole[steps_within(hole)];
        given
            .iter_mut()
            .zip(of_hole)
            .for_each(|(given, of_hole)| *given = given.wrapping_sub(*of_hole));
    }

    /// In thousand-millionths of a GPU.
    pub fn worth(
        &self,
        given: &Given,
        cpu_millis: u32,
        memory_mib: u32,
        whole: usize,
        model: u8,
    ) -> i64 {
        let (cpu, memory) = (u64::from(cpu_millis), u64::from(memory_mib));
        let (several, weights) = (&self.by_whole[whole], &self.weights[usize::from(model)]);
        let mut sum = 0u64;
        for kind in 0..KINDS {
            let fed = cpu
                .wrapping_mul(self.per_cpu[kind])
                .min(memory.wrapping_mul(self.per_memory[kind]))
                >> 32;
            let fed = (fed.min(MOST_VMS) as u32).wrapping_mul(self.unit[kind]);
            let given = u32::from(given[kind].wrapping_add(several[kind])).min(fed);
            sum = sum.wrapping_add(u64::from(given).wrapping_mul(u64::from(weights[kind])));
        }
        (sum * 1_000_000 / ALL) as i64
    }
}

/// VMs beyond which it does not matter how many more could be fed: the smallest shares, on all GPUs.
const MOST_VMS: u64 = (MOST_GPUS * WHOLE as usize) as u64;

/// The heaviest shapes of one GPU and more, each with the weight of those that it stands for.
fn heaviest(mix: &Mix) -> Vec<(Shape, u64)> {
    let mut shapes: Vec<(Shape, u64)> =
        mix.entries().iter().filter(|(shape, _)| shape.gpus > 0).copied().collect();
    shapes.sort_unstable_by_key(|(shape, weight)| {
        (std::cmp::Reverse(weight * u64::from(shape.gpu_millis())), *shape)
    });
    let others = shapes.split_off(shapes.len().min(KINDS));
    for (other, weight) in others {
        let alike = |shape: &Shape| {
            let one_or_several = u32::from((shape.gpus > 1) != (other.gpus > 1));
            let models = (shape.models ^ other.models).count_ones();
            let gpu = shape.gpu_millis().abs_diff(other.gpu_millis());
            (one_or_several, models, gpu, shape.cpu_millis.abs_diff(other.cpu_millis))
        };
        if let Some(stands_for) = shapes.iter_mut().min_by_key(|(shape, _)| alike(shape)) {
            stands_for.1 += weight;
        }
    }
    shapes
}

fn from_hole(shape: &Shape, steps: usize) -> u16 {
    let hole = (steps * usize::from(WHOLE) / (HOLES - 1)) as u16;
    if shape.gpus == 1 { hole / shape.milli.max(1) * shape.milli } else { 0 }
}

fn from_whole(shape: &Shape, whole: usize) -> u16 {
    let gpus = usize::from(shape.gpus);
    if gpus > 1 { (whole / gpus * gpus * usize::from(WHOLE)) as u16 } else { 0 }
}

fn weights(kinds: &[(Shape, u64)], model: u8) -> [u32; KINDS] {
    let total: u128 = kinds.iter().map(|(_, weight)| u128::from(*weight)).sum();
    std::array::from_fn(|kind| match kinds.get(kind) {
        Some((shape, weight)) if shape.runs_on(model) => {
            (u128::from(*weight) * u128::from(ALL) / total) as u32
        }
        _ => 0,
    })
}
