//! Whole fleets with parts of hosts: what is solved is bound, the verifier accepts it, and what is
//! called impossible is.

use cluster::{
    Amounts, Bindings, Dim, Host, HostIx, HostState, Name, NumaPolicy, Placed, Snapshot, Topology,
    Vm, VmKey,
};
use fixture::small::{self, Size};
use fixture::{Dice, hardware};
use ilp::Ilp;
use solver::assignment::{Ask, Budget, Cause, Origin, Search, Settled, from_fleet};
use solver::engines::{Csp, Engine, Greedy};
use solver::topology::{Devices, Layout, try_bind};
use solver::{Chosen, How, Problem, Scratch};
use std::sync::Arc;

const FLEETS: u64 = 400;

fn name(text: &str) -> Name {
    Name::new(text).expect("a valid name")
}

fn key(number: u64) -> VmKey {
    VmKey::in_default_tenant(name(&format!("vm-{number}")))
}

fn placed(vm: &Arc<Vm>, host: &Host, bindings: Option<Arc<Bindings>>) -> Placed {
    Placed {
        vm: Arc::clone(vm),
        host: host.id.clone(),
        committed: verify::demand_on(host, vm),
        // Nobody knows what it has that was running already when it was recorded.
        adopted: bindings.is_none() && vm.topology.is_some(),
        bindings,
        over_capacity: false,
        held: false,
    }
}

/// Two or three tiny hosts, some VMs on them with what the solver gave them, and VMs to come.
fn random(dice: &mut Dice) -> (Snapshot, Vec<Arc<Vm>>) {
    let kinds = [hardware::tiny(dice), hardware::tiny(dice)];
    let mut problem = Problem::new(Dim::BUILT_IN);
    let mut snapshot = Snapshot::default();
    for row in 0..dice.between(2, 3) as u32 {
        let mut host =
            Host::new(name(&format!("h{row}")), Amounts::from_slice(&[1_000_000; Dim::BUILT_IN]));
        host.hardware = Box::new(dice.pick(&kinds).clone());
        problem.put_host(HostIx(row), &host);
        snapshot.hosts.push(Arc::new(host));
    }
    // What an empty host of some kind can bind, so that it is the others that are in the way.
    let can = |(topology, demand): &(Topology, Amounts)| {
        kinds.iter().any(|kind| {
            let devices = Devices::new(Arc::new(Layout::new(kind, 1000).unwrap()));
            try_bind(&devices, topology, demand).is_some()
        })
    };
    let drawn = std::iter::repeat_with(|| hardware::tiny_request(dice)).filter(can);
    let shapes: Vec<(Topology, Amounts)> = drawn.take(3).collect();
    let mut arrivals = Vec::new();
    for number in 0..dice.between(2, 5) {
        let (topology, demand) = dice.pick(&shapes).clone();
        let vm =
            Arc::new(Vm { topology: Some(Box::new(topology)), ..Vm::new(key(number), demand) });
        let choice = solver::place(&mut problem, &mut Scratch::default(), &vm, &How::default());
        match choice.host.filter(|_| dice.chance(400)) {
            Some(Chosen { host, committed, bindings, .. }) => {
                problem.add_vm(host, &vm, &committed);
                let bound = bindings.expect("every VM here asks for parts");
                problem.take(host, &bound).expect("free parts");
                let host = Arc::clone(&snapshot.hosts[host.0 as usize]);
                // Of some nobody knows what they have.
                let known = dice.chance(900).then_some(bound);
                snapshot.placed.push(placed(&vm, &host, known));
            }
            None => arrivals.push(vm),
        }
    }
    (snapshot, arrivals)
}

