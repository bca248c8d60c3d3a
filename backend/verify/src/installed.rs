//! The plain reading's lists of VMs that installed constraints speak of, and its facts from them.

use crate::ViolationKind;
use crate::reading::{demand_on, domain, host_in};
use crate::rules::{ByDomain, Facts, Kind, RuleRow, Rules, Scope, fence, kind_of};
use crate::world::World;
use cluster::{
    Amounts, Constraint, ConstraintRule, Dim, Host, HostSet, HostState, Level, Name, Spare, Vm,
    VmKey,
};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

/// The constraints in force, and where the VMs of each are.
#[derive(Debug, Default)]
pub(crate) struct Installed<'a> {
    rules: Rules,
    /// By constraint and kind: VMs by domain of the constraint's level.
    by_domain: Vec<[ByDomain; 3]>,
    /// By constraint and kind: VMs by host.
    by_host: Vec<[BTreeMap<&'a Name, u32>; 3]>,
    /// Every VM, and where it is: on two hosts while it moves.
    placed: BTreeMap<&'a VmKey, Vec<Seat<'a>>>,
    vms_on: BTreeMap<&'a Name, u32>,
}

/// A VM on a host, and what it takes there.
#[derive(Debug)]
struct Seat<'a> {
    vm: &'a Vm,
    host: &'a Host,
    committed: Amounts,
}

impl<'a> Installed<'a> {
    pub(crate) fn new(constraints: &[Arc<Constraint>]) -> Self {
        let rules = Rules::new(constraints);
        let by_domain = rules.rows.iter().map(|_| Default::default()).collect();
        let by_host = rules.rows.iter().map(|_| Default::default()).collect();
        Self { rules, by_domain, by_host, placed: BTreeMap::new(), vms_on: BTreeMap::new() }
    }

    pub(crate) fn count(&mut self, vm: &'a Vm, host: &'a Host, committed: &Amounts) {
        if self.rules.is_empty() {
            return;
        }
        let seat = Seat { vm, host, committed: committed.clone() };
        self.placed.entry(&vm.key).or_default().push(seat);
        self.tell(vm, host, |count| *count += 1);
    }

    pub(crate) fn uncount(&mut self, vm: &'a Vm, host: &'a Host) {
        let Some(seats) = self.placed.get_mut(&vm.key) else { return };
        let Some(row) = seats.iter().position(|seat| seat.host.id == host.id) else { return };
        seats.remove(row);
        self.tell(vm, host, |count| *count -= 1);
    }

    /// Changes the counts that a VM on a host is in; those that come to nothing are forgotten.
    fn tell(&mut self, vm: &Vm, host: &'a Host, change: impl Fn(&mut u32)) {
        bump(&mut self.vms_on, &host.id, &change);
        for (row, constraint) in self.rules.rows.iter().enumerate() {
            let Some(kind) = kind_of(&constraint.rule, vm) else { continue };
            bump(&mut self.by_host[row][kind as usize], &host.id, &change);
            if let Some(level) = self.rules.level(row) {
                let place = domain(host, level).cloned();
                bump(&mut self.by_domain[row][kind as usize], place, &change);
            }
        }
    }

    /// The fences that the VM would be on the wrong side of.
    pub(crate) fn fences(&self, vm: &Vm, host: &Host) -> Vec<ViolationKind> {
        let mut found = Vec::new();
        for constraint in &self.rules.rows {
            let ConstraintRule::Fence(rule) = &constraint.rule else { continue };
            if let Some(inside) = fence::side(rule, vm)
                && in_set(&rule.hosts, host) != inside
            {
                found.push(fence::violation(&constraint.name, inside));
            }
        }
        found
    }

    /// Everything else that keeps the VM off the host.
    pub(crate) fn violations(&self, world: &World<'_>, vm: &Vm, row: usize) -> Vec<ViolationKind> {
        if self.rules.is_empty() {
            return Vec::new();
        }
        let own = self.placed.get(&vm.key).map_or(&[][..], Vec::as_slice);
        let at = At { installed: self, world, host: world.hosts[row], own };
        self.rules.check(vm, &demand_on(world.hosts[row], vm), &at)
    }
}

