//! The plain reading: a world of hosts and VMs in lists, and one VM's case against each host.
//!
//! Everything is derived from the snapshot by loops that follow the text of the rules. Speed is
//! the ledger's business; here only the same question is never worked out twice for each host.

use crate::ViolationKind;
use crate::bindings::{Holder, lacking};
use crate::installed::Installed;
use crate::reading::{
    allocatable, apart_from, cpu_overcommit_permille, demand_on, domain, groups, label,
    lets_through, matches, physical, required,
};
use cluster::{
    AffinityKind, Amounts, Bindings, Dim, Host, HostState, Level, Name, Qos, Reason, Snapshot,
    Spread, Strength, Subject, Vm, VmKey,
};
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};

/// Hosts, what is committed on them, and where each VM is.
pub(crate) struct World<'a> {
    pub(crate) hosts: Vec<&'a Host>,
    dimensions: usize,
    rows: BTreeMap<&'a Name, usize>,
    committed: Vec<Amounts>,
    /// The part of it that is guaranteed.
    guaranteed: Vec<Amounts>,
    /// Who has which parts of each host.
    holders: Vec<Vec<Holder<'a>>>,
    /// How many VMs are on each host.
    vms: Vec<u64>,
    /// The rows of the hosts that each VM is on. While it moves, those are two.
    residents: BTreeMap<&'a VmKey, Vec<usize>>,
    /// VMs by tenant and group.
    members: BTreeMap<(&'a Name, &'a Name), Vec<&'a VmKey>>,
    /// VMs that must be apart from a subject, by tenant and subject.
    repellers: BTreeMap<(&'a Name, &'a Subject), Vec<(&'a VmKey, &'a Level)>>,
    pub(crate) installed: Installed<'a>,
}

impl<'a> World<'a> {
    /// The world of a snapshot. VMs on unknown hosts, and all but the first of those with the
    /// same key, are left out: `snapshot` reports them.
    pub(crate) fn new(snapshot: &'a Snapshot) -> Self {
        let hosts: Vec<&Host> = snapshot.hosts.iter().map(|host| &**host).collect();
        let mut rows = BTreeMap::new();
        for (row, host) in hosts.iter().enumerate() {
            rows.entry(&host.id).or_insert(row);
        }
        let mut world = Self {
            committed: vec![Amounts::zero(); hosts.len()],
            guaranteed: vec![Amounts::zero(); hosts.len()],
            holders: vec![Vec::new(); hosts.len()],
            vms: vec![0; hosts.len()],
            hosts,
            dimensions: snapshot.dimensions.len(),
            rows,
            residents: BTreeMap::new(),
            members: BTreeMap::new(),
            repellers: BTreeMap::new(),
            installed: Installed::new(&snapshot.constraints),
        };
        for placed in &snapshot.placed {
            if let Some(row) = world.row(&placed.host) {
                let bindings = placed.bindings.as_deref();
                world.place(&placed.vm, row, &placed.committed, bindings);
            }
        }
        world
    }

    pub(crate) fn row(&self, host: &Name) -> Option<usize> {
        self.rows.get(host).copied()
    }

