//! Each rule on a tiny cluster: which hosts it leaves, and under which reason the others count.

mod tiny;

use cluster::{
    Affinity, AffinityKind, Amounts, CpuUnit, Dim, HostIx, HostState, Level, Reason, Selector,
    SelectorOp, Spread, Strength, Subject, Taint, TaintEffect, Toleration, TolerationOp, Vm,
};
use solver::feasible;
use tiny::{Tiny, hosts, name, names, vm};

/// Asks about every host, one at a time and all at once.
fn check(tiny: &mut Tiny, vm: &Vm, expect: &[Option<Reason>]) {
    let rows = 0..expect.len() as u32;
    let one_by_one: Vec<Option<Reason>> =
        rows.map(|row| feasible(&mut tiny.problem, vm, HostIx(row)).err()).collect();
    assert_eq!(one_by_one, expect);
    let choice = tiny.place(vm);
    for reason in expect.iter().flatten() {
        let count = expect.iter().filter(|other| **other == Some(*reason)).count() as u32;
        assert!(choice.rejections.0.contains(&(*reason, count)), "{:?}", choice.rejections);
    }
    let fitting = expect.iter().filter(|reason| reason.is_none()).count() as u64;
    assert_eq!(choice.rejections.total() + fitting, expect.len() as u64);
    assert_eq!(choice.considered as usize, expect.len());
    assert_eq!(choice.host.is_some(), fitting > 0);
}

fn rule(kind: AffinityKind, subject: Subject, level: Level) -> Affinity {
    Affinity { kind, subject, level, strength: Strength::Required }
}

#[test]
fn only_available_hosts_take_vms() {
    let mut fleet = hosts(5);
    fleet[1].state = HostState::Cordoned;
    fleet[2].state = HostState::Draining;
    fleet[3].state = HostState::Maintenance;
    fleet[4].state = HostState::Down;
    let kept = Some(Reason::HostState);
    check(&mut Tiny::new(&fleet), &vm("v"), &[None, kept, kept, kept, kept]);
}

#[test]
fn a_named_pool_is_kept_to() {
    let mut fleet = hosts(3);
    fleet[0].pool = Some(name("gold"));
    fleet[1].pool = Some(name("iron"));
    let mut tiny = Tiny::new(&fleet);
    check(&mut tiny, &vm("v"), &[None, None, None]);
    let gold = Vm { pool: Some(name("gold")), ..vm("v") };
    check(&mut tiny, &gold, &[None, Some(Reason::Pool), Some(Reason::Pool)]);
}

#[test]
fn every_selector_must_match() {
    let mut fleet = hosts(3);
    fleet[0].labels.insert(name("disk"), name("ssd"));
    fleet[1].labels.insert(name("disk"), name("ssd"));
    fleet[1].labels.insert(name("gpu"), name("a100"));
    let mut asks = vm("v");
    asks.selectors = vec![
        Selector { key: name("disk"), op: SelectorOp::In(names(&["ssd", "nvme"])) },
        Selector { key: name("gpu"), op: SelectorOp::Missing },
    ];
    let kept = Some(Reason::Selector);
    check(&mut Tiny::new(&fleet), &asks, &[None, kept, kept]);
}

#[test]
fn hard_taints_need_a_toleration_and_soft_ones_do_not() {
    let mut fleet = hosts(3);
    for (host, effect) in fleet.iter_mut().zip([
        TaintEffect::NoSchedule,
        TaintEffect::NoExecute,
        TaintEffect::PreferNoSchedule,
    ]) {
        host.taints = vec![Taint { key: name("db"), value: None, effect }];
    }
    let mut tiny = Tiny::new(&fleet);
    check(&mut tiny, &vm("v"), &[Some(Reason::Taint), Some(Reason::Taint), None]);
    let mut tolerant = vm("v");
    tolerant.tolerations = vec![Toleration {
        key: Some(name("db")),
        op: TolerationOp::Exists,
        effect: Some(TaintEffect::NoExecute),
    }];
    check(&mut tiny, &tolerant, &[Some(Reason::Taint), None, None]);
}

#[test]
fn every_datastore_must_be_reached_and_excluded_hosts_are_left_out() {
    let mut fleet = hosts(3);
    fleet[0].datastores = names(&["a", "b"]);
    fleet[1].datastores = names(&["a"]);
    fleet[2].datastores = names(&["a", "b"]);
    let mut asks = vm("v");
    asks.datastores = names(&["a", "b"]);
    asks.excluded_hosts = names(&["h2", "unheard-of"]);
    let expect = [None, Some(Reason::Datastore), Some(Reason::ExcludedHost)];
    check(&mut Tiny::new(&fleet), &asks, &expect);
}

#[test]
fn named_hosts_stand_for_their_domains() {
    // Racks r0, r0, r1 and no rack.
    let mut fleet = hosts(4);
    for (host, rack) in fleet.iter_mut().zip(["r0", "r0", "r1"]) {
        host.location.rack = Some(name(rack));
    }
    let mut tiny = Tiny::new(&fleet);
    let subject = Subject::Hosts(names(&["h0", "unheard-of"]));
    let kept = Some(Reason::HostAffinity);
    let mut asks = vm("v");
    asks.affinities = vec![rule(AffinityKind::Together, subject.clone(), Level::Rack)];
    check(&mut tiny, &asks, &[None, None, kept, kept]);
    asks.affinities = vec![rule(AffinityKind::Apart, subject, Level::Rack)];
    check(&mut tiny, &asks, &[kept, kept, None, None]);
}

