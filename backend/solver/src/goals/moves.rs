//! Moves: what it costs that VMs are not where they were.

use crate::assignment::{Change, Model, NOWHERE};
use cluster::assignment::{Busiest, Distances};

#[derive(Clone, Debug)]
pub(crate) struct Moves {
    initial: Vec<u32>,
    vms: Vec<i64>,
    distances: Option<(i64, Vec<u32>)>,
    busiest: Option<(i64, Vec<u32>)>,
    hosts: usize,
}

impl Moves {
    pub(super) fn compile(
        model: &Model,
        vms: &[u64],
        distances: &Option<Distances>,
        busiest: &Option<Busiest>,
    ) -> Self {
        Self {
            initial: (0..model.vms() as u32).map(|vm| model.initial(vm)).collect(),
            vms: vms.iter().map(|&cost| cost as i64).collect(),
            distances: distances.as_ref().map(|d| (d.weight as i64, d.pairs.clone())),
            busiest: busiest.as_ref().map(|b| (b.weight as i64, b.group_of.clone())),
            hosts: model.hosts(),
        }
    }

    #[inline]
    pub(super) fn vm(&self, vm: u32, host: u32) -> i64 {
        if !self.is_moved(vm, host) {
            return 0;
        }
        let distance = self.distances.as_ref().map_or(0, |(weight, pairs)| {
            let initial = self.initial[vm as usize] as usize;
            weight * i64::from(pairs[initial * self.hosts + host as usize])
        });
        self.vms[vm as usize] + distance
    }

    #[inline]
    fn is_moved(&self, vm: u32, host: u32) -> bool {
        let initial = self.initial[vm as usize];
        initial != NOWHERE && host != NOWHERE && host != initial
    }

    /// How a change changes the number of moved VMs of its group: the group, and -1, 0 or 1.
    #[inline]
    fn step(&self, group_of: &[u32], change: Change) -> (u32, i32) {
        let after = i32::from(self.is_moved(change.vm, change.to));
        let before = i32::from(self.is_moved(change.vm, change.from));
        (group_of[change.vm as usize], after - before)
    }
}

/// How many VMs moved in each group, and how many groups have each number of them.
#[derive(Clone, Debug)]
pub(crate) struct Moved {
    in_group: Vec<u32>,
    groups_with: Vec<u32>,
    most: usize,
}

impl Moved {
    pub(super) fn none(goal: &Moves) -> Self {
        let Some((_, group_of)) = &goal.busiest else {
            return Self { in_group: Vec::new(), groups_with: Vec::new(), most: 0 };
        };
        let groups = group_of.iter().max().map_or(0, |&last| last as usize + 1);
        let mut members = vec![0usize; groups];
        group_of.iter().for_each(|&group| members[group as usize] += 1);
        let mut groups_with = vec![0; members.iter().max().map_or(0, |most| most + 1).max(1)];
        groups_with[0] = groups as u32;
        Self { in_group: vec![0; groups], groups_with, most: 0 }
    }

    pub(super) fn worth(&self, goal: &Moves) -> i64 {
        goal.busiest.as_ref().map_or(0, |(weight, _)| weight * self.most as i64)
    }

    pub(super) fn record(&mut self, goal: &Moves, change: Change) {
        let Some((_, group_of)) = &goal.busiest else { return };
        let (group, step) = goal.step(group_of, change);
        let before = self.in_group[group as usize];
        let after = before.wrapping_add_signed(step);
        self.in_group[group as usize] = after;
        self.groups_with[before as usize] -= 1;
        self.groups_with[after as usize] += 1;
        self.most = self.most.max(after as usize);
        while self.most > 0 && self.groups_with[self.most] == 0 {
            self.most -= 1;
        }
    }

    /// How the worth changes with one change, or with two at once.
    #[inline]
    pub(super) fn delta(&self, goal: &Moves, changes: &[Change]) -> i64 {
        let Some((weight, group_of)) = &goal.busiest else { return 0 };
        let mut steps = [(u32::MAX, 0); 2];
        for (step, change) in steps.iter_mut().zip(changes) {
            *step = goal.step(group_of, *change);
        }
        if steps[0].0 == steps[1].0 {
            steps = [(steps[0].0, steps[0].1 + steps[1].1), (u32::MAX, 0)];
        }
        if steps[0].1 == 0 && steps[1].1 == 0 {
            return 0;
        }
        weight * (self.most_after(steps) as i64 - self.most as i64)
    }

    fn most_after(&self, steps: [(u32, i32); 2]) -> usize {
        let changed = steps.iter().filter(|(group, _)| *group != u32::MAX);
        let before = |group: u32| self.in_group[group as usize] as usize;
        let highest = changed
            .clone()
            .map(|&(group, step)| before(group).wrapping_add_signed(step as isize))
            .max()
            .unwrap_or(0);
        // Groups that stay as they are may still be higher; two steps down are the most to look.
        let mut most = self.most;
        while most > highest {
            let leaving = changed.clone().filter(|(group, _)| before(*group) == most).count();
            if self.groups_with[most] as usize > leaving {
                break;
            }
            most -= 1;
        }
        most.max(highest)
    }
}
