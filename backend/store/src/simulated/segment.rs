//! The bytes of a segment: a header, then batches of entries, each with its own checksum.
//!
//! ```text
//! segment: "nplog-sg" | u32 format | u32 number | u32 oldest needed segment
//!          u64 first kept revision | u64 first batch | u32 crc32c of the above
//! batch:   "batch" | u64 number | u32 entries | u32 bytes of entries | u32 crc32c of the above
//! entry:   u32 crc32c of what follows | u8 kind | u32 payload bytes | payload
//! ```
//!
//! A batch goes to the disk in one write after everything before it was synced. So a write that
//! a crash tore leaves a file that ends too early, and nothing else does: bytes that are all
//! there and wrong are damage, even at the very end.

use crate::LOG_FORMAT;

pub(super) const SEGMENT_HEADER_BYTES: usize = 40;
pub(super) const BATCH_HEADER_BYTES: usize = 25;
pub(super) const ENTRY_HEADER_BYTES: usize = 9;
const SEGMENT_MARK: &[u8; 8] = b"nplog-sg";
const BATCH_MARK: &[u8; 5] = b"batch";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SegmentHeader {
    pub(super) format: u32,
    pub(super) number: u32,
    /// Segments before this one are leftovers.
    pub(super) oldest: u32,
    /// Records before this one have been cut.
    pub(super) first_revision: u64,
    /// Number of the segment's first batch.
    pub(super) batch: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BatchHeader {
    pub(super) number: u64,
    pub(super) entries: u32,
    pub(super) bytes: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Kind {
    /// A framed record.
    Record = 1,
    /// A reply whose record has been cut, carried over.
    Reply = 2,
    /// Snapshot id, piece number, content.
    Piece = 3,
    /// A snapshot is complete.
    Finished = 4,
}

/// Why bytes could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unreadable {
    /// The file ends too early: a torn write, if it is the last one.
    Torn,
    /// The bytes are there, and are not what was written.
    Damaged { stored: u32, computed: u32 },
}

impl SegmentHeader {
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let from = out.len();
        out.extend_from_slice(SEGMENT_MARK);
        out.extend_from_slice(&LOG_FORMAT.to_le_bytes());
        out.extend_from_slice(&self.number.to_le_bytes());
        out.extend_from_slice(&self.oldest.to_le_bytes());
        out.extend_from_slice(&self.first_revision.to_le_bytes());
        out.extend_from_slice(&self.batch.to_le_bytes());
        seal(out, from);
    }

    pub(super) fn read(bytes: &[u8]) -> Result<SegmentHeader, Unreadable> {
        let mut parts = sealed::<SEGMENT_HEADER_BYTES>(bytes, SEGMENT_MARK)?;
        Ok(SegmentHeader {
            format: parts.u32()?,
            number: parts.u32()?,
            oldest: parts.u32()?,
            first_revision: parts.u64()?,
            batch: parts.u64()?,
        })
    }
}

impl BatchHeader {
    /// Writes the header into the room left for it at `at`, before its entries.
    pub(super) fn fill(number: u64, entries: u32, at: usize, out: &mut [u8]) {
        let body = at.saturating_add(BATCH_HEADER_BYTES);
        let bytes = out.len().saturating_sub(body) as u32;
        let mut header = Vec::with_capacity(BATCH_HEADER_BYTES);
        header.extend_from_slice(BATCH_MARK);
        header.extend_from_slice(&number.to_le_bytes());
        header.extend_from_slice(&entries.to_le_bytes());
        header.extend_from_slice(&bytes.to_le_bytes());
        seal(&mut header, 0);
        if let Some(room) = out.get_mut(at..body) {
            room.copy_from_slice(&header);
        }
    }

    pub(super) fn read(bytes: &[u8]) -> Result<BatchHeader, Unreadable> {
        let mut parts = sealed::<BATCH_HEADER_BYTES>(bytes, BATCH_MARK)?;
        Ok(BatchHeader { number: parts.u64()?, entries: parts.u32()?, bytes: parts.u32()? })
    }
}

/// One entry, and where its payload lies in the bytes it was read from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry<'a> {
    pub(super) kind: u8,
    pub(super) payload: &'a [u8],
    /// Why the entry must not be believed.
    pub(super) flaw: Option<Unreadable>,
}

impl<'a> Entry<'a> {
    pub(super) fn write(kind: Kind, payload: &[&[u8]], out: &mut Vec<u8>) {
        let from = out.len();
        out.extend_from_slice(&[0, 0, 0, 0, kind as u8, 0, 0, 0, 0]);
        let start = out.len();
        payload.iter().for_each(|part| out.extend_from_slice(part));
        let bytes = (out.len().saturating_sub(start) as u32).to_le_bytes();
        if let Some(room) = out.get_mut(from.saturating_add(5)..start) {
            room.copy_from_slice(&bytes);
        }
        let crc = out.get(from.saturating_add(4)..).map_or(0, crc32c::crc32c).to_le_bytes();
        if let Some(room) = out.get_mut(from..).and_then(|room| room.get_mut(..4)) {
            room.copy_from_slice(&crc);
        }
    }

    /// Reads the first entry and returns the bytes behind it.
    pub(super) fn read(bytes: &'a [u8]) -> Result<(Entry<'a>, &'a [u8]), Unreadable> {
        let mut parts = Parts(bytes);
        let stored = parts.u32()?;
        let checked = parts.0;
        let kind = parts.take(1)?.first().copied().unwrap_or_default();
        let length = parts.u32()? as usize;
        let payload = parts.take(length)?;
        let covered = checked.len().saturating_sub(parts.0.len());
        let computed = checked.get(..covered).map_or(0, crc32c::crc32c);
        let flaw = (stored != computed).then_some(Unreadable::Damaged { stored, computed });
        let entry = Entry { kind, payload, flaw };
        Ok((entry, parts.0))
    }
}

/// Appends the checksum of what was written since `from`.
fn seal(out: &mut Vec<u8>, from: usize) {
    let crc = out.get(from..).map_or(0, crc32c::crc32c);
    out.extend_from_slice(&crc.to_le_bytes());
}

/// Checks a header of `N` bytes and returns what lies between its mark and its checksum.
fn sealed<'a, const N: usize>(bytes: &'a [u8], mark: &[u8]) -> Result<Parts<'a>, Unreadable> {
    let header = bytes.first_chunk::<N>().ok_or(Unreadable::Torn)?;
    let (content, crc) = header.split_last_chunk::<4>().ok_or(Unreadable::Torn)?;
    let (stored, computed) = (u32::from_le_bytes(*crc), crc32c::crc32c(content));
    match content.strip_prefix(mark) {
        Some(rest) if stored == computed => Ok(Parts(rest)),
        _ => Err(Unreadable::Damaged { stored, computed }),
    }
}

/// The bytes that have not been read yet.
struct Parts<'a>(&'a [u8]);

impl<'a> Parts<'a> {
    fn take(&mut self, bytes: usize) -> Result<&'a [u8], Unreadable> {
        let (head, rest) = self.0.split_at_checked(bytes).ok_or(Unreadable::Torn)?;
        self.0 = rest;
        Ok(head)
    }

    fn u32(&mut self) -> Result<u32, Unreadable> {
        let (head, rest) = self.0.split_first_chunk().ok_or(Unreadable::Torn)?;
        self.0 = rest;
        Ok(u32::from_le_bytes(*head))
    }

    fn u64(&mut self) -> Result<u64, Unreadable> {
        let (head, rest) = self.0.split_first_chunk().ok_or(Unreadable::Torn)?;
        self.0 = rest;
        Ok(u64::from_le_bytes(*head))
    }
}
