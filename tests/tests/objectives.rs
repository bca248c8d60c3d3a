//! Kinds of goals: each by an example, their scale against each other, and what each setting does.

use cluster::assignment::Problem;
use cluster::{
    Amounts, Constraint, ConstraintRule, GoalKind, Host, HostIx, Level, Link, Links, Location,
    Migratability, Name, Network, Placed, Power, Price, PriceKind, PriorityClass, RegionLatency,
    Snapshot, Vm, VmKey, VmSet,
};
use solver::assignment::{Ask, Budget, Fleet, Model, State, arrivals_only, from_fleet};
use solver::engines::{Csp, Engine, Task};
use solver::objective::{Objective, Setting, SettingError, Value, Wish, add_goals};
use std::sync::Arc;

fn name(text: &str) -> Name {
    Name::new(text).expect("a valid name")
}

/// Four cores and 16 GiB.
fn host(row: usize) -> Host {
    let mut host = Host::new(name(&format!("h{row}")), Amounts::cpu_memory(4_000, 16_384));
    host.power = Power::Linear { idle_mw: 100_000, peak_mw: 200_000 };
    host
}

/// A core and 4 GiB.
fn vm(id: &str) -> Vm {
    Vm::new(VmKey::in_default_tenant(name(id)), Amounts::cpu_memory(1_000, 4_096))
}

fn scene(hosts: Vec<Host>, placed: &[(Vm, usize)]) -> Snapshot {
    let placed = placed.iter().map(|(vm, row)| Placed {
        vm: Arc::new(vm.clone()),
        host: hosts[*row].id.clone(),
        committed: vm.demand.clone(),
        bindings: None,
        over_capacity: false,
        adopted: false,
        held: false,
    });
    let placed = placed.collect();
    Snapshot { hosts: hosts.into_iter().map(Arc::new).collect(), placed, ..Snapshot::default() }
}

fn hosts(count: usize, change: impl Fn(usize, &mut Host)) -> Vec<Host> {
    let made = |row| {
        let mut host = host(row);
        change(row, &mut host);
        host
    };
    (0..count).map(made).collect()
}

fn arcs(vms: &[Vm]) -> Vec<Arc<Vm>> {
    vms.iter().cloned().map(Arc::new).collect()
}

fn asked(
    snapshot: &Snapshot,
    arrivals: &[Arc<Vm>],
    wishes: &[(GoalKind, u32)],
    setting: &Setting,
) -> (Fleet, Objective) {
    let ask = Ask { snapshot, arrivals, stays: &|_| false, may_stay: true };
    priced(from_fleet(ask).unwrap(), snapshot, arrivals, wishes, setting)
}

fn priced(
    mut fleet: Fleet,
    snapshot: &Snapshot,
    arrivals: &[Arc<Vm>],
    wishes: &[(GoalKind, u32)],
    setting: &Setting,
) -> (Fleet, Objective) {
    let wishes: Vec<Wish> = wishes.iter().map(|&(kind, weight)| Wish { kind, weight }).collect();
    let objective = add_goals(&mut fleet, snapshot, arrivals, &wishes, setting).unwrap();
    (fleet, objective)
}

/// The best assignment there is, proven.
fn best(problem: &Problem) -> Vec<u32> {
    let model = Model::compile(problem).unwrap();
    let task = Task::new(problem, &model, 1);
    let outcome = Csp { first: false }.solve(task, &mut Budget::steps(1_000_000));
    assert_eq!(outcome.stop_reason.as_str(), "optimal");
    let hosts = outcome.assignment.expect("an assignment");
    assert_eq!(verified(problem, &hosts).iter().sum::<i64>(), outcome.objective.unwrap());
    hosts
}

fn verified(problem: &Problem, hosts: &[u32]) -> Vec<i64> {
    let hosts: Vec<HostIx> = hosts.iter().copied().map(HostIx).collect();
    verify::assignment(problem, &hosts).expect("allowed").goals
}

