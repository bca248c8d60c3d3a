//! A snapshot on its way to the disk: queued, written in pieces, read back, compared.
//!
//! Holds the bookkeeping that every log needs; where pieces are stored is the log's business.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::chain::RecordHashes;
use crate::error::LogError;
use crate::{Head, SnapshotMeta};

/// Chunks are cut into pieces of this size at most. With its key it fills a 64 KiB page of redb,
/// which hands out pages in powers of two.
pub(crate) const PIECE_BYTES: usize = 63 << 10;

/// How many finished snapshots are kept: the newest, and one to fall back on.
pub(crate) const KEPT: usize = 2;

/// A finished snapshot as logs store it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Finished {
    pub(crate) meta: SnapshotMeta,
    /// Names the pieces. Never reused, so that leftovers of an abandoned snapshot stay apart.
    pub(crate) id: u64,
    pub(crate) pieces: u32,
}

#[derive(Debug)]
pub(crate) struct SnapshotWriter {
    meta: SnapshotMeta,
    id: u64,
    queue: VecDeque<Vec<u8>>,
    accepted: u64,
    written: Progress,
    checked: Progress,
    content: blake3::Hasher,
}

#[derive(Clone, Copy, Debug, Default)]
struct Progress {
    pieces: u32,
    bytes: u64,
}

impl Progress {
    fn add(&mut self, piece: &[u8]) {
        self.pieces = self.pieces.saturating_add(1);
        self.bytes = self.bytes.saturating_add(piece.len() as u64);
    }
}

impl SnapshotWriter {
    pub(crate) fn new(meta: SnapshotMeta, id: u64) -> SnapshotWriter {
        SnapshotWriter {
            meta,
            id,
            queue: VecDeque::new(),
            accepted: 0,
            written: Progress::default(),
            checked: Progress::default(),
            content: blake3::Hasher::new(),
        }
    }

    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// Queues a chunk; the queue is bounded by the size that the snapshot was announced with.
    pub(crate) fn push(&mut self, chunk: &[u8]) -> Result<(), LogError> {
        let accepted = self.accepted.saturating_add(chunk.len() as u64);
        if accepted > self.meta.bytes {
            return Err(LogError::TooLarge {
                what: "a snapshot",
                bytes: accepted,
                max: self.meta.bytes,
            });
        }
        self.accepted = accepted;
        self.queue.extend(chunk.chunks(PIECE_BYTES).map(<[u8]>::to_vec));
        Ok(())
    }

    /// The queued pieces that fit into `max_bytes`, at least one, with their numbers.
    pub(crate) fn due(&self, max_bytes: u64) -> impl Iterator<Item = (u32, &[u8])> {
        let mut room = max_bytes;
        let numbers = self.written.pieces..;
        numbers
            .zip(self.queue.iter())
            .enumerate()
            .take_while(move |(place, (_, piece))| {
                let bytes = piece.len() as u64;
                let fits = *place == 0 || bytes <= room;
                room = room.saturating_sub(bytes);
                fits
            })
            .map(|(_, (number, piece))| (number, piece.as_slice()))
    }

    /// Takes note that the first `pieces` of the queue are durable.
    pub(crate) fn written(&mut self, pieces: usize) {
        for piece in self.queue.drain(..pieces.min(self.queue.len())) {
            self.written.add(&piece);
        }
    }

    pub(crate) fn has_queued(&self) -> bool {
        !self.queue.is_empty()
    }

    /// The number of the next piece to read back, if one is written and unread.
    pub(crate) fn next_to_check(&self) -> Option<u32> {
        (self.checked.pieces < self.written.pieces).then_some(self.checked.pieces)
    }

    /// Takes a piece as it was read back.
    pub(crate) fn checked(&mut self, piece: &[u8]) {
        self.content.update(piece);
        self.checked.add(piece);
    }

    /// Bytes that wait to be written or read back, written ones counted once.
    pub(crate) fn left(&self) -> u64 {
        self.accepted.saturating_sub(self.checked.bytes)
    }

    /// The finished snapshot, if what was read back is what was announced.
    pub(crate) fn finish(&self) -> Result<Finished, LogError> {
        let revision = self.meta.revision;
        if self.accepted != self.meta.bytes {
            let (got, announced) = (self.accepted, self.meta.bytes);
            return Err(LogError::SnapshotRefused {
                revision,
                why: format!("{got} bytes were written, {announced} announced"),
            });
        }
        if self.checked.bytes != self.meta.bytes
            || *self.content.finalize().as_bytes() != self.meta.content_hash
        {
            return Err(LogError::CorruptSnapshot {
                revision,
                what: "what was read back is not what was announced".to_owned(),
            });
        }
        Ok(Finished { meta: self.meta, id: self.id, pieces: self.written.pieces })
    }
}

/// Checks the pieces of a snapshot while somebody reads them.
pub(crate) struct ContentCheck {
    meta: SnapshotMeta,
    bytes: u64,
    content: blake3::Hasher,
}

impl ContentCheck {
    pub(crate) fn new(meta: SnapshotMeta) -> ContentCheck {
        ContentCheck { meta, bytes: 0, content: blake3::Hasher::new() }
    }

    pub(crate) fn push(&mut self, piece: &[u8]) {
        self.bytes = self.bytes.saturating_add(piece.len() as u64);
        self.content.update(piece);
    }

    pub(crate) fn end(self) -> Result<(), LogError> {
        let revision = self.meta.revision;
        let (found, announced) = (self.bytes, self.meta.bytes);
        if found != announced {
            return Err(LogError::CorruptSnapshot {
                revision,
                what: format!("{found} bytes of {announced} are there"),
            });
        }
        if *self.content.finalize().as_bytes() != self.meta.content_hash {
            return Err(LogError::CorruptSnapshot {
                revision,
                what: "its content hash does not match".to_owned(),
            });
        }
        Ok(())
    }
}

/// The new first revision if records before `asked` may be cut and there are any; refused while
/// recovery may still ask for them.
pub(crate) fn check_cut(
    asked: u64,
    head: &Head,
    kept: &[Finished],
) -> Result<Option<u64>, LogError> {
    let needed_from = match kept {
        [.., older, _newest] => older.meta.revision.saturating_add(1),
        _ => 1,
    };
    if asked > needed_from {
        return Err(LogError::StillNeeded { asked, needed_from });
    }
    Ok((asked > head.first).then_some(asked))
}

/// Refuses a snapshot that contradicts the log. `at`: the hashes of the record of its revision.
pub(crate) fn check_meta(
    meta: &SnapshotMeta,
    at: Option<RecordHashes>,
    kept: &[Finished],
) -> Result<(), LogError> {
    let refused =
        |why: &str| Err(LogError::SnapshotRefused { revision: meta.revision, why: why.to_owned() });
    let newest = kept.last().map_or(0, |newest| newest.meta.revision);
    if meta.revision < newest {
        return refused("there is a newer one");
    }
    match at {
        None => refused("the log has no such record"),
        Some(at) if at.state != meta.state_hash => {
            refused("its state hash is not that of the record")
        }
        Some(at) if at.chain != meta.chain_hash => {
            refused("its chain hash is not that of the record")
        }
        Some(_) => Ok(()),
    }
}

/// The snapshots that go once `done` is there.
pub(crate) fn superseded(kept: &[Finished], done: &Finished) -> Vec<Finished> {
    let (same, other): (Vec<Finished>, Vec<Finished>) =
        kept.iter().partition(|kept| kept.meta.revision == done.meta.revision);
    let too_many = other.len().saturating_add(1).saturating_sub(KEPT);
    same.into_iter().chain(other.into_iter().take(too_many)).collect()
}
