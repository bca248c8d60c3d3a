//! Moves in waves: whatever has been done of a wave and whatever has not, every rule holds, by the
//! word of the verifier, which knows nothing of waves.

use cluster::{
    Affinity, AffinityKind, Amounts, HostIx, Index, Level, Name, Placed, Reason, Snapshot,
    Strategy, Strength, Subject, Vm, VmKey,
};
use fixture::{Dice, small};
use planner::{Caps, Move, Obstruction, Ordered, Step, order};
use solver::{How, Problem, Scratch};
use std::collections::BTreeSet;
use std::sync::Arc;

const CLUSTERS: u64 = 1_500;
/// Waves of up to this many steps are looked at in every combination of done and not done.
const EVERY_COMBINATION: usize = 6;
const SOME_COMBINATIONS: usize = 64;

#[test]
fn whatever_is_done_of_a_wave_every_rule_holds() {
    let (mut steps, mut waves, mut blocked, mut staged) = (0, 0, 0, 0);
    for seed in 0..CLUSTERS {
        let mut dice = Dice::new(seed);
        let mut scene = match seed % 3 {
            0 => Scene::settled(&mut dice),
            _ => Scene::crowded(&mut dice),
        };
        let moves = scene.some_moves(&mut dice);
        let caps = Caps { in_all: 8, per_host: 1 + dice.row(3), ..Caps::default() };
        let ordered = scene.order(&moves, &caps);
        assert_eq!(scene.order(&moves, &caps), ordered, "seed {seed}: the tables are as they were");
        blocked += ordered.blocked.len();
        staged += ordered.waves.iter().flatten().filter(|step| step.staging).count();
        waves += ordered.waves.len();
        steps += ordered.waves.iter().map(Vec::len).sum::<usize>();
        scene.check(&ordered, &moves, &caps, &mut dice, seed);
    }
    println!("{steps} steps in {waves} waves, {staged} of them aside; {blocked} moves blocked");
    assert!(steps > 3_000 && blocked > 300 && staged > 20 && waves * 12 < steps * 10);
}

#[test]
fn two_vms_that_fill_their_hosts_change_places_by_way_of_a_third() {
    let host = |id: &str| cluster::Host::new(name(id), Amounts::cpu_memory(1_000, 1_000));
    let vm = |id: &str| Vm::new(VmKey::in_default_tenant(name(id)), Amounts::cpu_memory(800, 800));
    let mut scene = Scene::empty(vec![host("a"), host("b"), host("c")]);
    scene.put(vm("one"), 0);
    scene.put(vm("two"), 1);
    let swap = [Move { vm: 0, to: HostIx(1) }, Move { vm: 1, to: HostIx(0) }];
    let ordered = scene.order(&swap, &Caps::default());
    let way: Vec<(usize, u32, u32, bool)> = ordered.waves.iter().flatten().map(way_of).collect();
    assert_eq!(way, [(0, 0, 2, true), (1, 1, 0, false), (0, 2, 1, false)]);
    assert_eq!((ordered.waves.len(), ordered.blocked.len()), (3, 0));

    let mut full = Scene::empty(vec![host("a"), host("b")]);
    full.put(vm("one"), 0);
    full.put(vm("two"), 1);
    let ordered = full.order(&swap, &Caps::default());
    assert!(ordered.waves.is_empty(), "there is no third host");
    assert_eq!(ordered.blocked.len(), 2);
    let by_room = |why: &Obstruction| matches!(why, Obstruction::Rule(Reason::Capacity(_)));
    assert!(ordered.blocked.iter().all(|blocked| by_room(&blocked.why)));
}

#[test]
fn caps_bound_every_wave() {
    let host = |row: u32| {
        let mut host =
            cluster::Host::new(name(&format!("h{row}")), Amounts::cpu_memory(9_000, 9_000));
        host.location.rack = Some(name(&format!("r{}", row / 2)));
        host
    };
    let mut scene = Scene::empty((0..8).map(host).collect());
    for row in 0..8 {
        let key = VmKey::in_default_tenant(name(&format!("v{row}")));
        scene.put(Vm::new(key, Amounts::cpu_memory(100, 100)), row % 4);
    }
    let moves: Vec<Move> = (0..8).map(|vm| Move { vm, to: HostIx(4 + vm as u32 % 4) }).collect();
    let waves = |caps: Caps| scene.clone().order(&moves, &caps).waves.len();
    let wide = Caps { in_all: 64, per_host: 8, per_domain: Vec::new() };
    assert_eq!(waves(wide.clone()), 1);
    assert_eq!(waves(Caps { in_all: 3, ..wide.clone() }), 3);
    assert_eq!(waves(Caps { per_host: 1, ..wide.clone() }), 2);
    let per_rack = vec![(Level::Rack, 1)];
    assert_eq!(waves(Caps { per_domain: per_rack, ..wide }), 4, "two racks, eight moves");
}

