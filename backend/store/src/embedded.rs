//! The log on a real disk: one redb file, one durable transaction per batch.
//!
//! Deleting (old replies, cut records, dropped snapshots) is spread over later commits, a bounded
//! piece each, so that no batch waits for housekeeping. Reading is in `reader`, the files around
//! the database in `files`, the space kept for a full disk in `reserve`.

mod commit;
mod files;
mod reader;
mod reserve;
mod tables;

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use redb::{Database, ReadableTable};

use crate::chain::RecordHashes;
use crate::error::{Flaw, LogError, this_version};
use crate::idempotency::IdempotencyLimits;
use crate::snapshot::{self, Finished, SnapshotWriter};
use crate::{CommandLog, Head, LOG_FORMAT, LogReader, Record, SnapshotMeta};
use commit::Framed;
use files::Files;
use reader::EmbeddedReader;
use reserve::Reserve;
use tables::{
    FORMAT, Guarded, HEAD, IDEMPOTENCY, IDEMPOTENCY_TIME, LOG, META, PIECES, SNAPSHOTS, WRITER,
    failed, from_bytes, guarded, to_bytes,
};

#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Memory that redb may use for pages.
    pub cache_bytes: usize,
    /// Snapshot bytes that ride along with one commit.
    pub snapshot_bytes_per_commit: u64,
    pub idempotency: IdempotencyLimits,
    /// Size of the file that is kept beside the log for the day the disk is full; 0 for none.
    pub reserve_bytes: u64,
    /// Write every byte again before believing any, because a write failed since the machine was
    /// started. `open` finds that out by itself.
    pub distrust_cache: bool,
    /// Check every page of the file also after a clean shutdown, about a second per GiB.
    /// Unchecked, a damaged list of free pages could let new records overwrite old ones.
    pub check_pages: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            cache_bytes: 64 << 20,
            // What a batch can carry without its callers noticing.
            snapshot_bytes_per_commit: 64 << 10,
            idempotency: IdempotencyLimits::default(),
            reserve_bytes: 64 << 20,
            distrust_cache: false,
            check_pages: true,
        }
    }
}

/// A [`CommandLog`] in one redb file.
#[derive(Debug)]
pub struct EmbeddedLog {
    db: Arc<Guarded>,
    options: Options,
    head: Head,
    poison: Option<String>,
    /// Finished snapshots, oldest first.
    kept: Vec<Finished>,
    snapshot: Option<SnapshotWriter>,
    next_snapshot: u64,
    /// Ids of snapshots whose pieces are still to be deleted.
    dropped: VecDeque<u64>,
    /// The oldest record that is still stored; below `head.first` while cutting goes on.
    oldest_stored: u64,
    reserve: Option<Reserve>,
    /// Last, since the lock must outlive the database.
    files: Option<Files>,
}

impl EmbeddedLog {
    /// Opens the log at `path`, or creates it, and locks it against other processes.
    pub fn open(path: impl AsRef<Path>, options: Options) -> Result<EmbeddedLog, LogError> {
        let path = path.as_ref();
        let files = Files::lock(path)?;
        let distrust_cache = options.distrust_cache || files.is_distrusted();
        let options = Options { distrust_cache, ..options };
        let mut log = EmbeddedLog::open_on(files.open(options)?, options)?;
        files.check_head(&log)?;
        if files.is_distrusted() {
            files.trust()?;
        }
        log.reserve = Reserve::take(path, options.reserve_bytes)
            .map_err(|error| LogError::io("keeping a reserve", &error))?;
        log.files = Some(files);
        Ok(log)
    }

    /// Opens the log on any storage, such as a simulated disk. Keeps no reserve. Creating is not
    /// atomic here: storage that a crash left half created is refused, and has to be emptied.
    pub fn open_on(
        backend: impl redb::StorageBackend,
        options: Options,
    ) -> Result<EmbeddedLog, LogError> {
        // What a killed process left in the kernel's cache would be acted upon, so it has to be
        // as durable as what was acknowledged.
        let rewritten = match options.distrust_cache {
            true => files::rewrite(&backend),
            false => Ok(()),
        };
        rewritten.and_then(|()| backend.sync_data()).map_err(|error| LogError::io(OPEN, &error))?;
        guarded(OPEN, move || {
            let repaired = Arc::new(AtomicBool::new(false));
            let noticed = repaired.clone();
            let mut db = Database::builder()
                .set_cache_size(options.cache_bytes)
                .set_repair_callback(move |_| noticed.store(true, Ordering::Relaxed))
                .create_with_backend(backend)
                .map_err(|error| failed(OPEN, error.into()))?;
            // A repair has looked at every page already.
            let mut pages_are_good = Ok(true);
            if options.check_pages && !repaired.load(Ordering::Relaxed) {
                pages_are_good = db.check_integrity();
            }
            let log = EmbeddedLog::load(db, options)?;
            if let Err(error) = pages_are_good {
                // If a record is hit, its revision says more than redb can.
                log.embedded_reader().verify(0)?;
                return Err(failed(OPEN, error.into()));
            }
            Ok(log)
        })
    }

