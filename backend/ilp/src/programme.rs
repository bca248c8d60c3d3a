//! A problem as a programme: a column for the number of VMs of a class on a host.
//!
//! Amounts in use are multiples of what all demands are multiples of, so that capacities are
//! rounded down to such: it costs nothing and takes most of the slack out of the relaxation.

mod goals;
mod network;
mod rules;

use cluster::assignment::{Goal, Problem, Rule, Scope};
use cluster::{HostIx, VmIx};
use good_lp::solvers::highs::HighsProblem;
use good_lp::{
    Constraint, Expression, ProblemVariables, ResolutionError, SolverModel, Variable, variable,
};
use solver::assignment::{Classes, Deadline};
use std::collections::HashSet;

/// What a column's number means.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Column {
    /// VMs of a class on a host.
    Count {
        class: usize,
        host: usize,
    },
    /// Whether the host has a VM.
    On(usize),
    /// The highest utilisation.
    Peak,
    /// Used above what is safe, by goal, host and resource.
    Above {
        goal: usize,
        host: usize,
        resource: usize,
    },
    Stranded {
        goal: usize,
        host: usize,
    },
    /// The highest share of a host.
    Share {
        goal: usize,
        host: usize,
    },
    /// Moved VMs of the group that has most of them, by goal.
    Busiest(usize),
    /// Whether one of a set of VMs is in a domain.
    Present {
        set: usize,
        scope: Scope,
        domain: u32,
    },
    /// Members in the emptiest of the domains that a skew looks at.
    Fewest {
        rule: usize,
    },
    /// Whether one who has to leave spare room of a resource is where it is kept.
    Asked {
        rule: usize,
        resource: usize,
    },
    /// Whether a set has so many in a domain.
    Reached {
        set: usize,
        scope: Scope,
        domain: u32,
        members: u32,
    },
    /// Those of a set in some domains, where that is 1; else 0.
    Flow {
        set: usize,
        reached: usize,
        across: usize,
    },
}

/// Classes of VMs times hosts: a programme takes about half a kilobyte for each.
const MOST_COUNTS: usize = 2_000_000;

#[derive(Debug)]
pub(crate) struct Programme {
    problem: HighsProblem,
    pub(crate) columns: Vec<Column>,
    pub(crate) members: Vec<Vec<VmIx>>,
    /// The sets of `Column::Present`.
    sets: Vec<Vec<VmIx>>,
    /// The domains of `Column::Flow`.
    across: Vec<Vec<u32>>,
    /// Part of every objective that no column has.
    pub(crate) constant: f64,
    pub(crate) integer: bool,
    /// Whether the objective is the problem's, and not something that is never above it.
    pub(crate) exact: bool,
}

impl Programme {
    /// With whole numbers, or as its linear relaxation. The highest utilisation is not below
    /// `least_peak`, a share. `None` if the deadline is over before it is made, or if there are more
    /// columns than there is memory for.
    pub(crate) fn of(
        problem: &Problem,
        integer: bool,
        least_peak: f64,
        deadline: &Deadline,
    ) -> Option<Self> {
        let mut builder = Builder::new(problem, integer, deadline);
        if builder.members.len().saturating_mul(problem.hosts.len()) > MOST_COUNTS {
            return None;
        }
        builder.counts()?;
        builder.capacities()?;
        builder.goals(least_peak);
        builder.in_time()?;
        builder.rules();
        builder.in_time()?;
        let mut programme = builder.variables.minimise(builder.objective).using(good_lp::highs);
        for row in builder.rows {
            programme.add_constraint(row);
        }
        Some(Self {
            problem: programme,
            columns: builder.columns,
            members: builder.members,
            sets: builder.sets,
            across: builder.across,
            constant: builder.constant,
            integer,
            exact: problem.goals.iter().all(goals::is_exact),
        })
    }

    pub(crate) fn into_model(self) -> Result<highs::Model, ResolutionError> {
        self.problem.try_into_inner()
    }

