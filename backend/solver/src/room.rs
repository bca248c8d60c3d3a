//! Capacity: what every host can promise, what it has promised, and what that leaves.
//!
//! Free amounts are columns of `i32`, one a dimension. What is left may be negative: adopted VMs
//! and the use of others can exceed their host. Amounts taken are kept exactly.

use crate::bits::{Bits, LANES};
use crate::free::{Free, NO_HOST};
use crate::guarantees::Guarantees;
use crate::score::FitBy;
use crate::sizes::{Size, Sizes};
use cluster::{Amounts, CpuUnit, Dim, Foreign, Host, HostIx, Index, MAX_AMOUNT, Qos, Vm};
use rustc_hash::FxHashMap;

#[derive(Debug)]
pub(crate) struct Room {
    dimensions: usize,
    rows: usize,
    free: Vec<Free>,
    /// Free CPU in cores of the reference machine. `ceil(d * 1000 / speed) <= free` is the same
    /// as `d <= floor(free * speed / 1000)`, so a normalised demand is one comparison as well.
    reference_cpu: Free,
    guarantees: Guarantees,
    /// By row, then dimension.
    cells: Vec<Cell>,
    hosts: Vec<Use>,
    /// What the cells count for others. Beside them, because most fleets have none of it.
    foreign: FxHashMap<HostIx, Foreign>,
    /// Over all hosts, by dimension.
    total: Vec<u64>,
    sizes: Sizes,
}

/// One host's amounts of one dimension, side by side because they are read together.
#[derive(Clone, Copy, Debug, Default)]
struct Cell {
    /// Committed to VMs or in use by others.
    taken: u64,
    /// 1000 / allocatable as a fraction of 2^62, rounded up; 0 where dividing is done instead.
    inverse: u64,
    allocatable: u32,
    used_permille: u16,
}

impl Cell {
    fn set_allocatable(&mut self, allocatable: u32) {
        self.allocatable = allocatable;
        // Below this the fraction would not fit.
        self.inverse = if allocatable < 1024 {
            0
        } else {
            ((1000 << SCALE) / u128::from(allocatable) + 1) as u64
        };
    }

    /// Utilisation with this much committed, rounded down and never over 1000; 0 in a dimension
    /// that the host does not have.
    fn permille(&self, committed: u64) -> u16 {
        if self.inverse == 0 || committed >= u64::from(self.allocatable) {
            return used_permille(committed, self.allocatable);
        }
        // Exact: the fraction is too large by less than 2^-62, and committed, which is below
        // 2^31, makes that less than 1 / allocatable, the least distance to the next integer.
        ((u128::from(committed) * u128::from(self.inverse)) >> SCALE) as u16
    }
}

/// Binary places of `Cell::inverse`.
const SCALE: u32 = 62;

/// One host's summary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Use {
    /// Sum of utilisations over the dimensions that the host has.
    pub(crate) sum: u32,
    pub(crate) highest: u16,
    /// A dimension that is used that much.
    tightest: u8,
    /// How many dimensions the host has.
    pub(crate) dimensions: u8,
    /// Those of others included.
    pub(crate) vms: u32,
    speed_permille: u32,
}

impl Use {
    pub(crate) fn mean(&self) -> i64 {
        mean(self.sum, self.dimensions)
    }
}

/// What a VM asks for in one dimension, ready to be compared.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ask {
    pub(crate) dim: Dim,
    pub(crate) amount: u64,
    unit: CpuUnit,
    qos: Qos,
}

impl Ask {
    pub(crate) fn new(dim: Dim, amount: u64, vm: &Vm) -> Self {
        let unit = if dim == Dim::CPU_MILLIS { vm.cpu_unit } else { CpuUnit::Raw };
        Self { dim, amount, unit, qos: vm.qos }
    }

    /// Whether it takes the same on every host.
    pub(crate) fn is_same_everywhere(&self) -> bool {
        self.unit == CpuUnit::Raw
    }

    pub(crate) fn taken_at(&self, speed_permille: u32) -> u64 {
        taken_at(self.amount, self.unit, speed_permille)
    }
}

/// What a demand comes to on a host of this speed.
pub(crate) fn taken_at(amount: u64, unit: CpuUnit, speed_permille: u32) -> u64 {
    match unit {
        CpuUnit::Raw => amount,
        CpuUnit::Normalised => amount.saturating_mul(1000).div_ceil(speed_permille.max(1).into()),
    }
}

