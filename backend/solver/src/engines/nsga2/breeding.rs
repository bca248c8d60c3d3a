//! How placements have children: a copy of one parent that takes over hosts of the other, or that
//! is changed by itself, and then improved a little for weights that are drawn.

use super::member::Valued;
use super::population::Variation;
use super::worth::Worth;
use crate::assignment::Deadline;
use crate::dice::{Dice, ln};
use crate::engines::variation::{Changes, Other, climb, dear_host};
use std::marker::PhantomData;

#[derive(Debug)]
pub(super) struct Breeding<'m, 'd, M> {
    /// Whoever waits for children has stopped waiting when this is over.
    pub(super) deadline: &'d Deadline,
    /// Where VMs are now, if that is known and allowed.
    pub(super) current: Option<M>,
    /// Changes that are tried on every child in the end.
    pub(super) tries: u32,
    /// Hosts that are taken over from the other parent at most.
    pub(super) exchanged: u32,
    /// Hosts that are looked at for a VM that is put back.
    pub(super) looked_at: u32,
    /// What members are made on.
    pub(super) model: PhantomData<&'m ()>,
}

impl<'m, M: Valued<'m, N>, const N: usize> Variation<N> for Breeding<'m, '_, M> {
    type Genome = M;

    fn breed(&self, [mother, father]: [&M; 2], child: &mut M, dice: &mut Dice) -> Worth<N> {
        if self.deadline.is_over() {
            child.start_counting();
            return Worth::useless();
        }
        child.clone_from(mother);
        child.start_counting();
        *child.weights_mut() = drawn_weights(child, dice);
        let mut changes = Changes::new(self.looked_at);
        match dice.below(16) {
            0..6 => self.exchange(child, father, &mut changes, dice),
            6..9 => {
                if let Some(host) = dear_host(child.state(), dice) {
                    changes.empty(child, host, dice);
                }
            }
            9..12 => {
                let (hosts, each) = (1 + dice.below(3), 1 + dice.below(4));
                changes.mix(child, hosts, each, dice);
            }
            12..14 => {
                if let Some(current) = &self.current {
                    self.exchange(child, current, &mut changes, dice);
                }
            }
            _ => {}
        }
        climb(child, self.tries, 0.0, dice);
        child.worth()
    }
}

impl<'m, M> Breeding<'m, '_, M> {
    /// Some hosts get the VMs that they have in another placement.
    fn exchange<const N: usize>(
        &self,
        child: &mut M,
        other: &M,
        changes: &mut Changes,
        dice: &mut Dice,
    ) where
        M: Valued<'m, N>,
    {
        let hosts = other.state().assignment();
        for _ in 0..=dice.below(self.exchanged.max(1)) {
            // By a VM, of which one of the two has more there.
            let vm = dice.below(hosts.len() as u32);
            let host = match dice.below(2) {
                0 => hosts[vm as usize],
                _ => child.state().host_of(vm),
            };
            changes.inherit(child, host, Other::of(other.state(), host), dice);
        }
    }
}

/// Weights in proportion to how much the volume below the worst case grows with each value, times
/// draws that favour now one value and now another.
pub(super) fn drawn_weights<'m, M: Valued<'m, N>, const N: usize>(
    member: &M,
    dice: &mut Dice,
) -> [f64; N] {
    let (values, worst) = (member.values(), member.worst());
    std::array::from_fn(|at| {
        let draw = -ln(1.0 - dice.share());
        draw / (1.0 - values[at] / worst[at]).max(0.01) / worst[at]
    })
}
