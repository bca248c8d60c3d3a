//! What an assignment is worth: one goal a file.
//!
//! A goal's worth is a sum of parts of four kinds, and it offers a method for each kind that it
//! has: what a host costs with what is used on it (`host`), what a VM costs where it is (`vm`), a
//! part that is a maximum over the fleet, which keeps its own record in a `Highest`, and a part
//! about domains, pairs or groups, which is a `FleetGoal` with a `Record`.
//! A change of an assignment is priced by the hosts and VMs that it touches. `rows` prices each goal
//! of the problem by itself.

mod balance;
mod energy;
mod fleet;
mod heat;
mod lanes;
mod moves;
mod outages;
mod overload;
mod peak;
mod power;
mod rows;
mod share;
mod stranded;
mod table;
mod traffic;

pub(crate) use fleet::After;

use crate::assignment::{Change, Model};
use balance::Balance;
use cluster::assignment::{Goal, Problem};
use energy::Energy;
use fleet::{FleetGoal, Record};
use heat::Heat;
use moves::{Moved, Moves};
use outages::Outages;
use overload::Overload;
use peak::{Peak, Peaks};
use power::{Power, Spares};
use rows::Part;
use share::Share;
use stranded::Stranded;
use table::Table;
use traffic::Traffic;

/// The goals of a model by kind, so that pricing a change is a handful of direct calls.
#[derive(Clone, Debug, Default)]
pub(crate) struct Goals {
    energy: Vec<Energy>,
    moves: Vec<Moves>,
    overload: Vec<Overload>,
    peak: Vec<Peak>,
    stranded: Vec<Stranded>,
    /// By host; apart from the kinds above, so that problems without pay one comparison.
    hosts: Vec<HostGoal>,
    tables: Vec<Table>,
    fleet: Vec<FleetGoal>,
    /// What each goal of the problem is made of.
    rows: Vec<Vec<Part>>,
}

#[derive(Clone, Debug)]
enum HostGoal {
    Power(Power),
    Share(Share),
    Balance(Balance),
}

/// What a host's resources would look like: an amount in use for each.
pub(crate) trait Used: Fn(usize) -> i32 {}
impl<F: Fn(usize) -> i32 + ?Sized> Used for F {}

/// The parts that are not about one VM or host, for one assignment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Highest {
    peaks: Vec<Peaks>,
    moved: Vec<Moved>,
    fleet: Vec<Record>,
}

impl Goals {
    pub(crate) fn compile(model: &Model, problem: &Problem) -> Self {
        let mut goals = Self::default();
        for goal in &problem.goals {
            let parts = goals.add(model, problem, goal);
            goals.rows.push(parts);
        }
        goals
    }

    fn add(&mut self, model: &Model, problem: &Problem, goal: &Goal) -> Vec<Part> {
        match goal {
            Goal::Energy { resource, hosts } => {
                self.energy.push(Energy::compile(model, *resource as usize, hosts));
                vec![Part::Energy(self.energy.len() - 1)]
            }
            Goal::Peak { weight } => {
                self.peak.push(Peak::compile(model, *weight));
                vec![Part::Peak(self.peak.len() - 1)]
            }
            Goal::Overload { weights, safe } => {
                self.overload.push(Overload::compile(model, weights, safe));
                vec![Part::Overload(self.overload.len() - 1)]
            }
            Goal::Stranded { plenty, scarce, target, weight } => {
                let (plenty, scarce) = (*plenty as usize, *scarce as usize);
                self.stranded.push(Stranded::compile(model, plenty, scarce, *target, *weight));
                vec![Part::Stranded(self.stranded.len() - 1)]
            }
            Goal::Moves { vms, between, busiest } => {
                self.moves.push(Moves::compile(model, vms, between, busiest));
                vec![Part::Moves(self.moves.len() - 1)]
            }
            Goal::Power { resource, curves, keep_on } => {
                let power = Power::compile(problem, *resource as usize, curves);
                let spares = (*keep_on > 0).then(|| Spares::compile(&power, *keep_on));
                let mut parts = vec![self.push_host(HostGoal::Power(power))];
                parts.extend(spares.map(|spares| self.push_fleet(FleetGoal::Spares(spares))));
                parts
            }
            Goal::Heat { resource, curves, scope, limits } => {
                let power = Power::compile(problem, *resource as usize, curves);
                let heat = Heat::compile(problem, power, *scope, limits);
                vec![self.push_fleet(FleetGoal::Heat(heat))]
            }
            Goal::Share(rates) => {
                vec![self.push_host(HostGoal::Share(Share::compile(model, rates)))]
            }
            Goal::Balance(goal) => {
                vec![self.push_host(HostGoal::Balance(Balance::compile(model, goal)))]
            }
            Goal::Table { costs, vms, hosts } => {
                self.tables.push(Table::compile(costs, vms, hosts));
                vec![Part::Table(self.tables.len() - 1)]
            }
            Goal::Traffic(goal) => {
                vec![self.push_fleet(FleetGoal::Traffic(Traffic::compile(problem, goal)))]
            }
            Goal::Outages(goal) => {
                vec![self.push_fleet(FleetGoal::Outages(Outages::compile(problem, goal)))]
            }
        }
    }

