//! The service, the core that carries its plans out, and what everybody else does meanwhile.

#[path = "instant.rs"]
mod instant;

use cluster::{
    Affinity, AffinityKind, Amounts, Host, HostState, Level, Name, Snapshot, Spread, Strength,
    Subject, Vm, VmKey,
};
use engine::{
    Call, DisruptionBudget, Engine, MigrationReport, OnFailure, Options, Outcome, PlaceRequest,
    PlanAction, PlanEntry, PlanId, PlanKind, PlanStatus, PutMode, Refusal, Reply, Request, Tables,
    Terms, WantedMove,
};
use fixture::{Dice, small};
use instant::Instant;
use planner::Caps;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use store::{DiskOptions, SimDisk, SimulatedLog, SimulatedOptions};

/// Plans that are open at a time; with the caps below, 4 migrations at most are under way, and all
/// 16 ways in which they may have got on are looked at.
const OPEN: usize = 2;
const AT_ONCE: usize = 2;
const WINDOW_MS: u64 = 20_000;

/// What has happened.
#[derive(Debug, Default)]
pub struct Tally {
    pub plans: usize,
    pub done: usize,
    pub failed: usize,
    pub stale: usize,
    pub arrived: usize,
    pub tied: usize,
    pub crashes: usize,
    pub rolled_back: usize,
    pub waited_for_budget: usize,
}

impl Tally {
    pub fn add(&mut self, other: &Self) {
        self.plans += other.plans;
        self.done += other.done;
        self.failed += other.failed;
        self.stale += other.stale;
        self.arrived += other.arrived;
        self.tied += other.tied;
        self.crashes += other.crashes;
        self.rolled_back += other.rolled_back;
        self.waited_for_budget += other.waited_for_budget;
    }
}

pub struct World {
    seed: u64,
    engine: Option<Engine<SimulatedLog>>,
    disk: SimDisk,
    now_ms: u64,
    arrivals: usize,
    /// Few, nearly full hosts and VMs that mind their neighbours, or anything at all.
    crowded: bool,
    /// Where the core has each VM.
    runs_on: BTreeMap<VmKey, Name>,
    /// Every migration that began: when, whose, for how long.
    begun: Vec<(u64, VmKey, u64)>,
    budget: Option<u64>,
    instant: Instant,
    /// The kind of the last event, for those who look for the cause.
    last: u64,
    tally: Tally,
}

impl World {
    pub fn new(seed: u64, dice: &mut Dice) -> Self {
        let disk = SimDisk::new(DiskOptions::default());
        let engine = Some(open(&disk));
        let mut world = Self {
            seed,
            engine,
            disk,
            now_ms: 1_000_000,
            arrivals: 0,
            crowded: false,
            runs_on: BTreeMap::new(),
            begun: Vec::new(),
            budget: None,
            instant: Instant::default(),
            last: 0,
            tally: Tally::default(),
        };
        world.crowded = dice.chance(700);
        let size = small::Size { hosts: dice.between(3, 8) as usize, vms: 0 };
        let fleet = small::cluster(dice, size);
        world.ask(Request::DeclareDimensions(fleet.dimensions.clone())).expect("new dimensions");
        for (row, host) in fleet.hosts.iter().enumerate() {
            let plain = Host { foreign: Default::default(), ..host.as_ref().clone() };
            let host = Box::new(if world.crowded { crowded_host(row) } else { plain });
            let request = Request::PutHost { host, mode: PutMode::Create, if_generation: None };
            // Some say what the engine refuses; the others are enough.
            let _ = world.ask(request);
        }
        for _ in 0..dice.between(6, 30) {
            world.arrive(dice);
        }
        if dice.chance(500) {
            for constraint in small::constraints(dice) {
                let constraint = Box::new(constraint.as_ref().clone());
                let _ = world.ask(Request::PutConstraint { constraint, if_generation: None });
            }
        }
        if dice.chance(300) {
            let most = dice.between(20, 400);
            world.budget = Some(most);
            let budget = DisruptionBudget {
                per_vm_ms: Some(most),
                per_tenant_ms: None,
                window_ms: WINDOW_MS,
            };
            world.ask(Request::SetBudget(budget)).expect("a valid budget");
        }
        world.tally = Tally::default();
        world.look_again();
        world
    }

    /// Something happens, and every rule still holds.
    pub fn event(&mut self, dice: &mut Dice) {
        self.now_ms += dice.between(1, 2_000);
        let what = dice.below(100);
        self.last = what;
        match what {
            0..=17 => self.make_plan(dice),
            18..=47 => self.report(dice),
            48..=67 => self.advance(dice),
            68..=77 => {
                self.arrive(dice);
            }
            78..=81 => self.leave(dice),
            82..=85 => self.close_or_open(dice),
            86..=93 => self.steer(dice),
            _ => self.crash(),
        }
        self.check();
    }