impl Room {
    pub(crate) fn new(dimensions: usize) -> Self {
        let mut room = Self {
            dimensions: 0,
            rows: 0,
            free: Vec::new(),
            reference_cpu: Free::default(),
            guarantees: Guarantees::default(),
            cells: Vec::new(),
            hosts: Vec::new(),
            foreign: FxHashMap::default(),
            total: Vec::new(),
            sizes: Sizes::default(),
        };
        room.set_dimensions(dimensions.max(Dim::BUILT_IN));
        room
    }

    pub(crate) fn set_dimensions(&mut self, dimensions: usize) {
        if dimensions <= self.dimensions {
            return;
        }
        let mut cells = vec![Cell::default(); dimensions * self.rows];
        if self.dimensions > 0 {
            let rows = self.cells.chunks(self.dimensions);
            for (wide, narrow) in cells.chunks_mut(dimensions).zip(rows) {
                wide[..narrow.len()].copy_from_slice(narrow);
            }
        }
        self.cells = cells;
        self.free.resize_with(dimensions, || Free::with_rows(self.rows));
        self.total.resize(dimensions, 0);
        self.guarantees.set_dimensions(dimensions, self.rows);
        self.dimensions = dimensions;
    }

    /// The hosts that have what is asked for; `None` when none can have.
    pub(crate) fn having(&mut self, ask: &Ask) -> Option<&Bits> {
        let amount = i32::try_from(ask.amount).ok()?;
        let free = match ask.unit {
            CpuUnit::Raw => self.free.get_mut(ask.dim.row())?,
            CpuUnit::Normalised => &mut self.reference_cpu,
        };
        Some(free.at_least(amount))
    }

    /// Of these hosts, those that can guarantee what is asked for; `None` when all of them can, or
    /// when nothing is to be guaranteed.
    pub(crate) fn guaranteeing(&mut self, ask: &Ask) -> Option<&Bits> {
        if ask.qos != Qos::Guaranteed {
            return None;
        }
        self.guarantees.having(ask.dim, i32::try_from(ask.amount).ok()?, ask.unit)
    }

    /// How fast a core of the host is.
    pub(crate) fn speed_permille(&self, host: HostIx) -> u32 {
        self.hosts[host.row()].speed_permille
    }

    /// What the ask takes on this host.
    pub(crate) fn taken(&self, ask: &Ask, host: HostIx) -> u64 {
        ask.taken_at(self.hosts[host.row()].speed_permille)
    }

    /// What is in use of a dimension on a host, by VMs or by others.
    pub(crate) fn used(&self, host: HostIx, dim: Dim) -> u64 {
        self.cells(host.row()).get(dim.row()).map_or(0, |cell| cell.taken)
    }

    pub(crate) fn allocatable(&self, host: HostIx, dim: Dim) -> u64 {
        self.cells(host.row()).get(dim.row()).map_or(0, |cell| cell.allocatable.into())
    }

    /// What is left of a dimension on a host; nothing where more is taken than there is.
    pub(crate) fn free(&self, host: HostIx, dim: Dim) -> u64 {
        self.allocatable(host, dim).saturating_sub(self.used(host, dim))
    }

    pub(crate) fn guarantees(&self) -> &Guarantees {
        &self.guarantees
    }

    /// What is left on a host for those who ask like this: guarantees take no part in overcommit.
    pub(crate) fn free_for(&self, ask: &Ask, host: HostIx) -> u64 {
        let free = self.free(host, ask.dim);
        match ask.qos {
            Qos::Guaranteed => free.min(self.guarantees.left(host.row(), ask.dim)),
            _ => free,
        }
    }

    /// The most that could be asked for instead, in the units of the ask.
    pub(crate) fn most(&self, ask: &Ask, host: HostIx) -> u64 {
        let free = self.free_for(ask, host);
        match ask.unit {
            CpuUnit::Raw => free,
            CpuUnit::Normalised => {
                free.saturating_mul(self.hosts[host.row()].speed_permille.into()) / 1000
            }
        }
    }

