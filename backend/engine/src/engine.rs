//! The engine: requests in, answers out, with the log in between.
//!
//! `propose` works a request out, applies it and queues its record; `commit` makes everything
//! queued durable. No answer may leave before the `commit` after it has returned. Synchronous and
//! single-threaded: `Writer` puts it on a thread, the simulator drives it directly.

use crate::apply::Broken;
use crate::command::{Command, Entry};
use crate::core::Core;
use crate::history::History;
use crate::pace::Pace;
use crate::planted::{self, Bug};
use crate::prepared::Prepared;
use crate::recover::{self, OpenError};
use crate::request::{Call, IdempotencyKey, Outcome, Placement, Refusal, Reply, Request};
use crate::snapshots::Unwritten;
use crate::state::State;
use cluster::Revision;
use parking_lot::RwLock;
use rustc_hash::FxHashMap;
use std::sync::Arc;
use store::{CommandLog, IdempotencyEntry, LogError, Record, frame};

/// How the engine keeps its history.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// A snapshot is due after this many commands; 0 never takes one.
    pub snapshot_every: u64,
    /// Commands of history that are kept although snapshots no longer need them.
    pub retain: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self { snapshot_every: 100_000, retain: 1_000_000 }
    }
}

#[derive(Debug)]
pub struct Engine<L> {
    pub(crate) core: Arc<RwLock<Core>>,
    pub(crate) log: L,
    pub(crate) options: Options,
    pub(crate) snapshot_revision: Revision,
    /// What the log has not yet been given of a snapshot.
    pub(crate) unwritten: Option<Unwritten>,
    history: History,
    pending: Vec<Record>,
    pending_bytes: usize,
    entries: Vec<(Revision, Arc<Entry>)>,
    /// Replies under an idempotency key that the log does not have yet.
    in_flight: FxHashMap<IdempotencyKey, ([u8; 16], Reply)>,
    pace: Pace,
    failure: Option<String>,
}

/// What comes with a call beside the request.
#[derive(Default)]
pub struct Aid<'a> {
    /// A change of policies, worked out beforehand.
    pub prepared: Option<Box<Prepared>>,
    /// Whether nobody waits for the answer any more; asked while working out what takes long.
    pub abandoned: Option<&'a dyn Fn() -> bool>,
}

impl Aid<'_> {
    fn is_abandoned(&self) -> bool {
        self.abandoned.is_some_and(|abandoned| abandoned())
    }
}

impl std::fmt::Debug for Aid<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Aid").field("prepared", &self.prepared).finish_non_exhaustive()
    }
}

/// What a commit made durable, in order.
pub type Committed = Vec<(Revision, Arc<Entry>)>;

impl<L: CommandLog> Engine<L> {
    /// Recovers the state from `log`: verified record by record, refusing what does not verify.
    pub fn open(log: L, options: Options) -> Result<Self, OpenError> {
        let history = History::new(log.reader());
        let recovered = recover::recover(&history, &log.head())?;
        let pace = Pace::from(recovered.state.time_ms());
        let core = Core::new(recovered.state)?;
        Ok(Self {
            core: Arc::new(RwLock::new(core)),
            log,
            options,
            snapshot_revision: recovered.snapshot,
            unwritten: None,
            history,
            pending: Vec::new(),
            pending_bytes: 0,
            entries: Vec::new(),
            in_flight: FxHashMap::default(),
            pace,
            failure: None,
        })
    }

    /// The living state, for readers. What they see may not be durable yet: an answer made from
    /// it may leave only when its revision is committed.
    pub fn core(&self) -> Arc<RwLock<Core>> {
        Arc::clone(&self.core)
    }

    /// Reads `state` under the lock.
    pub fn read<T>(&self, read: impl FnOnce(&State) -> T) -> T {
        read(self.core.read().state())
    }

    pub fn history(&self) -> &History {
        &self.history
    }

    pub fn log(&self) -> &L {
        &self.log
    }

    /// Gives the log back, as a crash would leave it: whatever was not committed is gone.
    pub fn into_log(self) -> L {
        self.log
    }

