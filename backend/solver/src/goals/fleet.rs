//! Goals that are about more than a VM and its host: spares, domains, pairs and groups.
//!
//! Each has a record of the assignment as it is, patched with every VM that comes or goes.

use super::heat::{Drawn, Heat};
use super::outages::{Losses, Outages};
use super::power::{Empty, Spares};
use super::traffic::Traffic;
use crate::assignment::{Change, Model};

#[derive(Clone, Debug)]
pub(crate) enum FleetGoal {
    Spares(Spares),
    Heat(Heat),
    Traffic(Traffic),
    Outages(Outages),
}

#[derive(Clone, Debug)]
pub(crate) enum Record {
    Spares(Empty),
    Heat(Drawn),
    Traffic(i64),
    Outages(Losses),
}

/// What a host would have: so many VMs that are rows, and so much in use.
#[derive(Clone, Copy)]
pub(crate) struct After<'a> {
    pub(crate) host: u32,
    pub(crate) vms: u32,
    pub(crate) used: &'a dyn Fn(usize) -> i32,
}

impl FleetGoal {
    pub(super) fn none(&self, model: &Model) -> Record {
        match self {
            Self::Spares(goal) => Record::Spares(Empty::none(goal)),
            Self::Heat(goal) => Record::Heat(Drawn::none(goal, model)),
            Self::Traffic(_) => Record::Traffic(0),
            Self::Outages(goal) => Record::Outages(Losses::none(goal)),
        }
    }

    pub(super) fn bound(&self, model: &Model) -> i64 {
        match self {
            Self::Spares(goal) => goal.bound(model),
            Self::Heat(goal) => goal.bound(model),
            Self::Traffic(goal) => goal.bound(),
            Self::Outages(goal) => goal.bound(),
        }
    }

    /// Whether VMs that come never make it less.
    pub(super) fn only_grows(&self) -> bool {
        !matches!(self, Self::Spares(_))
    }

    /// How the worth changes with changes of VMs that leave these hosts like this.
    pub(super) fn delta(
        &self,
        record: &Record,
        changes: &[Change],
        after: &[After<'_>],
        host_of: &[u32],
    ) -> i64 {
        match (self, record) {
            (Self::Spares(goal), Record::Spares(empty)) => empty.delta(goal, after),
            (Self::Heat(goal), Record::Heat(drawn)) => drawn.delta(goal, after),
            (Self::Traffic(goal), Record::Traffic(_)) => goal.delta(changes, host_of),
            (Self::Outages(goal), Record::Outages(losses)) => losses.delta(goal, changes),
            _ => 0,
        }
    }
}

impl Record {
    pub(super) fn worth(&self) -> i64 {
        match self {
            Self::Spares(empty) => empty.worth(),
            Self::Heat(drawn) => drawn.worth(),
            Self::Traffic(worth) => *worth,
            Self::Outages(losses) => losses.worth(),
        }
    }

    pub(super) fn set_host(&mut self, goal: &FleetGoal, after: After<'_>) {
        match (self, goal) {
            (Self::Spares(empty), FleetGoal::Spares(goal)) => {
                empty.set(goal, after.host, after.vms);
            }
            (Self::Heat(drawn), FleetGoal::Heat(goal)) => {
                drawn.set(goal, after.host, after.vms, &after.used);
            }
            _ => {}
        }
    }

    /// A VM came to a host or left it; all others are where `host_of` says.
    pub(super) fn moved(&mut self, goal: &FleetGoal, change: Change, host_of: &[u32]) {
        match (self, goal) {
            (Self::Traffic(worth), FleetGoal::Traffic(goal)) => {
                *worth += goal.delta(&[change], host_of);
            }
            (Self::Outages(losses), FleetGoal::Outages(goal)) => losses.record(goal, change),
            _ => {}
        }
    }
}
