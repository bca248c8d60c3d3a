//! What is where: the part of the simulated log that readers share with the writer.
//!
//! Everything here is derived from the segments, batch by batch, in the same way whether a batch
//! has just been written or is read back when the log is opened.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::idempotency::IdempotencyLimits;
use crate::record::Frame;
use crate::snapshot::{self, Finished};
use crate::{Head, IdempotencyEntry};

/// Where a payload lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) segment: u32,
    pub(super) bytes: u32,
    pub(super) offset: u64,
}

/// A reply that is kept, and the segment that makes it durable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Reply {
    pub(super) revision: u64,
    pub(super) entry: IdempotencyEntry,
}

#[derive(Debug)]
pub(super) struct Index {
    pub(super) head: Head,
    /// The stored records, the oldest of which is `oldest`; `None` only where a planted bug
    /// skipped one.
    records: VecDeque<Option<Place>>,
    pub(super) oldest: u64,
    replies: BTreeMap<Vec<u8>, (u32, Reply)>,
    by_time: BTreeMap<(u64, u64), Vec<u8>>,
    pub(super) kept: Vec<Finished>,
    /// Pieces of finished snapshots and of the one being written, in order.
    pieces: BTreeMap<u64, Vec<Place>>,
    /// The highest snapshot id seen, of a finished one or not.
    last_snapshot: u64,
    pub(super) oldest_segment: u32,
    /// Whether the chain hash in `head` is that of a record which was read. It is not when older
    /// records have been cut and none has been read yet.
    pub(super) anchored: bool,
}

impl Index {
    pub(super) fn new() -> Index {
        Index {
            head: Head::EMPTY,
            records: VecDeque::new(),
            oldest: Head::EMPTY.first,
            replies: BTreeMap::new(),
            by_time: BTreeMap::new(),
            kept: Vec::new(),
            pieces: BTreeMap::new(),
            last_snapshot: 0,
            oldest_segment: 1,
            anchored: true,
        }
    }

    pub(super) fn record(&self, revision: u64) -> Option<Place> {
        let at = usize::try_from(revision.checked_sub(self.oldest)?).ok()?;
        self.records.get(at).copied().flatten()
    }

    /// Takes the next record. `chain_hash` is its own.
    pub(super) fn push_record(&mut self, frame: &Frame<'_>, chain_hash: [u8; 32], place: Place) {
        if !self.anchored && self.records.is_empty() {
            self.oldest = frame.revision;
        }
        // There is a gap only where a planted bug skipped a record.
        let next = self.oldest.saturating_add(self.records.len() as u64);
        (next..frame.revision).for_each(|_| self.records.push_back(None));
        self.records.push_back(Some(place));
        self.anchored = true;
        self.head.revision = frame.revision;
        self.head.state_hash = frame.state_hash;
        self.head.chain_hash = chain_hash;
    }

    /// Lets go of records before `first` and of segments before `segment`; returns the latter.
    pub(super) fn cut(&mut self, first: u64, segment: u32) -> Range<u32> {
        let leftover = self.oldest_segment..segment;
        self.head.first = first;
        self.oldest_segment = segment;
        while let Some(Some(place)) = self.records.front() {
            if place.segment >= segment {
                break;
            }
            self.records.pop_front();
            self.oldest = self.oldest.saturating_add(1);
        }
        leftover
    }

    pub(super) fn reply(&self, key: &[u8]) -> Option<&IdempotencyEntry> {
        self.replies.get(key).map(|(_, reply)| &reply.entry)
    }

    pub(super) fn push_reply(&mut self, segment: u32, reply: Reply) {
        let key = reply.entry.key.clone();
        let place = (reply.entry.ts_ms, reply.revision);
        // A carried reply must not replace a newer use of its key.
        let known = self.replies.get(&key);
        if known.is_some_and(|(_, known)| known.revision > reply.revision) {
            return;
        }
        if let Some((_, old)) = self.replies.insert(key.clone(), (segment, reply)) {
            self.by_time.remove(&(old.entry.ts_ms, old.revision));
        }
        self.by_time.insert(place, key);
    }

    pub(super) fn prune_replies(&mut self, limits: &IdempotencyLimits, added: usize) {
        let newest_ms = self.by_time.last_key_value().map_or(0, |(place, _)| place.0);
        for _ in 0..IdempotencyLimits::budget(added) {
            let keys = self.replies.len() as u64;
            let Some(oldest) = self.by_time.first_entry() else {
                break;
            };
            if !limits.may_go(oldest.key().0, newest_ms, keys) {
                break;
            }
            self.replies.remove(&oldest.remove());
        }
    }

    /// The replies whose only durable copy is in a segment before `segment`.
    pub(super) fn replies_before(&self, segment: u32) -> impl Iterator<Item = &Reply> {
        self.replies.values().filter(move |(at, _)| *at < segment).map(|(_, reply)| reply)
    }

    pub(super) fn pieces(&self, id: u64) -> &[Place] {
        self.pieces.get(&id).map_or(&[], Vec::as_slice)
    }

    pub(super) fn push_piece(&mut self, id: u64, place: Place) {
        self.last_snapshot = self.last_snapshot.max(id);
        self.pieces.entry(id).or_default().push(place);
    }

    pub(super) fn drop_pieces(&mut self, id: u64) {
        self.pieces.remove(&id);
    }

    pub(super) fn finish(&mut self, done: Finished) {
        self.last_snapshot = self.last_snapshot.max(done.id);
        for old in snapshot::superseded(&self.kept, &done) {
            self.pieces.remove(&old.id);
            self.kept.retain(|kept| *kept != old);
        }
        self.kept.push(done);
    }

    /// Drops the pieces of snapshots that were never finished.
    pub(super) fn drop_unfinished(&mut self) {
        let kept = &self.kept;
        self.pieces.retain(|id, _| kept.iter().any(|kept| kept.id == *id));
    }

    pub(super) fn next_snapshot(&self) -> u64 {
        self.last_snapshot.saturating_add(1)
    }

    /// The oldest segment that holds something which is still needed once records before
    /// `first` are cut, if anything is.
    pub(super) fn oldest_needed(&self, first: u64) -> Option<u32> {
        let record = self.record(first).map(|place| place.segment);
        let pieces = self.pieces.values().flatten().map(|place| place.segment);
        pieces.chain(record).min()
    }
}