/// The facts about one host, without the VM itself if it is placed.
struct At<'w, 'a> {
    installed: &'w Installed<'a>,
    world: &'w World<'w>,
    host: &'w Host,
    own: &'w [Seat<'a>],
}

impl At<'_, '_> {
    /// Where the VM itself is, if it is counted under this kind.
    fn counted(&self, rule: RuleRow, kind: Kind) -> impl Iterator<Item = &Host> {
        let rule = &self.installed.rules.rows[rule].rule;
        let counted = self.own.iter().filter(move |seat| kind_of(rule, seat.vm) == Some(kind));
        counted.map(|seat| seat.host)
    }
}

impl Facts for At<'_, '_> {
    fn domain(&self, level: &Level) -> Option<Name> {
        domain(self.host, level).cloned()
    }

    fn vms_on_host(&self) -> u32 {
        let own = self.own.iter().any(|seat| seat.host.id == self.host.id);
        let ours = self.installed.vms_on.get(&self.host.id).copied().unwrap_or(0);
        (ours - u32::from(own)).saturating_add(self.host.foreign.vms)
    }

    fn near(&self, rule: RuleRow, kind: Kind, level: &Level) -> u32 {
        if *level == Level::Host {
            let own = self.counted(rule, kind).any(|host| host.id == self.host.id);
            let by_host = &self.installed.by_host[rule][kind as usize];
            return by_host.get(&self.host.id).copied().unwrap_or(0) - u32::from(own);
        }
        match domain(self.host, level) {
            Some(here) => {
                self.everywhere(rule, kind, level).get(&Some(here.clone())).copied().unwrap_or(0)
            }
            None => 0,
        }
    }

    fn covered(&self, rule: RuleRow, kind: Kind, level: &Level, most: u32) -> u32 {
        let covered = self.everywhere(rule, kind, level);
        most.min(covered.keys().flatten().count() as u32)
    }

    fn everywhere(&self, rule: RuleRow, kind: Kind, level: &Level) -> ByDomain {
        let mut counts = self.installed.by_domain[rule][kind as usize].clone();
        for host in self.counted(rule, kind) {
            bump(&mut counts, domain(host, level).cloned(), &|count| *count -= 1);
        }
        counts
    }

    fn scope(&self, spare: &Spare, dimension: Dim) -> Option<Scope> {
        let place = |host: &Host| match &spare.each {
            None => Some(None),
            Some(level) => domain(host, level).cloned().map(Some),
        };
        let counts = |host: &Host| host.state == HostState::Available && in_set(&spare.hosts, host);
        let here = place(self.host).filter(|_| counts(self.host))?;
        let mut scope = Scope::default();
        for (row, host) in self.world.hosts.iter().enumerate() {
            if place(host).as_ref() != Some(&here) || !counts(host) {
                continue;
            }
            let allocatable = self.world.allocatable(row, dimension);
            let own = self.own.iter().find(|seat| seat.host.id == host.id);
            let own = own.map_or(0, |seat| seat.committed.get(dimension));
            let committed = self.world.committed(row).get(dimension).saturating_sub(own);
            let taken = committed.saturating_add(host.foreign.used.get(dimension));
            scope.allocatable.push(allocatable);
            scope.free = scope.free.saturating_add(allocatable.saturating_sub(taken));
        }
        Some(scope)
    }
}

fn in_set(set: &HostSet, host: &Host) -> bool {
    host_in(set, host.pool.as_ref(), &host.labels, |level| domain(host, level).cloned())
}

fn bump<K: Ord>(counts: &mut BTreeMap<K, u32>, key: K, change: &impl Fn(&mut u32)) {
    match counts.entry(key) {
        Entry::Vacant(vacant) => change(vacant.insert(0)),
        Entry::Occupied(mut occupied) => {
            change(occupied.get_mut());
            if *occupied.get() == 0 {
                occupied.remove();
            }
        }
    }
}
