//! The file format of backups: a label that people can read, the log, and a hash over both.
//!
//! ```text
//! novaplace backup 1\n
//! {"revision":42,...}\n
//! the bytes of the log's file
//! BLAKE3 of everything before, 32 bytes
//! ```
//!
//! The number in the first line is the format's; other numbers are refused.

use serde::{Deserialize, Serialize};
use std::io::{self, BufRead, Read, Write};
use store::{Head, LOG_FORMAT};

const FORMAT: u32 = 1;
const TITLE: &str = "novaplace backup ";
/// Nothing that is a label has longer lines.
const MAX_LINE_BYTES: u64 = 4_096;
const HASH_BYTES: usize = 32;

/// What a backup holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Label {
    pub(super) revision: u64,
    pub(super) state_hash: String,
    pub(super) chain_hash: String,
    /// The oldest command that is kept.
    pub(super) first: u64,
    /// The log's own format.
    pub(super) log_format: u32,
    /// The log's file.
    pub(super) bytes: u64,
    pub(super) written_by: String,
}

impl Label {
    pub(super) fn new(head: &Head, bytes: u64) -> Self {
        Self {
            revision: head.revision,
            state_hash: hex(&head.state_hash),
            chain_hash: hex(&head.chain_hash),
            first: head.first,
            log_format: LOG_FORMAT,
            bytes,
            written_by: concat!("novaplace ", env!("CARGO_PKG_VERSION")).to_owned(),
        }
    }

    /// Whether this is a log with the same head, whoever wrote it.
    pub(super) fn is_of(&self, head: &Head) -> bool {
        let other = Label::new(head, self.bytes);
        Label { written_by: self.written_by.clone(), ..other } == *self
    }
}

#[derive(Debug, thiserror::Error)]
pub(super) enum EnvelopeError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("this is not a backup of novaplace")]
    Foreign,
    #[error(
        "this backup has format {0}, and novaplace {version} reads format {FORMAT} only: restore \
         it with the version that wrote it",
        version = env!("CARGO_PKG_VERSION")
    )]
    Format(String),
    #[error(
        "this backup holds a log of format {found}, written by {writer}, and this version reads \
         format {LOG_FORMAT} only: restore it with the version that wrote it"
    )]
    LogFormat { found: u32, writer: String },
    #[error("the backup's label cannot be read: {0}")]
    Label(String),
    #[error("the backup ends early, {missing} bytes of the log are missing")]
    Short { missing: u64 },
    #[error("the backup is damaged: its content hash does not match")]
    Damaged,
}

/// A backup on its way out or in. Everything that passes is hashed.
#[derive(Debug)]
pub(super) struct Envelope<F> {
    file: F,
    hash: blake3::Hasher,
    /// Bytes of the log that are still to come.
    left: u64,
}

impl<W: Write> Envelope<W> {
    pub(super) fn write(file: W, label: &Label) -> Result<Self, EnvelopeError> {
        let mut envelope = Self { file, hash: blake3::Hasher::new(), left: label.bytes };
        let label = serde_json::to_string(label).map_err(io::Error::from)?;
        let head = format!("{TITLE}{FORMAT}\n{label}\n");
        envelope.hash.update(head.as_bytes());
        envelope.file.write_all(head.as_bytes())?;
        Ok(envelope)
    }

    /// Writes the hash and returns it.
    pub(super) fn close(mut self) -> Result<[u8; HASH_BYTES], EnvelopeError> {
        if self.left > 0 {
            return Err(EnvelopeError::Short { missing: self.left });
        }
        let hash = *self.hash.finalize().as_bytes();
        self.file.write_all(&hash)?;
        self.file.flush()?;
        Ok(hash)
    }
}

