//! How placements have children: a copy of one parent that takes over hosts of the other, or that
//! is changed by itself, and then improved a little for weights that are drawn.

use super::criteria::Criteria;
use super::member::{Member, Weights};
use super::population::Variation;
use super::worth::Worth;
use crate::assignment::Deadline;
use crate::dice::{Dice, ln};
use crate::engines::variation::{Changes, Other, Placement, climb, dear_host};

#[derive(Debug)]
pub(super) struct Breeding<'c> {
    pub(super) criteria: &'c Criteria,
    /// Whoever waits for children has stopped waiting when this is over.
    pub(super) deadline: &'c Deadline,
    /// Where VMs are now, if that is known and allowed.
    pub(super) current: Option<Member<'c>>,
    /// Changes that are tried on every child in the end.
    pub(super) tries: u32,
    /// Hosts that are taken over from the other parent at most.
    pub(super) exchanged: u32,
    /// Hosts that are looked at for a VM that is put back.
    pub(super) looked_at: u32,
}

impl<'c> Variation<3> for Breeding<'c> {
    type Genome = Member<'c>;

    fn breed(
        &self,
        [mother, father]: [&Member<'c>; 2],
        child: &mut Member<'c>,
        dice: &mut Dice,
    ) -> Worth<3> {
        if self.deadline.is_over() {
            child.priced = 0;
            return Worth::useless();
        }
        child.clone_from(mother);
        child.priced = 0;
        child.weights = drawn_weights(self.criteria, child.values(), dice);
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

impl Breeding<'_> {
    /// Some hosts get the VMs that they have in another placement.
    fn exchange(
        &self,
        child: &mut Member<'_>,
        other: &Member<'_>,
        changes: &mut Changes,
        dice: &mut Dice,
    ) {
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
pub(super) fn drawn_weights(criteria: &Criteria, values: [f64; 3], dice: &mut Dice) -> Weights {
    let shares = criteria.shares(values);
    std::array::from_fn(|at| {
        let draw = -ln(1.0 - dice.share());
        draw / (1.0 - shares[at]).max(0.01) / criteria.worst[at]
    })
}