    pub(crate) fn host_of(&self, vm: &VmKey) -> Option<&'a Host> {
        self.residents.get(vm)?.first().map(|row| self.hosts[*row])
    }

    pub(crate) fn committed(&self, row: usize) -> &Amounts {
        &self.committed[row]
    }

    pub(crate) fn guaranteed(&self, row: usize) -> &Amounts {
        &self.guaranteed[row]
    }

    pub(crate) fn allocatable(&self, row: usize, dim: Dim) -> u64 {
        if dim.row() < self.dimensions { allocatable(self.hosts[row], dim) } else { 0 }
    }

    pub(crate) fn holders(&self, row: usize) -> &[Holder<'a>] {
        &self.holders[row]
    }

    /// Adds a VM unless it is there.
    pub(crate) fn place(
        &mut self,
        vm: &'a Vm,
        row: usize,
        committed: &Amounts,
        bindings: Option<&'a Bindings>,
    ) {
        if !self.residents.contains_key(&vm.key) {
            self.add(vm, row, committed, bindings);
        }
    }

    /// Adds a VM to a host, also if it is on another.
    pub(crate) fn add(
        &mut self,
        vm: &'a Vm,
        row: usize,
        committed: &Amounts,
        bindings: Option<&'a Bindings>,
    ) {
        if let Some(bindings) = bindings {
            self.holders[row].push(Holder { vm: &vm.key, bindings });
        }
        self.installed.count(vm, self.hosts[row], committed);
        for (dim, amount) in committed.iter() {
            let sum = self.committed[row].get(dim).saturating_add(amount);
            self.committed[row].set(dim, sum);
            if vm.qos == Qos::Guaranteed {
                let sum = self.guaranteed[row].get(dim).saturating_add(amount);
                self.guaranteed[row].set(dim, sum);
            }
        }
        self.vms[row] += 1;
        let rows = self.residents.entry(&vm.key).or_default();
        rows.push(row);
        if rows.len() > 1 {
            return;
        }
        for group in groups(vm) {
            self.members.entry((&vm.key.tenant, group)).or_default().push(&vm.key);
        }
        for (subject, level) in apart_from(vm) {
            let repellers = self.repellers.entry((&vm.key.tenant, subject)).or_default();
            repellers.push((&vm.key, level));
        }
    }

    /// Takes a VM off a host that it was added to.
    pub(crate) fn remove(&mut self, vm: &'a Vm, row: usize, committed: &Amounts) {
        let Some(rows) = self.residents.get_mut(&vm.key) else { return };
        let Some(place) = rows.iter().position(|on| *on == row) else { return };
        rows.remove(place);
        self.vms[row] -= 1;
        self.installed.uncount(vm, self.hosts[row]);
        for (dim, amount) in committed.iter() {
            let left = self.committed[row].get(dim).saturating_sub(amount);
            self.committed[row].set(dim, left);
            if vm.qos == Qos::Guaranteed {
                let left = self.guaranteed[row].get(dim).saturating_sub(amount);
                self.guaranteed[row].set(dim, left);
            }
        }
        self.holders[row].retain(|holder| *holder.vm != vm.key);
        if !rows.is_empty() {
            return;
        }
        self.residents.remove(&vm.key);
        for group in groups(vm) {
            if let Some(members) = self.members.get_mut(&(&vm.key.tenant, group)) {
                members.retain(|key| **key != vm.key);
            }
        }
        for (subject, _) in apart_from(vm) {
            if let Some(repellers) = self.repellers.get_mut(&(&vm.key.tenant, subject)) {
                repellers.retain(|(key, _)| **key != vm.key);
            }
        }
    }

    /// What this VM takes on a host, and how many others are there.
    pub(crate) fn beside(&self, vm: &Vm, row: usize) -> (Amounts, u64) {
        let rows = self.residents.get(&vm.key).map_or(&[][..], Vec::as_slice);
        match rows.contains(&row) {
            true => (demand_on(self.hosts[row], vm), self.vms[row].saturating_sub(1)),
            false => (Amounts::zero(), self.vms[row]),
        }
    }

    /// How many VMs of `subject` are in each domain of `level`, without `vm` itself.
    fn neighbours(&self, vm: &Vm, subject: &Subject, level: &Level) -> Neighbours<'a> {
        let tenant = &vm.key.tenant;
        let named;
        let keys: &[&VmKey] = match subject {
            Subject::Vm(id) => {
                let key = VmKey { tenant: tenant.clone(), id: id.clone() };
                named = self.residents.get_key_value(&key).map(|(key, _)| *key);
                named.as_slice()
            }
            Subject::Group(group) => self.members.get(&(tenant, group)).map_or(&[], Vec::as_slice),
            Subject::Hosts(_) => &[],
        };
        self.count(keys.iter().copied().filter(|key| **key != vm.key), level)
    }

    fn count<'k>(&self, keys: impl Iterator<Item = &'k VmKey>, level: &Level) -> Neighbours<'a> {
        let mut neighbours = Neighbours::default();
        for key in keys {
            for row in self.residents.get(key).into_iter().flatten() {
                neighbours.anywhere += 1;
                if let Some(domain) = domain(self.hosts[*row], level) {
                    *neighbours.by_domain.entry(domain).or_default() += 1;
                }
            }
        }
        neighbours
    }
}

