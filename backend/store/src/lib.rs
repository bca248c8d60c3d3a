//! The durable command log: the one place from which a crashed service comes back.
//!
//! It keeps records, snapshots and the idempotency table, and knows them as bytes: what a
//! command means is the engine's. A batch is there entirely or not at all, `Ok` means that it
//! survives a power cut, and a bad record is refused by its revision, never skipped.
//!
//! Two implementations of one trait: [`EmbeddedLog`] on redb for real disks, [`SimulatedLog`]
//! on a [`SimDisk`] for the simulator. One suite of tests holds both to the same contract.
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]
#![cfg_attr(
    test,
    allow(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects
    )
)]

mod chain;
mod disk;
mod embedded;
mod error;
mod idempotency;
mod record;
mod simulated;
mod snapshot;

use std::fmt::Debug;
use std::ops::ControlFlow;

use serde::{Deserialize, Serialize};

pub use disk::{DiskOptions, DiskStats, SimDisk, SimFile};
pub use embedded::{EmbeddedLog, Options};
pub use error::{Flaw, LogError};
pub use idempotency::IdempotencyLimits;
#[cfg(feature = "planted-bugs")]
pub use simulated::PlantedBug;
pub use simulated::{SimulatedLog, SimulatedOptions};

/// The framing of one record, shared by every log. Public so that it can be fuzzed.
pub mod frame {
    pub use crate::record::{
        FRAME_VERSION, Frame, IdempotencyRef, MAX_BODY_BYTES, MAX_KEY_BYTES, MAX_REPLY_BYTES,
        decode, encode,
    };
}

/// The log's file within a data directory.
pub const LOG_FILE: &str = "commands.redb";

/// Format of a whole log. A log of any other format is refused when it is opened.
pub const LOG_FORMAT: u32 = 3;

/// One logged command with what it made of the state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// One more than the record before; the first is 1.
    pub revision: u64,
    /// The engine's state hash after applying the command.
    pub state_hash: [u8; 32],
    pub body: Vec<u8>,
    pub idempotency: Option<IdempotencyEntry>,
}

/// The reply that a retry of the same request gets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdempotencyEntry {
    pub key: Vec<u8>,
    pub request_hash: [u8; 16],
    pub ts_ms: u64,
    pub reply: Vec<u8>,
}

/// What a snapshot claims to be. `bytes` and `content_hash` (BLAKE3) describe its chunks joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotMeta {
    /// The last record whose effect is in the snapshot.
    pub revision: u64,
    pub state_hash: [u8; 32],
    /// Chain hash of that record, as [`Head::chain_hash`] showed it.
    pub chain_hash: [u8; 32],
    pub bytes: u64,
    pub content_hash: [u8; 32],
}

/// Where a log ends and where it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// The last durable revision; 0 for an empty log.
    pub revision: u64,
    pub state_hash: [u8; 32],
    /// Hash of the last framed record, which holds the hash of the one before.
    pub chain_hash: [u8; 32],
    /// The oldest revision that can still be read; 1 until something is cut.
    pub first: u64,
}

impl Head {
    /// The head of a log without records.
    pub const EMPTY: Head =
        Head { revision: 0, state_hash: [0; 32], chain_hash: [0; 32], first: 1 };
}

/// The writer's side. There is one writer; everybody else takes a [`LogReader`].
///
/// A failed write or sync leaves it unknown what the disk holds, so it poisons the log: every
/// later call that could write returns [`LogError::Poisoned`] until the log is opened again.
/// Errors about the arguments (a revision that does not follow, a size over a limit, a snapshot
/// that contradicts the log) change nothing and poison nothing.
pub trait CommandLog: Send + Debug {
    /// Writes the batch in one durable step. `Ok`: all of it survives a power cut. `Err` other
    /// than about the arguments: all of it or nothing is there, and only reopening tells which.
    fn append(&mut self, batch: &[Record]) -> Result<(), LogError>;

    /// The last durable record and the first retained one.
    fn head(&self) -> Head;

    /// A handle that reads durable records while the writer goes on.
    fn reader(&self) -> Box<dyn LogReader>;

    /// Starts a snapshot, and drops one that was begun and not finished.
    fn begin_snapshot(&mut self, meta: SnapshotMeta) -> Result<(), LogError>;

    /// Queues a piece of the snapshot. It is written with the following appends, a bounded number
    /// of bytes each, or by [`CommandLog::step_snapshot`].
    fn write_snapshot_chunk(&mut self, chunk: &[u8]) -> Result<(), LogError>;

    /// Whether pieces of a snapshot still wait for the following appends.
    fn has_queued_pieces(&self) -> bool;

    /// Does a bounded piece of the snapshot's work now (writes queued bytes, or reads written
    /// ones back) and returns how many bytes of work are left. For idle moments.
    fn step_snapshot(&mut self) -> Result<u64, LogError>;

    /// Does all work that is left, compares the content hash with what was read back from the
    /// disk, and only then counts the snapshot as taken and forgets all but the newest two.
    fn finish_snapshot(&mut self) -> Result<(), LogError>;

    /// Forgets records older than `revision`. Refused as long as a replay from the older of the
    /// two kept snapshots, or from zero while there are fewer than two, would need them.
    fn truncate_before(&mut self, revision: u64) -> Result<(), LogError>;

    /// Whether the space for emergencies is there. Without it, nothing should be taken on that can
    /// be refused: what little room is left belongs to commands that free capacity.
    fn has_reserve(&self) -> bool {
        true
    }

    /// Gives up the space that was kept for the day the disk is full; false if there is none.
    /// Works on a poisoned log, since running out of space is what poisons it.
    fn release_reserve(&mut self) -> Result<bool, LogError> {
        Ok(false)
    }
}

/// Reads what is durable. Handles stay valid until the log is dropped.
pub trait LogReader: Send + Sync + Debug {
    /// The record, or `None` if it was never written or has been cut.
    fn get(&self, revision: u64) -> Result<Option<Record>, LogError>;

    /// Visits the records from `from` to the head in order. Each one's checksum and place are
    /// checked; the hash chain is not (see [`LogReader::verify`]).
    fn scan(
        &self,
        from: u64,
        visit: &mut dyn FnMut(Record) -> ControlFlow<()>,
    ) -> Result<(), LogError>;

    /// Checks the records from `from` (or the oldest retained one) to the head: checksums, order,
    /// hash chain, and that the chain ends in the head that was returned.
    fn verify(&self, from: u64) -> Result<Head, LogError>;

    /// The finished snapshots, oldest first.
    fn snapshots(&self) -> Result<Vec<SnapshotMeta>, LogError>;

    /// Visits the bytes of a snapshot in order. Length and content hash are known to match only
    /// when this returns `Ok(true)`; until then the caller must not use what it saw. `Ok(false)`:
    /// the visitor stopped it.
    fn read_snapshot(
        &self,
        revision: u64,
        visit: &mut dyn FnMut(&[u8]) -> ControlFlow<()>,
    ) -> Result<bool, LogError>;

    /// The stored reply for a key, while it is kept.
    fn idempotency(&self, key: &[u8]) -> Result<Option<IdempotencyEntry>, LogError>;

    fn clone_box(&self) -> Box<dyn LogReader>;
}

impl Clone for Box<dyn LogReader> {
    fn clone(&self) -> Self {
        self.clone_box()
    }
}
