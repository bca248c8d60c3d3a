//! A placement as a member of a population: a `State` that also knows the values of the front.
//!
//! Every change is priced before it is made, by the two hosts that it touches.

use super::criteria::{Criteria, FULL};
use super::worth::Worth;
use crate::assignment::{NOWHERE, State};
use crate::engines::variation::Placement;

/// A placement that knows its values, better when smaller and 0 at best, and prices changes by a
/// weight for each of them.
pub(super) trait Valued<'m, const N: usize>: Placement<'m> + Clone + Send + Sync {
    fn values(&self) -> [f64; N];
    /// No value is larger, or hardly any.
    fn worst(&self) -> [f64; N];
    /// What a unit of each value is worth to whoever asks.
    fn weights_mut(&mut self) -> &mut [f64; N];
    /// Changes that were priced since the member was made.
    fn priced(&self) -> u64;
    fn start_counting(&mut self);
    /// How weights differ from way to way, as values count more and more alike.
    fn factors(number: u32, even: f64) -> [f64; N];
    /// A usual small loss by its weights.
    fn heat(&self) -> f64;

    fn worth(&self) -> Worth<N> {
        Worth::allowed(self.values())
    }
}

type Weights = [f64; 3];

#[derive(Debug)]
pub(super) struct Member<'c> {
    criteria: &'c Criteria,
    state: State<'c>,
    /// Highest utilisation of each host, and the sums of it and of its square.
    fill: Vec<i64>,
    sum: i64,
    squares: i64,
    on: i64,
    /// One over the hosts that are on: most changes leave it as it is, and division is slow.
    share: f64,
    moved: i64,
    spread: f64,
    weights: Weights,
    priced: u64,
}

impl Clone for Member<'_> {
    fn clone(&self) -> Self {
        Self { state: self.state.clone(), fill: self.fill.clone(), ..*self }
    }

    fn clone_from(&mut self, other: &Self) {
        self.state.clone_from(&other.state);
        self.fill.clone_from(&other.fill);
        (self.sum, self.squares, self.on) = (other.sum, other.squares, other.on);
        (self.share, self.moved, self.spread) = (other.share, other.moved, other.spread);
        (self.weights, self.priced) = (other.weights, other.priced);
    }
}

impl<'c> Member<'c> {
    pub(super) fn new(criteria: &'c Criteria, hosts: &[u32]) -> Self {
        let mut member = Self {
            criteria,
            state: State::new(&criteria.model, hosts),
            fill: vec![0; criteria.model.hosts()],
            sum: 0,
            squares: 0,
            on: 0,
            share: 0.0,
            moved: 0,
            spread: 0.0,
            weights: [0.0; 3],
            priced: 0,
        };
        (0..criteria.model.hosts() as u32).for_each(|host| member.refill(host, 0));
        member.on = (0..criteria.model.hosts() as u32)
            .filter(|&host| !member.state.vms_on(host).is_empty())
            .count() as i64;
        member.moved = (0..).zip(hosts).map(|(vm, &host)| member.is_moved(vm, host)).sum();
        member.settle();
        member
    }

    /// Whether a VM moves by being there, as a number.
    #[inline]
    fn is_moved(&self, vm: u32, host: u32) -> i64 {
        let initial = self.criteria.model.initial(vm);
        i64::from(initial != host && initial != NOWHERE && host != NOWHERE)
    }

    #[inline]
    fn spread_delta(&self, on: i64, fills: [(u32, i64); 2]) -> f64 {
        let (mut sum, mut squares) = (self.sum, self.squares);
        for (host, fill) in fills {
            let before = self.fill[host as usize];
            sum += fill - before;
            squares += fill * fill - before * before;
        }
        let share = if on == 0 { self.share } else { share_of(self.on + on) };
        spread(share, sum, squares) - self.spread
    }

    /// Works out the spread anew after a change.
    fn settle(&mut self) {
        self.share = share_of(self.on);
        self.spread = spread(self.share, self.sum, self.squares);
    }

