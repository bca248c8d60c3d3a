//! Few moves: takes those back that do not pay, and then those that cost least to take back, until
//! no more VMs are away from home than may be; or makes the best ones of those that are wanted.

use crate::assignment::{NOWHERE, State};

/// Passes over all VMs that moved before what is left is taken as it is.
const PASSES: u32 = 64;

/// VMs that are not where they were, of those that were somewhere.
pub fn moved(state: &State<'_>) -> Vec<u32> {
    let model = state.model();
    let away = |&vm: &u32| ![NOWHERE, state.host_of(vm)].contains(&model.initial(vm));
    (0..model.vms() as u32).filter(away).collect()
}

/// Sends VMs home from a feasible state, which stays feasible: whoever costs nothing there, and
/// others, the cheapest first, while more than `most` are away. Returns how many are away in the
/// end: more than `most` if the rest cannot go home.
pub fn undo(state: &mut State<'_>, most: usize) -> usize {
    for _ in 0..PASSES {
        let away = moved(state);
        let mut priced: Vec<(i64, u32)> =
            away.iter().filter_map(|&vm| Some((price(state, vm)?, vm))).collect();
        priced.sort_unstable();
        let before = away.len();
        let mut left = before;
        for (_, vm) in priced {
            // Those before it may have changed what it costs, or taken it along.
            if let Some(cost) = price(state, vm)
                && (cost <= 0 || left > most)
            {
                left -= send_home(state, vm);
            }
        }
        if left == before {
            return left;
        }
    }
    moved(state).len()
}

/// Makes those of the wanted moves that gain, the best first, while no more than `most` VMs are
/// away from home. The state stays feasible; moves that need others first are tried again.
pub fn approach(state: &mut State<'_>, wanted: &[u32], most: usize) {
    for _ in 0..PASSES {
        let mut gains: Vec<(i64, u32)> = Vec::new();
        for (vm, &to) in (0u32..).zip(wanted) {
            if to != state.host_of(vm) && state.may_shift(vm, to) {
                gains.push((state.shift_delta(vm, to), vm));
            }
        }
        gains.sort_unstable();
        let mut away = moved(state).len();
        let mut changed = false;
        for (_, vm) in gains {
            let (to, home) = (wanted[vm as usize], state.model().initial(vm));
            let leaves = home != NOWHERE && state.host_of(vm) == home;
            if leaves && away >= most || !state.may_shift(vm, to) || state.shift_delta(vm, to) >= 0
            {
                continue;
            }
            state.shift(vm, to);
            (away, changed) = (away + usize::from(leaves), true);
        }
        if !changed {
            return;
        }
    }
}

/// What it costs to send a VM home, alone or in exchange for the VM that has its place; `None` if
/// it cannot go, or is there.
fn price(state: &State<'_>, vm: u32) -> Option<i64> {
    let home = state.model().initial(vm);
    if home == state.host_of(vm) {
        return None;
    }
    if state.may_shift(vm, home) {
        return Some(state.shift_delta(vm, home));
    }
    partner(state, vm).map(|other| state.swap_delta(vm, other))
}

/// A VM that is in another's home and whose own home that one is in.
fn partner(state: &State<'_>, vm: u32) -> Option<u32> {
    let (here, home) = (state.host_of(vm), state.model().initial(vm));
    let fits = |other: &&u32| {
        state.model().initial(**other) == here
            && state.fits_swap(vm, **other)
            && state.rules_allow(&state.swap_of(vm, **other))
    };
    state.vms_on(home).iter().find(fits).copied()
}

fn send_home(state: &mut State<'_>, vm: u32) -> usize {
    let home = state.model().initial(vm);
    if state.may_shift(vm, home) {
        state.shift(vm, home);
        return 1;
    }
    let Some(other) = partner(state, vm) else { return 0 };
    state.swap(vm, other);
    2
}
