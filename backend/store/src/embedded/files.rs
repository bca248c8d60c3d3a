//! The files around a log on a real disk: `NAME` itself, `NAME.lock`, `NAME.head`, and now and
//! then `NAME.new` and `NAME.distrust`.
//!
//! `NAME.head` notes what was acknowledged last. redb takes a damaged last commit for one that a
//! crash interrupted and goes back to the one before; the note tells the difference, and also
//! when somebody puts an older copy in place. It is not synced, so a power cut may take back the
//! newest notes, and it never runs ahead of the log.
//!
//! `NAME.distrust` is there after a failed write. A kernel that fails to write pages back reports
//! it once and then forgets: the pages look clean, reads show them, and no later sync writes
//! them. A restarted process would build on bytes that the disk does not have. So whoever opens
//! the log next writes every byte again first.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::tables::{failed, from_bytes, to_bytes};
use super::{EmbeddedLog, OPEN, Options};
use crate::Head;
use crate::error::{Flaw, LogError};

/// Holds the lock on a log until it is dropped.
#[derive(Debug)]
pub(super) struct Files {
    path: PathBuf,
    note: File,
    _lock: File,
}

impl Files {
    pub(super) fn lock(path: &Path) -> Result<Files, LogError> {
        let lock = File::create(sibling(path, ".lock")).map_err(in_opening)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(LogError::Locked),
            Err(TryLockError::Error(error)) => return Err(in_opening(error)),
        }
        let note = read_write().create(true).open(sibling(path, ".head")).map_err(in_opening)?;
        Ok(Files { path: path.to_owned(), note, _lock: lock })
    }

    /// Opens the log's file. A new one gets its name only when it is complete, so that a crash
    /// meanwhile leaves no half of one.
    pub(super) fn open(&self, options: Options) -> Result<redb::backends::FileBackend, LogError> {
        if !fs::exists(&self.path).map_err(in_opening)? {
            let new = sibling(&self.path, ".new");
            let file = read_write().create(true).truncate(true).open(&new).map_err(in_opening)?;
            drop(EmbeddedLog::open_on(backend(file)?, options)?);
            fs::rename(&new, &self.path).map_err(in_opening)?;
        }
        self.sync_directory().map_err(in_opening)?;
        backend(read_write().open(&self.path).map_err(in_opening)?)
    }

    /// Notes what has been acknowledged. If that fails, the older note stays true.
    pub(super) fn note_head(&self, head: &Head) {
        let bytes = to_bytes(&(head.revision, head.chain_hash));
        let mut note = &self.note;
        let _ = note.seek(SeekFrom::Start(0)).and_then(|_| note.write_all(&bytes));
    }

    /// Refuses a log that has lost what the note says it had.
    pub(super) fn check_head(&self, log: &EmbeddedLog) -> Result<(), LogError> {
        let mut bytes = Vec::new();
        let mut note = &self.note;
        note.read_to_end(&mut bytes).map_err(in_opening)?;
        // No note, or one that a crash tore, says nothing.
        let noted = from_bytes::<(u64, [u8; 32])>("the noted head", &bytes);
        let Ok((revision, chain_hash)) = noted else {
            return Ok(());
        };
        if revision > log.head.revision {
            return Err(LogError::Behind {
                head: log.head.revision,
                noted: revision,
                file: sibling(&self.path, ".head").display().to_string(),
            });
        }
        match log.embedded_reader().hashes(revision)? {
            Some(found) if found.chain != chain_hash => {
                Err(LogError::corrupt(revision, Flaw::Rewritten))
            }
            _ => Ok(()),
        }
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
        fs::remove_file(sibling(&self.path, ".distrust")).map_err(in_opening)
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

fn read_write() -> OpenOptions {
    let mut options = File::options();
    options.read(true).write(true);
    options
}

fn backend(file: File) -> Result<redb::backends::FileBackend, LogError> {
    redb::backends::FileBackend::new(file).map_err(|error| failed(OPEN, error.into()))
}

fn in_opening(error: io::Error) -> LogError {
    LogError::io(OPEN, &error)
}
