//! A gated recurrent unit that reads the last samples one by one, then answers from what it
//! remembers and from a look.

use super::layer::{Dice, Layer, Pace, columns, columns_mut};
use super::network::{Network, sigmoid, sigmoid_slope, tanh, tanh_slope};
use super::sight::WIDTH;
use ndarray::{Array2, ArrayView2, Axis, concatenate};

#[derive(Clone, Debug)]
pub struct Gru {
    size: usize,
    /// Update and reset gates from memory and sample.
    gates: Layer,
    candidate: Layer,
    last: Layer,
    past: Layer,
    looks: Array2<f32>,
    turns: Vec<Turn>,
    memory: Array2<f32>,
}

/// One sample read: what the way back needs.
#[derive(Clone, Debug)]
struct Turn {
    before: Array2<f32>,
    /// Memory and sample side by side.
    seen: Array2<f32>,
    gates: Array2<f32>,
    /// Reset memory and sample side by side.
    kept: Array2<f32>,
    candidate: Array2<f32>,
}

impl Gru {
    pub fn new(size: usize, outputs: usize, seed: u64) -> Self {
        let mut dice = Dice::new(seed);
        Self {
            size,
            gates: Layer::new(size + 1, 2 * size, 1.0, &mut dice),
            candidate: Layer::new(size + 1, size, 1.0, &mut dice),
            last: Layer::new(size, outputs, 0.5, &mut dice),
            past: Layer::new(WIDTH, outputs, 0.1, &mut dice),
            looks: Array2::zeros((0, 0)),
            turns: Vec::new(),
            memory: Array2::zeros((0, 0)),
        }
    }

    fn read(&self, before: Array2<f32>, sample: ArrayView2<'_, f32>) -> (Array2<f32>, Turn) {
        let seen = beside(&before, &sample);
        let mut gates = self.gates.forward(&seen.view());
        gates.mapv_inplace(sigmoid);
        let reset = &before * &columns(&gates, self.size..);
        let kept = beside(&reset, &sample);
        let mut candidate = self.candidate.forward(&kept.view());
        candidate.mapv_inplace(tanh);
        let update = columns(&gates, ..self.size);
        let memory = &before + &(&update * &(&candidate - &before));
        (memory, Turn { before, seen, gates, kept, candidate })
    }
}

fn beside(memory: &Array2<f32>, sample: &ArrayView2<'_, f32>) -> Array2<f32> {
    concatenate(Axis(1), &[memory.view(), sample.view()]).unwrap_or_default()
}

impl Network for Gru {
    fn reads_sequences(&self) -> bool {
        true
    }

    fn forward(
        &mut self,
        looks: &ArrayView2<'_, f32>,
        sequences: &ArrayView2<'_, f32>,
    ) -> Array2<f32> {
        self.looks = looks.to_owned();
        self.turns.clear();
        let mut memory = Array2::zeros((looks.nrows(), self.size));
        for place in 0..sequences.ncols() {
            let (after, turn) = self.read(memory, columns(sequences, place..place + 1));
            self.turns.push(turn);
            memory = after;
        }
        let mut answers = self.last.forward(&memory.view());
        self.past.add_to(looks, &mut answers);
        self.memory = memory;
        answers
    }

    fn backward(&mut self, slopes: &ArrayView2<'_, f32>) {
        self.past.learn(&self.looks.view(), slopes);
        self.last.learn(&self.memory.view(), slopes);
        let mut memory = self.last.back(slopes);
        let size = self.size;
        while let Some(Turn { before, seen, gates, kept, candidate }) = self.turns.pop() {
            let update = columns(&gates, ..size);
            let reset = columns(&gates, size..);
            let bent = &memory * &update * &candidate.mapv(tanh_slope);
            self.candidate.learn(&kept.view(), &bent.view());
            let to_kept = self.candidate.back(&bent.view());
            let to_reset = columns(&to_kept, ..size);
            let mut gate_slopes = Array2::zeros(gates.raw_dim());
            columns_mut(&mut gate_slopes, ..size)
                .assign(&(&memory * &(&candidate - &before) * &update.mapv(sigmoid_slope)));
            columns_mut(&mut gate_slopes, size..)
                .assign(&(&to_reset * &before * &reset.mapv(sigmoid_slope)));
            self.gates.learn(&seen.view(), &gate_slopes.view());
            let to_seen = self.gates.back(&gate_slopes.view());
            memory = &memory * &update.mapv(|gate| 1.0 - gate)
                + &to_reset * &reset
                + columns(&to_seen, ..size);
        }
    }

    fn step(&mut self, pace: Pace) {
        for layer in [&mut self.gates, &mut self.candidate, &mut self.last, &mut self.past] {
            layer.step(pace);
        }
    }

    fn answer(&self, looks: &ArrayView2<'_, f32>, sequences: &ArrayView2<'_, f32>) -> Array2<f32> {
        let mut memory = Array2::zeros((looks.nrows(), self.size));
        for place in 0..sequences.ncols() {
            memory = self.read(memory, columns(sequences, place..place + 1)).0;
        }
        let mut answers = self.last.forward(&memory.view());
        self.past.add_to(looks, &mut answers);
        answers
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::global::network::check;

    #[test]
    fn it_learns_to_add_what_it_read() {
        check::learns_a_sum(&mut Gru::new(12, 2, 1));
    }
}
