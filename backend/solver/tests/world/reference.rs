//! The rules and the score, as slow and as plain as the page that defines them.

use super::{Placed, World};
use cluster::{
    Affinity, AffinityKind, Amounts, Breakdown, CpuUnit, DataSite, Dim, Host, HostIx, HostState,
    Level, Name, Qos, Reason, Rejections, Strategy, Strength, Subject, TaintEffect, Term, Vm,
};
use solver::{Choice, Chosen, How};

pub(crate) fn place(world: &World, vm: &Vm, how: &How) -> Choice {
    let mut rejections = Rejections::default();
    let mut candidates = Vec::new();
    for (ix, _) in world.hosts() {
        match feasible(world, vm, ix) {
            Err(reason) => rejections.add(reason, 1),
            Ok(committed) => {
                let breakdown = score(world, vm, ix, how);
                candidates.push(Chosen {
                    host: ix,
                    score: breakdown.total(),
                    breakdown,
                    committed,
                    bindings: None,
                });
            }
        }
    }
    match how.strategy {
        Strategy::FirstFit | Strategy::FirstFitDecreasing => {}
        Strategy::RoundRobin => {
            let after = how.round_robin_after;
            candidates.sort_by_key(|chosen| after.is_some_and(|after| chosen.host <= after));
        }
        // Without GPUs all hosts are worth the same, and the less CPU is left the better.
        Strategy::LeastFragmentation => {
            let left = |chosen: &Chosen| {
                let left = world.host(chosen.host).allocatable(Dim::CPU_MILLIS);
                let taken = taken(world, chosen.host, Dim::CPU_MILLIS)
                    + chosen.committed.get(Dim::CPU_MILLIS);
                (left.saturating_sub(taken) / 128).min(4095)
            };
            candidates.sort_by_key(|chosen| (-chosen.score, left(chosen)));
        }
        _ => candidates.sort_by_key(|chosen| -chosen.score),
    }
    let mut candidates = candidates.into_iter();
    Choice {
        host: candidates.next(),
        alternatives: candidates.take(3).map(|next| (next.host, next.score)).collect(),
        rejections,
        by_rule: Default::default(),
        considered: world.hosts().count() as u32,
    }
}

pub(crate) fn place_batch(world: &World, vms: &[&Vm], how: &How) -> Vec<Choice> {
    let mut world = world.clone();
    let mut how = *how;
    let mut order: Vec<usize> = (0..vms.len()).collect();
    if matches!(how.strategy, Strategy::FirstFitDecreasing | Strategy::BestFitDecreasing) {
        order.sort_by_key(|&row| std::cmp::Reverse(size(&world, vms[row])));
    }
    let mut choices = vec![Choice::default(); vms.len()];
    for row in order {
        choices[row] = place(&world, vms[row], &how);
        if let Some(chosen) = &choices[row].host {
            how.round_robin_after = Some(chosen.host);
            let (host, committed) = (chosen.host, chosen.committed.clone());
            world.placed.push(Placed { host, vm: vms[row].clone(), committed });
        }
    }
    choices
}

/// Millionths of the mean host in the dimension where the VM is largest.
fn size(world: &World, vm: &Vm) -> u128 {
    let share = |(dim, amount): (Dim, u64)| {
        let total: u128 = world.hosts().map(|(_, host)| u128::from(host.allocatable(dim))).sum();
        let hosts = world.hosts().count() as u128;
        (u128::from(amount) * 1_000_000 * hosts).checked_div(total).unwrap_or(u128::MAX)
    };
    vm.demand.iter().map(share).max().unwrap_or(0)
}

