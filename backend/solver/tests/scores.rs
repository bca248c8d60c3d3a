//! Each strategy, term, weight and hint on a tiny cluster: what it prefers, and that it matters.

mod tiny;

use cluster::{
    Affinity, AffinityKind, Amounts, DataRef, DataSite, Host, HostIx, Level, Price, PriceKind,
    RegionLatency, Strategy, Strength, Subject, Taint, TaintEffect, Term, Vm,
};
use policy::Weights;
use tiny::{Tiny, hosts, name, names, vm};

/// The value of one term on every host, found by letting only that term count.
fn check(fleet: &[Host], residents: &[(u32, Vm)], term: Term, asks: &Vm, expect: &[i64]) {
    let mut weights = [0; 5];
    weights[term.row()] = 1;
    let mut tiny = Tiny::new(fleet);
    tiny.how.weights = Weights::new(weights).expect("one weight is set");
    residents.iter().for_each(|(row, vm)| tiny.put(*row, vm));
    let choice = tiny.place(asks);
    let chosen = choice.host.expect("some host fits");
    assert_eq!(chosen.breakdown.total(), chosen.score);
    assert_eq!(chosen.breakdown.get(term), chosen.score);
    let mut values = vec![(chosen.host, chosen.score)];
    values.extend(choice.alternatives);
    values.sort();
    let values: Vec<i64> = values.into_iter().map(|(_, score)| score).collect();
    assert_eq!(values, expect);
    let best = expect.iter().max().expect("a host");
    let first = expect.iter().position(|value| value == best).expect("the best is one of them");
    assert_eq!(chosen.host, HostIx(first as u32), "ties go to the lowest index");
}

fn sized(id: &str, cpu_millis: u64, memory_mib: u64) -> Vm {
    Vm { demand: Amounts::cpu_memory(cpu_millis, memory_mib), ..vm(id) }
}

#[test]
fn fit_prefers_hosts_that_fill_evenly() {
    // Before: half the memory, nothing, half the CPU. The demand is CPU only.
    let residents = [(0, sized("a", 0, 8_192)), (2, sized("c", 4_000, 0))];
    check(&hosts(3), &residents, Term::Fit, &sized("v", 4_000, 0), &[1000, 750, 500]);
}

#[test]
fn load_prefers_hosts_with_headroom_in_their_tightest_dimension() {
    let residents = [(0, sized("a", 4_000, 0)), (1, sized("b", 1_000, 12_288))];
    check(&hosts(3), &residents, Term::Load, &vm("v"), &[500, 250, 1000]);
}

#[test]
fn cost_prefers_cheap_hosts_and_reserved_ones_are_paid_already() {
    let mut fleet = hosts(3);
    for (host, (kind, micros_per_hour)) in fleet.iter_mut().zip([
        (PriceKind::OnDemand, 4_000),
        (PriceKind::Spot, 1_000),
        (PriceKind::Reserved, 9_000),
    ]) {
        host.price = Price { kind, micros_per_hour };
    }
    check(&fleet, &[], Term::Cost, &vm("v"), &[0, 750, 1000]);
}

#[test]
fn affinity_is_the_share_of_wishes_that_hold_less_soft_taints() {
    let mut fleet = hosts(3);
    let soft = Taint { key: name("old"), value: None, effect: TaintEffect::PreferNoSchedule };
    fleet[2].taints = vec![soft];
    let mut asks = vm("v");
    let wish = |kind, weight| Affinity {
        kind,
        subject: Subject::Group(name("web")),
        level: Level::Host,
        strength: Strength::Preferred(weight),
    };
    check(&fleet, &[], Term::Affinity, &asks, &[1000, 1000, 750]);
    asks.affinities = vec![wish(AffinityKind::Together, 300), wish(AffinityKind::Apart, 100)];
    let resident = Vm { groups: names(&["web"]), ..vm("w") };
    check(&fleet, &[(1, resident)], Term::Affinity, &asks, &[250, 750, 0]);
}

#[test]
fn locality_counts_data_preferred_hosts_neighbours_and_users() {
    let mut fleet = hosts(4);
    for (host, (rack, zone)) in
        fleet.iter_mut().zip([("r0", "z0"), ("r0", "z0"), ("r1", "z0"), ("r2", "z1")])
    {
        host.location.rack = Some(name(rack));
        host.location.zone = Some(name(zone));
        host.location.region = Some(name("here"));
    }
    fleet[3].latencies = vec![RegionLatency { region: name("north"), latency_us: 25_000 }];
    let check = |asks: &Vm, expect: &[i64]| {
        check(&fleet, &[(2, vm("w"))], Term::Locality, asks, expect);
    };
    let data = |site, weight| DataRef { site, weight };
    let mut asks = vm("v");
    check(&asks, &[1000; 4]);
    asks.data = vec![data(DataSite::Host(name("h0")), 1)];
    check(&asks, &[1000, 700, 400, 200]);
    asks.data.push(data(DataSite::Zone(name("z1")), 3));
    check(&asks, &[250, 175, 100, 800]);
    asks.data.clear();
    asks.preferred_hosts = names(&["h2"]);
    check(&asks, &[0, 0, 1000, 0]);
    asks.hints.colocate_with = names(&["w", "not-placed"]);
    check(&asks, &[200, 200, 1000, 100]);
    asks.preferred_hosts.clear();
    asks.hints.colocate_with.clear();
    asks.hints.user_region = Some(name("north"));
    check(&asks, &[0, 0, 0, 750]);
}

