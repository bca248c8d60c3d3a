//! What can go wrong with a log, in the words that an operator will read.

use std::io;

use thiserror::Error;

use crate::LOG_FORMAT;

#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LogError {
    #[error("revision {given} cannot follow revision {head}")]
    NotDense { head: u64, given: u64 },
    #[error("{what} has {bytes} bytes, at most {max} are allowed")]
    TooLarge { what: &'static str, bytes: u64, max: u64 },
    #[error("record {revision} is corrupt: {flaw}")]
    Corrupt { revision: u64, flaw: Flaw },
    #[error("snapshot {revision} is corrupt: {what}")]
    CorruptSnapshot { revision: u64, what: String },
    #[error("the log is damaged: {0}")]
    Damaged(String),
    #[error(
        "the log has format {found}, written by {writer}; {} reads format {LOG_FORMAT} only: \
         start the version that wrote it, or export there and import here",
        this_version()
    )]
    Format { found: u32, writer: String },
    #[error(
        "the log ends at revision {head}, but {noted} was acknowledged: it has lost its tail or is \
         an older copy; restore it, or delete {file} to give up what is missing"
    )]
    Behind { head: u64, noted: u64, file: String },
    #[error("the log is open in another process")]
    Locked,
    #[error("the disk is full ({during})")]
    NoSpace { during: &'static str },
    #[error("{during} failed: {reason}")]
    Io { during: &'static str, reason: String },
    #[error(
        "an earlier write failed ({reason}), so what the disk holds is unknown: reopen the log"
    )]
    Poisoned { reason: String },
    #[error("the log that this reader belongs to is closed")]
    Closed,
    #[error("revision {revision} is no longer kept, the oldest is {first}")]
    Cut { revision: u64, first: u64 },
    #[error("records from {needed_from} on are needed to recover, cannot cut before {asked}")]
    StillNeeded { asked: u64, needed_from: u64 },
    #[error("snapshot of revision {revision} refused: {why}")]
    SnapshotRefused { revision: u64, why: String },
    #[error("no snapshot has been begun")]
    NoSnapshotBegun,
    #[error("there is no snapshot of revision {revision}")]
    NoSuchSnapshot { revision: u64 },
}

/// What is wrong with a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Flaw {
    #[error("it is not there")]
    Missing,
    #[error("{have} bytes are too short")]
    Short { have: u64 },
    #[error("frame version {0} is unknown")]
    Version(u8),
    #[error("checksum {stored:08x} is stored, {computed:08x} computed")]
    Checksum { stored: u32, computed: u32 },
    #[error("its parts do not add up to its length")]
    Layout,
    #[error("it says that it is record {0}")]
    Revision(u64),
    #[error("it does not continue the hash chain of the record before")]
    Chain,
    #[error("it is not the one that was acknowledged")]
    Rewritten,
    #[error("the head's hashes are not those of the last record")]
    Head,
}

impl LogError {
    pub(crate) fn corrupt(revision: u64, flaw: Flaw) -> LogError {
        LogError::Corrupt { revision, flaw }
    }

    pub(crate) fn io(during: &'static str, error: &io::Error) -> LogError {
        if error.kind() == io::ErrorKind::StorageFull {
            return LogError::NoSpace { during };
        }
        LogError::Io { during, reason: error.to_string() }
    }
}

/// How this build names itself in a log that it creates.
pub(crate) fn this_version() -> String {
    format!("novaplace {}", env!("CARGO_PKG_VERSION"))
}
