//! Reading the past: stored replies, decisions, and the state at any revision that is kept.

use crate::apply::apply;
use crate::command::{Command, Entry, Placing};
use crate::core::Core;
use crate::frozen::Frozen;
use crate::recover::OpenError;
use crate::request::{IdempotencyKey, PlaceRequest, Reply};
use crate::state::{DecisionId, State};
use cluster::{Decision, Revision};
use std::ops::ControlFlow;
use std::sync::mpsc::sync_channel;
use store::{LogError, LogReader, Record};

/// Read access to the log, usable from any thread while the writer goes on.
#[derive(Debug)]
pub struct History {
    reader: Box<dyn LogReader>,
}

impl Clone for History {
    fn clone(&self) -> Self {
        Self { reader: self.reader.clone_box() }
    }
}

/// A recorded decision beside the one that the same inputs give now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replay {
    pub id: DecisionId,
    pub recorded: Decision,
    pub recomputed: Decision,
}

impl Replay {
    /// Whether the decision came out bit for bit as it was recorded.
    pub fn is_exact(&self) -> bool {
        self.recorded == self.recomputed
    }
}

impl History {
    pub fn new(reader: Box<dyn LogReader>) -> Self {
        Self { reader }
    }

    /// The reply that is stored under an idempotency key, with the hash of its request.
    pub fn reply(&self, key: &IdempotencyKey) -> Result<Option<([u8; 16], Reply)>, LogError> {
        let Some(entry) = self.reader.idempotency(key.as_bytes())? else { return Ok(None) };
        let reply = postcard::from_bytes(&entry.reply).ok();
        Ok(reply.map(|reply| (entry.request_hash, reply)))
    }

    /// The command at a revision; `None` when it is older than what is kept or not there yet.
    pub fn entry(&self, revision: Revision) -> Result<Option<Entry>, OpenError> {
        match self.reader.get(revision.0)? {
            Some(record) => decode(&record).map(Some),
            None => Ok(None),
        }
    }

    pub fn placing(&self, id: DecisionId) -> Result<Option<Placing>, OpenError> {
        let entry = self.entry(id.revision)?;
        Ok(entry.and_then(|entry| entry.command.placing(id.position).cloned()))
    }

    /// The state as it was at `revision`, from the nearest snapshot before it and the log since.
    pub fn state_at(&self, revision: Revision) -> Result<Option<State>, OpenError> {
        let mut state = self.newest_snapshot(revision)?.unwrap_or_default();
        if state.revision() < revision {
            self.roll_forward(&mut state, revision)?;
        }
        Ok((state.revision() == revision).then_some(state))
    }

    /// Computes a recorded decision again from the state that it was made on.
    pub fn replay(&self, id: DecisionId) -> Result<Option<Replay>, OpenError> {
        let Some(entry) = self.entry(id.revision)? else { return Ok(None) };
        let Some(recorded) = entry.command.placing(id.position).map(|it| it.decision.clone())
        else {
            return Ok(None);
        };
        let Some(state) = self.state_at(Revision(id.revision.0.saturating_sub(1)))? else {
            return Ok(None);
        };
        let mut core = Core::new(state)?;
        let recomputed = match &entry.command {
            Command::Place(placing) => core.decide(&asked(placing)).ok(),
            Command::PlaceBatch { atomic, placings } => {
                let requests: Vec<_> = placings.iter().map(asked).collect();
                let decided = core.decide_batch(&requests, *atomic, &|| false).ok();
                decided.and_then(|decided| decided.into_iter().nth(id.position as usize))
            }
            _ => None,
        };
        Ok(recomputed.map(|placing| Replay { id, recorded, recomputed: placing.decision }))
    }

    /// The newest snapshot at or before `limit` that reads back whole and matches its hash.
    pub(crate) fn newest_snapshot(&self, limit: Revision) -> Result<Option<State>, OpenError> {
        let mut snapshots = self.reader.snapshots()?;
        snapshots.retain(|meta| meta.revision <= limit.0);
        snapshots.sort_by_key(|meta| meta.revision);
        for meta in snapshots.iter().rev() {
            let mut bytes = Vec::with_capacity(usize::try_from(meta.bytes).unwrap_or(0));
            let read = self.reader.read_snapshot(meta.revision, &mut |chunk| {
                bytes.extend_from_slice(chunk);
                ControlFlow::Continue(())
            });
            // One that does not read back is as good as none: the one before it, or the whole
            // log, leads to the same state, and if neither is there the gap is reported.
            let intact = matches!(read, Ok(true));
            let frozen = intact.then(|| Frozen::decode(&bytes).ok()).flatten();
            let known = |frozen: &Frozen| {
                frozen.hash == meta.state_hash && frozen.revision.0 == meta.revision
            };
            if let Some(frozen) = frozen.filter(known) {
                return Ok(Some(frozen.thaw()));
            }
        }
        Ok(None)
    }

