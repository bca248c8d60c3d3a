//! One run: a machine, its clock, its clients, and a cycle of faults after the other.
//!
//! Everything random comes from the seed, so the same seed is the same run, and a run that broke
//! a promise can be told again as a story.

use crate::checker::Checker;
use crate::clients::Clients;
use crate::faults::{Death, DiskFault, Fault, FaultCounts, Plan, Point};
use crate::history::{Answer, History, OpNo};
use crate::machine::{Machine, Medium};
use crate::shapes;
use crate::sometimes::{Rare, Sometimes};
use crate::story::Story;
use crate::violation::{Checked, Law, broken, ensure};
use cluster::{Labels, Selector, SelectorOp};
use engine::{Call, Options, Outcome, PlaceRequest, PutMode, Refusal, Reply, Request, Told};
use fixture::Dice;
use store::{CommandLog, DiskOptions, DiskStats, SimDisk};

/// Some time in 2023; any will do.
const BEGINNING_MS: u64 = 1_700_000_000_000;

/// What one run did, for the report and for comparing it with itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outline {
    pub(crate) hash: [u8; 32],
    pub(crate) cycles: u64,
    pub(crate) acknowledged: u64,
    pub(crate) refused: u64,
    pub(crate) unknown: u64,
    pub(crate) entries: u64,
    pub(crate) recoveries: u64,
    pub(crate) checks: u64,
    pub(crate) faults: FaultCounts,
    pub(crate) sometimes: Sometimes,
}

pub(crate) struct World<M: Medium> {
    pub(crate) machine: Machine<M>,
    pub(crate) dice: Dice,
    pub(crate) clients: Clients,
    pub(crate) history: History,
    pub(crate) checker: Checker,
    pub(crate) outline: Outline,
    pub(crate) story: Story,
    /// What the time is, and by how much the machine's clock is wrong.
    true_ms: u64,
    now_ms: u64,
    trace: blake3::Hasher,
    /// Sent and not answered.
    in_flight: Vec<Answer>,
    /// Left in the dark since the last recovery.
    pub(crate) unknown: Vec<OpNo>,
    /// The revisions at which the log may end after a crash: without or with the last batch.
    pub(crate) heads: (u64, u64),
    writing_snapshot: bool,
    first_kept: u64,
}

/// Whether the process got through a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Life {
    Alive,
    Dead,
}

impl<M: Medium> World<M> {
    pub(crate) fn new(seed: u64, medium: M, story: Story) -> Self {
        let mut dice = Dice::stream(seed, 1);
        let sector_bytes = *dice.pick(&[64, 512, 4_096]);
        let disk = SimDisk::new(DiskOptions { seed, sector_bytes, ..DiskOptions::default() });
        let snapshot_every = *dice.pick(&[0, 8, 20, 50]);
        let options = Options { snapshot_every, retain: *dice.pick(&[0, 30, 1_000_000]) };
        Self {
            machine: Machine::new(disk, medium, options),
            dice,
            clients: Clients::new(seed),
            history: History::default(),
            checker: Checker::default(),
            outline: Outline::default(),
            story,
            true_ms: BEGINNING_MS,
            now_ms: BEGINNING_MS,
            trace: blake3::Hasher::new(),
            in_flight: Vec::new(),
            unknown: Vec::new(),
            heads: (0, 0),
            writing_snapshot: false,
            first_kept: 1,
        }
    }

    /// Runs fault cycles one after the other, then a last stretch without any fault.
    pub(crate) fn run(&mut self, cycles: u64) -> Checked {
        self.start()?;
        for _ in 0..cycles {
            let plan = Plan::draw(&mut self.dice, M::STEPS_PER_COMMIT);
            self.story.tell(|| format!("cycle {}: {plan:?}", self.outline.cycles));
            let born = self.machine.disk.stats();
            self.live(&plan)?;
            self.die(plan.death, born);
            self.come_back(&plan)?;
            self.outline.cycles += 1;
        }
        self.check_progress()?;
        self.finish();
        Ok(())
    }

    fn finish(&mut self) {
        self.outline.sometimes.add(&self.checker.model.reached);
        self.outline.entries = self.checker.revision();
        self.outline.checks = self.checker.checks;
        self.outline.hash = *self.trace.finalize().as_bytes();
    }

    fn live(&mut self, plan: &Plan) -> Checked {
        for round in 0..plan.rounds {
            if let Some((_, fault)) = plan.disk.filter(|(from, _)| *from == round) {
                self.arm(fault);
            }
            let point = (round + 1 == plan.rounds).then_some(plan.point);
            if self.round(point)? == Life::Dead {
                break;
            }
        }
        Ok(())
    }