    fn put_in(&mut self, vm: u32, host: u32) {
        self.on += i64::from(self.state.vms_on(host).is_empty());
        self.state.place(vm, host);
        self.refill(host, self.fill[host as usize]);
    }

    fn take_out(&mut self, vm: u32) {
        let host = self.state.host_of(vm);
        self.state.remove(vm);
        self.on -= i64::from(self.state.vms_on(host).is_empty());
        self.refill(host, self.fill[host as usize]);
    }

    fn refill(&mut self, host: u32, before: i64) {
        let used = self.state.used(host);
        let fill = self.criteria.fill(host, |at| used[at]);
        self.fill[host as usize] = fill;
        self.sum += fill - before;
        self.squares += fill * fill - before * before;
    }
}

impl<'c> Valued<'c, 3> for Member<'c> {
    fn values(&self) -> [f64; 3] {
        [self.state.objective() as f64, self.spread, self.moved as f64]
    }

    fn worst(&self) -> [f64; 3] {
        self.criteria.worst
    }

    fn weights_mut(&mut self) -> &mut [f64; 3] {
        &mut self.weights
    }

    fn priced(&self) -> u64 {
        self.priced
    }

    fn start_counting(&mut self) {
        self.priced = 0;
    }

    /// From cost and moves alone to all values alike.
    fn factors(_: u32, even: f64) -> [f64; 3] {
        [1.0, even, 1.0]
    }

    /// What a move weighs.
    fn heat(&self) -> f64 {
        self.weights[2]
    }
}

/// Prices are the values, weighted.
impl<'c> Placement<'c> for Member<'c> {
    fn state(&self) -> &State<'c> {
        &self.state
    }

    fn level(&self, host: u32) -> i64 {
        self.fill[host as usize]
    }

    #[inline]
    fn shift_delta(&mut self, vm: u32, to: u32) -> f64 {
        self.priced += 1;
        let from = self.state.host_of(vm);
        let demand = self.criteria.model.demand(vm);
        let (used_from, used_to) = (self.state.used(from), self.state.used(to));
        let less = self.criteria.fill(from, |at| used_from[at].wrapping_sub(demand[at]));
        let more = self.criteria.fill(to, |at| used_to[at].wrapping_add(demand[at]));
        let on = i64::from(self.state.vms_on(to).is_empty())
            - i64::from(self.state.vms_on(from).len() == 1);
        let moved = self.is_moved(vm, to) - self.is_moved(vm, from);
        self.weights[0] * self.state.shift_delta(vm, to) as f64
            + self.weights[1] * self.spread_delta(on, [(from, less), (to, more)])
            + self.weights[2] * moved as f64
    }

    #[inline]
    fn swap_delta(&mut self, a: u32, b: u32) -> f64 {
        self.priced += 1;
        let (from, to) = (self.state.host_of(a), self.state.host_of(b));
        let (of_a, of_b) = (self.criteria.model.demand(a), self.criteria.model.demand(b));
        let (used_from, used_to) = (self.state.used(from), self.state.used(to));
        let change = |at: usize| of_b[at].wrapping_sub(of_a[at]);
        let at_from = self.criteria.fill(from, |at| used_from[at].wrapping_add(change(at)));
        let at_to = self.criteria.fill(to, |at| used_to[at].wrapping_sub(change(at)));
        let moved = self.is_moved(a, to) + self.is_moved(b, from)
            - self.is_moved(a, from)
            - self.is_moved(b, to);
        self.weights[0] * self.state.swap_delta(a, b) as f64
            + self.weights[1] * self.spread_delta(0, [(from, at_from), (to, at_to)])
            + self.weights[2] * moved as f64
    }

    #[inline]
    fn place_delta(&mut self, vm: u32, host: u32) -> f64 {
        self.priced += 1;
        let (demand, used) = (self.criteria.model.demand(vm), self.state.used(host));
        let more = self.criteria.fill(host, |at| used[at].wrapping_add(demand[at]));
        let on = i64::from(self.state.vms_on(host).is_empty());
        let nothing = (host, self.fill[host as usize]);
        self.weights[0] * self.state.place_delta(vm, host) as f64
            + self.weights[1] * self.spread_delta(on, [nothing, (host, more)])
            + self.weights[2] * self.is_moved(vm, host) as f64
    }

    fn shift(&mut self, vm: u32, to: u32) {
        let from = self.state.host_of(vm);
        self.moved += self.is_moved(vm, to) - self.is_moved(vm, from);
        self.take_out(vm);
        self.put_in(vm, to);
        self.settle();
    }

    fn swap(&mut self, a: u32, b: u32) {
        let (from, to) = (self.state.host_of(a), self.state.host_of(b));
        self.moved += self.is_moved(a, to) + self.is_moved(b, from)
            - self.is_moved(a, from)
            - self.is_moved(b, to);
        self.take_out(a);
        self.take_out(b);
        self.put_in(a, to);
        self.put_in(b, from);
        self.settle();
    }

    fn place(&mut self, vm: u32, host: u32) {
        self.moved += self.is_moved(vm, host);
        self.put_in(vm, host);
        self.settle();
    }

    fn remove(&mut self, vm: u32) {
        self.moved -= self.is_moved(vm, self.state.host_of(vm));
        self.take_out(vm);
        self.settle();
    }
}

