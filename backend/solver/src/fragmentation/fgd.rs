//! Fragmentation gradient descent, as published: a host's fragmentation is the idle GPU that
//! typical shapes could not use, and a placement scores 100 x sigmoid of what it takes away from it,
//! rounded down. The rounding is part of the method: it makes ties, which go by index. Typical are
//! the commonest shapes that make up 95 % of the mix, and memory is no part of a shape.

use super::host_state::HostState;
use super::mix::Mix;
use super::shape::Shape;

/// Millionths of a GPU.
type Micros = i64;

/// A fall by so many millionths of a GPU scores 50 + the row; as far below 50 for a rise. This is
/// ln(k / (100 - k)) for k = 51 to 99, written out so that no platform's logarithm matters.
const RISES: [Micros; 49] = [
    40_006, 80_043, 120_145, 160_343, 200_671, 241_163, 281_852, 322_774, 363_966, 405_466,
    447_313, 489_549, 532_217, 575_365, 619_040, 663_295, 708_186, 753_772, 800_120, 847_298,
    895_385, 944_462, 994_623, 1_045_969, 1_098_613, 1_152_680, 1_208_312, 1_265_667, 1_324_926,
    1_386_295, 1_450_011, 1_516_348, 1_585_628, 1_658_229, 1_734_602, 1_815_290, 1_900_959,
    1_992_431, 2_090_742, 2_197_225, 2_313_635, 2_442_348, 2_586_690, 2_751_536, 2_944_439,
    3_178_054, 3_476_099, 3_891_821, 4_595_120,
];

/// Shapes are typical until they make up so much of the mix.
const TYPICAL_PERCENT: u128 = 95;

#[derive(Clone, Debug, Default)]
pub struct Fragmentation {
    shapes: Vec<(Shape, u64)>,
    total: u64,
}

impl Fragmentation {
    pub fn of(mix: &Mix) -> Self {
        let mix = mix.map(|shape| Shape { memory_mib: 0, ..*shape });
        let mut shapes = mix.entries().to_vec();
        shapes.sort_by_key(|(_, weight)| std::cmp::Reverse(*weight));
        let all: u128 = shapes.iter().map(|(_, weight)| u128::from(*weight)).sum();
        let mut total = 0u64;
        let typical = shapes.iter().take_while(|(_, weight)| {
            let wanted = u128::from(total) * 100 < all * TYPICAL_PERCENT;
            total += weight * u64::from(wanted);
            wanted
        });
        let typical = typical.count();
        shapes.truncate(typical);
        Self { shapes, total }
    }

    /// Idle GPU that the shapes of the mix could not use, by how often they come.
    pub fn of_state(&self, state: &HostState) -> Micros {
        let unusable = |(shape, weight): &(Shape, u64)| {
            u128::from(*weight) * u128::from(unusable(shape, state))
        };
        let sum: u128 = self.shapes.iter().map(unusable).sum();
        (sum * 1000 / u128::from(self.total.max(1))) as i64
    }
}

/// 0 to 100, for a host whose fragmentation goes from one to the other.
pub fn score(before: Micros, after: Micros) -> i64 {
    let fall = before - after;
    let steps = RISES.partition_point(|rise| *rise <= fall.abs()) as i64;
    let exact = steps > 0 && RISES[steps as usize - 1] == fall.abs();
    match fall {
        0.. => 50 + steps,
        _ if exact => 50 - steps,
        _ => 49 - steps,
    }
}

fn unusable(shape: &Shape, state: &HostState) -> u32 {
    if shape.gpus == 0 || !state.fits(shape) {
        return state.idle_millis();
    }
    state.holes().iter().filter(|hole| **hole < shape.milli).map(|hole| u32::from(*hole)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_are_the_sigmoid_rounded_down() {
        for fall in (-6_000_000..6_000_000).step_by(7919) {
            let sigmoid = 100.0 / (1.0 + (-f64::from(fall) / 1_000_000.0).exp());
            assert_eq!(score(i64::from(fall), 0), sigmoid.floor() as i64, "{fall}");
        }
    }

    #[test]
    fn what_no_shape_can_use_is_fragmentation() {
        let mix =
            Mix::given([(Shape::of_share(1000, 1, 500), 3), (Shape::of_whole(1000, 1, 2), 1)]);
        let fragmentation = Fragmentation::of(&mix);
        let of = |holes: &[u16]| fragmentation.of_state(&HostState::new(8000, 8, 0, holes));
        assert_eq!(of(&[1000, 1000]), 0);
        // 400 is of use to nobody, 600 not to a quarter of those who come; nor is a single whole GPU.
        assert_eq!(of(&[400, 600]), 400_000 + 600_000 / 4);
        assert_eq!(of(&[1000]), 1_000_000 / 4);
    }

    #[test]
    fn rare_shapes_and_memory_do_not_count() {
        let (share, rare) = (Shape::of_share(1000, 9, 500), Shape::of_share(1000, 9, 600));
        let of = |weights: [u64; 2]| {
            let mix = Mix::given([(share, weights[0]), (rare, weights[1])]);
            Fragmentation::of(&mix).of_state(&HostState::new(8000, 8, 0, &[550]))
        };
        assert_eq!(of([95, 5]), 0);
        assert_eq!(of([94, 6]), 550_000 * 6 / 100);
    }
}
