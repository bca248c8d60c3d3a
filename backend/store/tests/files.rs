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

#[test]
fn an_older_copy_of_the_log_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("log");
    let copy = directory.path().join("copy");
    let mut log = EmbeddedLog::open(&path, options(0)).unwrap();
    log.append(&[record(1), record(2)]).unwrap();
    drop(log);
    fs::copy(&path, &copy).unwrap();
    let mut log = EmbeddedLog::open(&path, options(0)).unwrap();
    log.append(&[record(3)]).unwrap();
    drop(log);

    fs::copy(&copy, &path).unwrap();
    let error = EmbeddedLog::open(&path, options(0)).unwrap_err();
    assert!(matches!(error, LogError::Behind { head: 2, noted: 3, .. }), "{error}");
    fs::remove_file(beside(&path, ".head")).unwrap();
    assert_eq!(EmbeddedLog::open(&path, options(0)).unwrap().head().revision, 2);
}

#[test]
fn a_log_with_another_history_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let (path, other) = (directory.path().join("log"), directory.path().join("other"));
    let mut log = EmbeddedLog::open(&path, options(0)).unwrap();
    log.append(&[record(1), record(2)]).unwrap();
    drop(log);
    let mut log = EmbeddedLog::open(&other, options(0)).unwrap();
    let changed = Record { body: b"another".to_vec(), ..record(2) };
    log.append(&[record(1), changed, record(3)]).unwrap();
    drop(log);

    fs::copy(&other, &path).unwrap();
    let error = EmbeddedLog::open(&path, options(0)).unwrap_err().to_string();
    assert_eq!(error, "record 2 is corrupt: it is not the one that was acknowledged");
}

#[test]
fn a_damaged_last_commit_is_not_taken_for_an_interrupted_one() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("log");
    let mut log = EmbeddedLog::open(&path, options(0)).unwrap();
    log.append(&[record(1)]).unwrap();
    log.append(&[Record { body: b"the last command".to_vec(), ..record(2) }]).unwrap();
    // What a kill leaves behind: the file as it is now, not closed.
    let mut bytes = fs::read(&path).unwrap();
    drop(log);
    let text = b"the last command";
    let found: Vec<usize> =
        (0..bytes.len() - text.len()).filter(|at| bytes[*at..].starts_with(text)).collect();
    for at in found {
        bytes[at] ^= 1;
    }
    fs::write(&path, bytes).unwrap();
    let error = EmbeddedLog::open(&path, options(0)).unwrap_err();
    assert!(matches!(error, LogError::Behind { head: 1, noted: 2, .. }), "{error}");
}
