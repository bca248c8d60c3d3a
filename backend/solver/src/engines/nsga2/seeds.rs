//! The first members: where the search starts, and on the way from there to fewer hosts.
//!
//! A way empties one host after the other, those first that give most for each VM that moves, and
//! shifts a little in between. Every stop on it is a trade-off of its own: few moves and little
//! gained at the beginning, many and much at the end. Ways differ in what weighs how much. Where a
//! way ends, the placement is annealed by the same weights.

use super::archive::Archive;
use super::breeding::drawn_weights;
use super::member::Valued;
use super::worth::Worth;
use crate::assignment::Budget;
use crate::dice::Dice;
use crate::engines::variation::{Changes, climb};

#[derive(Clone, Copy, Debug)]
pub(super) struct Seeds {
    /// Ways that are gone from the first start.
    pub(super) ways: u32,
    /// Changes that are tried after every host that was emptied, by VM that a host has on average.
    pub(super) tries: u32,
    /// Members that a way leaves behind at most.
    pub(super) stops: usize,
}

/// Hosts that are looked at for a VM at most: a way through a large fleet has to end.
const LOOKED_AT: u32 = 128;
/// Hosts in a row that cannot be emptied before a way ends.
const IN_VAIN: u32 = 8;

/// Rounds of annealing where a way ends, each with a try for every VM.
const ROUNDS: u32 = 6;
/// Losses that are taken about once in three times in the first round, as a share of what a move
/// weighs. They fall to nothing.
const HEAT: f64 = 0.5;

/// Members and what they are worth.
pub(super) type Found<M, const N: usize> = Vec<(M, Worth<N>)>;

impl Seeds {
    /// Members from all starts; all stops are offered to the archive. And how much was priced.
    pub(super) fn found<'m, M: Valued<'m, N>, const N: usize>(
        &self,
        starts: Vec<M>,
        archive: &mut Archive<N>,
        budget: &Budget,
        dice: &mut Dice,
    ) -> (Found<M, N>, u64) {
        let mut found: Found<M, N> = Vec::new();
        let mut priced = 0;
        for member in starts {
            let worth = member.worth();
            archive.offer(worth, member.state().assignment());
            found.push((member, worth));
        }
        // The first is what moves are counted from, or what was asked for.
        let first = found.first().map(|(member, _)| member.clone());
        for (number, mut member) in (0..self.ways).zip(std::iter::repeat(first).flatten()) {
            if budget.is_over() {
                break;
            }
            self.go(&mut member, number, archive, &mut found, (budget, dice));
            priced += member.priced();
        }
        (found, priced)
    }

    fn go<'m, M: Valued<'m, N>, const N: usize>(
        &self,
        member: &mut M,
        number: u32,
        archive: &mut Archive<N>,
        found: &mut Found<M, N>,
        (budget, dice): (&Budget, &mut Dice),
    ) {
        *member.weights_mut() = way_weights(member, number, self.ways, dice);
        let model = member.state().model();
        let hosts = model.hosts() as u32;
        let each = model.vms() as u32 / hosts.max(1) + 1;
        let gain = |host: u32, dice: &mut Dice| {
            let vms = member.state().vms_on(host).len().max(1) as f64;
            model.goals.idle(host) as f64 / vms * (0.75 + 0.5 * dice.share())
        };
        let mut order: Vec<(f64, u32)> = (0..hosts).map(|host| (gain(host, dice), host)).collect();
        order.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        let apart = order.len().div_ceil(self.stops).max(1);
        let mut changes = Changes::new(hosts.min(LOOKED_AT));
        let mut in_vain = 0;
        for (row, (_, host)) in order.into_iter().enumerate() {
            if member.state().vms_on(host).is_empty() {
                continue;
            }
            let emptied = changes.empty(member, host, dice);
            in_vain = if emptied { 0 } else { in_vain + 1 };
            if in_vain == IN_VAIN || budget.is_over() {
                break;
            }
            climb(member, self.tries * each, 0.0, dice);
            let worth = member.worth();
            if archive.offer(worth, member.state().assignment()) && row % apart == 0 {
                found.push((member.clone(), worth));
            }
        }
        anneal(member, budget, dice);
        archive.offer(member.worth(), member.state().assignment());
        found.push((member.clone(), member.worth()));
    }
}

fn anneal<'m, M: Valued<'m, N>, const N: usize>(member: &mut M, budget: &Budget, dice: &mut Dice) {
    let tries = member.state().model().vms() as u32;
    for round in 0..ROUNDS {
        if budget.is_over() {
            break;
        }
        let left = f64::from(ROUNDS - 1 - round) / f64::from(ROUNDS);
        let heat = HEAT * left * member.heat();
        climb(member, tries, heat, dice);
    }
}

/// From few values to all alike, with some luck in it.
fn way_weights<'m, M: Valued<'m, N>, const N: usize>(
    member: &M,
    number: u32,
    ways: u32,
    dice: &mut Dice,
) -> [f64; N] {
    let drawn = drawn_weights(member, dice);
    let factors = M::factors(number, f64::from(number) / f64::from(ways.max(1)));
    std::array::from_fn(|at| drawn[at] * factors[at])
}
