//! Outages: what groups lose when hosts, racks or zones fail, heavier where members share one.

use crate::assignment::{Change, NOWHERE};
use cluster::HostIx;
use cluster::assignment::{NO_DOMAIN, PARTS, Problem, Scope};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

#[derive(Clone, Debug)]
pub(crate) struct Outages {
    /// Groups of each VM are `groups[first_of[vm]..first_of[vm + 1]]`.
    first_of: Vec<u32>,
    groups: Vec<u32>,
    weights: Vec<i64>,
    scopes: Vec<Failing>,
    /// Members that are no rows: how many there are in each domain.
    standing: Vec<(u64, u32)>,
    /// Members that are rows, by group.
    members: Vec<u32>,
}

/// Domains of a scope and how often each fails.
#[derive(Clone, Debug)]
struct Failing {
    /// By host; of those in none `NO_DOMAIN`.
    domain_of: Vec<u32>,
    rates: Vec<i64>,
    /// How many domains have a host.
    domains: u32,
}

/// How many members of each group there are in each domain, and what that is worth.
#[derive(Clone, Debug)]
pub(crate) struct Losses {
    members: FxHashMap<u64, u32>,
    worth: i64,
}

impl Outages {
    pub(super) fn compile(problem: &Problem, goal: &cluster::assignment::Outages) -> Self {
        let scopes: Vec<Failing> =
            goal.scopes.iter().map(|(scope, rates)| Failing::of(problem, *scope, rates)).collect();
        let mut of_vm: Vec<SmallVec<[u32; 2]>> = vec![SmallVec::new(); problem.vms.len()];
        let mut standing: FxHashMap<u64, u32> = FxHashMap::default();
        let mut members = Vec::with_capacity(goal.groups.len());
        for (row, watched) in (0..).zip(&goal.groups) {
            let mut counted = 0;
            for vm in &problem.groups[watched.group as usize] {
                let groups = &mut of_vm[vm.0 as usize];
                if groups.last() != Some(&row) {
                    groups.push(row);
                    counted += 1;
                }
            }
            members.push(counted);
            for (scope, failing) in scopes.iter().enumerate() {
                for host in &watched.standing {
                    if let Some(domain) = failing.domain(host.0) {
                        *standing.entry(key(scopes.len(), row, scope, domain)).or_default() += 1;
                    }
                }
            }
        }
        let mut standing: Vec<(u64, u32)> = standing.into_iter().collect();
        standing.sort_unstable();
        let mut first_of = vec![0];
        let mut groups = Vec::new();
        for list in of_vm {
            groups.extend(list);
            first_of.push(groups.len() as u32);
        }
        let weights = goal.groups.iter().map(|watched| watched.weight as i64).collect();
        Self { first_of, groups, weights, scopes, standing, members }
    }

    fn groups(&self, vm: u32) -> &[u32] {
        let vm = vm as usize;
        &self.groups[self.first_of[vm] as usize..self.first_of[vm + 1] as usize]
    }

    fn cost(&self, group: u32, rate: i64, members: u32) -> i64 {
        let squares = i128::from(members) * i128::from(members);
        ((i128::from(self.weights[group as usize]) * i128::from(rate) * squares) >> PARTS) as i64
    }

    fn cost_of(&self, key: u64, members: u32) -> i64 {
        let (row, domain) = ((key >> 32) as usize, key as u32);
        let (group, scope) = (row / self.scopes.len(), row % self.scopes.len());
        self.cost(group as u32, self.scopes[scope].rates[domain as usize], members)
    }

    /// What is lost of members that stay, and every other one in the domain that fails least often
    /// and that fewest share.
    pub(super) fn bound(&self) -> i64 {
        let losses = Losses::none(self);
        let mut least = 0i128;
        let rates: Vec<i64> = self.scopes.iter().map(Failing::least).collect();
        for (group, &members) in (0..).zip(&self.members) {
            for (row, scope) in self.scopes.iter().enumerate() {
                let before = losses_of(self, group, row);
                let rate = rates[row];
                let alone = i128::from(self.cost(group, rate, 1)) * i128::from(members);
                // Evenly spread over all domains, as if none of them had standing members; rounding
                // down may lose a unit in each.
                let domains = i128::from(scope.domains.max(1));
                let (each, more) = (i128::from(members) / domains, i128::from(members) % domains);
                let squares = each * each * (domains - more) + (each + 1) * (each + 1) * more;
                let weight = i128::from(self.weights[group as usize]) * i128::from(rate);
                let even = ((weight * squares) >> PARTS) - i128::from(members.min(scope.domains));
                least += even.max(i128::from(before) + alone);
            }
        }
        debug_assert!(i128::from(losses.worth) <= least);
        least as i64
    }
}

