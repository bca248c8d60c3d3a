//! A unit with a memory cell that reads the last samples one by one, then answers from what it
//! remembers and from a look.

use super::layer::{Dice, Layer, Pace, columns, columns_mut};
use super::network::{Network, sigmoid, sigmoid_slope, tanh, tanh_slope};
use super::sight::WIDTH;
use ndarray::{Array2, ArrayView2, Axis, concatenate};

#[derive(Clone, Debug)]
pub struct Lstm {
    size: usize,
    /// Input, forget and output gates, and what to write, from memory and sample.
    gates: Layer,
    last: Layer,
    past: Layer,
    looks: Array2<f32>,
    turns: Vec<Turn>,
    memory: Array2<f32>,
}

/// One sample read: what the way back needs.
#[derive(Clone, Debug)]
struct Turn {
    seen: Array2<f32>,
    gates: Array2<f32>,
    before: Array2<f32>,
    bent: Array2<f32>,
}

impl Lstm {
    pub fn new(size: usize, outputs: usize, seed: u64) -> Self {
        let mut dice = Dice::new(seed);
        let mut gates = Layer::new(size + 1, 4 * size, 1.0, &mut dice);
        // At first nothing is forgotten: otherwise nothing would be learned from long ago.
        columns_mut(&mut gates.bias, size..2 * size).fill(1.5);
        Self {
            size,
            gates,
            last: Layer::new(size, outputs, 0.5, &mut dice),
            past: Layer::new(WIDTH, outputs, 0.1, &mut dice),
            looks: Array2::zeros((0, 0)),
            turns: Vec::new(),
            memory: Array2::zeros((0, 0)),
        }
    }

    /// Memory, cell and what the way back needs.
    fn read(
        &self,
        memory: &Array2<f32>,
        before: Array2<f32>,
        sample: ArrayView2<'_, f32>,
    ) -> (Array2<f32>, Array2<f32>, Turn) {
        let size = self.size;
        let seen = concatenate(Axis(1), &[memory.view(), sample.view()]).unwrap_or_default();
        let mut gates = self.gates.forward(&seen.view());
        columns_mut(&mut gates, ..3 * size).mapv_inplace(sigmoid);
        columns_mut(&mut gates, 3 * size..).mapv_inplace(tanh);
        let part = |index: usize| columns(&gates, index * size..(index + 1) * size);
        let cell = &before * &part(1) + &part(0) * &part(3);
        let bent = cell.mapv(tanh);
        let memory = &bent * &part(2);
        (memory, cell, Turn { seen, gates, before, bent })
    }
}

impl Network for Lstm {
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
        let mut cell = memory.clone();
        for place in 0..sequences.ncols() {
            let sample = columns(sequences, place..place + 1);
            let (after, written, turn) = self.read(&memory, cell, sample);
            self.turns.push(turn);
            (memory, cell) = (after, written);
        }
        let mut answers = self.last.forward(&memory.view());
        self.past.add_to(looks, &mut answers);
        self.memory = memory;
        answers
    }

    fn backward(&mut self, slopes: &ArrayView2<'_, f32>) {
        self.past.learn(&self.looks.view(), slopes);
        self.last.learn(&self.memory.view(), slopes);
        let size = self.size;
        let mut memory = self.last.back(slopes);
        let mut cell = Array2::zeros(memory.raw_dim());
        while let Some(Turn { seen, gates, before, bent }) = self.turns.pop() {
            let part = |index: usize| columns(&gates, index * size..(index + 1) * size);
            cell += &(&memory * &part(2) * &bent.mapv(tanh_slope));
            let to_gates = [
                &cell * &part(3) * &part(0).mapv(sigmoid_slope),
                &cell * &before * &part(1).mapv(sigmoid_slope),
                &memory * &bent * &part(2).mapv(sigmoid_slope),
                &cell * &part(0) * &part(3).mapv(tanh_slope),
            ];
            let views: Vec<ArrayView2<'_, f32>> = to_gates.iter().map(|it| it.view()).collect();
            let gate_slopes = concatenate(Axis(1), &views).unwrap_or_default();
            self.gates.learn(&seen.view(), &gate_slopes.view());
            let to_seen = self.gates.back(&gate_slopes.view());
            memory = columns(&to_seen, ..size).to_owned();
            cell = &cell * &part(1);
        }
    }

    fn step(&mut self, pace: Pace) {
        for layer in [&mut self.gates, &mut self.last, &mut self.past] {
            layer.step(pace);
        }
    }

    fn answer(&self, looks: &ArrayView2<'_, f32>, sequences: &ArrayView2<'_, f32>) -> Array2<f32> {
        let mut memory = Array2::zeros((looks.nrows(), self.size));
        let mut cell = memory.clone();
        for place in 0..sequences.ncols() {
            let sample = columns(sequences, place..place + 1);
            (memory, cell, _) = self.read(&memory, cell, sample);
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
        check::learns_a_sum(&mut Lstm::new(12, 2, 1));
    }
}
