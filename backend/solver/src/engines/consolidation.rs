//! Consolidation: the VMs of a running fleet on few hosts, with little moved.
//!
//! The hosts that cost least to empty are emptied, as many as amounts alone allow, and the rest is
//! rebalanced as if hosts could hold more than they have: what is above capacity costs far more than
//! any move, and only when nothing is above it the answer counts. Otherwise one host more is kept.
//! Fleets that run low on CPU here and on memory there have to exchange VMs all over, which is
//! what rebalancing does well. At the end VMs go home where that is possible after all.

use super::{Engine, Rebalance, Task};
use crate::assignment::{Budget, Model, Outcome, State};
use cluster::HostIx;
use cluster::assignment::{Distances, Goal, Problem};

#[derive(Clone, Copy, Debug)]
pub struct Consolidation {
    pub threads: u32,
    /// Proposals for each VM before another host is kept.
    pub patience: u32,
    /// What a host's worth above capacity costs at first, compared to moving a host's worth of VMs.
    pub strictness: u32,
    pub rebalance: Rebalance,
}

impl Default for Consolidation {
    fn default() -> Self {
        Self { threads: 2, patience: 900, strictness: 14, rebalance: Rebalance::default() }
    }
}

/// Passes over the VMs that could go home.
const HOMECOMINGS: u32 = 4;
/// While they are rebalanced, hosts hold this many times what they have.
const STRETCH: u64 = 2;
/// What is above capacity after a search costs this much more in the next one, which goes on from
/// there, as much colder as `COLDER` says and in half the time.
const STRICTER: u32 = 8;
const COLDER: f64 = 32.0;
const SEARCHES: u32 = 3;

impl Engine for Consolidation {
    fn name(&self) -> &'static str {
        "consolidation"
    }

    fn solve(&self, task: Task<'_>, budget: &mut Budget) -> Outcome {
        let model = task.model;
        let start = task.start.map(<[u32]>::to_vec).or_else(|| model.initial_assignment());
        let mut outcome = Outcome::nothing(self.name(), model);
        let Some(start) = start else { return outcome };
        let before = State::new(model, &start);
        outcome.objective = Some(before.objective());
        outcome.assignment = Some(start);
        if !before.is_feasible() {
            return outcome;
        }
        let order = emptying_order(&before);
        let fewest = fewest_hosts(model).max(1);
        for (more, firmness) in attempts() {
            if fewest + more >= order.len() || budget.is_over() {
                break;
            }
            let mut hosts = order[order.len() - fewest - more..].to_vec();
            hosts.sort_unstable();
            let firm = Self { strictness: self.strictness.saturating_mul(firmness), ..*self };
            if let Some(state) = firm.attempt(task, &before, &hosts, budget) {
                if state.objective() < before.objective() {
                    outcome.objective = Some(state.objective());
                    outcome.assignment = Some(state.assignment().to_vec());
                }
                break;
            }
        }
        outcome.steps = budget.used();
        if budget.is_over() {
            outcome.stop_reason = budget.reason();
        }
        outcome
    }
}

/// Hosts beyond the fewest, and how strict to be from the beginning, in the order in which that is
/// tried: little is moved where capacity counts little at first, but it may not fit in the end.
fn attempts() -> impl Iterator<Item = (usize, u32)> {
    [(0, 1), (1, 1), (0, 2), (1, 2)].into_iter().chain((0..).map(|more| (more, 4)))
}

