//! Solver and verifier were written apart from the same text. Here they meet: 100,000 random
//! requests on random clusters with every kind of rule, and the verifier must accept each answer,
//! down to the count of hosts left out for each reason.

use cluster::{
    Alternative, Amounts, Decision, Dim, Dimensions, Foreign, Hardware, Host, HostIx, HostState,
    INSIDE_REASONS, Index, Name, Placed, Rejections, Snapshot, Strategy, Verdict, Vm,
};
use fixture::{Dice, hardware, small};
use policy::Weights;
use solver::{Choice, How, Problem, Scratch};
use std::sync::Arc;
use verify::Ledger;

const REQUESTS: u64 = 100_000;
const REQUESTS_A_CLUSTER: u64 = 20;
const THREADS: u64 = 2;
const PART_CLUSTERS: u64 = 600;

#[test]
fn the_verifier_accepts_every_answer_of_the_solver() {
    let clusters = REQUESTS / REQUESTS_A_CLUSTER;
    let workers: Vec<_> = (0..THREADS)
        .map(|worker| {
            std::thread::spawn(move || {
                let seeds = (0..clusters).filter(|seed| seed % THREADS == worker);
                seeds.map(check_cluster).fold([0; 2], |sum, placed| {
                    [sum[0] + placed, sum[1] + REQUESTS_A_CLUSTER - placed]
                })
            })
        })
        .collect();
    let mut sums = [0; 2];
    for worker in workers {
        let [placed, rejected] = worker.join().expect("every answer is accepted");
        sums = [sums[0] + placed, sums[1] + rejected];
    }
    println!("{} placed and {} rejected, all accepted", sums[0], sums[1]);
    assert_eq!(sums[0] + sums[1], REQUESTS);
    assert!(sums.iter().all(|&count| count > REQUESTS / 10), "one-sided: {sums:?}");
}

#[test]
fn the_verifier_accepts_every_answer_about_parts_of_hosts() {
    let (mut placed, mut by_reason) = (0, Rejections::default());
    for seed in 0..PART_CLUSTERS {
        let mut dice = Dice::new(seed);
        let size = small::Size { hosts: dice.between(1, 6) as usize, vms: 0 };
        let mut snapshot = small::cluster(&mut dice, size);
        snapshot.hosts.iter_mut().for_each(|host| list_parts(&mut dice, Arc::make_mut(host)));
        let mut scene = Scene::new(snapshot);
        for number in 0..REQUESTS_A_CLUSTER {
            let vm = asking_for_parts(&mut dice, &scene.snapshot.dimensions, number);
            let how = How { weights: weights(&mut dice), ..How::default() };
            let choice = solver::place(&mut scene.problem, &mut scene.scratch, &vm, &how);
            choice.rejections.0.iter().for_each(|(reason, hosts)| by_reason.add(*reason, *hosts));
            placed += u64::from(scene.ask(vm, &how, seed));
            if dice.chance(300) {
                scene.remove_one(&mut dice);
            }
        }
        let report = verify::snapshot(&scene.snapshot);
        assert!(report.accepted(), "seed {seed}: {report}");
    }
    assert!(placed > PART_CLUSTERS * REQUESTS_A_CLUSTER / 5, "{placed} placed");
    for reason in INSIDE_REASONS {
        let found = by_reason.0.iter().find(|(other, _)| *other == reason);
        assert!(found.is_some_and(|(_, hosts)| *hosts > 50), "{reason:?} is too rare: {found:?}");
    }
}

/// Hardware as it is sold, tiny, or not listed; enough of every dimension.
fn list_parts(dice: &mut Dice, host: &mut Host) {
    let mut hardware = match dice.below(10) {
        0 => Hardware::default(),
        1..=5 => hardware::tiny(dice),
        _ => hardware::server(dice),
    };
    if dice.chance(200) {
        hardware.thermal_limit_watts = 300;
    }
    *host.hardware = hardware;
    host.capacity = Amounts::from_slice(&[1_000_000; Dim::BUILT_IN]);
    host.state = HostState::Available;
    host.taints.clear();
    host.reserved = Amounts::zero();
    host.foreign = Foreign::default();
}

fn asking_for_parts(dice: &mut Dice, dimensions: &Dimensions, number: u64) -> Vm {
    let mut vm = small::vm(dice, dimensions, &format!("new-{number}"));
    let (topology, demand) = match dice.chance(500) {
        true => hardware::tiny_request(dice),
        false => hardware::request(dice),
    };
    (vm.demand, vm.topology) = (demand, Some(Box::new(topology)));
    // The rules are another test's; a few are left to be met on the way.
    vm.affinities.clear();
    vm.spreads.clear();
    vm.selectors.clear();
    vm.datastores.clear();
    vm
}

/// Puts requests to both sides, each on the result of those before. Returns how many were placed.
fn check_cluster(seed: u64) -> u64 {
    let mut dice = Dice::new(seed);
    let size = small::Size::random(&mut dice);
    let mut snapshot = small::cluster(&mut dice, size);
    if dice.chance(600) {
        snapshot.constraints = small::constraints(&mut dice);
    }
    let mut scene = Scene::new(snapshot);
    let mut placed = 0;
    for number in 0..REQUESTS_A_CLUSTER {
        let vm = small::vm(&mut dice, &scene.snapshot.dimensions, &format!("new-{number}"));
        let how = How {
            weights: weights(&mut dice),
            strategy: *dice.pick(&Strategy::ALL),
            round_robin_after: dice.chance(500).then(|| HostIx::new(dice.row(8))),
        };
        placed += u64::from(scene.ask(vm, &how, seed));
    }
    placed
}

