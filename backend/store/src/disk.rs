//! A disk that fails on purpose, the same way for the same seed.
//!
//! What is written is visible at once and durable only after a sync. When the power is cut, each
//! un-synced write is kept, dropped, or torn after some of its sectors, independently of the
//! others. A failed sync is as nasty as a real one: what it covered stays visible but no later
//! sync makes it durable. The disk outlives the processes that use it: handles are bound to one
//! boot of the machine and fail after it. Knows files by number and nothing of what is in them.

mod file;

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use file::{File, SplitMix, torn};

#[derive(Clone, Copy, Debug)]
pub struct DiskOptions {
    pub seed: u64,
    /// What the device writes whole or not at all.
    pub sector_bytes: u64,
    /// Writes beyond it fail as on a full disk. Also the bound on the memory used.
    pub capacity_bytes: u64,
}

impl Default for DiskOptions {
    fn default() -> Self {
        DiskOptions { seed: 0, sector_bytes: 512, capacity_bytes: 1 << 30 }
    }
}

/// What happened to the disk so far; lets a test assert that its faults were really hit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskStats {
    pub writes: u64,
    pub syncs: u64,
    pub crashes: u64,
    pub kept: u64,
    pub dropped: u64,
    pub torn: u64,
    pub failed_writes: u64,
    pub failed_syncs: u64,
    pub refused_full: u64,
    pub flipped_bits: u64,
}

/// A shared handle to the machine's disk.
#[derive(Clone, Debug)]
pub struct SimDisk {
    device: Arc<Mutex<Device>>,
}

/// One file as seen by one process. Fails once the machine has lost power or the process is
/// killed.
#[derive(Clone, Debug)]
pub struct SimFile {
    disk: SimDisk,
    number: u32,
    boot: u64,
}

impl SimDisk {
    pub fn new(options: DiskOptions) -> SimDisk {
        let device = Device {
            random: SplitMix(options.seed),
            sector_bytes: options.sector_bytes.max(1),
            capacity_bytes: options.capacity_bytes,
            files: BTreeMap::new(),
            removed: Vec::new(),
            used_bytes: 0,
            boot: 0,
            faults: Faults::default(),
            stats: DiskStats::default(),
        };
        SimDisk { device: Arc::new(Mutex::new(device)) }
    }

    /// A file for the process that runs now. It comes into being when it is written to.
    pub fn file(&self, number: u32) -> SimFile {
        SimFile { disk: self.clone(), number, boot: self.device().boot }
    }

    pub fn files(&self) -> Vec<u32> {
        self.device().files.keys().copied().collect()
    }

    /// Removes a file. A crash before the next sync of any file may bring it back.
    pub fn remove(&self, number: u32) {
        let mut device = self.device();
        if let Some(file) = device.files.remove(&number) {
            device.used_bytes = device.used_bytes.saturating_sub(file.len());
            device.removed.push((number, file));
        }
    }

    /// Cuts the power: decides the fate of every un-synced write and ends all handles.
    pub fn crash(&self) {
        self.device().crash();
    }

    /// Kills the process: its handles end, the kernel's cache stays.
    pub fn kill(&self) {
        let mut device = self.device();
        device.boot = device.boot.wrapping_add(1);
    }

    /// Cuts the power in place of the `n`-th operation from now that changes the disk (write,
    /// length change or sync; 1 is the next).
    pub fn crash_at(&self, n: u64) {
        self.device().faults.crash_in = n;
    }

    /// Lets the `n`-th write from now fail with an input/output error (1 is the next).
    pub fn fail_write(&self, n: u64) {
        self.device().faults.fail_write_in = n;
    }

    /// Lets the `n`-th sync from now fail with an input/output error (1 is the next).
    pub fn fail_sync(&self, n: u64) {
        self.device().faults.fail_sync_in = n;
    }

