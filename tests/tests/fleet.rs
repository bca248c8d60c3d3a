//! Fleets as assignment problems, against the verifier's reading of the fleet itself.

use cluster::assignment::Problem;
use cluster::{
    Amounts, Constraint, ConstraintRule, CpuUnit, Host, HostIx, HostState, Level, Limit, Link,
    Links, Migratability, Name, Network, Placed, Snapshot, Vm, VmKey, VmSet,
};
use fixture::Dice;
use fixture::small::{self, Size};
use solver::assignment::{Ask, Budget, Cause, Fleet, Model, Origin, Stricter, from_fleet};
use solver::engines::{Csp, Engine, Task};
use std::sync::Arc;

fn name(text: &str) -> Name {
    Name::new(text).expect("a valid name")
}

fn ask<'a>(snapshot: &'a Snapshot, arrivals: &'a [Arc<Vm>]) -> Ask<'a> {
    Ask { snapshot, arrivals, stays: &|_| false, may_stay: false }
}

fn placed(vm: &Arc<Vm>, host: &Host) -> Placed {
    Placed {
        vm: Arc::clone(vm),
        host: host.id.clone(),
        committed: verify::demand_on(host, vm),
        bindings: None,
        over_capacity: false,
        adopted: false,
        held: false,
    }
}

/// Whether every VM would be taken by its host if it came last.
fn is_right(snapshot: &Snapshot, vms: &[Arc<Vm>], hosts: &[HostIx]) -> bool {
    let host = |row: usize| &snapshot.hosts[hosts[row].0 as usize];
    (0..vms.len()).all(|last| {
        let others = (0..vms.len()).filter(|&row| row != last);
        let others = others.map(|row| placed(&vms[row], host(row))).collect();
        let before = Snapshot { placed: others, ..snapshot.clone() };
        verify::violations(&before, &vms[last], &host(last).id).is_empty()
    })
}

fn every_assignment(hosts: usize, vms: usize) -> impl Iterator<Item = Vec<HostIx>> {
    (0..(hosts as u64).pow(vms as u32)).map(move |number| {
        let digit = |row: u32| (number / (hosts as u64).pow(row) % hosts as u64) as u32;
        (0..vms as u32).map(|row| HostIx(digit(row))).collect()
    })
}

/// A small fleet with constraints of every type, and VMs that have no host yet.
fn random(dice: &mut Dice) -> (Snapshot, Vec<Arc<Vm>>) {
    let size = Size { hosts: dice.between(2, 4) as usize, vms: dice.between(1, 4) as usize };
    let mut snapshot = small::cluster(dice, size);
    snapshot.constraints = small::constraints(dice);
    let mut hosts: Vec<Host> = snapshot.hosts.iter().map(|host| Host::clone(host)).collect();
    for host in &mut hosts {
        // Mostly what is about one host alone stays out of the way of what is about many.
        if dice.chance(800) {
            (host.state, host.taints) = (HostState::Available, Vec::new());
        }
        host.foreign.vms = u32::from(dice.chance(150));
    }
    let mut vms: Vec<Vm> = snapshot.placed.iter().map(|placed| Vm::clone(&placed.vm)).collect();
    for vm in &mut vms {
        if dice.chance(700) {
            (vm.selectors, vm.datastores, vm.pool) = (Vec::new(), Vec::new(), None);
            vm.excluded_hosts.clear();
        }
        if dice.chance(900) {
            vm.cpu_unit = CpuUnit::Raw;
        }
    }
    snapshot.placed.clear();
    snapshot.hosts = hosts.into_iter().map(Arc::new).collect();
    (snapshot, vms.into_iter().map(Arc::new).collect())
}

