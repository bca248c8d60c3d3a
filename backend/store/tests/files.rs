//! The embedded log and the files around it.

use std::fs;
use std::path::{Path, PathBuf};

use store::{CommandLog, EmbeddedLog, LogError, Options, Record};

fn options(reserve_bytes: u64) -> Options {
    Options { cache_bytes: 1 << 20, reserve_bytes, ..Options::default() }
}

fn record(revision: u64) -> Record {
    Record { revision, state_hash: [1; 32], body: b"command".to_vec(), idempotency: None }
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    PathBuf::from(format!("{}{ending}", path.display()))
}

#[test]
fn a_log_can_be_open_only_once() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("log");
    let log = EmbeddedLog::open(&path, options(0)).unwrap();
    let error = EmbeddedLog::open(&path, options(0)).unwrap_err();
    assert_eq!(error, LogError::Locked);
    assert_eq!(error.to_string(), "the log is open in another process");
    drop(log);
    EmbeddedLog::open(&path, options(0)).unwrap();
}

#[test]
fn a_forgotten_reader_does_not_keep_the_log_locked() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("log");
    let log = EmbeddedLog::open(&path, options(0)).unwrap();
    let reader = log.reader();
    drop(log);
    assert_eq!(reader.get(1), Err(LogError::Closed));
    EmbeddedLog::open(&path, options(0)).unwrap();
}

#[test]
fn the_reserve_is_taken_once_and_can_be_released() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("log");
    let mut log = EmbeddedLog::open(&path, options(1 << 20)).unwrap();
    let reserve = beside(&path, ".reserve");
    assert!(log.has_reserve());
    assert_eq!(fs::metadata(&reserve).unwrap().len(), 1 << 20);
    assert_eq!(log.release_reserve(), Ok(true));
    assert_eq!(log.release_reserve(), Ok(false));
    assert!(!log.has_reserve() && !reserve.exists());
    log.append(&[record(1)]).unwrap();
    drop(log);
    assert!(EmbeddedLog::open(&path, options(1 << 20)).unwrap().has_reserve());
}

#[test]
fn a_creation_that_was_interrupted_is_started_again() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("log");
    fs::write(beside(&path, ".new"), b"half a database").unwrap();
    let mut log = EmbeddedLog::open(&path, options(0)).unwrap();
    log.append(&[record(1)]).unwrap();
    assert!(!beside(&path, ".new").exists());
}

#[test]
fn after_a_failed_write_everything_is_written_again() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("log");
    let mut log = EmbeddedLog::open(&path, options(0)).unwrap();
    log.append(&[record(1)]).unwrap();
    drop(log);
    let mark = beside(&path, ".distrust");
    fs::write(&mark, b"").unwrap();
    let log = EmbeddedLog::open(&path, options(0)).unwrap();
    assert_eq!(log.reader().verify(0), Ok(log.head()));
    assert!(!mark.exists(), "trusted again");
}

#[test]
fn a_directory_that_does_not_exist_is_an_error_and_not_created() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("missing").join("log");
    assert!(matches!(EmbeddedLog::open(&path, options(0)), Err(LogError::Io { .. })));
    assert!(!path.parent().unwrap().exists());
}
