//! Who is where: members of groups by host and by domain, and whom placed VMs keep away.
//!
//! Rules speak of groups and of single VMs, both within a tenant. A group's members by host are
//! always kept; members by domain of a level are kept from the first rule that asks for them.
//! Repellers are placed VMs with a required `Apart` rule, filed under the subject that they keep
//! away, so that a newcomer finds them by the subjects that it belongs to.

use crate::domains::{Domains, LevelIx, Moved};
use crate::tally::Tally;
use cluster::{HostIx, Name, Shards, Subject, VmKey};
use smallvec::SmallVec;

/// A group's row; good while the group has members or repellers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GroupIx(u32);

/// A subject of rules within a tenant.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SubjectKey {
    tenant: Name,
    kind: SubjectKind,
    name: Name,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum SubjectKind {
    Group,
    Vm,
}

impl SubjectKey {
    pub(crate) fn new(tenant: &Name, kind: SubjectKind, name: &Name) -> Self {
        Self { tenant: tenant.clone(), kind, name: name.clone() }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Groups {
    /// Every placed VM.
    vms: Shards<VmKey, HostIx>,
    by_key: Shards<SubjectKey, GroupIx>,
    groups: Vec<Group>,
    free: Vec<GroupIx>,
}

#[derive(Debug, Default)]
struct Group {
    key: Option<SubjectKey>,
    by_host: Tally,
    by_domain: SmallVec<[(LevelIx, Tally); 2]>,
    repellers: SmallVec<[Repellers; 1]>,
}

/// The VMs that keep a group's members away at one level.
#[derive(Debug)]
pub(crate) struct Repellers {
    pub(crate) level: LevelIx,
    by_host: Tally,
    pub(crate) by_domain: Tally,
}

impl Groups {
    pub(crate) fn find(&self, key: &SubjectKey) -> Option<GroupIx> {
        self.by_key.get(key).copied()
    }

    /// What a group's row stands for, as rules name it.
    pub(crate) fn subject(&self, group: GroupIx) -> Subject {
        match &self.group(group).key {
            Some(SubjectKey { kind: SubjectKind::Vm, name, .. }) => Subject::Vm(name.clone()),
            Some(SubjectKey { name, .. }) => Subject::Group(name.clone()),
            None => Subject::Hosts(Vec::new()),
        }
    }

    pub(crate) fn host_of(&self, vm: &VmKey) -> Option<HostIx> {
        self.vms.get(vm).copied()
    }

    pub(crate) fn has_members(&self, group: GroupIx) -> bool {
        !self.group(group).by_host.is_empty()
    }

    /// Members by domain; the level must have been tracked.
    pub(crate) fn members(&self, group: GroupIx, level: LevelIx) -> &Tally {
        let group = self.group(group);
        if level == LevelIx::HOST {
            return &group.by_host;
        }
        let tracked = group.by_domain.iter().find(|(tracked, _)| *tracked == level);
        tracked.map_or(Tally::EMPTY, |(_, tally)| tally)
    }

    pub(crate) fn repellers(&self, group: GroupIx) -> &[Repellers] {
        &self.group(group).repellers
    }

    /// Keeps members by domain of `level` from now on.
    pub(crate) fn track(&mut self, group: GroupIx, level: LevelIx, domains: &Domains) {
        let group = &mut self.groups[group.0 as usize];
        if level == LevelIx::HOST || group.by_domain.iter().any(|(known, _)| *known == level) {
            return;
        }
        let mut tally = Tally::default();
        for (host, count) in group.by_host.iter() {
            if let Some(domain) = domains.of(level, HostIx(host)) {
                tally.add(domain, count);
            }
        }
        group.by_domain.push((level, tally));
    }

    /// Forgets a level that was dropped. No repeller can be at it: those pin their level.
    pub(crate) fn untrack(&mut self, level: LevelIx) {
        for group in &mut self.groups {
            group.by_domain.retain(|(tracked, _)| *tracked != level);
        }
    }

    pub(crate) fn add_vm(&mut self, vm: &VmKey, host: HostIx) {
        self.vms.insert(vm.clone(), host);
    }

    pub(crate) fn remove_vm(&mut self, vm: &VmKey) {
        self.vms.remove(vm);
    }

    pub(crate) fn add_member(&mut self, key: SubjectKey, host: HostIx, domains: &Domains) {
        let ix = self.make(key);
        let group = &mut self.groups[ix.0 as usize];
        group.by_host.add(host.0, 1);
        for (level, tally) in &mut group.by_domain {
            if let Some(domain) = domains.of(*level, host) {
                tally.add(domain, 1);
            }
        }
    }

    pub(crate) fn remove_member(&mut self, key: &SubjectKey, host: HostIx, domains: &Domains) {
        let Some(ix) = self.find(key) else { return };
        let group = &mut self.groups[ix.0 as usize];
        group.by_host.sub(host.0, 1);
        for (level, tally) in &mut group.by_domain {
            if let Some(domain) = domains.of(*level, host) {
                tally.sub(domain, 1);
            }
        }
        self.free_if_empty(ix);
    }

    pub(crate) fn add_repeller(
        &mut self,
        key: SubjectKey,
        level: LevelIx,
        host: HostIx,
        domains: &Domains,
    ) {
        let ix = self.make(key);
        let all = &mut self.groups[ix.0 as usize].repellers;
        let row = all.iter().position(|known| known.level == level).unwrap_or_else(|| {
            let (by_host, by_domain) = Default::default();
            all.push(Repellers { level, by_host, by_domain });
            all.len() - 1
        });
        all[row].by_host.add(host.0, 1);
        if let Some(domain) = domains.of(level, host) {
            all[row].by_domain.add(domain, 1);
        }
    }

    pub(crate) fn remove_repeller(
        &mut self,
        key: &SubjectKey,
        level: LevelIx,
        host: HostIx,
        domains: &Domains,
    ) {
        let Some(ix) = self.find(key) else { return };
        let all = &mut self.groups[ix.0 as usize].repellers;
        if let Some(row) = all.iter().position(|known| known.level == level) {
            all[row].by_host.sub(host.0, 1);
            if let Some(domain) = domains.of(level, host) {
                all[row].by_domain.sub(domain, 1);
            }
            if all[row].by_host.is_empty() {
                all.remove(row);
            }
        }
        self.free_if_empty(ix);
    }

    /// Takes the counts of everything on the host along to its new domain.
    ///
    /// Walks all groups: hosts that carry VMs rarely change their rack.
    pub(crate) fn move_host(&mut self, host: HostIx, moved: Moved) {
        let Moved { level, from, to } = moved;
        let shift = |tally: &mut Tally, count: u32| {
            from.inspect(|&from| tally.sub(from, count));
            to.inspect(|&to| tally.add(to, count));
        };
        for group in &mut self.groups {
            let members = group.by_host.get(host.0);
            let tracked = group.by_domain.iter_mut().find(|(tracked, _)| *tracked == level);
            if members > 0
                && let Some((_, tally)) = tracked
            {
                shift(tally, members);
            }
            for repellers in group.repellers.iter_mut().filter(|known| known.level == level) {
                let count = repellers.by_host.get(host.0);
                if count > 0 {
                    shift(&mut repellers.by_domain, count);
                }
            }
        }
    }

    fn group(&self, group: GroupIx) -> &Group {
        &self.groups[group.0 as usize]
    }

    fn make(&mut self, key: SubjectKey) -> GroupIx {
        if let Some(found) = self.find(&key) {
            return found;
        }
        let ix = self.free.pop().unwrap_or_else(|| {
            self.groups.push(Group::default());
            GroupIx(self.groups.len() as u32 - 1)
        });
        self.groups[ix.0 as usize].key = Some(key.clone());
        self.by_key.insert(key, ix);
        ix
    }

    fn free_if_empty(&mut self, ix: GroupIx) {
        let group = &mut self.groups[ix.0 as usize];
        if group.by_host.is_empty() && group.repellers.is_empty() {
            if let Some(key) = std::mem::take(group).key {
                self.by_key.remove(&key);
            }
            self.free.push(ix);
        }
    }
}
