//! CSP: searches every assignment that propagation leaves, so that its "no" and its "best" are
//! proofs.
//!
//! A step is one choice that was tried. The VM with the fewest hosts goes first, on the cheapest of
//! them. A choice that leads nowhere is ruled out for all VMs and untouched hosts that are equal to
//! those of the choice. Searches restart after more and more dead ends with the VMs that were hard
//! so far in front, and keep what was refuted as nogoods. With goals it is branch and bound: a
//! branch ends where what is certain to be paid reaches the best answer so far.

mod domains;
mod nogoods;
mod packing;
mod propagate;
mod rules;
mod ways;

use super::{Engine, Task};
use crate::assignment::{Budget, Classes, NOWHERE, Outcome, State, StopReason};
use propagate::{Branch, DeadEnd};

/// Searches for the best assignment, or for any.
#[derive(Clone, Copy, Debug, Default)]
pub struct Csp {
    /// Whether the first assignment that is found will do.
    pub first: bool,
}

/// Dead ends before the first restart; later ones come after multiples of it.
const PATIENCE: u64 = 200;

/// Pairs of a VM and a host beyond which nothing is searched: every pair is a bit, and all are asked
/// about before the first choice.
const MOST_PAIRS: usize = 200_000_000;

impl Engine for Csp {
    fn name(&self) -> &'static str {
        "csp"
    }

    fn solve(&self, task: Task<'_>, budget: &mut Budget) -> Outcome {
        let bound = task.model.bound();
        if task.model.vms().saturating_mul(task.model.hosts()) > MOST_PAIRS {
            return Outcome::nothing(self.name(), task.model);
        }
        let mut search = Search::new(*self, task, budget);
        if let Some(start) = task.start {
            search.best = Some((State::new(task.model, start).objective(), start.to_vec()));
        }
        let proven = search.run(budget, bound);
        let (objective, assignment) = search.best.unzip();
        Outcome {
            engine: self.name().to_string(),
            bound: match objective {
                Some(objective) if proven && !self.first => objective,
                _ => bound,
            },
            stop_reason: match () {
                () if self.first && objective.is_some() => StopReason::Target,
                () if proven => StopReason::Optimal,
                () => budget.reason(),
            },
            objective,
            assignment,
            steps: budget.used(),
        }
    }
}

struct Search<'a> {
    first: bool,
    classes: Classes,
    branch: Branch<'a>,
    best: Option<(i64, Vec<u32>)>,
    /// How often each VM was the one that failed.
    hardness: Vec<u32>,
    /// Members of each class of VMs, and of hosts.
    equal_vms: Vec<Vec<u32>>,
    equal_hosts: Vec<Vec<u32>>,
    /// The least that a VM costs anywhere, added up for those not placed yet.
    least_costs: Vec<i64>,
    levels: Vec<Level>,
    /// What goals that may yet fall are worth at least.
    falling: i64,
}

/// One choice on the way down.
struct Level {
    vm: u32,
    /// Hosts to try, the next one last.
    hosts: Vec<u32>,
    tried: Option<u32>,
    placed: usize,
    mark: usize,
    /// Hosts that were tried and led nowhere.
    refuted: Vec<u32>,
}

enum Pass {
    /// Everything was seen.
    Complete,
    Restart,
    Over,
}

impl<'a> Search<'a> {
    fn new(csp: Csp, task: Task<'a>, budget: &Budget) -> Self {
        let (model, classes) = (task.model, Classes::of(task.problem));
        let hosts = 0..model.hosts() as u32;
        let least = |vm| {
            if budget.is_over() {
                return 0;
            }
            let allowed = hosts.clone().filter(|&host| model.allows(vm, host));
            allowed.map(|host| model.goals.vm(vm, host)).min().unwrap_or(0)
        };
        Self {
            first: csp.first,
            branch: Branch::root(model, budget),
            best: None,
            hardness: vec![0; model.vms()],
            equal_vms: members(&classes.vms),
            equal_hosts: members(&classes.hosts),
            least_costs: (0..model.vms() as u32).map(least).collect(),
            levels: Vec::new(),
            falling: model.goals.stranded_bound(model),
            classes,
        }
    }

