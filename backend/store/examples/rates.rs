//! Prints how fast the logs are: `cargo run --release -p store --example rates [directory]`.
//!
//! The embedded log is measured in the directory given, by default the current one, because a
//! durable commit costs what that disk's sync costs.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use store::{
    CommandLog, DiskOptions, EmbeddedLog, IdempotencyEntry, LogReader, Options, Record, SimDisk,
    SimulatedLog, SimulatedOptions,
};

const BODY_BYTES: usize = 256;
const BATCH: u64 = 256;
const SCANNED: u64 = 1_000_000;

fn main() {
    let directory = std::env::args().nth(1).unwrap_or_else(|| ".".to_owned());
    let directory = tempfile::tempdir_in(directory).unwrap();
    let path = directory.path().join("log");
    embedded_appends(&path);
    embedded_scan(&path);
    simulated();
}

fn records(from: u64, count: u64, keyed: bool) -> Vec<Record> {
    let records = (from..from + count).map(|revision| {
        // Keys as clients choose them: in no order.
        let key = blake3::hash(&revision.to_le_bytes()).as_bytes()[..16].to_vec();
        let entry =
            IdempotencyEntry { key, request_hash: [1; 16], ts_ms: revision, reply: vec![2; 100] };
        Record {
            revision,
            state_hash: [revision as u8; 32],
            body: vec![revision as u8; BODY_BYTES],
            idempotency: keyed.then_some(entry),
        }
    });
    records.collect()
}

/// Appends batches until the time is up and prints commits and records a second.
fn appends(what: &str, log: &mut dyn CommandLog, batch: u64, keyed: bool, limit: Duration) {
    let mut left = 200_000 / batch.max(1);
    let (start, before) = (Instant::now(), log.head().revision);
    while start.elapsed() < limit && left > 0 {
        let batch = records(log.head().revision + 1, batch, keyed);
        log.append(&batch).unwrap();
        left -= 1;
    }
    let appended = (log.head().revision - before) as f64;
    let seconds = start.elapsed().as_secs_f64();
    let commits = appended / batch as f64 / seconds;
    println!("{what}: {commits:.0} commits/s, {:.0} records/s", appended / seconds);
}

fn embedded_appends(path: &std::path::Path) {
    let limit = Duration::from_secs(3);
    let mut log = EmbeddedLog::open(path, Options::default()).unwrap();
    appends("embedded, one record a commit", &mut log, 1, false, limit);
    appends("embedded, 256 records a commit", &mut log, BATCH, false, limit);
    appends("embedded, 256 with idempotency keys", &mut log, BATCH, true, limit);
}

fn embedded_scan(path: &std::path::Path) {
    let mut log = EmbeddedLog::open(path, Options::default()).unwrap();
    while log.head().revision < SCANNED {
        let missing = SCANNED - log.head().revision;
        log.append(&records(log.head().revision + 1, missing.min(50_000), false)).unwrap();
    }
    let bytes = std::fs::metadata(path).unwrap().len() >> 20;
    println!("embedded, {SCANNED} records: {bytes} MiB");
    scans(&*log.reader());
    timed("embedded, clean close", || drop(log));
    let log =
        timed("embedded, clean open", || EmbeddedLog::open(path, Options::default()).unwrap());
    // Not closing is what a killed process does.
    let copy = path.with_extension("killed");
    std::fs::copy(path, &copy).unwrap();
    std::fs::File::open(&copy).unwrap().sync_all().unwrap();
    drop(log);
    timed("embedded, open after a kill", || {
        drop(EmbeddedLog::open(&copy, Options { reserve_bytes: 0, ..Options::default() }).unwrap());
    });
}

fn scans(reader: &dyn LogReader) {
    timed("embedded, scan of all (checksum and decode)", || {
        let mut bytes = 0;
        reader
            .scan(1, &mut |record| {
                bytes += record.body.len();
                ControlFlow::Continue(())
            })
            .unwrap();
        assert!(bytes >= SCANNED as usize * BODY_BYTES);
    });
    timed("embedded, verify of all (and hash chain)", || reader.verify(1).unwrap());
}

fn timed<T>(what: &str, act: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let result = act();
    println!("{what}: {:.3} s", start.elapsed().as_secs_f64());
    result
}

fn simulated() {
    let disk = SimDisk::new(DiskOptions::default());
    let mut log = SimulatedLog::open(&disk, SimulatedOptions::default()).unwrap();
    let limit = Duration::from_secs(2);
    appends("simulated, one record a commit", &mut log, 1, false, limit);
    appends("simulated, 256 records a commit", &mut log, BATCH, false, limit);

    let mut disk = SimDisk::new(DiskOptions::default());
    let (start, mut cycles) = (Instant::now(), 0);
    while start.elapsed() < limit {
        if cycles % 10 == 0 {
            disk = SimDisk::new(DiskOptions::default());
        }
        let mut log = SimulatedLog::open(&disk, SimulatedOptions::default()).unwrap();
        log.append(&records(log.head().revision + 1, 3, true)).unwrap();
        disk.crash();
        cycles += 1;
    }
    let rate = f64::from(cycles) / start.elapsed().as_secs_f64();
    println!("simulated, crash and reopen of a small log: {rate:.0} cycles/s");
}
