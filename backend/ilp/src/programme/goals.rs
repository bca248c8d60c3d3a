//! Goals that a programme knows in part: a line below each curve, and for the rest what no
//! assignment is worth less than. Whoever asks for the truth asks a `State`.

use super::{Builder, Column};
use cluster::assignment::{Curves, Goal, PARTS, Problem, Rates};
use solver::assignment::Model;

/// Whether rows and columns say exactly what a goal is worth.
pub(super) fn is_exact(goal: &Goal) -> bool {
    match goal {
        Goal::Energy { .. }
        | Goal::Peak { .. }
        | Goal::Overload { .. }
        | Goal::Stranded { .. }
        | Goal::Moves { .. }
        | Goal::Table { .. } => true,
        Goal::Power { .. }
        | Goal::Heat { .. }
        | Goal::Share(_)
        | Goal::Balance(_)
        | Goal::Traffic(_)
        | Goal::Outages(_) => false,
    }
}

/// What is a part of the objective of every assignment: of goals that no column speaks of, what none
/// is worth less than; of others, what hosts take for VMs that are no rows.
pub(super) fn constant(problem: &Problem) -> f64 {
    let unknown = |goal: &&Goal| {
        matches!(goal, Goal::Heat { .. } | Goal::Balance(_) | Goal::Traffic(_) | Goal::Outages(_))
    };
    let mut rest = problem.clone();
    rest.rules.clear();
    rest.goals = problem.goals.iter().filter(unknown).cloned().collect();
    let bound = match rest.goals.is_empty() {
        true => 0,
        false => Model::compile(&rest).map_or(0, |model| model.bound()),
    };
    let hosts = 0..problem.hosts.len();
    let known = problem.goals.iter().map(|goal| -> f64 {
        match goal {
            Goal::Energy { hosts: powers, .. } => {
                let on = hosts.clone().filter(|&host| problem.is_on(host));
                on.map(|host| powers[host].idle as f64).sum()
            }
            Goal::Power { resource, curves, .. } => {
                let on = hosts.clone().filter(|&host| problem.is_on(host));
                let at = |host| line(problem, *resource as usize, curves, host).0;
                on.map(|host| at(host) - 1.0).sum()
            }
            // Every host rounds down once.
            Goal::Share(_) => -(problem.hosts.len() as f64),
            _ => 0.0,
        }
    });
    bound as f64 + known.sum::<f64>()
}

/// A line that a host's curve is never below, from what is in use by VMs that are no rows: where it
/// begins, and how it rises by unit.
pub(super) fn line(problem: &Problem, resource: usize, curves: &Curves, host: usize) -> (f64, f64) {
    let points = &curves.points[curves.of_host[host] as usize];
    let whole = problem.whole(host, resource) as f64;
    if whole == 0.0 {
        return (points[0] as f64, 0.0);
    }
    let steps = points.len() as f64 - 1.0;
    let at = |used: f64| {
        let place = used * steps / whole;
        let step = (place as usize).min(points.len() - 2);
        points[step] as f64 + (points[step + 1] - points[step]) as f64 * (place - step as f64)
    };
    let from = problem.standing(host, resource) as f64;
    let ends = (1..points.len()).map(|step| step as f64 * whole / steps);
    let slopes = ends.filter(|&end| end > from).map(|end| (at(end) - at(from)) / (end - from));
    let slope = slopes.fold(f64::INFINITY, f64::min);
    // A hair lower, for what doubles lose.
    (at(from), if slope.is_finite() { slope * (1.0 - 1e-9) } else { 0.0 })
}

impl Builder<'_> {
    /// What a host takes for being on, unless it is on already.
    pub(super) fn idle(&self, host: usize) -> f64 {
        let idle = self.problem.goals.iter().map(|goal| match goal {
            _ if self.problem.is_on(host) => 0.0,
            Goal::Energy { hosts, .. } => hosts[host].idle as f64,
            Goal::Power { resource, curves, .. } => {
                line(self.problem, *resource as usize, curves, host).0
            }
            _ => 0.0,
        });
        idle.sum()
    }

    /// The highest of the shares of a host: above each of them.
    pub(super) fn share(&mut self, goal: usize, rates: &Rates) {
        let parts = f64::from(1u32 << PARTS);
        for host in 0..self.problem.hosts.len() {
            let rates = &rates.classes[rates.of_host[host] as usize];
            let full = |(resource, &rate): (usize, &u64)| {
                rate as f64 * self.problem.whole(host, resource) as f64 / parts
            };
            let most = rates.iter().enumerate().map(full).fold(0.0, f64::max);
            if most == 0.0 {
                continue;
            }
            let column = self.column(Column::Share { goal, host }, most, false, 1.0);
            for (resource, &rate) in rates.iter().enumerate().filter(|(_, rate)| **rate > 0) {
                let rate = rate as f64 / parts;
                let standing = self.problem.standing(host, resource) as f64;
                let row = self.used(host, resource) * rate - column;
                self.rows.push(row.leq(-rate * standing));
            }
        }
    }
}

/// The highest share of a host, not rounded.
pub(super) fn share(problem: &Problem, goal: &Goal, host: usize, used: &[u64]) -> f64 {
    let Goal::Share(rates) = goal else { return 0.0 };
    let rates = rates.classes[rates.of_host[host] as usize].iter().enumerate();
    let shares = rates.map(|(resource, &rate)| {
        rate as f64 * (used[resource] + problem.standing(host, resource)) as f64
    });
    shares.fold(0.0, f64::max) / f64::from(1u32 << PARTS)
}