    fn arm(&mut self, fault: DiskFault) {
        let disk = &self.machine.disk;
        let fault = match fault {
            DiskFault::CutPowerAt(n) => {
                disk.crash_at(n);
                Fault::PowerCutInWrite
            }
            DiskFault::FailWrite(n) => {
                disk.fail_write(n);
                Fault::WriteError
            }
            DiskFault::FailSync(n) => {
                disk.fail_sync(n);
                Fault::SyncError
            }
            DiskFault::FillUpAfter(bytes) => {
                disk.fill_up_after(bytes);
                Fault::DiskFull
            }
        };
        self.outline.faults.order(fault);
    }

    /// Clients send, the service commits, clients are answered.
    fn round(&mut self, point: Option<Point>) -> Checked<Life> {
        self.let_time_pass();
        let disk = self.machine.disk.stats();
        if point == Some(Point::BeforePropose) {
            return Ok(Life::Dead);
        }
        let calls = self.dice.between(1, 6);
        for number in 0..calls {
            let op = self.clients.next(&mut self.history);
            self.propose(op, disk)?;
            let keyed = self.history.get(op).call.idempotency_key.is_some();
            if keyed && self.dice.chance(50) {
                self.outline.faults.both(Fault::Duplicate);
                self.outline.sometimes.hit(Rare::DuplicateInBatch);
                self.propose(op, disk)?;
            }
            if point == Some(Point::BetweenProposes) && number == calls / 2 {
                return Ok(Life::Dead);
            }
        }
        if self.dice.chance(400) {
            let tick = Call::internal(Request::Tick);
            let now_ms = self.now_ms;
            if self.machine.engine().propose(&tick, now_ms).is_err() {
                return self.must_have_failed(disk).map(|()| Life::Dead);
            }
        }
        if point == Some(Point::BeforeCommit) {
            return Ok(Life::Dead);
        }
        let before = self.machine.head();
        self.heads = (before, self.machine.revision().0);
        if self.machine.engine().commit().is_err() {
            self.story.tell(|| format!("the commit of {:?} failed", self.heads));
            self.check_sticks()?;
            return self.must_have_failed(disk).map(|()| Life::Dead);
        }
        self.heads.0 = self.heads.1;
        if point == Some(Point::BeforeAnswers) {
            return Ok(Life::Dead);
        }
        self.answer(before)?;
        if point == Some(Point::AfterAnswers) || self.dice.chance(50) {
            self.check_live_state()?;
        }
        if point == Some(Point::AfterAnswers) {
            return Ok(Life::Dead);
        }
        self.snapshot(disk)
    }

    /// The clock runs, jumps now and then, and is set right again some rounds later.
    fn let_time_pass(&mut self) {
        let passed_ms = self.dice.below(15_000);
        self.true_ms += passed_ms;
        self.now_ms += passed_ms;
        if self.dice.chance(30) {
            let hours_ms = self.dice.between(1, 5) * 3_600_000;
            let ahead = self.dice.chance(500);
            self.now_ms = if ahead { self.true_ms + hours_ms } else { self.true_ms - hours_ms };
            self.outline.faults.both(Fault::ClockJump);
        } else if self.dice.chance(200) {
            self.now_ms = self.true_ms;
        }
    }

    fn propose(&mut self, op: OpNo, disk: DiskStats) -> Checked {
        let now_ms = self.now_ms;
        let call = self.history.send(op);
        let told = self.machine.engine().propose(call, now_ms);
        self.story.tell(|| format!("op{op} {} -> {}", brief(call), brief_answer(&told)));
        self.trace.update(&now_ms.to_le_bytes());
        match &told {
            Ok(reply) => {
                self.trace.update(&postcard::to_stdvec(reply).unwrap_or_default());
                let late = reply.revision.0 > self.checker.revision()
                    && now_ms < self.checker.model.time_ms;
                self.outline.sometimes.hit_if(Rare::TimeStoodStill, late);
            }
            Err(refusal) => {
                self.trace.update(refusal.to_string().as_bytes());
            }
        }
        let failed = told == Err(Refusal::OutcomeUnknown);
        self.in_flight.push(Answer { op, told });
        if failed { self.must_have_failed(disk) } else { Ok(()) }
    }

    /// The service gave up. It may do that only when the disk did.
    fn must_have_failed(&mut self, before: DiskStats) -> Checked {
        let now = self.machine.disk.stats();
        let excused = now.crashes > before.crashes
            || now.failed_writes > before.failed_writes
            || now.failed_syncs > before.failed_syncs
            || now.refused_full > before.refused_full;
        let failure = self.machine.engine().failure().unwrap_or("it does not say why").to_owned();
        ensure(excused, Law::Progress, || format!("the engine gave up on a good disk: {failure}"))
    }