#[test]
fn every_weight_can_change_the_answer() {
    // Each host is best by one term: even fill, wished for, empty, preferred, cheap.
    let mut fleet = hosts(5);
    for host in &mut fleet {
        host.price = Price { kind: PriceKind::OnDemand, micros_per_hour: 1_000 };
    }
    fleet[4].price.micros_per_hour = 10;
    let mut asks = sized("v", 2_000, 0);
    asks.preferred_hosts = names(&["h3"]);
    asks.affinities = vec![Affinity {
        kind: AffinityKind::Together,
        subject: Subject::Hosts(names(&["h1"])),
        level: Level::Host,
        strength: Strength::Preferred(1),
    }];
    for (row, term) in [0, 1, 2, 3, 4].into_iter().zip(Term::ALL) {
        let mut weights = [1; 5];
        weights[term.row()] = 100;
        let mut tiny = Tiny::new(&fleet);
        tiny.how.weights = Weights::new(weights).expect("weights are set");
        tiny.put(0, &sized("a", 2_000, 8_192));
        for row in [1, 3, 4] {
            tiny.put(row, &sized(&format!("b{row}"), 4_000, 0));
        }
        let chosen = tiny.place(&asks).host.expect("all fit");
        assert_eq!(chosen.host, HostIx(row), "{term:?} weighs most");
    }
}

#[test]
fn a_bursty_vm_weighs_load_twice() {
    let mut tiny = Tiny::new(&hosts(2));
    tiny.how.weights = Weights::new([30, 0, 10, 0, 0]).expect("weights are set");
    // Host 0 would be filled evenly but has less headroom.
    tiny.put(0, &sized("a", 0, 6_554));
    let mut asks = sized("v", 4_000, 0);
    let calm = tiny.place(&asks).host.expect("both fit");
    asks.hints.bursty = true;
    let bursty = tiny.place(&asks).host.expect("both fit");
    assert_eq!((calm.host, bursty.host), (HostIx(0), HostIx(1)));
    assert_eq!(bursty.breakdown.get(Term::Load), 20 * 1000);
}

/// The hosts that a strategy would take, best first; hosts 0 to 3 run 2, 6, 0 and 4 cores.
fn check_strategy(strategy: Strategy, after: Option<u32>, expect: [u32; 4]) {
    let mut tiny = Tiny::new(&hosts(4));
    tiny.how.strategy = strategy;
    tiny.how.round_robin_after = after.map(HostIx);
    for (row, cores) in [(0, 2), (1, 6), (3, 4)] {
        for core in 0..cores {
            tiny.put(row, &vm(&format!("vm-{row}-{core}")));
        }
    }
    let choice = tiny.place(&vm("v"));
    let chosen = choice.host.expect("all fit");
    assert_eq!(chosen.breakdown.total(), chosen.score);
    let mut order = vec![chosen.host.0];
    order.extend(choice.alternatives.iter().map(|(host, _)| host.0));
    assert_eq!(order, expect, "{strategy:?}");
}

#[test]
fn each_strategy_has_its_own_order() {
    check_strategy(Strategy::Balanced, None, [2, 0, 3, 1]);
    check_strategy(Strategy::FirstFit, None, [0, 1, 2, 3]);
    check_strategy(Strategy::FirstFitDecreasing, None, [0, 1, 2, 3]);
    check_strategy(Strategy::BestFit, None, [1, 3, 0, 2]);
    check_strategy(Strategy::BestFitDecreasing, None, [1, 3, 0, 2]);
    check_strategy(Strategy::WorstFit, None, [2, 0, 3, 1]);
    check_strategy(Strategy::LeastLoaded, None, [2, 0, 3, 1]);
    check_strategy(Strategy::Spread, None, [2, 0, 3, 1]);
    check_strategy(Strategy::FewestVms, None, [2, 0, 3, 1]);
    check_strategy(Strategy::Consolidate, None, [1, 3, 0, 2]);
    check_strategy(Strategy::LeastFragmentation, None, [1, 3, 0, 2]);
    check_strategy(Strategy::RoundRobin, None, [0, 1, 2, 3]);
    check_strategy(Strategy::RoundRobin, Some(1), [2, 3, 0, 1]);
    check_strategy(Strategy::RoundRobin, Some(3), [0, 1, 2, 3]);
}

#[test]
fn spread_keeps_members_of_a_group_out_of_each_others_zones() {
    let mut fleet = hosts(3);
    for (host, zone) in fleet.iter_mut().zip(["z0", "z0", "z1"]) {
        host.location.zone = Some(name(zone));
    }
    let mut tiny = Tiny::new(&fleet);
    tiny.how.strategy = Strategy::Spread;
    let member = |id| Vm { groups: names(&["web"]), ..vm(id) };
    tiny.put(0, &member("a"));
    tiny.put(1, &vm("b"));
    tiny.put(2, &vm("c"));
    let chosen = tiny.place(&member("v")).host.expect("all fit");
    assert_eq!(chosen.host, HostIx(2), "the other zone, though host 1 is as empty");
}
