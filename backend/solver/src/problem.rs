//! The tables that placing reads, and how they follow hosts and VMs that come, change and go.
//!
//! Only patches here; what the tables mean is each table's own business.

use crate::constraints::installed::{Installed, Tables};
use crate::domains::{Domains, LevelIx};
use crate::fragmentation::{Losses, Mix, Wanted};
use crate::groups::{Groups, SubjectKey, SubjectKind};
use crate::hosts::Hosts;
use crate::inside::Inside;
use crate::place::Scratch;
use crate::policies::{Policies, PolicyColumns};
use crate::predicates::Predicates;
use crate::prices::Prices;
use crate::room::Room;
use crate::standing::Standings;
use crate::topology::{Clash, Devices, Unbound};
use cluster::{
    AffinityKind, Amounts, Bindings, Constraint, Dimensions, Foreign, Host, HostIx, Level, Name,
    Strength, Subject, Vm,
};
use policy::ActiveSet;
use smallvec::SmallVec;
use std::sync::Arc;

/// Every host and placed VM as dense tables by row, patched in place.
///
/// VM keys are unique among placed VMs; a VM that is being placed is not in the tables.
#[derive(Debug)]
pub struct Problem {
    pub(crate) hosts: Hosts,
    pub(crate) room: Room,
    pub(crate) domains: Domains,
    pub(crate) groups: Groups,
    pub(crate) predicates: Predicates,
    pub(crate) prices: Prices,
    pub(crate) standings: Standings,
    pub(crate) policies: Policies,
    pub(crate) installed: Installed,
    pub(crate) inside: Inside,
    pub(crate) losses: Losses,
    /// For `feasible`, which is given none.
    pub(crate) scratch: Scratch,
}

impl Problem {
    /// An empty fleet with this many resource dimensions.
    pub fn new(dimensions: usize) -> Self {
        Self {
            hosts: Hosts::default(),
            room: Room::new(dimensions),
            domains: Domains::default(),
            groups: Groups::default(),
            predicates: Predicates::default(),
            prices: Prices::default(),
            standings: Standings::default(),
            policies: Policies::default(),
            installed: Installed::default(),
            inside: Inside::default(),
            losses: Losses::default(),
            scratch: Scratch::default(),
        }
    }

    /// Adds dimensions, of which no host has anything yet. Dimensions never go away.
    pub fn set_dimensions(&mut self, dimensions: usize) {
        self.room.set_dimensions(dimensions);
    }

    /// Puts these policies in force for the requests that follow. Costs the whole fleet, whose
    /// hosts must be given once more: what policies read of them is not kept for others.
    pub fn set_policies<'a>(
        &mut self,
        policies: Arc<ActiveSet>,
        dimensions: &Dimensions,
        hosts: impl Iterator<Item = (HostIx, &'a Host)>,
    ) {
        self.install_policies(PolicyColumns::new(policies, dimensions), dimensions, hosts);
    }

    /// Puts policies in force whose columns were filled beside placing. Costs no more than the
    /// hosts that are `different` by now from what the columns say.
    pub fn install_policies<'a>(
        &mut self,
        columns: PolicyColumns,
        dimensions: &Dimensions,
        different: impl Iterator<Item = (HostIx, &'a Host)>,
    ) {
        self.policies.install(columns, dimensions);
        different.for_each(|(ix, host)| self.policies.put_host(ix, host));
    }

    /// Puts these constraints in force, and no others. Costs a pass over the fleet and its VMs,
    /// which must be given once more: what constraints read of them is not kept for others.
    pub fn set_constraints<'a>(
        &mut self,
        constraints: &[Arc<Constraint>],
        vms: impl Iterator<Item = (HostIx, &'a Vm)>,
    ) {
        let before = std::mem::take(&mut self.installed);
        let all = constraints.iter().map(Arc::as_ref);
        let mut installed = Installed::new(all, |level| self.level(level));
        installed.levels.iter().for_each(|level| self.domains.pin(*level));
        before.levels.iter().for_each(|level| self.domains.unpin(*level));
        let Self { hosts, domains, room, .. } = self;
        let tables = Tables { hosts, domains, room };
        hosts.iter().for_each(|(ix, host)| installed.put_host(ix, Some(host), &tables));
        vms.for_each(|(host, vm)| installed.add_vm(host, vm, &tables));
        self.installed = installed;
    }

    /// The mix of shapes that are to come, for those who are placed where least is lost. Costs the
    /// whole fleet when one of them is placed next.
    pub fn set_mix(&mut self, mix: Arc<Mix<Wanted>>) {
        self.losses.set_mix(mix);
    }

    /// How often a rule of a policy had no value on a host, over all requests so far.
    pub fn policy_errors(&self) -> u64 {
        self.policies.errors()
    }

    /// Inserts a host, or replaces what is known of it; what runs on it stays.
    pub fn put_host(&mut self, ix: HostIx, host: &Host) {
        self.hosts.put(ix, host);
        let (groups, installed) = (&mut self.groups, &mut self.installed);
        self.domains.put_host(ix, Some(host), |moved| {
            groups.move_host(ix, moved);
            installed.move_host(ix, moved);
        });
        self.predicates.put_host(ix, Some(host));
        self.prices.put(ix, Some(host.price.marginal_micros_per_hour()));
        self.room.put_host(ix, host);
        self.standings.note(ix);
        self.losses.note(ix);
        self.policies.put_host(ix, host);
        self.follow(|installed, tables| installed.put_host(ix, Some(host), tables));
        self.inside.put_host(ix, host);
    }

