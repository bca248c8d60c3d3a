//! Matrices of weights that learn: products, slopes and Adam's steps.

use ndarray::linalg::general_mat_mul;
use ndarray::{Array2, ArrayBase, ArrayView2, ArrayViewMut2, Axis, Data, Ix2, Slice, Zip};

/// Weights with one row an input, the last row for a constant, and one column an output.
#[derive(Clone, Debug)]
pub struct Layer {
    pub weights: Array2<f32>,
    pub bias: Array2<f32>,
    slopes: Array2<f32>,
    bias_slopes: Array2<f32>,
    moments: [Array2<f32>; 4],
}

/// How far weights move at a step.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    pub rate: f32,
    pub decay: f32,
    pub step: i32,
}

impl Layer {
    /// Weights of even draws whose variance keeps that of what goes through.
    pub fn new(inputs: usize, outputs: usize, gain: f32, dice: &mut Dice) -> Self {
        let bound = gain * (3.0 / inputs.max(1) as f32).sqrt();
        let weights = Array2::from_shape_fn((inputs, outputs), |_| bound * dice.even());
        let zeros = || Array2::zeros((inputs, outputs));
        let row = || Array2::zeros((1, outputs));
        Self {
            weights,
            bias: row(),
            slopes: zeros(),
            bias_slopes: row(),
            moments: [zeros(), zeros(), row(), row()],
        }
    }

    /// `input * weights + bias`.
    pub fn forward(&self, input: &ArrayView2<'_, f32>) -> Array2<f32> {
        let mut output = self.bias.broadcast((input.nrows(), self.bias.ncols())).map_or_else(
            || Array2::zeros((input.nrows(), self.bias.ncols())),
            |view| view.to_owned(),
        );
        general_mat_mul(1.0, input, &self.weights, 1.0, &mut output);
        output
    }

    /// Adds `input * weights` to an output that is there already.
    pub fn add_to(&self, input: &ArrayView2<'_, f32>, output: &mut Array2<f32>) {
        general_mat_mul(1.0, input, &self.weights, 1.0, output);
    }

    /// Notes what the weights have to do with the loss.
    pub fn learn(&mut self, input: &ArrayView2<'_, f32>, output_slope: &ArrayView2<'_, f32>) {
        general_mat_mul(1.0, &input.t(), output_slope, 1.0, &mut self.slopes);
        self.bias_slopes += &output_slope.sum_axis(Axis(0)).insert_axis(Axis(0));
    }

    /// What the input has to do with the loss.
    pub fn back(&self, output_slope: &ArrayView2<'_, f32>) -> Array2<f32> {
        output_slope.dot(&self.weights.t())
    }

    /// One step of Adam along the slopes noted since the last one.
    pub fn step(&mut self, pace: Pace) {
        let [first, second, bias_first, bias_second] = &mut self.moments;
        adam(&mut self.weights, &mut self.slopes, first, second, pace);
        let free = Pace { decay: 0.0, ..pace };
        adam(&mut self.bias, &mut self.bias_slopes, bias_first, bias_second, free);
    }
}

/// Some columns of a matrix.
pub fn columns<S: Data<Elem = f32>>(
    matrix: &ArrayBase<S, Ix2>,
    range: impl Into<Slice>,
) -> ArrayView2<'_, f32> {
    matrix.slice_axis(Axis(1), range.into())
}

pub fn columns_mut(matrix: &mut Array2<f32>, range: impl Into<Slice>) -> ArrayViewMut2<'_, f32> {
    matrix.slice_axis_mut(Axis(1), range.into())
}

fn adam(
    weights: &mut Array2<f32>,
    slopes: &mut Array2<f32>,
    first: &mut Array2<f32>,
    second: &mut Array2<f32>,
    pace: Pace,
) {
    const KEEP: (f32, f32) = (0.9, 0.99);
    let rate = pace.rate * (1.0 - KEEP.1.powi(pace.step)).sqrt() / (1.0 - KEEP.0.powi(pace.step));
    Zip::from(weights).and(slopes).and(first).and(second).for_each(|weight, slope, m, v| {
        *m = KEEP.0 * *m + (1.0 - KEEP.0) * *slope;
        *v = KEEP.1 * *v + (1.0 - KEEP.1) * *slope * *slope;
        *weight -= rate * *m / (v.sqrt() + 1e-7) + pace.rate * pace.decay * *weight;
        *slope = 0.0;
    });
}

/// A stream of draws by seed.
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5851_f42d_4c95_7f2d)
    }

    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    pub fn below(&mut self, end: usize) -> usize {
        ((u128::from(self.bits()) * end as u128) >> 64) as usize
    }

    /// Between -1 and 1.
    pub fn even(&mut self) -> f32 {
        (self.bits() >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    #[test]
    fn a_layer_learns_a_line() {
        let mut dice = Dice::new(1);
        let mut layer = Layer::new(2, 1, 1.0, &mut dice);
        for step in 1..=600 {
            let input = Array2::from_shape_fn((16, 2), |_| dice.even());
            let truth = input.map_axis(Axis(1), |x| 2.0 * x[0] - 3.0 * x[1] + 0.5);
            let output = layer.forward(&input.view());
            let slope = (&output - &truth.insert_axis(Axis(1))) / 16.0;
            layer.learn(&input.view(), &slope.view());
            layer.step(Pace { rate: 0.02, decay: 0.0, step });
        }
        let close = |a: f32, b: f32| assert!((a - b).abs() < 0.02, "{a} {b}");
        close(layer.weights[(0, 0)], 2.0);
        close(layer.weights[(1, 0)], -3.0);
        close(layer.bias[(0, 0)], 0.5);
        let back = layer.back(&array![[1.0f32]].view());
        assert_eq!(back.dim(), (1, 2));
    }

    #[test]
    fn draws_are_even_and_the_same_for_a_seed() {
        let mut dice = Dice::new(7);
        let mean: f32 = (0..10_000).map(|_| dice.even()).sum::<f32>() / 10_000.0;
        assert!(mean.abs() < 0.03);
        assert_eq!(Dice::new(7).bits(), Dice::new(7).bits());
        assert!((0..100).all(|_| dice.below(3) < 3));
    }
}
