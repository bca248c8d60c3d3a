//! The machines that the suite runs on, and what it writes to their logs.

use std::fmt::Debug;
use std::ops::ControlFlow;

use store::{
    CommandLog, DiskOptions, EmbeddedLog, Head, IdempotencyEntry, IdempotencyLimits, LogError,
    LogReader, Options, Record, SimDisk, SimulatedLog, SimulatedOptions, SnapshotMeta,
};
use tempfile::TempDir;

/// Something that a log can be opened on, again and again.
pub(crate) trait Machine: Debug {
    fn open(&self) -> Result<Box<dyn CommandLog>, LogError>;
}

/// A machine whose disk obeys the test.
pub(crate) trait BreakableMachine: Machine {
    fn new(seed: u64) -> Self
    where
        Self: Sized;
    fn disk(&self) -> &SimDisk;
}

#[derive(Debug)]
pub(crate) struct Simulated(SimDisk);
#[derive(Debug)]
pub(crate) struct EmbeddedOnSimDisk(SimDisk);
#[derive(Debug)]
pub(crate) struct EmbeddedOnFile(TempDir);

/// Small, so that a few entries reach it.
pub(crate) const LIMITS: IdempotencyLimits = IdempotencyLimits { keep_ms: 1_000, max_keys: 40 };

fn disk(seed: u64) -> SimDisk {
    SimDisk::new(DiskOptions { seed, ..DiskOptions::default() })
}

fn embedded_options() -> Options {
    Options {
        cache_bytes: 1 << 20,
        snapshot_bytes_per_commit: 100_000,
        idempotency: LIMITS,
        reserve_bytes: 4096,
        ..Options::default()
    }
}

impl Machine for Simulated {
    fn open(&self) -> Result<Box<dyn CommandLog>, LogError> {
        let options = SimulatedOptions {
            segment_bytes: 2_000,
            snapshot_bytes_per_commit: 100_000,
            idempotency: LIMITS,
            #[cfg(feature = "planted-bugs")]
            planted: None,
        };
        SimulatedLog::open(&self.0, options).map(|log| Box::new(log) as _)
    }
}

impl BreakableMachine for Simulated {
    fn new(seed: u64) -> Self {
        Simulated(disk(seed))
    }

    fn disk(&self) -> &SimDisk {
        &self.0
    }
}

impl Machine for EmbeddedOnSimDisk {
    fn open(&self) -> Result<Box<dyn CommandLog>, LogError> {
        let options =
            Options { distrust_cache: self.0.stats().failed_syncs > 0, ..embedded_options() };
        EmbeddedLog::open_on(self.0.file(0), options).map(|log| Box::new(log) as _)
    }
}

impl BreakableMachine for EmbeddedOnSimDisk {
    fn new(seed: u64) -> Self {
        let machine = EmbeddedOnSimDisk(disk(seed));
        // On bare storage a log has to be created before anything may break.
        drop(machine.open().unwrap());
        machine
    }

    fn disk(&self) -> &SimDisk {
        &self.0
    }
}

impl EmbeddedOnFile {
    pub(crate) fn new() -> Self {
        EmbeddedOnFile(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self) -> std::path::PathBuf {
        self.0.path().join("commands.redb")
    }
}

impl Machine for EmbeddedOnFile {
    fn open(&self) -> Result<Box<dyn CommandLog>, LogError> {
        EmbeddedLog::open(self.path(), embedded_options()).map(|log| Box::new(log) as _)
    }
}

pub(crate) fn all() -> [Box<dyn Machine>; 3] {
    [
        Box::new(Simulated::new(1)),
        Box::new(EmbeddedOnSimDisk::new(1)),
        Box::new(EmbeddedOnFile::new()),
    ]
}

/// The record that every test writes for a revision: its content follows from its number.
pub(crate) fn record(revision: u64) -> Record {
    let body = format!("command {revision} ").repeat(1 + revision as usize % 7);
    Record {
        revision,
        state_hash: *blake3::hash(&revision.to_le_bytes()).as_bytes(),
        body: body.into_bytes(),
        idempotency: None,
    }
}

pub(crate) fn keyed(revision: u64, key: &str, ts_ms: u64) -> Record {
    Record {
        idempotency: Some(IdempotencyEntry {
            key: key.as_bytes().to_vec(),
            request_hash: [revision as u8; 16],
            ts_ms,
            reply: format!("reply to {revision}").into_bytes(),
        }),
        ..record(revision)
    }
}

pub(crate) fn records(from: u64, to: u64) -> Vec<Record> {
    (from..=to).map(record).collect()
}

pub(crate) fn scan(reader: &dyn LogReader, from: u64) -> Result<Vec<Record>, LogError> {
    let mut seen = Vec::new();
    reader.scan(from, &mut |record| {
        seen.push(record);
        ControlFlow::Continue(())
    })?;
    Ok(seen)
}

/// The content of a test's snapshot, which follows from its revision and size.
pub(crate) fn content(revision: u64, bytes: usize) -> Vec<u8> {
    let mut out = vec![0; bytes];
    let mut hasher = blake3::Hasher::new();
    hasher.update(&revision.to_le_bytes());
    hasher.finalize_xof().fill(&mut out);
    out
}

pub(crate) fn meta(head: Head, content: &[u8]) -> SnapshotMeta {
    SnapshotMeta {
        revision: head.revision,
        state_hash: head.state_hash,
        chain_hash: head.chain_hash,
        bytes: content.len() as u64,
        content_hash: *blake3::hash(content).as_bytes(),
    }
}

/// Takes a snapshot of the head, in chunks of odd sizes.
pub(crate) fn take_snapshot(
    log: &mut dyn CommandLog,
    bytes: usize,
) -> Result<SnapshotMeta, LogError> {
    let content = content(log.head().revision, bytes);
    let meta = meta(log.head(), &content);
    log.begin_snapshot(meta)?;
    for chunk in content.chunks(70_001) {
        log.write_snapshot_chunk(chunk)?;
    }
    log.finish_snapshot()?;
    Ok(meta)
}

pub(crate) fn read_snapshot(reader: &dyn LogReader, revision: u64) -> Result<Vec<u8>, LogError> {
    let mut content = Vec::new();
    let whole = reader.read_snapshot(revision, &mut |piece| {
        content.extend_from_slice(piece);
        ControlFlow::Continue(())
    })?;
    assert!(whole);
    Ok(content)
}
