//! Every example does what its description says, on hosts as the service has them.

mod files;

use cluster::{
    Amounts, Dim, Dimensions, Gpu, Host, HostState, Name, Power, Price, PriceKind, PriorityClass,
    RegionLatency, Vm, VmKey,
};
use expect_test::{Expect, expect};
use policy::vocabulary::{HostField, HostView, VmField};
use policy::{
    ActionKind, ActiveSet, Configuration, PolicyType, Request, Scratch, Syntax, Table, Value,
    Verdicts, load,
};
use std::sync::Arc;

/// A host and what its VMs were promised.
struct Used {
    host: Host,
    used: Amounts,
    vms: u64,
}

fn name(text: &str) -> Name {
    Name::new(text).expect("a name")
}

/// A host of 32 cores and 128 GiB.
fn host(id: &str, set: impl FnOnce(&mut Host)) -> Used {
    let mut host = Host::new(name(id), Amounts::cpu_memory(32_000, 131_072));
    set(&mut host);
    Used { host, used: Amounts::zero(), vms: 0 }
}

fn loaded(id: &str, cpu_millis: u64, memory_mib: u64, vms: u64) -> Used {
    Used { used: Amounts::cpu_memory(cpu_millis, memory_mib), vms, ..host(id, |_| {}) }
}

fn label(host: &mut Host, key: &str, value: &str) {
    host.labels.insert(name(key), name(value));
}

fn vm(set: impl FnOnce(&mut Vm)) -> Vm {
    let key = VmKey::in_default_tenant(name("vm"));
    let mut vm = Vm::new(key, Amounts::cpu_memory(4_000, 16_384));
    set(&mut vm);
    vm
}

/// Runs an example: the hosts that are left with their points, best first, and why others are not.
fn check(file: &str, parameters: &[(&str, Value)], vm: &Vm, hosts: &[Used], expect: Expect) {
    let asked =
        if file.starts_with("migration") { PolicyType::Migration } else { PolicyType::Placement };
    let (program, warnings) =
        load(&files::read(file), Syntax::of_file(file)).unwrap_or_else(|found| panic!("{found:?}"));
    assert_eq!(warnings, [], "{file}");
    let mut configuration = Configuration::default();
    for (parameter, value) in parameters {
        configuration.parameter_values.insert((*parameter).into(), value.clone());
    }
    let set = ActiveSet::new(vec![(Arc::new(program), configuration)]).expect("activates");
    assert_eq!(set.conflicts(), [], "{file}");
    let dimensions = Dimensions::with_extra(vec![name("gpu")]).expect("one more");
    let fields: Vec<HostField> =
        set.host_paths().iter().map(|path| HostField::resolve(path, &dimensions)).collect();
    let value = |field: &HostField, used: &Used| {
        let promised = |dim: Dim| used.used.get(dim);
        field.value(&HostView { host: &used.host, used: &promised, vm_count: used.vms })
    };
    let table = Table::fill(hosts.len(), fields.len(), &mut |row, column| {
        value(&fields[column], &hosts[row])
    });
    let vm: Vec<Value> =
        set.paths().vm.iter().map(|path| VmField::resolve(path, &dimensions).value(vm)).collect();
    // Migrations leave the first host.
    let source = set.paths().source.iter().map(|path| HostField::resolve(path, &dimensions));
    let source: Vec<Value> = source.map(|field| value(&field, &hosts[0])).collect();
    let mut verdicts = Verdicts::default();
    let request = Request { source: &source, ..Request::new(asked, &vm) };
    set.evaluate(&request, &table, &mut Scratch::default(), &mut verdicts).expect("runs");
    assert_eq!(verdicts.total_errors(), 0, "{file}");
    let id = |row: usize| hosts[row].host.id.as_str();
    let mut lines: Vec<String> = verdicts
        .ranked()
        .into_iter()
        .map(|row| format!("{} {}", id(row), verdicts.score_millis(row) as f64 / 1000.0))
        .collect();
    for row in 0..hosts.len() {
        let Some(rule) = verdicts.filtered_by(row) else { continue };
        let (_, rule) = set.rule(rule).expect("a rule of the set");
        let reason = rule.then.iter().find_map(|action| match &action.kind {
            ActionKind::Filter { reason } => Some(reason.as_str()),
            _ => None,
        });
        lines.push(format!("{} removed: {}", id(row), reason.unwrap_or("?")));
    }
    expect.assert_eq(&lines.join("\n"));
}

