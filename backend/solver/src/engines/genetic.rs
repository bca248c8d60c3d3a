//! Genetic search: a population of placements whose children take hosts over from two parents.
//!
//! A host's VMs are the gene. A child is a copy of one parent that gets a few hosts as the other
//! parent has them; VMs that have to leave go where the other parent has them, or where they cost
//! least. Some children are changed by themselves instead: a host is emptied, or a few hosts are
//! mixed. Every child then takes small steps that gain. It replaces the parent that it is a copy
//! of if it is no worse, so that members stay unlike each other; now and then it replaces the worst.
//! A step is one child.

use super::improve::improve;
use super::variation::{Changes, Other, climb, dear_host, some_host};
use super::{Engine, Task};
use crate::assignment::{Budget, Outcome, State};
use crate::dice::Dice;

#[derive(Clone, Copy, Debug)]
pub struct Genetic {
    pub population: usize,
    /// Small steps that every child tries.
    pub tries: u32,
    /// Hosts that a child takes over at most.
    pub exchanged: u32,
    /// Hosts that are looked at for a VM that has to go somewhere, besides where it was.
    pub looked_at: u32,
}

impl Default for Genetic {
    fn default() -> Self {
        Self { population: 24, tries: 100, exchanged: 4, looked_at: 50 }
    }
}

/// One child in so many that is no better than its parent replaces the worst, if better than that.
const INTRUDERS: u32 = 8;
/// Small steps, by VM, that make the first members unlike each other and good.
const FIRST_TRIES: u32 = 20;

impl Engine for Genetic {
    fn name(&self) -> &'static str {
        "genetic"
    }

    fn solve(&self, task: Task<'_>, budget: &mut Budget) -> Outcome {
        improve(self, task, budget, |start, budget| {
            let mut search = Search::new(self, State::new(task.model, start), task.seed);
            search.run(task, budget);
            search.best()
        })
    }
}

struct Search<'m> {
    settings: Genetic,
    members: Vec<State<'m>>,
    child: State<'m>,
    changes: Changes,
    dice: Dice,
}

impl<'m> Search<'m> {
    fn new(settings: &Genetic, start: State<'m>, seed: u64) -> Self {
        Self {
            settings: *settings,
            child: start.clone(),
            members: vec![start],
            changes: Changes::new(settings.looked_at),
            dice: Dice::new(seed),
        }
    }

    fn run(&mut self, task: Task<'_>, budget: &mut Budget) {
        while self.members.len() < self.settings.population.max(2) && !budget.is_over() {
            self.add_first();
            budget.spend(1);
        }
        while !budget.is_over() {
            let mother = self.breed();
            task.tell(self.child.objective(), self.child.assignment());
            self.replace(mother);
            budget.spend(1);
        }
    }

    /// Another first member: the start, a few hosts of which are mixed, and then small steps.
    fn add_first(&mut self) {
        let tries = FIRST_TRIES.saturating_mul(self.child.model().vms() as u32);
        let mut member = self.members[0].clone();
        for _ in 0..member.model().hosts() / 8 {
            self.changes.mix(&mut member, 2, 4, &mut self.dice);
        }
        climb(&mut member, tries.min(1 << 16), 0.0, &mut self.dice);
        self.members.push(member);
    }

    /// Makes the child; the row of the parent that it is a copy of.
    fn breed(&mut self) -> usize {
        let rows = [0, 1].map(|_| self.dice.below(self.members.len() as u32) as usize);
        let [mother, father] = rows;
        self.child.clone_from(&self.members[mother]);
        let (child, changes, dice) = (&mut self.child, &mut self.changes, &mut self.dice);
        match dice.below(8) {
            0..3 if mother != father => {
                let father = &self.members[father];
                for _ in 0..=dice.below(self.settings.exchanged.max(1)) {
                    if let Some(host) = some_host(father, dice) {
                        changes.inherit(child, host, Other::of(father, host), dice);
                    }
                }
            }
            3 | 4 => {
                if let Some(host) = dear_host(child, dice) {
                    changes.empty(child, host, dice);
                }
            }
            _ => {
                let (hosts, each) = (2 + dice.below(2), 2 + dice.below(4));
                changes.mix(child, hosts, each, dice);
            }
        }
        climb(child, self.settings.tries, 0.0, dice);
        mother
    }

    fn replace(&mut self, mother: usize) {
        let objective = self.child.objective();
        if objective <= self.members[mother].objective() {
            std::mem::swap(&mut self.members[mother], &mut self.child);
        } else if self.dice.below(INTRUDERS) == 0 {
            let worst = (0..self.members.len()).max_by_key(|&row| self.members[row].objective());
            if let Some(worst) = worst.filter(|&row| self.members[row].objective() > objective) {
                std::mem::swap(&mut self.members[worst], &mut self.child);
            }
        }
    }

    fn best(&self) -> (i64, Vec<u32>) {
        let members = self.members.iter().map(|member| (member.objective(), member));
        let best = members.min_by_key(|(objective, _)| *objective);
        best.map_or((i64::MAX, Vec::new()), |(objective, member)| {
            (objective, member.assignment().to_vec())
        })
    }
}
