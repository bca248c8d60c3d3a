//! Energy: what hosts draw by their power curves and the CPU that is in use, in milliwatts.
//!
//! A host without VMs is off, but for as many of the cheapest as are kept on. The range is from the
//! least that the VMs need to every VM on a host of its own, or every host at its peak.

use super::Natural;
use super::facts::Facts;
use cluster::assignment::Goal;

pub(super) fn goals(facts: &mut Facts<'_>) -> Natural {
    let goal = Goal::Power {
        resource: facts.cpu(),
        curves: facts.curves(|_| 1),
        keep_on: facts.setting.keep_on,
    };
    Natural { goals: vec![goal], per_unit: 1 }
}