/// What a group loses in a scope by members that are no rows.
fn losses_of(goal: &Outages, group: u32, scope: usize) -> i64 {
    let row = (group as usize * goal.scopes.len() + scope) as u64;
    let first = goal.standing.partition_point(|(key, _)| key >> 32 < row);
    let own = goal.standing[first..].iter().take_while(|(key, _)| key >> 32 == row);
    own.map(|&(key, members)| goal.cost_of(key, members)).sum()
}

impl Failing {
    fn of(problem: &Problem, scope: Scope, rates: &[u64]) -> Self {
        let hosts = (0..problem.hosts.len() as u32).map(HostIx);
        let domain = |host| match problem.domain(scope, host) {
            domain if (domain as usize) < rates.len() => domain,
            _ => NO_DOMAIN,
        };
        let domain_of: Vec<u32> = hosts.map(domain).collect();
        let mut there = vec![false; rates.len()];
        for &domain in domain_of.iter().filter(|domain| **domain != NO_DOMAIN) {
            there[domain as usize] = true;
        }
        let domains = there.iter().filter(|there| **there).count() as u32;
        Self { domain_of, rates: rates.iter().map(|&rate| rate as i64).collect(), domains }
    }

    fn domain(&self, host: u32) -> Option<u32> {
        Some(self.domain_of[host as usize]).filter(|&domain| domain != NO_DOMAIN)
    }

    /// The least rate of any host's domain; hosts in none lose nothing.
    fn least(&self) -> i64 {
        let rate = |&domain: &u32| self.rates.get(domain as usize).copied().unwrap_or(0);
        self.domain_of.iter().map(rate).min().unwrap_or(0)
    }
}

fn key(scopes: usize, group: u32, scope: usize, domain: u32) -> u64 {
    ((group as usize * scopes + scope) as u64) << 32 | u64::from(domain)
}

impl Losses {
    pub(super) fn none(goal: &Outages) -> Self {
        let costs = goal.standing.iter().map(|&(key, members)| goal.cost_of(key, members));
        let worth = costs.sum();
        Self { members: goal.standing.iter().copied().collect(), worth }
    }

    pub(super) fn worth(&self) -> i64 {
        self.worth
    }

    pub(super) fn record(&mut self, goal: &Outages, change: Change) {
        for (key, step) in steps(goal, change) {
            let members = self.members.entry(key).or_default();
            let after = members.wrapping_add_signed(step);
            self.worth += goal.cost_of(key, after) - goal.cost_of(key, *members);
            *members = after;
            if after == 0 {
                self.members.remove(&key);
            }
        }
    }

    pub(super) fn delta(&self, goal: &Outages, changes: &[Change]) -> i64 {
        let cost = |key: u64, step: i32| {
            let members = self.members.get(&key).copied().unwrap_or(0);
            goal.cost_of(key, members.wrapping_add_signed(step)) - goal.cost_of(key, members)
        };
        if let [change] = changes {
            return steps(goal, *change).map(|(key, step)| cost(key, step)).sum();
        }
        // Several VMs of a group may come to a domain, or one instead of another.
        let mut all: SmallVec<[(u64, i32); 32]> = SmallVec::new();
        for &change in changes {
            for (key, step) in steps(goal, change) {
                match all.iter_mut().find(|(known, _)| *known == key) {
                    Some((_, sum)) => *sum += step,
                    None => all.push((key, step)),
                }
            }
        }
        all.into_iter().map(|(key, step)| cost(key, step)).sum()
    }
}

/// Which counters a change changes, and by how much.
fn steps(goal: &Outages, change: Change) -> impl Iterator<Item = (u64, i32)> + '_ {
    let scopes = goal.scopes.len();
    goal.groups(change.vm).iter().flat_map(move |&group| {
        goal.scopes.iter().enumerate().flat_map(move |(scope, failing)| {
            let domain = |host: u32| if host == NOWHERE { None } else { failing.domain(host) };
            let (from, to) = (domain(change.from), domain(change.to));
            let same = from == to;
            let counter = move |domain: Option<u32>, step: i32| {
                let domain = domain.filter(|_| !same)?;
                Some((key(scopes, group, scope, domain), step))
            };
            [counter(from, -1), counter(to, 1)].into_iter().flatten()
        })
    })
}
