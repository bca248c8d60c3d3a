//! VMs whose law of life is known: for tests, and to measure what a model misses of the truth.
//!
//! Four kinds of tenants: continuous integration, web, databases and batch, each with its images,
//! shapes and hours. One VM in ten runs an image of another kind, so that no trait tells all.

use crate::curve::Curve;
use crate::seen::{Life, Traits};

/// A VM with its life and the curve that the life was drawn from.
#[derive(Clone, Debug)]
pub struct Vm {
    pub traits: Traits,
    pub seconds: u64,
    pub truth: Curve,
}

impl Vm {
    pub fn life(&self) -> Life {
        Life::whole(self.traits.clone(), self.seconds)
    }
}

/// A share of lives whose logarithm is normal.
struct Part {
    share: f64,
    middle_s: f64,
    deviation: f64,
}

const KINDS: [&str; 4] = ["ci", "web", "db", "batch"];

/// `count` VMs by seed.
pub fn trace(count: usize, seed: u64) -> Vec<Vm> {
    let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x2545_f491_4f6c_dd1d);
    (0..count).map(|_| vm(&mut dice)).collect()
}

fn vm(dice: &mut Dice) -> Vm {
    let kind = [0, 0, 0, 1, 1, 2, 3, 3][dice.below(8)];
    let shown = if dice.below(10) == 0 { dice.below(4) } else { kind };
    let image = dice.below(3);
    let memory_mib = [2_048, 4_096, 32_768, 8_192][kind] << dice.below(2);
    let hour = dice.below(24) as u8;
    let traits = Traits {
        tenant: format!("{}-{}", KINDS[kind], dice.below(10)),
        image: format!("{}-image-{image}", KINDS[shown]),
        cpu_millis: [2_000, 4_000, 8_000, 16_000][kind] >> dice.below(2),
        memory_mib,
        hour,
        weekday: dice.below(7) as u8,
        priority: dice.below(3) as u8,
    };
    let parts = law(kind, image, hour);
    let mut share = dice.even();
    let drawn = parts.iter().find(|part| {
        share -= part.share;
        share < 0.0
    });
    let Part { middle_s, deviation, .. } = drawn.unwrap_or(&parts[0]);
    let seconds = middle_s * (deviation * dice.normal()).exp();
    let alive = |age_s: u64| {
        let ended = |part: &Part| {
            part.share * normal_below((age_s as f64 / part.middle_s).ln() / part.deviation)
        };
        1.0 - parts.iter().map(ended).sum::<f64>()
    };
    Vm { traits, seconds: seconds as u64, truth: Curve::from_alive(alive) }
}

fn law(kind: usize, image: usize, hour: u8) -> Vec<Part> {
    let part = |share, middle_s, deviation| Part { share, middle_s, deviation };
    let (hours, days) = (3_600.0, 86_400.0);
    match kind {
        0 => vec![part(1.0, 0.15 * hours * (1 + 2 * image) as f64, 0.8)],
        // Deployments that fail are gone within minutes.
        1 => vec![part(0.3, 0.15 * hours, 0.5), part(0.7, 6.0 * days, 1.0)],
        2 => vec![part(1.0, 60.0 * days, 0.9)],
        _ if hour < 6 => vec![part(1.0, 4.0 * hours, 0.4)],
        _ => vec![part(1.0, 1.5 * hours, 0.6)],
    }
}

/// The share of a normal distribution below `z`, to seven digits.
fn normal_below(z: f64) -> f64 {
    let x = z.abs() / std::f64::consts::SQRT_2;
    let t = 1.0 / (1.0 + 0.327_591_1 * x);
    let terms = [1.061_405_429, -1.453_152_027, 1.421_413_741, -0.284_496_736, 0.254_829_592];
    let tail = terms.iter().fold(0.0, |sum, term| (sum + term) * t) * (-x * x).exp();
    if z < 0.0 { tail / 2.0 } else { 1.0 - tail / 2.0 }
}

struct Dice(u64);

impl Dice {
    fn bits(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// From 0 to 1.
    fn even(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    fn below(&mut self, end: usize) -> usize {
        (self.even() * end as f64) as usize
    }

    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.even()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.even()).cos()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lives_are_drawn_from_their_truth() {
        let vms = trace(4_000, 1);
        for level in [0.1, 0.5, 0.9] {
            let ended = |vm: &&Vm| 1.0 - vm.truth.alive(vm.seconds) < level;
            let share = vms.iter().filter(ended).count() as f64 / vms.len() as f64;
            assert!((share - level).abs() < 0.03, "{level}: {share}");
        }
    }

    #[test]
    fn the_seed_decides() {
        let seconds = |seed| trace(5, seed).iter().map(|vm| vm.seconds).collect::<Vec<u64>>();
        assert_eq!(seconds(1), seconds(1));
        assert_ne!(seconds(1), seconds(2));
    }

    #[test]
    fn the_normal_distribution_is_that_of_the_tables() {
        for (z, below) in [(0.0, 0.5), (1.0, 0.841_344_7), (-1.96, 0.024_997_9)] {
            assert!((normal_below(z) - below).abs() < 1e-6, "{z}");
        }
    }
}
