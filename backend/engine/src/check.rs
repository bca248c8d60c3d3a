//! Limits on what enters the state. The wire checks shape and spelling; these are the bounds that
//! keep arithmetic exact and tables finite, whoever the caller is.

use crate::report::UseReport;
use crate::request::Refusal;
use cluster::{
    Amounts, ConstraintRule, Dimensions, Host, HostSet, Keep, Limit, Links, MAX_AMOUNT,
    MAX_LINKED_DOMAINS, MAX_LINKS, MinDomains, Name, Network, Spare, Strength, Vm, VmKey, VmSet,
};
use std::collections::BTreeSet;

/// Shortest and longest time a reservation may be held.
pub const HOLD_TTL_MS: std::ops::RangeInclusive<u64> = 1_000..=3_600_000;

/// Most VMs in one batch: its command stays within what one log record may hold.
pub const MAX_BATCH: usize = 10_000;

/// Most hosts in one piece of a report: its command stays well below what a log record may hold.
pub const MAX_REPORTS: usize = 10_000;

/// Most hosts that one placement may name to choose from.
const MAX_AMONG: usize = 20_000;

/// Most entries in any one list of a host or VM.
const MAX_LIST: usize = 256;
const MAX_OVERCOMMIT_PERMILLE: u64 = 100_000;
const MAX_PREFERENCE: u16 = 1_000;

pub(crate) fn host(host: &Host, dimensions: &Dimensions) -> Result<(), Refusal> {
    amounts("capacity", &host.capacity, dimensions, MAX_AMOUNT)?;
    amounts("reserved", &host.reserved, dimensions, MAX_AMOUNT)?;
    amounts("overcommit_permille", &host.overcommit_permille, dimensions, MAX_OVERCOMMIT_PERMILLE)?;
    at_most("labels", host.labels.len())?;
    at_most("taints", host.taints.len())?;
    at_most("latencies", host.latencies.len())?;
    at_most("datastores", host.datastores.len())?;
    host.hardware.check().map_err(|error| invalid("hardware", &error.to_string()))
}

/// Some names are kept for what VMs under way have on their targets.
pub(crate) fn key(key: &VmKey) -> Result<(), Refusal> {
    if key.is_stand_in() {
        let problem = format!("is {}; ids that begin like this stand for migrations", key.id);
        return Err(invalid("id", &problem));
    }
    Ok(())
}

pub(crate) fn vm(vm: &Vm, dimensions: &Dimensions) -> Result<(), Refusal> {
    key(&vm.key)?;
    demand(&vm.demand, dimensions)?;
    if let Some(topology) = &vm.topology {
        topology.check().map_err(|error| invalid("topology", &error.to_string()))?;
    }
    at_most("labels", vm.labels.len())?;
    at_most("groups", vm.groups.len())?;
    at_most("selectors", vm.selectors.len())?;
    at_most("tolerations", vm.tolerations.len())?;
    at_most("affinity", vm.affinities.len())?;
    at_most("spread", vm.spreads.len())?;
    at_most("preferred_hosts", vm.preferred_hosts.len())?;
    at_most("excluded_hosts", vm.excluded_hosts.len())?;
    at_most("datastores", vm.datastores.len())?;
    at_most("data", vm.data.len())?;
    at_most("hints.colocate_with", vm.hints.colocate_with.len())?;
    for affinity in &vm.affinities {
        strength("affinity.strength", affinity.strength)?;
    }
    for spread in &vm.spreads {
        strength("spread.strength", spread.strength)?;
        if spread.max_skew == 0 {
            return Err(invalid("spread.max_skew", "is 0; at least 1 is needed"));
        }
    }
    if vm.data.iter().any(|data| !(1..=MAX_PREFERENCE).contains(&data.weight)) {
        return Err(invalid("data.weight", "must be from 1 to 1000"));
    }
    Ok(())
}

pub(crate) fn demand(demand: &Amounts, dimensions: &Dimensions) -> Result<(), Refusal> {
    amounts("demand", demand, dimensions, MAX_AMOUNT)
}

pub(crate) fn use_report(report: &UseReport, dimensions: &Dimensions) -> Result<(), Refusal> {
    amounts("used", &report.used, dimensions, MAX_AMOUNT)
}

pub(crate) fn hold_ttl(ttl_ms: Option<u64>) -> Result<(), Refusal> {
    match ttl_ms {
        Some(ttl_ms) if !HOLD_TTL_MS.contains(&ttl_ms) => Err(invalid(
            "hold_ttl_ms",
            &format!(
                "is {ttl_ms}; it must be from {} to {}",
                HOLD_TTL_MS.start(),
                HOLD_TTL_MS.end()
            ),
        )),
        _ => Ok(()),
    }
}

