//! A batch placed jointly: the order of its VMs that serves all of them best.
//!
//! VMs are placed one by one, each on the result of those before it, so that every rule, policy and
//! part of a host is asked exactly as for a single VM; what is searched is the order. An order is
//! better if more VMs get a host, then if their scores come to more. The order that the caller gave
//! is the first that is tried: whatever comes out is no worse than placing one by one.

use crate::assignment::{Budget, StopReason};
use crate::batch::{batch_order, put, take_back};
use crate::dice::Dice;
use crate::place::{Chosen, How, Scratch, place};
use crate::problem::Problem;
use cluster::{Strategy, Vm};

/// What an order comes to. More is better, those placed first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Served {
    pub placed: usize,
    /// Sum of the scores at the moment of placing.
    pub score: i64,
}

/// The best order that was found.
#[derive(Clone, Debug)]
pub struct Joint {
    pub order: Vec<usize>,
    pub served: Served,
    /// What the order comes to that the caller gave.
    pub as_given: Served,
    /// VMs that were placed on the way, each time that one was.
    pub steps: u64,
    pub stop_reason: StopReason,
}

/// Whether a strategy places a batch in the order that it is given. The decreasing ones have an
/// order of their own, and nothing is left to search.
pub fn keeps_order(strategy: Strategy) -> bool {
    !matches!(strategy, Strategy::FirstFitDecreasing | Strategy::BestFitDecreasing)
}

/// Orders in a row that are no better before the search gives up, by VM of the batch.
const PATIENCE: u64 = 8;

/// Searches for a good order of VMs that are not placed. A step is one VM placed; the tables are
/// left as they were.
pub fn best_order(
    problem: &mut Problem,
    scratch: &mut Scratch,
    vms: &[&Vm],
    how: &How,
    seed: u64,
    budget: &mut Budget,
) -> Joint {
    let given = batch_order(problem, vms, how.strategy);
    let mut search = Search::new(problem, scratch, vms, how, given);
    let as_given = search.row.served();
    let mut dice = Dice::new(seed);
    let largest_first = batch_order(search.problem, vms, Strategy::FirstFitDecreasing);
    search.try_from(0, largest_first, budget);
    let patience = PATIENCE * vms.len().max(2) as u64;
    let mut in_vain = 0;
    while vms.len() > 1 && in_vain < patience && !budget.is_over() {
        let (from, order) = search.neighbour(&mut dice);
        in_vain = if search.try_from(from, order, budget) { 0 } else { in_vain + 1 };
    }
    let Search { row, .. } = &search;
    let stop_reason = if budget.is_over() { budget.reason() } else { StopReason::Stalled };
    let (order, served) = (row.order.clone(), row.served());
    search.unplace_from(0);
    Joint { order, served, as_given, steps: budget.used(), stop_reason }
}

/// The best order so far, with its VMs in the tables.
struct Search<'a> {
    problem: &'a mut Problem,
    scratch: &'a mut Scratch,
    vms: &'a [&'a Vm],
    how: How,
    row: Row,
}

/// An order, and where each VM of it went.
#[derive(Clone, Default)]
struct Row {
    order: Vec<usize>,
    /// By place in the order.
    chosen: Vec<Option<Chosen>>,
}

impl Row {
    fn served(&self) -> Served {
        let placed = self.chosen.iter().flatten();
        Served { placed: placed.clone().count(), score: placed.map(|chosen| chosen.score).sum() }
    }
}

impl<'a> Search<'a> {
    fn new(
        problem: &'a mut Problem,
        scratch: &'a mut Scratch,
        vms: &'a [&'a Vm],
        how: &How,
        order: Vec<usize>,
    ) -> Self {
        let how = *how;
        let mut search =
            Self { problem, scratch, vms, how, row: Row { order, chosen: Vec::new() } };
        search.place_rest();
        search
    }

    /// Places what the order has beyond what is placed.
    fn place_rest(&mut self) {
        for at in self.row.chosen.len()..self.row.order.len() {
            let vm = self.vms[self.row.order[at]];
            let before = self.row.chosen.iter().rev().flatten().next();
            let after = before.map(|chosen| chosen.host).or(self.how.round_robin_after);
            let how = How { round_robin_after: after, ..self.how };
            let chosen = place(self.problem, self.scratch, vm, &how).host;
            if let Some(chosen) = &chosen {
                put(self.problem, vm, chosen);
            }
            self.row.chosen.push(chosen);
        }
    }

    fn unplace_from(&mut self, from: usize) {
        while self.row.chosen.len() > from {
            let vm = self.vms[self.row.order[self.row.chosen.len() - 1]];
            if let Some(Some(chosen)) = self.row.chosen.pop() {
                take_back(self.problem, vm, &chosen);
            }
        }
    }

    /// Keeps an order that is the same before `from` if it is better; otherwise nothing changes.
    fn try_from(&mut self, from: usize, order: Vec<usize>, budget: &mut Budget) -> bool {
        if budget.is_over() || order == self.row.order {
            return false;
        }
        let old = self.row.clone();
        self.unplace_from(from);
        self.row.order = order;
        self.place_rest();
        budget.spend((old.order.len() - from) as u64);
        if self.row.served() > old.served() {
            return true;
        }
        self.unplace_from(from);
        for at in from..old.order.len() {
            if let Some(chosen) = &old.chosen[at] {
                put(self.problem, self.vms[old.order[at]], chosen);
            }
        }
        self.row = old;
        false
    }

    /// An order that differs in one VM: mostly one that got no host comes earlier, or any VM does.
    fn neighbour(&self, dice: &mut Dice) -> (usize, Vec<usize>) {
        let vms = self.row.order.len() as u32;
        let mut order = self.row.order.clone();
        let left: Vec<usize> =
            (1..order.len()).filter(|&at| self.row.chosen[at].is_none()).collect();
        let late = match left.len() {
            some @ 1.. if dice.below(4) > 0 => left[dice.below(some as u32) as usize],
            _ => 1 + dice.below(vms - 1) as usize,
        };
        let early = dice.below(late as u32) as usize;
        order[early..=late].rotate_right(1);
        (early, order)
    }
}
