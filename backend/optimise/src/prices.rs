//! What a move has to gain to be made: a price for each, and for each second that it slows the VM
//! down. Moves that gain less go back, and if all of them together gain less than they cost,
//! nobody moves: a fleet that is good enough is left alone.

use planner::{Link, timing};
use solver::assignment::State;
use solver::engines::moved;

/// In millionths of the objective before anything moves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Prices {
    pub per_move_ppm: u32,
    pub per_second_ppm: u32,
}

const PPM: i128 = 1_000_000;
/// Passes over the VMs that moved.
const PASSES: u32 = 8;

impl Prices {
    pub(crate) fn are_zero(self) -> bool {
        self == Self::default()
    }

    /// What moving a VM of this size costs, in units of the objective.
    pub(crate) fn of_move(self, memory_mib: u64, live: bool, before: i64) -> i64 {
        let ms = timing(memory_mib, live, &Link::default()).total_ms;
        let per_move = i128::from(before) * i128::from(self.per_move_ppm) / PPM;
        let per_second = i128::from(before) * i128::from(self.per_second_ppm) / PPM;
        let price = per_move + per_second * i128::from(ms) / 1_000;
        i64::try_from(price).unwrap_or(i64::MAX)
    }
}

/// Sends home whoever gains less than his price, from a feasible state, which stays feasible.
pub(crate) fn settle(state: &mut State<'_>, price: &dyn Fn(u32) -> i64) {
    for _ in 0..PASSES {
        let mut changed = false;
        for vm in moved(state) {
            let home = state.model().initial(vm);
            if state.may_shift(vm, home) && state.shift_delta(vm, home) < price(vm) {
                state.shift(vm, home);
                changed = true;
            }
        }
        if !changed {
            return;
        }
    }
}
