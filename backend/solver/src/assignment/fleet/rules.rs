//! Rules between VMs, those that they carry and those that are installed, as rules of a problem.

use super::own::OwnRules;
use super::{Origin, Rows};
use crate::constraints::fabric;
use cluster::assignment::{Fabric, NO_DOMAIN, Problem, Route, Rule, Scope};
use cluster::{
    AffinityKind, Constraint, ConstraintRule, Exclusive, Fence, HostIx, HostState, Keep, Level,
    Links, Name, Network, Sharing, Snapshot, Spare, Strength, Subject, Vm, VmIx, VmSet,
};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// Rules as they are put together.
pub(super) struct Rules<'a> {
    snapshot: &'a Snapshot,
    resources: usize,
    groups: Vec<Vec<VmIx>>,
    known: FxHashMap<Vec<VmIx>, u32>,
    rules: Vec<Rule>,
    origins: Vec<Origin>,
    fabrics: Vec<Fabric>,
    /// The row of each fabric that is asked for, by the name of its links.
    fabric_rows: FxHashMap<&'a Name, u32>,
    levels: Vec<Level>,
    /// The number of each domain, by level.
    domains: FxHashMap<Level, FxHashMap<&'a Name, u32>>,
}

/// All rules of a fleet, and the levels that they count by.
pub(super) fn read<'a>(
    rows: &Rows<'a>,
    own: &OwnRules,
    resources: usize,
) -> (Rules<'a>, Vec<Level>) {
    let mut rules = Rules {
        snapshot: rows.snapshot,
        resources,
        groups: Vec::new(),
        known: FxHashMap::default(),
        rules: Vec::new(),
        origins: Vec::new(),
        fabrics: Vec::new(),
        fabric_rows: FxHashMap::default(),
        levels: Vec::new(),
        domains: FxHashMap::default(),
    };
    let subjects = Subjects::of(rows);
    rules.affinities(rows, &subjects);
    rules.spreads(rows, own, &subjects);
    for constraint in &rows.snapshot.constraints {
        rules.installed(rows, constraint);
    }
    let levels = rules.levels.clone();
    (rules, levels)
}

impl<'a> Rules<'a> {
    /// Puts groups, rules and fabrics into the problem; who demands each rule.
    pub(super) fn into_problem(self, problem: &mut Problem) -> Vec<Origin> {
        (problem.groups, problem.rules) = (self.groups, self.rules);
        problem.fabrics = self.fabrics;
        self.origins
    }

    /// The number of a host's domain.
    pub(super) fn domain(&self, level: &Level, host: usize) -> u32 {
        let name = self.snapshot.hosts[host].domain(level);
        name.map_or(NO_DOMAIN, |name| self.domains[level][name])
    }

    fn push(&mut self, origin: &Origin, rule: Rule) {
        self.rules.push(rule);
        self.origins.push(origin.clone());
    }

    fn group(&mut self, members: Vec<VmIx>) -> u32 {
        let groups = &mut self.groups;
        *self.known.entry(members).or_insert_with_key(|members| {
            groups.push(members.clone());
            groups.len() as u32 - 1
        })
    }

    fn scope(&mut self, level: &Level) -> Scope {
        if *level == Level::Host {
            return Scope::Host;
        }
        if let Some(row) = self.levels.iter().position(|known| known == level) {
            return Scope::Level(row as u32);
        }
        let mut numbers: FxHashMap<&'a Name, u32> = FxHashMap::default();
        for name in self.snapshot.hosts.iter().filter_map(|host| host.domain(level)) {
            let next = numbers.len() as u32;
            numbers.entry(name).or_insert(next);
        }
        self.domains.insert(level.clone(), numbers);
        self.levels.push(level.clone());
        Scope::Level(self.levels.len() as u32 - 1)
    }

    fn hosts(&self, mut wanted: impl FnMut(&cluster::Host) -> bool) -> Vec<HostIx> {
        let hosts = (0..).map(HostIx).zip(&self.snapshot.hosts);
        hosts.filter(|(_, host)| wanted(host)).map(|(ix, _)| ix).collect()
    }

