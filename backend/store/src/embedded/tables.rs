//! The tables of the redb file, the encoding of their small rows, and redb's errors in our words.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use redb::{
    Database, Durability, ReadTransaction, ReadableDatabase, TableDefinition, WriteTransaction,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::IdempotencyEntry;
use crate::error::LogError;

/// Revision to framed record.
pub(super) const LOG: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("log");
/// Revision to a finished snapshot's row.
pub(super) const SNAPSHOTS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("snapshots");
/// Snapshot id and number to a piece of its content.
pub(super) const PIECES: TableDefinition<'_, (u64, u32), &[u8]> = TableDefinition::new("pieces");
/// Idempotency key to [`StoredReply`].
pub(super) const IDEMPOTENCY: TableDefinition<'_, &[u8], &[u8]> =
    TableDefinition::new("idempotency");
/// Time and revision to idempotency key: which goes first.
pub(super) const IDEMPOTENCY_TIME: TableDefinition<'_, (u64, u64), &[u8]> =
    TableDefinition::new("idempotency_time");
/// The rows below. This table must stay readable for every version, or none can say who wrote it.
pub(super) const META: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("meta");

pub(super) const FORMAT: &str = "format";
pub(super) const WRITER: &str = "writer";
pub(super) const HEAD: &str = "head";

/// A row of the idempotency table: place in time, checksum, request hash, reply.
#[derive(Debug)]
pub(super) struct StoredReply<'a> {
    revision: u64,
    ts_ms: u64,
    request_hash: [u8; 16],
    reply: &'a [u8],
}

impl<'a> StoredReply<'a> {
    pub(super) fn new(revision: u64, entry: &'a IdempotencyEntry) -> StoredReply<'a> {
        StoredReply {
            revision,
            ts_ms: entry.ts_ms,
            request_hash: entry.request_hash,
            reply: &entry.reply,
        }
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; 4];
        bytes.extend_from_slice(&self.revision.to_le_bytes());
        bytes.extend_from_slice(&self.ts_ms.to_le_bytes());
        bytes.extend_from_slice(&self.request_hash);
        bytes.extend_from_slice(self.reply);
        if let Some((place, rest)) = bytes.split_first_chunk_mut::<4>() {
            *place = crc32c::crc32c(rest).to_le_bytes();
        }
        bytes
    }

    fn parse(bytes: &'a [u8]) -> Option<StoredReply<'a>> {
        let (crc, rest) = bytes.split_first_chunk::<4>()?;
        if crc32c::crc32c(rest) != u32::from_le_bytes(*crc) {
            return None;
        }
        let (revision, rest) = rest.split_first_chunk::<8>()?;
        let (ts_ms, rest) = rest.split_first_chunk::<8>()?;
        let (request_hash, reply) = rest.split_first_chunk::<16>()?;
        Some(StoredReply {
            revision: u64::from_le_bytes(*revision),
            ts_ms: u64::from_le_bytes(*ts_ms),
            request_hash: *request_hash,
            reply,
        })
    }

    /// Revision and time of a stored row.
    pub(super) fn place(bytes: &[u8]) -> Option<(u64, u64)> {
        StoredReply::parse(bytes).map(|stored| (stored.revision, stored.ts_ms))
    }

    pub(super) fn entry(key: &[u8], bytes: &[u8]) -> Result<IdempotencyEntry, LogError> {
        let stored = StoredReply::parse(bytes).ok_or_else(|| {
            let key = String::from_utf8_lossy(key);
            LogError::Damaged(format!("the stored reply for key {key:?} is unreadable"))
        })?;
        Ok(IdempotencyEntry {
            key: key.to_vec(),
            request_hash: stored.request_hash,
            ts_ms: stored.ts_ms,
            reply: stored.reply.to_vec(),
        })
    }
}

/// Small rows carry their own checksum, since redb checks its pages only when it repairs.
pub(super) fn to_bytes<T: Serialize>(row: &T) -> Vec<u8> {
    // Encoding plain fixed-size data into memory cannot fail; an empty row would be refused.
    let mut bytes = postcard::to_stdvec(row).unwrap_or_default();
    let crc = crc32c::crc32c(&bytes);
    bytes.extend_from_slice(&crc.to_le_bytes());
    bytes
}

pub(super) fn from_bytes<T: DeserializeOwned>(what: &str, bytes: &[u8]) -> Result<T, LogError> {
    let unreadable = || LogError::Damaged(format!("{what} is unreadable"));
    let (row, crc) = bytes.split_last_chunk::<4>().ok_or_else(unreadable)?;
    if crc32c::crc32c(row) != u32::from_le_bytes(*crc) {
        return Err(unreadable());
    }
    postcard::from_bytes(row).map_err(|_| unreadable())
}

/// redb's errors by what a caller can do about them.
pub(super) fn failed(during: &'static str, error: redb::Error) -> LogError {
    match error {
        redb::Error::Io(error) => LogError::io(during, &error),
        redb::Error::DatabaseAlreadyOpen => LogError::Locked,
        redb::Error::Corrupted(what) => LogError::Damaged(what),
        redb::Error::UpgradeRequired(version) => LogError::Damaged(format!(
            "its file format {version} is of an older redb: start the version that wrote it"
        )),
        other => LogError::Io { during, reason: other.to_string() },
    }
}

/// redb panics on some damaged pages; here that is one more way for a log to be damaged.
pub(super) fn guarded<T>(
    during: &'static str,
    act: impl FnOnce() -> Result<T, LogError>,
) -> Result<T, LogError> {
    catch_unwind(AssertUnwindSafe(act)).unwrap_or_else(|panic| {
        let reason = panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| panic.downcast_ref::<&str>().copied())
            .unwrap_or("no reason given");
        Err(LogError::Damaged(format!("{during} ran into: {reason}")))
    })
}

/// A database whose closing may meet damaged pages as well.
pub(super) struct Guarded(Option<Database>);

impl Guarded {
    pub(super) fn new(db: Database) -> Guarded {
        Guarded(Some(db))
    }

    pub(super) fn begin_read(&self) -> Result<ReadTransaction, redb::Error> {
        let db = self.0.as_ref().ok_or(redb::Error::DatabaseClosed)?;
        Ok(db.begin_read()?)
    }

    /// A transaction that is durable when it is committed.
    pub(super) fn begin_write(&self) -> Result<WriteTransaction, redb::Error> {
        let db = self.0.as_ref().ok_or(redb::Error::DatabaseClosed)?;
        let mut tx = db.begin_write()?;
        tx.set_durability(Durability::Immediate)?;
        Ok(tx)
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        let db = self.0.take();
        let _ = guarded("closing the log", || {
            drop(db);
            Ok(())
        });
    }
}

impl fmt::Debug for Guarded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Guarded")
    }
}
