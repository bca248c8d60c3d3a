//! Finds the cheapest host for a shape without looking at all of them again.
//!
//! For each shape the costs on states are kept in heaps. When the shape comes again, only states
//! that appeared since are looked at; states that no host is in any more are dropped when they come
//! to the top. What is scarce in the whole fleet changes all the time, but only ever adds the same
//! to all states of one model that lose the same guarded places: each such group has a heap of its
//! own, and the tops are compared.

use super::confined::ByModel;
use super::guards::{Costs, Guards, Lost};
use super::policy::{STEP, Scoring};
use super::shape::Shape;
use super::states::{StateIx, States};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What is scarce just now, for one shape.
#[derive(Debug)]
pub struct Scarcity {
    pub places: Costs,
    /// Thousandths of the price of the shape's GPUs, by model.
    pub models: ByModel,
    /// Price of the shape's GPUs, in millionths of a GPU.
    pub price: i64,
}

impl Scarcity {
    pub fn adds(&self, model: u8, lost: Lost) -> i64 {
        // A thousandth of a millionth of a GPU is a step of cost.
        (self.models[usize::from(model)] * self.price + Guards::dearest(&self.places, lost)) * STEP
    }
}

/// The cheapest state, with what it costs there.
pub type Cheapest = Option<(i64, StateIx)>;

/// What is known of one shape.
#[derive(Debug, Default)]
pub struct Candidates {
    /// How far `States::appeared` has been read.
    read: usize,
    groups: Vec<Group>,
    /// States that are in a heap, by bit.
    held: Vec<u64>,
    /// States tied at the top, taken out for a moment.
    tied: Vec<(i64, StateIx)>,
}

#[derive(Debug)]
struct Group {
    model: u8,
    lost: Lost,
    heap: BinaryHeap<Reverse<(i64, StateIx)>>,
}

impl Candidates {
    pub fn cheapest(
        &mut self,
        shape: &Shape,
        states: &States,
        scoring: &Scoring,
        scarcity: &Scarcity,
    ) -> Cheapest {
        self.read_on(shape, states, scoring);
        let mut best: Option<(i64, u32, StateIx)> = None;
        let Self { groups, held, tied, .. } = self;
        for group in groups {
            drop_the_dead(&mut group.heap, held, states);
            let Some(&Reverse((cost, _))) = group.heap.peek() else { continue };
            let total = cost + scarcity.adds(group.model, group.lost);
            if best.is_some_and(|(least, ..)| total > least) {
                continue;
            }
            while let Some(&Reverse((same, state))) =
                group.heap.peek().filter(|top| top.0.0 == cost)
            {
                group.heap.pop();
                if states.is_live(state) {
                    tied.push((same, state));
                    let candidate = (total, states.lowest(state), state);
                    best = Some(best.map_or(candidate, |best| best.min(candidate)));
                } else {
                    held[state as usize / 64] &= !(1 << (state % 64));
                }
            }
            group.heap.extend(tied.drain(..).map(Reverse));
        }
        best.map(|(total, _, state)| (total, state))
    }

    fn read_on(&mut self, shape: &Shape, states: &States, scoring: &Scoring) {
        self.held.resize(states.len().div_ceil(64), 0);
        for row in self.read..states.appeared().len() {
            let state = states.appeared()[row];
            let (word, bit) = (state as usize / 64, 1u64 << (state % 64));
            if self.held[word] & bit != 0 || !states.is_live(state) {
                continue;
            }
            let Some(cost) = scoring.cost(shape, states.state(state), states.measured(state))
            else {
                continue;
            };
            self.held[word] |= bit;
            let model = if scoring.confined.is_empty() { 0 } else { states.state(state).model };
            let same = |group: &&mut Group| group.model == model && group.lost == cost.lost;
            let entry = Reverse((cost.cost, state));
            match self.groups.iter_mut().find(same) {
                Some(group) => group.heap.push(entry),
                None => self.groups.push(Group {
                    model,
                    lost: cost.lost,
                    heap: BinaryHeap::from([entry]),
                }),
            }
        }
        self.read = states.appeared().len();
    }
}

fn drop_the_dead(
    heap: &mut BinaryHeap<Reverse<(i64, StateIx)>>,
    held: &mut [u64],
    states: &States,
) {
    while let Some(&Reverse((_, state))) = heap.peek() {
        if states.is_live(state) {
            return;
        }
        heap.pop();
        held[state as usize / 64] &= !(1 << (state % 64));
    }
}

/// The same by looking at every state, and all states tied for it, through `visit`.
pub fn scan(
    shape: &Shape,
    states: &States,
    scoring: &Scoring,
    scarcity: &Scarcity,
    mut visit: impl FnMut(i64, StateIx),
) {
    for state in states.live() {
        let host = states.state(*state);
        if let Some(cost) = scoring.cost(shape, host, states.measured(*state)) {
            visit(cost.cost + scarcity.adds(host.model, cost.lost), *state);
        }
    }
}