    /// What a host has of a dimension, and how much of it is left.
    pub(crate) fn left(&self, host: HostIx, dim: Dim) -> (u64, u64) {
        let cell = self.cells(host.row()).get(dim.row()).copied().unwrap_or_default();
        let allocatable = u64::from(cell.allocatable);
        (allocatable, allocatable.saturating_sub(cell.taken))
    }

    pub(crate) fn dimensions(&self) -> usize {
        self.dimensions
    }

    pub(crate) fn host(&self, host: HostIx) -> Use {
        self.hosts[host.row()]
    }

    /// Highest and mean utilisation in permille that the host has after taking these.
    pub(crate) fn after(&self, asks: &[Ask], host: HostIx) -> (i64, i64) {
        let before = self.hosts[host.row()];
        let cells = self.cells(host.row());
        let (mut highest, mut sum) = (before.highest, before.sum);
        for ask in asks {
            let Some(cell) = cells.get(ask.dim.row()) else { continue };
            let taken = cell.taken.saturating_add(ask.taken_at(before.speed_permille));
            let used = cell.permille(taken);
            highest = highest.max(used);
            sum += u32::from(used - cell.used_permille);
        }
        (highest.into(), mean(sum, before.dimensions))
    }

    /// Changes when [`Room::most_added`] would say something else.
    pub(crate) fn sizes_epoch(&self) -> (u64, usize) {
        (self.sizes.epoch(), self.dimensions)
    }

    /// Which entry of [`Room::most_added`] is about this row.
    pub(crate) fn kind(&self, row: usize) -> usize {
        self.sizes.class(row) * self.dimensions + usize::from(self.hosts[row].tightest)
    }

    /// The most that taking these can add to how well a host is filled, for each kind of host.
    pub(crate) fn most_added(&self, fit_by: FitBy, asks: &[Ask]) -> Vec<i64> {
        let classes = 0..self.sizes.count();
        let kinds = classes.flat_map(|class| (0..self.dimensions).map(move |dim| (class, dim)));
        kinds.map(|(class, dim)| fit_by.most(self.sizes.added(class, dim, asks))).collect()
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
        self.set_dimensions(host.capacity.width().max(host.foreign.used.width()));
        self.reach(ix.row() + 1);
        self.forget(ix.row());
        for dim in 0..self.dimensions {
            let allocatable = host.allocatable(Dim(dim as u8)).min(MAX_AMOUNT) as u32;
            self.cells_mut(ix.row())[dim].set_allocatable(allocatable);
            self.total[dim] += u64::from(allocatable);
        }
        let speed = u32::try_from(host.speed_permille()).unwrap_or(u32::MAX);
        self.hosts[ix.row()].speed_permille = speed;
        self.guarantees.put_host(ix.row(), host, speed);
        let allocatable = self.cells(ix.row()).iter().map(|cell| cell.allocatable).collect();
        self.sizes.put(ix.row(), Size { allocatable, speed_permille: speed });
        self.recount_foreign(ix, &host.foreign);
        self.patch(ix.row(), 0..self.dimensions);
    }

    pub(crate) fn remove_host(&mut self, ix: HostIx) {
        self.forget(ix.row());
        self.foreign.remove(&ix);
        self.cells_mut(ix.row()).fill(Cell::default());
        self.hosts[ix.row()] = Use::default();
        self.guarantees.remove_host(ix.row());
        self.sizes.remove(ix.row());
        for free in self.free.iter_mut().chain([&mut self.reference_cpu]) {
            free.set(ix.row(), NO_HOST);
        }
    }

    /// Replaces what others use of the host.
    pub(crate) fn set_foreign(&mut self, ix: HostIx, foreign: &Foreign) {
        self.set_dimensions(foreign.used.width());
        self.recount_foreign(ix, foreign);
        self.patch(ix.row(), 0..self.dimensions);
    }

    fn recount_foreign(&mut self, ix: HostIx, foreign: &Foreign) {
        let before = match foreign.is_zero() {
            true => self.foreign.remove(&ix),
            false => self.foreign.insert(ix, foreign.clone()),
        };
        let before = before.unwrap_or_default();
        let cells = self.cells_mut(ix.row());
        for (dim, amount) in before.used.iter() {
            cells[dim.row()].taken = cells[dim.row()].taken.saturating_sub(amount);
        }
        for (dim, amount) in foreign.used.iter() {
            cells[dim.row()].taken = cells[dim.row()].taken.saturating_add(amount);
        }
        let vms = &mut self.hosts[ix.row()].vms;
        *vms = vms.saturating_sub(before.vms).saturating_add(foreign.vms);
    }

