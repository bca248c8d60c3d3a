//! Walks framed records in order and tells the first thing that is wrong.

use crate::error::{Flaw, LogError};
use crate::record::{self, Frame};
use crate::{Head, Record};

/// A batch beyond this is refused; a group commit stops at 1 MiB, one huge command may follow.
const MAX_BATCH_BYTES: usize = 256 << 20;

/// Frames the record that is to follow `head`, and moves `head` on.
pub(crate) fn extend(
    head: &mut Head,
    record: &Record,
    frame: &mut Vec<u8>,
) -> Result<(), LogError> {
    if head.revision.checked_add(1) != Some(record.revision) {
        return Err(LogError::NotDense { head: head.revision, given: record.revision });
    }
    head.chain_hash = record::encode(record, &head.chain_hash, frame)?;
    head.revision = record.revision;
    head.state_hash = record.state_hash;
    Ok(())
}

pub(crate) fn check_batch_bytes(bytes: usize) -> Result<(), LogError> {
    if bytes > MAX_BATCH_BYTES {
        return Err(LogError::TooLarge {
            what: "a batch",
            bytes: bytes as u64,
            max: MAX_BATCH_BYTES as u64,
        });
    }
    Ok(())
}

/// The hashes that a record stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecordHashes {
    pub(crate) state: [u8; 32],
    pub(crate) chain: [u8; 32],
}

impl RecordHashes {
    /// Those of a frame that should hold `revision`.
    pub(crate) fn of(revision: u64, bytes: &[u8]) -> Result<RecordHashes, LogError> {
        let frame = Chain::order_from(revision).push(bytes)?;
        Ok(RecordHashes { state: frame.state_hash, chain: record::chain_hash(bytes) })
    }
}

/// Follows the order, and if asked the hash chain, of frames that are pushed one by one.
#[derive(Debug)]
pub(crate) struct Chain {
    next: u64,
    hashes: Option<Hashes>,
}

#[derive(Debug)]
struct Hashes {
    /// Unknown before the first frame when older ones have been cut.
    chain: Option<[u8; 32]>,
    state: [u8; 32],
}

impl Chain {
    /// Checksums and order only.
    pub(crate) fn order_from(from: u64) -> Chain {
        Chain { next: from, hashes: None }
    }

    /// Checksums, order and hash chain.
    pub(crate) fn hashed_from(from: u64) -> Chain {
        let genesis = Head::EMPTY;
        Chain {
            next: from,
            hashes: Some(Hashes {
                chain: (from == genesis.first).then_some(genesis.chain_hash),
                state: genesis.state_hash,
            }),
        }
    }

    /// Takes the next frame, or says what is wrong with it by the revision it should have.
    pub(crate) fn push<'a>(&mut self, bytes: &'a [u8]) -> Result<Frame<'a>, LogError> {
        let corrupt = |flaw| LogError::corrupt(self.next, flaw);
        let frame = record::decode(bytes).map_err(corrupt)?;
        if frame.revision != self.next {
            return Err(corrupt(Flaw::Revision(frame.revision)));
        }
        if let Some(hashes) = &mut self.hashes {
            if hashes.chain.is_some_and(|chain| chain != frame.previous) {
                return Err(corrupt(Flaw::Chain));
            }
            hashes.chain = Some(record::chain_hash(bytes));
            hashes.state = frame.state_hash;
        }
        self.next = self.next.saturating_add(1);
        Ok(frame)
    }

    /// Leaves out the next record.
    #[cfg(feature = "planted-bugs")]
    pub(crate) fn skip(&mut self) {
        self.next = self.next.saturating_add(1);
    }

    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// Ends the walk, which must have reached `head`.
    pub(crate) fn end(self, head: &Head) -> Result<(), LogError> {
        if self.next <= head.revision {
            return Err(LogError::corrupt(self.next, Flaw::Missing));
        }
        let Some(hashes) = self.hashes else {
            return Ok(());
        };
        let Some(chain) = hashes.chain else {
            return Ok(());
        };
        if chain != head.chain_hash || hashes.state != head.state_hash {
            return Err(LogError::corrupt(head.revision, Flaw::Head));
        }
        Ok(())
    }
}