    /// Gives up whatever is open, and sees that nothing is left of it.
    pub fn end(mut self) -> Tally {
        let open: Vec<PlanId> = self.plans(|_| true).iter().map(|plan| plan.id).collect();
        for plan in open {
            let _ = self.act(plan, PlanAction::Cancel { abandon: true });
        }
        self.crash();
        self.read(|state| {
            assert_eq!(state.plans().moving().len(), 0);
            for (_, host) in state.hosts() {
                let vms = host.vms.iter().filter_map(|ix| state.vm(*ix));
                let sum = vms.fold(Amounts::zero(), |sum, vm| {
                    assert!(!vm.vm.key.is_stand_in(), "a place is still held");
                    sum.checked_add(&vm.committed).expect("small numbers")
                });
                assert_eq!(sum, host.allocated, "room is still held");
            }
        });
        self.tally
    }

    fn make_plan(&mut self, dice: &mut Dice) {
        if self.plans(|plan| !plan.status.is_over() || plan.is_under_way()).len() >= OPEN {
            return;
        }
        let core = self.engine().core();
        let (rows, snapshot, policies) = {
            let core = core.read();
            (core.rows(), core.state().snapshot(), Arc::clone(core.policies()))
        };
        let hosts: Vec<Name> = snapshot.hosts.iter().map(|host| host.id.clone()).collect();
        let mut tables = Tables::new(rows);
        let terms = Terms {
            caps: Caps { in_all: AT_ONCE, per_host: 2, per_domain: Vec::new() },
            on_failure: if dice.chance(500) { OnFailure::Pause } else { OnFailure::Continue },
            approved: true,
            ..Terms::default()
        };
        let drafted = match dice.below(3) {
            0 => tables.draft_drain(&[dice.pick(&hosts).clone()], &terms),
            1 => tables.draft_maintenance(&hosts[..2.min(hosts.len())], 1, &terms),
            _ => {
                let mut wanted = Vec::new();
                for placed in &snapshot.placed {
                    if dice.chance(400) {
                        let (vm, to) = (placed.vm.key.clone(), dice.pick(&hosts).clone());
                        wanted.push(WantedMove { vm, from: None, to, gain: None });
                    }
                }
                tables.draft_moves(PlanKind::Moves, &wanted, &terms)
            }
        };
        let drafted = drafted.expect("VMs and hosts that are there");
        let moving = self.read(|state| state.plans().moving().len());
        if drafted.draft.kind == PlanKind::Moves && moving == 0 {
            let found = drafted.violations(snapshot, &policies);
            let found: Vec<&String> =
                found.iter().filter(|it| !self.instant.is_known(it)).collect();
            assert!(found.is_empty(), "seed {}: {found:?}", self.seed);
        }
        if let Ok(reply) = self.ask(Request::CreatePlan(Box::new(drafted.draft))) {
            let plan = plan_of(&reply);
            let steps = self.read(|state| state.plans().get(plan).expect("it").step_count());
            self.tally.plans += usize::from(steps > 0);
            let _ = self.act(plan, PlanAction::Apply);
        }
    }

    /// The core reports a migration, again and wrongly at times.
    fn report(&mut self, dice: &mut Dice) {
        let running: Vec<(PlanId, VmKey, Name)> = self.read(|state| {
            let moving = state.plans().moving();
            let told = moving.map(|(vm, it)| {
                let plan = state.plans().get(it.plan).expect("its plan");
                (it.plan, vm.clone(), plan.step(it.step).expect("its step").planned.to.clone())
            });
            told.collect()
        });
        if running.is_empty() {
            return;
        }
        let (plan, vm, to) = dice.pick(&running).clone();
        let report = match dice.chance(750) {
            true => MigrationReport::Confirmed,
            false => MigrationReport::Failed("the link broke".into()),
        };
        let done = report == MigrationReport::Confirmed;
        let request =
            Request::ReportMigration { plan, vm: vm.clone(), to: Some(to.clone()), report };
        self.ask(request.clone()).expect("it is under way");
        if dice.chance(200) {
            self.ask(request).expect("saying it twice changes nothing");
        }
        if done {
            self.runs_on.insert(vm, to);
            self.tally.done += 1;
        } else {
            self.tally.failed += 1;
        }
    }