    /// True if the search is complete: the best is the best there is, or there is none.
    fn run(&mut self, budget: &mut Budget, bound: i64) -> bool {
        for number in 1.. {
            match self.pass(budget, PATIENCE * luby(number)) {
                Pass::Complete => return true,
                Pass::Over => return false,
                Pass::Restart => {}
            }
            let met = self.best.as_ref().is_some_and(|(objective, _)| *objective <= bound);
            if met || (self.first && self.best.is_some()) {
                return met;
            }
        }
        false
    }

    fn pass(&mut self, budget: &mut Budget, patience: u64) -> Pass {
        let root = self.branch.domains.mark();
        let result = match self.branch.begin() {
            Ok(()) => self.descend(budget, patience),
            Err(DeadEnd) if budget.is_over() => Pass::Over,
            Err(DeadEnd) => Pass::Complete,
        };
        self.levels.clear();
        self.branch.back(0, root);
        result
    }

    fn descend(&mut self, budget: &mut Budget, patience: u64) -> Pass {
        let mut dead_ends = 0;
        let mut forward = true;
        loop {
            if std::mem::replace(&mut forward, false) && !self.open_level() {
                // Everything is placed: an answer, and whatever comes must be better.
                self.record();
                if self.first && self.best.is_some() {
                    return Pass::Restart;
                }
            }
            let Some(level) = self.levels.last_mut() else { return Pass::Complete };
            if let Some(host) = level.tried.take() {
                let (vm, placed, mark) = (level.vm, level.placed, level.mark);
                level.refuted.push(host);
                self.branch.back(placed, mark);
                let refused = self.rule_out(vm, host).is_err();
                if budget.is_over() {
                    return Pass::Over;
                }
                if refused {
                    self.levels.pop();
                    continue;
                }
                if self.branch.state.host_of(vm) != NOWHERE {
                    // One host was left: there is nothing more to choose here.
                    self.levels.last_mut().into_iter().for_each(|level| level.hosts.clear());
                    forward = !self.is_hopeless();
                    if forward {
                        continue;
                    }
                }
            }
            if dead_ends >= patience {
                self.learn();
                return Pass::Restart;
            }
            let Some(level) = self.levels.last_mut() else { return Pass::Complete };
            let vm = level.vm;
            let next = loop {
                match level.hosts.pop() {
                    Some(host) if !self.branch.domains.contains(vm, host) => {}
                    next => break next,
                }
            };
            let Some(host) = next else {
                self.levels.pop();
                continue;
            };
            // What was ruled out at this level stays ruled out for the hosts to come.
            level.mark = self.branch.domains.mark();
            level.placed = self.branch.placed.len();
            level.tried = Some(host);
            if !budget.spend(1) {
                return Pass::Over;
            }
            forward = self.branch.choose(vm, host).is_ok() && !self.is_hopeless();
            if !forward && budget.is_over() {
                return Pass::Over;
            }
            if !forward {
                dead_ends += 1;
                self.hardness[vm as usize] += 1;
            }
        }
    }