    /// Leaves room for `bytes` more.
    pub fn fill_up_after(&self, bytes: u64) {
        let mut device = self.device();
        device.capacity_bytes = device.used_bytes.saturating_add(bytes);
    }

    pub fn set_capacity(&self, bytes: u64) {
        self.device().capacity_bytes = bytes;
    }

    /// Takes back every fault that has been ordered and not happened.
    pub fn clear_faults(&self) {
        self.device().faults = Faults::default();
    }

    /// Flips one bit of what is stored; false if there is no such byte.
    pub fn flip_bit(&self, number: u32, offset: u64, bit: u8) -> bool {
        self.device().flip_bit(number, offset, bit)
    }

    /// Flips a random bit somewhere and says where: file, offset, bit.
    pub fn flip_random_bit(&self) -> Option<(u32, u64, u8)> {
        let mut device = self.device();
        let used_bytes = device.used_bytes;
        let mut at = device.random.below(used_bytes);
        let bit = device.random.below(8) as u8;
        let lengths = device.files.iter().map(|(number, file)| (*number, file.len()));
        for (number, bytes) in lengths.collect::<Vec<_>>() {
            if at < bytes {
                device.flip_bit(number, at, bit);
                return Some((number, at, bit));
            }
            at = at.saturating_sub(bytes);
        }
        None
    }

    pub fn used_bytes(&self) -> u64 {
        self.device().used_bytes
    }

    pub fn stats(&self) -> DiskStats {
        self.device().stats
    }

    fn device(&self) -> MutexGuard<'_, Device> {
        // A panic elsewhere in a simulated process must not take the machine with it.
        self.device.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SimFile {
    /// Another file for the same process.
    pub fn sibling(&self, number: u32) -> SimFile {
        SimFile { number, ..self.clone() }
    }

    pub fn len(&self) -> io::Result<u64> {
        self.with(|device, number| Ok(device.content(number).len() as u64))
    }

    pub fn is_empty(&self) -> io::Result<bool> {
        self.len().map(|bytes| bytes == 0)
    }

    pub fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.with(|device, number| {
            let from = usize::try_from(offset).map_err(io::Error::other)?;
            let bytes = device.content(number).get(from..).and_then(|b| b.get(..out.len()));
            out.copy_from_slice(bytes.ok_or(io::ErrorKind::UnexpectedEof)?);
            Ok(())
        })
    }

    pub fn read_all(&self) -> io::Result<Vec<u8>> {
        self.with(|device, number| Ok(device.content(number).to_vec()))
    }

    pub fn write_at(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.with(|device, number| device.write(number, offset, data))
    }

    pub fn set_len(&self, bytes: u64) -> io::Result<()> {
        self.with(|device, number| device.set_len(number, bytes))
    }

    pub fn sync(&self) -> io::Result<()> {
        self.with(|device, number| device.sync(number))
    }

    fn with<T>(&self, act: impl FnOnce(&mut Device, u32) -> io::Result<T>) -> io::Result<T> {
        let mut device = self.disk.device();
        if device.boot != self.boot {
            return Err(io::Error::other("this process is dead"));
        }
        act(&mut device, self.number)
    }
}