impl<W: Write> Write for Envelope<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.hash.update(&bytes[..written]);
        self.left = self.left.saturating_sub(written as u64);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl<R: BufRead> Envelope<R> {
    /// Reads title and label; what follows is the log.
    pub(super) fn read(mut file: R) -> Result<(Label, Self), EnvelopeError> {
        let mut hash = blake3::Hasher::new();
        let title = line(&mut file, &mut hash)?;
        let format = title.strip_prefix(TITLE).ok_or(EnvelopeError::Foreign)?;
        if format != FORMAT.to_string() {
            return Err(EnvelopeError::Format(format.to_owned()));
        }
        let label = line(&mut file, &mut hash)?;
        let label: Label = serde_json::from_str(&label)
            .map_err(|error| EnvelopeError::Label(error.to_string()))?;
        if label.log_format != LOG_FORMAT {
            let (found, writer) = (label.log_format, label.written_by);
            return Err(EnvelopeError::LogFormat { found, writer });
        }
        let left = label.bytes;
        Ok((label, Self { file, hash, left }))
    }

    /// Compares the hash, and that nothing follows it. What was read counts only after this.
    pub(super) fn checked(mut self) -> Result<[u8; HASH_BYTES], EnvelopeError> {
        if self.left > 0 {
            return Err(EnvelopeError::Short { missing: self.left });
        }
        let mut stored = Vec::new();
        self.file.by_ref().take(HASH_BYTES as u64 + 1).read_to_end(&mut stored)?;
        let found = *self.hash.finalize().as_bytes();
        if stored == found { Ok(found) } else { Err(EnvelopeError::Damaged) }
    }
}

impl<R: BufRead> Read for Envelope<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let read = self.file.by_ref().take(self.left).read(bytes)?;
        self.hash.update(&bytes[..read]);
        self.left = self.left.saturating_sub(read as u64);
        Ok(read)
    }
}

/// A line without its end, which must be there.
fn line(file: &mut impl BufRead, hash: &mut blake3::Hasher) -> Result<String, EnvelopeError> {
    let mut bytes = Vec::new();
    file.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', &mut bytes)?;
    hash.update(&bytes);
    let text = bytes.strip_suffix(b"\n").ok_or(EnvelopeError::Foreign)?;
    String::from_utf8(text.to_vec()).map_err(|_| EnvelopeError::Foreign)
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &[u8] = b"the log";

    fn backup() -> Vec<u8> {
        let head = Head { revision: 7, ..Head::EMPTY };
        let label = Label::new(&head, LOG.len() as u64);
        let mut bytes = Vec::new();
        let mut envelope = Envelope::write(&mut bytes, &label).expect("written");
        envelope.write_all(LOG).expect("written");
        envelope.close().expect("closed");
        bytes
    }

    fn restored(bytes: &[u8]) -> Result<Vec<u8>, EnvelopeError> {
        let (_, mut envelope) = Envelope::read(bytes)?;
        let mut log = Vec::new();
        envelope.read_to_end(&mut log)?;
        envelope.checked().map(|_| log)
    }

    fn refused(bytes: &[u8], because: &str) {
        let error = restored(bytes).expect_err("refused").to_string();
        assert!(error.contains(because), "{error:?} does not say {because:?}");
    }

    #[test]
    fn what_went_in_comes_out() {
        assert_eq!(restored(&backup()).expect("whole"), LOG);
    }

    #[test]
    fn every_changed_bit_is_refused() {
        let whole = backup();
        for bit in 0..whole.len() * 8 {
            let mut bytes = whole.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(restored(&bytes).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn every_cut_and_every_addition_is_refused() {
        let mut bytes = backup();
        for length in 0..bytes.len() {
            assert!(restored(&bytes[..length]).is_err(), "{length} bytes");
        }
        bytes.push(0);
        refused(&bytes, "damaged");
    }

    #[test]
    fn other_formats_are_refused_with_what_to_do() {
        let text = String::from_utf8_lossy(&backup()).into_owned();
        refused(text.replacen("backup 1", "backup 2", 1).as_bytes(), "has format 2");
        let ours = format!("\"log_format\":{}", store::LOG_FORMAT);
        let other = text.replacen(&ours, "\"log_format\":9", 1);
        refused(other.as_bytes(), "log of format 9, written by novaplace");
        refused(b"PK\x03\x04\n", "not a backup");
    }
}
