//! Room for the demand, dimension by dimension.

use crate::bits::{Mask, at_least};
use crate::problem::Problem;
use crate::room::{Ask, Free};
use cluster::{Reason, Rejections};
use smallvec::SmallVec;

/// Removes the hosts without room, each counted under the first dimension that it lacks.
pub(crate) fn narrow(
    problem: &Problem,
    asks: &[Ask],
    mask: &mut Mask,
    rejections: &mut Rejections,
) {
    let mut columns: SmallVec<[(&Free, i32, u32); 6]> = SmallVec::new();
    let mut impossible = None;
    for ask in asks {
        match problem.room.column(ask) {
            Some((free, amount)) => columns.push((free, amount, 0)),
            None => {
                impossible = Some(Reason::Capacity(ask.dim));
                break;
            }
        }
    }
    for block in mask.scope() {
        let mut left = mask.word(block);
        if left == 0 {
            continue;
        }
        for (free, amount, failed) in &mut columns {
            if *amount <= free.low(block) {
                continue;
            }
            let fit =
                if *amount > free.high(block) { 0 } else { at_least(free.block(block), *amount) };
            *failed += (left & !fit).count_ones();
            left &= fit;
            if left == 0 {
                break;
            }
        }
        mask.set_word(block, left);
    }
    for (ask, (_, _, failed)) in asks.iter().zip(&columns) {
        rejections.add(Reason::Capacity(ask.dim), *failed);
    }
    if let Some(reason) = impossible {
        rejections.add(reason, mask.subtract_all());
    }
}