    /// VMs that have to be apart from, or together with, others.
    fn affinities(&mut self, rows: &Rows<'_>, subjects: &Subjects<'_>) {
        let mut wanted: BTreeMap<(bool, &Name, &Subject, &Level), Vec<VmIx>> = BTreeMap::new();
        for (row, vm) in (0..).map(VmIx).zip(&rows.vms) {
            for rule in vm.affinities.iter().filter(|rule| rule.strength == Strength::Required) {
                if !matches!(rule.subject, Subject::Hosts(_)) {
                    let apart = rule.kind == AffinityKind::Apart;
                    let key = (apart, &vm.key.tenant, &rule.subject, &rule.level);
                    wanted.entry(key).or_default().push(row);
                }
            }
        }
        for ((apart, tenant, subject, level), mut bearers) in wanted {
            bearers.dedup();
            let (tenant_name, level_name) = (tenant.clone(), level.clone());
            let subject_name = subject.clone();
            let members = subjects.members(tenant, subject);
            let scope = self.scope(level);
            if apart {
                let origin =
                    Origin::Apart { tenant: tenant_name, subject: subject_name, level: level_name };
                let (group, from) = (self.group(bearers), self.group(members));
                self.push(&origin, Rule::Away { group, from, scope });
                continue;
            }
            let origin =
                Origin::Together { tenant: tenant_name, subject: subject_name, level: level_name };
            // The only member there is has nobody to join, but has to be in a domain.
            if members.len() == 1 && bearers.contains(&members[0]) {
                let hosts = self.hosts(|host| host.domain(level).is_some());
                let group = self.group(members.clone());
                self.push(&origin, Rule::Fence { group, hosts });
                bearers.retain(|vm| *vm != members[0]);
            }
            if !bearers.is_empty() {
                let (group, with) = (self.group(bearers), self.group(members));
                self.push(&origin, Rule::Beside { group, with, scope });
            }
        }
    }

