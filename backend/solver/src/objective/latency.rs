//! Latency: from VMs to the region of their users, and between VMs that talk to each other, in
//! microseconds.
//!
//! Hosts say how far user regions are. VMs talk to those that they want to be near
//! (`Hints::colocate_with`), at distances by rack, zone and region; and to their partners in network
//! constraints, over the routes of the fabric. The range is from every VM and pair at its nearest to
//! each at its farthest.

use super::Natural;
use super::facts::{Facts, classes};
use crate::constraints::fabric::Fabric as Routes;
use cluster::assignment::{End, Far, Goal, Near, Pair, Scope, Sites, Traffic};
use cluster::{ConstraintRule, Level, Links, Name, Network, Snapshot, Vm, VmIx};
use rustc_hash::{FxHashMap, FxHashSet};

/// Most pairs of one constraint that are counted: with more, each is one of a crowd.
const MOST_PAIRS: usize = 200_000;

pub(super) fn goals(facts: &mut Facts<'_>) -> Natural {
    let mut goals = vec![to_users(facts)];
    goals.extend(wished(facts).map(Goal::Traffic));
    for constraint in &facts.snapshot.constraints {
        if let ConstraintRule::Network(network) = &constraint.rule {
            goals.extend(over_fabric(facts, network).map(Goal::Traffic));
        }
    }
    Natural { goals, per_unit: 1 }
}

fn to_users(facts: &Facts<'_>) -> Goal {
    let latencies = |row: usize| &facts.host(row).latencies;
    let (hosts, class_of_host) = classes((0..facts.hosts()).map(latencies));
    let regions = facts.vms.iter().map(|vm| vm.hints.user_region.as_ref());
    let (regions, class_of_vm) = classes(regions);
    let far = facts.setting.unknown_region_us;
    let cost = |region: &Name| -> Vec<u64> {
        let known = |latencies: &&Vec<cluster::RegionLatency>| {
            let known = latencies.iter().find(|latency| latency.region == *region);
            known.map_or(far, |latency| latency.latency_us).into()
        };
        hosts.iter().map(known).collect()
    };
    let costs = regions.iter().map(|region| match region {
        Some(region) => cost(region),
        None => vec![0; hosts.len()],
    });
    Goal::Table { costs: costs.collect(), vms: class_of_vm, hosts: class_of_host }
}

/// VMs that want to be near others of their tenant.
fn wished(facts: &mut Facts<'_>) -> Option<Traffic> {
    let mut places: FxHashMap<(&Name, &Name), Option<End>> = FxHashMap::default();
    let wishes = |vm: &Vm| !vm.hints.colocate_with.is_empty();
    let folded = facts.folded.iter().map(|(vm, _)| *vm);
    for vm in facts.vms.iter().copied().chain(folded).filter(|vm| wishes(vm)) {
        places.entry((&vm.key.tenant, &vm.key.id)).or_default();
        for other in &vm.hints.colocate_with {
            places.entry((&vm.key.tenant, other)).or_default();
        }
    }
    if places.is_empty() {
        return None;
    }
    let rows = (0..).zip(&facts.vms).map(|(row, vm)| (*vm, End::Vm(VmIx(row))));
    let folded = facts.folded.iter().map(|&(vm, host)| (vm, End::Host(host)));
    for (vm, end) in rows.chain(folded) {
        if let Some(place) = places.get_mut(&(&vm.key.tenant, &vm.key.id)) {
            *place = Some(end);
        }
    }
    let mut pairs = Vec::new();
    let folded = facts.folded.iter().map(|(vm, _)| *vm);
    for vm in facts.vms.iter().copied().chain(folded).filter(|vm| wishes(vm)) {
        let find = |id: &Name| places.get(&(&vm.key.tenant, id)).copied().flatten();
        let partners = vm.hints.colocate_with.iter().filter(|other| **other != vm.key.id);
        for other in partners.filter_map(find) {
            let (own, other) = match (find(&vm.key.id), other) {
                (Some(End::Vm(own)), other) => (own, other),
                (Some(host), End::Vm(other)) => (other, host),
                _ => continue,
            };
            pairs.push(Pair { vm: own, to: other, weight: 1 });
        }
    }
    let setting = facts.setting;
    let mut near = vec![Near { scope: Scope::Host, cost: 0 }];
    for (level, us) in [
        (Level::Rack, setting.rack_us),
        (Level::Zone, setting.zone_us),
        (Level::Region, setting.region_us),
    ] {
        near.extend(facts.scope(&level).map(|scope| Near { scope, cost: us.into() }));
    }
    let far = Far::Cost(setting.beyond_us.into());
    (!pairs.is_empty()).then_some(Traffic { pairs, near, far })
}

