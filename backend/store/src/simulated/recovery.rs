//! Opening a simulated log: read every segment, believe nothing that does not check out.

use std::ops::Range;

use crate::disk::SimDisk;
use crate::error::{Flaw, LogError};
use crate::record;
use crate::snapshot::Finished;
use crate::{IdempotencyEntry, LOG_FORMAT};

use super::SimulatedOptions;
use super::index::{Index, Place, Reply};
use super::segment::{
    BATCH_HEADER_BYTES, BatchHeader, ENTRY_HEADER_BYTES, Entry, Kind, SEGMENT_HEADER_BYTES,
    SegmentHeader, Unreadable,
};

/// Bytes of a piece's payload before its content: snapshot id and number.
pub(super) const PIECE_HEADER_BYTES: usize = 12;

/// A log as it was found, and where it goes on.
pub(super) struct Found {
    pub(super) index: Index,
    pub(super) segment: u32,
    pub(super) segment_bytes: u64,
    pub(super) next_batch: u64,
}

pub(super) fn recover(disk: &SimDisk, options: &SimulatedOptions) -> Result<Found, LogError> {
    let during = "opening the log";
    let mut numbers = disk.files();
    let mut found = Found { index: Index::new(), segment: 1, segment_bytes: 0, next_batch: 1 };
    let Some(newest) = newest_segment(disk, &mut numbers)? else {
        return Ok(found);
    };
    found.index.oldest_segment = newest.oldest;
    found.index.anchored = newest.oldest == 1;
    for number in newest.oldest..=newest.number {
        let file = disk.file(number);
        let bytes = file.read_all().map_err(|error| LogError::io(during, &error))?;
        let is_last = number == newest.number;
        let tail = found.read_segment(options, number, &bytes, is_last)?;
        if is_last {
            // Whether the last batch was ever acknowledged is unknown, and a sync of it may have
            // failed. Written again it is durable, whatever happened to it before.
            let last = bytes.get(tail.clone()).unwrap_or_default();
            let mut settled = file.write_at(tail.start as u64, last).and_then(|()| file.sync());
            // Cut only afterwards, and only what is there: a length that outlives the bytes it
            // was set for would leave zeros, and zeros look like damage.
            if bytes.len() > tail.end {
                settled =
                    settled.and_then(|()| file.set_len(tail.end as u64)).and_then(|()| file.sync());
            }
            settled.map_err(|error| LogError::io(during, &error))?;
        }
        found.segment = number;
        found.segment_bytes = tail.end as u64;
    }
    // Not before the segment that makes them superfluous is durable.
    for leftover in numbers.iter().filter(|number| **number < newest.oldest) {
        disk.remove(*leftover);
    }
    found.index.head.first = newest.first_revision;
    found.index.drop_unfinished();
    // Only now: an older snapshot's pieces may have gone with a segment that its end outlived.
    for kept in &found.index.kept {
        if found.index.pieces(kept.id).len() != kept.pieces as usize {
            return Err(LogError::CorruptSnapshot {
                revision: kept.meta.revision,
                what: "pieces are missing".to_owned(),
            });
        }
    }
    Ok(found)
}

/// The header of the newest segment that was ever acknowledged. One that ends before its first
/// batch does never was, and is removed.
fn newest_segment(
    disk: &SimDisk,
    numbers: &mut Vec<u32>,
) -> Result<Option<SegmentHeader>, LogError> {
    let mut torn_one = None;
    while let Some(number) = numbers.last().copied() {
        let bytes = disk
            .file(number)
            .read_all()
            .map_err(|error| LogError::io("opening the log", &error))?;
        match complete_header(&bytes) {
            Ok(header) if header.format != LOG_FORMAT => {
                return Err(LogError::Format {
                    found: header.format,
                    writer: "another version".to_owned(),
                });
            }
            Ok(header) if header.number == number => return Ok(Some(header)),
            Err(Unreadable::Torn) if torn_one.is_none() => {
                torn_one = Some(number);
                disk.remove(number);
                numbers.pop();
            }
            _ => return Err(damaged(number, "its header is unreadable")),
        }
    }
    Ok(None)
}

/// The header of a segment whose first batch is all there.
fn complete_header(bytes: &[u8]) -> Result<SegmentHeader, Unreadable> {
    let header = SegmentHeader::read(bytes)?;
    let batch = bytes.get(SEGMENT_HEADER_BYTES..).unwrap_or_default();
    let length = BatchHeader::read(batch)?.bytes as usize;
    let entries = batch.get(BATCH_HEADER_BYTES..).unwrap_or_default();
    entries.get(..length).map(|_| header).ok_or(Unreadable::Torn)
}

