//! The writer: the engine on a thread of its own, behind a bounded queue.
//!
//! Natural group commit: whatever arrived while the last commit was on its way to the disk goes
//! into the next one, up to 256 commands, 1 MiB or 2 ms of work. Answers leave after the commit
//! that covers them. Time comes from the clock that the caller hands in.

use crate::core::Core;
use crate::engine::{Aid, Committed, Engine};
use crate::health::Monitor;
use crate::history::History;
use crate::prepared::Prepared;
use crate::request::{Call, Refusal, Reply, Request};
use crate::snapshots::Encoded;
use crate::state::State;
use cluster::{Name, Revision};
use parking_lot::{Mutex, RwLock};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{
    Receiver, RecvTimeoutError, SyncSender, TryRecvError, TrySendError, sync_channel,
};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use store::CommandLog;

const MAX_COMMANDS: usize = 256;
const MAX_BYTES: usize = 1 << 20;
const MAX_WORK_MS: u64 = 2;
/// How often an idle writer lets time pass for reservations.
const IDLE_TICK: Duration = Duration::from_millis(250);
/// How long it waits for a call before it uses the pause for a snapshot that is being written.
const SNAPSHOT_TICK: Duration = Duration::from_millis(1);

/// How often heartbeats are looked at.
const JUDGE_EVERY_MS: u64 = 200;
/// Hosts looked at before the calls that wait: a few dozen microseconds.
const JUDGED_AT_ONCE: usize = 256;

/// How often plans that wait for their next wave are looked at.
const ADVANCE_EVERY_MS: u64 = 50;

/// Milliseconds since the Unix epoch.
pub type Clock = Arc<dyn Fn() -> u64 + Send + Sync>;

/// Receives the answer, on the writer's thread: hand it on and return.
pub type Answer = Box<dyn Caller>;

/// Whoever waits for an answer. Any closure that takes the reply will do.
pub trait Caller: Send {
    fn answer(self: Box<Self>, reply: Result<Reply, Refusal>);

    /// Whether nobody waits any more. A call that is still queued then is never started, and a
    /// batch ends between two of its VMs.
    fn has_left(&self) -> bool {
        false
    }
}

impl<F: FnOnce(Result<Reply, Refusal>) + Send> Caller for F {
    fn answer(self: Box<Self>, reply: Result<Reply, Refusal>) {
        self(reply);
    }
}

/// Told what the writer does, on its thread: note it and return.
pub type Listener = Box<dyn Fn(Event<'_>) + Send>;

/// What the writer did, and how long it took. Durations are for people to look at; nothing is
/// decided by them.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// A call was worked out. Nothing of it is durable yet.
    Decided { request: &'a Request, reply: &'a Result<Reply, Refusal>, took: Duration },
    /// The log has it; the answers leave next.
    Committed { commands: &'a Committed, took: Duration },
    /// The log failed, and nobody knows what it has. The writer ends.
    LogFailed,
}

/// A handle to the running writer. Cloning it is cheap.
#[derive(Clone)]
pub struct Writer {
    queue: SyncSender<Job>,
    waiting: Arc<AtomicUsize>,
    core: Arc<RwLock<Core>>,
    history: History,
    monitor: Arc<Mutex<Monitor>>,
    clock: Clock,
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer").finish_non_exhaustive()
    }
}

enum Job {
    Call {
        call: Call,
        prepared: Option<Box<Prepared>>,
        deadline_ms: Option<u64>,
        answer: Answer,
    },
    Preview {
        request: Request,
        answer: Answer,
    },
    /// Answers when everything queued before it is durable.
    Flush {
        answer: Answer,
    },
    Stop,
}