/// Where arrivals go best by one kind of goal alone, and what that is worth.
fn alone(
    kind: GoalKind,
    snapshot: &Snapshot,
    arrivals: &[Vm],
    setting: &Setting,
) -> (Vec<u32>, Value) {
    let arrivals = arcs(arrivals);
    let (fleet, objective) = asked(snapshot, &arrivals, &[(kind, 1)], setting);
    let hosts = best(&fleet.problem);
    let value = objective.values(&fleet.problem, &hosts).unwrap()[0];
    assert_eq!(value.kind, kind);
    assert!(value.bound <= value.value && value.normalised >= 0.0, "{value:?}");
    (hosts, value)
}

#[test]
fn energy_goes_by_curves_and_counts_hosts_that_are_kept_on() {
    // The second draws less at half load than the first, and more at the end.
    let curve = [50, 52, 54, 56, 58, 60, 200, 210, 220, 230, 240].map(|watts| watts * 1_000);
    let fleet = hosts(3, |row, host| {
        if row == 1 {
            host.power = Power::Table(Box::new(curve));
        }
    });
    let snapshot = scene(fleet, &[]);
    let setting = Setting::default();
    let (found, value) = alone(GoalKind::Energy, &snapshot, &[vm("a"), vm("b")], &setting);
    assert_eq!((found, value.value), (vec![1, 1], 60_000));
    let four = [vm("a"), vm("b"), vm("c"), vm("d")];
    let (found, value) = alone(GoalKind::Energy, &snapshot, &four, &setting);
    assert_eq!((found, value.value), (vec![0, 0, 0, 0], 200_000));
    let kept = Setting { keep_on: 1, ..setting };
    let (_, value) = alone(GoalKind::Energy, &snapshot, &[vm("a"), vm("b")], &kept);
    assert_eq!(value.value, 60_000 + 100_000, "a spare at its idle draw");
}

#[test]
fn cost_fills_what_is_paid_for_first_and_weighs_interruptions() {
    let kinds = [PriceKind::OnDemand, PriceKind::Reserved, PriceKind::Spot];
    let fleet = hosts(3, |row, host| {
        let micros_per_hour = [2_000_000, 9_000_000, 400_000][row];
        host.price = Price { kind: kinds[row], micros_per_hour };
    });
    let snapshot = scene(fleet, &[]);
    let five: Vec<Vm> = ["a", "b", "c", "d", "e"].map(vm).to_vec();
    let setting = Setting::default();
    let (found, value) = alone(GoalKind::Cost, &snapshot, &five, &setting);
    assert_eq!(found.iter().filter(|host| **host == 1).count(), 4, "{found:?}");
    // A quarter of the spot host, and 0.5 % of the penalty.
    assert!(found.contains(&2));
    assert_eq!(value.value, 100_000 + 25_000);
    // For a critical VM that is 16 times as much, and dearer than a quarter on demand.
    let critical = |vm: &Vm| Vm { priority: PriorityClass::Critical, ..vm.clone() };
    let five: Vec<Vm> = five.iter().map(critical).collect();
    let dear = Setting { spot_penalty_micros: 50_000_000, ..setting };
    let (found, value) = alone(GoalKind::Cost, &snapshot, &five, &dear);
    assert!(found.contains(&0) && !found.contains(&2), "{found:?}");
    assert_eq!(value.value, 500_000);
}