#[test]
fn together_goes_where_members_are_and_the_first_member_goes_anywhere() {
    let mut fleet = hosts(3);
    fleet[0].location.zone = Some(name("z0"));
    fleet[1].location.zone = Some(name("z1"));
    let mut tiny = Tiny::new(&fleet);
    let kept = Some(Reason::Affinity);
    let mut asks = vm("v");
    let group = Subject::Group(name("web"));
    asks.affinities = vec![rule(AffinityKind::Together, group, Level::Zone)];
    check(&mut tiny, &asks, &[kept, kept, kept]);
    asks.groups = names(&["web"]);
    check(&mut tiny, &asks, &[None, None, kept]);
    tiny.put(1, &Vm { groups: names(&["web"]), ..vm("w") });
    check(&mut tiny, &asks, &[kept, None, kept]);
}

#[test]
fn apart_binds_the_newcomer_and_the_one_that_is_there() {
    let mut tiny = Tiny::new(&hosts(2));
    let kept = Some(Reason::AntiAffinity);
    let apart = rule(AffinityKind::Apart, Subject::Group(name("db")), Level::Host);
    let shy = Vm { affinities: vec![apart], ..vm("shy") };
    let member = Vm { groups: names(&["db"]), ..vm("member") };

    tiny.put(0, &shy);
    check(&mut tiny, &member, &[kept, None]);
    let mut foreign = member.clone();
    foreign.key.tenant = name("other");
    check(&mut tiny, &foreign, &[None, None]);
    tiny.take(0, &shy);
    check(&mut tiny, &member, &[None, None]);

    tiny.put(1, &member);
    check(&mut tiny, &shy, &[None, kept]);
    let named = rule(AffinityKind::Apart, Subject::Vm(name("member")), Level::Host);
    check(&mut tiny, &Vm { affinities: vec![named], ..vm("v") }, &[None, kept]);
}

#[test]
fn spread_keeps_within_the_skew_of_the_emptiest_eligible_domain() {
    let mut fleet = hosts(4);
    for (host, zone) in fleet.iter_mut().zip(["z0", "z1", "z2"]) {
        host.location.zone = Some(name(zone));
    }
    let kept = Some(Reason::Spread);
    let spread = Spread {
        group: name("web"),
        level: Level::Zone,
        max_skew: 1,
        strength: Strength::Required,
    };
    let even = |id: &str| Vm { spreads: vec![spread.clone()], ..vm(id) };
    let mut tiny = Tiny::new(&fleet);
    tiny.put(0, &even("a"));
    check(&mut tiny, &even("v"), &[kept, None, None, kept]);
    tiny.put(1, &even("b"));
    let mut not_z2 = even("v");
    not_z2.excluded_hosts = names(&["h2"]);
    check(&mut tiny, &not_z2, &[None, None, Some(Reason::ExcludedHost), kept]);
}

#[test]
fn room_is_checked_in_every_dimension_asked_for_and_in_no_other() {
    let mut tiny = Tiny::new(&hosts(2));
    let with = |cpu, memory| Vm { demand: Amounts::cpu_memory(cpu, memory), ..vm("v") };
    tiny.put(0, &with(8_000, 0));
    let (cpu, memory) = (Reason::Capacity(Dim::CPU_MILLIS), Reason::Capacity(Dim::MEMORY_MIB));
    check(&mut tiny, &with(8_000, 16_384), &[Some(cpu), None]);
    check(&mut tiny, &with(1, 16_385), &[Some(cpu), Some(memory)]);
    // Adopted beyond the host's room: who asks for no CPU is not kept away.
    tiny.put(0, &Vm { key: vm("w").key, ..with(100_000, 0) });
    check(&mut tiny, &with(0, 16_384), &[None, None]);
    let gpu = Vm { demand: Amounts::zero().with(Dim(7), 1), ..vm("v") };
    check(&mut tiny, &gpu, &[Some(Reason::Capacity(Dim(7))); 2]);
}

#[test]
fn normalised_cpu_takes_less_of_a_faster_host() {
    let mut fleet = hosts(2);
    fleet[0].benchmark_permille = 1_500;
    fleet[1].benchmark_permille = 700;
    let mut tiny = Tiny::new(&fleet);
    let mut asks = Vm { demand: Amounts::cpu_memory(10_000, 1), ..vm("v") };
    asks.cpu_unit = CpuUnit::Normalised;
    check(&mut tiny, &asks, &[None, Some(Reason::Capacity(Dim::CPU_MILLIS))]);
    let taken = feasible(&mut tiny.problem, &asks, HostIx(0));
    assert_eq!(taken, Ok(Amounts::cpu_memory(6_667, 1)));
}

#[test]
fn a_host_that_moves_takes_its_members_along() {
    let mut fleet = hosts(2);
    fleet[0].location.rack = Some(name("r0"));
    fleet[1].location.rack = Some(name("r1"));
    let mut tiny = Tiny::new(&fleet);
    tiny.put(0, &Vm { groups: names(&["db"]), ..vm("w") });
    let mut asks = vm("v");
    asks.affinities = vec![rule(AffinityKind::Apart, Subject::Group(name("db")), Level::Rack)];
    let kept = Some(Reason::AntiAffinity);
    check(&mut tiny, &asks, &[kept, None]);
    fleet[0].location.rack = Some(name("r1"));
    tiny.problem.put_host(HostIx(0), &fleet[0]);
    check(&mut tiny, &asks, &[kept, kept]);
}