impl Writer {
    /// Starts the thread. `queue` bounds how many calls may wait.
    pub fn spawn<L: CommandLog + 'static>(
        engine: Engine<L>,
        queue: usize,
        clock: Clock,
        listener: Listener,
    ) -> std::io::Result<(Self, JoinHandle<Engine<L>>)> {
        let (sender, receiver) = sync_channel(queue);
        let waiting = Arc::new(AtomicUsize::new(0));
        let monitor = Arc::new(Mutex::new(Monitor::default()));
        let writer = Self {
            queue: sender,
            waiting: Arc::clone(&waiting),
            core: engine.core(),
            history: engine.history().clone(),
            monitor: Arc::clone(&monitor),
            clock: Arc::clone(&clock),
        };
        let worker = Worker {
            engine,
            queue: receiver,
            waiting,
            clock,
            listener,
            monitor,
            judged_ms: 0,
            advanced_ms: 0,
            encoding: None,
            writing: false,
        };
        let thread = std::thread::Builder::new().name("writer".into()).spawn(|| worker.run())?;
        Ok((writer, thread))
    }

    /// Queues a call; refuses at once when the queue is full. Work whose `deadline_ms` has passed
    /// when its turn comes, or whose caller has left by then, is not started.
    pub fn submit(&self, call: Call, deadline_ms: Option<u64>, answer: Answer) {
        self.send(Job::Call { call, prepared: None, deadline_ms, answer });
    }

    /// The same for a change of policies that was worked out beforehand. If something else came
    /// in between, it is worked out again by the writer.
    pub fn submit_prepared(
        &self,
        call: Call,
        prepared: Box<Prepared>,
        deadline_ms: Option<u64>,
        answer: Answer,
    ) {
        self.send(Job::Call { call, prepared: Some(prepared), deadline_ms, answer });
    }

    /// Asks what a request would do.
    pub fn preview(&self, request: Request, answer: Answer) {
        self.send(Job::Preview { request, answer });
    }

    /// Answers when everything that was proposed before is durable.
    pub fn flush(&self, answer: Answer) {
        self.send(Job::Flush { answer });
    }

    /// Submits a call and waits for its answer.
    pub fn call(&self, call: Call) -> Result<Reply, Refusal> {
        self.wait(|answer| self.submit(call, None, answer))
    }

    /// Submits a change of policies that was worked out beforehand and waits for its answer.
    pub fn call_prepared(&self, call: Call, prepared: Box<Prepared>) -> Result<Reply, Refusal> {
        self.wait(|answer| self.submit_prepared(call, prepared, None, answer))
    }

    fn wait(&self, submit: impl FnOnce(Answer)) -> Result<Reply, Refusal> {
        let (sender, receiver) = sync_channel(1);
        let answer = Box::new(move |reply: Result<Reply, Refusal>| {
            // The receiver waits below; if its thread is gone there is nobody to tell.
            let _ = sender.send(reply);
        });
        submit(answer);
        receiver.recv().unwrap_or(Err(Refusal::OutcomeUnknown))
    }

    /// Reads the living state. What it shows may not be durable yet: compare the revision with
    /// what the listener has seen before an answer leaves.
    pub fn read<T>(&self, read: impl FnOnce(&State) -> T) -> T {
        read(self.core.read().state())
    }

    /// Reads the state together with the policies in force, under the same terms.
    pub fn look<T>(&self, look: impl FnOnce(&Core) -> T) -> T {
        look(&self.core.read())
    }

    /// Notes a host's heartbeat. `false`: no such host. Nothing is logged unless its health turns.
    pub fn heartbeat(&self, host: &Name) -> bool {
        let now_ms = (self.clock)();
        self.monitor.lock().beat(self.core.read().state(), host, now_ms)
    }

    pub fn revision(&self) -> Revision {
        self.read(State::revision)
    }

    pub fn history(&self) -> &History {
        &self.history
    }

    /// Calls that wait for their turn.
    pub fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Lets the writer finish what is queued, take a snapshot and end.
    pub fn stop(&self) {
        // A full queue drains as long as the thread lives; a dead thread needs no stopping.
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let _ = self.queue.send(Job::Stop);
    }

    fn send(&self, job: Job) {
        // Counted before it can be taken out, so that the count never goes below zero.
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let (job, refusal) = match self.queue.try_send(job) {
            Ok(()) => return,
            Err(TrySendError::Full(job)) => (job, Refusal::Busy { retry_after_ms: 100 }),
            Err(TrySendError::Disconnected(job)) => (job, Refusal::OutcomeUnknown),
        };
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        job.answer(Err(refusal));
    }
}