impl redb::StorageBackend for SimFile {
    fn len(&self) -> io::Result<u64> {
        SimFile::len(self)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.read_at(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        SimFile::set_len(self, len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.sync()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.write_at(offset, data)
    }
}

#[derive(Debug)]
struct Device {
    random: SplitMix,
    sector_bytes: u64,
    capacity_bytes: u64,
    files: BTreeMap<u32, File>,
    /// Removed since the last sync.
    removed: Vec<(u32, File)>,
    used_bytes: u64,
    boot: u64,
    faults: Faults,
    stats: DiskStats,
}

/// Count down to the operation that fails; 0 is never.
#[derive(Debug, Default)]
struct Faults {
    crash_in: u64,
    fail_write_in: u64,
    fail_sync_in: u64,
}

fn comes_due(countdown: &mut u64) -> bool {
    let due = *countdown == 1;
    *countdown = countdown.saturating_sub(1);
    due
}

impl Device {
    /// What is in a file; nothing in one that does not exist.
    fn content(&self, number: u32) -> &[u8] {
        self.files.get(&number).map_or(&[], |file| &file.bytes)
    }

    fn file(&mut self, number: u32) -> &mut File {
        self.files.entry(number).or_default()
    }

    fn power(&mut self) -> io::Result<()> {
        if comes_due(&mut self.faults.crash_in) {
            self.crash();
            return Err(io::Error::other("the power was cut"));
        }
        Ok(())
    }

    /// Takes account of a file that is to end at `end`.
    fn grow(&mut self, number: u32, end: u64) -> io::Result<()> {
        let now = self.file(number).len();
        let used = self.used_bytes.saturating_sub(now).saturating_add(end);
        if end > now && used > self.capacity_bytes {
            self.stats.refused_full = self.stats.refused_full.saturating_add(1);
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.used_bytes = used;
        Ok(())
    }

    fn write(&mut self, number: u32, offset: u64, data: &[u8]) -> io::Result<()> {
        self.power()?;
        let mut data = data;
        let failing = comes_due(&mut self.faults.fail_write_in);
        if failing {
            self.stats.failed_writes = self.stats.failed_writes.saturating_add(1);
            data = torn(data, offset, self.sector_bytes, &mut self.random);
        }
        let end = offset.saturating_add(data.len() as u64);
        let length = self.file(number).len();
        self.grow(number, end.max(length))?;
        self.file(number).write(offset, data)?;
        self.stats.writes = self.stats.writes.saturating_add(1);
        if failing {
            return Err(input_output_error());
        }
        Ok(())
    }

    fn set_len(&mut self, number: u32, bytes: u64) -> io::Result<()> {
        self.power()?;
        self.grow(number, bytes)?;
        self.file(number).set_len(bytes)
    }

    fn sync(&mut self, number: u32) -> io::Result<()> {
        self.power()?;
        self.stats.syncs = self.stats.syncs.saturating_add(1);
        let failing = comes_due(&mut self.faults.fail_sync_in);
        let file = self.file(number);
        if failing {
            file.fail_sync();
            self.stats.failed_syncs = self.stats.failed_syncs.saturating_add(1);
            return Err(input_output_error());
        }
        file.sync();
        self.removed.clear();
        Ok(())
    }

    fn crash(&mut self) {
        self.boot = self.boot.wrapping_add(1);
        self.stats.crashes = self.stats.crashes.saturating_add(1);
        self.faults = Faults::default();
        for (number, file) in std::mem::take(&mut self.removed) {
            if self.random.below(2) == 0 {
                self.files.entry(number).or_insert(file);
            }
        }
        let mut lost = Vec::new();
        for (number, file) in &mut self.files {
            file.crash(self.sector_bytes, &mut self.random, &mut self.stats);
            // A file whose creation was never synced may be gone.
            if file.unborn && file.bytes.is_empty() && self.random.below(2) == 0 {
                lost.push(*number);
            }
            file.unborn = false;
        }
        for number in lost {
            self.files.remove(&number);
        }
        let lengths = self.files.values().map(File::len);
        self.used_bytes = lengths.fold(0, u64::saturating_add);
    }

    fn flip_bit(&mut self, number: u32, offset: u64, bit: u8) -> bool {
        let Some(file) = self.files.get_mut(&number) else {
            return false;
        };
        let Ok(offset) = usize::try_from(offset) else {
            return false;
        };
        let Some(byte) = file.bytes.get_mut(offset) else {
            return false;
        };
        *byte ^= 1_u8.rotate_left(u32::from(bit));
        self.stats.flipped_bits = self.stats.flipped_bits.saturating_add(1);
        true
    }
}

fn input_output_error() -> io::Error {
    io::Error::other("input/output error")
}
