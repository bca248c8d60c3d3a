//! Each goal of a problem by itself: what several values of one assignment are made of.
//!
//! Searches for one sum use `Goals` and `Highest` as a whole; nothing here is on their way.

use super::{After, Goals, Highest, HostGoal, Used};
use crate::assignment::{Change, Model};

/// What a row is made of: an entry of one of the lists of `Goals`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Energy(usize),
    Moves(usize),
    Overload(usize),
    Peak(usize),
    Stranded(usize),
    Host(usize),
    Table(usize),
    Fleet(usize),
}

impl Goals {
    pub(crate) fn rows(&self) -> usize {
        self.rows.len()
    }

    fn sum(&self, row: usize, part: impl Fn(Part) -> i64) -> i64 {
        self.rows[row].iter().map(|&own| part(own)).sum()
    }

    /// What no assignment is worth less than by one goal.
    pub(crate) fn row_bound(&self, model: &Model, row: usize) -> i64 {
        let bound = self.sum(row, |part| match part {
            Part::Energy(at) => self.energy[at].bound(model),
            Part::Moves(_) => 0,
            Part::Overload(at) => self.overload[at].bound(model),
            Part::Peak(at) => self.peak[at].bound(model),
            Part::Stranded(at) => self.stranded[at].bound(model),
            Part::Host(at) => match &self.hosts[at] {
                HostGoal::Power(goal) => goal.bound(model),
                HostGoal::Share(goal) => goal.bound(model),
                HostGoal::Balance(goal) => goal.bound(model),
            },
            Part::Table(at) => self.tables[at].bound(),
            Part::Fleet(at) => self.fleet[at].bound(model),
        });
        bound.max(0)
    }

    /// What is part of a goal whatever the assignment is.
    pub(crate) fn row_constant(&self, row: usize) -> i64 {
        self.sum(row, |part| match part {
            Part::Energy(at) => self.energy[at].always,
            _ => 0,
        })
    }

    /// What a host costs by one goal.
    pub(crate) fn row_host(&self, row: usize, host: u32, vms: u32, used: impl Used) -> i64 {
        self.sum(row, |part| match part {
            Part::Energy(at) => self.energy[at].host(host, vms),
            Part::Overload(at) => self.overload[at].host(host, &used),
            Part::Stranded(at) => self.stranded[at].host(host, &used),
            Part::Host(at) => match &self.hosts[at] {
                HostGoal::Power(goal) => goal.host(host, vms, &used),
                HostGoal::Share(goal) => goal.host(host, &used),
                HostGoal::Balance(goal) => goal.host(host, &used),
            },
            Part::Moves(_) | Part::Peak(_) | Part::Table(_) | Part::Fleet(_) => 0,
        })
    }

    /// What a VM costs on a host by one goal.
    pub(crate) fn row_vm(&self, row: usize, vm: u32, host: u32) -> i64 {
        self.sum(row, |part| match part {
            Part::Energy(at) => self.energy[at].vm(vm, host),
            Part::Moves(at) => self.moves[at].vm(vm, host),
            Part::Table(at) => self.tables[at].vm(vm, host),
            _ => 0,
        })
    }
}

impl Highest {
    /// What the parts of one goal are worth now.
    pub(crate) fn row_worth(&self, goals: &Goals, row: usize) -> i64 {
        goals.sum(row, |part| match part {
            Part::Peak(at) => self.peaks[at].highest(),
            Part::Moves(at) => self.moved[at].worth(&goals.moves[at]),
            Part::Fleet(at) => self.fleet[at].worth(),
            _ => 0,
        })
    }

    /// How the parts of one goal change with changes that leave these one or two hosts like this.
    pub(crate) fn row_delta(
        &self,
        goals: &Goals,
        row: usize,
        changes: &[Change],
        after: &[After<'_>],
        host_of: &[u32],
    ) -> i64 {
        goals.sum(row, |part| match part {
            Part::Peak(at) => {
                let (goal, peaks) = (&goals.peak[at], &self.peaks[at]);
                let (first, last) = (after[0].host, after[after.len() - 1].host);
                let others = peaks.highest_without(first, last);
                let raised = after
                    .iter()
                    .fold(others, |worth, after| goal.raise(worth, after.host, &after.used));
                raised - peaks.highest()
            }
            Part::Moves(at) => self.moved[at].delta(&goals.moves[at], changes),
            Part::Fleet(at) => goals.fleet[at].delta(&self.fleet[at], changes, after, host_of),
            _ => 0,
        })
    }
}
