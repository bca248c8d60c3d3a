//! Series made for tests: noise, walks and days, the same on every machine.

use std::f64::consts::TAU;

/// A number of mean 0 and deviation 1 by seed and place: the sum of twelve even draws.
pub fn noise(seed: u64, place: usize) -> f64 {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15)
        ^ (place as u64).wrapping_mul(0xd1b5_4a32_d192_ed03);
    let mut sum = -6.0;
    for _ in 0..12 {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = state;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^= bits >> 31;
        sum += (bits >> 11) as f64 / (1u64 << 53) as f64;
    }
    sum
}

/// A walk by steps of deviation 1 from 100.
pub fn walk(seed: u64, len: usize) -> Vec<f64> {
    let mut at = 100.0;
    let step = |place| {
        at += noise(seed, place);
        at
    };
    (0..len).map(step).collect()
}

/// Days of `season` samples around 50 with a high noon and noise of deviation 1.
pub fn daily(seed: u64, len: usize, season: usize) -> Vec<f64> {
    let at = |place: usize| {
        50.0 + 20.0 * (place as f64 * TAU / season as f64).sin() + noise(seed, place)
    };
    (0..len).map(at).collect()
}
