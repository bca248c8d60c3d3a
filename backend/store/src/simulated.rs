//! The log for the simulator: append-only segments on a [`SimDisk`], fast to write and reopen.
//!
//! Promises what the embedded log promises, on a disk that loses and tears what was not synced.
//! When it is opened it reads everything: a batch that the file ends in the middle of was never
//! acknowledged and is cut off; anything else that is wrong is refused by its revision.

mod index;
mod reader;
mod recovery;
mod segment;

use std::io;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use serde::Serialize;

use crate::chain;
use crate::disk::{SimDisk, SimFile};
use crate::error::LogError;
use crate::idempotency::IdempotencyLimits;
use crate::snapshot::{self, Finished, SnapshotWriter};
use crate::{CommandLog, Head, LOG_FORMAT, LogReader, Record, SnapshotMeta};
use index::{Index, Place};
use reader::SimulatedReader;
use segment::{BATCH_HEADER_BYTES, BatchHeader, Entry, Kind, SegmentHeader};

#[derive(Clone, Copy, Debug)]
pub struct SimulatedOptions {
    /// A segment that has grown to this size is followed by a new one.
    pub segment_bytes: u64,
    /// Snapshot bytes that ride along with one commit.
    pub snapshot_bytes_per_commit: u64,
    pub idempotency: IdempotencyLimits,
    #[cfg(feature = "planted-bugs")]
    pub planted: Option<PlantedBug>,
}

impl Default for SimulatedOptions {
    fn default() -> Self {
        SimulatedOptions {
            segment_bytes: 1 << 20,
            snapshot_bytes_per_commit: 256 << 10,
            idempotency: IdempotencyLimits::default(),
            #[cfg(feature = "planted-bugs")]
            planted: None,
        }
    }
}

/// A mistake made on purpose, so that the simulator can show that it would be found.
#[cfg(feature = "planted-bugs")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlantedBug {
    /// A batch is acknowledged when it is written; the sync comes with the next one.
    AckBeforeSync,
    /// Recovery leaves out a record that it cannot read.
    SkipBadRecord,
}

/// A [`CommandLog`] on a simulated disk.
#[derive(Debug)]
pub struct SimulatedLog {
    disk: SimDisk,
    options: SimulatedOptions,
    index: Arc<RwLock<Index>>,
    poison: Option<String>,
    /// The segment being written.
    current: SimFile,
    segment: u32,
    segment_bytes: u64,
    next_batch: u64,
    snapshot: Option<SnapshotWriter>,
    next_snapshot: u64,
    /// Scratch space for the bytes of a batch and of a record.
    out: Vec<u8>,
    frame: Vec<u8>,
    #[cfg(feature = "planted-bugs")]
    unsynced: Option<SimFile>,
}

/// What the log lets go of: from then on only these are needed.
#[derive(Clone, Copy)]
struct Cut {
    first_revision: u64,
    oldest_segment: u32,
}

impl SimulatedLog {
    /// Opens the log on `disk`, or creates it.
    pub fn open(disk: &SimDisk, options: SimulatedOptions) -> Result<SimulatedLog, LogError> {
        let found = recovery::recover(disk, &options)?;
        Ok(SimulatedLog {
            disk: disk.clone(),
            options,
            next_snapshot: found.index.next_snapshot(),
            index: Arc::new(RwLock::new(found.index)),
            poison: None,
            current: disk.file(found.segment),
            segment: found.segment,
            segment_bytes: found.segment_bytes,
            next_batch: found.next_batch,
            snapshot: None,
            out: Vec::new(),
            frame: Vec::new(),
            #[cfg(feature = "planted-bugs")]
            unsynced: None,
        })
    }

    fn index(&self) -> RwLockReadGuard<'_, Index> {
        self.index.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn index_mut(&self) -> RwLockWriteGuard<'_, Index> {
        self.index.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn usable(&self) -> Result<(), LogError> {
        match &self.poison {
            Some(reason) => Err(LogError::Poisoned { reason: reason.clone() }),
            None => Ok(()),
        }
    }

