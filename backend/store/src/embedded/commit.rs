//! One transaction of the redb log: a batch, what rides along with it, and a bounded piece of
//! what is to be deleted.

use redb::{ReadableTable, ReadableTableMetadata};

use super::EmbeddedLog;
use super::tables::{
    HEAD, IDEMPOTENCY, IDEMPOTENCY_TIME, LOG, META, PIECES, SNAPSHOTS, StoredReply, failed,
    to_bytes,
};
use crate::chain;
use crate::error::LogError;
use crate::idempotency::IdempotencyLimits;
use crate::snapshot::{self, Finished};
use crate::{Head, Record};

/// Records that one commit may delete; more than a full batch adds, so that cutting gets ahead.
const CUT_PER_COMMIT: u64 = 1024;
/// Pieces of dropped snapshots that one commit may delete.
const PIECES_CUT_PER_COMMIT: u64 = 8;

/// A batch in bytes, and the head after it.
pub(super) struct Framed {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    pub(super) head: Head,
}

impl Framed {
    pub(super) fn new(head: &Head, batch: &[Record]) -> Result<Framed, LogError> {
        let mut framed =
            Framed { bytes: Vec::new(), ends: Vec::with_capacity(batch.len()), head: *head };
        let mut frame = Vec::new();
        for record in batch {
            chain::extend(&mut framed.head, record, &mut frame)?;
            framed.bytes.extend_from_slice(&frame);
            framed.ends.push(framed.bytes.len());
        }
        chain::check_batch_bytes(framed.bytes.len())?;
        Ok(framed)
    }

    fn frames(&self) -> impl Iterator<Item = &[u8]> {
        let mut from = 0;
        self.ends.iter().map(move |end| {
            let frame = self.bytes.get(from..*end).unwrap_or_default();
            from = *end;
            frame
        })
    }
}

/// What a transaction did besides adding the batch.
pub(super) struct Written {
    pub(super) oldest_stored: u64,
    pub(super) pieces: usize,
    pub(super) dropped_is_empty: bool,
}

impl EmbeddedLog {
    /// Writes in one transaction all that is due. Changes nothing in memory.
    pub(super) fn transaction(
        &self,
        batch: &[Record],
        framed: &Framed,
        done: Option<&Finished>,
    ) -> Result<Written, LogError> {
        let write = || -> Result<Written, redb::Error> {
            let tx = self.db.begin_write()?;
            let mut written =
                Written { oldest_stored: self.oldest_stored, pieces: 0, dropped_is_empty: false };
            if !batch.is_empty() || self.oldest_stored < framed.head.first {
                let mut log = tx.open_table(LOG)?;
                for (record, frame) in batch.iter().zip(framed.frames()) {
                    log.insert(record.revision, frame)?;
                }
                for _ in 0..CUT_PER_COMMIT {
                    if written.oldest_stored >= framed.head.first {
                        break;
                    }
                    log.remove(written.oldest_stored)?;
                    written.oldest_stored = written.oldest_stored.saturating_add(1);
                }
            }
            if batch.iter().any(|record| record.idempotency.is_some()) {
                self.keep_replies(&tx, batch)?;
            }
            if self.snapshot.is_some() || !self.dropped.is_empty() {
                let mut pieces = tx.open_table(PIECES)?;
                if let Some(snapshot) = &self.snapshot {
                    for (number, piece) in snapshot.due(self.options.snapshot_bytes_per_commit) {
                        pieces.insert((snapshot.id(), number), piece)?;
                        written.pieces = written.pieces.saturating_add(1);
                    }
                }
                if let Some(id) = self.dropped.front() {
                    let range = (*id, 0)..=(*id, u32::MAX);
                    let due: Vec<(u64, u32)> = pieces
                        .range(range)?
                        .take(PIECES_CUT_PER_COMMIT as usize)
                        .map(|row| row.map(|(key, _)| key.value()))
                        .collect::<Result<_, _>>()?;
                    written.dropped_is_empty = (due.len() as u64) < PIECES_CUT_PER_COMMIT;
                    for key in due {
                        pieces.remove(key)?;
                    }
                }
            }
            if let Some(done) = done {
                let mut snapshots = tx.open_table(SNAPSHOTS)?;
                snapshots.insert(done.meta.revision, to_bytes(done).as_slice())?;
                for old in snapshot::superseded(&self.kept, done) {
                    if old.meta.revision != done.meta.revision {
                        snapshots.remove(old.meta.revision)?;
                    }
                }
            }
            tx.open_table(META)?.insert(HEAD, to_bytes(&framed.head).as_slice())?;
            tx.commit()?;
            Ok(written)
        };
        write().map_err(|error| failed("writing a batch", error))
    }

    fn keep_replies(
        &self,
        tx: &redb::WriteTransaction,
        batch: &[Record],
    ) -> Result<(), redb::Error> {
        let mut replies = tx.open_table(IDEMPOTENCY)?;
        let mut by_time = tx.open_table(IDEMPOTENCY_TIME)?;
        let mut added: usize = 0;
        for record in batch {
            let Some(entry) = &record.idempotency else {
                continue;
            };
            added = added.saturating_add(1);
            let stored = StoredReply::new(record.revision, entry).to_bytes();
            if let Some(old) = replies.insert(entry.key.as_slice(), stored.as_slice())? {
                // The key was used before; only its last use decides when it may go.
                if let Some((revision, ts_ms)) = StoredReply::place(old.value()) {
                    by_time.remove((ts_ms, revision))?;
                }
            }
            by_time.insert((entry.ts_ms, record.revision), entry.key.as_slice())?;
        }
        let newest_ms = by_time.last()?.map_or(0, |(place, _)| place.value().0);
        for _ in 0..IdempotencyLimits::budget(added) {
            let keys = replies.len()?;
            let Some((place, key)) = by_time.first()?.map(|(p, k)| (p.value(), k.value().to_vec()))
            else {
                break;
            };
            if !self.options.idempotency.may_go(place.0, newest_ms, keys) {
                break;
            }
            replies.remove(key.as_slice())?;
            by_time.remove(place)?;
        }
        Ok(())
    }
}
