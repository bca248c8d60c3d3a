//! Taking snapshots: freeze, encode elsewhere, write alongside the log, then forget the old.

use crate::engine::Engine;
use crate::frozen::Frozen;
use crate::request::Refusal;
use cluster::Revision;
use store::{CommandLog, SnapshotMeta};

/// Largest piece that is handed to the log at a time.
const CHUNK_BYTES: usize = 1 << 20;

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

    /// Hands an encoded snapshot to the log, which writes it alongside the following commits.
    pub fn begin_snapshot(&mut self, encoded: &Encoded) -> Result<(), Refusal> {
        self.log.begin_snapshot(encoded.meta).map_err(|error| self.log_failed(&error))?;
        for chunk in encoded.bytes.chunks(CHUNK_BYTES) {
            self.log.write_snapshot_chunk(chunk).map_err(|error| self.log_failed(&error))?;
        }
        Ok(())
    }

    /// Whether the next commits carry a piece of the snapshot each.
    pub fn snapshot_rides_along(&self) -> bool {
        self.log.has_queued_pieces()
    }

    /// Does a bounded piece of the writing; 0 means that `finish_snapshot` has nothing to wait for.
    pub fn step_snapshot(&mut self) -> Result<u64, Refusal> {
        self.log.step_snapshot().map_err(|error| self.log_failed(&error))
    }

    /// Completes the snapshot and cuts the history that neither it, the one before it, nor
    /// `Options::retain` asks for.
    pub fn finish_snapshot(&mut self) -> Result<(), Refusal> {
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
                self.begin_snapshot(&freeze.encode())?;
                self.finish_snapshot()
            }
            None => Ok(()),
        }
    }
}