pub(crate) fn feasible(world: &World, vm: &Vm, ix: HostIx) -> Result<Amounts, Reason> {
    let host = world.host(ix);
    let check = |holds: bool, reason| if holds { Ok(()) } else { Err(reason) };
    eligible(world, vm, host)?;
    for rule in required(&vm.affinities, AffinityKind::Together) {
        check(about_hosts(rule) || rule_holds(world, vm, rule, host), Reason::Affinity)?;
    }
    for rule in required(&vm.affinities, AffinityKind::Apart) {
        check(about_hosts(rule) || rule_holds(world, vm, rule, host), Reason::AntiAffinity)?;
    }
    for other in &world.placed {
        for rule in required(&other.vm.affinities, AffinityKind::Apart) {
            let meant = other.vm.key.tenant == vm.key.tenant && is_member(vm, &rule.subject);
            let here = same_domain(&rule.level, host, world.host(other.host));
            check(!(meant && here), Reason::AntiAffinity)?;
        }
    }
    for row in 0..vm.spreads.len() {
        if vm.spreads[row].strength == Strength::Required {
            check(spread_holds(world, vm, row, host), Reason::Spread)?;
        }
    }
    let committed = demand_on(vm, host);
    for (dim, amount) in committed.iter() {
        let taken = taken(world, ix, dim);
        let guaranteed = world.guaranteed(ix, dim);
        let fits = taken + amount <= host.allocatable(dim)
            && (vm.qos != Qos::Guaranteed || guaranteed + amount <= host.physical(dim));
        check(fits, Reason::Capacity(dim))?;
    }
    Ok(committed)
}

/// The rules up to and including `HostAffinity`.
fn eligible(world: &World, vm: &Vm, host: &Host) -> Result<(), Reason> {
    let check = |holds: bool, reason| if holds { Ok(()) } else { Err(reason) };
    check(host.state == HostState::Available, Reason::HostState)?;
    check(vm.pool.is_none() || vm.pool == host.pool, Reason::Pool)?;
    check(vm.selectors.iter().all(|one| one.matches(&host.labels)), Reason::Selector)?;
    check(untolerated(vm, host, |e| e != TaintEffect::PreferNoSchedule) == 0, Reason::Taint)?;
    check(vm.datastores.iter().all(|one| host.datastores.contains(one)), Reason::Datastore)?;
    check(!vm.excluded_hosts.contains(&host.id), Reason::ExcludedHost)?;
    for rule in vm.affinities.iter().filter(|rule| rule.strength == Strength::Required) {
        check(!about_hosts(rule) || rule_holds(world, vm, rule, host), Reason::HostAffinity)?;
    }
    Ok(())
}

fn required(rules: &[Affinity], kind: AffinityKind) -> impl Iterator<Item = &Affinity> {
    rules.iter().filter(move |rule| rule.kind == kind && rule.strength == Strength::Required)
}

fn about_hosts(rule: &Affinity) -> bool {
    matches!(rule.subject, Subject::Hosts(_))
}

fn untolerated(vm: &Vm, host: &Host, effect: impl Fn(TaintEffect) -> bool) -> usize {
    let taints = host.taints.iter().filter(|taint| effect(taint.effect));
    taints.filter(|taint| !vm.tolerations.iter().any(|one| one.tolerates(taint))).count()
}

fn demand_on(vm: &Vm, host: &Host) -> Amounts {
    let mut demand = vm.demand.clone();
    if vm.cpu_unit == CpuUnit::Normalised {
        let cpu = (vm.demand.get(Dim::CPU_MILLIS) * 1000).div_ceil(host.speed_permille());
        demand.set(Dim::CPU_MILLIS, cpu);
    }
    demand
}

fn is_member(vm: &Vm, subject: &Subject) -> bool {
    match subject {
        Subject::Vm(id) => vm.key.id == *id,
        Subject::Group(group) => {
            vm.groups.contains(group) || vm.spreads.iter().any(|spread| spread.group == *group)
        }
        Subject::Hosts(_) => false,
    }
}

fn members<'w>(world: &'w World, tenant: &Name, subject: &Subject) -> Vec<&'w Host> {
    let placed = world.placed.iter().filter(|other| other.vm.key.tenant == *tenant);
    let members = placed.filter(|other| is_member(&other.vm, subject));
    members.map(|member| world.host(member.host)).collect()
}

fn same_domain(level: &Level, one: &Host, other: &Host) -> bool {
    one.domain(level).is_some() && one.domain(level) == other.domain(level)
}

fn rule_holds(world: &World, vm: &Vm, rule: &Affinity, host: &Host) -> bool {
    let others: Vec<&Host> = match &rule.subject {
        Subject::Hosts(names) => {
            let hosts = world.hosts().map(|(_, host)| host);
            hosts.filter(|host| names.contains(&host.id)).collect()
        }
        subject => members(world, &vm.key.tenant, subject),
    };
    let near = others.iter().any(|other| same_domain(&rule.level, host, other));
    match rule.kind {
        AffinityKind::Apart => !near,
        AffinityKind::Together if others.is_empty() && is_member(vm, &rule.subject) => {
            host.domain(&rule.level).is_some()
        }
        AffinityKind::Together => near,
    }
}

