//! Which VMs and which hosts are interchangeable.
//!
//! Searches that would try equal things one after the other, and programmes that would have a
//! column for each of them, use one for all. Two VMs are equal if exchanging them changes neither
//! what holds nor what anything is worth; two hosts, if exchanging all that is on them does not.

use cluster::assignment::{End, Far, Goal, Problem, Rule, Scope};
use cluster::{HostIx, VmIx};
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use std::hash::Hash;

#[derive(Clone, Debug, Default)]
pub struct Classes {
    /// Class of each VM; numbers in order of the first member.
    pub vms: Vec<u32>,
    pub hosts: Vec<u32>,
}

impl Classes {
    pub fn of(problem: &Problem) -> Self {
        Self { vms: vm_classes(problem), hosts: host_classes(problem) }
    }

    /// VMs of each class.
    pub fn members(&self) -> Vec<Vec<VmIx>> {
        let mut members =
            vec![Vec::new(); self.vms.iter().max().map_or(0, |&last| last as usize + 1)];
        for (vm, &class) in (0..).zip(&self.vms) {
            members[class as usize].push(VmIx(vm));
        }
        members
    }
}

/// Whether it matters where VMs were.
fn initial_matters(problem: &Problem) -> bool {
    problem.resources.iter().any(|resource| resource.transient)
        || problem.goals.iter().any(|goal| matches!(goal, Goal::Moves { .. }))
}

fn vm_classes(problem: &Problem) -> Vec<u32> {
    let ruled: Vec<bool> = {
        let mut ruled = vec![false; problem.groups.len()];
        for rule in &problem.rules {
            rule.groups().into_iter().for_each(|group| ruled[group as usize] = true);
        }
        for goal in &problem.goals {
            if let Goal::Outages(outages) = goal {
                outages.groups.iter().for_each(|watched| ruled[watched.group as usize] = true);
            }
        }
        ruled
    };
    let mut groups: Vec<Vec<u32>> = vec![Vec::new(); problem.vms.len()];
    for (group, members) in (0..).zip(&problem.groups) {
        if ruled[group as usize] {
            for vm in members {
                groups[vm.0 as usize].push(group);
            }
        }
    }
    groups.iter_mut().for_each(|groups| groups.dedup());
    let initial_matters = initial_matters(problem);
    let talks = talks(problem);
    number(problem.vms.iter().enumerate().map(|(row, vm)| {
        let mut costs: Vec<u64> = Vec::new();
        for goal in &problem.goals {
            match goal {
                Goal::Moves { vms, busiest, .. } => {
                    costs.push(vms[row]);
                    costs.extend(busiest.as_ref().map(|busiest| u64::from(busiest.group_of[row])));
                }
                Goal::Table { vms, .. } => costs.push(vms[row].into()),
                _ => {}
            }
        }
        // Whoever talks to somebody is not like any other.
        costs.extend(talks[row].then_some(row as u64));
        let initial = vm.initial.filter(|_| initial_matters);
        (&problem.shapes[vm.shape as usize], &vm.allowed, initial, &groups[row], costs)
    }))
}

/// VMs that are one of a pair.
fn talks(problem: &Problem) -> Vec<bool> {
    let mut talks = vec![false; problem.vms.len()];
    for goal in &problem.goals {
        let Goal::Traffic(traffic) = goal else { continue };
        for pair in &traffic.pairs {
            talks[pair.vm.0 as usize] = true;
            if let End::Vm(other) = pair.to {
                talks[other.0 as usize] = true;
            }
        }
    }
    talks
}

/// Scopes that rules and goals count by.
fn scopes(problem: &Problem) -> Vec<Scope> {
    let mut scopes: Vec<Scope> = problem.rules.iter().map(|rule| rule.subject().1).collect();
    for goal in &problem.goals {
        match goal {
            Goal::Heat { scope, .. } => scopes.push(*scope),
            Goal::Traffic(traffic) => scopes.extend(traffic.near.iter().map(|near| near.scope)),
            Goal::Outages(outages) => scopes.extend(outages.scopes.iter().map(|(scope, _)| *scope)),
            _ => {}
        }
    }
    scopes
}

/// Hosts that a goal speaks of by themselves.
fn named(problem: &Problem) -> Vec<u32> {
    let mut named = Vec::new();
    for goal in &problem.goals {
        match goal {
            Goal::Traffic(traffic) => {
                named.extend(traffic.pairs.iter().filter_map(|pair| match pair.to {
                    End::Host(host) => Some(host.0),
                    End::Vm(_) => None,
                }))
            }
            Goal::Outages(outages) => {
                let standing = outages.groups.iter().flat_map(|watched| &watched.standing);
                named.extend(standing.map(|host| host.0));
            }
            _ => {}
        }
    }
    named
}