impl Job {
    fn answer(self, reply: Result<Reply, Refusal>) {
        match self {
            Job::Call { answer, .. } | Job::Preview { answer, .. } | Job::Flush { answer } => {
                answer.answer(reply);
            }
            Job::Stop => {}
        }
    }

    fn is_abandoned(&self) -> bool {
        match self {
            Job::Call { answer, .. } | Job::Preview { answer, .. } => answer.has_left(),
            Job::Flush { .. } | Job::Stop => false,
        }
    }
}

struct Worker<L> {
    engine: Engine<L>,
    queue: Receiver<Job>,
    waiting: Arc<AtomicUsize>,
    clock: Clock,
    listener: Listener,
    monitor: Arc<Mutex<Monitor>>,
    judged_ms: u64,
    advanced_ms: u64,
    /// A snapshot being encoded on a thread of its own.
    encoding: Option<Receiver<Encoded>>,
    /// A snapshot being written alongside the commits.
    writing: bool,
}

impl<L: CommandLog> Worker<L> {
    fn run(mut self) -> Engine<L> {
        let mut answers = Vec::with_capacity(MAX_COMMANDS);
        loop {
            let mut stop = false;
            let mut next = self.first();
            self.tick(next.is_none());
            let started_ms = (self.clock)();
            while let Some(job) = next.take() {
                if matches!(job, Job::Stop) {
                    stop = true;
                    break;
                }
                self.work(job, &mut answers);
                let (commands, bytes) = self.engine.pending();
                let worked_ms = (self.clock)().saturating_sub(started_ms);
                if commands < MAX_COMMANDS && bytes < MAX_BYTES && worked_ms < MAX_WORK_MS {
                    next = self.next();
                }
            }
            let committed = self.commit(&mut answers);
            if stop || self.engine.failure().is_some() {
                return self.end();
            }
            self.snapshot(committed);
        }
    }

    /// Waits for a job, but not for long: time passes for reservations and heartbeats too.
    fn first(&self) -> Option<Job> {
        let due = !self.engine.read(|state| state.plans().due().is_empty());
        let patience = match (self.writing, due) {
            (true, _) => SNAPSHOT_TICK,
            (false, true) => Duration::from_millis(ADVANCE_EVERY_MS),
            (false, false) => IDLE_TICK,
        };
        match self.queue.recv_timeout(patience) {
            Ok(job) => {
                self.waiting.fetch_sub(1, Ordering::Relaxed);
                Some(job)
            }
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => Some(Job::Stop),
        }
    }

    fn next(&self) -> Option<Job> {
        let job = self.queue.try_recv().ok()?;
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        Some(job)
    }

    fn work(&mut self, job: Job, answers: &mut Vec<(Answer, Result<Reply, Refusal>)>) {
        if job.is_abandoned() {
            return;
        }
        let now_ms = (self.clock)();
        match job {
            Job::Call { deadline_ms: Some(deadline_ms), answer, .. } if deadline_ms <= now_ms => {
                answers.push((answer, Err(Refusal::DeadlinePassed)));
            }
            Job::Call { call, prepared, deadline_ms, answer } => {
                let started = Instant::now();
                let late = || deadline_ms.is_some_and(|deadline_ms| deadline_ms <= (self.clock)());
                let abandoned = || answer.has_left() || late();
                let aid = Aid { prepared, abandoned: Some(&abandoned) };
                let reply = self.engine.propose_with(&call, now_ms, aid);
                let (request, took) = (&call.request, started.elapsed());
                (self.listener)(Event::Decided { request, reply: &reply, took });
                answers.push((answer, reply));
            }
            Job::Preview { request, answer } => {
                let abandoned = || answer.has_left();
                let aid = Aid { abandoned: Some(&abandoned), ..Aid::default() };
                let reply = self.engine.preview_with(&request, now_ms, aid);
                answers.push((answer, reply));
            }
            Job::Flush { answer } => {
                let revision = self.engine.read(State::revision);
                let outcome = crate::request::Outcome::Ticked { expired: 0 };
                answers.push((answer, Ok(Reply { revision, outcome })));
            }
            Job::Stop => {}
        }
    }

