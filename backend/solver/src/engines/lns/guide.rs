//! Prices that lead a search to switch hosts off.
//!
//! What a host takes for being on is all or nothing, so that nothing tells a search that a host
//! with two VMs left is nearly free of them. The guide lets a host cost its idle part x fill^power
//! instead, where fill is its highest utilisation: with a power of 1 that is the linear relaxation,
//! and with a power of 0 it is the truth. On the way from one to the other it pays to fill full
//! hosts and to empty others, and to put a VM where the resource that it needs is not the scarce
//! one.

use crate::assignment::{Model, State};
use crate::dice::{exp, ln};

#[derive(Clone, Debug)]
pub(super) struct Guide {
    idle: Vec<f64>,
    /// One over the capacity, by padded row; 0 where a host has nothing.
    inverse: Vec<f64>,
    stride: usize,
    /// fill^power, less 1, by parts of `GRID`.
    table: Vec<f64>,
    /// What each host costs more than it does in truth.
    extra: Vec<f64>,
}

/// Finer than the smallest VM on the largest host.
const GRID: usize = 2048;

impl Guide {
    pub(super) fn new(model: &Model) -> Self {
        let hosts = 0..model.hosts() as u32;
        let inverse = |&capacity: &i32| match capacity {
            0 => 0.0,
            _ => GRID as f64 / f64::from(capacity),
        };
        Self {
            idle: hosts.clone().map(|host| model.goals.idle(host) as f64).collect(),
            inverse: hosts.flat_map(|host| model.whole(host)).map(inverse).collect(),
            stride: model.stride(),
            table: vec![0.0; GRID + 1],
            extra: vec![0.0; model.hosts()],
        }
    }

    /// Whether any host takes anything for being on; if none does, there is nothing to soften.
    pub(super) fn is_needed(&self) -> bool {
        self.idle.iter().any(|&idle| idle > 0.0)
    }

    /// From now on hosts cost their idle part x fill^power.
    pub(super) fn set_power(&mut self, state: &State<'_>, power: f64) {
        self.table[0] = -1.0;
        for (part, entry) in self.table.iter_mut().enumerate().skip(1) {
            *entry = exp(power * ln(part as f64 / GRID as f64)) - 1.0;
        }
        self.refresh_all(state);
    }

    /// Prices all hosts anew.
    pub(super) fn refresh_all(&mut self, state: &State<'_>) {
        (0..self.extra.len() as u32).for_each(|host| {
            self.refresh(state, host);
        });
    }

    /// What all hosts cost more than they do in truth.
    pub(super) fn sum(&self) -> f64 {
        self.extra.iter().sum()
    }

    /// Prices a host anew that has changed; by how much it changed.
    pub(super) fn refresh(&mut self, state: &State<'_>, host: u32) -> f64 {
        let extra = match state.vms_on(host).is_empty() {
            true => 0.0,
            false => self.cost(host, |used, _| used, state.used(host), state.used(host)),
        };
        extra - std::mem::replace(&mut self.extra[host as usize], extra)
    }

    /// How the extra cost of a host changes when a VM that is not placed comes to it.
    #[inline]
    pub(super) fn place_delta(&self, state: &State<'_>, vm: u32, host: u32) -> f64 {
        let (used, demand) = (state.used(host), state.model().demand(vm));
        self.cost(host, |used, demand| used.wrapping_add(demand), used, demand)
            - self.extra[host as usize]
    }

    #[inline]
    fn cost(
        &self,
        host: u32,
        amount: impl Fn(i32, i32) -> i32,
        used: &[i32],
        demand: &[i32],
    ) -> f64 {
        let inverse = &self.inverse[host as usize * self.stride..][..self.stride];
        let mut fill = 0.0f64;
        for ((&used, &demand), &inverse) in used.iter().zip(demand).zip(inverse) {
            fill = fill.max(f64::from(amount(used, demand)) * inverse);
        }
        self.idle[host as usize] * self.table[(fill as usize).min(GRID)]
    }
}