    /// What each column is for an assignment.
    pub(crate) fn values(&self, problem: &Problem, hosts: &[u32]) -> Vec<f64> {
        let mut used = vec![vec![0u64; problem.resources.len()]; problem.hosts.len()];
        let mut counts = vec![vec![0u32; problem.hosts.len()]; self.members.len()];
        for (class, members) in self.members.iter().enumerate() {
            for &vm in members {
                let host = hosts[vm.0 as usize] as usize;
                counts[class][host] += 1;
                for (used, demand) in used[host].iter_mut().zip(problem.demand(vm)) {
                    *used += demand;
                }
            }
        }
        let count = |set: &[VmIx], scope: Scope, domain: u32| {
            let there = |vm: &&VmIx| problem.domain(scope, HostIx(hosts[vm.0 as usize])) == domain;
            set.iter().filter(there).count() as u32
        };
        let value = |column: &Column| match *column {
            Column::Count { class, host } => f64::from(counts[class][host]),
            Column::On(host) => f64::from(counts.iter().any(|counts| counts[host] > 0)),
            Column::Peak => peak(problem, &used),
            Column::Above { goal, host, resource } => match &problem.goals[goal] {
                Goal::Overload { safe, .. } => {
                    let used = used[host][resource] + problem.standing(host, resource);
                    used.saturating_sub(safe[host][resource]) as f64
                }
                _ => 0.0,
            },
            Column::Stranded { goal, host } => match problem.goals[goal] {
                Goal::Stranded { plenty, scarce, target, .. } => {
                    let free = |resource: u32| {
                        let resource = resource as usize;
                        problem.hosts[host].capacity[resource] as f64 - used[host][resource] as f64
                    };
                    (target as f64 * free(plenty) - free(scarce)).max(0.0)
                }
                _ => 0.0,
            },
            Column::Share { goal, host } => {
                goals::share(problem, &problem.goals[goal], host, &used[host])
            }
            Column::Busiest(goal) => match &problem.goals[goal] {
                Goal::Moves { busiest: Some(busiest), .. } => {
                    let mut moved = vec![0u32; problem.groups.len()];
                    for (vm, row) in problem.vms.iter().enumerate() {
                        let is_moved = row.initial.is_some_and(|home| home.0 != hosts[vm]);
                        moved[busiest.group_of[vm] as usize] += u32::from(is_moved);
                    }
                    f64::from(moved.into_iter().max().unwrap_or(0))
                }
                _ => 0.0,
            },
            Column::Present { set, scope, domain } => {
                f64::from(count(&self.sets[set], scope, domain) > 0)
            }
            Column::Fewest { rule } => match &problem.rules[rule] {
                Rule::Skew { of, scope, among, .. } => {
                    let members = &different(&problem.groups[*of as usize]);
                    let counts = among.iter().map(|&domain| count(members, *scope, domain));
                    f64::from(counts.min().unwrap_or(0))
                }
                _ => 0.0,
            },
            Column::Asked { rule, resource } => match &problem.rules[rule] {
                Rule::Spare { group, hosts: kept, .. } => {
                    let asks = |vm: &&VmIx| problem.demand(**vm)[resource] > 0;
                    let there = |vm: &VmIx| kept.contains(&HostIx(hosts[vm.0 as usize]));
                    f64::from(problem.groups[*group as usize].iter().filter(asks).any(there))
                }
                _ => 0.0,
            },
            Column::Reached { set, scope, domain, members } => {
                f64::from(count(&self.sets[set], scope, domain) >= members)
            }
            Column::Flow { set, reached, across } => match self.columns[reached] {
                Column::Reached { set: of, scope, domain, members }
                    if count(&self.sets[of], scope, domain) >= members =>
                {
                    let there = self.across[across].iter();
                    f64::from(
                        there.map(|&domain| count(&self.sets[set], scope, domain)).sum::<u32>(),
                    )
                }
                _ => 0.0,
            },
        };
        self.columns.iter().map(value).collect()
    }
}

fn peak(problem: &Problem, used: &[Vec<u64>]) -> f64 {
    let mut peak = 0.0f64;
    for (host, used) in used.iter().enumerate() {
        for (resource, used) in used.iter().enumerate() {
            let whole = problem.whole(host, resource);
            if whole > 0 {
                let used = used + problem.standing(host, resource);
                peak = peak.max(used as f64 / whole as f64);
            }
        }
    }
    peak
}

/// The members of a group, each once.
fn different(group: &[VmIx]) -> Vec<VmIx> {
    let mut members = group.to_vec();
    members.sort_unstable();
    members.dedup();
    members
}

struct Builder<'a> {
    problem: &'a Problem,
    integer: bool,
    deadline: &'a Deadline,
    members: Vec<Vec<VmIx>>,
    sets: Vec<Vec<VmIx>>,
    across: Vec<Vec<u32>>,
    variables: ProblemVariables,
    columns: Vec<Column>,
    objective: Expression,
    constant: f64,
    rows: Vec<Constraint>,
    /// The column of each class on each host, if it fits there.
    count: Vec<Vec<Option<Variable>>>,
}

impl<'a> Builder<'a> {
    fn new(problem: &'a Problem, integer: bool, deadline: &'a Deadline) -> Self {
        Self {
            problem,
            integer,
            deadline,
            members: Classes::of(problem).members(),
            sets: Vec::new(),
            across: Vec::new(),
            variables: ProblemVariables::new(),
            columns: Vec::new(),
            objective: Expression::default(),
            constant: goals::constant(problem),
            rows: Vec::new(),
            count: Vec::new(),
        }
    }

    fn in_time(&self) -> Option<()> {
        (!self.deadline.is_over()).then_some(())
    }