fn spread_holds(world: &World, vm: &Vm, row: usize, host: &Host) -> bool {
    let spread = &vm.spreads[row];
    let subject = Subject::Group(spread.group.clone());
    let members = members(world, &vm.key.tenant, &subject);
    let count = |host: &Host| {
        members.iter().filter(|member| same_domain(&spread.level, host, member)).count() as i64
    };
    if host.domain(&spread.level).is_none() {
        return false;
    }
    let eligible = world.hosts().map(|(_, host)| host).filter(|other| {
        other.domain(&spread.level).is_some() && eligible(world, vm, other).is_ok()
    });
    let fewest = eligible.map(count).min().unwrap_or(0);
    count(host) + 1 - fewest <= i64::from(spread.max_skew)
}

pub(crate) fn score(world: &World, vm: &Vm, ix: HostIx, how: &How) -> Breakdown {
    let mut weights = Term::ALL.map(|term| i64::from(how.weights.get(term)));
    if vm.hints.bursty {
        weights[Term::Load.row()] *= 2;
    }
    match how.strategy {
        Strategy::BestFit
        | Strategy::BestFitDecreasing
        | Strategy::WorstFit
        | Strategy::LeastFragmentation => {
            weights = [100, 0, 0, 0, 0];
        }
        Strategy::LeastLoaded | Strategy::FewestVms => weights = [0, 0, 100, 0, 0],
        _ => {}
    }
    let host = world.host(ix);
    let values = [
        fit(world, vm, ix, how.strategy),
        affinity(world, vm, ix, how.strategy),
        load(world, ix, how.strategy),
        locality(world, vm, ix),
        cost(world, host),
    ];
    let mut parts = [0; 5];
    for row in 0..5 {
        assert!((0..=1000).contains(&values[row]), "{:?} is {}", Term::ALL[row], values[row]);
        parts[row] = weights[row] * values[row];
    }
    Breakdown::of_terms(parts)
}

/// What VMs and others take of a dimension.
fn taken(world: &World, ix: HostIx, dim: Dim) -> u64 {
    let ours: u64 = world.on(ix).map(|placed| placed.committed.get(dim)).sum();
    ours + world.host(ix).foreign.used.get(dim)
}

/// Utilisations of the dimensions that the host has.
fn utilisations(world: &World, ix: HostIx, more: &Amounts) -> Vec<i64> {
    let host = world.host(ix);
    let mut all = Vec::new();
    for dim in (0..8).map(Dim) {
        let taken = taken(world, ix, dim);
        let used = ((taken + more.get(dim)) * 1000).checked_div(host.allocatable(dim));
        all.extend(used.map(|used| used.min(1000) as i64));
    }
    all
}

fn fit(world: &World, vm: &Vm, ix: HostIx, strategy: Strategy) -> i64 {
    let after = utilisations(world, ix, &demand_on(vm, world.host(ix)));
    let highest = after.iter().copied().max().unwrap_or(0);
    let mean = after.iter().sum::<i64>() / after.len().max(1) as i64;
    match strategy {
        Strategy::BestFit | Strategy::BestFitDecreasing => mean,
        Strategy::WorstFit => 1000 - mean,
        Strategy::LeastFragmentation => 1000,
        _ => 1000 - (highest - mean),
    }
}

