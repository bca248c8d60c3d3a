//! Seeded randomness for searches, by integer draws and portable arithmetic only, so that a seed
//! means the same search on every machine.

/// A stream of draws: `xoshiro256++`, seeded by `splitmix64`.
#[derive(Clone, Debug)]
pub struct Dice([u64; 4]);

impl Dice {
    pub fn new(seed: u64) -> Self {
        let mut state = seed;
        Self(std::array::from_fn(|_| {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut mixed = state;
            mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            mixed ^ (mixed >> 31)
        }))
    }

    /// A stream of its own for a worker or a part of a search.
    pub fn stream(seed: u64, number: u64) -> Self {
        Self::new(seed ^ number.wrapping_mul(0xd134_2543_de82_ef95).rotate_left(31))
    }

    #[inline]
    pub fn bits(&mut self) -> u64 {
        let s = &mut self.0;
        let drawn = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let shifted = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= shifted;
        s[3] = s[3].rotate_left(45);
        drawn
    }

    /// A number below `end`, which is not zero.
    #[inline]
    pub fn below(&mut self, end: u32) -> u32 {
        (((self.bits() >> 32) * u64::from(end)) >> 32) as u32
    }

    /// A number from 0 up to 1, never 1.
    #[inline]
    pub fn share(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last as u32 + 1) as usize);
        }
    }
}

/// The natural logarithm of a positive number by sums and products alone; the last digits of the
/// platform's own depend on the platform.
pub fn ln(x: f64) -> f64 {
    let bits = x.to_bits();
    let exponent = ((bits >> 52) & 0x7ff) as i64 - 1023;
    let mantissa = f64::from_bits((bits & 0x000f_ffff_ffff_ffff) | 0x3ff0_0000_0000_0000);
    // ln m = 2 atanh((m - 1) / (m + 1)), at most atanh(1 / 3): twenty terms are all the digits.
    let ratio = (mantissa - 1.0) / (mantissa + 1.0);
    let square = ratio * ratio;
    let mut sum = 0.0;
    for term in (0..20).rev() {
        sum = sum * square + 1.0 / f64::from(2 * term + 1);
    }
    2.0 * ratio * sum + exponent as f64 * std::f64::consts::LN_2
}

/// The exponential function, likewise.
pub fn exp(x: f64) -> f64 {
    // e^x = (e^(x / 1024))^1024, where the small power needs few terms.
    let small = x / 1024.0;
    let mut sum = 1.0;
    for term in (1..12).rev() {
        sum = 1.0 + small * sum / f64::from(term);
    }
    (0..10).fold(sum, |power, _| power * power)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_seeds_give_equal_draws_in_range() {
        let (mut one, mut other) = (Dice::new(7), Dice::new(7));
        let mut seen = [0; 5];
        for _ in 0..5_000 {
            let drawn = one.below(5);
            assert_eq!(drawn, other.below(5));
            seen[drawn as usize] += 1;
        }
        assert!(seen.iter().all(|&times| (800..1_200).contains(&times)), "{seen:?}");
        assert_ne!(Dice::stream(7, 0).bits(), Dice::stream(7, 1).bits());
    }

    #[test]
    fn logarithm_and_exponential_are_what_they_should_be() {
        for x in [1e-9, 0.1, 0.5, 0.999, 1.0, 1.5, 2.0, 1e6] {
            assert!((ln(x) - x.ln()).abs() < 1e-12, "{x}");
            assert!((exp(ln(x)) / x - 1.0).abs() < 1e-9, "{x}");
        }
    }
}
