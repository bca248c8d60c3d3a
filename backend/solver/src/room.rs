//! Capacity: what every host can promise, what it has promised, and what that leaves.
//!
//! Free amounts are columns of `i32`, one a dimension, in blocks of 64 hosts with the lowest and
//! highest value of each block, so that whole blocks pass or fail without being read. What is
//! left may be negative: adopted VMs can exceed their host. Promised amounts are kept exactly.

use crate::bits::LANES;
use cluster::{Amounts, CpuUnit, Dim, Host, HostIx, Index, MAX_AMOUNT};

/// Rows without a host: no demand fits there.
const NO_HOST: i32 = i32::MIN;

#[derive(Debug)]
pub(crate) struct Room {
    dimensions: usize,
    rows: usize,
    free: Vec<Free>,
    /// Free CPU in cores of the reference machine. `ceil(d * 1000 / speed) <= free` is the same
    /// as `d <= floor(free * speed / 1000)`, so a normalised demand is one comparison as well.
    reference_cpu: Free,
    /// By row, then dimension.
    committed: Vec<u64>,
    allocatable: Vec<u32>,
    used_permille: Vec<u16>,
    hosts: Vec<Use>,
    /// Over all hosts, by dimension.
    total: Vec<u64>,
    smallest: Smallest,
}

/// One host's summary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Use {
    /// Sum of utilisations over the dimensions that the host has.
    pub(crate) sum: u32,
    pub(crate) highest: u16,
    /// How many dimensions the host has.
    pub(crate) dimensions: u8,
    pub(crate) vms: u32,
    speed_permille: u32,
}

impl Use {
    pub(crate) fn mean(&self) -> i64 {
        mean(self.sum, self.dimensions)
    }
}

/// One dimension's free amounts.
#[derive(Debug, Default)]
pub(crate) struct Free {
    lanes: Vec<i32>,
    low: Vec<i32>,
    high: Vec<i32>,
}

/// The least that any host has, to bound from above what a demand adds to a host's utilisation.
#[derive(Debug, Default)]
struct Smallest {
    allocatable: Vec<u32>,
    dimensions: u8,
    speed_permille: u32,
    stale: bool,
}

/// What a VM asks for in one dimension, ready to be compared.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ask {
    pub(crate) dim: Dim,
    pub(crate) amount: u64,
    unit: CpuUnit,
}

impl Ask {
    pub(crate) fn new(dim: Dim, amount: u64, unit: CpuUnit) -> Self {
        let unit = if dim == Dim::CPU_MILLIS { unit } else { CpuUnit::Raw };
        Self { dim, amount, unit }
    }

    fn taken_at(&self, speed_permille: u32) -> u64 {
        match self.unit {
            CpuUnit::Raw => self.amount,
            CpuUnit::Normalised => {
                self.amount.saturating_mul(1000).div_ceil(speed_permille.max(1).into())
            }
        }
    }
}

impl Room {
    pub(crate) fn new(dimensions: usize) -> Self {
        let mut room = Self {
            dimensions: 0,
            rows: 0,
            free: Vec::new(),
            reference_cpu: Free::default(),
            committed: Vec::new(),
            allocatable: Vec::new(),
            used_permille: Vec::new(),
            hosts: Vec::new(),
            total: Vec::new(),
            smallest: Smallest { stale: true, ..Smallest::default() },
        };
        room.set_dimensions(dimensions.max(Dim::BUILT_IN));
        room
    }

    pub(crate) fn set_dimensions(&mut self, dimensions: usize) {
        if dimensions <= self.dimensions {
            return;
        }
        let old = self.dimensions;
        self.committed = widen(&self.committed, old, dimensions, self.rows);
        self.allocatable = widen(&self.allocatable, old, dimensions, self.rows);
        self.used_permille = widen(&self.used_permille, old, dimensions, self.rows);
        self.free.resize_with(dimensions, || Free::with_rows(self.rows));
        self.total.resize(dimensions, 0);
        self.smallest.allocatable.resize(dimensions, u32::MAX);
        self.dimensions = dimensions;
    }

    /// The column to compare an ask with, and what to compare: lanes with at least that much
    /// can take it. `None` when no host can.
    pub(crate) fn column(&self, ask: &Ask) -> Option<(&Free, i32)> {
        let amount = i32::try_from(ask.amount).ok()?;
        match ask.unit {
            CpuUnit::Raw => Some((self.free.get(ask.dim.row())?, amount)),
            CpuUnit::Normalised => Some((&self.reference_cpu, amount)),
        }
    }

    /// What the ask takes on this host.
    pub(crate) fn taken(&self, ask: &Ask, host: HostIx) -> u64 {
        ask.taken_at(self.hosts[host.row()].speed_permille)
    }