    /// Why the engine takes nothing more, if so.
    pub fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    /// Records that wait for `commit`, and their bytes.
    pub fn pending(&self) -> (usize, usize) {
        (self.pending.len(), self.pending_bytes)
    }

    /// Works out a request, applies it and queues its record. The reply is a promise: it becomes
    /// an answer when `commit` has returned.
    pub fn propose(&mut self, call: &Call, now_ms: u64) -> Result<Reply, Refusal> {
        self.propose_with(call, now_ms, Aid::default())
    }

    /// The same with what the caller brings along.
    pub fn propose_with(
        &mut self,
        call: &Call,
        now_ms: u64,
        mut aid: Aid<'_>,
    ) -> Result<Reply, Refusal> {
        if self.failure.is_some() {
            return Err(Refusal::OutcomeUnknown);
        }
        if let Some(reply) = self.answered_before(call)? {
            return Ok(reply);
        }
        let core = Arc::clone(&self.core);
        let mut core = core.write();
        if planted::is(Bug::ExpiryByWallClock) {
            core.expire_without_a_record(now_ms);
        }
        let time_ms = self.time_of(core.state(), now_ms);
        core.prepared = aid.prepared.take();
        let worked_out = core.work_out(&call.request, time_ms, &|| aid.is_abandoned())?;
        let Some(command) = worked_out.command else {
            let outcome = self.recalled(worked_out.outcome);
            return Ok(Reply { revision: core.state().revision(), outcome });
        };
        let entry = Entry { ts_ms: time_ms, actor: call.actor.clone(), command };
        let reply = Reply { revision: core.state().revision().next(), outcome: worked_out.outcome };
        let mut record = record(call, &entry, &reply)?;
        core.apply(&entry).map_err(|broken| self.broken(broken))?;
        (record.revision, record.state_hash) = (core.state().revision().0, core.state().hash());
        if let Some(key) = &call.idempotency_key {
            self.in_flight.insert(key.clone(), (call.request.fingerprint(), reply.clone()));
        }
        self.pending_bytes = self.pending_bytes.saturating_add(record.body.len());
        self.pending.push(record);
        self.entries.push((reply.revision, Arc::new(entry)));
        Ok(reply)
    }

    /// When a command that comes in now happens, in the state's own time.
    fn time_of(&mut self, state: &State, now_ms: u64) -> u64 {
        self.pace.look(now_ms, state.time_ms(), state.reservation_count() > 0)
    }

    /// What `propose` would answer, without doing it.
    pub fn preview(&mut self, request: &Request, now_ms: u64) -> Result<Reply, Refusal> {
        self.preview_with(request, now_ms, Aid::default())
    }

    /// The same with what the caller brings along.
    pub fn preview_with(
        &mut self,
        request: &Request,
        now_ms: u64,
        mut aid: Aid<'_>,
    ) -> Result<Reply, Refusal> {
        let core = Arc::clone(&self.core);
        let mut core = core.write();
        let time_ms = self.time_of(core.state(), now_ms);
        core.prepared = aid.prepared.take();
        let worked_out = core.work_out(request, time_ms, &|| aid.is_abandoned())?;
        let outcome = self.recalled(worked_out.outcome);
        Ok(Reply { revision: core.state().revision(), outcome })
    }

    /// Makes everything proposed so far durable. After an error nobody knows what the disk has:
    /// the engine takes nothing more, and the process must restart and recover.
    pub fn commit(&mut self) -> Result<Committed, Refusal> {
        if self.failure.is_some() {
            return Err(Refusal::OutcomeUnknown);
        }
        if !self.pending.is_empty() {
            if let Err(error) = self.log.append(&self.pending) {
                return Err(self.log_failed(&error));
            }
            self.pending.clear();
            self.pending_bytes = 0;
            self.in_flight.clear();
        }
        Ok(std::mem::take(&mut self.entries))
    }

    pub(crate) fn log_failed(&mut self, error: &LogError) -> Refusal {
        self.failure = Some(error.to_string());
        Refusal::OutcomeUnknown
    }