impl Consolidation {
    /// An assignment to these hosts alone that holds, if a search finds one.
    fn attempt<'m>(
        &self,
        task: Task<'m>,
        before: &State<'_>,
        hosts: &[u32],
        budget: &mut Budget,
    ) -> Option<State<'m>> {
        let (mut start, mut best) = (None, None::<State<'m>>);
        for search in 0..SEARCHES {
            let stretched = self.stretched(task.problem, before, hosts, search);
            let model = Model::compile(&stretched).ok()?;
            let from = start.or_else(|| crowded(&model, before, hosts))?;
            let seed = task.seed;
            let within = Task::new(&stretched, &model, seed).from(&from);
            let colder = self.rebalance.start / COLDER.powi(search as i32);
            let engine = Rebalance { threads: self.threads, start: colder, ..self.rebalance };
            let steps = u64::from(self.patience) * model.vms() as u64;
            let mut part = budget.part(if search == 0 { steps } else { steps / 2 });
            let found = engine.solve(within, &mut part).assignment?;
            budget.spend(part.used());
            let answer: Vec<u32> = found.iter().map(|&row| hosts[row as usize]).collect();
            let mut state = State::new(task.model, &answer);
            if state.is_feasible() {
                bring_home(&mut state, hosts);
                if best.as_ref().is_none_or(|best| state.objective() < best.objective()) {
                    best = Some(state);
                }
            }
            start = Some(found);
        }
        best
    }

    /// The problem of these hosts alone, with all VMs, where hosts hold more than they have.
    fn stretched(
        &self,
        problem: &Problem,
        before: &State<'_>,
        hosts: &[u32],
        search: u32,
    ) -> Problem {
        let row_of = |host: HostIx| hosts.binary_search(&host.0).ok().map(|row| HostIx(row as u32));
        let mut part = problem.clone();
        part.hosts = hosts.iter().map(|&host| problem.hosts[host as usize].clone()).collect();
        for host in &mut part.hosts {
            host.capacity.iter_mut().for_each(|amount| *amount *= STRETCH);
        }
        for vm in &mut part.vms {
            vm.initial = vm.initial.and_then(row_of);
            vm.allowed =
                vm.allowed.as_ref().map(|all| all.iter().copied().filter_map(row_of).collect());
        }
        if !problem.standing.is_empty() {
            let standing = hosts.iter().map(|&host| problem.standing[host as usize].clone());
            part.standing = standing.collect();
        }
        part.goals = problem.goals.iter().filter_map(|goal| within(goal, hosts)).collect();
        let moving: i64 = hosts.iter().map(|&host| emptying_cost(before, host)).sum();
        let moving = (moving.max(1) as u64).div_ceil(hosts.len() as u64);
        let strictness = u64::from(self.strictness) * u64::from(STRICTER).pow(search);
        let weight = |resource: usize| {
            let rooms = hosts.iter().map(|&host| problem.hosts[host as usize].capacity[resource]);
            let room = (rooms.sum::<u64>() / hosts.len() as u64).max(1);
            (moving * strictness).div_ceil(room)
        };
        part.goals.push(Goal::Overload {
            weights: (0..problem.resources.len()).map(weight).collect(),
            safe: hosts.iter().map(|&host| problem.hosts[host as usize].capacity.clone()).collect(),
        });
        part
    }
}

/// A goal as far as it is about these hosts. That they are on is no question any more.
fn within(goal: &Goal, hosts: &[u32]) -> Option<Goal> {
    if let Goal::Moves { vms, between, busiest } = goal {
        let between = between.as_ref().map(|distances| {
            let all = distances.pairs.len().isqrt();
            let row = |&from: &u32| hosts.iter().map(move |&to| (from as usize, to as usize));
            let pairs = hosts.iter().flat_map(row);
            let pairs = pairs.map(|(from, to)| distances.pairs[from * all + to]).collect();
            Distances { pairs, ..*distances }
        });
        return Some(Goal::Moves { vms: vms.clone(), between, busiest: busiest.clone() });
    }
    let mut goal = goal.of_hosts(hosts)?;
    if let Goal::Energy { hosts: powers, .. } = &mut goal {
        powers.iter_mut().for_each(|power| power.idle = 0);
        if powers.iter().all(|power| power.span == 0) {
            return None;
        }
    }
    Some(goal)
}

/// Everybody on the hosts that are kept: who has no host now goes where it costs least.
fn crowded(model: &Model, before: &State<'_>, hosts: &[u32]) -> Option<Vec<u32>> {
    let mut state = State::empty(model);
    let mut astray = Vec::new();
    for vm in 0..model.vms() as u32 {
        match hosts.binary_search(&before.host_of(vm)) {
            Ok(row) => state.place(vm, row as u32),
            Err(_) => astray.push(vm),
        }
    }
    astray.sort_by_key(|&vm| (std::cmp::Reverse(weight_of(model, vm)), vm));
    for vm in astray {
        let rows = (0..hosts.len() as u32).filter(|&row| state.may_place(vm, row));
        let row = rows.min_by_key(|&row| (state.place_delta(vm, row), row))?;
        state.place(vm, row);
    }
    Some(state.assignment().to_vec())
}

fn weight_of(model: &Model, vm: u32) -> u64 {
    model.goals.weight(model.demand(vm)) as u64
}

/// What it costs that all VMs of a host leave it, wherever they go.
fn emptying_cost(state: &State<'_>, host: u32) -> i64 {
    let model = state.model();
    let elsewhere = (host + 1) % model.hosts() as u32;
    let cost = |&vm: &u32| model.goals.vm(vm, elsewhere) - model.goals.vm(vm, host);
    state.vms_on(host).iter().map(cost).sum()
}

/// Hosts with VMs, those that gain most by being emptied first.
fn emptying_order(state: &State<'_>) -> Vec<u32> {
    let hosts = 0..state.model().hosts() as u32;
    let mut hosts: Vec<(i64, u32)> = hosts
        .filter(|&host| !state.vms_on(host).is_empty())
        .map(|host| (emptying_cost(state, host) - state.model().goals.idle(host), host))
        .collect();
    hosts.sort_unstable();
    hosts.into_iter().map(|(_, host)| host).collect()
}