    /// Writes what is due in one durable batch, and takes it over into the index from the very
    /// bytes that were written, as opening the log would.
    fn commit(
        &mut self,
        batch: &[Record],
        done: Option<&Finished>,
        cut: Option<Cut>,
    ) -> Result<(), LogError> {
        self.start_segment_if_due(cut);
        let batch_at = self.out.len();
        self.out.resize(batch_at.saturating_add(BATCH_HEADER_BYTES), 0);
        let entries = self.encode(batch, done, cut)?;
        BatchHeader::fill(self.next_batch, entries, batch_at, &mut self.out);

        let written = self.write();
        let written = written
            .map_err(|error| LogError::io("writing a batch", &error))
            .and_then(|()| self.take_over(batch_at));
        if let Err(error) = written {
            self.poison = Some(error.to_string());
            return Err(error);
        }
        if let Some(snapshot) = &mut self.snapshot {
            let pieces = snapshot.due(self.options.snapshot_bytes_per_commit).count();
            snapshot.written(pieces);
        }
        self.segment_bytes = self.segment_bytes.saturating_add(self.out.len() as u64);
        self.next_batch = self.next_batch.saturating_add(1);
        Ok(())
    }

    fn take_over(&self, batch_at: usize) -> Result<(), LogError> {
        let bytes = self.out.get(batch_at..).unwrap_or_default();
        let offset = self.segment_bytes.saturating_add(batch_at as u64);
        let place = |within: usize, bytes: usize| Place {
            segment: self.segment,
            offset: offset.saturating_add(within as u64),
            bytes: bytes as u32,
        };
        recovery::take_batch(&mut self.index_mut(), &self.options, bytes, &place)
    }

    fn drop_snapshot(&mut self) {
        if let Some(snapshot) = self.snapshot.take() {
            self.index_mut().drop_pieces(snapshot.id());
        }
    }

    /// Empties the scratch space and, for a new segment, puts its header there.
    fn start_segment_if_due(&mut self, cut: Option<Cut>) {
        self.out.clear();
        let full = self.segment_bytes >= self.options.segment_bytes;
        if full || (cut.is_some() && self.segment_bytes > 0) {
            self.segment = self.segment.saturating_add(1);
            self.current = self.current.sibling(self.segment);
            self.segment_bytes = 0;
        }
        if self.segment_bytes > 0 {
            return;
        }
        let index = self.index();
        let header = SegmentHeader {
            format: LOG_FORMAT,
            number: self.segment,
            oldest: cut.map_or(index.oldest_segment, |cut| cut.oldest_segment),
            first_revision: cut.map_or(index.head.first, |cut| cut.first_revision),
            batch: self.next_batch,
        };
        drop(index);
        header.write(&mut self.out);
    }

    /// Appends the entries of a batch to the scratch space and returns their number.
    fn encode(
        &mut self,
        batch: &[Record],
        done: Option<&Finished>,
        cut: Option<Cut>,
    ) -> Result<u32, LogError> {
        let index = self.index.read().unwrap_or_else(PoisonError::into_inner);
        let out = &mut self.out;
        let mut entries: u32 = 0;
        let mut push = |kind, payload: &[&[u8]]| {
            Entry::write(kind, payload, out);
            entries = entries.saturating_add(1);
        };
        let mut head = index.head;
        for record in batch {
            chain::extend(&mut head, record, &mut self.frame)?;
            push(Kind::Record, &[&self.frame]);
        }
        if let Some(cut) = cut {
            for reply in index.replies_before(cut.oldest_segment) {
                push(Kind::Reply, &[&encoded(reply)?]);
            }
        }
        if let Some(snapshot) = &self.snapshot {
            let id = snapshot.id().to_le_bytes();
            for (number, piece) in snapshot.due(self.options.snapshot_bytes_per_commit) {
                push(Kind::Piece, &[&id, &number.to_le_bytes(), piece]);
            }
        }
        if let Some(done) = done {
            push(Kind::Finished, &[&encoded(done)?]);
        }
        chain::check_batch_bytes(self.out.len())?;
        Ok(entries)
    }