    /// Applies every record after the state's revision up to `limit`, checking that each one
    /// leaves the state hash that was logged with it.
    pub(crate) fn roll_forward(&self, state: &mut State, limit: Revision) -> Result<(), OpenError> {
        let from = state.revision().next();
        if limit.0.saturating_sub(from.0) < WORTH_A_THREAD {
            return self.scan(from, limit, |record| roll(state, &decoded(record)?));
        }
        // Reading and decoding on one core, applying on the other.
        std::thread::scope(|scope| {
            let (sender, receiver) = sync_channel::<Vec<Decoded>>(4);
            let reader = scope.spawn(move || {
                let mut chunk = Vec::with_capacity(CHUNK);
                self.scan(from, limit, |record| {
                    chunk.push(decoded(record)?);
                    if chunk.len() == CHUNK {
                        // A receiver that is gone has met an error, which it reports itself.
                        let _ =
                            sender.send(std::mem::replace(&mut chunk, Vec::with_capacity(CHUNK)));
                    }
                    Ok(())
                })?;
                let _ = sender.send(chunk);
                Ok(())
            });
            for decoded in receiver.into_iter().flatten() {
                roll(state, &decoded)?;
            }
            reader.join().unwrap_or(Ok(()))
        })
    }

    /// Visits the records from `from` to `limit` until one of them is trouble.
    fn scan(
        &self,
        from: Revision,
        limit: Revision,
        mut visit: impl FnMut(&Record) -> Result<(), OpenError>,
    ) -> Result<(), OpenError> {
        let mut trouble = None;
        self.reader.scan(from.0, &mut |record| {
            if record.revision > limit.0 {
                return ControlFlow::Break(());
            }
            match visit(&record) {
                Ok(()) => ControlFlow::Continue(()),
                Err(error) => {
                    trouble = Some(error);
                    ControlFlow::Break(())
                }
            }
        })?;
        trouble.map_or(Ok(()), Err)
    }
}

/// What was asked for when this was decided.
pub(crate) fn asked(placing: &Placing) -> PlaceRequest {
    PlaceRequest {
        vm: placing.vm.clone(),
        strategy: placing.strategy,
        hold_ttl_ms: None,
        pinned: placing.pinned.clone(),
        among: placing.among.clone(),
    }
}

/// From this many records on, a replay uses a second thread.
const WORTH_A_THREAD: u64 = 20_000;
/// Records that change threads together.
const CHUNK: usize = 512;

/// A record whose command is known, with the state hash that it was logged with.
struct Decoded {
    revision: Revision,
    state_hash: [u8; 32],
    entry: Entry,
}

fn decoded(record: &Record) -> Result<Decoded, OpenError> {
    let (revision, state_hash) = (Revision(record.revision), record.state_hash);
    Ok(Decoded { revision, state_hash, entry: decode(record)? })
}

fn roll(state: &mut State, decoded: &Decoded) -> Result<(), OpenError> {
    let expected = state.revision().next();
    if decoded.revision != expected {
        return Err(OpenError::Gap { expected, found: decoded.revision });
    }
    apply(state, &decoded.entry)?;
    if state.hash() != decoded.state_hash {
        return Err(OpenError::HashMismatch { revision: state.revision() });
    }
    Ok(())
}

fn decode(record: &Record) -> Result<Entry, OpenError> {
    let revision = Revision(record.revision);
    Entry::decode(&record.body).map_err(|_| OpenError::Unreadable { revision })
}

impl Command {
    /// The placing at `position`, if the command is a decision.
    pub fn placing(&self, position: u32) -> Option<&Placing> {
        match self {
            Command::Place(placing) if position == 0 => Some(placing),
            Command::PlaceBatch { placings, .. } => placings.get(position as usize),
            _ => None,
        }
    }
}