    /// Groups that have to be spread evenly over the domains that each of their VMs could use.
    fn spreads(&mut self, rows: &Rows<'_>, own: &OwnRules, subjects: &Subjects<'_>) {
        type Key<'v> = (&'v Name, &'v Name, &'v Level, u32, Vec<u32>);
        let mut wanted: BTreeMap<Key<'_>, Vec<VmIx>> = BTreeMap::new();
        let mut eligible: FxHashMap<(usize, Vec<bool>, &Level), Vec<u32>> = FxHashMap::default();
        for (row, vm) in rows.vms.iter().enumerate() {
            if rows.only_arrivals && rows.stays[row] {
                continue;
            }
            let required = |spread: &&cluster::Spread| spread.strength == Strength::Required;
            for spread in vm.spreads.iter().filter(required) {
                self.scope(&spread.level);
                let key = (own.number(row), sides(self.snapshot, vm), &spread.level);
                let among = eligible
                    .entry(key)
                    .or_insert_with(|| self.eligible(own.list(row), vm, &spread.level));
                let (tenant, group) = (&vm.key.tenant, &spread.group);
                let key = (tenant, group, &spread.level, spread.max_skew, among.clone());
                wanted.entry(key).or_default().push(VmIx(row as u32));
            }
        }
        for ((tenant, name, level, max_skew, among), mut bearers) in wanted {
            bearers.dedup();
            let subject = Subject::Group(name.clone());
            let members = subjects.members(tenant, &subject);
            let scope = self.scope(level);
            let origin = Origin::Spread {
                tenant: tenant.clone(),
                group: name.clone(),
                level: level.clone(),
                max_skew,
            };
            let (group, of) = (self.group(bearers), self.group(members));
            self.push(&origin, Rule::Skew { group, of, scope, most: max_skew, among });
        }
    }

    /// Domains with a host that the VM's own rules and all fences leave it.
    fn eligible(&self, list: Option<&[HostIx]>, vm: &Vm, level: &Level) -> Vec<u32> {
        let all: Vec<HostIx>;
        let hosts = match list {
            Some(list) => list,
            None => {
                all = self.hosts(|_| true);
                &all
            }
        };
        let inside = |host: &&HostIx| {
            let host = &self.snapshot.hosts[host.0 as usize];
            fences(self.snapshot).all(|fence| {
                let member = fence.vms.contains(vm);
                !member && !fence.reserved || fence.hosts.contains(host) == member
            })
        };
        let number = |host: &HostIx| match level {
            Level::Host => host.0,
            _ => self.domain(level, host.0 as usize),
        };
        let mut domains: Vec<u32> = hosts.iter().filter(inside).map(number).collect();
        domains.retain(|&domain| domain != NO_DOMAIN);
        domains.sort_unstable();
        domains.dedup();
        domains
    }

    fn installed(&mut self, rows: &Rows<'a>, constraint: &Constraint) {
        let origin = Origin::Constraint(constraint.name.clone());
        let of = |set: &VmSet| members(rows, |vm| set.contains(vm));
        match &constraint.rule {
            ConstraintRule::Fence(fence) => self.fence(rows, &origin, fence),
            ConstraintRule::MinDomains(rule) => {
                let vms = of(&rule.vms);
                // Until so many are covered, each has a domain of its own.
                let domains = rule.min.min(vms.len() as u32);
                let scope = self.scope(&rule.level);
                let group = self.group(vms);
                self.push(&origin, Rule::Spread { group, scope, domains });
            }
            ConstraintRule::Limit(rule) => {
                let scope = self.scope(&rule.level);
                let group = self.group(of(&rule.vms));
                self.push(&origin, Rule::Limit { group, scope, most: rule.max });
            }
            ConstraintRule::Exclusive(rule) => self.exclusive(rows, &origin, rule),
            ConstraintRule::Dependency(rule) => {
                let scope = self.scope(&rule.level);
                let (group, needs) = (self.group(of(&rule.vms)), self.group(of(&rule.on)));
                self.push(&origin, Rule::Dependency { group, needs, scope });
            }
            ConstraintRule::Spare(rule) => self.spare(rows, &origin, rule),
            ConstraintRule::Network(rule) => self.network(rows, &origin, rule),
            ConstraintRule::Links(_) => {}
        }
    }

    fn network(&mut self, rows: &Rows<'a>, origin: &Origin, rule: &Network) {
        let links = rows.snapshot.constraints.iter().find_map(|other| match &other.rule {
            ConstraintRule::Links(links) if other.name == rule.over => Some((&other.name, links)),
            _ => None,
        });
        // Without links it says nothing.
        let Some((name, links)) = links else { return };
        let of = |set: &VmSet| members(rows, |vm| set.contains(vm));
        let scope = self.scope(&links.level);
        let (group, to) = (self.group(of(&rule.vms)), self.group(of(&rule.to)));
        let over = self.fabric(name, links);
        // More than any link has is as good as all of it and one more.
        let most = links.links.iter().map(|link| link.bandwidth_mbps).max().unwrap_or(0);
        let bandwidth = u64::from(rule.bandwidth_mbps).min(u64::from(most) + 1);
        let latency = rule.max_latency_us.map(u64::from);
        self.push(origin, Rule::Network { group, to, scope, over, latency, bandwidth });
    }

    /// The row of a fabric: its routes between domains that have a host.
    fn fabric(&mut self, name: &'a Name, links: &Links) -> u32 {
        if let Some(&row) = self.fabric_rows.get(name) {
            return row;
        }
        let laid = fabric::Fabric::new(&links.links);
        let hosts: FxHashMap<&Name, u32>;
        let numbers = match self.domains.get(&links.level) {
            Some(numbers) => numbers,
            None => {
                hosts =
                    (0..).zip(&self.snapshot.hosts).map(|(row, host)| (&host.id, row)).collect();
                &hosts
            }
        };
        let ends = laid.nodes().filter_map(|(node, name)| Some((node, *numbers.get(name)?)));
        let ends: Vec<(fabric::Node, u32)> = ends.collect();
        let mut routes = Vec::new();
        for (row, &(from, a)) in ends.iter().enumerate() {
            for &(to, b) in &ends[row + 1..] {
                let Some(route) = laid.route(from, to) else { continue };
                let links = route.links.iter().map(|&link| link.into()).collect();
                routes.push(Route { between: (a, b), latency: route.latency_us, links });
            }
        }
        let links = links.links.iter().map(|link| link.bandwidth_mbps.into()).collect();
        self.fabrics.push(Fabric { links, routes });
        let row = self.fabrics.len() as u32 - 1;
        self.fabric_rows.insert(name, row);
        row
    }

    /// VMs that stay are not asked: they could not follow.
    fn fence(&mut self, rows: &Rows<'_>, origin: &Origin, fence: &Fence) {
        let (mut inside, mut outside) = (Vec::new(), Vec::new());
        for (row, vm) in rows.vms.iter().enumerate().filter(|(row, _)| !rows.stays[*row]) {
            let side = if fence.vms.contains(vm) { &mut inside } else { &mut outside };
            side.push(VmIx(row as u32));
        }
        if !inside.is_empty() {
            let hosts = self.hosts(|host| fence.hosts.contains(host));
            let group = self.group(inside);
            self.push(origin, Rule::Fence { group, hosts });
        }
        if fence.reserved && !outside.is_empty() {
            let hosts = self.hosts(|host| !fence.hosts.contains(host));
            let group = self.group(outside);
            self.push(origin, Rule::Fence { group, hosts });
        }
    }

    fn exclusive(&mut self, rows: &Rows<'_>, origin: &Origin, rule: &Exclusive) {
        let inside = members(rows, |vm| rule.vms.contains(vm));
        if inside.is_empty() {
            return;
        }
        let from = members(rows, |vm| match rule.sharing {
            Sharing::Members => !rule.vms.contains(vm),
            Sharing::Nobody => true,
        });
        let (group, from) = (self.group(inside), self.group(from));
        self.push(origin, Rule::Away { group, from, scope: Scope::Host });
        // VMs of others are not members, and nobody moves them.
        let hosts = self.hosts(|host| host.foreign.vms == 0);
        if hosts.len() < self.snapshot.hosts.len() {
            self.push(origin, Rule::Fence { group, hosts });
        }
    }

    fn spare(&mut self, rows: &Rows<'_>, origin: &Origin, rule: &Spare) {
        let bound = members(rows, |vm| !rule.except.as_ref().is_some_and(|set| set.contains(vm)));
        let kept =
            self.hosts(|host| host.state == HostState::Available && rule.hosts.contains(host));
        let mut parts: BTreeMap<Option<&Name>, Vec<HostIx>> = BTreeMap::new();
        for host in kept {
            let row = &self.snapshot.hosts[host.0 as usize];
            match rule.each.as_ref().map(|level| row.domain(level)) {
                None => parts.entry(None).or_default().push(host),
                Some(Some(domain)) => parts.entry(Some(domain)).or_default().push(host),
                Some(None) => {}
            }
        }
        let group = self.group(bound);
        for hosts in parts.into_values() {
            let keep = self.keep(rule.keep, &hosts);
            self.push(origin, Rule::Spare { group, hosts, keep });
        }
    }

    /// What these hosts keep of each resource; what is guaranteed is part of what is promised.
    fn keep(&self, keep: Keep, hosts: &[HostIx]) -> Vec<u64> {
        let mut kept = vec![0; self.resources];
        for dim in self.snapshot.dimensions.iter() {
            let has = |host: &HostIx| self.snapshot.hosts[host.0 as usize].allocatable(dim);
            let mut amounts: Vec<u64> = hosts.iter().map(has).collect();
            kept[dim.row()] = match keep {
                Keep::Permille(permille) => {
                    (amounts.iter().sum::<u64>() * u64::from(permille)).div_ceil(1000)
                }
                Keep::Hosts(count) => {
                    amounts.sort_unstable_by(|a, b| b.cmp(a));
                    amounts.iter().take(count as usize).sum()
                }
            };
        }
        kept
    }
}