    pub(crate) fn host(&self, host: HostIx) -> Use {
        self.hosts[host.row()]
    }

    /// Highest and mean utilisation in permille that the host has after taking these.
    pub(crate) fn after(&self, asks: &[Ask], host: HostIx) -> (i64, i64) {
        let from = host.row() * self.dimensions;
        let (mut highest, mut sum) = (0, 0);
        let mut next = asks.iter().peekable();
        for (row, &before) in self.used_permille[from..from + self.dimensions].iter().enumerate() {
            let mut used = before;
            if let Some(ask) = next.next_if(|ask| ask.dim.row() == row) {
                let committed = self.committed[from + row].saturating_add(self.taken(ask, host));
                used = used_permille(committed, self.allocatable[from + row]);
            }
            highest = highest.max(used);
            sum += u32::from(used);
        }
        (highest.into(), mean(sum, self.hosts[host.row()].dimensions))
    }

    /// The most that taking these can add to the mean utilisation of any host, in permille.
    pub(crate) fn most_added(&self, asks: &[Ask]) -> i64 {
        // One more for each dimension, because utilisations before and after are rounded down,
        // and one more for rounding the mean down.
        let share = |ask: &Ask| {
            let least = self.smallest.allocatable.get(ask.dim.row()).copied().unwrap_or(1);
            let amount = ask.taken_at(self.smallest.speed_permille);
            1 + i64::from(used_permille(amount, least))
        };
        1 + asks.iter().map(share).sum::<i64>() / i64::from(self.smallest.dimensions.max(1))
    }

    /// Recomputes the smallest host if it was removed or changed.
    pub(crate) fn refresh(&mut self) {
        if !std::mem::take(&mut self.smallest.stale) {
            return;
        }
        self.smallest.allocatable.fill(u32::MAX);
        self.smallest.dimensions = u8::MAX;
        self.smallest.speed_permille = u32::MAX;
        for row in 0..self.rows {
            self.note_smallest(row);
        }
    }

    /// How large a demand is against the fleet's mean host, in millionths of its tightest
    /// dimension.
    pub(crate) fn size(&self, demand: &Amounts, hosts: u32) -> u128 {
        let share = |(dim, amount): (Dim, u64)| match self.total.get(dim.row()) {
            None | Some(0) => u128::MAX,
            Some(&total) => u128::from(amount) * 1_000_000 * u128::from(hosts) / u128::from(total),
        };
        demand.iter().map(share).max().unwrap_or(0)
    }

    pub(crate) fn put_host(&mut self, ix: HostIx, host: &Host) {
        self.set_dimensions(host.capacity.width());
        self.reach(ix.row() + 1);
        let from = ix.row() * self.dimensions;
        self.forget(ix.row());
        for dim in 0..self.dimensions {
            let allocatable = host.allocatable(Dim(dim as u8)).min(MAX_AMOUNT) as u32;
            self.allocatable[from + dim] = allocatable;
            self.total[dim] += u64::from(allocatable);
        }
        let speed = u32::try_from(host.speed_permille()).unwrap_or(u32::MAX);
        self.hosts[ix.row()].speed_permille = speed;
        self.patch(ix.row(), 0..self.dimensions);
        self.note_smallest(ix.row());
    }

    pub(crate) fn remove_host(&mut self, ix: HostIx) {
        let from = ix.row() * self.dimensions;
        self.forget(ix.row());
        self.allocatable[from..from + self.dimensions].fill(0);
        self.committed[from..from + self.dimensions].fill(0);
        self.used_permille[from..from + self.dimensions].fill(0);
        self.hosts[ix.row()] = Use::default();
        for free in self.free.iter_mut().chain([&mut self.reference_cpu]) {
            free.set(ix.row(), NO_HOST);
        }
    }

    /// Gives `committed` to a VM on the host, or takes it back.
    pub(crate) fn commit(&mut self, host: HostIx, committed: &Amounts, arrives: bool) {
        self.set_dimensions(committed.width());
        let from = host.row() * self.dimensions;
        for (dim, amount) in committed.iter() {
            let sum = &mut self.committed[from + dim.row()];
            *sum = if arrives { sum.saturating_add(amount) } else { sum.saturating_sub(amount) };
        }
        let vms = &mut self.hosts[host.row()].vms;
        *vms = if arrives { *vms + 1 } else { vms.saturating_sub(1) };
        self.patch(host.row(), 0..committed.width());
    }