fn way_of(step: &Step) -> (usize, u32, u32, bool) {
    (step.vm, step.from.0, step.to.0, step.staging)
}

fn name(text: &str) -> Name {
    Name::new(text).expect("a valid name")
}

#[derive(Clone)]
struct Scene {
    snapshot: Snapshot,
}

impl Scene {
    fn empty(hosts: Vec<cluster::Host>) -> Self {
        let mut dice = Dice::new(0);
        let mut snapshot = small::cluster(&mut dice, small::Size { hosts: 0, vms: 0 });
        snapshot.hosts = hosts.into_iter().map(Arc::new).collect();
        Self { snapshot }
    }

    /// A cluster whose VMs were all placed by the solver, so that nearly every rule holds.
    fn settled(dice: &mut Dice) -> Self {
        let size = small::Size { hosts: dice.between(2, 9) as usize, vms: 0 };
        let mut snapshot = small::cluster(dice, size);
        if dice.chance(600) {
            snapshot.constraints = small::constraints(dice);
        }
        let mut scene = Self { snapshot };
        let mut problem = scene.problem();
        for number in 0..dice.between(2, 24) {
            let vm = small::vm(dice, &scene.snapshot.dimensions, &format!("v{number}"));
            let choice = solver::place(&mut problem, &mut Scratch::default(), &vm, &How::default());
            let Some(chosen) = choice.host else { continue };
            problem.add_vm(chosen.host, &vm, &chosen.committed);
            scene.put(vm, chosen.host.row());
        }
        scene
    }

    /// Few and nearly full hosts in two racks; some VMs keep away from their like.
    fn crowded(dice: &mut Dice) -> Self {
        let hosts = (0..dice.between(3, 7)).map(|row| {
            let room = Amounts::cpu_memory(1_700, 1_700);
            let mut host = cluster::Host::new(name(&format!("h{row}")), room);
            host.location.rack = Some(name(&format!("r{}", row % 2)));
            host
        });
        let mut scene = Self::empty(hosts.collect());
        let mut problem = scene.problem();
        for number in 0..5 * scene.snapshot.hosts.len() {
            let key = VmKey::in_default_tenant(name(&format!("v{number}")));
            let size = dice.between(100, 450);
            let mut vm = Vm::new(key, Amounts::cpu_memory(size, dice.between(100, 450)));
            if dice.chance(400) {
                let group = name(&format!("g{}", dice.below(3)));
                vm.groups.push(group.clone());
                vm.affinities.push(Affinity {
                    kind: AffinityKind::Apart,
                    subject: Subject::Group(group),
                    level: Level::Host,
                    strength: Strength::Required,
                });
            }
            let how = How { strategy: Strategy::Spread, ..How::default() };
            let choice = solver::place(&mut problem, &mut Scratch::default(), &vm, &how);
            let Some(chosen) = choice.host else { continue };
            problem.add_vm(chosen.host, &vm, &chosen.committed);
            scene.put(vm, chosen.host.row());
        }
        scene
    }

    fn put(&mut self, vm: Vm, row: usize) {
        let host = &self.snapshot.hosts[row];
        let committed = engine::demand_on(&vm, host);
        self.snapshot.placed.push(Placed {
            vm: Arc::new(vm),
            host: host.id.clone(),
            committed,
            bindings: None,
            over_capacity: false,
            adopted: false,
            held: false,
        });
    }

    fn row(&self, host: &Name) -> HostIx {
        let row = self.snapshot.hosts.iter().position(|other| other.id == *host);
        HostIx::new(row.expect("a known host"))
    }

    fn problem(&self) -> Problem {
        let mut problem = Problem::new(self.snapshot.dimensions.len());
        for (row, host) in self.snapshot.hosts.iter().enumerate() {
            problem.put_host(HostIx::new(row), host);
        }
        for placed in &self.snapshot.placed {
            problem.add_vm(self.row(&placed.host), &placed.vm, &placed.committed);
        }
        let vms = self.snapshot.placed.iter().map(|it| (self.row(&it.host), &*it.vm));
        problem.set_constraints(&self.snapshot.constraints, vms);
        problem
    }

    /// Some VMs go anywhere, others to where another one is that goes where they were.
    fn some_moves(&self, dice: &mut Dice) -> Vec<Move> {
        let (hosts, vms) = (self.snapshot.hosts.len(), self.snapshot.placed.len());
        let mut left: Vec<usize> = (0..vms).filter(|_| dice.chance(500)).collect();
        let mut moves = Vec::new();
        while let Some(vm) = left.pop() {
            match left.pop() {
                Some(other) if dice.chance(500) => {
                    moves.push(Move { vm, to: self.row(&self.snapshot.placed[other].host) });
                    moves.push(Move { vm: other, to: self.row(&self.snapshot.placed[vm].host) });
                }
                other => {
                    moves.push(Move { vm, to: HostIx::new(dice.row(hosts)) });
                    left.extend(other);
                }
            }
        }
        moves
    }