/// No fewer hosts have as much of every resource as VMs ask for.
fn fewest_hosts(model: &Model) -> usize {
    let of_resource = |resource: usize| {
        let vms = 0..model.vms() as u32;
        let mut needed: i64 = vms.map(|vm| i64::from(model.demand(vm)[resource])).sum();
        let hosts = 0..model.hosts() as u32;
        let mut rooms: Vec<i64> =
            hosts.map(|host| i64::from(model.capacity(host)[resource])).collect();
        rooms.sort_unstable_by(|a, b| b.cmp(a));
        let mut used = 0;
        for room in rooms {
            if needed <= 0 {
                break;
            }
            needed -= room;
            used += 1;
        }
        used
    };
    (0..model.resources()).map(of_resource).max().unwrap_or(0)
}

/// VMs go home, alone or in exchange, wherever that gains something.
fn bring_home(state: &mut State<'_>, kept: &[u32]) {
    for _ in 0..HOMECOMINGS {
        let before = state.objective();
        for vm in 0..state.model().vms() as u32 {
            let home = state.model().initial(vm);
            if home != state.host_of(vm) && kept.binary_search(&home).is_ok() {
                go_home(state, vm, home);
            }
        }
        if state.objective() == before {
            return;
        }
    }
}

fn go_home(state: &mut State<'_>, vm: u32, home: u32) {
    if state.may_shift(vm, home) && state.shift_delta(vm, home) < 0 {
        state.shift(vm, home);
        return;
    }
    let others = state.vms_on(home).iter().copied();
    let other = others
        .filter(|&other| state.model().initial(other) != home && state.fits_swap(vm, other))
        .map(|other| (state.swap_delta(vm, other), other))
        .filter(|&(delta, other)| delta < 0 && state.may_swap(vm, other))
        .min();
    if let Some((_, other)) = other {
        state.swap(vm, other);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cluster::assignment::{Host, Power, Resource, Vm};

    /// Hosts in pairs, one full of memory with CPU to spare and one the other way round: half of
    /// them are enough, if VMs change places.
    fn lopsided(pairs: u32) -> Problem {
        let names = ["cpu", "memory"];
        let mut problem = Problem {
            resources: names.map(|name| Resource { name: name.into(), transient: false }).into(),
            shapes: vec![vec![1, 4], vec![4, 1]],
            ..Problem::default()
        };
        for pair in 0..pairs {
            for shape in [0, 1] {
                problem.hosts.push(Host { capacity: vec![40, 40], domains: Vec::new() });
                let initial = Some(HostIx(2 * pair + shape));
                let vm = Vm { shape, initial, allowed: None };
                problem.vms.extend(std::iter::repeat_n(vm, 8));
            }
        }
        let hosts = vec![Power { idle: 1_000, span: 0 }; problem.hosts.len()];
        problem.goals = vec![
            Goal::Energy { resource: 0, hosts },
            Goal::Moves { vms: vec![4; problem.vms.len()], between: None, busiest: None },
        ];
        problem
    }

    fn solve(engine: Consolidation, problem: &Problem) -> (i64, usize, u64) {
        let model = Model::compile(problem).unwrap();
        let task = Task::new(problem, &model, 1);
        let outcome = engine.solve(task, &mut Budget::steps(10_000_000));
        let state = State::new(&model, outcome.assignment.as_deref().unwrap());
        assert!(state.is_feasible());
        assert_eq!(Some(state.objective()), outcome.objective);
        let on = (0..model.hosts() as u32).filter(|&host| !state.vms_on(host).is_empty());
        (state.objective(), on.count(), outcome.steps)
    }

    #[test]
    fn as_few_hosts_as_amounts_allow_and_the_same_on_any_number_of_threads() {
        let problem = lopsided(5);
        let alone = solve(Consolidation { threads: 1, ..Consolidation::default() }, &problem);
        assert_eq!(alone, solve(Consolidation::default(), &problem));
        assert_eq!(alone.1, 5);
        // At most everybody moves.
        assert!(alone.0 <= 5 * 1_000 + 80 * 4, "{alone:?}");
    }

    #[test]
    fn every_setting_changes_the_search() {
        let (problem, plain) = (lopsided(5), Consolidation::default());
        let usual = solve(plain, &problem);
        assert_ne!(solve(Consolidation { patience: 0, ..plain }, &problem), usual);
        assert_ne!(solve(Consolidation { strictness: 0, ..plain }, &problem), usual);
    }
}
