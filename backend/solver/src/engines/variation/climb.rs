//! Small steps: shifts, swaps and ways home that gain, or that lose little while it is hot.

use super::Placement;
use crate::assignment::NOWHERE;
use crate::dice::{Dice, ln};

/// Tries so many steps. With a heat of 0 only those that gain are made; otherwise losses of this
/// size about once in three times.
pub(crate) fn climb<'m>(on: &mut impl Placement<'m>, tries: u32, heat: f64, dice: &mut Dice) {
    let vms = on.state().model().vms() as u32;
    for _ in 0..tries {
        let vm = dice.below(vms);
        let most = if heat > 0.0 { heat * -ln(1.0 - dice.share()) } else { 0.0 };
        match dice.below(8) {
            0 | 1 => go_home(on, vm, most),
            2..5 => {
                let to = low_host(on, vm, dice);
                try_shift(on, vm, to, most);
            }
            _ => {
                let other = dice.below(vms);
                try_swap(on, vm, other, most);
            }
        }
    }
}

/// The lowest of three hosts that are drawn and have VMs.
fn low_host<'m>(on: &impl Placement<'m>, vm: u32, dice: &mut Dice) -> u32 {
    let hosts = on.state().assignment();
    let mut drawn = || hosts[dice.below(hosts.len() as u32) as usize];
    let draws = [drawn(), drawn(), drawn()];
    let home = hosts[vm as usize];
    let others = draws.into_iter().filter(|&host| host != home);
    others.min_by_key(|&host| on.level(host)).unwrap_or(home)
}

fn try_shift<'m>(on: &mut impl Placement<'m>, vm: u32, to: u32, most: f64) -> bool {
    if to == on.state().host_of(vm) || !on.state().fits(vm, to) {
        return false;
    }
    let taken =
        on.shift_delta(vm, to) < most && on.state().rules_allow(&[on.state().shift_of(vm, to)]);
    if taken {
        on.shift(vm, to);
    }
    taken
}

fn try_swap<'m>(on: &mut impl Placement<'m>, a: u32, b: u32, most: f64) -> bool {
    if on.state().host_of(a) == on.state().host_of(b) || !on.state().fits_swap(a, b) {
        return false;
    }
    let taken = on.swap_delta(a, b) < most && on.state().rules_allow(&on.state().swap_of(a, b));
    if taken {
        on.swap(a, b);
    }
    taken
}

/// Back to where a VM was at first: in place of one of the same shape that is not at home there
/// either, or by itself.
fn go_home<'m>(on: &mut impl Placement<'m>, vm: u32, most: f64) {
    let (model, state) = (on.state().model(), on.state());
    let home = model.initial(vm);
    if home == NOWHERE || home == state.host_of(vm) {
        return;
    }
    let like = |&&other: &&u32| {
        model.shape_of(other) == model.shape_of(vm) && model.initial(other) != home
    };
    if let Some(&other) = state.vms_on(home).iter().find(like)
        && try_swap(on, vm, other, most)
    {
        return;
    }
    try_shift(on, vm, home, most);
}