    /// A column from 0 to `most`; whole if the programme is and it has to be.
    fn column(&mut self, column: Column, most: f64, whole: bool, cost: f64) -> Variable {
        let mut definition = variable().min(0.0).max(most);
        if whole && self.integer {
            definition = definition.integer();
        }
        let made = self.variables.add(definition);
        self.columns.push(column);
        if cost != 0.0 {
            self.objective.add_mul(cost, made);
        }
        made
    }

    fn demand(&self, class: usize) -> &'a [u64] {
        self.problem.demand(self.members[class][0])
    }

    /// A VM of the class; they are all the same.
    fn example(&self, class: usize) -> &'a cluster::assignment::Vm {
        &self.problem.vms[self.members[class][0].0 as usize]
    }

    /// Every VM is somewhere, at what it costs there.
    fn counts(&mut self) -> Option<()> {
        for class in 0..self.members.len() {
            self.in_time()?;
            let members = self.members[class].len() as f64;
            let apart = self.at_most_one_a_host(class);
            let mut all = Expression::default();
            let mut row = Vec::with_capacity(self.problem.hosts.len());
            for host in 0..self.problem.hosts.len() {
                let most =
                    if apart { self.fits(class, host).min(1.0) } else { self.fits(class, host) };
                if most < 1.0 {
                    row.push(None);
                    continue;
                }
                let cost = self.cost_on(class, host);
                let column = Column::Count { class, host };
                let made = self.column(column, most.min(members), true, cost);
                all.add_mul(1.0, made);
                row.push(Some(made));
            }
            self.rows.push(all.eq(members));
            self.count.push(row);
        }
        Some(())
    }

    /// How many of the class an empty host holds.
    fn fits(&self, class: usize, host: usize) -> f64 {
        let allowed = self.example(class).allowed.as_ref();
        if allowed.is_some_and(|allowed| !allowed.contains(&HostIx(host as u32)))
            || self.is_fenced(class, host)
        {
            return 0.0;
        }
        let room = self.demand(class).iter().zip(&self.problem.hosts[host].capacity);
        let times = room.filter(|(demand, _)| **demand > 0).map(|(demand, room)| room / demand);
        times.min().map_or(f64::INFINITY, |times| times as f64)
    }

    /// What one VM of the class costs on a host.
    fn cost_on(&self, class: usize, host: usize) -> f64 {
        let vm = self.members[class][0].0 as usize;
        let moved_from = self.example(class).initial.filter(|home| home.0 as usize != host);
        let cost = |goal: &Goal| match goal {
            Goal::Energy { resource, hosts } => {
                let resource = *resource as usize;
                let capacity = u128::from(self.problem.whole(host, resource));
                let work = u128::from(hosts[host].span) * u128::from(self.demand(class)[resource]);
                if capacity == 0 { 0.0 } else { ((2 * work + capacity) / (2 * capacity)) as f64 }
            }
            Goal::Moves { vms, between, .. } => moved_from.map_or(0.0, |home| {
                let pair = home.0 as usize * self.problem.hosts.len() + host;
                let far = between.as_ref().map_or(0.0, |distances| {
                    distances.weight as f64 * f64::from(distances.pairs[pair])
                });
                vms[vm] as f64 + far
            }),
            Goal::Table { costs, vms, hosts } => {
                costs[vms[vm] as usize][hosts[host] as usize] as f64
            }
            Goal::Power { resource, curves, .. } => {
                let resource = *resource as usize;
                let (_, slope) = goals::line(self.problem, resource, curves, host);
                slope * self.demand(class)[resource] as f64
            }
            _ => 0.0,
        };
        self.problem.goals.iter().map(cost).sum()
    }

    /// What is used of a resource on a host.
    fn used(&self, host: usize, resource: usize) -> Expression {
        let mut used = Expression::default();
        for class in 0..self.members.len() {
            let demand = self.demand(class)[resource];
            if let Some(count) = self.count[class][host].filter(|_| demand > 0) {
                used.add_mul(demand as f64, count);
            }
        }
        used
    }

    /// Room, also for what VMs leave behind; only hosts that are on have any.
    fn capacities(&mut self) -> Option<()> {
        let idle: Vec<f64> = (0..self.problem.hosts.len()).map(|host| self.idle(host)).collect();
        let units: Vec<u64> = (0..self.problem.resources.len()).map(|r| self.unit(r)).collect();
        for (host, idle) in idle.into_iter().enumerate() {
            self.in_time()?;
            let on = (idle > 0.0).then(|| self.column(Column::On(host), 1.0, true, idle));
            for (resource, &unit) in units.iter().enumerate() {
                let capacity = self.problem.hosts[host].capacity[resource] / unit * unit;
                let mut used = self.used(host, resource);
                match on {
                    Some(on) => used.add_mul(-(capacity as f64), on),
                    None => used.add_mul(-1.0, capacity as f64),
                }
                self.rows.push(used.leq(0.0));
                if self.problem.resources[resource].transient {
                    self.transient(host, resource, capacity);
                }
            }
            let Some(on) = on else { continue };
            for class in 0..self.members.len() {
                let nothing = self.demand(class).iter().all(|&demand| demand == 0);
                if let Some(count) = self.count[class][host].filter(|_| nothing) {
                    let members = self.members[class].len() as f64;
                    self.rows.push((Expression::from(count) - members * on).leq(0.0));
                }
            }
        }
        Some(())
    }

    /// What all demands of a resource are multiples of.
    fn unit(&self, resource: usize) -> u64 {
        let demands = (0..self.members.len()).map(|class| self.demand(class)[resource]);
        demands.fold(0, greatest_common_divisor).max(1)
    }

    fn transient(&mut self, host: usize, resource: usize, capacity: u64) {
        let mut used = self.used(host, resource);
        for class in 0..self.members.len() {
            if self.example(class).initial != Some(HostIx(host as u32)) {
                continue;
            }
            let demand = self.demand(class)[resource] as f64;
            used.add_mul(demand, self.members[class].len() as f64);
            if let Some(count) = self.count[class][host] {
                used.add_mul(-demand, count);
            }
        }
        self.rows.push(used.leq(capacity as f64));
    }

    fn goals(&mut self, least_peak: f64) {
        for goal in 0..self.problem.goals.len() {
            match &self.problem.goals[goal] {
                Goal::Energy { .. } => {}
                Goal::Peak { weight } => self.peak(*weight as f64, least_peak),
                Goal::Overload { weights, safe } => {
                    for (host, safe) in safe.iter().enumerate() {
                        for (resource, &weight) in weights.iter().enumerate() {
                            if weight > 0 {
                                let column = Column::Above { goal, host, resource };
                                let most = self.problem.whole(host, resource) as f64;
                                let above = self.column(column, most, false, weight as f64);
                                let used = self.used(host, resource) - above;
                                let standing = self.problem.standing(host, resource) as f64;
                                self.rows.push(used.leq(safe[resource] as f64 - standing));
                            }
                        }
                    }
                }
                Goal::Stranded { plenty, scarce, target, weight } => {
                    for host in 0..self.problem.hosts.len() {
                        let capacity = &self.problem.hosts[host].capacity;
                        let (more, less) = (capacity[*plenty as usize], capacity[*scarce as usize]);
                        let most = (*target * more) as f64;
                        let column = Column::Stranded { goal, host };
                        let stranded = self.column(column, most, false, *weight as f64);
                        let mut row = self.used(host, *plenty as usize) * -(*target as f64);
                        row += self.used(host, *scarce as usize);
                        self.rows.push((row - stranded).leq(less as f64 - most));
                    }
                }
                Goal::Moves { busiest: Some(busiest), .. } => {
                    self.busiest(goal, busiest.weight as f64, &busiest.group_of);
                }
                Goal::Share(rates) => self.share(goal, rates),
                // In what VMs cost on hosts, or in the constant.
                Goal::Moves { .. }
                | Goal::Table { .. }
                | Goal::Power { .. }
                | Goal::Heat { .. }
                | Goal::Balance(_)
                | Goal::Traffic(_)
                | Goal::Outages(_) => {}
            }
        }
    }

    fn peak(&mut self, weight: f64, least: f64) {
        let peak = self.column(Column::Peak, 1.0, false, weight);
        self.rows.push(Expression::from(peak).geq(least));
        for host in 0..self.problem.hosts.len() {
            for resource in 0..self.problem.resources.len() {
                let whole = self.problem.whole(host, resource);
                if whole > 0 {
                    let used = self.used(host, resource) - whole as f64 * peak;
                    self.rows.push(used.leq(-(self.problem.standing(host, resource) as f64)));
                }
            }
        }
    }

    fn busiest(&mut self, goal: usize, weight: f64, group_of: &[u32]) {
        let most = self.problem.vms.len() as f64;
        let busiest = self.column(Column::Busiest(goal), most, false, weight);
        let groups: HashSet<u32> = group_of.iter().copied().collect();
        let mut groups: Vec<u32> = groups.into_iter().collect();
        groups.sort_unstable();
        for group in groups {
            let mut moved = Expression::default() - busiest;
            let mut all = 0.0;
            for class in 0..self.members.len() {
                let vm = self.members[class][0];
                let Some(home) = self.example(class).initial else { continue };
                if group_of[vm.0 as usize] != group {
                    continue;
                }
                all += self.members[class].len() as f64;
                if let Some(count) = self.count[class][home.0 as usize] {
                    moved.add_mul(-1.0, count);
                }
            }
            self.rows.push(moved.leq(-all));
        }
    }
}

fn greatest_common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}