impl Found {
    /// Takes over the batches of a segment and returns where the last complete one lies. The
    /// first one includes the header.
    fn read_segment(
        &mut self,
        options: &SimulatedOptions,
        number: u32,
        bytes: &[u8],
        is_last: bool,
    ) -> Result<Range<usize>, LogError> {
        let header = SegmentHeader::read(bytes)
            .map_err(|_| damaged(number, "it is missing or its header is unreadable"))?;
        if number == self.index.oldest_segment {
            self.next_batch = header.batch;
        }
        if header.number != number || header.batch != self.next_batch {
            return Err(damaged(number, "it does not continue the one before"));
        }
        let mut at = SEGMENT_HEADER_BYTES;
        let mut last = 0..at;
        loop {
            let rest = bytes.get(at..).unwrap_or_default();
            if rest.is_empty() {
                return Ok(last);
            }
            let whole = BatchHeader::read(rest).and_then(|batch| {
                let end = BATCH_HEADER_BYTES.saturating_add(batch.bytes as usize);
                let whole = rest.get(..end).ok_or(Unreadable::Torn)?;
                Ok((batch, whole))
            });
            let (batch, whole) = match whole {
                Ok(whole) => whole,
                Err(Unreadable::Torn) if is_last => return Ok(last),
                Err(flaw) => return Err(self.index.next_is_corrupt(flaw)),
            };
            if batch.number != self.next_batch {
                return Err(self.index.next_is_corrupt(Unreadable::Torn));
            }
            let place = |within: usize, bytes: usize| Place {
                segment: number,
                offset: at.saturating_add(within) as u64,
                bytes: bytes as u32,
            };
            take_batch(&mut self.index, options, whole, &place)?;
            self.next_batch = self.next_batch.saturating_add(1);
            let end = at.saturating_add(whole.len());
            let is_first = at == SEGMENT_HEADER_BYTES;
            last = if is_first { 0 } else { at }..end;
            at = end;
        }
    }
}

/// Takes over a whole batch, header included. `place` says where a part of it is stored.
pub(super) fn take_batch(
    index: &mut Index,
    options: &SimulatedOptions,
    batch: &[u8],
    place: &dyn Fn(usize, usize) -> Place,
) -> Result<(), LogError> {
    let header = BatchHeader::read(batch).map_err(|flaw| index.next_is_corrupt(flaw))?;
    let mut rest = batch.get(BATCH_HEADER_BYTES..).unwrap_or_default();
    let mut replies: usize = 0;
    for _ in 0..header.entries {
        let at = batch.len().saturating_sub(rest.len());
        let (entry, behind) = Entry::read(rest).map_err(|flaw| index.next_is_corrupt(flaw))?;
        rest = behind;
        if let Some(flaw) = entry.flaw {
            if skips_bad_records(options) {
                index.anchored = false;
                continue;
            }
            return Err(index.next_is_corrupt(flaw));
        }
        let at = place(at.saturating_add(ENTRY_HEADER_BYTES), entry.payload.len());
        if take_entry(index, &entry, at)? {
            replies = replies.saturating_add(1);
        }
    }
    if !rest.is_empty() {
        return Err(index.next_is_corrupt(Unreadable::Torn));
    }
    if replies > 0 {
        index.prune_replies(&options.idempotency, replies);
    }
    Ok(())
}

/// Takes over one entry; true if it brought a reply to keep.
fn take_entry(index: &mut Index, entry: &Entry<'_>, at: Place) -> Result<bool, LogError> {
    let unreadable = |what| damaged(at.segment, what);
    match entry.kind {
        kind if kind == Kind::Record as u8 => take_record(index, entry.payload, at),
        kind if kind == Kind::Reply as u8 => {
            let reply: Reply = postcard::from_bytes(entry.payload)
                .map_err(|_| unreadable("a stored reply is unreadable"))?;
            index.push_reply(at.segment, reply);
            Ok(true)
        }
        kind if kind == Kind::Piece as u8 => {
            let id = entry.payload.first_chunk::<8>().copied();
            let id = id.ok_or_else(|| unreadable("a snapshot piece is unreadable"))?;
            index.push_piece(u64::from_le_bytes(id), at);
            Ok(false)
        }
        kind if kind == Kind::Finished as u8 => {
            let done: Finished = postcard::from_bytes(entry.payload)
                .map_err(|_| unreadable("a snapshot's description is unreadable"))?;
            index.finish(done);
            Ok(false)
        }
        _ => Err(unreadable("it has an entry of an unknown kind")),
    }
}

fn take_record(index: &mut Index, bytes: &[u8], at: Place) -> Result<bool, LogError> {
    let next = index.head.revision.saturating_add(1);
    let frame = record::decode(bytes).map_err(|flaw| LogError::corrupt(next, flaw))?;
    if index.anchored && frame.revision != next {
        return Err(LogError::corrupt(next, Flaw::Revision(frame.revision)));
    }
    if index.anchored && frame.previous != index.head.chain_hash {
        return Err(LogError::corrupt(next, Flaw::Chain));
    }
    index.push_record(&frame, record::chain_hash(bytes), at);
    let Some(entry) = frame.idempotency else {
        return Ok(false);
    };
    let reply = Reply {
        revision: frame.revision,
        entry: IdempotencyEntry {
            key: entry.key.to_vec(),
            request_hash: entry.request_hash,
            ts_ms: entry.ts_ms,
            reply: entry.reply.to_vec(),
        },
    };
    index.push_reply(at.segment, reply);
    Ok(true)
}

impl Index {
    fn next_is_corrupt(&self, flaw: Unreadable) -> LogError {
        let flaw = match flaw {
            Unreadable::Torn => Flaw::Layout,
            Unreadable::Damaged { stored, computed } => Flaw::Checksum { stored, computed },
        };
        LogError::corrupt(self.head.revision.saturating_add(1), flaw)
    }
}

fn skips_bad_records(options: &SimulatedOptions) -> bool {
    #[cfg(feature = "planted-bugs")]
    return options.planted == Some(super::PlantedBug::SkipBadRecord);
    #[cfg(not(feature = "planted-bugs"))]
    {
        let _ = options;
        false
    }
}

fn damaged(segment: u32, what: &str) -> LogError {
    LogError::Damaged(format!("segment {segment}: {what}"))
}
