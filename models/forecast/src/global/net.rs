//! Two hidden layers on a look, with a straight way past them.

use super::layer::{Dice, Layer, Pace};
use super::network::{Network, leaky, leaky_slope};
use super::sight::WIDTH;
use ndarray::{Array2, ArrayView2, Zip};

#[derive(Clone, Debug)]
pub struct Net {
    first: Layer,
    second: Layer,
    last: Layer,
    past: Layer,
    looks: Array2<f32>,
    sums: [Array2<f32>; 2],
    hidden: [Array2<f32>; 2],
}

impl Net {
    pub fn new(hidden: usize, outputs: usize, seed: u64) -> Self {
        let mut dice = Dice::new(seed);
        let none = || Array2::zeros((0, 0));
        Self {
            first: Layer::new(WIDTH, hidden, 1.0, &mut dice),
            second: Layer::new(hidden, hidden, 1.0, &mut dice),
            last: Layer::new(hidden, outputs, 0.3, &mut dice),
            past: Layer::new(WIDTH, outputs, 0.1, &mut dice),
            looks: none(),
            sums: [none(), none()],
            hidden: [none(), none()],
        }
    }
}

impl Network for Net {
    fn reads_sequences(&self) -> bool {
        false
    }

    fn forward(
        &mut self,
        looks: &ArrayView2<'_, f32>,
        _sequences: &ArrayView2<'_, f32>,
    ) -> Array2<f32> {
        self.looks = looks.to_owned();
        self.sums[0] = self.first.forward(looks);
        self.hidden[0] = self.sums[0].mapv(leaky);
        self.sums[1] = self.second.forward(&self.hidden[0].view());
        self.hidden[1] = self.sums[1].mapv(leaky);
        let mut answers = self.last.forward(&self.hidden[1].view());
        self.past.add_to(looks, &mut answers);
        answers
    }

    fn backward(&mut self, slopes: &ArrayView2<'_, f32>) {
        let bent = |mut slopes: Array2<f32>, sums: &Array2<f32>| {
            Zip::from(&mut slopes).and(sums).for_each(|slope, sum| *slope *= leaky_slope(*sum));
            slopes
        };
        self.past.learn(&self.looks.view(), slopes);
        self.last.learn(&self.hidden[1].view(), slopes);
        let second = bent(self.last.back(slopes), &self.sums[1]);
        self.second.learn(&self.hidden[0].view(), &second.view());
        let first = bent(self.second.back(&second.view()), &self.sums[0]);
        self.first.learn(&self.looks.view(), &first.view());
    }

    fn step(&mut self, pace: Pace) {
        for layer in [&mut self.first, &mut self.second, &mut self.last, &mut self.past] {
            layer.step(pace);
        }
    }

    fn answer(&self, looks: &ArrayView2<'_, f32>, _sequences: &ArrayView2<'_, f32>) -> Array2<f32> {
        let mut hidden = self.first.forward(looks);
        hidden.mapv_inplace(leaky);
        let mut hidden = self.second.forward(&hidden.view());
        hidden.mapv_inplace(leaky);
        let mut answers = self.last.forward(&hidden.view());
        self.past.add_to(looks, &mut answers);
        answers
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::global::network::check;

    #[test]
    fn it_learns_and_answers_as_it_learned() {
        let mut net = Net::new(16, 2, 1);
        check::learns_a_sum(&mut net);
        let looks = Array2::from_shape_fn((3, WIDTH), |(row, column)| (row * column) as f32 * 0.01);
        let none = Array2::zeros((3, 0));
        let answers = net.answer(&looks.view(), &none.view());
        assert_eq!(net.forward(&looks.view(), &none.view()), answers);
    }
}
