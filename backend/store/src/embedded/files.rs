//! The files around a log on a real disk: `NAME` itself, `NAME.lock`, and now and then
//! `NAME.new` and `NAME.distrust`.
//!
//! A kernel that fails to write pages back reports it once and then forgets: the pages look
//! clean, reads show them, and no later sync writes them. A restarted process would build on
//! bytes that the disk does not have. So a failure leaves a mark, and whoever opens the log next
//! writes every byte again first.

use std::ffi::OsStr;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use super::{EmbeddedLog, OPEN, Options, failed};
use crate::error::LogError;

/// Holds the lock on a log until it is dropped.
#[derive(Debug)]
pub(super) struct Files {
    path: PathBuf,
    _lock: File,
}

impl Files {
    pub(super) fn lock(path: &Path) -> Result<Files, LogError> {
        let lock = File::create(sibling(path, ".lock")).map_err(|error| in_opening(&error))?;
        match lock.try_lock() {
            Ok(()) => Ok(Files { path: path.to_owned(), _lock: lock }),
            Err(TryLockError::WouldBlock) => Err(LogError::Locked),
            Err(TryLockError::Error(error)) => Err(in_opening(&error)),
        }
    }

    /// Opens the log's file. A new one gets its name only when it is complete, so that a crash
    /// meanwhile leaves no half of one.
    pub(super) fn open(&self, options: Options) -> Result<redb::backends::FileBackend, LogError> {
        if !fs::exists(&self.path).map_err(|error| in_opening(&error))? {
            let new = sibling(&self.path, ".new");
            let file = File::options()
                .read(true)
                .write(true)
                .create(true)
                .truncate(true)
                .open(&new)
                .map_err(|error| in_opening(&error))?;
            drop(EmbeddedLog::open_on(backend(file)?, options)?);
            fs::rename(&new, &self.path).map_err(|error| in_opening(&error))?;
        }
        self.sync_directory().map_err(|error| in_opening(&error))?;
        let file = File::options().read(true).write(true).open(&self.path);
        backend(file.map_err(|error| in_opening(&error))?)
    }

    /// Notes that writing failed. The disk may refuse this too; then there is no more to be done.
    pub(super) fn distrust(&self) {
        let noted = File::create(sibling(&self.path, ".distrust"));
        let _ = noted.and_then(|mark| mark.sync_all().and_then(|()| self.sync_directory()));
    }

    pub(super) fn is_distrusted(&self) -> bool {
        sibling(&self.path, ".distrust").exists()
    }

    /// Takes the mark away, once everything has been written again.
    pub(super) fn trust(&self) -> Result<(), LogError> {
        fs::remove_file(sibling(&self.path, ".distrust")).map_err(|error| in_opening(&error))
    }

    /// Makes names as durable as contents.
    fn sync_directory(&self) -> io::Result<()> {
        let directory = match self.path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        File::open(directory)?.sync_all()
    }
}

/// Reads every byte and writes it back, so that a sync covers it again.
pub(super) fn rewrite(storage: &impl redb::StorageBackend) -> io::Result<()> {
    let length = storage.len()?;
    let mut block = vec![0; 1 << 20];
    let mut offset = 0;
    while offset < length {
        let left = usize::try_from(length.saturating_sub(offset)).unwrap_or(usize::MAX);
        let size = left.min(block.len());
        let part = block.get_mut(..size).unwrap_or_default();
        storage.read(offset, part)?;
        storage.write(offset, part)?;
        offset = offset.saturating_add(size as u64);
    }
    // The length is metadata of the same kind.
    storage.set_len(length)
}

/// The name of a file that belongs to the log at `path`.
pub(super) fn sibling(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or(OsStr::new("log")).to_owned();
    name.push(ending);
    path.with_file_name(name)
}

fn backend(file: File) -> Result<redb::backends::FileBackend, LogError> {
    redb::backends::FileBackend::new(file).map_err(|error| failed(OPEN, error.into()))
}

fn in_opening(error: &io::Error) -> LogError {
    LogError::io(OPEN, error)
}