    fn advance(&mut self, dice: &mut Dice) {
        let due = self.read(|state| state.plans().due());
        if due.is_empty() {
            return;
        }
        let plan = *dice.pick(&due);
        let before = self.read(|state| {
            state.plans().moving().map(|(vm, _)| vm.clone()).collect::<BTreeSet<_>>()
        });
        self.ask(Request::AdvancePlan { plan }).expect("a known plan");
        let now_ms = self.read(|state| state.time_ms());
        let begun: Vec<(u64, VmKey, u64)> = self.read(|state| {
            let moving = state.plans().moving().filter(|(vm, _)| !before.contains(*vm));
            let begun = moving.map(|(vm, it)| {
                let plan = state.plans().get(it.plan).expect("its plan");
                let took = plan.step(it.step).expect("its step").planned.brownout_ms;
                (now_ms, vm.clone(), took)
            });
            begun.collect()
        });
        let status = self.read(|state| state.plans().get(plan).expect("it").status);
        self.tally.stale += usize::from(status == PlanStatus::Stale);
        let waits = begun.is_empty() && status == PlanStatus::Running;
        self.tally.waited_for_budget += usize::from(waits && self.budget.is_some());
        self.begun.extend(begun);
    }

    fn arrive(&mut self, dice: &mut Dice) -> Option<VmKey> {
        self.arrivals += 1;
        let dimensions = self.read(|state| state.dimensions().clone());
        let id = format!("v{}", self.arrivals);
        let vm = match self.crowded {
            true => choosy_vm(dice, &id),
            false => small::vm(dice, &dimensions, &id),
        };
        let key = vm.key.clone();
        match self.ask(Request::Place(PlaceRequest::new(vm))) {
            Ok(Reply { outcome: Outcome::Placement(placed), .. }) => {
                let host = placed.host?;
                self.runs_on.insert(key.clone(), host);
                self.tally.arrived += 1;
                self.instant.forgive_others(&key);
                Some(key)
            }
            Err(Refusal::Tied { .. }) => {
                self.tally.tied += 1;
                None
            }
            Err(Refusal::Invalid { .. }) => None,
            other => panic!("seed {}: {other:?}", self.seed),
        }
    }

    fn leave(&mut self, dice: &mut Dice) {
        let keys: Vec<VmKey> = self.runs_on.keys().cloned().collect();
        if keys.is_empty() {
            return;
        }
        let vm = dice.pick(&keys).clone();
        self.ask(Request::RemoveVm { vm: vm.clone(), if_generation: None }).expect("it is there");
        self.runs_on.remove(&vm);
        self.instant.forgive_all();
    }

    fn close_or_open(&mut self, dice: &mut Dice) {
        let hosts: Vec<Name> =
            self.read(|state| state.hosts().map(|(_, entry)| entry.host.id.clone()).collect());
        let host = dice.pick(&hosts).clone();
        let states = [HostState::Available, HostState::Available, HostState::Cordoned];
        let state = *dice.pick(&states);
        let request = Request::SetHostState { host, state, if_generation: None };
        self.ask(request).expect("a known host");
        self.instant.forgive_all();
    }

    /// Somebody pauses, resumes, cancels or turns a plan round.
    fn steer(&mut self, dice: &mut Dice) {
        let plans: Vec<PlanId> = self.plans(|_| true).iter().map(|plan| plan.id).collect();
        if plans.is_empty() {
            return;
        }
        let plan = plans[plans.len() - 1 - dice.row(plans.len().min(3))];
        let busy = self.plans(|plan| !plan.status.is_over() || plan.is_under_way()).len();
        let action = match dice.below(10) {
            0..=1 => PlanAction::Pause,
            2..=5 => PlanAction::Resume,
            6 => PlanAction::Cancel { abandon: dice.chance(500) },
            _ if busy < OPEN => PlanAction::Rollback,
            _ => return,
        };
        let turned = action == PlanAction::Rollback;
        match self.act(plan, action) {
            Ok(()) => self.tally.rolled_back += usize::from(turned),
            Err(Refusal::PlanRefused { .. } | Refusal::Invalid { .. }) => {}
            // What it moved is gone.
            Err(Refusal::UnknownVm(_)) if turned => {}
            Err(other) => panic!("seed {}: {other}", self.seed),
        }
    }

    /// The process dies and comes back: what was answered is still so.
    fn crash(&mut self) {
        let hash = self.read(|state| state.freeze().full_hash());
        if self.tally.crashes.is_multiple_of(2) {
            self.engine().snapshot_now().expect("a disk");
        }
        drop(self.engine.take());
        self.disk.crash();
        self.engine = Some(open(&self.disk));
        assert_eq!(self.read(|state| state.freeze().full_hash()), hash, "seed {}", self.seed);
        self.tally.crashes += 1;
    }

