//! Latency and bandwidth between pairs of VMs: every partner near enough, no link promised more
//! than it has.

use super::fabric::Fabric;
use super::{ByDomain, Facts, Kind, RuleRow};
use crate::ViolationKind;
use crate::reading::vm_in;
use cluster::{Name, Network, Vm};
use std::collections::BTreeMap;

pub(super) fn check(
    rules: &[(RuleRow, &Name, &Network)],
    fabric_name: &Name,
    fabric: &Fabric,
    vm: &Vm,
    facts: &impl Facts,
    found: &mut Vec<ViolationKind>,
) {
    let here = facts.domain(&fabric.level);
    // What the VM would set aside on each link, and for which constraint first.
    let mut asked: BTreeMap<usize, (u64, &Name)> = BTreeMap::new();
    for &(row, name, rule) in rules {
        let max_us = rule.max_latency_us.map(u64::from);
        for (there, count) in partners(row, rule, vm, facts, fabric) {
            if here.is_some() && here == there {
                continue;
            }
            let route = match (&here, &there) {
                (Some(here), Some(there)) => fabric.route(here, there),
                _ => None,
            };
            let near =
                route.is_some_and(|route| max_us.is_none_or(|max_us| route.latency_us <= max_us));
            if !near {
                found.push(ViolationKind::Latency {
                    constraint: name.clone(),
                    from: here.clone(),
                    to: there,
                    latency_us: route.map(|route| route.latency_us),
                    max_us,
                });
                continue;
            }
            for link in route.iter().flat_map(|route| &route.links) {
                let mbps = u64::from(rule.bandwidth_mbps) * u64::from(count);
                if mbps > 0 {
                    asked.entry(*link).or_insert((0, name)).0 += mbps;
                }
            }
        }
    }
    if asked.is_empty() {
        return;
    }
    let promised = promised(rules, fabric, facts);
    for (row, (asked, constraint)) in asked {
        let link = &fabric.links[row];
        let taken = promised.get(&row).copied().unwrap_or(0);
        let capacity = u64::from(link.bandwidth_mbps);
        if taken.saturating_add(asked) > capacity {
            found.push(ViolationKind::Bandwidth {
                constraint: constraint.clone(),
                over: fabric_name.clone(),
                a: link.a.clone(),
                b: link.b.clone(),
                asked,
                free: capacity.saturating_sub(taken),
                capacity,
            });
        }
    }
}

/// The placed VMs that this one is paired with, by domain.
fn partners(
    row: RuleRow,
    rule: &Network,
    vm: &Vm,
    facts: &impl Facts,
    fabric: &Fabric,
) -> ByDomain {
    let (first, second) = (vm_in(&rule.vms, vm), vm_in(&rule.to, vm));
    let mut all = ByDomain::new();
    for (kind, paired) in
        [(Kind::First, second), (Kind::Second, first), (Kind::Both, first || second)]
    {
        if paired {
            for (domain, count) in facts.everywhere(row, kind, &fabric.level) {
                *all.entry(domain).or_default() += count;
            }
        }
    }
    all
}

/// What placed pairs have set aside on each link.
fn promised(
    rules: &[(RuleRow, &Name, &Network)],
    fabric: &Fabric,
    facts: &impl Facts,
) -> BTreeMap<usize, u64> {
    let mut promised = BTreeMap::new();
    for &(row, _, rule) in rules.iter().filter(|(_, _, rule)| rule.bandwidth_mbps > 0) {
        let [first, second, both] = [Kind::First, Kind::Second, Kind::Both]
            .map(|kind| facts.everywhere(row, kind, &fabric.level));
        let mut domains: Vec<&Name> =
            [&first, &second, &both].into_iter().flat_map(|kind| kind.keys().flatten()).collect();
        domains.sort();
        domains.dedup();
        for (position, one) in domains.iter().enumerate() {
            for other in &domains[..position] {
                let Some(route) = fabric.route(one, other) else { continue };
                let at = |kind: &ByDomain, domain: &Name| {
                    u64::from(kind.get(&Some(domain.clone())).copied().unwrap_or(0))
                };
                // Two VMs are a pair when one is of the first set and the other of the second:
                // any two but two of the first alone, or two of the second alone.
                let all = |domain| at(&first, domain) + at(&second, domain) + at(&both, domain);
                let count = all(one) * all(other)
                    - at(&first, one) * at(&first, other)
                    - at(&second, one) * at(&second, other);
                for link in &route.links {
                    *promised.entry(*link).or_default() += count * u64::from(rule.bandwidth_mbps);
                }
            }
        }
    }
    promised
}