/// VMs counted by domain of one level.
#[derive(Default)]
struct Neighbours<'a> {
    anywhere: u32,
    by_domain: BTreeMap<&'a Name, u32>,
}

impl Neighbours<'_> {
    fn within(&self, domain: &Name) -> u32 {
        self.by_domain.get(domain).copied().unwrap_or(0)
    }
}

/// One VM against the world: what its rules mean today, ready to be held against each host.
pub(crate) struct Case<'w> {
    world: &'w World<'w>,
    vm: &'w Vm,
    /// Required rules on hosts, with the domains of those that exist.
    host_rules: Vec<(AffinityKind, &'w Level, BTreeSet<&'w Name>)>,
    together: Vec<(&'w Subject, &'w Level, Neighbours<'w>)>,
    apart: Vec<(&'w Subject, &'w Level, Neighbours<'w>)>,
    /// The other way round: who must be apart from a subject that the VM belongs to.
    repelled: Vec<(Subject, &'w Level, Neighbours<'w>)>,
    spreads: Vec<Spreading<'w>>,
}

/// A spread rule with the members that there may be and those that there are for certain.
struct Spreading<'w> {
    rule: &'w Spread,
    most: Neighbours<'w>,
    sure: Neighbours<'w>,
    /// Fewest certain members in an eligible domain, counted when a host needs it.
    fewest: OnceCell<Option<u32>>,
}

impl<'w> Case<'w> {
    pub(crate) fn new(world: &'w World<'w>, vm: &'w Vm) -> Self {
        Self::between(world, world, vm)
    }

    /// A case while others are on the move: what the VM must be away from is looked up in `world`,
    /// which has all that may be, and what it must be near to in `sure`, where only that is which
    /// is certain.
    pub(crate) fn between(world: &'w World<'w>, sure: &'w World<'w>, vm: &'w Vm) -> Self {
        let by_rule = |kind, world: &'w World<'w>| {
            required(vm, kind)
                .map(|rule| (&rule.subject, &rule.level))
                .map(|(subject, level)| (subject, level, world.neighbours(vm, subject, level)))
                .collect()
        };
        let mut spreads = Vec::new();
        for rule in vm.spreads.iter().filter(|spread| spread.strength == Strength::Required) {
            let subject = Subject::Group(rule.group.clone());
            let most = world.neighbours(vm, &subject, &rule.level);
            let sure = sure.neighbours(vm, &subject, &rule.level);
            spreads.push(Spreading { rule, most, sure, fewest: OnceCell::new() });
        }
        Self {
            world,
            vm,
            host_rules: host_rules(world, vm),
            together: by_rule(AffinityKind::Together, sure),
            apart: by_rule(AffinityKind::Apart, world),
            repelled: repelled(world, vm),
            spreads,
        }
    }

    /// Everything that keeps the VM off the host, in the order of the reasons.
    pub(crate) fn violations(&self, row: usize) -> Vec<ViolationKind> {
        let mut found = self.rules(row);
        self.room_beside(row, &Amounts::zero(), &mut found);
        self.inside(row, &mut found);
        found
    }

    /// The first thing that keeps the VM off the host.
    pub(crate) fn first_reason(&self, row: usize) -> Option<Reason> {
        self.violations(row).first().and_then(ViolationKind::reason)
    }