    fn load(db: Database, options: Options) -> Result<EmbeddedLog, LogError> {
        let mut log = EmbeddedLog {
            db: Arc::new(Guarded::new(db)),
            options,
            head: Head::EMPTY,
            poison: None,
            kept: Vec::new(),
            snapshot: None,
            next_snapshot: 1,
            dropped: VecDeque::new(),
            oldest_stored: 1,
            reserve: None,
            files: None,
        };
        let read = log.db.begin_read().map_err(|e| failed(OPEN, e))?;
        let meta = match read.open_table(META) {
            Ok(meta) => meta,
            Err(redb::TableError::TableDoesNotExist(_)) => {
                log.create()?;
                return Ok(log);
            }
            Err(error) => return Err(failed(OPEN, error.into())),
        };
        check_format(&meta)?;
        let head = get(&meta, HEAD)?.ok_or_else(|| missing("the head"))?;
        log.head = from_bytes("the head", &head)?;
        let records = open(&read, LOG)?;
        log.check_last_record(&records)?;
        if let Some((oldest, _)) = records.first().map_err(|e| failed(OPEN, e.into()))? {
            log.oldest_stored = oldest.value();
        }
        let snapshots = open(&read, SNAPSHOTS)?;
        for row in snapshots.iter().map_err(|e| failed(OPEN, e.into()))? {
            let (_, row) = row.map_err(|e| failed(OPEN, e.into()))?;
            let kept: Finished = from_bytes("a snapshot's row", row.value())?;
            log.next_snapshot = log.next_snapshot.max(kept.id.saturating_add(1));
            log.kept.push(kept);
        }
        log.find_leftover_pieces(&open(&read, PIECES)?)?;
        Ok(log)
    }

    fn create(&self) -> Result<(), LogError> {
        let during = "creating the log";
        let write = || -> Result<(), redb::Error> {
            let tx = self.db.begin_write()?;
            tx.open_table(LOG)?;
            tx.open_table(SNAPSHOTS)?;
            tx.open_table(PIECES)?;
            tx.open_table(IDEMPOTENCY)?;
            tx.open_table(IDEMPOTENCY_TIME)?;
            {
                let mut meta = tx.open_table(META)?;
                meta.insert(FORMAT, LOG_FORMAT.to_le_bytes().as_slice())?;
                meta.insert(WRITER, this_version().as_bytes())?;
                meta.insert(HEAD, to_bytes(&self.head).as_slice())?;
            }
            tx.commit()?;
            Ok(())
        };
        write().map_err(|error| failed(during, error))
    }

    /// The head was written with the last record, so they must agree.
    fn check_last_record(
        &self,
        records: &impl ReadableTable<u64, &'static [u8]>,
    ) -> Result<(), LogError> {
        let last = records.last().map_err(|e| failed(OPEN, e.into()))?;
        let revision = self.head.revision;
        let Some((key, bytes)) = last else {
            let empty = revision == 0;
            return empty.then_some(()).ok_or(LogError::corrupt(revision, Flaw::Missing));
        };
        if key.value() != revision {
            let flaw = Flaw::Revision(key.value());
            return Err(LogError::corrupt(revision, flaw));
        }
        let found = RecordHashes::of(revision, bytes.value())?;
        if found.chain != self.head.chain_hash || found.state != self.head.state_hash {
            return Err(LogError::corrupt(revision, Flaw::Head));
        }
        Ok(())
    }

    /// Pieces that belong to no finished snapshot are of one that a crash interrupted, or of an
    /// old one that was being deleted.
    fn find_leftover_pieces(
        &mut self,
        pieces: &impl ReadableTable<(u64, u32), &'static [u8]>,
    ) -> Result<(), LogError> {
        let mut from = 0;
        loop {
            let mut rest = pieces.range((from, 0)..).map_err(|e| failed(OPEN, e.into()))?;
            let Some(row) = rest.next() else {
                return Ok(());
            };
            let (id, _) = row.map_err(|e| failed(OPEN, e.into()))?.0.value();
            if self.kept.iter().all(|kept| kept.id != id) {
                self.dropped.push_back(id);
            }
            from = id.saturating_add(1);
            self.next_snapshot = self.next_snapshot.max(from);
        }
    }

    fn usable(&self) -> Result<(), LogError> {
        match &self.poison {
            Some(reason) => Err(LogError::Poisoned { reason: reason.clone() }),
            None => Ok(()),
        }
    }

    /// Remembers that a write went wrong; from here on only reopening helps.
    fn poisoned<T>(&mut self, result: Result<T, LogError>) -> Result<T, LogError> {
        if let Err(error) = &result {
            self.poison = Some(error.to_string());
            if let Some(files) = &self.files {
                files.distrust();
            }
        }
        result
    }