fn host_classes(problem: &Problem) -> Vec<u32> {
    let hosts = problem.hosts.len();
    let far_apart =
        problem.goals.iter().any(|goal| matches!(goal, Goal::Moves { between: Some(_), .. }));
    let mut marks: Vec<Vec<u64>> = vec![Vec::new(); hosts];
    if far_apart {
        marks.iter_mut().enumerate().for_each(|(host, marks)| marks.push(host as u64));
    }
    if initial_matters(problem) {
        for host in problem.vms.iter().filter_map(|vm| vm.initial) {
            marks[host.0 as usize] = vec![host.0.into()];
        }
    }
    for host in named(problem) {
        marks[host as usize] = vec![host.into()];
    }
    for host in joined(problem) {
        marks[host as usize].push(host.into());
    }
    for (number, list) in (0..).zip(lists(problem)) {
        let mut listed = list.into_owned();
        listed.sort_unstable();
        listed.dedup();
        // Apart from the numbers of hosts that are told apart by where VMs were.
        listed.iter().for_each(|host| marks[host.0 as usize].push(u64::MAX - number));
    }
    let scopes = scopes(problem);
    let levels: Vec<usize> = (0..problem.levels.len())
        .filter(|&level| scopes.contains(&Scope::Level(level as u32)))
        .collect();
    number(problem.hosts.iter().enumerate().map(|(row, host)| {
        let mut goals: Vec<u64> = Vec::new();
        for goal in &problem.goals {
            match goal {
                Goal::Energy { hosts, .. } => goals.extend([hosts[row].idle, hosts[row].span]),
                Goal::Overload { safe, .. } => goals.extend(&safe[row]),
                Goal::Power { curves, .. } => goals.push(curves.of_host[row].into()),
                Goal::Heat { curves, scope, limits, .. } => {
                    goals.push(curves.of_host[row].into());
                    if *scope == Scope::Host {
                        goals.push(limits.get(row).copied().unwrap_or(u64::MAX));
                    }
                }
                Goal::Share(rates) => goals.push(rates.of_host[row].into()),
                Goal::Balance(balance) => goals.push(balance.rates.of_host[row].into()),
                Goal::Table { hosts, .. } => goals.push(hosts[row].into()),
                Goal::Traffic(traffic) => {
                    if let Far::Sites(fabric) = &traffic.far {
                        goals.push(fabric.of_host[row].into());
                    }
                }
                Goal::Outages(outages) => {
                    let own = outages.scopes.iter().filter(|(scope, _)| *scope == Scope::Host);
                    goals.extend(own.map(|(_, rates)| rates.get(row).copied().unwrap_or(0)));
                }
                Goal::Peak { .. } | Goal::Stranded { .. } | Goal::Moves { .. } => {}
            }
        }
        if let Some(standing) = problem.standing.get(row) {
            goals.push(standing.vms.into());
            goals.extend(&standing.used);
        }
        let domains: Vec<u32> = levels.iter().map(|&level| host.domains[level]).collect();
        (&host.capacity, domains, goals, &marks[row])
    }))
}

/// Hosts that are ends of routes themselves, so that no other is like them.
fn joined(problem: &Problem) -> Vec<u32> {
    let mut hosts: Vec<u32> = Vec::new();
    for rule in &problem.rules {
        if let Rule::Network { scope: Scope::Host, over, .. } = rule {
            let routes = &problem.fabrics[*over as usize].routes;
            hosts.extend(routes.iter().flat_map(|route| [route.between.0, route.between.1]));
        }
    }
    hosts.retain(|&host| (host as usize) < problem.hosts.len());
    hosts.sort_unstable();
    hosts.dedup();
    hosts
}

/// Every list of hosts that VMs or rules have, each once.
fn lists(problem: &Problem) -> Vec<Cow<'_, [HostIx]>> {
    let own = problem.vms.iter().filter_map(|vm| vm.allowed.as_deref().map(Cow::Borrowed));
    let of_rules = problem.rules.iter().filter_map(|rule| match rule {
        Rule::Skew { scope: Scope::Host, among, .. } => {
            let known = among.iter().filter(|&&host| (host as usize) < problem.hosts.len());
            Some(known.map(|&host| HostIx(host)).collect())
        }
        _ => rule.hosts().map(Cow::Borrowed),
    });
    let mut lists: Vec<Cow<'_, [HostIx]>> = own.chain(of_rules).collect();
    lists.sort_unstable();
    lists.dedup();
    lists
}

fn number<K: Hash + Eq>(keys: impl Iterator<Item = K>) -> Vec<u32> {
    let mut numbers: FxHashMap<K, u32> = FxHashMap::default();
    keys.map(|key| {
        let next = numbers.len() as u32;
        *numbers.entry(key).or_insert(next)
    })
    .collect()
}
