//! The content of one simulated file, and how to take back what no sync has covered.

use std::collections::VecDeque;
use std::io;

use super::DiskStats;

/// Memory for undoing un-synced writes; beyond it the oldest count as written back, as they
/// would be by a kernel under pressure.
const MAX_UNSYNCED_BYTES: usize = 64 << 20;

/// Content as processes see it, and how to go back to what is durable.
#[derive(Debug)]
pub(super) struct File {
    pub(super) bytes: Vec<u8>,
    undo: VecDeque<Undo>,
    undo_bytes: usize,
    /// Its creation has not been synced.
    pub(super) unborn: bool,
}

/// One un-synced change: which bytes it set, and what was there before.
#[derive(Debug)]
struct Undo {
    offset: usize,
    /// Bytes that the change set; a change of length sets none.
    set: usize,
    before: Vec<u8>,
    length_before: usize,
    length_after: usize,
    /// A sync of it failed, so no later one will make it durable.
    stuck: bool,
    /// A later sync covered it, and it is only here because an older one is stuck.
    durable: bool,
}

impl Default for File {
    fn default() -> Self {
        File { bytes: Vec::new(), undo: VecDeque::new(), undo_bytes: 0, unborn: true }
    }
}

impl File {
    pub(super) fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    pub(super) fn write(&mut self, offset: u64, data: &[u8]) -> io::Result<()> {
        let offset = usize::try_from(offset).map_err(io::Error::other)?;
        let before = self.bytes.get(offset..).unwrap_or_default();
        let before = before.get(..data.len()).unwrap_or(before).to_vec();
        let length_before = self.bytes.len();
        place(&mut self.bytes, offset, data);
        self.remember(Undo {
            offset,
            set: data.len(),
            before,
            length_before,
            length_after: self.bytes.len(),
            stuck: false,
            durable: false,
        });
        Ok(())
    }

    pub(super) fn set_len(&mut self, bytes: u64) -> io::Result<()> {
        let length_after = usize::try_from(bytes).map_err(io::Error::other)?;
        let length_before = self.bytes.len();
        let before = self.bytes.get(length_after..).unwrap_or_default().to_vec();
        self.bytes.resize(length_after, 0);
        self.remember(Undo {
            offset: length_after,
            set: 0,
            before,
            length_before,
            length_after,
            stuck: false,
            durable: false,
        });
        Ok(())
    }

    fn remember(&mut self, undo: Undo) {
        self.undo_bytes = self.undo_bytes.saturating_add(undo.cost());
        self.undo.push_back(undo);
        while self.undo_bytes > MAX_UNSYNCED_BYTES {
            let Some(oldest) = self.undo.pop_front() else {
                break;
            };
            self.undo_bytes = self.undo_bytes.saturating_sub(oldest.cost());
        }
    }

    pub(super) fn sync(&mut self) {
        self.unborn = false;
        if self.undo.iter().any(|undo| undo.stuck) {
            let covered = self.undo.iter_mut().filter(|undo| !undo.stuck);
            covered.for_each(|undo| undo.durable = true);
        } else {
            self.undo.clear();
            self.undo_bytes = 0;
        }
    }

    /// A sync failed: the kernel has let go of the pages, so nothing will write them again.
    pub(super) fn fail_sync(&mut self) {
        let unsynced = self.undo.iter_mut().filter(|undo| !undo.durable);
        unsynced.for_each(|undo| undo.stuck = true);
    }

    pub(super) fn crash(
        &mut self,
        sector_bytes: u64,
        random: &mut SplitMix,
        stats: &mut DiskStats,
    ) {
        // Going back newest first, each change finds the bytes it set still in place.
        let mut redo = Vec::with_capacity(self.undo.len());
        while let Some(undo) = self.undo.pop_back() {
            let set = self.bytes.get(undo.offset..).unwrap_or_default();
            let set = set.get(..undo.set).unwrap_or(set).to_vec();
            self.bytes.resize(undo.length_before, 0);
            place(&mut self.bytes, undo.offset, &undo.before);
            redo.push((undo, set));
        }
        self.undo_bytes = 0;
        for (undo, set) in redo.into_iter().rev() {
            let fate = if undo.durable { 0 } else { random.below(3) };
            match fate {
                0 => {
                    stats.kept = stats.kept.saturating_add(1);
                    if undo.set == 0 {
                        self.bytes.resize(undo.length_after, 0);
                    } else {
                        place(&mut self.bytes, undo.offset, &set);
                    }
                }
                1 if undo.set > 0 => {
                    stats.torn = stats.torn.saturating_add(1);
                    let part = torn(&set, undo.offset as u64, sector_bytes, random);
                    if !part.is_empty() {
                        place(&mut self.bytes, undo.offset, part);
                    }
                }
                _ => stats.dropped = stats.dropped.saturating_add(1),
            }
        }
    }
}

impl Undo {
    fn cost(&self) -> usize {
        self.before.len().saturating_add(size_of::<Undo>())
    }
}

/// Puts `data` at `offset`, filling a gap before it with zeros.
fn place(bytes: &mut Vec<u8>, offset: usize, data: &[u8]) {
    let end = offset.saturating_add(data.len());
    if data.is_empty() {
        return;
    }
    if offset == bytes.len() {
        bytes.extend_from_slice(data);
        return;
    }
    if end > bytes.len() {
        bytes.resize(end, 0);
    }
    if let Some(room) = bytes.get_mut(offset..end) {
        room.copy_from_slice(data);
    }
}

/// What of a write at `offset` is on the disk when only some of its sectors are.
pub(super) fn torn<'a>(
    data: &'a [u8],
    offset: u64,
    sector_bytes: u64,
    random: &mut SplitMix,
) -> &'a [u8] {
    let end = offset.saturating_add(data.len() as u64);
    let first_sector = offset.checked_div(sector_bytes).unwrap_or(0);
    let sectors = end.div_ceil(sector_bytes).saturating_sub(first_sector);
    let kept = random.below(sectors);
    if kept == 0 {
        return &[];
    }
    let cut = first_sector.saturating_add(kept).saturating_mul(sector_bytes);
    let bytes = usize::try_from(cut.saturating_sub(offset)).unwrap_or(usize::MAX);
    data.get(..bytes).unwrap_or(data)
}

/// A small generator, so that a seed means the same disk in every build.
#[derive(Debug)]
pub(super) struct SplitMix(pub(super) u64);

impl SplitMix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        word ^ (word >> 31)
    }

    /// A number below `bound`, or 0 if there is none. The bias is far below one in 2^32.
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        let wide = u128::from(self.next()).wrapping_mul(u128::from(bound));
        (wide >> 64) as u64
    }
}