pub(crate) fn among(hosts: &[Name]) -> Result<(), Refusal> {
    if hosts.len() <= MAX_AMONG {
        return Ok(());
    }
    let problem = format!("names {} hosts; at most {MAX_AMONG} are allowed", hosts.len());
    Err(invalid("among", &problem))
}

pub(crate) fn constraint(rule: &ConstraintRule) -> Result<(), Refusal> {
    for (field, set) in ["vms", "against"].into_iter().zip(rule.vm_sets()) {
        set.map_or(Ok(()), |set| vm_set(field, set))?;
    }
    match rule {
        ConstraintRule::Fence(fence) => host_set(&fence.hosts),
        ConstraintRule::MinDomains(MinDomains { min: 0 | 1, .. }) => {
            Err(invalid("min", "must be at least 2: one domain is always covered"))
        }
        ConstraintRule::Limit(Limit { max: 0, .. }) => {
            Err(invalid("max", "must be at least 1; a fence keeps VMs away altogether"))
        }
        ConstraintRule::Links(links) => self::links(links),
        ConstraintRule::Network(Network { max_latency_us: None, bandwidth_mbps: 0, .. }) => {
            Err(invalid("max_latency_us", "and bandwidth_mbps are both left out; give one of them"))
        }
        ConstraintRule::Spare(Spare { hosts, keep, .. }) => {
            host_set(hosts)?;
            match keep {
                Keep::Permille(1..=999) => Ok(()),
                Keep::Permille(_) => Err(invalid("keep_permille", "must be from 1 to 999")),
                Keep::Hosts(0) => Err(invalid("keep_hosts", "must be at least 1")),
                Keep::Hosts(_) => Ok(()),
            }
        }
        _ => Ok(()),
    }
}

fn vm_set(field: &str, set: &VmSet) -> Result<(), Refusal> {
    at_most(&format!("{field}.labels"), set.labels.len())?;
    if set.group.is_some() && set.tenant.is_none() {
        return Err(invalid(&format!("{field}.tenant"), "is needed: a group belongs to a tenant"));
    }
    Ok(())
}

fn host_set(set: &HostSet) -> Result<(), Refusal> {
    at_most("hosts.labels", set.labels.len())?;
    at_most("hosts.within", set.within.len())?;
    set.within.iter().try_for_each(|within| {
        if within.names.is_empty() {
            return Err(invalid("hosts.within.names", "is empty; name at least one domain"));
        }
        at_most("hosts.within.names", within.names.len())
    })
}

fn links(links: &Links) -> Result<(), Refusal> {
    if links.links.len() > MAX_LINKS {
        let problem = format!("has {} links; at most {MAX_LINKS} are allowed", links.links.len());
        return Err(invalid("links", &problem));
    }
    let mut ends = BTreeSet::new();
    let mut pairs = BTreeSet::new();
    for link in &links.links {
        if link.a == link.b {
            return Err(invalid("links", &format!("joins {} to itself", link.a)));
        }
        let pair = if link.a < link.b { (&link.a, &link.b) } else { (&link.b, &link.a) };
        if !pairs.insert(pair) {
            let problem = format!("joins {} and {} twice; add the bandwidths up", pair.0, pair.1);
            return Err(invalid("links", &problem));
        }
        ends.extend([&link.a, &link.b]);
    }
    if ends.len() > MAX_LINKED_DOMAINS {
        let problem =
            format!("joins {} domains; at most {MAX_LINKED_DOMAINS} are allowed", ends.len());
        return Err(invalid("links", &problem));
    }
    Ok(())
}

fn amounts(field: &str, amounts: &Amounts, dims: &Dimensions, max: u64) -> Result<(), Refusal> {
    if amounts.width() > dims.len() {
        return Err(invalid(field, "has a dimension that is not declared"));
    }
    match amounts.iter().find(|(_, amount)| *amount > max) {
        Some((dim, amount)) => Err(invalid(
            &format!("{field}.{}", dims.name(dim)),
            &format!("is {amount}; at most {max} is allowed"),
        )),
        None => Ok(()),
    }
}

fn strength(field: &str, strength: Strength) -> Result<(), Refusal> {
    match strength {
        Strength::Preferred(weight) if !(1..=MAX_PREFERENCE).contains(&weight) => {
            Err(invalid(field, "must be from 1 to 1000"))
        }
        _ => Ok(()),
    }
}

fn at_most(field: &str, len: usize) -> Result<(), Refusal> {
    if len <= MAX_LIST {
        return Ok(());
    }
    Err(invalid(field, &format!("has {len} entries; at most {MAX_LIST} are allowed")))
}

pub(crate) fn invalid(field: &str, problem: &str) -> Refusal {
    Refusal::Invalid { field: field.into(), problem: problem.into() }
}
