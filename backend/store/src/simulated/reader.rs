//! Reading the simulated log beside the writer.

use std::ops::ControlFlow;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use super::index::{Index, Place};
use super::recovery::PIECE_HEADER_BYTES;
use crate::chain::{Chain, RecordHashes};
use crate::disk::SimFile;
use crate::error::{Flaw, LogError};
use crate::record::Frame;
use crate::snapshot::{ContentCheck, SnapshotWriter};
use crate::{Head, IdempotencyEntry, LogReader, Record, SnapshotMeta};

#[derive(Clone, Debug)]
pub(super) struct SimulatedReader {
    index: Arc<RwLock<Index>>,
    /// Any file of the process that opened the log; the others are opened through it.
    process: SimFile,
    #[cfg(feature = "planted-bugs")]
    pub(super) skips_bad_records: bool,
}

impl SimulatedReader {
    pub(super) fn new(index: Arc<RwLock<Index>>, process: SimFile) -> SimulatedReader {
        SimulatedReader {
            index,
            process,
            #[cfg(feature = "planted-bugs")]
            skips_bad_records: false,
        }
    }

    /// State hash and chain hash of a record, if it is there.
    pub(super) fn hashes(&self, revision: u64) -> Result<Option<RecordHashes>, LogError> {
        let Some(place) = self.index().record(revision) else {
            return Ok(None);
        };
        let bytes = self.read(place)?;
        RecordHashes::of(revision, &bytes).map(Some)
    }

    /// Reads back written pieces of a snapshot, about `max_bytes` of them.
    pub(super) fn check_pieces(
        &self,
        snapshot: &mut SnapshotWriter,
        max_bytes: u64,
    ) -> Result<(), LogError> {
        let mut room = max_bytes;
        while let Some(number) = snapshot.next_to_check() {
            let place = self.index().pieces(snapshot.id()).get(number as usize).copied();
            let place = place.ok_or_else(|| LogError::Damaged("a piece is missing".to_owned()))?;
            let piece = self.read(place)?;
            let piece = piece.get(PIECE_HEADER_BYTES..).unwrap_or_default();
            snapshot.checked(piece);
            room = room.saturating_sub(piece.len() as u64);
            if room == 0 {
                break;
            }
        }
        Ok(())
    }

    fn index(&self) -> RwLockReadGuard<'_, Index> {
        self.index.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn read(&self, place: Place) -> Result<Vec<u8>, LogError> {
        let mut bytes = vec![0; place.bytes as usize];
        self.process
            .sibling(place.segment)
            .read_at(place.offset, &mut bytes)
            .map_err(|error| LogError::io("reading the log", &error))?;
        Ok(bytes)
    }

    fn walk(
        &self,
        head: &Head,
        mut chain: Chain,
        visit: &mut dyn FnMut(Frame<'_>) -> ControlFlow<()>,
    ) -> Result<(), LogError> {
        let from = chain.next();
        if from < head.first {
            return Err(LogError::Cut { revision: from, first: head.first });
        }
        for revision in from..=head.revision {
            let Some(place) = self.index().record(revision) else {
                #[cfg(feature = "planted-bugs")]
                if self.skips_bad_records {
                    chain.skip();
                    continue;
                }
                return Err(LogError::corrupt(revision, Flaw::Missing));
            };
            let bytes = self.read(place)?;
            if visit(chain.push(&bytes)?).is_break() {
                return Ok(());
            }
        }
        chain.end(head)
    }
}

impl LogReader for SimulatedReader {
    fn get(&self, revision: u64) -> Result<Option<Record>, LogError> {
        let index = self.index();
        if revision < index.head.first {
            return Ok(None);
        }
        let Some(place) = index.record(revision) else {
            return Ok(None);
        };
        drop(index);
        let bytes = self.read(place)?;
        let record = Chain::order_from(revision).push(&bytes)?.to_record();
        Ok(Some(record))
    }

    fn scan(
        &self,
        from: u64,
        visit: &mut dyn FnMut(Record) -> ControlFlow<()>,
    ) -> Result<(), LogError> {
        let head = self.index().head;
        let chain = Chain::order_from(from.max(1));
        self.walk(&head, chain, &mut |frame| visit(frame.to_record()))
    }

    fn verify(&self, from: u64) -> Result<Head, LogError> {
        let head = self.index().head;
        let chain = Chain::hashed_from(from.max(head.first));
        self.walk(&head, chain, &mut |_| ControlFlow::Continue(()))?;
        Ok(head)
    }

    fn snapshots(&self) -> Result<Vec<SnapshotMeta>, LogError> {
        Ok(self.index().kept.iter().map(|kept| kept.meta).collect())
    }

    fn read_snapshot(
        &self,
        revision: u64,
        visit: &mut dyn FnMut(&[u8]) -> ControlFlow<()>,
    ) -> Result<bool, LogError> {
        let index = self.index();
        let mut kept = index.kept.iter();
        let snapshot = kept
            .find(|kept| kept.meta.revision == revision)
            .ok_or(LogError::NoSuchSnapshot { revision })?;
        let mut check = ContentCheck::new(snapshot.meta);
        let places = index.pieces(snapshot.id).to_vec();
        drop(index);
        for place in places {
            let piece = self.read(place)?;
            let piece = piece.get(PIECE_HEADER_BYTES..).unwrap_or_default();
            check.push(piece);
            if visit(piece).is_break() {
                return Ok(false);
            }
        }
        check.end()?;
        Ok(true)
    }

    fn idempotency(&self, key: &[u8]) -> Result<Option<IdempotencyEntry>, LogError> {
        Ok(self.index().reply(key).cloned())
    }

    fn clone_box(&self) -> Box<dyn LogReader> {
        Box::new(self.clone())
    }
}