fn solve(snapshot: &Snapshot, arrivals: &[Arc<Vm>], engine: &dyn Engine) -> Settled {
    let ask = Ask { snapshot, arrivals, stays: &|_| false, may_stay: false };
    let mut fleet = from_fleet(ask).unwrap();
    assert!(fleet.stricter.is_empty());
    let search = Search { engine, start: None, seed: 1, rounds: 40 };
    let settled = fleet.solve(search, &mut Budget::steps(1 << 40));
    if settled.outcome.is_infeasible() {
        // What was learned is part of the problem, and of its conflicts.
        let (causes, minimal) = fleet.conflict(&mut Budget::steps(1 << 40)).expect("a conflict");
        assert!(minimal && !causes.is_empty());
    }
    settled
}

/// The fleet as it would be.
fn after(snapshot: &Snapshot, arrivals: &[Arc<Vm>], settled: &Settled) -> Snapshot {
    let hosts = settled.outcome.assignment.as_ref().expect("an assignment");
    let vms = snapshot.placed.iter().map(|it| &it.vm).chain(arrivals);
    let rows = vms.zip(hosts).zip(&settled.bindings);
    let placed = rows
        .map(|((vm, &host), bound)| placed(vm, &snapshot.hosts[host as usize], bound.clone()))
        .collect();
    Snapshot { placed, ..snapshot.clone() }
}

/// Whether some order of binding does, on some assignment: VMs that do not move keep what they
/// have, and those that float go on floating at home.
fn any_binds(snapshot: &Snapshot, arrivals: &[Arc<Vm>]) -> bool {
    let home =
        |it: &Placed| snapshot.hosts.iter().position(|host| host.id == it.host).expect("a host");
    let standing = snapshot.placed.iter().map(|it| (&it.vm, Some(home(it)), it.bindings.clone()));
    let vms: Vec<_> = standing.chain(arrivals.iter().map(|vm| (vm, None, None))).collect();
    let hosts = snapshot.hosts.len();
    (0..hosts.pow(vms.len() as u32)).any(|number| {
        let at = |row: usize| number / hosts.pow(row as u32) % hosts;
        (0..hosts).all(|host| {
            let layout = Layout::new(&snapshot.hosts[host].hardware, 1000).unwrap();
            let mut devices = Devices::new(Arc::new(layout));
            let mut comes = Vec::new();
            for (row, (vm, home, bound)) in vms.iter().enumerate().filter(|it| at(it.0) == host) {
                match (*home == Some(host), bound) {
                    (true, Some(bound)) => devices.take(bound).expect("free parts"),
                    (true, None) => {}
                    (false, _) => comes.push((row, *vm)),
                }
            }
            binds_in_any_order(&devices, &comes)
        })
    })
}

fn binds_in_any_order(devices: &Devices, comes: &[(usize, &Arc<Vm>)]) -> bool {
    comes.is_empty()
        || comes.iter().any(|(row, vm)| {
            let mut left = devices.clone();
            let topology = vm.topology.as_deref().expect("every VM here asks for parts");
            let others: Vec<_> = comes.iter().copied().filter(|other| other.0 != *row).collect();
            try_bind(devices, topology, &vm.demand).is_some_and(|bound| {
                left.take(&bound).expect("free parts");
                binds_in_any_order(&left, &others)
            })
        })
}