    fn order(&mut self, moves: &[Move], caps: &Caps) -> Ordered {
        let mut problem = self.problem();
        let fleet: Vec<planner::Placed<'_>> = self
            .snapshot
            .placed
            .iter()
            .map(|it| planner::Placed {
                vm: &it.vm,
                host: self.row(&it.host),
                committed: it.committed.clone(),
                bindings: it.bindings.clone(),
            })
            .collect();
        let constraints: Vec<&cluster::Constraint> =
            self.snapshot.constraints.iter().map(Arc::as_ref).collect();
        let host = |ix: HostIx| self.snapshot.hosts.get(ix.row()).map(Arc::as_ref);
        let ordered = order(&mut problem, &host, &fleet, &constraints, moves, caps);
        assert_eq!(
            order(&mut problem, &host, &fleet, &constraints, moves, caps),
            ordered,
            "the tables are as they were"
        );
        ordered
    }

    /// Plays the waves, in every combination of done and not done on the way.
    fn check(&self, ordered: &Ordered, moves: &[Move], caps: &Caps, dice: &mut Dice, seed: u64) {
        let known = broken(&self.snapshot);
        let mut snapshot = self.snapshot.clone();
        for wave in &ordered.waves {
            assert!(!wave.is_empty() && wave.len() <= caps.in_all);
            let combinations = 1u64 << wave.len();
            let some: Vec<u64> = if wave.len() <= EVERY_COMBINATION {
                (0..combinations).collect()
            } else {
                (0..SOME_COMBINATIONS).map(|_| dice.below(combinations)).collect()
            };
            for done in some {
                let (state, beside) = self.under_way(&snapshot, wave, done);
                let rules = broken(&state).into_iter();
                let room = broken(&beside).into_iter().filter(|(vm, it)| is_about_room(vm, *it));
                let found: Vec<_> = rules.chain(room).filter(|it| !known.contains(it)).collect();
                assert!(found.is_empty(), "seed {seed}: {found:?} with {done:b} of {wave:?} done");
            }
            for step in wave {
                let placed = &mut snapshot.placed[step.vm];
                assert_eq!(self.row(&placed.host), step.from, "seed {seed}");
                placed.host = self.snapshot.hosts[step.to.row()].id.clone();
                placed.committed = step.committed.clone();
            }
        }
        for asked in moves {
            let there = self.row(&snapshot.placed[asked.vm].host) == asked.to;
            let blocked = ordered.blocked.iter().any(|it| it.vm == asked.vm);
            assert!(there != blocked, "seed {seed}: {asked:?} is done or blocked");
        }
    }

    /// The state with the steps done whose bit is set; and the same with a copy of every VM of
    /// the wave on its other host, where it has room and nothing else.
    fn under_way(&self, before: &Snapshot, wave: &[Step], done: u64) -> (Snapshot, Snapshot) {
        let mut state = before.clone();
        let mut copies = Vec::new();
        for (number, step) in wave.iter().enumerate() {
            let placed = &mut state.placed[step.vm];
            let vm = Arc::clone(&placed.vm);
            let other = if done >> number & 1 == 1 {
                placed.host = self.snapshot.hosts[step.to.row()].id.clone();
                placed.committed = step.committed.clone();
                step.from
            } else {
                step.to
            };
            let key = VmKey { tenant: name("copies"), id: name(&format!("copy-{number}")) };
            let host = &self.snapshot.hosts[other.row()];
            let copy = Vm { qos: vm.qos, ..Vm::new(key, engine::demand_on(&vm, host)) };
            copies.push(Placed {
                committed: copy.demand.clone(),
                vm: Arc::new(copy),
                host: host.id.clone(),
                ..before.placed[step.vm].clone()
            });
        }
        let mut beside = state.clone();
        beside.placed.extend(copies);
        (state, beside)
    }
}

/// Which rules are broken for whom, and, without a rule, what can never be.
fn broken(snapshot: &Snapshot) -> BTreeSet<(Option<VmKey>, Option<Reason>)> {
    let report = verify::snapshot(snapshot);
    let found = report.violations.iter().chain(&report.drift);
    found.map(|it| (it.vm.clone(), it.kind.reason())).collect()
}

/// Whether it is about room, which copies take as well as VMs do. That room is kept free is a
/// promise to others: the VM itself may be one that is allowed to use it, which its copy is not.
fn is_about_room(vm: &Option<VmKey>, reason: Option<Reason>) -> bool {
    let copy = vm.as_ref().is_some_and(|vm| vm.tenant == name("copies"));
    matches!(reason, None | Some(Reason::Capacity(_)))
        || matches!(reason, Some(Reason::Spare)) && !copy
}
