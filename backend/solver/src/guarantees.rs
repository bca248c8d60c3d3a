//! What hosts can still guarantee: what they physically have, less what is guaranteed already.
//!
//! Overcommit promises more than there is, and guaranteed VMs take none of that. Where nothing is
//! overcommitted, room for the VM is room for the guarantee, and nothing here is asked.

use crate::bits::Bits;
use crate::free::{Free, NO_HOST};
use cluster::{Amounts, CpuUnit, Dim, Host};

#[derive(Debug, Default)]
pub(crate) struct Guarantees {
    /// Physical less guaranteed, by dimension.
    left: Vec<Free>,
    /// The same for CPU, in cores of the reference machine.
    reference_cpu: Free,
    /// By dimension, then row.
    hosts: Vec<Vec<Cell>>,
    /// Hosts that promise more than they have, by dimension.
    overcommitted: Vec<u32>,
    speed_permille: Vec<u32>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Cell {
    guaranteed: u64,
    physical: u64,
    overcommitted: bool,
}

impl Guarantees {
    pub(crate) fn set_dimensions(&mut self, dimensions: usize, rows: usize) {
        self.left.resize_with(dimensions, || Free::with_rows(rows));
        self.hosts.resize_with(dimensions, || vec![Cell::default(); rows]);
        self.overcommitted.resize(dimensions, 0);
    }

    pub(crate) fn reach(&mut self, rows: usize) {
        for left in self.left.iter_mut().chain([&mut self.reference_cpu]) {
            left.reach(rows);
        }
        for cells in &mut self.hosts {
            cells.resize(rows, Cell::default());
        }
        self.speed_permille.resize(rows, 1000);
    }

    /// The hosts that can guarantee this much; `None` if none of them is overcommitted.
    pub(crate) fn having(&mut self, dim: Dim, amount: i32, unit: CpuUnit) -> Option<&Bits> {
        if *self.overcommitted.get(dim.row())? == 0 {
            return None;
        }
        Some(match unit {
            CpuUnit::Raw => self.left.get_mut(dim.row())?.at_least(amount),
            CpuUnit::Normalised => self.reference_cpu.at_least(amount),
        })
    }

    /// What a host can still guarantee.
    pub(crate) fn left(&self, row: usize, dim: Dim) -> u64 {
        let cell = self.hosts.get(dim.row()).and_then(|cells| cells.get(row));
        cell.map_or(0, |cell| cell.physical.saturating_sub(cell.guaranteed))
    }

    pub(crate) fn put_host(&mut self, row: usize, host: &Host, speed_permille: u32) {
        self.speed_permille[row] = speed_permille;
        for dim in 0..self.hosts.len() {
            let (physical, allocatable) =
                (host.physical(Dim(dim as u8)), host.allocatable(Dim(dim as u8)));
            let before = self.hosts[dim][row];
            let overcommitted = allocatable > physical;
            self.hosts[dim][row] = Cell { physical, overcommitted, ..before };
            self.overcommitted[dim] -= u32::from(before.overcommitted);
            self.overcommitted[dim] += u32::from(overcommitted);
            self.patch(dim, row);
        }
    }

    pub(crate) fn remove_host(&mut self, row: usize) {
        for (dim, cells) in self.hosts.iter_mut().enumerate() {
            self.overcommitted[dim] -= u32::from(cells[row].overcommitted);
            cells[row] = Cell::default();
        }
        for left in self.left.iter_mut().chain([&mut self.reference_cpu]) {
            left.set(row, NO_HOST);
        }
    }

    /// Guarantees this much to a VM, or no longer.
    pub(crate) fn commit(&mut self, row: usize, committed: &Amounts, arrives: bool) {
        for (dim, amount) in committed.iter() {
            let sum = &mut self.hosts[dim.row()][row].guaranteed;
            *sum = if arrives { sum.saturating_add(amount) } else { sum.saturating_sub(amount) };
            self.patch(dim.row(), row);
        }
    }

    fn patch(&mut self, dim: usize, row: usize) {
        let Cell { guaranteed, physical, .. } = self.hosts[dim][row];
        let signed = |amount: u64| i64::try_from(amount).unwrap_or(i64::MAX / 2);
        let lowest = i64::from(i32::MIN + 1);
        let left = (signed(physical) - signed(guaranteed)).clamp(lowest, i32::MAX.into());
        self.left[dim].set(row, left as i32);
        if dim == Dim::CPU_MILLIS.row() {
            let reference = left.saturating_mul(self.speed_permille[row].into()).div_euclid(1000);
            self.reference_cpu.set(row, reference.clamp(lowest, i32::MAX.into()) as i32);
        }
    }
}