#[test]
fn latency_is_to_users_and_between_vms_that_talk() {
    let fleet = hosts(4, |row, host| {
        let (zone, rack) = (["z0", "z1"][row / 2], ["r0", "r1", "r2", "r3"][row]);
        host.location =
            Location { zone: Some(name(zone)), rack: Some(name(rack)), ..Location::default() };
        let latency_us = [5_000, 4_000, 900, 1_000][row];
        host.latencies = vec![RegionLatency { region: name("eu"), latency_us }];
    });
    let mut snapshot = scene(fleet, &[(vm("standing"), 0)]);
    let setting = Setting::default();
    let mut near_users = vm("a");
    near_users.hints.user_region = Some(name("eu"));
    let (found, value) = alone(GoalKind::Latency, &snapshot, &[near_users.clone()], &setting);
    assert_eq!((found[1], value.value), (2, 900));
    let mut talks = vm("a");
    talks.hints.colocate_with = vec![name("standing")];
    talks.excluded_hosts = vec![name("h0")];
    snapshot.placed[0].vm = Arc::new(Vm { migratability: Migratability::Pinned, ..vm("standing") });
    let (found, value) = alone(GoalKind::Latency, &snapshot, &[talks.clone()], &setting);
    assert_eq!((found[1], value.value), (1, u64::from(setting.zone_us) as i64));
    // The same without the one that stands as a row.
    let arrivals = arcs(&[talks]);
    let folded = arrivals_only(&snapshot, &arrivals).unwrap();
    let (folded, _) = priced(folded, &snapshot, &arrivals, &[(GoalKind::Latency, 1)], &setting);
    assert_eq!((folded.problem.vms.len(), best(&folded.problem)), (1, vec![1]));
}

#[test]
fn latency_of_network_partners_goes_by_their_fabric() {
    let fleet = hosts(3, |row, host| {
        host.location.rack = Some(name(["r0", "r1", "r2"][row]));
    });
    let set = |group: &str| VmSet {
        tenant: Some(name("default")),
        group: Some(name(group)),
        ..VmSet::default()
    };
    let member = |id: &str, group: &str| Vm { groups: vec![name(group)], ..vm(id) };
    let mut snapshot = scene(fleet, &[(member("a", "app"), 0), (member("b", "db"), 1)]);
    let link = |a: &str, b: &str, latency_us| Link {
        a: name(a),
        b: name(b),
        latency_us,
        bandwidth_mbps: 100,
    };
    let links =
        Links { level: Level::Rack, links: vec![link("r0", "r1", 70), link("r1", "r2", 20)] };
    let network = Network {
        vms: set("app"),
        to: set("db"),
        over: name("fabric"),
        max_latency_us: None,
        bandwidth_mbps: 0,
    };
    snapshot.constraints = vec![
        Arc::new(Constraint { name: name("fabric"), rule: ConstraintRule::Links(links) }),
        Arc::new(Constraint { name: name("talk"), rule: ConstraintRule::Network(network) }),
    ];
    let (fleet, objective) = asked(&snapshot, &[], &[(GoalKind::Latency, 1)], &Setting::default());
    let worth = |hosts: &[u32]| objective.values(&fleet.problem, hosts).unwrap()[0].value;
    assert_eq!([worth(&[0, 1]), worth(&[0, 2]), worth(&[2, 2])], [70, 90, 0]);
}

#[test]
fn reliability_spreads_groups_over_what_fails_together() {
    let fleet = hosts(3, |row, host| {
        host.failure_ppm_per_year = [10_000, 10_000, 30_000][row];
        host.location.rack = Some(name(["r0", "r0", "r1"][row]));
    });
    let snapshot = scene(fleet, &[]);
    let pair = ["a", "b"].map(|id| Vm { groups: vec![name("app")], ..vm(id) });
    let quiet = Setting {
        rack_failures_ppm: 0,
        power_feed_failures_ppm: 0,
        zone_failures_ppm: 0,
        ..Setting::default()
    };
    // Both alone on a good host: 10,000 x 1 / 2 each.
    let (found, value) = alone(GoalKind::Reliability, &snapshot, &pair, &quiet);
    assert!(found.contains(&0) && found.contains(&1), "{found:?}");
    assert_eq!(value.value, 10_000);
    // Racks that fail often are worth a host that fails more.
    let racks = Setting { rack_failures_ppm: 50_000, ..quiet };
    let (found, value) = alone(GoalKind::Reliability, &snapshot, &pair, &racks);
    assert!(found.contains(&2), "{found:?}");
    assert_eq!(value.value, (10_000 + 30_000) / 2 + 50_000);
}