    /// As `violations`, without capacity.
    pub(crate) fn rules(&self, row: usize) -> Vec<ViolationKind> {
        let mut found = self.host_alone(row);
        self.neighbourhood(self.world.hosts[row], &mut found);
        found.extend(self.world.installed.violations(self.world, self.vm, row));
        found
    }

    /// The rules that look at nothing but the host: those which make a domain eligible.
    fn host_alone(&self, row: usize) -> Vec<ViolationKind> {
        let (vm, host) = (self.vm, self.world.hosts[row]);
        let mut found = Vec::new();
        if host.state != HostState::Available {
            found.push(ViolationKind::HostState { state: host.state });
        }
        if let Some(wanted) = &vm.pool
            && host.pool.as_ref() != Some(wanted)
        {
            found.push(ViolationKind::Pool { wanted: wanted.clone(), found: host.pool.clone() });
        }
        for selector in &vm.selectors {
            if !matches(selector, &host.labels) {
                let value = label(&host.labels, &selector.key).cloned();
                found.push(ViolationKind::Selector { wanted: selector.clone(), found: value });
            }
        }
        for taint in &host.taints {
            if !lets_through(taint, &vm.tolerations) {
                found.push(ViolationKind::Taint { taint: taint.clone() });
            }
        }
        for datastore in &vm.datastores {
            if !host.datastores.contains(datastore) {
                found.push(ViolationKind::Datastore { datastore: datastore.clone() });
            }
        }
        if vm.excluded_hosts.contains(&host.id) {
            found.push(ViolationKind::ExcludedHost);
        }
        for (rule, level, named) in &self.host_rules {
            let here = domain(host, level);
            let shared = here.is_some_and(|here| named.contains(here));
            if shared != (*rule == AffinityKind::Together) {
                let (level, domain) = ((*level).clone(), here.cloned());
                found.push(ViolationKind::HostAffinity { rule: *rule, level, domain });
            }
        }
        found.extend(self.world.installed.fences(vm, host));
        found
    }

    fn neighbourhood(&self, host: &Host, found: &mut Vec<ViolationKind>) {
        for (subject, level, neighbours) in &self.together {
            let here = domain(host, level);
            let first = neighbours.anywhere == 0 && belongs(self.vm, subject);
            let joined = here.is_some_and(|here| first || neighbours.within(here) > 0);
            if !joined {
                let (subject, level) = ((*subject).clone(), (*level).clone());
                let domain = here.cloned();
                found.push(ViolationKind::Affinity { subject, level, domain });
            }
        }
        for (subject, level, neighbours) in &self.apart {
            let Some(domain) = domain(host, level).cloned() else { continue };
            let members = neighbours.within(&domain);
            if members > 0 {
                let (subject, level) = ((*subject).clone(), (*level).clone());
                found.push(ViolationKind::AntiAffinity { subject, level, domain, members });
            }
        }
        for (subject, level, neighbours) in &self.repelled {
            let Some(domain) = domain(host, level).cloned() else { continue };
            let by = neighbours.within(&domain);
            if by > 0 {
                let (subject, level) = (subject.clone(), (*level).clone());
                found.push(ViolationKind::Repelled { subject, level, domain, by });
            }
        }
        for Spreading { rule: spread, most, sure, fewest } in &self.spreads {
            let here = domain(host, &spread.level);
            let members = here.map_or(0, |here| most.within(here));
            if here.is_some() && members < spread.max_skew {
                continue; // even if some domain is empty
            }
            let fewest = fewest.get_or_init(|| self.fewest(&spread.level, sure));
            // A host that is not eligible itself still has a domain to compare with.
            let fewest = fewest.map_or(members, |fewest| fewest.min(members));
            if here.is_none() || members + 1 - fewest > spread.max_skew {
                found.push(ViolationKind::Spread {
                    group: spread.group.clone(),
                    level: spread.level.clone(),
                    domain: here.cloned(),
                    members,
                    fewest,
                    max_skew: spread.max_skew,
                });
            }
        }
    }

