//! What walkers walk on: an assignment that takes a shift or a swap if it is worth it.

use crate::assignment::{Model, State};

/// How much a change may cost to be taken.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    pub(super) most: f64,
    /// What leaving home costs beyond the goals, as a share of the size of what is left behind.
    pub(super) leaving: f64,
}

pub(super) trait Ground<'m>: Clone + Send {
    fn model(&self) -> &'m Model;

    fn objective(&self) -> i64;

    fn host_of(&self, vm: u32) -> u32;

    /// Takes a shift that has room, costs little enough and breaks no rule.
    fn shift(&mut self, vm: u32, to: u32, patience: Patience) -> bool;

    /// Two VMs change places, likewise.
    fn swap(&mut self, vm: u32, other: u32, patience: Patience) -> bool;

    fn write_assignment(&self, hosts: &mut [u32]) {
        for (vm, host) in (0..).zip(hosts) {
            *host = self.host_of(vm);
        }
    }
}

/// Any goals at all, at the price of asking each of them.
#[derive(Clone)]
pub(super) struct AnyGoals<'m> {
    pub(super) state: State<'m>,
    pub(super) left_behind: &'m [f64],
}

impl AnyGoals<'_> {
    /// What is added for leaving home, or given back for coming.
    fn leaving(&self, vm: u32, to: u32, leaving: f64) -> f64 {
        let home = self.state.model().initial(vm);
        let leaves = i32::from(self.state.host_of(vm) == home) - i32::from(to == home);
        f64::from(leaves) * leaving * self.left_behind[vm as usize]
    }
}

impl<'m> Ground<'m> for AnyGoals<'m> {
    fn model(&self) -> &'m Model {
        self.state.model()
    }

    fn objective(&self) -> i64 {
        self.state.objective()
    }

    fn host_of(&self, vm: u32) -> u32 {
        self.state.host_of(vm)
    }

    fn shift(&mut self, vm: u32, to: u32, patience: Patience) -> bool {
        let state = &mut self.state;
        if to == state.host_of(vm) || !state.fits(vm, to) {
            return false;
        }
        let delta = state.shift_delta(vm, to) as f64;
        let taken = delta + self.leaving(vm, to, patience.leaving) <= patience.most
            && self.state.rules_allow(&[self.state.shift_of(vm, to)]);
        if taken {
            self.state.shift(vm, to);
        }
        taken
    }

    fn swap(&mut self, vm: u32, other: u32, patience: Patience) -> bool {
        let (here, there) = (self.host_of(vm), self.host_of(other));
        if here == there || !self.state.fits_swap(vm, other) {
            return false;
        }
        let delta = self.state.swap_delta(vm, other) as f64;
        let leaving =
            self.leaving(vm, there, patience.leaving) + self.leaving(other, here, patience.leaving);
        let taken = delta + leaving <= patience.most
            && self.state.rules_allow(&self.state.swap_of(vm, other));
        if taken {
            self.state.swap(vm, other);
        }
        taken
    }
}