fn fences(snapshot: &Snapshot) -> impl Iterator<Item = &Fence> {
    snapshot.constraints.iter().filter_map(|constraint| match &constraint.rule {
        ConstraintRule::Fence(fence) => Some(fence),
        _ => None,
    })
}

/// Which fences a VM is one of.
fn sides(snapshot: &Snapshot, vm: &Vm) -> Vec<bool> {
    fences(snapshot).map(|fence| fence.vms.contains(vm)).collect()
}

fn members(rows: &Rows<'_>, wanted: impl Fn(&Vm) -> bool) -> Vec<VmIx> {
    let vms = (0..).map(VmIx).zip(&rows.vms);
    vms.filter(|(_, vm)| wanted(vm)).map(|(row, _)| row).collect()
}

/// VMs by what rules call them, by tenant: looked up once for every rule of a large fleet.
struct Subjects<'a> {
    groups: FxHashMap<(&'a Name, &'a Name), Vec<VmIx>>,
    vms: FxHashMap<(&'a Name, &'a Name), VmIx>,
}

impl<'a> Subjects<'a> {
    fn of(rows: &Rows<'a>) -> Self {
        let mut found = Self { groups: FxHashMap::default(), vms: FxHashMap::default() };
        for (row, vm) in (0..).map(VmIx).zip(&rows.vms) {
            let tenant = &vm.key.tenant;
            found.vms.insert((tenant, &vm.key.id), row);
            for group in vm.groups.iter().chain(vm.spreads.iter().map(|spread| &spread.group)) {
                let members = found.groups.entry((tenant, group)).or_default();
                if members.last() != Some(&row) {
                    members.push(row);
                }
            }
        }
        found
    }

    /// VMs of the tenant that are the subject, or of it, in order.
    fn members(&self, tenant: &Name, subject: &Subject) -> Vec<VmIx> {
        match subject {
            Subject::Vm(id) => self.vms.get(&(tenant, id)).into_iter().copied().collect(),
            Subject::Group(group) => self.groups.get(&(tenant, group)).cloned().unwrap_or_default(),
            Subject::Hosts(_) => Vec::new(),
        }
    }
}