    /// Whether there is room, where `own` of what is committed is the VM's already.
    pub(crate) fn room_beside(&self, row: usize, own: &Amounts, found: &mut Vec<ViolationKind>) {
        let host = self.world.hosts[row];
        for (dimension, asked) in demand_on(host, self.vm).iter() {
            let committed = self.world.committed(row).get(dimension);
            let committed = committed.saturating_sub(own.get(dimension));
            let taken = committed.saturating_add(host.foreign.used.get(dimension));
            let allocatable = self.world.allocatable(row, dimension);
            let mut free = allocatable.saturating_sub(taken);
            if self.vm.qos == Qos::Guaranteed {
                let guaranteed = self.world.guaranteed(row).get(dimension);
                let guaranteed = guaranteed.saturating_sub(own.get(dimension));
                free = free.min(physical(host, dimension).saturating_sub(guaranteed));
            }
            if asked > free {
                found.push(ViolationKind::Capacity { dimension, asked, free, allocatable });
            }
        }
    }

    /// The parts that the VM asks for.
    fn inside(&self, row: usize, found: &mut Vec<ViolationKind>) {
        let Some(request) = self.vm.topology.as_deref() else { return };
        let host = self.world.hosts[row];
        let overcommit = cpu_overcommit_permille(host);
        let holders = &self.world.holders[row];
        let demand = demand_on(host, self.vm);
        if let Some(reason) = lacking(&host.hardware, overcommit, holders, request, &demand) {
            found.push(ViolationKind::Inside { reason });
        }
    }

    /// Fewest members in any eligible domain; `None` when no domain is eligible.
    fn fewest(&self, level: &Level, neighbours: &Neighbours<'_>) -> Option<u32> {
        let hosts = self.world.hosts.iter().enumerate();
        let eligible = hosts.filter(|(row, _)| self.host_alone(*row).is_empty());
        eligible
            .filter_map(|(_, host)| domain(host, level))
            .map(|domain| neighbours.within(domain))
            .min()
    }
}

fn host_rules<'w>(
    world: &World<'w>,
    vm: &'w Vm,
) -> Vec<(AffinityKind, &'w Level, BTreeSet<&'w Name>)> {
    let mut rules = Vec::new();
    for rule in &vm.affinities {
        let Subject::Hosts(names) = &rule.subject else { continue };
        if rule.strength != Strength::Required {
            continue;
        }
        let existing = names.iter().filter_map(|name| world.row(name));
        let named = existing.filter_map(|row| domain(world.hosts[row], &rule.level)).collect();
        rules.push((rule.kind, &rule.level, named));
    }
    rules
}

fn repelled<'w>(world: &'w World<'w>, vm: &Vm) -> Vec<(Subject, &'w Level, Neighbours<'w>)> {
    let mut found = Vec::new();
    let own = groups(vm).map(|group| Subject::Group(group.clone()));
    for subject in own.chain([Subject::Vm(vm.key.id.clone())]) {
        let Some(repellers) = world.repellers.get(&(&vm.key.tenant, &subject)) else { continue };
        let others = || repellers.iter().filter(|(key, _)| **key != vm.key);
        let levels: BTreeSet<&Level> = others().map(|(_, level)| *level).collect();
        for level in levels {
            let keys = others().filter(|(_, at)| *at == level).map(|(key, _)| *key);
            found.push((subject.clone(), level, world.count(keys, level)));
        }
    }
    found
}

fn belongs(vm: &Vm, subject: &Subject) -> bool {
    match subject {
        Subject::Vm(id) => *id == vm.key.id,
        Subject::Group(group) => groups(vm).any(|own| own == group),
        Subject::Hosts(_) => false,
    }
}