#[test]
fn performance_avoids_load_above_the_safe_share() {
    let snapshot = scene(hosts(2, |_, _| {}), &[(vm("s"), 0), (vm("t"), 0), (vm("u"), 0)]);
    let pinned = snapshot.placed.iter().map(|placed| Placed {
        vm: Arc::new(Vm { migratability: Migratability::Pinned, ..Vm::clone(&placed.vm) }),
        ..placed.clone()
    });
    let snapshot = Snapshot { placed: pinned.collect(), ..snapshot };
    let (found, value) = alone(GoalKind::Performance, &snapshot, &[vm("a")], &Setting::default());
    assert_eq!((found[3], value.value), (1, 0));
}

#[test]
fn balance_evens_out_and_thermal_keeps_racks_cool() {
    let four = ["a", "b", "c", "d"].map(vm);
    let snapshot = scene(hosts(2, |_, _| {}), &[]);
    let (found, value) = alone(GoalKind::Balance, &snapshot, &four, &Setting::default());
    assert_eq!(found.iter().filter(|host| **host == 0).count(), 2, "{found:?}");
    assert_eq!(value.value, 0);
    let fleet = hosts(3, |row, host| {
        host.location.rack = Some(name(["r0", "r0", "r1"][row]));
        host.hardware.thermal_limit_watts = [0, 0, 160][row];
    });
    let snapshot = scene(fleet, &[]);
    let setting = Setting { rack_limit_watts: 150, ..Setting::default() };
    let (found, value) = alone(GoalKind::Thermal, &snapshot, &four, &setting);
    // Half a host in each rack draws 150 W.
    assert_eq!(found.iter().filter(|host| **host == 2).count(), 2, "{found:?}");
    assert_eq!(value.value, 0);
}

#[test]
fn carbon_goes_by_site_and_hour() {
    let fleet = hosts(2, |row, host| host.location.zone = Some(name(["z0", "z1"][row])));
    let snapshot = scene(fleet, &[]);
    let mut nights = [600; 24];
    nights[3] = 100;
    let carbon = [(name("z0"), [300; 24]), (name("z1"), nights)].into();
    let setting = Setting { hour: 3, carbon, ..Setting::default() };
    let (found, value) = alone(GoalKind::Carbon, &snapshot, &[vm("a")], &setting);
    // 125 W at 100 g/kWh.
    assert_eq!((found, value.value), (vec![1], 12_500));
    let noon = Setting { hour: 12, ..setting };
    assert_eq!(alone(GoalKind::Carbon, &snapshot, &[vm("a")], &noon).0, vec![0]);
}

#[test]
fn migration_counts_memory_that_is_copied() {
    let cold = Vm { migratability: Migratability::Cold, ..vm("cold") };
    let snapshot = scene(hosts(2, |_, _| {}), &[(vm("live"), 0), (cold, 0)]);
    let (fleet, objective) =
        asked(&snapshot, &[], &[(GoalKind::Migration, 1)], &Setting::default());
    let worth = |hosts: &[u32]| objective.values(&fleet.problem, hosts).unwrap()[0].value;
    assert_eq!([worth(&[0, 0]), worth(&[1, 0]), worth(&[0, 1])], [0, 4_096, 3 * 4_096]);
    assert_eq!(best(&fleet.problem), vec![0, 0]);
}