    fn check(&mut self) {
        let seed = self.seed;
        self.read(|state| engine::check_sums(state)).expect("sums that agree");
        let there: BTreeMap<VmKey, Name> = self.read(|state| {
            let vms = state.vms().map(|(_, entry)| {
                let host = state.host(entry.host).expect("its host");
                (entry.vm.key.clone(), host.host.id.clone())
            });
            vms.collect()
        });
        assert_eq!(there, self.runs_on, "seed {seed}: the core has them elsewhere");
        self.look();
        if let Some(most) = self.budget {
            for (at_ms, vm, _) in &self.begun {
                let within = self.begun.iter().filter(|(other_ms, other, _)| {
                    other == vm && *other_ms >= *at_ms && *other_ms < at_ms + WINDOW_MS
                });
                let spent: u64 = within.map(|(_, _, took)| took).sum();
                assert!(
                    spent <= most,
                    "seed {seed}: {vm} was slowed down for {spent} of {most} ms"
                );
            }
        }
    }

    fn look(&mut self) {
        let (snapshot, under_way) = self.seen();
        let what = format!("seed {}, after event {}", self.seed, self.last);
        self.instant.check(&snapshot, &under_way, &what);
    }

    fn look_again(&mut self) {
        self.instant.forgive_all();
        self.look();
    }

    /// The state without stand-ins, and who may be on which other host.
    fn seen(&self) -> (Snapshot, Vec<instant::UnderWay>) {
        self.read(|state| {
            let mut snapshot = state.snapshot();
            // What is on its way is judged by itself.
            snapshot.hosts = state.hosts().map(|(_, entry)| entry.effective_host()).collect();
            let moving = state.plans().moving().map(|(vm, _)| {
                let target = state.target_of(vm).expect("its place");
                let host = state.host(target.host).expect("its target");
                instant::UnderWay {
                    vm: vm.clone(),
                    to: host.host.id.clone(),
                    committed: target.committed.clone(),
                    bindings: target.bindings.clone(),
                }
            });
            (snapshot, moving.collect())
        })
    }

    fn plans(&self, wanted: impl Fn(&PlanEntry) -> bool) -> Vec<Arc<PlanEntry>> {
        self.read(|state| state.plans().iter().filter(|plan| wanted(plan)).cloned().collect())
    }

    fn act(&mut self, plan: PlanId, action: PlanAction) -> Result<(), Refusal> {
        self.ask(Request::ChangePlan { plan, action }).map(|_| ())
    }

    fn ask(&mut self, request: Request) -> Result<Reply, Refusal> {
        let now_ms = self.now_ms;
        let reply = self.engine().propose(&Call::internal(request), now_ms);
        self.engine().commit().expect("a disk");
        reply
    }

    fn engine(&mut self) -> &mut Engine<SimulatedLog> {
        self.engine.as_mut().expect("the service runs")
    }

    fn read<T>(&self, read: impl FnOnce(&engine::State) -> T) -> T {
        self.engine.as_ref().expect("the service runs").read(read)
    }
}

fn crowded_host(row: usize) -> Host {
    let mut host = Host::new(name(&format!("h{row}")), Amounts::cpu_memory(1_700, 1_700));
    host.location.rack = Some(name(&format!("r{}", row % 3)));
    host
}

/// A VM of one of a few groups that keeps away from it, stays with it, or is spread over racks.
fn choosy_vm(dice: &mut Dice, id: &str) -> Vm {
    let key = VmKey::in_default_tenant(name(id));
    let size = Amounts::cpu_memory(dice.between(100, 450), dice.between(100, 450));
    let mut vm = Vm::new(key, size);
    let group = name(&format!("g{}", dice.below(4)));
    let level = if dice.chance(700) { Level::Host } else { Level::Rack };
    let strength = Strength::Required;
    let affinity = |kind, level| {
        let subject = Subject::Group(group.clone());
        Affinity { kind, subject, level, strength }
    };
    match dice.below(10) {
        0..=2 => vm.affinities.push(affinity(AffinityKind::Apart, level)),
        3 => vm.affinities.push(affinity(AffinityKind::Together, Level::Rack)),
        4 => {
            let group = group.clone();
            vm.spreads.push(Spread { group, level: Level::Rack, max_skew: 2, strength });
        }
        _ => {}
    }
    if dice.chance(600) {
        vm.groups.push(group);
    }
    vm
}

fn name(text: &str) -> Name {
    Name::new(text).expect("a valid name")
}

fn plan_of(reply: &Reply) -> PlanId {
    match reply.outcome {
        Outcome::Plan { plan, .. } => plan,
        ref other => panic!("a plan answers a plan, not {other:?}"),
    }
}

fn open(disk: &SimDisk) -> Engine<SimulatedLog> {
    let log = SimulatedLog::open(disk, SimulatedOptions::default()).expect("a log that opens");
    Engine::open(log, Options { snapshot_every: 0, retain: 0 }).expect("a log that recovers")
}
