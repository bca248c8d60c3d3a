//! Reliability: what is expected to fail in a year, in millionths of a VM.
//!
//! A group of n with k members in a domain loses k of them when it fails, each counted with the share
//! k / n of the group that goes along: rate x k x k / n, over hosts, racks, power feeds and zones. A
//! VM in no group counts by its host alone. The range is from groups spread evenly over what fails
//! least to each in one place that fails most.

use super::Natural;
use super::facts::{Facts, classes};
use cluster::assignment::{Goal, Outages, PARTS, Scope, Watched};
use cluster::{HostIx, Level, Name, VmIx};
use std::collections::BTreeMap;

/// Worth is counted in thousandths, for the division by n.
const FINER: u64 = 1_000;

pub(super) fn goals(facts: &mut Facts<'_>) -> Natural {
    let setting = facts.setting;
    let host = |row: usize| match facts.host(row).failure_ppm_per_year {
        0 => u64::from(setting.host_failures_ppm),
        ppm => ppm.into(),
    };
    let rates: Vec<u64> = (0..facts.hosts()).map(host).collect();
    let groups = groups(facts);
    let mut grouped = vec![false; facts.vms.len()];
    groups.values().flat_map(|group| &group.0).for_each(|vm| grouped[vm.0 as usize] = true);
    let mut goals = vec![alone(&grouped, &rates)];
    let mut scopes = vec![(Scope::Host, rates)];
    for (level, rate) in [
        (Level::Rack, setting.rack_failures_ppm),
        (Level::PowerFeed, setting.power_feed_failures_ppm),
        (Level::Zone, setting.zone_failures_ppm),
    ] {
        if let Some(scope) = facts.scope(&level).filter(|_| rate > 0) {
            scopes.push((scope, vec![rate.into(); facts.domains(scope)]));
        }
    }
    let mut watched = Vec::with_capacity(groups.len());
    for (members, standing) in groups.into_values() {
        let all = (members.len() + standing.len()) as u64;
        let weight = (FINER << PARTS) / all;
        let group = facts.problem.groups.len() as u32;
        facts.problem.groups.push(members);
        watched.push(Watched { group, standing, weight });
    }
    if !watched.is_empty() {
        goals.push(Goal::Outages(Outages { groups: watched, scopes }));
    }
    Natural { goals, per_unit: FINER }
}

/// By tenant and name: rows, and hosts of members that are no rows.
type Groups<'a> = BTreeMap<(&'a Name, &'a Name), (Vec<VmIx>, Vec<HostIx>)>;

/// Rows and standing members of every group that has a row and more than one member.
fn groups<'a>(facts: &Facts<'a>) -> Groups<'a> {
    let mut groups = Groups::new();
    for (row, vm) in (0..).map(VmIx).zip(&facts.vms) {
        for group in names(vm) {
            let members = &mut groups.entry((&vm.key.tenant, group)).or_default().0;
            if members.last() != Some(&row) {
                members.push(row);
            }
        }
    }
    for &(vm, host) in &facts.folded {
        let mut last = None;
        for group in names(vm).filter(|group| last.replace(*group) != Some(*group)) {
            if let Some((_, standing)) = groups.get_mut(&(&vm.key.tenant, group)) {
                standing.push(host);
            }
        }
    }
    groups.retain(|_, (members, standing)| members.len() + standing.len() > 1);
    groups
}

/// Groups that a VM belongs to.
fn names(vm: &cluster::Vm) -> impl Iterator<Item = &Name> {
    let spread = vm.spreads.iter().map(|spread| &spread.group);
    vm.groups.iter().chain(spread.filter(|group| !vm.groups.contains(group)))
}

/// VMs in no group, by how often their host fails.
fn alone(grouped: &[bool], rates: &[u64]) -> Goal {
    let (rates, hosts) = classes(rates.iter().copied());
    let costs = vec![rates.iter().map(|rate| rate * FINER).collect(), vec![0; rates.len()]];
    Goal::Table { costs, vms: grouped.iter().map(|&grouped| grouped.into()).collect(), hosts }
}
