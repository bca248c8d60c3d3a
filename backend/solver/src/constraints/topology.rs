//! Parts of the host, for VMs that ask for any: cores, memory, GPUs and devices where they have to
//! be. What each reason means is `topology::lacking`'s to say.

use crate::bits::Mask;
use crate::inside::{Asked, Inside};
use cluster::{INSIDE_REASONS, Rejections};

/// Removes the hosts that cannot give the VM its parts, and counts them by reason.
pub(crate) fn narrow(
    inside: &mut Inside,
    asked: Option<&Asked>,
    mask: &mut Mask,
    rejections: &mut Rejections,
) {
    let Some(asked) = asked else { return };
    for (reason, hosts) in INSIDE_REASONS.into_iter().zip(inside.narrow(asked, mask)) {
        rejections.add(reason, hosts);
    }
}
