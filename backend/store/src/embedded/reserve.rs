//! Space that is kept for the day the disk is full, as a file beside the log.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::files::sibling;

/// The file is there and really takes up its space.
#[derive(Debug)]
pub(super) struct Reserve {
    path: PathBuf,
}

impl Reserve {
    /// Keeps `bytes`, or returns `None` if the disk is too full for it.
    ///
    /// A missing reserve is taken only while twice its size is free. Otherwise a restart on the
    /// full disk would at once take back the space that was released to get going again.
    pub(super) fn take(log: &Path, bytes: u64) -> io::Result<Option<Reserve>> {
        let path = sibling(log, ".reserve");
        if bytes == 0 {
            return Ok(None);
        }
        if fs::metadata(&path).is_ok_and(|file| file.len() == bytes) {
            return Ok(Some(Reserve { path }));
        }
        let filled = fill(&path, bytes.saturating_mul(2));
        match filled.and_then(|file| file.set_len(bytes).and_then(|()| file.sync_all())) {
            Ok(()) => Ok(Some(Reserve { path })),
            Err(error) => {
                fs::remove_file(&path)?;
                if error.kind() == io::ErrorKind::StorageFull {
                    return Ok(None);
                }
                Err(error)
            }
        }
    }

    pub(super) fn release(self) -> io::Result<()> {
        fs::remove_file(self.path)
    }
}

/// Writes real bytes: a file with a hole of that size would keep nothing.
fn fill(path: &Path, bytes: u64) -> io::Result<File> {
    let mut file = File::create(path)?;
    let block = vec![0xA5_u8; 1 << 20];
    let mut left = bytes;
    while left > 0 {
        let part = usize::try_from(left).map_or(block.len(), |left| left.min(block.len()));
        file.write_all(block.get(..part).unwrap_or_default())?;
        left = left.saturating_sub(part as u64);
    }
    file.sync_all()?;
    Ok(file)
}