    fn push_host(&mut self, goal: HostGoal) -> Part {
        self.hosts.push(goal);
        Part::Host(self.hosts.len() - 1)
    }

    fn push_fleet(&mut self, goal: FleetGoal) -> Part {
        self.fleet.push(goal);
        Part::Fleet(self.fleet.len() - 1)
    }

    /// Whether there are goals of the kinds that few problems have.
    fn has_more(&self) -> bool {
        !(self.hosts.is_empty() && self.tables.is_empty() && self.fleet.is_empty())
    }

    /// What a host costs with these amounts in use by so many VMs.
    #[inline]
    pub(crate) fn host(&self, host: u32, vms: u32, used: impl Used) -> i64 {
        let mut cost = self.certain_host(host, vms, &used);
        for goal in &self.stranded {
            cost += goal.host(host, &used);
        }
        for goal in &self.hosts {
            if let HostGoal::Balance(goal) = goal {
                cost += goal.host(host, &used);
            }
        }
        cost
    }

    /// The part of it that VMs yet to come cannot make less.
    #[inline]
    pub(crate) fn certain_host(&self, host: u32, vms: u32, used: &impl Used) -> i64 {
        let mut cost = 0;
        for goal in &self.energy {
            cost += goal.host(host, vms);
        }
        for goal in &self.overload {
            cost += goal.host(host, used);
        }
        for goal in &self.hosts {
            cost += match goal {
                HostGoal::Power(goal) => goal.host(host, vms, used),
                HostGoal::Share(goal) => goal.host(host, used),
                HostGoal::Balance(_) => 0,
            };
        }
        cost
    }

    /// Costs that nothing changes and that no host or VM has.
    pub(crate) fn constant(&self) -> i64 {
        self.energy.iter().map(|goal| goal.always).sum()
    }

    /// What a host takes for having any VM at all.
    pub(crate) fn idle(&self, host: u32) -> i64 {
        let powers = self.hosts.iter().map(|goal| match goal {
            HostGoal::Power(goal) => goal.idle(host),
            _ => 0,
        });
        self.energy.iter().map(|goal| goal.host(host, 1)).chain(powers).sum()
    }

    /// What a VM costs on a host.
    #[inline]
    pub(crate) fn vm(&self, vm: u32, host: u32) -> i64 {
        let mut cost = 0;
        for goal in &self.energy {
            cost += goal.vm(vm, host);
        }
        for goal in &self.moves {
            cost += goal.vm(vm, host);
        }
        for goal in &self.tables {
            cost += goal.vm(vm, host);
        }
        cost
    }

    /// What amounts weigh: the most that the hosts' costs can differ by with and without them.
    pub(crate) fn weight(&self, amounts: &[i32]) -> f64 {
        let overload = self.overload.iter().map(|goal| goal.weight(amounts)).sum::<f64>();
        let hosts = self.hosts.iter().map(|goal| match goal {
            HostGoal::Power(goal) => goal.weight(amounts),
            HostGoal::Share(goal) => goal.weight(amounts),
            HostGoal::Balance(goal) => goal.weight(amounts),
        });
        overload
            + self.stranded.iter().map(|goal| goal.weight(amounts)).sum::<f64>()
            + hosts.sum::<f64>()
    }

    /// What no assignment is worth less than.
    pub(crate) fn bound(&self, model: &Model) -> i64 {
        (0..self.rows.len()).map(|row| self.row_bound(model, row)).sum()
    }

    /// Whether parts about the rest of the fleet never get less by a VM that comes.
    pub(crate) fn only_grow(&self) -> bool {
        self.fleet.iter().all(FleetGoal::only_grows)
    }

    pub(crate) fn stranded_bound(&self, model: &Model) -> i64 {
        self.stranded.iter().map(|goal| goal.bound(model)).sum()
    }
}

