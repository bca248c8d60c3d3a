//! The questions. Each answers "no" with everything that may have a part in it.

use super::sets::{are_apart, is_other, is_within, share_no_host};
use super::{CarriedTogether, Item, Question};
use crate::constraints::fabric::Fabric;
use cluster::{
    ConstraintRule, Dependency, Exclusive, Fence, Host, Level, Limit, Name, Sharing, VmSet,
};
use std::collections::{BTreeMap, BTreeSet};

pub(super) const QUESTIONS: &[Question] = &[
    is_anywhere_allowed,
    are_there_domains_enough,
    can_two_be_together,
    can_dependents_meet,
    can_anybody_be_first,
    are_partners_in_reach,
];

type No = Option<(Vec<usize>, String)>;

/// Do the fences leave a host to the VMs that the rule is about?
fn is_anywhere_allowed(items: &[Item<'_>], subject: usize, hosts: &[&Host]) -> No {
    let Item::Installed(constraint) = items[subject] else { return None };
    let ConstraintRule::Fence(fence) = &constraint.rule else { return None };
    let fences = fences(items, &fence.vms);
    for (row, other, inside) in &fences {
        if *inside && *row != subject && share_no_host(&fence.hosts, &other.hosts) {
            let why = "a host can be inside one of these fences, but not inside both";
            return Some((vec![subject, *row], why.into()));
        }
    }
    if hosts.is_empty() || hosts.iter().any(|host| allows(&fences, host)) {
        return None;
    }
    let rows = fences.iter().map(|(row, ..)| *row).chain([subject]);
    Some((rows.collect(), "no host of the fleet is left for VMs that all of these bind".into()))
}

/// Are there as many domains, among hosts that the VMs may use, as must be covered?
fn are_there_domains_enough(items: &[Item<'_>], subject: usize, hosts: &[&Host]) -> No {
    let Item::Installed(constraint) = items[subject] else { return None };
    let ConstraintRule::MinDomains(rule) = &constraint.rule else { return None };
    let fences = fences(items, &rule.vms);
    let mut involved: Vec<usize> = fences.iter().map(|(row, ..)| *row).chain([subject]).collect();
    let allowed: Vec<&Host> = hosts.iter().copied().filter(|host| allows(&fences, host)).collect();
    let level = rule.level.name();
    let domains = domains(&allowed, &rule.level).len();
    let no = |involved: Vec<usize>, most: usize, how: &str| {
        let why = format!("{how} {most} domains by {level}, and {} are asked for", rule.min);
        (most < rule.min as usize).then_some((involved, why))
    };
    if let Some(no) = no(involved.clone(), domains, "the hosts that may be used cover") {
        return Some(no);
    }
    for (row, item) in items.iter().enumerate() {
        match item {
            Item::Carried(together) if is_within(&rule.vms, &set_of(together)) => {
                let parts = by_domain(&allowed, &together.level);
                let most = parts.values().map(|part| self::domains(part, &rule.level).len()).max();
                involved.push(row);
                let how = format!("one {} covers at most", together.level.name());
                if let Some(no) = no(involved.clone(), most.unwrap_or(0), &how) {
                    return Some(no);
                }
            }
            Item::Installed(other) => {
                let ConstraintRule::Limit(limit) = &other.rule else { continue };
                let open = allowed.iter().any(|host| host.domain(&limit.level).is_none());
                let parts = self::domains(&allowed, &limit.level).len();
                let members = parts.saturating_mul(limit.max as usize);
                if is_within(&rule.vms, &limit.vms) && !open && members < rule.min as usize {
                    involved.push(row);
                    let why = format!(
                        "{members} VMs are allowed at most, and {} are asked for",
                        rule.min
                    );
                    return Some((involved, why));
                }
            }
            Item::Carried(_) => {}
        }
    }
    None
}

/// Can two of a group be in one domain, as its members ask?
fn can_two_be_together(items: &[Item<'_>], subject: usize, hosts: &[&Host]) -> No {
    let Item::Carried(together) = items[subject] else { return None };
    let set = set_of(together);
    let parts = by_domain(hosts, &together.level);
    for (row, item) in items.iter().enumerate() {
        let Item::Installed(constraint) = item else { continue };
        let (level, max) = match &constraint.rule {
            ConstraintRule::Limit(Limit { vms, level, max }) if is_within(&set, vms) => {
                (level, *max)
            }
            ConstraintRule::Exclusive(Exclusive { vms, sharing: Sharing::Nobody })
                if is_within(&set, vms) =>
            {
                (&Level::Host, 1)
            }
            _ => continue,
        };
        let open = |part: &&Vec<&Host>| part.iter().any(|host| host.domain(level).is_none());
        let most = |part: &Vec<&Host>| domains(part, level).len().saturating_mul(max as usize);
        // Where the fleet has no such domain yet, only the same level is sure to be too small.
        let roomy = parts.values().any(|part| open(&part) || most(part) >= 2)
            || (parts.is_empty() && *level != together.level);
        if !roomy {
            let why = format!(
                "group {} of tenant {} is to be together by {}, where {max} by {} are allowed",
                together.group,
                together.tenant,
                together.level.name(),
                level.name()
            );
            return Some((vec![subject, row], why));
        }
    }
    None
}

/// Can those that depend be where those are that they depend on?
fn can_dependents_meet(items: &[Item<'_>], subject: usize, hosts: &[&Host]) -> No {
    let Item::Installed(constraint) = items[subject] else { return None };
    let ConstraintRule::Dependency(rule) = &constraint.rule else { return None };
    let Dependency { vms, on, level } = rule;
    if is_within(vms, on) {
        return None;
    }
    let sides = [fences(items, vms), fences(items, on)];
    let [here, there] = sides.each_ref().map(|fences| {
        let allowed: Vec<&Host> = hosts.iter().copied().filter(|it| allows(fences, it)).collect();
        domains(&allowed, level)
    });
    let rows = sides.iter().flatten().map(|(row, ..)| *row).chain([subject]);
    if here.is_disjoint(&there) && !hosts.is_empty() {
        let why =
            format!("no {} may have both those that depend and those they need", level.name());
        return Some((rows.collect(), why));
    }
    if *level != Level::Host {
        return None;
    }
    for (row, item) in items.iter().enumerate() {
        let Item::Installed(other) = item else { continue };
        let ConstraintRule::Exclusive(exclusive) = &other.rule else { continue };
        let [inner, outer] = [vms, on].map(|set| is_within(set, &exclusive.vms));
        let shared = (inner && is_other(on, &exclusive.vms))
            || (outer && is_other(vms, &exclusive.vms))
            || (inner && outer && exclusive.sharing == Sharing::Nobody);
        if shared {
            let why = "VMs are to be on one host with others, and alone on it";
            return Some((vec![subject, row], why.into()));
        }
    }
    None
}

/// Does a chain of dependencies begin somewhere, or does everybody wait for somebody else?
fn can_anybody_be_first(items: &[Item<'_>], subject: usize, _: &[&Host]) -> No {
    let rule = |row: usize| match items[row] {
        Item::Installed(constraint) => match &constraint.rule {
            ConstraintRule::Dependency(rule) if !is_within(&rule.vms, &rule.on) => Some(rule),
            _ => None,
        },
        Item::Carried(_) => None,
    };
    let mut open = vec![(subject, vec![subject])];
    let mut seen = BTreeSet::new();
    rule(subject)?;
    while let Some((row, path)) = open.pop() {
        let Some(Dependency { on, .. }) = rule(row) else { continue };
        for next in 0..items.len() {
            let waits = rule(next).is_some_and(|next| is_within(on, &next.vms));
            if waits && next == subject {
                return Some((
                    path,
                    "each of these waits for another, and none can be first".into(),
                ));
            }
            if waits && seen.insert(next) {
                open.push((next, path.iter().copied().chain([next]).collect()));
            }
        }
    }
    None
}

/// Is there a way, fast enough, between where partners may be?
fn are_partners_in_reach(items: &[Item<'_>], subject: usize, hosts: &[&Host]) -> No {
    let Item::Installed(constraint) = items[subject] else { return None };
    let ConstraintRule::Network(rule) = &constraint.rule else { return None };
    let links = items.iter().enumerate().find_map(|(row, item)| match item {
        Item::Installed(other) if other.name == rule.over => match &other.rule {
            ConstraintRule::Links(links) => Some((row, links)),
            _ => None,
        },
        _ => None,
    });
    let (fabric_row, links) = links?;
    let sides = [fences(items, &rule.vms), fences(items, &rule.to)];
    let [here, there] = sides.each_ref().map(|fences| {
        let allowed: Vec<&Host> = hosts.iter().copied().filter(|it| allows(fences, it)).collect();
        domains(&allowed, &links.level)
    });
    if here.is_empty() || there.is_empty() || !here.is_disjoint(&there) {
        return None;
    }
    let fabric = Fabric::new(&links.links);
    let max_us = rule.max_latency_us.map_or(u64::MAX, u64::from);
    let joined = |one: &Name, other: &Name| {
        let (one, other) = (fabric.node(one)?, fabric.node(other)?);
        fabric.route(one, other).filter(|route| route.latency_us <= max_us)
    };
    if here.iter().any(|one| there.iter().any(|other| joined(one, other).is_some())) {
        return None;
    }
    let rows = sides.iter().flatten().map(|(row, ..)| *row).chain([subject, fabric_row]);
    Some((rows.collect(), format!("no way over {} is as fast as the VMs need it", rule.over)))
}

/// The fences that bind every VM of a set, and whether they must be inside.
fn fences<'a>(items: &[Item<'a>], set: &VmSet) -> Vec<(usize, &'a Fence, bool)> {
    let mut found = Vec::new();
    for (row, item) in items.iter().enumerate() {
        let Item::Installed(constraint) = item else { continue };
        let ConstraintRule::Fence(fence) = &constraint.rule else { continue };
        if is_within(set, &fence.vms) {
            found.push((row, fence, true));
        } else if fence.reserved && are_apart(set, &fence.vms) {
            found.push((row, fence, false));
        }
    }
    found
}

fn allows(fences: &[(usize, &Fence, bool)], host: &Host) -> bool {
    fences.iter().all(|(_, fence, inside)| fence.hosts.contains(host) == *inside)
}

fn domains<'h>(hosts: &[&'h Host], level: &Level) -> BTreeSet<&'h Name> {
    hosts.iter().filter_map(|host| host.domain(level)).collect()
}

fn by_domain<'h>(hosts: &[&'h Host], level: &Level) -> BTreeMap<&'h Name, Vec<&'h Host>> {
    let mut parts: BTreeMap<&Name, Vec<&Host>> = BTreeMap::new();
    for host in hosts {
        if let Some(domain) = host.domain(level) {
            parts.entry(domain).or_default().push(host);
        }
    }
    parts
}

fn set_of(together: &CarriedTogether) -> VmSet {
    let CarriedTogether { tenant, group, .. } = together;
    VmSet { tenant: Some(tenant.clone()), group: Some(group.clone()), labels: Vec::new() }
}
