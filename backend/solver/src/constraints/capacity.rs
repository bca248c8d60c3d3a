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
    // Dimensions of which some host may have too little.
    let mut scarce: SmallVec<[Scarce<'_>; 6]> = SmallVec::new();
    let mut impossible = None;
    for ask in asks {
        let reason = Reason::Capacity(ask.dim);
        match problem.room.column(ask) {
            None => {
                impossible = Some(reason);
                break;
            }
            Some((free, amount)) if !free.all_have(amount) => {
                scarce.push(Scarce { free, amount, failed: 0, reason });
            }
            Some(_) => {}
        }
    }
    if !scarce.is_empty() {
        for block in mask.scope() {
            let left = mask.word(block);
            if left != 0 {
                mask.set_word(block, narrow_block(&mut scarce, block, left));
            }
        }
    }
    for Scarce { failed, reason, .. } in scarce {
        rejections.add(reason, failed);
    }
    if let Some(reason) = impossible {
        rejections.add(reason, mask.subtract_all());
    }
}

struct Scarce<'p> {
    free: &'p Free,
    amount: i32,
    failed: u32,
    reason: Reason,
}

/// The lanes of `left` with room in every dimension.
fn narrow_block(scarce: &mut [Scarce<'_>], block: usize, mut left: u64) -> u64 {
    for Scarce { free, amount, failed, .. } in scarce {
        if *amount <= free.low(block) {
            continue;
        }
        let fit = if *amount > free.high(block) { 0 } else { at_least(free.block(block), *amount) };
        *failed += (left & !fit).count_ones();
        left &= fit;
        if left == 0 {
            break;
        }
    }
    left
}