impl Highest {
    pub(crate) fn none(model: &Model) -> Self {
        let goals = &model.goals;
        let mut highest = Self {
            peaks: goals.peak.iter().map(|_| Peaks::none(model.hosts())).collect(),
            moved: goals.moves.iter().map(Moved::none).collect(),
            fleet: goals.fleet.iter().map(|goal| goal.none(model)).collect(),
        };
        if model.has_standing() {
            for host in 0..model.hosts() as u32 {
                let standing = model.standing(host);
                highest.set_host(goals, host, 0, |resource| standing[resource]);
            }
        }
        highest
    }

    /// What they are worth now.
    pub(crate) fn worth(&self, goals: &Goals) -> i64 {
        let peaks = self.peaks.iter().map(Peaks::highest);
        let moved = goals.moves.iter().zip(&self.moved).map(|(goal, moved)| moved.worth(goal));
        let fleet = self.fleet.iter().map(Record::worth);
        peaks.sum::<i64>() + moved.sum::<i64>() + fleet.sum::<i64>()
    }

    /// The part of it that VMs yet to come cannot make less.
    pub(crate) fn certain(&self, goals: &Goals) -> i64 {
        let shrinks = goals.fleet.iter().zip(&self.fleet).filter(|(goal, _)| !goal.only_grows());
        self.worth(goals) - shrinks.map(|(_, record)| record.worth()).sum::<i64>()
    }

    /// Records what is in use on a host, by so many VMs.
    #[inline]
    pub(crate) fn set_host(&mut self, goals: &Goals, host: u32, vms: u32, used: impl Used) {
        for (goal, peaks) in goals.peak.iter().zip(&mut self.peaks) {
            peaks.set(host, goal.host(host, &used));
        }
        for (goal, record) in goals.fleet.iter().zip(&mut self.fleet) {
            record.set_host(goal, After { host, vms, used: &used });
        }
    }

    /// Records that a VM left one host for another; either may be `NOWHERE`.
    #[inline]
    pub(crate) fn moved(&mut self, goals: &Goals, change: Change, host_of: &[u32]) {
        for (goal, moved) in goals.moves.iter().zip(&mut self.moved) {
            moved.record(goal, change);
        }
        for (goal, record) in goals.fleet.iter().zip(&mut self.fleet) {
            record.moved(goal, change, host_of);
        }
    }

    /// How the worth changes when a VM that was nowhere comes to a host.
    pub(crate) fn arrival_delta(
        &self,
        goals: &Goals,
        change: Change,
        after: After<'_>,
        host_of: &[u32],
    ) -> i64 {
        let mut delta = 0;
        for (goal, peaks) in goals.peak.iter().zip(&self.peaks) {
            let others = peaks.highest_without(change.to, change.to);
            delta += goal.raise(others, change.to, &after.used) - peaks.highest();
        }
        for (goal, moved) in goals.moves.iter().zip(&self.moved) {
            delta += moved.delta(goal, &[change]);
        }
        delta + self.fleet_delta(goals, &[change], &[after], host_of)
    }

    /// How the worth changes with these changes, which touch two hosts and nothing else.
    #[inline]
    pub(crate) fn delta(
        &self,
        goals: &Goals,
        changes: &[Change],
        (from, vms_from, used_from): (u32, u32, impl Used),
        (to, vms_to, used_to): (u32, u32, impl Used),
        host_of: &[u32],
    ) -> i64 {
        let mut delta = 0;
        for (goal, peaks) in goals.peak.iter().zip(&self.peaks) {
            let others = peaks.highest_without(from, to);
            let after = goal.raise(others, from, &used_from);
            delta += goal.raise(after, to, &used_to) - peaks.highest();
        }
        for (goal, moved) in goals.moves.iter().zip(&self.moved) {
            delta += moved.delta(goal, changes);
        }
        if !self.fleet.is_empty() {
            let after = [
                After { host: from, vms: vms_from, used: &used_from },
                After { host: to, vms: vms_to, used: &used_to },
            ];
            delta += self.fleet_delta(goals, changes, &after, host_of);
        }
        delta
    }

    fn fleet_delta(
        &self,
        goals: &Goals,
        changes: &[Change],
        after: &[After<'_>],
        host_of: &[u32],
    ) -> i64 {
        let fleet = goals.fleet.iter().zip(&self.fleet);
        fleet.map(|(goal, record)| goal.delta(record, changes, after, host_of)).sum()
    }
}