#[test]
fn a_fleets_problem_accepts_what_the_verifier_accepts() {
    let mut dice = Dice::new(11);
    let (mut right, mut wrong, mut exact, mut solvable) = (0, 0, 0, 0);
    let mut kinds = std::collections::BTreeMap::new();
    for _ in 0..3_000 {
        let (snapshot, vms) = random(&mut dice);
        let fleet = from_fleet(ask(&snapshot, &vms)).unwrap();
        let is_exact = fleet.stricter.is_empty();
        exact += u32::from(is_exact);
        let mut any = false;
        for hosts in every_assignment(snapshot.hosts.len(), vms.len()) {
            let accepted = verify::assignment(&fleet.problem, &hosts).is_ok();
            let expected = is_right(&snapshot, &vms, &hosts);
            assert!(!accepted || expected, "{hosts:?} {snapshot:?} {vms:?} {fleet:?}");
            assert!(
                !is_exact || accepted == expected,
                "{hosts:?} {:?} {snapshot:?} {vms:?} {fleet:?}",
                verify::assignment(&fleet.problem, &hosts)
            );
            any |= accepted;
            right += u32::from(expected);
            wrong += u32::from(!expected);
        }
        solvable += u32::from(any);
        for rule in fleet.problem.rules.iter().filter(|_| any) {
            *kinds.entry(rule.kind()).or_insert(0) += 1;
        }
        let model = Model::compile(&fleet.problem).unwrap();
        let task = Task::new(&fleet.problem, &model, 0);
        let found = Csp { first: true }.solve(task, &mut Budget::steps(1_000_000));
        assert_eq!(found.assignment.is_some(), any, "{fleet:?}");
        if !any {
            check_conflict(&fleet);
        }
    }
    assert!(right > 3_000 && wrong > 3_000, "{right} right, {wrong} wrong");
    assert!(exact > 1_500 && solvable > 500, "{exact} exact, {solvable} solvable");
    let met: Vec<&&str> = kinds.iter().filter(|(_, count)| **count > 20).map(|it| it.0).collect();
    let expected =
        ["away", "beside", "dependency", "fence", "limit", "network", "skew", "spare", "spread"];
    assert_eq!(met, expected.iter().collect::<Vec<_>>(), "{kinds:?}");
}

/// The causes cannot all be met; without any one of them the others can.
fn check_conflict(fleet: &Fleet) {
    let (causes, minimal) = fleet.conflict(&mut Budget::steps(1_000_000)).expect("a conflict");
    assert!(minimal);
    assert!(!can_be_met(fleet, &causes), "{causes:?} {fleet:?}");
    for left_out in &causes {
        let others: Vec<Cause> = causes.iter().filter(|it| *it != left_out).cloned().collect();
        assert!(can_be_met(fleet, &others), "{left_out:?} is not needed: {causes:?} {fleet:?}");
    }
}

fn can_be_met(fleet: &Fleet, causes: &[Cause]) -> bool {
    let mut problem: Problem = fleet.problem.clone();
    let mut origins = fleet.origins.iter();
    problem.rules.retain(|_| {
        let origin = origins.next().expect("one for each rule");
        causes.contains(&Cause::Rule(origin.clone()))
    });
    for (row, resource) in fleet.problem.resources.iter().enumerate() {
        if !causes.contains(&Cause::Capacity(resource.name.clone())) {
            problem.shapes.iter_mut().for_each(|shape| shape[row] = 0);
        }
    }
    for (vm, key) in problem.vms.iter_mut().zip(&fleet.vms) {
        if !causes.contains(&Cause::Hosts(key.clone())) {
            vm.allowed = None;
        }
    }
    every_assignment(problem.hosts.len(), problem.vms.len())
        .any(|hosts| verify::assignment(&problem, &hosts).is_ok())
}

/// Hosts of one core each in two zones, and a VM of one core for each of `on`.
fn fleet_of(hosts: usize, on: &[usize]) -> Snapshot {
    let host = |row: usize| {
        let mut host = Host::new(name(&format!("h{row}")), Amounts::cpu_memory(1_000, 1_024));
        host.location.zone = Some(name(["a", "b"][row % 2]));
        Arc::new(host)
    };
    let mut snapshot = Snapshot { hosts: (0..hosts).map(host).collect(), ..Snapshot::default() };
    for (row, &host) in on.iter().enumerate() {
        let vm = placed(&vm(&format!("v{row}")), &snapshot.hosts[host]);
        snapshot.placed.push(vm);
    }
    snapshot
}

fn vm(id: &str) -> Arc<Vm> {
    let key = VmKey::in_default_tenant(name(id));
    Arc::new(Vm::new(key, Amounts::cpu_memory(1_000, 512)))
}

fn install(snapshot: &mut Snapshot, id: &str, rule: ConstraintRule) {
    snapshot.constraints.push(Arc::new(Constraint { name: name(id), rule }));
}

fn solved(fleet: &Fleet) -> Option<Vec<u32>> {
    let model = Model::compile(&fleet.problem).unwrap();
    let task = Task::new(&fleet.problem, &model, 0);
    Csp { first: true }.solve(task, &mut Budget::steps(10_000)).assignment
}

#[test]
fn a_conflict_names_the_constraint() {
    let mut snapshot = fleet_of(4, &[0, 1, 2]);
    let limit = Limit { vms: VmSet::default(), level: Level::Zone, max: 1 };
    install(&mut snapshot, "one-a-zone", ConstraintRule::Limit(limit));
    let fleet = from_fleet(ask(&snapshot, &[])).unwrap();
    let (causes, minimal) = fleet.conflict(&mut Budget::steps(10_000)).expect("a conflict");
    assert_eq!(causes, [Cause::Rule(Origin::Constraint(name("one-a-zone")))]);
    assert_eq!(causes[0].to_string(), "constraint one-a-zone");
    assert!(minimal);
}