#[test]
fn what_is_solved_is_bound_and_accepted_and_what_is_called_impossible_is() {
    let (mut solved, mut impossible, mut unknown) = (0, 0, 0);
    let (mut several, mut moved, mut uncertain) = (0, 0, 0);
    for seed in 0..FLEETS {
        let mut dice = Dice::new(seed);
        let (snapshot, arrivals) = random(&mut dice);
        let possible = any_binds(&snapshot, &arrivals);
        let engines: [&dyn Engine; 3] = [&Csp { first: false }, &Ilp::default(), &Greedy];
        for engine in engines {
            let settled = solve(&snapshot, &arrivals, engine);
            let what = format!("seed {seed}, {}", engine.name());
            uncertain += u32::from(!settled.certain);
            if settled.outcome.assignment.is_some() {
                let after = after(&snapshot, &arrivals, &settled);
                let report = verify::snapshot(&after);
                assert!(report.accepted(), "{what}: {report}");
                let floats = snapshot.placed.iter().filter(|it| it.bindings.is_none()).count();
                assert!(report.drift.len() <= floats, "{what}: {report}");
                solved += 1;
                several += u32::from(settled.rounds > 1);
                let stays = snapshot.placed.iter().zip(&after.placed);
                moved += stays.filter(|(before, after)| before.host != after.host).count();
                for (before, after) in snapshot.placed.iter().zip(&after.placed) {
                    assert!(before.host != after.host || before.bindings == after.bindings);
                }
            } else if settled.outcome.is_infeasible() {
                assert!(!possible, "{what}: called impossible");
                impossible += 1;
            } else if engine.name() != "greedy" {
                // An engine that sees everything gave up because of what is not proven.
                assert!(!settled.certain, "{what}: {settled:?}");
                unknown += u32::from(possible);
            }
        }
    }
    println!("{solved} solved, {several} in several rounds, {moved} moved");
    println!("{impossible} impossible, {unknown} missed, {uncertain} not certain");
    assert!(solved > 400 && impossible > 100 && several > 10 && moved > 5);
    assert!(unknown < 10, "{unknown} missed");
}

/// A small fleet with constraints of every type, whose hosts have parts that some VMs ask for.
fn with_constraints(dice: &mut Dice) -> (Snapshot, Vec<Arc<Vm>>) {
    let size = Size { hosts: dice.between(2, 4) as usize, vms: dice.between(2, 5) as usize };
    let mut snapshot = small::cluster(dice, size);
    snapshot.constraints = small::constraints(dice);
    for host in &mut snapshot.hosts {
        let host = Arc::make_mut(host);
        *host.hardware = hardware::tiny(dice);
        (host.state, host.taints) = (HostState::Available, Vec::new());
    }
    let arrivals = std::mem::take(&mut snapshot.placed).into_iter().map(|placed| {
        let mut vm = Vm::clone(&placed.vm);
        (vm.selectors, vm.datastores, vm.pool) = (Vec::new(), Vec::new(), None);
        if dice.chance(600) {
            let (topology, demand) = hardware::tiny_request(dice);
            (vm.topology, vm.demand) = (Some(Box::new(topology)), demand);
        }
        Arc::new(vm)
    });
    let arrivals = arrivals.collect();
    (snapshot, arrivals)
}

#[test]
fn parts_and_constraints_hold_together() {
    let (mut solved, mut networked, mut bound) = (0, 0, 0);
    for seed in 0..4_000 {
        let mut dice = Dice::stream(seed, 1);
        let (snapshot, arrivals) = with_constraints(&mut dice);
        let ask =
            Ask { snapshot: &snapshot, arrivals: &arrivals, stays: &|_| false, may_stay: false };
        let mut fleet = from_fleet(ask).unwrap();
        let search = Search { engine: &Csp { first: true }, start: None, seed, rounds: 40 };
        let settled = fleet.solve(search, &mut Budget::steps(1 << 40));
        if settled.outcome.assignment.is_none() {
            continue;
        }
        solved += 1;
        networked += u32::from(fleet.problem.rules.iter().any(|it| it.kind() == "network"));
        let after = after(&snapshot, &arrivals, &settled);
        for last in 0..after.placed.len() {
            let mut before = after.clone();
            let Placed { vm, host, bindings, .. } = before.placed.remove(last);
            bound += u32::from(bindings.is_some());
            assert_eq!(bindings.is_some(), vm.topology.is_some());
            let found = verify::violations(&before, &vm, &host);
            assert!(found.is_empty(), "seed {seed}: {found:?}");
        }
        let report = verify::snapshot(&after);
        assert!(report.accepted(), "seed {seed}: {report}");
    }
    println!("{solved} solved, {networked} with network constraints, {bound} VMs bound");
    assert!(solved > 300 && networked > 80 && bound > 300, "{solved} {networked} {bound}");
}