fn weights(dice: &mut Dice) -> Weights {
    let weights = std::array::from_fn(|_| dice.below(50) as u32 + 1);
    Weights::new(weights).expect("positive and small")
}

struct Scene {
    snapshot: Snapshot,
    problem: Problem,
    ledger: Ledger,
    scratch: Scratch,
}

impl Scene {
    fn new(snapshot: Snapshot) -> Self {
        let dimensions = snapshot.dimensions.len();
        let mut problem = Problem::new(dimensions);
        let mut ledger = Ledger::new(dimensions);
        for (row, host) in snapshot.hosts.iter().enumerate() {
            problem.put_host(HostIx::new(row), host);
            ledger.put_host(HostIx::new(row), host);
        }
        let mut scene = Self { snapshot, problem, ledger, scratch: Scratch::default() };
        for placed in scene.snapshot.placed.clone() {
            scene.add(&placed);
        }
        scene.hand_out_constraints();
        scene
    }

    fn add(&mut self, placed: &Placed) {
        let row = self.snapshot.hosts.iter().position(|host| host.id == placed.host);
        let ix = HostIx::new(row.expect("a known host"));
        self.problem.add_vm(ix, &placed.vm, &placed.committed);
        self.ledger.add_vm(ix, &placed.vm, &placed.committed).expect("a new VM");
        if let Some(bindings) = &placed.bindings {
            self.problem.take(ix, bindings).expect("parts that are free");
            self.ledger.bind(ix, &placed.vm.key, bindings).expect("parts that are free");
        }
    }

    fn hand_out_constraints(&mut self) {
        let Self { snapshot, problem, ledger, .. } = self;
        let row = |id: &Name| snapshot.hosts.iter().position(|host| host.id == *id);
        let vms = || {
            let placed = snapshot.placed.iter();
            placed.map(|it| (HostIx::new(row(&it.host).expect("a known host")), &*it.vm))
        };
        problem.set_constraints(&snapshot.constraints, vms());
        ledger.set_constraints(&snapshot.constraints, vms());
    }

    fn ask(&mut self, vm: Vm, how: &How, seed: u64) -> bool {
        let choice = solver::place(&mut self.problem, &mut self.scratch, &vm, how);
        let decision = self.decision(&vm, how, &choice);
        let report = verify::placement(&self.snapshot, &vm, &decision);
        assert!(report.accepted(), "seed {seed}: {report}\n{vm:?}\n{decision:?}");
        let Some(chosen) = choice.host else { return false };
        let host = self.snapshot.hosts[chosen.host.row()].id.clone();
        let found = self.ledger.check(&vm, chosen.host, &host, &chosen.committed);
        assert!(found.is_empty(), "seed {seed}: the ledger says {found:?}");
        let on = self.snapshot.hosts[chosen.host.row()].as_ref();
        let parts = chosen.bindings.as_deref();
        let found = self.ledger.check_bindings(&vm, chosen.host, on, &chosen.committed, parts);
        assert!(found.is_empty(), "seed {seed}: the ledger says {found:?}");
        let asked = solver::feasible(&mut self.problem, &vm, chosen.host);
        assert_eq!(asked.as_ref(), Ok(&chosen.committed), "seed {seed}: one feasibility");
        let placed = Placed {
            vm: Arc::new(vm),
            host,
            committed: chosen.committed,
            bindings: chosen.bindings,
            over_capacity: false,
            adopted: false,
            held: false,
        };
        self.add(&placed);
        self.snapshot.placed.push(placed);
        true
    }

    /// Takes a VM away, with exactly what it has.
    fn remove_one(&mut self, dice: &mut Dice) {
        if self.snapshot.placed.is_empty() {
            return;
        }
        let gone = self.snapshot.placed.swap_remove(dice.row(self.snapshot.placed.len()));
        let row = self.snapshot.hosts.iter().position(|host| host.id == gone.host);
        let ix = HostIx::new(row.expect("a known host"));
        if let Some(bindings) = &gone.bindings {
            self.problem.give_back(ix, bindings).expect("it was taken");
            self.ledger.unbind(ix, &gone.vm.key, bindings).expect("it was bound");
        }
        self.problem.remove_vm(ix, &gone.vm, &gone.committed);
        self.ledger.remove_vm(ix, &gone.vm, &gone.committed).expect("it was added");
    }

    fn decision(&self, vm: &Vm, how: &How, choice: &Choice) -> Decision {
        let host = |ix: HostIx| self.snapshot.hosts[ix.row()].as_ref();
        let verdict = match &choice.host {
            Some(chosen) => Verdict::Placed {
                host: host(chosen.host).id.clone(),
                incarnation: host(chosen.host).incarnation,
                score: chosen.score,
                breakdown: chosen.breakdown,
                bindings: chosen.bindings.clone(),
            },
            None => Verdict::Rejected,
        };
        let alternatives = choice.alternatives.iter();
        let alternatives = alternatives
            .map(|(ix, score)| Alternative { host: host(*ix).id.clone(), score: *score });
        Decision {
            vm: vm.key.clone(),
            verdict,
            strategy: how.strategy,
            alternatives: alternatives.collect(),
            rejections: choice.rejections.clone(),
            policy_rejections: Vec::new(),
            hosts_considered: choice.considered,
            based_on: self.snapshot.revision,
            policy_revision: 0,
            demand_revision: 0,
        }
    }
}
