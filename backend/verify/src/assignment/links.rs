//! Pairs of VMs and the ways between them, one pair after the other.

use super::AssignmentViolation;
use cluster::assignment::{NO_DOMAIN, Problem, Route, Rule};
use cluster::{HostIx, VmIx};
use std::collections::{BTreeMap, BTreeSet};

/// How the two VMs of a pair get to each other.
enum Way<'a> {
    /// They are in one domain.
    Near,
    Over(&'a Route),
    None,
}

/// Every pair of a network rule, each once, with its way.
fn pairs<'a>(
    problem: &'a Problem,
    hosts: &'a [HostIx],
    rule: &'a Rule,
) -> Vec<(VmIx, VmIx, Way<'a>)> {
    let &Rule::Network { group, to, scope, over, latency, .. } = rule else { return Vec::new() };
    let set =
        |group: u32| -> BTreeSet<VmIx> { problem.groups[group as usize].iter().copied().collect() };
    let (first, second) = (set(group), set(to));
    let routes = &problem.fabrics[over as usize].routes;
    let by_ends: BTreeMap<(u32, u32), &Route> = routes
        .iter()
        .flat_map(|route| {
            let (a, b) = route.between;
            [((a, b), route), ((b, a), route)]
        })
        .collect();
    let all: Vec<VmIx> = first.union(&second).copied().collect();
    let mut found = Vec::new();
    for (row, &one) in all.iter().enumerate() {
        for &other in &all[..row] {
            let ordered = |a: VmIx, b: VmIx| first.contains(&a) && second.contains(&b);
            if !ordered(one, other) && !ordered(other, one) {
                continue;
            }
            let domain = |vm: VmIx| problem.domain(scope, hosts[vm.0 as usize]);
            let ends = (domain(one), domain(other));
            let way = match by_ends.get(&ends) {
                _ if ends.0 == NO_DOMAIN || ends.1 == NO_DOMAIN => Way::None,
                _ if ends.0 == ends.1 => Way::Near,
                Some(route) if latency.is_none_or(|most| route.latency <= most) => Way::Over(route),
                _ => Way::None,
            };
            found.push((other, one, way));
        }
    }
    found
}

pub(super) fn too_far(
    problem: &Problem,
    hosts: &[HostIx],
    rule: usize,
    what: &Rule,
) -> Vec<AssignmentViolation> {
    let apart = pairs(problem, hosts, what).into_iter().filter(|it| matches!(it.2, Way::None));
    apart
        .map(|(vm, other, _)| AssignmentViolation::TooFar { rule, vm: vm.0, other: other.0 })
        .collect()
}

/// Links of every fabric that are asked for more than they carry, by all rules together.
pub(super) fn overloaded(problem: &Problem, hosts: &[HostIx]) -> Vec<AssignmentViolation> {
    let mut faults = Vec::new();
    for (fabric, row) in problem.fabrics.iter().enumerate() {
        let mut loads = vec![0u128; row.links.len()];
        for rule in &problem.rules {
            let Rule::Network { over, bandwidth, .. } = rule else { continue };
            if *over as usize != fabric {
                continue;
            }
            for (_, _, way) in pairs(problem, hosts, rule) {
                if let Way::Over(route) = way {
                    for &link in &route.links {
                        loads[link as usize] += u128::from(*bandwidth);
                    }
                }
            }
        }
        for (link, (load, &carries)) in (0..).zip(loads.into_iter().zip(&row.links)) {
            if load > u128::from(carries) {
                faults.push(AssignmentViolation::Overloaded { fabric, link, load, carries });
            }
        }
    }
    faults
}
