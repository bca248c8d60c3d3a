//! A placement as a member of a population whose values are kinds of goals.

use super::member::Valued;
use crate::assignment::State;
use crate::engines::variation::Placement;

/// Which goals of a problem are added up for each value, and what the value can be.
#[derive(Clone, Debug, PartialEq)]
pub struct Kinds<const N: usize> {
    /// The value that each goal belongs to, by row; `None` for goals that count for none.
    pub of_goal: Vec<Option<usize>>,
    /// No placement has less.
    pub least: [f64; N],
    /// From there to about the worst.
    pub span: [f64; N],
}

#[derive(Debug)]
pub(super) struct GoalMember<'m, const N: usize> {
    kinds: &'m Kinds<N>,
    state: State<'m>,
    worths: [i64; N],
    weights: [f64; N],
    priced: u64,
    /// By goal, for asking.
    deltas: Vec<i64>,
}

impl<const N: usize> Clone for GoalMember<'_, N> {
    fn clone(&self) -> Self {
        Self { state: self.state.clone(), deltas: self.deltas.clone(), ..*self }
    }

    fn clone_from(&mut self, other: &Self) {
        self.state.clone_from(&other.state);
        (self.kinds, self.worths) = (other.kinds, other.worths);
        (self.weights, self.priced) = (other.weights, other.priced);
    }
}

impl<'m, const N: usize> GoalMember<'m, N> {
    pub(super) fn new(kinds: &'m Kinds<N>, state: State<'m>) -> Self {
        let worths = by_kind(kinds, &state.worths());
        let deltas = vec![0; kinds.of_goal.len()];
        Self { kinds, state, worths, weights: [0.0; N], priced: 0, deltas }
    }

    /// Asks how each value changes.
    fn ask(&mut self, ask: impl FnOnce(&State<'m>, &mut [i64])) -> [i64; N] {
        self.deltas.fill(0);
        ask(&self.state, &mut self.deltas);
        by_kind(self.kinds, &self.deltas)
    }

    fn price(&mut self, ask: impl FnOnce(&State<'m>, &mut [i64])) -> f64 {
        self.priced += 1;
        let deltas = self.ask(ask);
        deltas.iter().zip(&self.weights).map(|(&delta, weight)| delta as f64 * weight).sum()
    }

    fn change(&mut self, deltas: [i64; N]) {
        self.worths.iter_mut().zip(deltas).for_each(|(worth, delta)| *worth += delta);
    }
}

/// Goals added up by value.
fn by_kind<const N: usize>(kinds: &Kinds<N>, worths: &[i64]) -> [i64; N] {
    let mut sums = [0; N];
    for (worth, kind) in worths.iter().zip(&kinds.of_goal) {
        if let Some(kind) = kind {
            sums[*kind] += worth;
        }
    }
    sums
}

impl<'m, const N: usize> Valued<'m, N> for GoalMember<'m, N> {
    fn values(&self) -> [f64; N] {
        std::array::from_fn(|at| self.worths[at] as f64 - self.kinds.least[at])
    }

    fn worst(&self) -> [f64; N] {
        self.kinds.span
    }

    fn weights_mut(&mut self) -> &mut [f64; N] {
        &mut self.weights
    }

    fn priced(&self) -> u64 {
        self.priced
    }

    fn start_counting(&mut self) {
        self.priced = 0;
    }

    /// Each way is for one value, and more and more for the others.
    fn factors(number: u32, even: f64) -> [f64; N] {
        std::array::from_fn(|at| if at == number as usize % N { 1.0 } else { even })
    }

    /// A thousandth of the way from best to worst, by all values.
    fn heat(&self) -> f64 {
        let parts = self.weights.iter().zip(&self.kinds.span);
        parts.map(|(weight, span)| weight * span).sum::<f64>() / 1_000.0
    }
}

impl<'m, const N: usize> Placement<'m> for GoalMember<'m, N> {
    fn state(&self) -> &State<'m> {
        &self.state
    }

    fn shift_delta(&mut self, vm: u32, to: u32) -> f64 {
        self.price(|state, deltas| state.shift_deltas(vm, to, deltas))
    }

    fn swap_delta(&mut self, a: u32, b: u32) -> f64 {
        self.price(|state, deltas| state.swap_deltas(a, b, deltas))
    }

    fn place_delta(&mut self, vm: u32, host: u32) -> f64 {
        self.price(|state, deltas| state.place_deltas(vm, host, deltas))
    }

    fn shift(&mut self, vm: u32, to: u32) {
        let deltas = self.ask(|state, deltas| state.shift_deltas(vm, to, deltas));
        self.state.shift(vm, to);
        self.change(deltas);
    }

    fn swap(&mut self, a: u32, b: u32) {
        let deltas = self.ask(|state, deltas| state.swap_deltas(a, b, deltas));
        self.state.swap(a, b);
        self.change(deltas);
    }

    fn place(&mut self, vm: u32, host: u32) {
        let deltas = self.ask(|state, deltas| state.place_deltas(vm, host, deltas));
        self.state.place(vm, host);
        self.change(deltas);
    }

    fn remove(&mut self, vm: u32) {
        let host = self.state.host_of(vm);
        self.state.remove(vm);
        let deltas = self.ask(|state, deltas| state.place_deltas(vm, host, deltas));
        self.change(deltas.map(|delta| -delta));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assignment::{Budget, Model};
    use crate::dice::Dice;
    use crate::engines::{Start, Task};
    use fixture::assignments::{Limits, random};

    #[test]
    fn values_are_kept_as_if_they_were_worked_out_anew() {
        let (mut draws, mut dice) = (fixture::Dice::new(9), Dice::new(9));
        let mut changes = 0;
        for seed in 0..200 {
            let problem = random(&mut draws, Limits { hosts: 6, vms: 12, groups: 3, rules: 3 });
            let model = Model::compile(&problem).unwrap();
            let goals = problem.goals.len();
            let kinds: Kinds<2> = Kinds {
                of_goal: (0..goals).map(|goal| (goal < 3).then_some(goal % 2)).collect(),
                least: [0.0; 2],
                span: [1.0; 2],
            };
            let task = Task::new(&problem, &model, seed);
            let Ok(start) = Start::Random.assignment(task, &Budget::steps(1 << 40)) else {
                continue;
            };
            let mut member = GoalMember::new(&kinds, State::new(&model, &start));
            for _ in 0..20 {
                if start.is_empty() {
                    break;
                }
                let vm = dice.below(start.len() as u32);
                let to = dice.below(model.hosts() as u32);
                if to != member.state().host_of(vm) && member.state().may_shift(vm, to) {
                    if dice.below(2) == 0 {
                        member.shift(vm, to);
                    } else {
                        member.remove(vm);
                        member.place(vm, to);
                    }
                    changes += 1;
                }
                let anew = State::new(&model, member.state().assignment());
                assert_eq!(member.values(), GoalMember::new(&kinds, anew).values(), "seed {seed}");
            }
        }
        assert!(changes > 300, "{changes}");
    }
}
