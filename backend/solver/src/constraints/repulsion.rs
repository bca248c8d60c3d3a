//! Placed VMs that keep the newcomer away: `Apart` rules bind both sides.

use crate::bits::Mask;
use crate::problem::Problem;
use crate::request::Request;

/// Removes the hosts of domains that hold a repeller of the VM; says how many.
pub(crate) fn narrow(problem: &Problem, request: &Request, mask: &mut Mask) -> u32 {
    let mut removed = 0;
    for &subject in request.own_groups.iter().chain(&request.own_name) {
        for repellers in problem.groups.repellers(subject) {
            for (domain, _) in repellers.by_domain.iter() {
                removed += problem.domains.remove_from(mask, repellers.level, domain);
            }
        }
    }
    removed
}