    /// After a failed commit nothing may be taken on or acknowledged.
    fn check_sticks(&mut self) -> Checked {
        let now_ms = self.now_ms;
        let engine = self.machine.engine();
        let tick = Call::internal(Request::Tick);
        let refused = engine.propose(&tick, now_ms) == Err(Refusal::OutcomeUnknown)
            && engine.commit() == Err(Refusal::OutcomeUnknown);
        ensure(refused, Law::Acknowledged, || "a failed log was written to again".into())
    }

    /// Answers what is in flight, all but what gets lost on the way.
    fn answer(&mut self, before: u64) -> Checked {
        let mut answers = std::mem::take(&mut self.in_flight);
        answers.retain(|answer| {
            let lost = self.dice.chance(40);
            if lost {
                self.outline.faults.both(Fault::AnswerLost);
                self.story.tell(|| format!("the answer to op{} is lost", answer.op));
                if self.history.lost(answer.op) {
                    self.outline.unknown += 1;
                    self.clients.in_the_dark(answer.op, &self.history);
                }
            }
            !lost
        });
        for answer in &answers {
            self.history.answered(answer);
            self.clients.learn(&self.history.get(answer.op).call.request, &answer.told);
            self.count(answer, before);
        }
        let log = self.machine.engine().log().reader();
        self.checker.follow(log.as_ref(), &self.history, &answers)
    }

    fn count(&mut self, answer: &Answer, before: u64) {
        let again = self.history.get(answer.op).sent > 1;
        let sometimes = &mut self.outline.sometimes;
        match &answer.told {
            Ok(Reply { revision, outcome }) => {
                self.outline.acknowledged += 1;
                sometimes.hit_if(Rare::RetryFromTable, again && revision.0 < before);
                sometimes.hit_if(Rare::RetryExecuted, again && revision.0 > before);
                let repeated = matches!(outcome, Outcome::Placement(it) if it.repeated);
                sometimes.hit_if(Rare::RepeatedPlacement, repeated);
                let late = matches!(outcome, Outcome::VmReported(Told::Late));
                sometimes.hit_if(Rare::LateNews, late);
                let twice = matches!(outcome, Outcome::UseReported { repeated: true, .. });
                sometimes.hit_if(Rare::RepeatedReport, twice);
            }
            Err(refusal) => {
                self.outline.refused += 1;
                match refusal {
                    Refusal::IdempotencyConflict => sometimes.hit(Rare::KeyConflict),
                    Refusal::ReservationExpired { .. } => sometimes.hit(Rare::ConfirmTooLate),
                    Refusal::Invalid { field, .. } => {
                        sometimes.hit_if(Rare::HostKeptRoom, field.starts_with("capacity"));
                    }
                    Refusal::DoesNotFit { .. } => sometimes.hit(Rare::ResizeRefused),
                    Refusal::Stale { .. } => sometimes.hit(Rare::StaleGeneration),
                    Refusal::Gap { .. } => sometimes.hit(Rare::GapRefused),
                    _ => {}
                }
            }
        }
    }

    /// Moves a snapshot on, as the writer's thread would between two commits.
    fn snapshot(&mut self, disk: DiskStats) -> Checked<Life> {
        let whole = self.dice.chance(300);
        let engine = self.machine.engine();
        let moved = if self.writing_snapshot {
            match engine.step_snapshot() {
                Ok(0) => {
                    self.writing_snapshot = false;
                    engine.finish_snapshot()
                }
                other => other.map(|_| ()),
            }
        } else if engine.snapshot_due() && whole {
            engine.snapshot_now()
        } else if let Some(freeze) = engine.snapshot_due().then(|| engine.freeze()).flatten() {
            self.writing_snapshot = true;
            engine.begin_snapshot(freeze.encode())
        } else {
            Ok(())
        };
        if moved.is_err() {
            self.outline.sometimes.hit(Rare::CrashInSnapshot);
            return self.must_have_failed(disk).map(|()| Life::Dead);
        }
        let first = engine.log().head().first;
        self.outline.sometimes.hit_if(Rare::HistoryCut, first > self.first_kept);
        self.first_kept = first;
        Ok(Life::Alive)
    }