/// A fleet in which every kind of goal has something to say, with a few VMs to come.
fn everything() -> (Snapshot, Vec<Arc<Vm>>) {
    let fleet = hosts(4, |row, host| {
        host.location = Location {
            region: Some(name(["e0", "e0", "e0", "e1"][row])),
            zone: Some(name(["z0", "z0", "z1", "z2"][row])),
            power_feed: Some(name(["f0", "f0", "f1", "f2"][row])),
            rack: Some(name(["r0", "r0", "r1", "r2"][row])),
        };
        let kind = [PriceKind::OnDemand, PriceKind::Spot, PriceKind::Reserved, PriceKind::OnDemand];
        host.price = Price { kind: kind[row], micros_per_hour: [30, 20, 70, 10][row] * 100_000 };
        host.power = Power::Linear { idle_mw: 90_000 + 9_000 * row as u32, peak_mw: 250_000 };
        host.failure_ppm_per_year = [0, 20_000, 40_000, 0][row];
        if row < 3 {
            let latency_us = [900, 800, 2_000][row];
            host.latencies = vec![RegionLatency { region: name("eu"), latency_us }];
        }
    });
    let cold = Vm { migratability: Migratability::Cold, ..vm("cold") };
    let group = |id: &str| Vm { groups: vec![name("app")], ..vm(id) };
    let snapshot = scene(fleet, &[(cold, 3), (group("s"), 0), (group("t"), 0)]);
    let mut user = group("a");
    user.hints.user_region = Some(name("eu"));
    user.hints.colocate_with = vec![name("s"), name("t"), name("cold")];
    (snapshot, arcs(&[user, vm("b")]))
}

#[test]
fn every_setting_changes_what_something_is_worth() {
    let (snapshot, arrivals) = everything();
    let wishes = GoalKind::ALL.map(|kind| (kind, 1));
    let usual = Setting { rack_limit_watts: 100, ..Setting::default() };
    let worth = |setting: &Setting| -> Vec<Vec<i64>> {
        let (fleet, objective) = asked(&snapshot, &arrivals, &wishes, setting);
        let judge = objective.judge(&fleet.problem).unwrap();
        // Everybody together, then one after the other elsewhere.
        let all =
            [[0, 0, 0, 1, 0], [3, 0, 0, 0, 1], [0, 2, 0, 0, 1], [3, 0, 0, 2, 1], [0, 0, 0, 3, 3]];
        let values = all.iter().map(|hosts| judge.values(hosts));
        values.map(|values| values.iter().map(|value| value.value).collect()).collect()
    };
    let carbon = || [(name("z0"), std::array::from_fn(|hour| 10 * hour as u32))].into();
    let with_carbon = Setting { carbon: carbon(), ..usual.clone() };
    let changed: [(&str, &Setting, Setting); 18] = [
        ("keep_on", &usual, Setting { keep_on: 1, ..usual.clone() }),
        ("hour", &with_carbon, Setting { hour: 7, ..with_carbon.clone() }),
        ("carbon", &usual, with_carbon.clone()),
        ("carbon_elsewhere", &usual, Setting { carbon_elsewhere: 9, ..usual.clone() }),
        ("rack_limit", &usual, Setting { rack_limit_watts: 140, ..usual.clone() }),
        ("spot_interruption", &usual, Setting { spot_interruption_ppm: 9_000, ..usual.clone() }),
        ("spot_penalty", &usual, Setting { spot_penalty_micros: 9, ..usual.clone() }),
        ("unknown_region", &usual, Setting { unknown_region_us: 7, ..usual.clone() }),
        ("rack_us", &usual, Setting { rack_us: 7, ..usual.clone() }),
        ("zone_us", &usual, Setting { zone_us: 7, ..usual.clone() }),
        ("region_us", &usual, Setting { region_us: 7, ..usual.clone() }),
        ("beyond_us", &usual, Setting { beyond_us: 7, ..usual.clone() }),
        ("host_failures", &usual, Setting { host_failures_ppm: 7, ..usual.clone() }),
        ("rack_failures", &usual, Setting { rack_failures_ppm: 7, ..usual.clone() }),
        ("feed_failures", &usual, Setting { power_feed_failures_ppm: 7, ..usual.clone() }),
        ("zone_failures", &usual, Setting { zone_failures_ppm: 7, ..usual.clone() }),
        ("safe_permille", &usual, Setting { safe_permille: 300, ..usual.clone() }),
        ("cold_permille", &usual, Setting { cold_permille: 1_500, ..usual.clone() }),
    ];
    let silent = changed.iter().filter(|(_, from, to)| worth(from) == worth(to));
    let silent: Vec<&str> = silent.map(|(field, ..)| *field).collect();
    assert_eq!(silent, ["zone_us"], "every host of a zone is in one rack here");
    let apart = |row: usize, host: &mut Host| host.location.rack = Some(name(&format!("q{row}")));
    let mut other = snapshot.clone();
    for (row, host) in other.hosts.iter_mut().enumerate() {
        apart(row, Arc::make_mut(host));
    }
    let worth = |zone_us| {
        let setting = Setting { zone_us, ..usual.clone() };
        let (fleet, objective) = asked(&other, &arrivals, &[(GoalKind::Latency, 1)], &setting);
        objective.values(&fleet.problem, &[3, 0, 0, 1, 1]).unwrap()[0].value
    };
    assert_ne!(worth(7), worth(70));
}