fn affinity(world: &World, vm: &Vm, ix: HostIx, strategy: Strategy) -> i64 {
    let host = world.host(ix);
    let (mut held, mut asked) = (0, 0);
    for rule in &vm.affinities {
        if let Strength::Preferred(weight) = rule.strength {
            asked += i64::from(weight);
            held += i64::from(weight) * i64::from(rule_holds(world, vm, rule, host));
        }
    }
    for (row, spread) in vm.spreads.iter().enumerate() {
        if let Strength::Preferred(weight) = spread.strength {
            asked += i64::from(weight);
            held += i64::from(weight) * i64::from(spread_holds(world, vm, row, host));
        }
    }
    let share = if asked == 0 { 1000 } else { 1000 * held / asked };
    let soft = untolerated(vm, host, |effect| effect == TaintEffect::PreferNoSchedule) as i64;
    let value = (share - 250 * soft).max(0);
    if strategy != Strategy::Spread {
        return value;
    }
    let mut groups: Vec<&Name> = vm.groups.iter().collect();
    groups.extend(vm.spreads.iter().map(|spread| &spread.group));
    groups.sort();
    groups.dedup();
    let mut crowd = 0;
    for group in groups {
        for other in members(world, &vm.key.tenant, &Subject::Group(group.clone())) {
            crowd += i64::from(same_domain(&Level::Zone, host, other));
            crowd += 4 * i64::from(same_domain(&Level::Rack, host, other));
            crowd += 16 * i64::from(same_domain(&Level::Host, host, other));
        }
    }
    value * 32 / (32 + crowd)
}

fn load(world: &World, ix: HostIx, strategy: Strategy) -> i64 {
    let highest = utilisations(world, ix, &Amounts::zero()).into_iter().max().unwrap_or(0);
    match strategy {
        Strategy::Consolidate => highest,
        Strategy::Spread => 8000 / (8 + vms(world, ix)),
        Strategy::FewestVms => (1000 - vms(world, ix)).max(0),
        _ => 1000 - highest,
    }
}

/// How many VMs there are, those of others included.
fn vms(world: &World, ix: HostIx) -> i64 {
    world.on(ix).count() as i64 + i64::from(world.host(ix).foreign.vms)
}

fn nearness(host: &Host, other: &Host) -> i64 {
    let levels =
        [(Level::Host, 1000), (Level::Rack, 700), (Level::Zone, 400), (Level::Region, 200)];
    let shared = levels.iter().find(|(level, _)| same_domain(level, host, other));
    shared.map_or(0, |(_, nearness)| *nearness)
}

fn locality(world: &World, vm: &Vm, ix: HostIx) -> i64 {
    let host = world.host(ix);
    let by_name = |name: &Name| world.hosts().map(|(_, host)| host).find(|host| host.id == *name);
    let mut parts = Vec::new();
    let weight: i64 = vm.data.iter().map(|piece| i64::from(piece.weight)).sum();
    if weight > 0 {
        let near = |site: &DataSite| match site {
            DataSite::Host(name) => by_name(name).map_or(0, |other| nearness(host, other)),
            DataSite::Rack(name) => 1000 * i64::from(host.location.rack.as_ref() == Some(name)),
            DataSite::Zone(name) => 1000 * i64::from(host.location.zone.as_ref() == Some(name)),
            DataSite::Region(name) => 1000 * i64::from(host.location.region.as_ref() == Some(name)),
            DataSite::Datastore(name) => 1000 * i64::from(host.datastores.contains(name)),
        };
        let sum: i64 = vm.data.iter().map(|one| i64::from(one.weight) * near(&one.site)).sum();
        parts.push(sum / weight);
    }
    if !vm.preferred_hosts.is_empty() {
        parts.push(1000 * i64::from(vm.preferred_hosts.contains(&host.id)));
    }
    let placed = vm.hints.colocate_with.iter().filter_map(|id| {
        let mut same = world.placed.iter().filter(|one| one.vm.key.tenant == vm.key.tenant);
        same.find(|one| one.vm.key.id == *id)
    });
    let near: Vec<i64> = placed.map(|one| nearness(host, world.host(one.host))).collect();
    if !near.is_empty() {
        parts.push(near.iter().sum::<i64>() / near.len() as i64);
    }
    if let Some(region) = &vm.hints.user_region {
        let known = host.latencies.iter().find(|latency| latency.region == *region);
        let us = known.map_or(100_000, |latency| latency.latency_us.min(100_000));
        parts.push(i64::from((100_000 - us) / 100));
    }
    if parts.is_empty() { 1000 } else { parts.iter().sum::<i64>() / parts.len() as i64 }
}

fn cost(world: &World, host: &Host) -> i64 {
    let price = |host: &Host| host.price.marginal_micros_per_hour();
    let highest = world.hosts().map(|(_, host)| price(host)).max().unwrap_or(0);
    1000 - (price(host) * 1000).checked_div(highest).unwrap_or(0) as i64
}
