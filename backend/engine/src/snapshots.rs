//! Taking snapshots: freeze, encode elsewhere, write alongside the log, then forget the old.

use crate::engine::Engine;
use crate::frozen::Frozen;
use crate::request::Refusal;
use cluster::Revision;
use store::{CommandLog, SnapshotMeta};

/// Bytes that are handed to the log at a time. It copies them while callers wait, so not many.
const CHUNK_BYTES: usize = 256 << 10;

/// A state with its place in the log's hash chain, ready to be encoded on any thread.
#[derive(Debug)]
pub struct Freeze {
    frozen: Frozen,
    chain_hash: [u8; 32],
}

/// An encoded snapshot, ready to be written.
#[derive(Debug)]
pub struct Encoded {
    meta: SnapshotMeta,
    bytes: Vec<u8>,
}

/// The rest of a snapshot that is being written.
#[derive(Debug)]
pub(crate) struct Unwritten {
    bytes: Vec<u8>,
    handed_over: usize,
}

impl Freeze {
    pub fn encode(&self) -> Encoded {
        let bytes = self.frozen.encode();
        let meta = SnapshotMeta {
            revision: self.frozen.revision.0,
            state_hash: self.frozen.hash,
            chain_hash: self.chain_hash,
            bytes: bytes.len() as u64,
            content_hash: *blake3::hash(&bytes).as_bytes(),
        };
        Encoded { meta, bytes }
    }
}

impl<L: CommandLog> Engine<L> {
    /// Whether enough has been logged since the last snapshot to take another.
    pub fn snapshot_due(&self) -> bool {
        let since = self.log.head().revision.saturating_sub(self.snapshot_revision.0);
        self.options.snapshot_every > 0 && since >= self.options.snapshot_every
    }

    /// Freezes the committed state. `None` while something waits for its commit.
    pub fn freeze(&mut self) -> Option<Freeze> {
        let head = self.log.head();
        let core = self.core.read();
        if core.state().revision().0 != head.revision {
            return None;
        }
        self.snapshot_revision = Revision(head.revision);
        Some(Freeze { frozen: core.state().freeze(), chain_hash: head.chain_hash })
    }

    /// Begins to write a snapshot alongside the following commits.
    pub fn begin_snapshot(&mut self, encoded: Encoded) -> Result<(), Refusal> {
        self.log.begin_snapshot(encoded.meta).map_err(|error| self.log_failed(&error))?;
        self.unwritten = Some(Unwritten { bytes: encoded.bytes, handed_over: 0 });
        self.hand_over()
    }

    /// Whether the next commit carries a piece of the snapshot.
    pub fn snapshot_rides_along(&mut self) -> Result<bool, Refusal> {
        self.hand_over()?;
        Ok(self.log.has_queued_pieces())
    }

    /// Does a bounded piece of the writing; 0 means that `finish_snapshot` has nothing to wait for.
    pub fn step_snapshot(&mut self) -> Result<u64, Refusal> {
        self.hand_over()?;
        let left = self.log.step_snapshot().map_err(|error| self.log_failed(&error))?;
        let unwritten = self.unwritten.as_ref().map_or(0, Unwritten::left);
        Ok(left.saturating_add(unwritten))
    }

    /// Gives the log the next chunk when it has written all that it has.
    fn hand_over(&mut self) -> Result<(), Refusal> {
        let Some(unwritten) = &mut self.unwritten else { return Ok(()) };
        if self.log.has_queued_pieces() {
            return Ok(());
        }
        let rest = unwritten.bytes.get(unwritten.handed_over..).unwrap_or_default();
        let Some(chunk) = rest.chunks(CHUNK_BYTES).next() else {
            self.unwritten = None;
            return Ok(());
        };
        let handed = self.log.write_snapshot_chunk(chunk);
        unwritten.handed_over = unwritten.handed_over.saturating_add(chunk.len());
        handed.map_err(|error| self.log_failed(&error))
    }

    /// Completes the snapshot and cuts the history that neither it, the one before it, nor
    /// `Options::retain` asks for.
    pub fn finish_snapshot(&mut self) -> Result<(), Refusal> {
        while self.unwritten.is_some() {
            self.step_snapshot()?;
        }
        self.log.finish_snapshot().map_err(|error| self.log_failed(&error))?;
        let snapshots = self.log.reader().snapshots().map_err(|error| self.log_failed(&error))?;
        if let [older, _] = snapshots.as_slice() {
            let head = self.log.head();
            let kept = head.revision.saturating_sub(self.options.retain).saturating_add(1);
            let first = kept.min(older.revision.saturating_add(1));
            if first > head.first {
                self.log.truncate_before(first).map_err(|error| self.log_failed(&error))?;
            }
        }
        Ok(())
    }

    /// Takes a snapshot and waits for it: at shutdown, for backups and in the simulator.
    pub fn snapshot_now(&mut self) -> Result<(), Refusal> {
        self.commit()?;
        match self.freeze() {
            Some(freeze) => {
                self.begin_snapshot(freeze.encode())?;
                self.finish_snapshot()
            }
            None => Ok(()),
        }
    }
}

impl Unwritten {
    fn left(&self) -> u64 {
        self.bytes.len().saturating_sub(self.handed_over) as u64
    }
}