    /// Brings what is derived from a row's amounts up to date.
    fn patch(&mut self, row: usize, changed: std::ops::Range<usize>) {
        let from = row * self.dimensions;
        for dim in changed {
            let (allocatable, committed) =
                (self.allocatable[from + dim], self.committed[from + dim]);
            self.used_permille[from + dim] = used_permille(committed, allocatable);
            let free = free(allocatable, committed);
            self.free[dim].set(row, free);
            if dim == Dim::CPU_MILLIS.row() {
                let speed = i64::from(self.hosts[row].speed_permille);
                let reference = i64::from(free).saturating_mul(speed).div_euclid(1000);
                let lowest = i64::from(i32::MIN + 1);
                self.reference_cpu.set(row, reference.clamp(lowest, i32::MAX.into()) as i32);
            }
        }
        let summary = &mut self.hosts[row];
        let used = &self.used_permille[from..from + self.dimensions];
        summary.highest = used.iter().copied().max().unwrap_or(0);
        summary.sum = used.iter().map(|&used| u32::from(used)).sum();
        let allocatable = &self.allocatable[from..from + self.dimensions];
        summary.dimensions = allocatable.iter().filter(|&&amount| amount > 0).count() as u8;
    }

    /// Takes a row out of the fleet's totals.
    fn forget(&mut self, row: usize) {
        let from = row * self.dimensions;
        for dim in 0..self.dimensions {
            self.total[dim] -= u64::from(self.allocatable[from + dim]);
        }
        self.smallest.stale |= self.hosts[row].dimensions > 0;
    }

    fn note_smallest(&mut self, row: usize) {
        let host = self.hosts[row];
        if host.dimensions == 0 {
            return;
        }
        let from = row * self.dimensions;
        let smallest = &mut self.smallest;
        for (least, &has) in smallest.allocatable.iter_mut().zip(&self.allocatable[from..]) {
            if has > 0 {
                *least = has.min(*least);
            }
        }
        smallest.dimensions = host.dimensions.min(smallest.dimensions);
        smallest.speed_permille = host.speed_permille.min(smallest.speed_permille);
    }

    fn reach(&mut self, rows: usize) {
        if rows <= self.rows {
            return;
        }
        self.rows = rows.next_multiple_of(LANES);
        self.committed.resize(self.rows * self.dimensions, 0);
        self.allocatable.resize(self.rows * self.dimensions, 0);
        self.used_permille.resize(self.rows * self.dimensions, 0);
        self.hosts.resize(self.rows, Use::default());
        for free in self.free.iter_mut().chain([&mut self.reference_cpu]) {
            free.reach(self.rows);
        }
    }

    pub(crate) fn rows(&self) -> usize {
        self.rows
    }
}

impl Free {
    fn with_rows(rows: usize) -> Self {
        let mut free = Self::default();
        free.reach(rows);
        // A dimension that hosts do not know of: they have none of it.
        free.lanes.fill(0);
        free.low.fill(0);
        free.high.fill(0);
        free
    }

    fn reach(&mut self, rows: usize) {
        self.lanes.resize(rows, NO_HOST);
        self.low.resize(rows / LANES, NO_HOST);
        self.high.resize(rows / LANES, NO_HOST);
    }

    pub(crate) fn low(&self, block: usize) -> i32 {
        self.low[block]
    }

    pub(crate) fn high(&self, block: usize) -> i32 {
        self.high[block]
    }

    pub(crate) fn block(&self, block: usize) -> &[i32; LANES] {
        &self.lanes.as_chunks().0[block]
    }

    fn set(&mut self, row: usize, value: i32) {
        let block = row / LANES;
        let old = std::mem::replace(&mut self.lanes[row], value);
        if old == self.low[block] || value < self.low[block] {
            self.low[block] = self.block(block).iter().copied().min().unwrap_or(value);
        }
        if old == self.high[block] || value > self.high[block] {
            self.high[block] = self.block(block).iter().copied().max().unwrap_or(value);
        }
    }
}

/// What is left, or how much it is exceeded by.
fn free(allocatable: u32, committed: u64) -> i32 {
    let left = i64::from(allocatable) - i64::try_from(committed).unwrap_or(i64::MAX / 2);
    left.clamp(i64::from(i32::MIN + 1), i64::from(i32::MAX)) as i32
}

/// Utilisation, rounded down and never over 1000; 0 in a dimension that the host does not have.
fn used_permille(committed: u64, allocatable: u32) -> u16 {
    let allocatable = u64::from(allocatable);
    if allocatable == 0 {
        0
    } else if committed >= allocatable {
        1000
    } else {
        (committed * 1000 / allocatable) as u16
    }
}

fn mean(sum: u32, dimensions: u8) -> i64 {
    if dimensions == 0 { 0 } else { i64::from(sum / u32::from(dimensions)) }
}

fn widen<T: Copy + Default>(rows: &[T], old: usize, new: usize, count: usize) -> Vec<T> {
    let mut wide = vec![T::default(); new * count];
    for row in 0..count {
        wide[row * new..row * new + old].copy_from_slice(&rows[row * old..row * old + old]);
    }
    wide
}