    /// Writes everything that is due in one transaction: `batch`, snapshot pieces, deletions.
    fn commit(&mut self, batch: &[Record], done: Option<&Finished>) -> Result<(), LogError> {
        let framed = Framed::new(&self.head, batch)?;
        let written = guarded("writing a batch", || self.transaction(batch, &framed, done));
        let written = self.poisoned(written)?;
        self.head = framed.head;
        if let Some(files) = &self.files {
            files.note_head(&self.head);
        }
        self.oldest_stored = written.oldest_stored;
        if let Some(snapshot) = &mut self.snapshot {
            snapshot.written(written.pieces);
        }
        if written.dropped_is_empty {
            self.dropped.pop_front();
        }
        Ok(())
    }

    fn embedded_reader(&self) -> EmbeddedReader {
        EmbeddedReader::new(&self.db)
    }
}

impl CommandLog for EmbeddedLog {
    fn append(&mut self, batch: &[Record]) -> Result<(), LogError> {
        self.usable()?;
        if batch.is_empty() {
            return Ok(());
        }
        self.commit(batch, None)
    }

    fn head(&self) -> Head {
        self.head
    }

    fn reader(&self) -> Box<dyn LogReader> {
        Box::new(self.embedded_reader())
    }

    fn begin_snapshot(&mut self, meta: SnapshotMeta) -> Result<(), LogError> {
        self.usable()?;
        let at = self.embedded_reader().hashes(meta.revision)?;
        snapshot::check_meta(&meta, at, &self.kept)?;
        if let Some(unfinished) = self.snapshot.take() {
            self.dropped.push_back(unfinished.id());
        }
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
            self.commit(&[], None)?;
        } else {
            let reader = self.embedded_reader();
            if let Some(snapshot) = &mut self.snapshot {
                reader.check_pieces(snapshot, self.options.snapshot_bytes_per_commit)?;
            }
        }
        Ok(self.snapshot.as_ref().map_or(0, SnapshotWriter::left))
    }

    fn finish_snapshot(&mut self) -> Result<(), LogError> {
        self.usable()?;
        if self.snapshot.is_none() {
            return Err(LogError::NoSnapshotBegun);
        }
        while self.step_snapshot()? > 0 {}
        let Some(snapshot) = self.snapshot.take() else {
            return Err(LogError::NoSnapshotBegun);
        };
        let done = match snapshot.finish() {
            Ok(done) => done,
            Err(error) => {
                self.dropped.push_back(snapshot.id());
                return Err(error);
            }
        };
        self.commit(&[], Some(&done))?;
        let old = snapshot::superseded(&self.kept, &done);
        self.dropped.extend(old.iter().map(|old| old.id));
        self.kept.retain(|kept| !old.contains(kept));
        self.kept.push(done);
        Ok(())
    }

    fn truncate_before(&mut self, revision: u64) -> Result<(), LogError> {
        self.usable()?;
        let Some(first) = snapshot::check_cut(revision, &self.head, &self.kept)? else {
            return Ok(());
        };
        let before = std::mem::replace(&mut self.head.first, first);
        let done = self.commit(&[], None);
        if done.is_err() {
            self.head.first = before;
        }
        done
    }

    fn has_reserve(&self) -> bool {
        self.reserve.is_some() || self.options.reserve_bytes == 0
    }

    fn release_reserve(&mut self) -> Result<bool, LogError> {
        let Some(reserve) = self.reserve.take() else {
            return Ok(false);
        };
        reserve.release().map_err(|error| LogError::io("releasing the reserve", &error))?;
        // On the full disk there may have been no room for the mark.
        if let (Some(_), Some(files)) = (&self.poison, &self.files) {
            files.distrust();
        }
        Ok(true)
    }
}

const OPEN: &str = "opening the log";

fn check_format(meta: &impl ReadableTable<&'static str, &'static [u8]>) -> Result<(), LogError> {
    let format = get(meta, FORMAT)?.ok_or_else(|| missing("the format version"))?;
    let found = <[u8; 4]>::try_from(format.as_slice())
        .map(u32::from_le_bytes)
        .map_err(|_| missing("the format version"))?;
    if found == LOG_FORMAT {
        return Ok(());
    }
    let writer = get(meta, WRITER)?.unwrap_or_default();
    Err(LogError::Format { found, writer: String::from_utf8_lossy(&writer).into_owned() })
}

fn get(
    meta: &impl ReadableTable<&'static str, &'static [u8]>,
    key: &str,
) -> Result<Option<Vec<u8>>, LogError> {
    let value = meta.get(key).map_err(|e| failed(OPEN, e.into()))?;
    Ok(value.map(|value| value.value().to_vec()))
}

fn missing(what: &str) -> LogError {
    LogError::Damaged(format!("{what} is missing or unreadable"))
}

fn open<K: redb::Key + 'static, V: redb::Value + 'static>(
    read: &redb::ReadTransaction,
    table: redb::TableDefinition<'_, K, V>,
) -> Result<redb::ReadOnlyTable<K, V>, LogError> {
    read.open_table(table).map_err(|e| failed(OPEN, e.into()))
}