    fn write(&mut self) -> io::Result<()> {
        #[cfg(feature = "planted-bugs")]
        if self.options.planted == Some(PlantedBug::AckBeforeSync) {
            if let Some(file) = self.unsynced.replace(self.current.clone()) {
                file.sync()?;
            }
            return self.current.write_at(self.segment_bytes, &self.out);
        }
        self.current.write_at(self.segment_bytes, &self.out)?;
        self.current.sync()
    }

    fn simulated_reader(&self) -> SimulatedReader {
        #[cfg_attr(not(feature = "planted-bugs"), expect(unused_mut))]
        let mut reader = SimulatedReader::new(self.index.clone(), self.current.clone());
        #[cfg(feature = "planted-bugs")]
        {
            reader.skips_bad_records = self.options.planted == Some(PlantedBug::SkipBadRecord);
        }
        reader
    }
}

impl CommandLog for SimulatedLog {
    fn append(&mut self, batch: &[Record]) -> Result<(), LogError> {
        self.usable()?;
        if batch.is_empty() {
            return Ok(());
        }
        self.commit(batch, None, None)
    }

    fn head(&self) -> Head {
        self.index().head
    }

    fn reader(&self) -> Box<dyn LogReader> {
        Box::new(self.simulated_reader())
    }

    fn begin_snapshot(&mut self, meta: SnapshotMeta) -> Result<(), LogError> {
        self.usable()?;
        let at = self.simulated_reader().hashes(meta.revision)?;
        snapshot::check_meta(&meta, at, &self.index().kept)?;
        self.drop_snapshot();
        self.snapshot = Some(SnapshotWriter::new(meta, self.next_snapshot));
        self.next_snapshot = self.next_snapshot.saturating_add(1);
        Ok(())
    }

    fn write_snapshot_chunk(&mut self, chunk: &[u8]) -> Result<(), LogError> {
        self.usable()?;
        let snapshot = self.snapshot.as_mut().ok_or(LogError::NoSnapshotBegun)?;
        snapshot.push(chunk)
    }

    fn has_queued_pieces(&self) -> bool {
        self.snapshot.as_ref().is_some_and(SnapshotWriter::has_queued)
    }

    fn step_snapshot(&mut self) -> Result<u64, LogError> {
        self.usable()?;
        let Some(snapshot) = &self.snapshot else {
            return Ok(0);
        };
        if snapshot.has_queued() {
            self.commit(&[], None, None)?;
        } else {
            let reader = self.simulated_reader();
            if let Some(snapshot) = &mut self.snapshot {
                reader.check_pieces(snapshot, self.options.snapshot_bytes_per_commit)?;
            }
        }
        Ok(self.snapshot.as_ref().map_or(0, SnapshotWriter::left))
    }

    fn finish_snapshot(&mut self) -> Result<(), LogError> {
        self.usable()?;
        while self.step_snapshot()? > 0 {}
        let snapshot = self.snapshot.as_ref().ok_or(LogError::NoSnapshotBegun)?;
        let finished = snapshot.finish();
        if finished.is_err() {
            self.drop_snapshot();
        }
        let done = finished?;
        self.commit(&[], Some(&done), None)?;
        self.snapshot = None;
        Ok(())
    }

    fn truncate_before(&mut self, revision: u64) -> Result<(), LogError> {
        self.usable()?;
        let index = self.index();
        let first = snapshot::check_cut(revision, &index.head, &index.kept)?;
        let Some(first_revision) = first else {
            return Ok(());
        };
        let oldest_segment = index.oldest_needed(first_revision).unwrap_or(self.segment);
        drop(index);
        let cut = Cut { first_revision, oldest_segment };
        self.commit(&[], None, Some(cut))?;
        let leftover = self.index_mut().cut(first_revision, oldest_segment);
        leftover.for_each(|segment| self.disk.remove(segment));
        Ok(())
    }
}

fn encoded<T: Serialize>(row: &T) -> Result<Vec<u8>, LogError> {
    postcard::to_stdvec(row).map_err(|error| LogError::Damaged(error.to_string()))
}