    /// Replaces what others use of a host, and nothing else of it.
    pub fn set_foreign(&mut self, ix: HostIx, foreign: &Foreign) {
        self.room.set_foreign(ix, foreign);
        self.standings.note(ix);
        self.losses.note(ix);
        self.policies.note(ix);
        self.follow(|installed, tables| installed.set_foreign(ix, tables));
    }

    /// Removes a host. It must carry no VM.
    pub fn remove_host(&mut self, ix: HostIx) {
        if self.hosts.remove(ix).is_none() {
            return;
        }
        debug_assert_eq!(self.room.own_vms(ix), 0, "a host that carries VMs was removed");
        self.domains.put_host(ix, None, |_| {});
        self.predicates.put_host(ix, None);
        self.prices.put(ix, None);
        self.room.remove_host(ix);
        self.inside.remove_host(ix);
        self.standings.note(ix);
        self.losses.note(ix);
        self.follow(|installed, tables| installed.put_host(ix, None, tables));
    }

    /// Puts a VM on a host, where it takes `committed`.
    pub fn add_vm(&mut self, host: HostIx, vm: &Vm, committed: &Amounts) {
        self.room.commit(host, committed, vm.qos, true);
        self.standings.note(host);
        self.losses.note(host);
        self.policies.note(host);
        self.groups.add_vm(&vm.key, host);
        for group in groups_of(vm) {
            let key = SubjectKey::new(&vm.key.tenant, SubjectKind::Group, group);
            self.groups.add_member(key, host, &self.domains);
        }
        for (key, level) in repelled_by(vm) {
            let level = self.level(level);
            self.domains.pin(level);
            self.groups.add_repeller(key, level, host, &self.domains);
        }
        self.follow(|installed, tables| installed.add_vm(host, vm, tables));
    }

    /// Takes a VM off a host and gives back what it was added with.
    pub fn remove_vm(&mut self, host: HostIx, vm: &Vm, committed: &Amounts) {
        self.room.commit(host, committed, vm.qos, false);
        self.standings.note(host);
        self.losses.note(host);
        self.policies.note(host);
        self.groups.remove_vm(&vm.key);
        for group in groups_of(vm) {
            let key = SubjectKey::new(&vm.key.tenant, SubjectKind::Group, group);
            self.groups.remove_member(&key, host, &self.domains);
        }
        for (key, level) in repelled_by(vm) {
            let level = self.level(level);
            self.groups.remove_repeller(&key, level, host, &self.domains);
            self.domains.unpin(level);
        }
        self.follow(|installed, tables| installed.remove_vm(host, vm, tables));
    }

    /// Lets installed constraints follow a change that every other table has in it.
    fn follow(&mut self, change: impl FnOnce(&mut Installed, &Tables<'_>)) {
        let Self { installed, hosts, domains, room, .. } = self;
        if !installed.is_empty() {
            change(installed, &Tables { hosts, domains, room });
        }
    }

    /// Takes parts of a host for a VM on it. Changes nothing if any of them is not free.
    pub fn take(&mut self, host: HostIx, bindings: &Arc<Bindings>) -> Result<(), Clash> {
        self.losses.note(host);
        self.inside.take(host, bindings)
    }

    /// Gives back what was taken. Changes nothing if any of it is free already.
    pub fn give_back(&mut self, host: HostIx, bindings: &Bindings) -> Result<(), Clash> {
        self.losses.note(host);
        self.inside.give_back(host, bindings)
    }

    /// What is free inside a host; nothing of hosts that list no parts.
    pub fn devices(&self, host: HostIx) -> &Devices {
        self.inside.devices(host)
    }

    /// The parts that a VM would get on a host, or the first thing that is missing there; `None`
    /// for VMs that ask for no parts. No other rule is asked.
    pub fn bind(&self, vm: &Vm, host: HostIx) -> Option<Result<Bindings, Box<Unbound>>> {
        self.inside.bind(vm, host)
    }

    /// The row of a level, making its table when it is a label that no rule named before.
    pub(crate) fn level(&mut self, level: &Level) -> LevelIx {
        let groups = &mut self.groups;
        self.domains.level(level, &self.hosts, |dropped| groups.untrack(dropped))
    }
}

/// The groups that a VM belongs to, each once.
pub(crate) fn groups_of(vm: &Vm) -> SmallVec<[&Name; 4]> {
    let mut groups = SmallVec::new();
    for group in vm.groups.iter().chain(vm.spreads.iter().map(|spread| &spread.group)) {
        if !groups.contains(&group) {
            groups.push(group);
        }
    }
    groups
}

/// The subjects that a placed VM keeps away, and at which level, each once.
fn repelled_by(vm: &Vm) -> SmallVec<[(SubjectKey, &Level); 2]> {
    let mut repelled = SmallVec::new();
    let required = vm
        .affinities
        .iter()
        .filter(|rule| rule.kind == AffinityKind::Apart && rule.strength == Strength::Required);
    for rule in required {
        let (kind, name) = match &rule.subject {
            Subject::Vm(id) => (SubjectKind::Vm, id),
            Subject::Group(group) => (SubjectKind::Group, group),
            Subject::Hosts(_) => continue,
        };
        let found = (SubjectKey::new(&vm.key.tenant, kind, name), &rule.level);
        if !repelled.contains(&found) {
            repelled.push(found);
        }
    }
    repelled
}