    /// Every answer waits for the commit, refusals too: a refusal may rest on something that is
    /// only now becoming durable. Returns whether there was anything to commit.
    fn commit(&mut self, answers: &mut Vec<(Answer, Result<Reply, Refusal>)>) -> bool {
        let started = Instant::now();
        match self.engine.commit() {
            Ok(committed) => {
                if !committed.is_empty() {
                    let (commands, took) = (&committed, started.elapsed());
                    (self.listener)(Event::Committed { commands, took });
                }
                for (answer, reply) in answers.drain(..) {
                    answer.answer(reply);
                }
                !committed.is_empty()
            }
            Err(refusal) => {
                (self.listener)(Event::LogFailed);
                for (answer, _) in answers.drain(..) {
                    answer.answer(Err(refusal.clone()));
                }
                false
            }
        }
    }

    fn tick(&mut self, idle: bool) {
        let now_ms = (self.clock)();
        // A tick is refused only when the log has failed, and then the loop ends anyway.
        let _ = self.engine.propose(&Call::internal(Request::Tick), now_ms);
        self.advance(now_ms);
        let mut monitor = self.monitor.lock();
        if !monitor.is_in_round() {
            if now_ms.saturating_sub(self.judged_ms) < JUDGE_EVERY_MS {
                return;
            }
            self.judged_ms = now_ms;
        }
        let rows = if idle { usize::MAX } else { JUDGED_AT_ONCE };
        let verdicts = self.engine.read(|state| monitor.judge(state, now_ms, rows));
        drop(monitor);
        for (host, health) in verdicts {
            // The host may have been removed since; then there is nothing to say about it.
            let request = Request::SetHostHealth { host, health };
            let _ = self.engine.propose(&Call::internal(request), now_ms);
        }
    }

    /// Lets plans go on to their next waves.
    fn advance(&mut self, now_ms: u64) {
        if now_ms.saturating_sub(self.advanced_ms) < ADVANCE_EVERY_MS {
            return;
        }
        self.advanced_ms = now_ms;
        for plan in self.engine.read(|state| state.plans().due()) {
            // Refused only if the verifier does not agree, and then the plan is as it was.
            let _ = self.engine.propose(&Call::internal(Request::AdvancePlan { plan }), now_ms);
        }
    }

    /// Moves a snapshot one step further; never blocks on encoding or on more than one chunk.
    /// A commit carries a piece by itself; a second sync after it would only keep callers waiting.
    fn snapshot(&mut self, committed: bool) {
        if let Some(encoding) = &self.encoding {
            match encoding.try_recv() {
                Ok(encoded) => {
                    self.encoding = None;
                    self.writing = self.engine.begin_snapshot(encoded).is_ok();
                }
                Err(TryRecvError::Empty) => {}
                Err(TryRecvError::Disconnected) => self.encoding = None,
            }
            return;
        }
        if self.writing {
            if !committed || self.engine.snapshot_rides_along() == Ok(false) {
                let left = self.engine.step_snapshot();
                if left == Ok(0) {
                    self.writing = false;
                    // A failure is kept by the engine and ends the loop.
                    let _ = self.engine.finish_snapshot();
                }
            }
            return;
        }
        if !self.engine.snapshot_due() {
            return;
        }
        if let Some(freeze) = self.engine.freeze() {
            let (sender, receiver) = sync_channel(1);
            let encode = move || {
                // If the writer is gone, so is the need for a snapshot.
                let _ = sender.send(freeze.encode());
            };
            if std::thread::Builder::new().name("snapshot".into()).spawn(encode).is_ok() {
                self.encoding = Some(receiver);
            }
        }
    }

    fn end(mut self) -> Engine<L> {
        if self.engine.failure().is_none() {
            // A snapshot at the end makes the next start fast; without one the log has it all.
            let _ = self.engine.snapshot_now();
        }
        while let Some(job) = self.next() {
            job.answer(Err(Refusal::OutcomeUnknown));
        }
        self.engine
    }
}
