//! Reading the redb log beside the writer: every call sees one consistent moment.

use std::ops::ControlFlow;
use std::sync::{Arc, Weak};

use redb::{ReadTransaction, ReadableTable};

use super::tables::{
    Guarded, HEAD, IDEMPOTENCY, LOG, META, PIECES, SNAPSHOTS, StoredReply, failed, from_bytes,
    guarded,
};
use super::{missing, open};
use crate::chain::{Chain, RecordHashes};
use crate::error::{Flaw, LogError};
use crate::record::Frame;
use crate::snapshot::{ContentCheck, Finished, SnapshotWriter};
use crate::{Head, IdempotencyEntry, LogReader, Record, SnapshotMeta};

const READ: &str = "reading the log";

/// Holds the database weakly: a forgotten reader must not keep the file locked.
#[derive(Clone, Debug)]
pub(super) struct EmbeddedReader {
    db: Weak<Guarded>,
}

impl EmbeddedReader {
    pub(super) fn new(db: &Arc<Guarded>) -> EmbeddedReader {
        EmbeddedReader { db: Arc::downgrade(db) }
    }

    /// State hash and chain hash of a record, if it is there.
    pub(super) fn hashes(&self, revision: u64) -> Result<Option<RecordHashes>, LogError> {
        self.read(|tx| {
            let row = open(tx, LOG)?.get(revision).map_err(broken)?;
            row.map(|row| RecordHashes::of(revision, row.value())).transpose()
        })
    }

    /// Reads back written pieces of a snapshot, about `max_bytes` of them.
    pub(super) fn check_pieces(
        &self,
        snapshot: &mut SnapshotWriter,
        max_bytes: u64,
    ) -> Result<(), LogError> {
        self.read(|tx| {
            let pieces = open(tx, PIECES)?;
            let mut room = max_bytes;
            while let Some(number) = snapshot.next_to_check() {
                let row = pieces.get((snapshot.id(), number)).map_err(broken)?;
                let row = row.ok_or_else(|| missing("a piece of the snapshot"))?;
                snapshot.checked(row.value());
                room = room.saturating_sub(row.value().len() as u64);
                if room == 0 {
                    break;
                }
            }
            Ok(())
        })
    }

    fn read<T>(
        &self,
        act: impl FnOnce(&ReadTransaction) -> Result<T, LogError>,
    ) -> Result<T, LogError> {
        let db = self.db.upgrade().ok_or(LogError::Closed)?;
        guarded(READ, || {
            let tx = db.begin_read().map_err(|e| failed(READ, e))?;
            act(&tx)
        })
    }

    /// Walks the frames from `from` to the head through `chain`.
    fn walk(
        tx: &ReadTransaction,
        head: &Head,
        mut chain: Chain,
        visit: &mut dyn FnMut(Frame<'_>) -> ControlFlow<()>,
    ) -> Result<(), LogError> {
        let from = chain.next();
        if from < head.first {
            return Err(LogError::Cut { revision: from, first: head.first });
        }
        let log = open(tx, LOG)?;
        for row in log.range(from..).map_err(broken)? {
            let (key, bytes) = row.map_err(broken)?;
            if key.value() != chain.next() {
                return Err(LogError::corrupt(chain.next(), Flaw::Missing));
            }
            if visit(chain.push(bytes.value())?).is_break() {
                return Ok(());
            }
        }
        chain.end(head)
    }
}

impl LogReader for EmbeddedReader {
    fn get(&self, revision: u64) -> Result<Option<Record>, LogError> {
        self.read(|tx| {
            let head = head(tx)?;
            if revision < head.first || revision > head.revision {
                return Ok(None);
            }
            let row = open(tx, LOG)?.get(revision).map_err(broken)?;
            let row = row.ok_or(LogError::corrupt(revision, Flaw::Missing))?;
            let frame = Chain::order_from(revision).push(row.value())?.to_record();
            Ok(Some(frame))
        })
    }

    fn scan(
        &self,
        from: u64,
        visit: &mut dyn FnMut(Record) -> ControlFlow<()>,
    ) -> Result<(), LogError> {
        self.read(|tx| {
            let chain = Chain::order_from(from.max(1));
            Self::walk(tx, &head(tx)?, chain, &mut |frame| visit(frame.to_record()))
        })
    }

    fn verify(&self, from: u64) -> Result<Head, LogError> {
        self.read(|tx| {
            let head = head(tx)?;
            let chain = Chain::hashed_from(from.max(head.first));
            Self::walk(tx, &head, chain, &mut |_| ControlFlow::Continue(()))?;
            Ok(head)
        })
    }

    fn snapshots(&self) -> Result<Vec<SnapshotMeta>, LogError> {
        self.read(|tx| {
            let rows = open(tx, SNAPSHOTS)?;
            let mut metas = Vec::new();
            for row in rows.iter().map_err(broken)? {
                let (_, row) = row.map_err(broken)?;
                metas.push(from_bytes::<Finished>("a snapshot's row", row.value())?.meta);
            }
            Ok(metas)
        })
    }

    fn read_snapshot(
        &self,
        revision: u64,
        visit: &mut dyn FnMut(&[u8]) -> ControlFlow<()>,
    ) -> Result<bool, LogError> {
        self.read(|tx| {
            let row = open(tx, SNAPSHOTS)?.get(revision).map_err(broken)?;
            let row = row.ok_or(LogError::NoSuchSnapshot { revision })?;
            let snapshot: Finished = from_bytes("a snapshot's row", row.value())?;
            let pieces = open(tx, PIECES)?;
            let mut check = ContentCheck::new(snapshot.meta);
            for number in 0..snapshot.pieces {
                let piece = pieces.get((snapshot.id, number)).map_err(broken)?;
                let piece = piece.ok_or_else(|| LogError::CorruptSnapshot {
                    revision,
                    what: format!("piece {number} is missing"),
                })?;
                check.push(piece.value());
                if visit(piece.value()).is_break() {
                    return Ok(false);
                }
            }
            check.end()?;
            Ok(true)
        })
    }

    fn idempotency(&self, key: &[u8]) -> Result<Option<IdempotencyEntry>, LogError> {
        self.read(|tx| {
            let row = open(tx, IDEMPOTENCY)?.get(key).map_err(broken)?;
            row.map(|row| StoredReply::entry(key, row.value())).transpose()
        })
    }

    fn clone_box(&self) -> Box<dyn LogReader> {
        Box::new(self.clone())
    }
}

fn head(tx: &ReadTransaction) -> Result<Head, LogError> {
    let row = open(tx, META)?.get(HEAD).map_err(broken)?;
    let row = row.ok_or_else(|| missing("the head"))?;
    from_bytes("the head", row.value())
}

fn broken(error: redb::StorageError) -> LogError {
    failed(READ, error.into())
}
