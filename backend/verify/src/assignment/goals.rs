//! What an assignment is worth by each goal, added up from nothing.

use super::InUse;
use cluster::assignment::{
    Curves, End, Far, Goal, NO_DOMAIN, Outages, PARTS, Pair, Problem, Rates, Traffic,
};
use cluster::{HostIx, VmIx};
use std::collections::{BTreeMap, BTreeSet};

/// What each host draws.
fn drawn(problem: &Problem, in_use: &InUse, resource: usize, curves: &Curves) -> Vec<i128> {
    let draws = |host: usize| {
        if !in_use.active[host] {
            return 0;
        }
        let points = &curves.points[curves.of_host[host] as usize];
        let whole = i128::from(problem.whole(host, resource));
        if whole == 0 {
            return i128::from(points[0]);
        }
        let steps = points.len() as i128 - 1;
        let place = i128::from(in_use.in_all[host][resource]) * steps;
        // The last step includes its end.
        let mut step = 0;
        while step + 1 < steps && (step + 1) * whole <= place {
            step += 1;
        }
        let (low, high) = (points[step as usize], points[step as usize + 1]);
        let climb = i128::from(high - low) * (place - step * whole);
        i128::from(low) + (climb + whole - 1) / whole
    };
    (0..problem.hosts.len()).map(draws).collect()
}

fn fill(rates: &Rates, host: usize, used: &[u64]) -> i128 {
    let rates = &rates.classes[rates.of_host[host] as usize];
    let fills = rates.iter().zip(used).map(|(&rate, &used)| i128::from(rate) * i128::from(used));
    fills.max().unwrap_or(0) / (1 << PARTS)
}

fn distance(problem: &Problem, traffic: &Traffic, a: HostIx, b: HostIx) -> i128 {
    for near in &traffic.near {
        let domains = [a, b].map(|host| problem.domain(near.scope, host));
        if domains[0] == domains[1] && domains[0] != NO_DOMAIN {
            return near.cost.into();
        }
    }
    match &traffic.far {
        Far::Cost(cost) => (*cost).into(),
        Far::Sites(fabric) => {
            let [a, b] = [a, b].map(|host| fabric.of_host[host.0 as usize] as usize);
            fabric.costs[a * fabric.sites as usize + b].into()
        }
    }
}

fn lost(problem: &Problem, hosts: &[HostIx], outages: &Outages) -> i128 {
    let mut lost = 0;
    for watched in &outages.groups {
        let members: BTreeSet<VmIx> =
            problem.groups[watched.group as usize].iter().copied().collect();
        for (scope, rates) in &outages.scopes {
            let mut in_domain: BTreeMap<u32, i128> = BTreeMap::new();
            let placed = members.iter().map(|vm| hosts[vm.0 as usize]);
            for host in placed.chain(watched.standing.iter().copied()) {
                *in_domain.entry(problem.domain(*scope, host)).or_insert(0) += 1;
            }
            for (domain, members) in in_domain {
                // In no domain nothing is lost.
                let rate = rates.get(domain as usize).copied().unwrap_or(0);
                let product = i128::from(watched.weight) * i128::from(rate) * members * members;
                lost += product / (1 << PARTS);
            }
        }
    }
    lost
}