#[test]
fn a_setting_out_of_range_is_refused_by_name() {
    assert_eq!(Setting::default().check(), Ok(()));
    let late = Setting { hour: 24, ..Setting::default() };
    let error = SettingError::TooLarge { field: "hour", found: 24, most: 23 };
    assert_eq!(late.check(), Err(error));
}

#[test]
fn more_weight_shifts_the_optimum_and_units_do_not() {
    // Cheap where it is slow, fast where it is dear.
    let made = |factor: u64| {
        let fleet = hosts(2, |row, host| {
            let micros_per_hour = [1_000, 4_000][row] * factor;
            host.price = Price { kind: PriceKind::OnDemand, micros_per_hour };
            let latency_us = [9_000, 1_000][row];
            host.latencies = vec![RegionLatency { region: name("eu"), latency_us }];
        });
        scene(fleet, &[])
    };
    let mut user = vm("a");
    user.hints.user_region = Some(name("eu"));
    let arrivals = arcs(&[user]);
    let place = |factor: u64, cost: u32, latency: u32| {
        let wishes = [(GoalKind::Cost, cost), (GoalKind::Latency, latency)];
        let (fleet, objective) = asked(&made(factor), &arrivals, &wishes, &Setting::default());
        let hosts = best(&fleet.problem);
        let model = Model::compile(&fleet.problem).unwrap();
        let worths = State::new(&model, &hosts).worths();
        assert!(objective.rows(GoalKind::Cost).iter().all(|&row| row < worths.len()));
        assert!(objective.rows(GoalKind::Energy).is_empty());
        hosts[0]
    };
    for factor in [1, 1_000, 1_000_000] {
        assert_eq!([place(factor, 100, 100), place(factor, 200, 100)], [1, 0], "x {factor}");
    }
    // Only proportions count.
    assert_eq!([place(1, 3, 3), place(1, 10_000, 10_000), place(1, 2, 1)], [1, 1, 0]);
}

#[test]
fn without_a_goal_the_others_are_never_worse() {
    let (snapshot, arrivals) = everything();
    let setting = Setting { rack_limit_watts: 100, keep_on: 1, ..Setting::default() };
    let weights: Vec<(GoalKind, u32)> = GoalKind::ALL.into_iter().zip(1..).collect();
    let (all, objective) = asked(&snapshot, &arrivals, &weights, &setting);
    let found = verified(&all.problem, &best(&all.problem));
    let mut gained = 0;
    for kind in GoalKind::ALL {
        let left_out = objective.rows(kind);
        assert!(!left_out.is_empty(), "{kind:?} says nothing");
        let rest = |worths: &[i64]| -> i64 {
            let kept = worths.iter().enumerate().filter(|(row, _)| !left_out.contains(row));
            kept.map(|(_, worth)| worth).sum()
        };
        let mut fewer = all.problem.clone();
        let mut row = 0;
        fewer.goals.retain(|_| {
            row += 1;
            !left_out.contains(&(row - 1))
        });
        let without = best(&fewer);
        assert!(rest(&verified(&all.problem, &without)) <= rest(&found), "{kind:?}");
        gained += i32::from(rest(&verified(&all.problem, &without)) < rest(&found));
    }
    assert!(gained > 0, "some goal is in the way of others");
}
