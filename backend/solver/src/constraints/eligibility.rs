//! The rules on a host itself, whatever runs on it or elsewhere: state, pool, selectors, taints,
//! datastores, excluded hosts, together with or apart from named hosts, and fences.

use crate::bits::{Bits, Mask};
use crate::problem::Problem;
use crate::request::Request;
use cluster::{Reason, Rejections};

/// Removes the hosts that these rules leave out, and counts them by reason.
pub(crate) fn narrow(
    problem: &Problem,
    request: &Request,
    mask: &mut Mask,
    union: &mut Bits,
    rejections: &mut Rejections,
) {
    let predicates = &problem.predicates;
    rejections.add(Reason::HostState, mask.retain(&predicates.available));
    if let Some(pool) = request.pool {
        rejections.add(Reason::Pool, mask.retain(predicates.pool_hosts(pool)));
    }
    for &selector in &request.selectors {
        rejections.add(Reason::Selector, mask.retain(predicates.selected_hosts(selector)));
    }
    rejections.add(Reason::Taint, mask.retain(&predicates.tolerated(request.tolerated).hosts));
    for &datastore in &request.datastores {
        rejections.add(Reason::Datastore, mask.retain(predicates.datastore_hosts(datastore)));
    }
    for &host in &request.excluded {
        rejections.add(Reason::ExcludedHost, mask.remove(host));
    }
    let required = request.rules.iter().filter(|rule| rule.about_hosts && rule.weight.is_none());
    for rule in required {
        rejections.add(Reason::HostAffinity, rule.narrow(problem, mask, union));
    }
    let fenced = problem.installed.narrow_by_fences(&request.classes, mask);
    rejections.add(Reason::Fence, fenced);
}