#[test]
fn a_vm_stays_where_it_must_and_where_it_may() {
    let mut snapshot = fleet_of(3, &[0, 1]);
    Arc::make_mut(&mut snapshot.hosts[0]).state = HostState::Cordoned;
    // Its own rules have it leave the host that was cordoned, unless it may stay.
    let plain = from_fleet(ask(&snapshot, &[])).unwrap();
    assert_eq!(plain.problem.vms[0].allowed, Some([HostIx(1), HostIx(2)].into()));
    let may_stay = from_fleet(Ask { may_stay: true, ..ask(&snapshot, &[]) }).unwrap();
    assert_eq!(may_stay.problem.vms[0].allowed, None);
    assert_eq!(may_stay.problem.vms[1].allowed, Some([HostIx(1), HostIx(2)].into()));
    let stays = |placed: &Placed| placed.host == name("h0");
    let kept = from_fleet(Ask { stays: &stays, ..ask(&snapshot, &[]) }).unwrap();
    assert_eq!(kept.problem.vms[0].allowed, Some([HostIx(0)].into()));
    // One that is pinned stays without being told, and what it takes beyond its host is no fault.
    let first = Arc::make_mut(&mut snapshot.placed[0].vm);
    first.migratability = Migratability::Pinned;
    first.demand = Amounts::cpu_memory(5_000, 512);
    let arrivals = [vm("new")];
    let pinned = from_fleet(ask(&snapshot, &arrivals)).unwrap();
    assert_eq!(pinned.problem.vms[0].allowed, Some([HostIx(0)].into()));
    let hosts = solved(&pinned).expect("an assignment");
    assert_eq!(hosts[0], 0);
    assert!(hosts[1] != 0 && hosts[2] != 0 && hosts[1] != hosts[2], "{hosts:?}");
}

#[test]
fn pairs_that_cannot_be_near_each_other_are_a_conflict_by_name() {
    let mut snapshot = fleet_of(3, &[]);
    let link = Link { a: name("a"), b: name("b"), latency_us: 5, bandwidth_mbps: 100 };
    let links = Links { level: Level::Zone, links: vec![link] };
    install(&mut snapshot, "fabric", ConstraintRule::Links(links));
    let network = |max_latency_us, bandwidth_mbps| {
        let (vms, to) = (VmSet::default(), VmSet::default());
        let over = name("fabric");
        ConstraintRule::Network(Network { vms, to, over, max_latency_us, bandwidth_mbps })
    };
    // Three hosts of one VM each: two in zone a, one in zone b.
    let arrivals = [vm("v0"), vm("v1"), vm("v2")];
    let conflict = |rule: ConstraintRule| {
        let mut snapshot = snapshot.clone();
        install(&mut snapshot, "near", rule);
        let fleet = from_fleet(ask(&snapshot, &arrivals)).unwrap();
        assert_eq!(solved(&fleet).is_none(), fleet.conflict(&mut Budget::steps(10_000)).is_some());
        fleet.conflict(&mut Budget::steps(10_000)).map(|(causes, minimal)| {
            assert!(minimal);
            causes
        })
    };
    assert_eq!(conflict(network(Some(5), 50)), None);
    let causes = conflict(network(Some(4), 0)).expect("a conflict");
    assert!(causes.contains(&Cause::Rule(Origin::Constraint(name("near")))), "{causes:?}");
    // Two pairs go over the link.
    let causes = conflict(network(None, 51)).expect("a conflict");
    assert!(causes.contains(&Cause::Rule(Origin::Constraint(name("near")))), "{causes:?}");
}

#[test]
fn cpu_counts_as_on_the_slowest_host_and_who_runs_goes_to_none_that_is_slower() {
    let mut snapshot = fleet_of(2, &[0]);
    Arc::make_mut(&mut snapshot.hosts[0]).benchmark_permille = 2_000;
    Arc::make_mut(&mut snapshot.placed[0].vm).cpu_unit = CpuUnit::Normalised;
    let ask = |arrivals| Ask { may_stay: true, ..ask(&snapshot, arrivals) };
    let fleet = from_fleet(ask(&[])).unwrap();
    assert_eq!(fleet.problem.vms[0].allowed, Some([HostIx(0)].into()));
    assert_eq!(fleet.problem.shapes[0][0], 500);
    let mut new = vm("new");
    Arc::make_mut(&mut new).cpu_unit = CpuUnit::Normalised;
    let new = [new];
    let fleet = from_fleet(ask(&new)).unwrap();
    assert_eq!(fleet.stricter, [Stricter::SlowestHost(fleet.vms[1].clone())]);
    assert_eq!(fleet.problem.demand(cluster::VmIx(1))[0], 1_000);
}