#[test]
fn gpu_work_goes_where_gpus_are_and_other_work_does_not() {
    let gpu = Gpu { compute_capability_tenths: 80, ..Gpu::new(name("a100"), 40_960) };
    let hosts = [
        host("plain", |_| {}),
        host("one", |host| host.hardware.gpus = vec![gpu.clone()]),
        host("four", |host| host.hardware.gpus = vec![gpu.clone(); 4]),
    ];
    let two_gpus = vm(|vm| vm.demand.set(Dim(5), 2));
    let file = "gpu-placement.policy";
    check(
        file,
        &[],
        &two_gpus,
        &hosts,
        expect![[r#"
        four 0
        plain removed: too few GPUs
        one removed: too few GPUs"#]],
    );
    check(
        file,
        &[],
        &vm(|_| {}),
        &hosts,
        expect![[r#"
        plain 0
        one -200
        four -200"#]],
    );
}

#[test]
fn hosts_with_fewer_vms_and_other_racks_come_first() {
    let on_rack = |mut used: Used, rack: &str| {
        used.host.location.rack = Some(name(rack));
        used
    };
    let hosts = [
        on_rack(loaded("busy", 0, 0, 20), "r1"),
        on_rack(loaded("calm", 0, 0, 3), "r1"),
        on_rack(loaded("empty", 0, 0, 0), "r2"),
    ];
    check(
        "spread-by-rack.policy",
        &[],
        &vm(|_| {}),
        &hosts,
        expect![[r#"
        empty 0
        calm -6
        busy -40"#]],
    );
    let emptying = [("emptying", Value::from("r2")), ("per_vm", Value::from(1.0))];
    check(
        "spread-by-rack.policy",
        &emptying,
        &vm(|_| {}),
        &hosts,
        expect![[r#"
        calm -3
        busy -20
        empty -200"#]],
    );
}

#[test]
fn hosts_in_maintenance_are_left_out() {
    let hosts = [
        host("draining", |host| host.state = HostState::Draining),
        host("planned", |host| label(host, "maintenance_scheduled", "true")),
        host("old", |host| host.failure_ppm_per_year = 80_000),
        host("good", |_| {}),
    ];
    let critical = vm(|vm| vm.priority = PriorityClass::Critical);
    let file = "avoid-maintenance.policy";
    check(
        file,
        &[],
        &vm(|_| {}),
        &hosts,
        expect![[r#"
        old 0
        good 0
        draining removed: maintenance is planned
        planned removed: maintenance is planned"#]],
    );
    check(
        file,
        &[],
        &critical,
        &hosts,
        expect![[r#"
        good 0
        draining removed: maintenance is planned
        planned removed: maintenance is planned
        old removed: fails too often for critical work"#]],
    );
}

#[test]
fn running_and_efficient_machines_come_first() {
    let power = |id: &str, idle_mw, peak_mw, cpu_millis, vms| {
        let mut used = loaded(id, cpu_millis, 0, vms);
        used.host.power = Power::Linear { idle_mw, peak_mw };
        used
    };
    let hosts = [
        power("idle", 100_000, 400_000, 0, 0),
        power("running", 100_000, 400_000, 16_000, 5),
        power("full", 100_000, 400_000, 31_000, 9),
        power("wasteful", 300_000, 400_000, 16_000, 5),
    ];
    check(
        "power-efficiency.policy",
        &[],
        &vm(|_| {}),
        &hosts,
        expect![[r#"
        running 50
        wasteful 35
        idle 10
        full 10"#]],
    );
    let higher = [("ceiling", Value::from(99.0))];
    check(
        "power-efficiency.policy",
        &higher,
        &vm(|_| {}),
        &hosts,
        expect![[r#"
        running 50
        full 50
        wasteful 35
        idle 10"#]],
    );
}

#[test]
fn data_stays_in_its_region_and_unlabelled_hosts_do_not_count() {
    let hosts = [
        host("nowhere", |_| {}),
        host("us", |host| label(host, "jurisdiction", "us")),
        host("eu", |host| label(host, "jurisdiction", "eu")),
    ];
    let eu = vm(|vm| vm.labels.insert(name("residency"), name("eu")));
    check(
        "data-residency.policy",
        &[],
        &eu,
        &hosts,
        expect![[r#"
        eu 0
        nowhere removed: outside of the region where the data may be
        us removed: outside of the region where the data may be"#]],
    );
    check(
        "data-residency.policy",
        &[],
        &vm(|_| {}),
        &hosts,
        expect![[r#"
        nowhere 0
        us 0
        eu 0"#]],
    );
}

#[test]
fn licensed_work_fills_licensed_hosts() {
    let licensed = |mut used: Used| {
        label(&mut used.host, "licence", "database");
        used
    };
    let hosts = [
        host("plain", |_| {}),
        licensed(loaded("fresh", 0, 0, 0)),
        licensed(loaded("used", 16_000, 0, 4)),
    ];
    let database = vm(|vm| vm.labels.insert(name("licence"), name("database")));
    check(
        "licence-hosts.policy",
        &[],
        &database,
        &hosts,
        expect![[r#"
        used 25
        fresh 0
        plain removed: the host has no licence"#]],
    );
    check(
        "licence-hosts.policy",
        &[],
        &vm(|_| {}),
        &hosts,
        expect![[r#"
        plain 0
        fresh -100
        used -100"#]],
    );
}

#[test]
fn bursty_vms_get_room_and_quiet_neighbours() {
    let hosts = [
        loaded("busy", 28_000, 65_536, 9),
        loaded("half", 16_000, 65_536, 5),
        loaded("quiet", 3_200, 13_107, 1),
    ];
    let bursty = vm(|vm| vm.hints.bursty = true);
    check(
        "noisy-neighbour.policy",
        &[],
        &bursty,
        &hosts,
        expect![[r#"
        quiet 135
        half 75
        busy removed: no room for bursts"#]],
    );
    let much = [("headroom", Value::from(60.0))];
    check(
        "noisy-neighbour.policy",
        &much,
        &bursty,
        &hosts,
        expect![[r#"
        quiet 135
        busy removed: no room for bursts
        half removed: no room for bursts"#]],
    );
    check(
        "noisy-neighbour.policy",
        &[],
        &vm(|_| {}),
        &hosts,
        expect![[r#"
        busy 0
        half 0
        quiet 0"#]],
    );
}

#[test]
fn hosts_near_the_peer_come_first() {
    let away = |id: &str, latency_us| {
        let region = name("frankfurt");
        host(id, |host| host.latencies = vec![RegionLatency { region, latency_us }])
    };
    let hosts =
        [host("unknown", |_| {}), away("far", 90_000), away("mid", 30_000), away("near", 2_500)];
    let talking = vm(|vm| vm.labels.insert(name("peer"), name("frankfurt")));
    check(
        "near-peer.policy",
        &[],
        &talking,
        &hosts,
        expect![[r#"
        near 75
        mid 20
        unknown 0
        far removed: too far from its peer"#]],
    );
    check(
        "near-peer.policy",
        &[],
        &vm(|_| {}),
        &hosts,
        expect![[r#"
        unknown 0
        far 0
        mid 0
        near 0"#]],
    );
}

#[test]
fn spot_work_uses_spot_hosts_and_other_work_does_not() {
    let priced = |id: &str, kind, micros_per_hour, memory_mib| {
        let mut used = loaded(id, 0, memory_mib, 0);
        used.host.price = Price { kind, micros_per_hour };
        used
    };
    let hosts = [
        priced("firm", PriceKind::OnDemand, 2_000_000, 0),
        priced("spare", PriceKind::Spot, 500_000, 65_536),
    ];
    check(
        "spot-on-spare.policy",
        &[],
        &vm(|vm| vm.spot = true),
        &hosts,
        expect![[r#"
        spare 30
        firm 25"#]],
    );
    check(
        "spot-on-spare.policy",
        &[],
        &vm(|_| {}),
        &hosts,
        expect![[r#"
        firm 0
        spare removed: the host may be taken away"#]],
    );
}

#[test]
fn migrations_stay_in_the_datacenter_on_a_fast_network() {
    let there = |id: &str, zone: &str, rack: &str, net_mbps: u64, cpu_millis| {
        let mut used = loaded(id, cpu_millis, 0, 1);
        used.host.location.zone = Some(name(zone));
        used.host.location.rack = Some(name(rack));
        used.host.capacity.set(Dim::NET_MBPS, net_mbps);
        used
    };
    let hosts = [
        there("source", "a", "r1", 25_000, 30_000),
        there("elsewhere", "b", "r9", 25_000, 0),
        there("slow", "a", "r2", 1_000, 0),
        there("same-rack", "a", "r1", 25_000, 8_000),
        there("other-rack", "a", "r2", 25_000, 8_000),
    ];
    let large = vm(|vm| vm.demand = Amounts::cpu_memory(4_000, 100_000));
    check(
        "migration-in-datacenter.policy",
        &[],
        &large,
        &hosts,
        expect![[r#"
        other-rack 78.75
        same-rack 68.75
        source 0
        elsewhere removed: another datacenter
        slow removed: the network is too slow for this much memory"#]],
    );
    check(
        "migration-in-datacenter.policy",
        &[],
        &vm(|_| {}),
        &hosts,
        expect![[r#"
        slow 103.75
        other-rack 78.75
        same-rack 68.75
        source 0
        elsewhere removed: another datacenter"#]],
    );
}

#[test]
fn every_example_is_run_above_and_both_notations_say_the_same() {
    let here = include_str!("examples.rs");
    let names = files::names();
    assert!(names.iter().filter(|name| name.ends_with(".policy")).count() >= 10);
    for name in &names {
        let read = |file: &str| load(&files::read(file), Syntax::of_file(file)).expect("valid").0;
        match name.strip_suffix(".yaml") {
            Some(stem) => assert_eq!(read(name), read(&format!("{stem}.policy"))),
            None => assert!(here.contains(&format!("{name:?}")), "{name} is run by no test"),
        }
    }
}
