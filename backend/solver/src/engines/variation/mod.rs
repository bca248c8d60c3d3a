//! What engines that keep many placements at once do to one of them: changes of whole hosts, and
//! small steps that gain. Every rule holds before and after each.

mod changes;
mod climb;

pub(super) use changes::{Changes, Other, dear_host, some_host};
pub(super) use climb::climb;

use crate::assignment::State;

/// A placement that can be changed, and says what a change costs before it is made. Numbers are
/// better when smaller; a state's own are its objective's.
pub(super) trait Placement<'m> {
    fn state(&self) -> &State<'m>;

    fn shift_delta(&mut self, vm: u32, to: u32) -> f64;
    fn swap_delta(&mut self, a: u32, b: u32) -> f64;
    /// For a VM that is not placed.
    fn place_delta(&mut self, vm: u32, host: u32) -> f64;

    fn shift(&mut self, vm: u32, to: u32);
    fn swap(&mut self, a: u32, b: u32);
    fn place(&mut self, vm: u32, host: u32);
    fn remove(&mut self, vm: u32);

    /// Which of a few hosts to look at first, if that is known: the lowest.
    fn level(&self, _host: u32) -> i64 {
        0
    }
}

impl<'m> Placement<'m> for State<'m> {
    fn state(&self) -> &State<'m> {
        self
    }

    #[inline]
    fn shift_delta(&mut self, vm: u32, to: u32) -> f64 {
        State::shift_delta(self, vm, to) as f64
    }

    #[inline]
    fn swap_delta(&mut self, a: u32, b: u32) -> f64 {
        State::swap_delta(self, a, b) as f64
    }

    #[inline]
    fn place_delta(&mut self, vm: u32, host: u32) -> f64 {
        State::place_delta(self, vm, host) as f64
    }

    fn shift(&mut self, vm: u32, to: u32) {
        State::shift(self, vm, to);
    }

    fn swap(&mut self, a: u32, b: u32) {
        State::swap(self, a, b);
    }

    fn place(&mut self, vm: u32, host: u32) {
        State::place(self, vm, host);
    }

    fn remove(&mut self, vm: u32) {
        State::remove(self, vm);
    }
}
