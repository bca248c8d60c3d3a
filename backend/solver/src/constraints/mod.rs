//! The hosts that may take a VM, rule by rule in the documented order.
//!
//! This is the one feasibility function. `place` runs it on the whole fleet, `feasible` on a mask
//! of one host; a rule only ever removes hosts from the mask and says how many.

pub(crate) mod affinity;
mod capacity;
mod dependency;
pub(crate) mod eligibility;
mod exclusive;
pub(crate) mod fabric;
mod fence;
pub(crate) mod installed;
mod limit;
mod members;
mod min_domains;
mod network;
mod repulsion;
mod spare;
pub(crate) mod spread;
mod topology;

use crate::bits::{Bits, Mask};
use crate::policies::RulesThatRemoved;
use crate::problem::Problem;
use crate::request::Request;
use cluster::{AffinityKind, HostIx, Reason, Rejections};
use installed::Tables;

/// The masks that filtering needs.
#[derive(Debug, Default)]
pub(crate) struct Masks {
    /// The hosts that are left.
    pub(crate) left: Mask,
    /// The hosts that count for spread rules: those that pass every rule before `Affinity`.
    eligible: Mask,
    union: Bits,
    /// The rules of policies that removed hosts.
    pub(crate) by_rule: RulesThatRemoved,
}

/// Leaves in `masks.left` the hosts that may take the VM; the others are counted by reason.
pub(crate) fn filter(
    problem: &mut Problem,
    request: &mut Request,
    masks: &mut Masks,
) -> Rejections {
    let mut rejections = Rejections::default();
    masks.left.reset_to(problem.hosts.present());
    eligibility::narrow(problem, request, &mut masks.left, &mut masks.union, &mut rejections);
    if !request.spreads.is_empty() {
        masks.eligible.copy_from(&masks.left);
        for spread in &mut request.spreads {
            spread.settle(problem, &masks.eligible);
        }
    }
    narrow_to_neighbours(problem, request, masks, &mut rejections);
    narrow_by_installed(problem, request, masks, &mut rejections);
    narrow_by_policies(problem, masks, &mut rejections);
    narrow_to_room(problem, request, masks, &mut rejections);
    rejections
}

/// The same for one host: the first rule that keeps the VM away, if any.
pub(crate) fn check(
    problem: &mut Problem,
    request: &mut Request,
    masks: &mut Masks,
    host: HostIx,
) -> Result<(), Reason> {
    let mut rejections = Rejections::default();
    masks.left.reset_to_one(host);
    eligibility::narrow(problem, request, &mut masks.left, &mut masks.union, &mut rejections);
    let uncertain = request.spreads.iter().any(|spread| spread.needs_fewest(problem, host));
    if rejections.total() == 0 && uncertain {
        let (eligible, union) = (&mut masks.eligible, &mut masks.union);
        eligible.reset_to(problem.hosts.present());
        eligibility::narrow(problem, request, eligible, union, &mut Rejections::default());
        for spread in &mut request.spreads {
            spread.settle(problem, &masks.eligible);
        }
    }
    narrow_to_neighbours(problem, request, masks, &mut rejections);
    narrow_by_installed(problem, request, masks, &mut rejections);
    narrow_by_policies(problem, masks, &mut rejections);
    narrow_to_room(problem, request, masks, &mut rejections);
    rejections.0.first().map_or(Ok(()), |&(reason, _)| Err(reason))
}

/// The rules that depend on where other VMs are.
fn narrow_to_neighbours(
    problem: &Problem,
    request: &Request,
    masks: &mut Masks,
    rejections: &mut Rejections,
) {
    let Masks { left, union, .. } = masks;
    for (kind, reason) in
        [(AffinityKind::Together, Reason::Affinity), (AffinityKind::Apart, Reason::AntiAffinity)]
    {
        let rules = request.rules.iter().filter(|rule| rule.kind == kind && !rule.about_hosts);
        for rule in rules.filter(|rule| rule.weight.is_none()) {
            rejections.add(reason, rule.narrow(problem, left, union));
        }
    }
    rejections.add(Reason::AntiAffinity, repulsion::narrow(problem, request, left));
    for spread in request.spreads.iter().filter(|spread| spread.weight.is_none()) {
        rejections.add(Reason::Spread, spread.narrow(problem, left));
    }
}

/// The constraints that an operator installed, but for fences.
fn narrow_by_installed(
    problem: &mut Problem,
    request: &Request,
    masks: &mut Masks,
    rejections: &mut Rejections,
) {
    let Problem { installed, hosts, domains, room, .. } = problem;
    if installed.is_empty() {
        return;
    }
    let (tables, Masks { left, union, .. }) = (Tables { hosts, domains, room }, masks);
    installed.narrow(&request.classes, &request.asks, &tables, left, union, rejections);
}

/// Room on the host, then the parts of it.
fn narrow_to_room(
    problem: &mut Problem,
    request: &Request,
    masks: &mut Masks,
    rejections: &mut Rejections,
) {
    capacity::narrow(&mut problem.room, &request.asks, &mut masks.left, rejections);
    let asked = request.inside.as_ref();
    topology::narrow(&mut problem.inside, asked, &mut masks.left, rejections);
}

/// What the policies in force remove for the VM at hand.
fn narrow_by_policies(problem: &mut Problem, masks: &mut Masks, rejections: &mut Rejections) {
    let Problem { policies, hosts, room, .. } = problem;
    let (removed, by_rule) = policies.narrow(&mut masks.left, hosts, room);
    rejections.add(Reason::Policy, removed);
    masks.by_rule = by_rule;
}