/// Partners of a network constraint, by the latency of the routes between their domains.
fn over_fabric(facts: &Facts<'_>, network: &Network) -> Option<Traffic> {
    let links = links(facts.snapshot, &network.over)?;
    let rows = (0..).zip(&facts.vms).map(|(row, vm)| (*vm, End::Vm(VmIx(row))));
    let folded = facts.folded.iter().map(|&(vm, host)| (vm, End::Host(host)));
    let all = || rows.clone().chain(folded.clone());
    let members = |set: &cluster::VmSet| -> Vec<End> {
        all().filter(|(vm, _)| set.contains(vm)).map(|(_, end)| end).collect()
    };
    let (from, to) = (members(&network.vms), members(&network.to));
    let both: FxHashSet<VmIx> = {
        let rows = |ends: &[End]| -> FxHashSet<VmIx> {
            let rows = ends.iter().filter_map(|end| match end {
                End::Vm(vm) => Some(*vm),
                End::Host(_) => None,
            });
            rows.collect()
        };
        rows(&from).intersection(&rows(&to)).copied().collect()
    };
    let mut pairs = Vec::new();
    for &a in &from {
        for &b in &to {
            // A pair that is in both sets either way counts once.
            let (vm, other) = match (a, b) {
                (End::Vm(a), End::Vm(b)) if a == b => continue,
                (End::Vm(a), End::Vm(b)) if a > b && both.contains(&a) && both.contains(&b) => {
                    continue;
                }
                (End::Vm(a), other) => (a, other),
                (host, End::Vm(b)) => (b, host),
                (End::Host(_), End::Host(_)) => continue,
            };
            pairs.push(Pair { vm, to: other, weight: 1 });
        }
        if pairs.len() > MOST_PAIRS {
            return None;
        }
    }
    let far = Far::Sites(fabric(facts, links));
    (!pairs.is_empty()).then_some(Traffic { pairs, near: Vec::new(), far })
}

fn links<'a>(snapshot: &'a Snapshot, name: &Name) -> Option<&'a Links> {
    let found = snapshot.constraints.iter().find(|constraint| constraint.name == *name)?;
    match &found.rule {
        ConstraintRule::Links(links) => Some(links),
        _ => None,
    }
}

/// The latency between every two domains; from and to hosts in none, as far as it gets.
fn fabric(facts: &Facts<'_>, links: &Links) -> Sites {
    let routes = Routes::new(&links.links);
    let mut names: Vec<&Name> = links.links.iter().flat_map(|link| [&link.a, &link.b]).collect();
    names.sort_unstable();
    names.dedup();
    let nowhere = names.len();
    let sites = names.len() + 1;
    let beyond = u64::from(facts.setting.beyond_us);
    let mut costs = vec![beyond; sites * sites];
    for (a, from) in names.iter().enumerate() {
        for (b, to) in names.iter().enumerate() {
            let (Some(from), Some(to)) = (routes.node(from), routes.node(to)) else { continue };
            costs[a * sites + b] = match routes.route(from, to) {
                _ if a == b => 0,
                Some(route) => route.latency_us,
                None => beyond,
            };
        }
    }
    let site = |row: usize| {
        let domain = facts.host(row).domain(&links.level);
        domain.and_then(|domain| names.binary_search(&domain).ok()).unwrap_or(nowhere) as u32
    };
    let of_host = (0..facts.hosts()).map(site).collect();
    Sites { sites: sites as u32, costs, of_host }
}