    fn broken(&mut self, broken: Broken) -> Refusal {
        self.failure = Some(broken.to_string());
        Refusal::OutcomeUnknown
    }

    /// The stored reply to this idempotency key, if the request is the same.
    fn answered_before(&mut self, call: &Call) -> Result<Option<Reply>, Refusal> {
        let Some(key) = &call.idempotency_key else { return Ok(None) };
        let known = match self.in_flight.get(key) {
            Some(known) => Some(known.clone()),
            None => match self.history.reply(key) {
                Ok(known) => known,
                Err(error) => return Err(self.log_failed(&error)),
            },
        };
        match known {
            None => Ok(None),
            Some((hash, reply))
                if hash == call.request.fingerprint() || planted::is(Bug::IdempotencyByKeyOnly) =>
            {
                Ok(Some(reply))
            }
            Some(_) => Err(Refusal::IdempotencyConflict),
        }
    }

    /// Fills in the decisions that repeated requests point at.
    fn recalled(&self, outcome: Outcome) -> Outcome {
        match outcome {
            Outcome::Placement(placement) => Outcome::Placement(self.recall(placement)),
            Outcome::Batch(placements) => {
                Outcome::Batch(placements.into_iter().map(|it| self.recall(it)).collect())
            }
            other => other,
        }
    }

    fn recall(&self, placement: Placement) -> Placement {
        if !placement.repeated {
            return placement;
        }
        let waiting = self.entries.iter().find(|(at, _)| *at == placement.id.revision);
        let placing = match waiting {
            Some((_, entry)) => entry.command.placing(placement.id.position).cloned(),
            None => self.history.placing(placement.id).ok().flatten(),
        };
        match placing {
            Some(placing) => Placement {
                hold: placing.hold,
                decision: Some(Arc::new(placing.decision)),
                ..placement
            },
            None => placement,
        }
    }
}

/// The record of an entry, short of where it leads. Refuses what the log would refuse, because
/// once the entry is applied it is too late.
fn record(call: &Call, entry: &Entry, reply: &Reply) -> Result<Record, Refusal> {
    let body = entry.encode();
    if body.len() > frame::MAX_BODY_BYTES {
        return Err(too_long("the request", body.len(), frame::MAX_BODY_BYTES));
    }
    let idempotency = match &call.idempotency_key {
        None => None,
        Some(key) if key.as_bytes().len() > frame::MAX_KEY_BYTES => {
            let bytes = key.as_bytes().len();
            return Err(too_long("the idempotency key", bytes, frame::MAX_KEY_BYTES));
        }
        Some(key) => {
            let reply = postcard::to_stdvec(reply).unwrap_or_default();
            if reply.len() > frame::MAX_REPLY_BYTES {
                return Err(too_long("the answer to keep", reply.len(), frame::MAX_REPLY_BYTES));
            }
            Some(IdempotencyEntry {
                key: key.as_bytes().to_vec(),
                request_hash: call.request.fingerprint(),
                ts_ms: entry.ts_ms,
                reply,
            })
        }
    };
    Ok(Record { revision: 0, state_hash: [0; 32], body, idempotency })
}

fn too_long(field: &str, bytes: usize, most: usize) -> Refusal {
    let problem =
        format!("takes {bytes} bytes in the log; at most {most} fit, so send less at once");
    Refusal::Invalid { field: field.into(), problem }
}

impl Core {
    /// The planted bug: capacity comes back because a clock says so, and the log knows nothing.
    fn expire_without_a_record(&mut self, now_ms: u64) {
        let reservations = self.state.due_reservations(now_ms, usize::MAX);
        if reservations.is_empty() {
            return;
        }
        let (revision, hash) = (self.state.revision, self.state.hash);
        let actor = Call::internal(Request::Tick).actor;
        let command = Command::Expire { reservations };
        let entry = Entry { ts_ms: self.state.time_ms(), actor, command };
        if self.apply(&entry).is_ok() {
            self.state.revision = revision;
            self.state.hash = hash;
        }
    }
}