    /// Begins a level with the VM that has the fewest hosts; false if all are placed.
    fn open_level(&mut self) -> bool {
        let branch = &self.branch;
        let model = branch.state.model();
        let open = (0..model.vms() as u32).filter(|&vm| branch.state.host_of(vm) == NOWHERE);
        let urgency = |vm: u32| {
            let weight = u64::from(self.hardness[vm as usize]) + 1;
            // Fewest hosts for each failure: a fraction, compared as a product of whole numbers.
            (u64::from(branch.domains.size(vm)) << 32) / weight
        };
        let size = |vm: u32| model.demand(vm).iter().map(|&demand| i64::from(demand)).sum::<i64>();
        let Some(vm) = open.min_by_key(|&vm| (urgency(vm), -size(vm), vm)) else { return false };
        let mut hosts: Vec<(i64, u32)> = branch
            .domains
            .hosts(vm)
            .map(|host| (branch.state.place_delta(vm, host), host))
            .collect();
        hosts.sort_unstable_by(|a, b| b.cmp(a));
        self.levels.push(Level {
            vm,
            hosts: hosts.into_iter().map(|(_, host)| host).collect(),
            tried: None,
            placed: branch.placed.len(),
            mark: branch.domains.mark(),
            refuted: Vec::new(),
        });
        true
    }

    /// Nothing below the current choices has this VM on this host; then nothing has an equal VM
    /// there, nor, if the host is untouched, on an equal host that is untouched too.
    fn rule_out(&mut self, vm: u32, host: u32) -> Result<(), DeadEnd> {
        let same = &self.equal_hosts[self.classes.hosts[host as usize] as usize];
        let untouched = |host: &u32| self.branch.state.vms_on(*host).is_empty();
        let hosts: Vec<u32> = if untouched(&host) {
            same.iter().copied().filter(untouched).collect()
        } else {
            vec![host]
        };
        for &equal in &self.equal_vms[self.classes.vms[vm as usize] as usize] {
            if self.branch.state.host_of(equal) != NOWHERE {
                continue;
            }
            hosts.iter().for_each(|&host| self.branch.forbid(equal, host));
            if self.branch.domains.size(equal) == 0 {
                return Err(DeadEnd);
            }
        }
        self.branch.follow()
    }

    fn record(&mut self) {
        let state = &self.branch.state;
        let objective = state.objective();
        if state.is_feasible() && self.best.as_ref().is_none_or(|(best, _)| objective < *best) {
            self.best = Some((objective, state.assignment().to_vec()));
        }
    }

    /// Whether nothing below can be better than the best so far.
    fn is_hopeless(&self) -> bool {
        let Some((best, _)) = &self.best else { return false };
        let state = &self.branch.state;
        let open = (0..).zip(&self.least_costs);
        let open = open.filter(|(vm, _)| state.host_of(*vm) == NOWHERE);
        state.certain_cost() + self.falling + open.map(|(_, cost)| cost).sum::<i64>() >= *best
    }

    /// Keeps what the unfinished pass has refuted.
    fn learn(&mut self) {
        let mut chosen = Vec::new();
        let mut nogoods = Vec::new();
        for level in &self.levels {
            for &host in &level.refuted {
                let mut choices = chosen.clone();
                choices.push((level.vm, host));
                nogoods.push(choices);
            }
            chosen.extend(level.tried.map(|host| (level.vm, host)));
        }
        self.branch.back(0, 0);
        nogoods.into_iter().for_each(|choices| self.branch.nogoods.learn(choices));
    }
}

fn members(classes: &[u32]) -> Vec<Vec<u32>> {
    let mut members = vec![Vec::new(); classes.iter().max().map_or(0, |&last| last as usize + 1)];
    for (row, &class) in (0..).zip(classes) {
        members[class as usize].push(row);
    }
    members
}

/// 1 1 2 1 1 2 4 1 1 2 1 1 2 4 8 ..: lengths of passes that are never far from the best ones.
fn luby(number: u64) -> u64 {
    let mut number = number;
    loop {
        let bits = 64 - number.leading_zeros();
        if number == (1 << bits) - 1 {
            return 1 << (bits - 1);
        }
        number -= (1 << (bits - 1)) - 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passes_grow_slowly() {
        let lengths: Vec<u64> = (1..=15).map(luby).collect();
        assert_eq!(lengths, [1, 1, 2, 1, 1, 2, 4, 1, 1, 2, 1, 1, 2, 4, 8]);
    }
}