    /// How many VMs are recorded on the host, those of others not counted.
    pub(crate) fn own_vms(&self, ix: HostIx) -> u32 {
        let others = self.foreign.get(&ix).map_or(0, |foreign| foreign.vms);
        self.hosts[ix.row()].vms.saturating_sub(others)
    }

    /// Gives `committed` to a VM on the host, or takes it back.
    pub(crate) fn commit(&mut self, host: HostIx, committed: &Amounts, qos: Qos, arrives: bool) {
        self.set_dimensions(committed.width());
        if qos == Qos::Guaranteed {
            self.guarantees.commit(host.row(), committed, arrives);
        }
        let cells = self.cells_mut(host.row());
        for (dim, amount) in committed.iter() {
            let sum = &mut cells[dim.row()].taken;
            *sum = if arrives { sum.saturating_add(amount) } else { sum.saturating_sub(amount) };
        }
        let vms = &mut self.hosts[host.row()].vms;
        *vms = if arrives { vms.saturating_add(1) } else { vms.saturating_sub(1) };
        self.patch(host.row(), 0..committed.width());
    }

    /// Brings what is derived from a row's amounts up to date.
    fn patch(&mut self, row: usize, changed: std::ops::Range<usize>) {
        let speed = i64::from(self.hosts[row].speed_permille);
        for dim in changed {
            let cell = &mut self.cells[row * self.dimensions + dim];
            cell.used_permille = cell.permille(cell.taken);
            let free = free(cell.allocatable, cell.taken);
            self.free[dim].set(row, free);
            if dim == Dim::CPU_MILLIS.row() {
                let reference = i64::from(free).saturating_mul(speed).div_euclid(1000);
                let lowest = i64::from(i32::MIN + 1);
                self.reference_cpu.set(row, reference.clamp(lowest, i32::MAX.into()) as i32);
            }
        }
        let mut summary = Use { sum: 0, highest: 0, tightest: 0, dimensions: 0, ..self.hosts[row] };
        for (dim, cell) in (0..).zip(self.cells(row)) {
            summary.sum += u32::from(cell.used_permille);
            if cell.used_permille > summary.highest {
                (summary.highest, summary.tightest) = (cell.used_permille, dim);
            }
            summary.dimensions += u8::from(cell.allocatable > 0);
        }
        self.hosts[row] = summary;
    }

    fn cells(&self, row: usize) -> &[Cell] {
        &self.cells[row * self.dimensions..][..self.dimensions]
    }

    fn cells_mut(&mut self, row: usize) -> &mut [Cell] {
        &mut self.cells[row * self.dimensions..][..self.dimensions]
    }

    /// Takes a row out of the fleet's totals.
    fn forget(&mut self, row: usize) {
        let cells = &self.cells[row * self.dimensions..];
        for (total, cell) in self.total.iter_mut().zip(cells) {
            *total -= u64::from(cell.allocatable);
        }
    }

    fn reach(&mut self, rows: usize) {
        if rows <= self.rows {
            return;
        }
        self.rows = rows.next_multiple_of(LANES);
        self.cells.resize(self.rows * self.dimensions, Cell::default());
        self.hosts.resize(self.rows, Use::default());
        for free in self.free.iter_mut().chain([&mut self.reference_cpu]) {
            free.reach(self.rows);
        }
        self.guarantees.reach(self.rows);
        self.sizes.reach(self.rows);
    }

    pub(crate) fn rows(&self) -> usize {
        self.rows
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn multiplying_by_the_inverse_is_exact() {
        let sizes = [1, 7, 1023, 1024, 1025, 3_000, 999_983, (1 << 31) - 1];
        for allocatable in sizes {
            let mut cell = Cell::default();
            cell.set_allocatable(allocatable);
            let check = |committed: u64| {
                let expect = used_permille(committed, allocatable);
                assert_eq!(cell.permille(committed), expect, "{committed} of {allocatable}");
            };
            // Around every point where the permille changes, rounding is closest to going wrong.
            for permille in 0..=1001 {
                let edge = (permille * u64::from(allocatable)).div_ceil(1000);
                (edge.saturating_sub(1)..=edge + 1).for_each(check);
            }
        }
    }
}
