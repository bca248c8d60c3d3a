//! Which VMs a rule speaks of together.
//!
//! A tie stands for a group, a VM that others name, or an installed constraint whose truth can
//! change with any of its members. Two VMs with a tie in common never move in the same wave, and
//! after a move those who share a tie with the VM are asked whether they may still be where they
//! are.

use cluster::{Constraint, ConstraintRule, Level, Name, Subject, Vm};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

/// A number for each tie.
pub(crate) type Tie = u32;

/// The ties of every VM.
#[derive(Debug, Default)]
pub(crate) struct Ties {
    of: Vec<SmallVec<[Tie; 4]>>,
    members: Vec<Vec<u32>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Key<'a> {
    Group(&'a Name, &'a Name),
    Vm(&'a Name, &'a Name),
    Constraint(&'a Name),
}

impl Ties {
    pub(crate) fn new<'a>(
        vms: impl Iterator<Item = &'a Vm>,
        constraints: &'a [&'a Constraint],
    ) -> Self {
        let mut numbers: FxHashMap<Key<'a>, Tie> = FxHashMap::default();
        let mut ties = Self::default();
        for (row, vm) in (0..).zip(vms) {
            let mut of: SmallVec<[Tie; 4]> = SmallVec::new();
            for key in keys(vm, constraints) {
                let next = numbers.len() as Tie;
                let tie = *numbers.entry(key).or_insert(next);
                if !of.contains(&tie) {
                    of.push(tie);
                }
            }
            ties.members.resize(numbers.len(), Vec::new());
            of.iter().for_each(|&tie| ties.members[tie as usize].push(row));
            ties.of.push(of);
        }
        ties
    }

    pub(crate) fn of(&self, vm: usize) -> &[Tie] {
        &self.of[vm]
    }

    /// Everybody who shares a tie with this VM.
    pub(crate) fn neighbours(&self, vm: usize) -> Vec<usize> {
        let shared = self.of[vm].iter().flat_map(|&tie| &self.members[tie as usize]);
        let mut others: Vec<usize> =
            shared.map(|&row| row as usize).filter(|&row| row != vm).collect();
        others.sort_unstable();
        others.dedup();
        others
    }
}

/// Whether one rule speaks of both, so that they must not move at the same time.
pub fn tied(one: &Vm, other: &Vm, constraints: &[&Constraint]) -> bool {
    keys(one, constraints).any(|key| keys(other, constraints).any(|found| found == key))
}

/// The VMs of a fleet that share a tie with one of these, themselves included, by position.
pub fn neighbourhood<'a>(
    of: impl Iterator<Item = &'a Vm>,
    fleet: impl Iterator<Item = &'a Vm>,
    constraints: &'a [&'a Constraint],
) -> Vec<usize> {
    let wanted: FxHashSet<Key<'a>> = of.flat_map(|vm| keys(vm, constraints)).collect();
    let near = |vm: &'a Vm| keys(vm, constraints).any(|key| wanted.contains(&key));
    fleet.enumerate().filter(|(_, vm)| near(vm)).map(|(row, _)| row).collect()
}

fn keys<'a>(vm: &'a Vm, constraints: &'a [&'a Constraint]) -> impl Iterator<Item = Key<'a>> {
    let tenant = &vm.key.tenant;
    // Being named is a tie as well: a rule of somebody else may speak of this VM alone.
    let own = std::iter::once(Key::Vm(tenant, &vm.key.id));
    let groups = vm.groups.iter().chain(vm.spreads.iter().map(|spread| &spread.group));
    let named = vm.affinities.iter().filter_map(|affinity| match &affinity.subject {
        Subject::Vm(id) => Some(Key::Vm(tenant, id)),
        Subject::Group(group) => Some(Key::Group(tenant, group)),
        Subject::Hosts(_) => None,
    });
    let bound = constraints.iter().filter(|constraint| ties(constraint, vm));
    let bound = bound.map(|constraint| match &constraint.rule {
        // Traffic of all of them shares the links of the fabric.
        ConstraintRule::Network(network) => Key::Constraint(&network.over),
        _ => Key::Constraint(&constraint.name),
    });
    own.chain(groups.map(|group| Key::Group(tenant, group))).chain(named).chain(bound)
}

/// Whether the constraint can be broken by two VMs moving that keep it one by one.
///
/// Fences look at one VM alone. What is counted by host cannot be broken by two either, because
/// in a wave a host gives or takes, never both; and room that is kept free is counted while both
/// copies of a VM are there.
fn ties(constraint: &Constraint, vm: &Vm) -> bool {
    let by_domain = match &constraint.rule {
        ConstraintRule::Fence(_)
        | ConstraintRule::Exclusive(_)
        | ConstraintRule::Links(_)
        | ConstraintRule::Spare(_) => false,
        ConstraintRule::Limit(limit) => limit.level != Level::Host,
        ConstraintRule::MinDomains(_)
        | ConstraintRule::Dependency(_)
        | ConstraintRule::Network(_) => true,
    };
    by_domain && constraint.rule.vm_sets().into_iter().flatten().any(|set| set.contains(vm))
}