/// Hosts of two nodes with two cores each, and VMs that ask for cores on one node.
fn nodes_of_two(hosts: u32, vms: &[u64]) -> (Snapshot, Vec<Arc<Vm>>) {
    let node = cluster::NumaNode {
        cores: 2,
        threads_per_core: 1,
        memory_mib: 1_000,
        ..cluster::NumaNode::default()
    };
    let hardware = cluster::Hardware { numa_nodes: vec![node; 2], ..cluster::Hardware::default() };
    let host = |row: u32| {
        let mut host = Host::new(name(&format!("h{row}")), Amounts::cpu_memory(4_000, 2_000));
        host.hardware = Box::new(hardware.clone());
        host.state = HostState::Available;
        Arc::new(host)
    };
    let snapshot = Snapshot { hosts: (0..hosts).map(host).collect(), ..Snapshot::default() };
    let topology = Topology {
        cores: cluster::Cores::Exclusive(cluster::Siblings::Own),
        numa: NumaPolicy::Single,
        ..Topology::default()
    };
    let vm = |(row, &cores): (usize, &u64)| {
        let demand = Amounts::cpu_memory(cores * 1_000, 10);
        let topology = Some(Box::new(topology.clone()));
        Arc::new(Vm { topology, ..Vm::new(key(row as u64), demand) })
    };
    (snapshot, vms.iter().enumerate().map(vm).collect())
}

#[test]
fn vms_that_amounts_allow_but_nodes_do_not_go_apart() {
    // Four cores in two halves: one and two fit, and another two do not beside a one on each node.
    let (snapshot, arrivals) = nodes_of_two(2, &[1, 2, 1, 2]);
    let settled = solve(&snapshot, &arrivals, &Csp::default());
    let after = after(&snapshot, &arrivals, &settled);
    assert!(verify::snapshot(&after).accepted());
    assert!(settled.bindings.iter().all(Option::is_some));
}

#[test]
fn what_is_proven_about_parts_is_a_cause() {
    // A VM that keeps one core on each node leaves no node for two, though two cores are free.
    let (mut snapshot, arrivals) = nodes_of_two(1, &[2, 2]);
    let mut first = Vm::clone(&arrivals[0]);
    first.topology.as_mut().expect("parts").numa = NumaPolicy::Split(2);
    let first = Arc::new(first);
    let host = Arc::clone(&snapshot.hosts[0]);
    let devices = Devices::new(Arc::new(Layout::new(&host.hardware, 1000).unwrap()));
    let topology = first.topology.as_deref().expect("parts");
    let bound = try_bind(&devices, topology, &first.demand).expect("an empty host");
    snapshot.placed = vec![placed(&first, &host, Some(Arc::new(bound)))];
    let ask =
        Ask { snapshot: &snapshot, arrivals: &arrivals[1..], stays: &|_| false, may_stay: false };
    let mut fleet = from_fleet(ask).unwrap();
    let search = Search { engine: &Csp::default(), start: None, seed: 0, rounds: 5 };
    let settled = fleet.solve(search, &mut Budget::steps(10_000));
    assert!(settled.outcome.is_infeasible() && settled.certain, "{settled:?}");
    let (causes, minimal) = fleet.conflict(&mut Budget::steps(10_000)).expect("a conflict");
    let both = Origin::Parts(vec![first.key.clone(), arrivals[1].key.clone()]);
    assert_eq!(causes, [Cause::Rule(both)]);
    assert_eq!(causes[0].to_string(), "parts of one host for default/vm-0, default/vm-1");
    assert!(minimal);
    // In one round there is no time to learn from what the binder says.
    let mut fleet = from_fleet(ask).unwrap();
    let hasty = fleet.solve(Search { rounds: 1, ..search }, &mut Budget::steps(10_000));
    assert!(hasty.outcome.assignment.is_none() && !hasty.outcome.is_infeasible());
}