fn share_of(on: i64) -> f64 {
    1.0 / on.max(1) as f64
}

/// The standard deviation of the fill of hosts that are on.
#[inline]
fn spread(share: f64, sum: i64, squares: i64) -> f64 {
    let mean = sum as f64 * share;
    (squares as f64 * share - mean * mean).max(0.0).sqrt() * (1.0 / FULL)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assignment::{Budget, Model};
    use crate::dice::Dice;
    use crate::engines::{Start, Task};
    use fixture::assignments::{Limits, random};

    const LIMITS: Limits = Limits { hosts: 6, vms: 12, groups: 3, rules: 3 };

    #[track_caller]
    fn near(told: f64, before: [f64; 3], after: [f64; 3], weights: Weights) {
        let parts = (0..3).map(|at| weights[at] * (after[at] - before[at]));
        let found: f64 = parts.sum();
        assert!((told - found).abs() < 1e-6, "{told} {found} {before:?} {after:?}");
    }

    #[test]
    fn a_change_is_priced_as_if_everything_were_worked_out_anew() {
        let (mut draws, mut dice) = (fixture::Dice::new(4), Dice::new(4));
        let (mut shifts, mut swaps) = (0, 0);
        for seed in 0..200 {
            let problem = random(&mut draws, LIMITS);
            let model = Model::compile(&problem).unwrap();
            let task = Task::new(&problem, &model, seed);
            let Ok(start) = Start::Random.assignment(task, &Budget::steps(1 << 40)) else {
                continue;
            };
            let criteria = Criteria::of(&problem).unwrap();
            let mut member = Member::new(&criteria, &start);
            let vms = start.len() as u32;
            if vms == 0 {
                continue;
            }
            for _ in 0..20 {
                member.weights = std::array::from_fn(|_| dice.share());
                let weights = member.weights;
                let (vm, other) = (dice.below(vms), dice.below(vms));
                let to = dice.below(model.hosts() as u32);
                let before = member.values();
                if to != member.state().host_of(vm) && member.state().may_shift(vm, to) {
                    let told = member.shift_delta(vm, to);
                    member.remove(vm);
                    let without = member.values();
                    let arrives = member.place_delta(vm, to);
                    member.place(vm, to);
                    near(arrives, without, member.values(), weights);
                    near(told, before, member.values(), weights);
                    shifts += 1;
                } else if member.state().host_of(vm) != member.state().host_of(other)
                    && member.state().may_swap(vm, other)
                {
                    let told = member.swap_delta(vm, other);
                    member.swap(vm, other);
                    near(told, before, member.values(), weights);
                    swaps += 1;
                }
                let anew = Member::new(&criteria, member.state().assignment());
                assert_eq!(anew.values(), member.values());
            }
        }
        assert!(shifts > 300 && swaps > 100, "{shifts} {swaps}");
    }
}
