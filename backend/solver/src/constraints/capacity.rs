//! Room for the demand, dimension by dimension.

use crate::bits::Mask;
use crate::room::{Ask, Room};
use cluster::{Reason, Rejections};

/// Removes the hosts without room, each counted under the first dimension that it lacks.
pub(crate) fn narrow(room: &mut Room, asks: &[Ask], mask: &mut Mask, rejections: &mut Rejections) {
    for ask in asks {
        let removed = match room.having(ask) {
            Some(hosts) => mask.retain(hosts),
            None => mask.subtract_all(),
        };
        let unable = room.guaranteeing(ask).map_or(0, |hosts| mask.retain(hosts));
        rejections.add(Reason::Capacity(ask.dim), removed + unable);
    }
}