    /// The process dies, if it is not dead yet; nobody in flight gets an answer. `born` is what
    /// the disk had seen when the cycle began.
    fn die(&mut self, death: Death, born: DiskStats) {
        for answer in std::mem::take(&mut self.in_flight) {
            if self.history.lost(answer.op) {
                self.outline.unknown += 1;
                self.unknown.push(answer.op);
                self.clients.in_the_dark(answer.op, &self.history);
            }
        }
        self.writing_snapshot = false;
        let now = self.machine.disk.stats();
        let faults = &mut self.outline.faults;
        faults.happened(Fault::WriteError, now.failed_writes - born.failed_writes);
        faults.happened(Fault::SyncError, now.failed_syncs - born.failed_syncs);
        faults.happened(Fault::DiskFull, (now.refused_full - born.refused_full).min(1));
        match death {
            _ if now.crashes > born.crashes => {
                faults.happened(Fault::PowerCutInWrite, 1);
                self.machine.kill();
            }
            Death::PowerCut => {
                faults.both(Fault::PowerCut);
                self.machine.cut_power();
            }
            Death::Kill => {
                faults.both(Fault::Kill);
                self.machine.kill();
            }
        }
        self.note_crash(born);
        self.story.tell(|| format!("the process is gone: {death:?}"));
    }

    /// Counts what power cuts did to un-synced writes.
    pub(crate) fn note_crash(&mut self, before: DiskStats) {
        let now = self.machine.disk.stats();
        self.outline.sometimes.hit_if(Rare::TornTail, now.torn > before.torn);
        self.outline.sometimes.hit_if(Rare::LostTail, now.dropped > before.dropped);
        self.outline.sometimes.hit_if(Rare::KeptTail, now.kept > before.kept);
    }

    pub(crate) fn trace(&mut self, bytes: &[u8]) {
        self.trace.update(bytes);
    }

    /// Nothing fails any more: a request that can be carried out is carried out.
    fn check_progress(&mut self) -> Checked {
        let mut host = shapes::host(&mut self.dice, 99, 0);
        host.labels = Labels::from_iter([(shapes::name("probe"), shapes::name("yes"))]);
        // In no domain that a limit may have filled.
        host.location = cluster::Location::default();
        let mut vm = shapes::vm(&mut self.dice, 0);
        (vm.key.id, vm.affinities, vm.spreads) = (shapes::name("probe"), vec![], vec![]);
        vm.topology = None;
        vm.groups.clear();
        vm.cpu_unit = cluster::CpuUnit::Raw;
        vm.demand = cluster::Amounts::cpu_memory(1, 1);
        vm.selectors = vec![Selector { key: shapes::name("probe"), op: SelectorOp::Exists }];
        let mode = PutMode::Create;
        let put = Request::PutHost { host: Box::new(host.clone()), mode, if_generation: None };
        for request in [put, Request::Place(PlaceRequest::new(vm))] {
            let op = self.history.begin(Call::internal(request));
            let disk = self.machine.disk.stats();
            self.propose(op, disk)?;
        }
        let before = self.machine.head();
        if let Err(refusal) = self.machine.engine().commit() {
            return broken(Law::Progress, format!("nothing fails, and still: {refusal}"));
        }
        let placed = self.in_flight.last().is_some_and(|answer| match &answer.told {
            Ok(Reply { outcome: Outcome::Placement(it), .. }) => it.host.as_ref() == Some(&host.id),
            _ => false,
        });
        ensure(placed, Law::Progress, || {
            format!("a request that can be carried out was not: {:?}", self.in_flight.last())
        })?;
        self.answer(before)?;
        self.check_live_state()
    }

    /// The state that the engine lives on must be the one that its log leads to.
    pub(crate) fn check_live_state(&mut self) -> Checked {
        let (machine, checker) = (&mut self.machine, &mut self.checker);
        machine.engine().read(|state| checker.compare_state(state))
    }
}

fn brief(call: &Call) -> String {
    let mut text = format!("{:?}", call.request);
    text.truncate(160);
    match &call.idempotency_key {
        Some(key) => {
            format!("[{}] {text}", String::from_utf8_lossy(key.as_bytes()).replace('\0', "/"))
        }
        None => text,
    }
}

fn brief_answer(told: &Result<Reply, Refusal>) -> String {
    match told {
        Ok(Reply { revision, outcome: Outcome::Placement(it) }) => {
            format!("r{revision} on {:?} {:?}", it.host, it.hold)
        }
        Ok(Reply { revision, outcome: Outcome::Batch(placements) }) => {
            let hosts: Vec<_> = placements.iter().map(|placement| &placement.host).collect();
            format!("r{revision} on {hosts:?}")
        }
        Ok(Reply { revision, outcome }) => format!("r{revision} {outcome:?}"),
        Err(refusal) => format!("refused: {refusal}"),
    }
}
