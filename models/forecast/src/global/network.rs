//! What the trainer asks of a network, whatever it is made of.

use super::layer::Pace;
use ndarray::{Array2, ArrayView2};
use std::fmt::Debug;

pub trait Network: Send + Sync + Debug {
    /// Whether the last samples are shown one by one.
    fn reads_sequences(&self) -> bool;

    /// Answers by row, and remembers what the way back needs.
    fn forward(
        &mut self,
        looks: &ArrayView2<'_, f32>,
        sequences: &ArrayView2<'_, f32>,
    ) -> Array2<f32>;

    /// Notes the slopes of all weights from those of the last answers.
    fn backward(&mut self, slopes: &ArrayView2<'_, f32>);

    fn step(&mut self, pace: Pace);

    /// Answers by row and remembers nothing.
    fn answer(&self, looks: &ArrayView2<'_, f32>, sequences: &ArrayView2<'_, f32>) -> Array2<f32>;
}

/// A bend near 0 and straight lines far out, without transcendental functions: it has to be the
/// same on every machine.
pub fn tanh(x: f32) -> f32 {
    let x = x.clamp(-3.0, 3.0);
    let square = x * x;
    x * (27.0 + square) / (27.0 + 9.0 * square)
}

pub fn sigmoid(x: f32) -> f32 {
    0.5 + 0.5 * tanh(0.5 * x)
}

/// The slope of `tanh` where its value is `y`.
pub fn tanh_slope(y: f32) -> f32 {
    1.0 - y * y
}

/// The slope of `sigmoid` where its value is `y`.
pub fn sigmoid_slope(y: f32) -> f32 {
    y * (1.0 - y)
}

/// Lets a tenth of what is negative through.
pub fn leaky(x: f32) -> f32 {
    x.max(0.1 * x)
}

pub fn leaky_slope(x: f32) -> f32 {
    if x > 0.0 { 1.0 } else { 0.1 }
}

#[cfg(test)]
pub mod check {
    //! Slopes beside differences.

    use super::*;
    use crate::global::layer::Dice;
    use crate::global::lessons::SEQUENCE;
    use crate::global::sight::WIDTH;

    /// A network that is right learns to answer with the sum of what it is shown.
    pub fn learns_a_sum(network: &mut dyn Network) {
        let mut dice = Dice::new(3);
        let mut first = 0.0;
        let mut last = 0.0;
        for step in 1..=400 {
            let looks = Array2::from_shape_fn((64, WIDTH), |_| 0.3 * dice.even());
            let sequences = Array2::from_shape_fn((64, SEQUENCE), |_| dice.even());
            let truth: Vec<f32> = (0..64)
                .map(|row| looks[(row, 0)] + sequences.row(row).iter().rev().take(4).sum::<f32>())
                .collect();
            let given = network.forward(&looks.view(), &sequences.view());
            let mut slopes = Array2::zeros(given.raw_dim());
            let mut loss = 0.0;
            for row in 0..64 {
                let off = given[(row, 0)] - truth[row];
                loss += off * off / 64.0;
                slopes[(row, 0)] = off / 64.0;
            }
            network.backward(&slopes.view());
            network.step(Pace { rate: 0.01, decay: 0.0, step });
            first = if step == 1 { loss } else { first };
            last = loss;
        }
        let share = if network.reads_sequences() { 0.15 } else { 1.05 };
        assert!(last < share * first, "{last} of {first}");
    }
}