pub(super) fn worth(problem: &Problem, hosts: &[HostIx], in_use: &InUse, goal: &Goal) -> i64 {
    let here = &in_use.in_all;
    let capacity = |host: usize, resource: usize| problem.whole(host, resource);
    let free = |host: usize, resource: u32| {
        let resource = resource as usize;
        i128::from(capacity(host, resource)) - i128::from(here[host][resource])
    };
    let every_host = 0..problem.hosts.len();
    let worth: i128 = match goal {
        Goal::Energy { resource, hosts: powers } => {
            let on = every_host.filter(|&host| in_use.active[host]);
            let idle: i128 = on.map(|host| i128::from(powers[host].idle)).sum();
            let work = (0..).zip(hosts).map(|(vm, host)| {
                let host = host.0 as usize;
                let whole = i128::from(capacity(host, *resource as usize));
                let part = i128::from(problem.demand(VmIx(vm))[*resource as usize]);
                let span = i128::from(powers[host].span);
                if whole == 0 { 0 } else { (2 * span * part + whole) / (2 * whole) }
            });
            idle + work.sum::<i128>()
        }
        Goal::Peak { weight } => {
            let all =
                every_host.flat_map(|host| (0..problem.resources.len()).map(move |r| (host, r)));
            let worth = all.filter(|&(host, resource)| capacity(host, resource) > 0).map(
                |(host, resource)| {
                    let product = u128::from(*weight) * u128::from(here[host][resource]);
                    product.div_ceil(u128::from(capacity(host, resource)))
                },
            );
            worth.max().unwrap_or(0) as i128
        }
        Goal::Overload { weights, safe } => {
            let above = |host: usize, resource: usize| {
                i128::from(here[host][resource].saturating_sub(safe[host][resource]))
            };
            let of_host = |host: usize| -> i128 {
                let resources = weights.iter().enumerate();
                resources.map(|(r, &weight)| i128::from(weight) * above(host, r)).sum()
            };
            every_host.map(of_host).sum()
        }
        Goal::Stranded { plenty, scarce, target, weight } => {
            let lost = |host| i128::from(*target) * free(host, *plenty) - free(host, *scarce);
            i128::from(*weight) * every_host.map(|host| lost(host).max(0)).sum::<i128>()
        }
        Goal::Moves { vms, between, busiest } => {
            let mut cost = 0;
            let mut in_group: BTreeMap<u32, i128> = BTreeMap::new();
            for (vm, &host) in hosts.iter().enumerate() {
                let Some(initial) = problem.vms[vm].initial.filter(|&initial| initial != host)
                else {
                    continue;
                };
                cost += i128::from(vms[vm]);
                if let Some(distances) = between {
                    let pair = initial.0 as usize * problem.hosts.len() + host.0 as usize;
                    cost += i128::from(distances.weight) * i128::from(distances.pairs[pair]);
                }
                if let Some(busiest) = busiest {
                    *in_group.entry(busiest.group_of[vm]).or_insert(0) += 1;
                }
            }
            let most = in_group.into_values().max().unwrap_or(0);
            cost + busiest.as_ref().map_or(0, |busiest| i128::from(busiest.weight) * most)
        }
        Goal::Power { resource, curves, keep_on } => {
            let drawn = drawn(problem, in_use, *resource as usize, curves);
            let mut spares: Vec<u64> = every_host
                .filter(|&host| !in_use.active[host])
                .map(|host| curves.points[curves.of_host[host] as usize][0])
                .collect();
            spares.sort_unstable();
            let spares = spares.iter().take(*keep_on as usize);
            drawn.iter().sum::<i128>() + spares.map(|&first| i128::from(first)).sum::<i128>()
        }
        Goal::Heat { resource, curves, scope, limits } => {
            let drawn = drawn(problem, in_use, *resource as usize, curves);
            let mut in_domain: BTreeMap<u32, i128> = BTreeMap::new();
            for (host, drawn) in (0..).zip(drawn) {
                *in_domain.entry(problem.domain(*scope, HostIx(host))).or_insert(0) += drawn;
            }
            let limited = in_domain.into_iter().filter(|(domain, _)| *domain != NO_DOMAIN);
            let above = limited.filter_map(|(domain, drawn)| {
                let limit = limits.get(domain as usize)?;
                Some((drawn - i128::from(*limit)).max(0))
            });
            above.sum()
        }
        Goal::Share(rates) => every_host.map(|host| fill(rates, host, &here[host])).sum(),
        Goal::Balance(balance) => {
            let square = |host: usize| {
                let class = balance.rates.of_host[host] as usize;
                let target = i128::from(balance.targets[class]);
                let far = fill(&balance.rates, host, &here[host]) - target;
                i128::from(balance.weight) * far * far / (1 << PARTS)
            };
            every_host.map(square).sum()
        }
        Goal::Table { costs, vms, hosts: classes } => {
            let cost = |(vm, host): (usize, &HostIx)| {
                let class = classes[host.0 as usize] as usize;
                i128::from(costs[vms[vm] as usize][class])
            };
            hosts.iter().enumerate().map(cost).sum()
        }
        Goal::Traffic(traffic) => {
            let cost = |pair: &Pair| {
                let other = match pair.to {
                    End::Vm(vm) => hosts[vm.0 as usize],
                    End::Host(host) => host,
                };
                let host = hosts[pair.vm.0 as usize];
                i128::from(pair.weight) * distance(problem, traffic, host, other)
            };
            traffic.pairs.iter().map(cost).sum()
        }
        Goal::Outages(outages) => lost(problem, hosts, outages),
    };
    // `Problem::check` limits every goal to 2^56.
    worth as i64
}
