//! Choices that were found to lead nowhere together, kept from one restart to the next.

use rustc_hash::FxHashMap;

/// A VM on a host.
pub(super) type Choice = (u32, u32);

/// Longer ones hardly ever come true again.
const LONGEST: usize = 24;
/// A limit for memory; the oldest are as good as the newest, so that new ones are not taken.
const MOST: usize = 50_000;

#[derive(Clone, Debug, Default)]
pub(super) struct Nogoods {
    choices: Vec<Vec<Choice>>,
    /// How many choices of each are made.
    made: Vec<u32>,
    with: FxHashMap<Choice, Vec<u32>>,
}

impl Nogoods {
    /// Learns that these choices cannot all be made. None of them is made now.
    pub(super) fn learn(&mut self, choices: Vec<Choice>) {
        if choices.len() > LONGEST || self.choices.len() == MOST {
            return;
        }
        let row = self.choices.len() as u32;
        for &choice in &choices {
            self.with.entry(choice).or_default().push(row);
        }
        self.choices.push(choices);
        self.made.push(0);
    }

    pub(super) fn choose(&mut self, choice: Choice) {
        for &row in self.with.get(&choice).into_iter().flatten() {
            self.made[row as usize] += 1;
        }
    }

    pub(super) fn take_back(&mut self, choice: Choice) {
        for &row in self.with.get(&choice).into_iter().flatten() {
            self.made[row as usize] -= 1;
        }
    }

    /// Choices that must not be made now, because all others of a nogood with `choice` are.
    pub(super) fn forbidden_by(&self, choice: Choice) -> impl Iterator<Item = &[Choice]> {
        self.with.get(&choice).into_iter().flatten().filter_map(|&row| {
            let choices = &self.choices[row as usize];
            (self.made[row as usize] as usize + 1 >= choices.len()).then_some(choices.as_slice())
        })
    }

    /// Nogoods of a single choice: hosts that a VM can never have.
    pub(super) fn single(&self) -> impl Iterator<Item = Choice> {
        self.choices.iter().filter(|choices| choices.len() == 1).map(|choices| choices[0])
    }
}
