//! What is taken out of an assignment to be put back better: hosts, parts of hosts, VMs, groups.

use crate::assignment::State;
use crate::dice::Dice;

/// Chooses VMs and remembers what it has chosen.
#[derive(Clone, Debug)]
pub(super) struct Destroy {
    chosen: Vec<bool>,
    vms: Vec<u32>,
    /// More is never taken out at once: putting back costs time for each.
    most: usize,
}

impl Destroy {
    pub(super) fn new(vms: usize, most: usize) -> Self {
        Self { chosen: vec![false; vms], vms: Vec::new(), most: most.max(1) }
    }

    /// VMs to take out, each once.
    pub(super) fn choose(&mut self, state: &State<'_>, dice: &mut Dice) -> &[u32] {
        self.vms.drain(..).for_each(|vm| self.chosen[vm as usize] = false);
        let groups = state.model().tallies.all().len() as u32;
        match dice.below(16) {
            0 if groups > 0 => self.group(state, dice.below(groups)),
            0..=2 => self.scattered(state, dice),
            3..=8 => self.parts(state, dice, 2, 5),
            9..=11 => {
                self.whole(state, emptiest_of(state, dice, 4));
                self.parts(state, dice, 1, 5);
            }
            12..=13 => {
                self.whole(state, some_host(state, dice));
                self.parts(state, dice, 1, 5);
            }
            _ => {
                self.whole(state, some_host(state, dice));
                self.whole(state, emptiest_of(state, dice, 2));
            }
        }
        if self.vms.is_empty() {
            self.scattered(state, dice);
        }
        &self.vms
    }

    fn take(&mut self, state: &State<'_>, vm: u32) {
        let may = !self.chosen[vm as usize] && !state.model().is_fixed(vm);
        if self.vms.len() < self.most && may {
            self.chosen[vm as usize] = true;
            self.vms.push(vm);
        }
    }

    /// All members of a group, which rules may let move only together.
    fn group(&mut self, state: &State<'_>, tally: u32) {
        state.model().tallies.members(tally).iter().for_each(|&vm| self.take(state, vm));
    }

    fn whole(&mut self, state: &State<'_>, host: u32) {
        state.vms_on(host).iter().for_each(|&vm| self.take(state, vm));
    }

    /// A few VMs from each of a few hosts.
    fn parts(&mut self, state: &State<'_>, dice: &mut Dice, least: u32, most: u32) {
        for _ in 0..least + dice.below(most - least + 1) {
            let vms = state.vms_on(some_host(state, dice));
            let count = 1 + dice.below(vms.len().div_ceil(2) as u32) as usize;
            let first = dice.below(vms.len() as u32) as usize;
            (0..count).for_each(|next| self.take(state, vms[(first + next) % vms.len()]));
        }
    }

    /// VMs from anywhere.
    fn scattered(&mut self, state: &State<'_>, dice: &mut Dice) {
        for _ in 0..2 + dice.below(10) {
            self.take(state, some_vm(state, dice));
        }
    }
}

/// A VM that may go elsewhere.
fn some_vm(state: &State<'_>, dice: &mut Dice) -> u32 {
    let vms = state.model().movable();
    vms[dice.below(vms.len() as u32) as usize]
}

/// A host with VMs, likelier one with many.
fn some_host(state: &State<'_>, dice: &mut Dice) -> u32 {
    state.host_of(some_vm(state, dice))
}

/// Of a few hosts the one with most of its best-used resource left.
fn emptiest_of(state: &State<'_>, dice: &mut Dice, tries: u32) -> u32 {
    let mut best = (f64::INFINITY, 0);
    for _ in 0..tries {
        let host = some_host(state, dice);
        let amounts = state.used(host).iter().zip(state.model().whole(host));
        let fill = amounts.map(|(&used, &all)| f64::from(used) / f64::from(all.max(1)));
        let fill = fill.fold(0.0, f64::max);
        if fill < best.0 {
            best = (fill, host);
        }
    }
    best.1
}
