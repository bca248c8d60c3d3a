//! What the model checks of placements: room, rules, and that a rejection was right.

use crate::model::{Home, Model, room, taken};
use crate::sometimes::Rare;
use crate::violation::{Checked, Law, broken, ensure};
use cluster::{
    Affinity, AffinityKind, Amounts, Name, Reason, Strength, Subject, TaintEffect, Verdict, Vm,
    VmKey,
};
use engine::Placing;

/// Whether a VM may go to a host, as far as the model can tell.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Fits {
    Yes,
    No(Law, String),
    /// It has rules whose meaning depends on the order of placing; those are left to `verify`.
    Unsure,
}

impl Model {
    /// No host promises more than it has, but for VMs that ran already and are flagged.
    pub(crate) fn check_capacity(&self) -> Checked {
        for (name, home) in &self.hosts {
            for dim in self.dimensions.iter() {
                let (used, room) = (self.used(name, dim), room(&home.host, dim));
                let flagged =
                    || self.on(name).any(|(_, vm)| vm.over_capacity && vm.committed.get(dim) > 0);
                ensure(used <= room || flagged(), Law::Capacity, || {
                    format!("{name} has {room} of dimension {} and promises {used}", dim.0)
                })?;
            }
        }
        Ok(())
    }

    /// Whether a host is over its room in a dimension of `committed`, which is counted already.
    pub(crate) fn exceeds(&self, host: &Name, committed: &Amounts) -> bool {
        let Some(home) = self.hosts.get(host) else { return false };
        committed.iter().any(|(dim, _)| self.used(host, dim) > room(&home.host, dim))
    }

    pub(crate) fn check_committed(&self, vm: &VmKey) -> Checked {
        let Some(guest) = self.guests.get(vm) else { return Ok(()) };
        let Some(home) = self.hosts.get(&guest.host) else { return Ok(()) };
        for dim in self.dimensions.iter() {
            let (due, written) = (taken(&guest.vm, &home.host, dim), guest.committed.get(dim));
            ensure(due == u128::from(written), Law::Sums, || {
                format!("{vm} takes {due} of dimension {}, {written} is written down", dim.0)
            })?;
        }
        Ok(())
    }

    /// What a decision says of itself and of the cluster it was made on.
    pub(crate) fn check_decision(&mut self, placing: &Placing) -> Checked {
        let decision = &placing.decision;
        let every_host = decision.hosts_considered as usize == self.hosts.len();
        let sound = decision.vm == placing.vm.key
            && decision.based_on.0 + 1 == self.revision
            && decision.policy_revision == self.policy.revision
            && (every_host || placing.pinned.is_some());
        ensure(sound, Law::Honest, || {
            format!("the decision on {} contradicts the log: {decision:?}", placing.vm.key)
        })?;
        let repelled = |(reason, _): &(Reason, u32)| *reason == Reason::AntiAffinity;
        let limited = |(reason, _): &(Reason, u32)| *reason == Reason::Limit;
        self.reached.hit_if(Rare::LimitBound, decision.rejections.0.iter().any(limited));
        self.reached.hit_if(Rare::AntiAffinityBound, decision.rejections.0.iter().any(repelled));
        match &decision.verdict {
            Verdict::Rejected => {
                self.reached.hit_if(Rare::PinnedRejected, placing.pinned.is_some());
                self.reached.hit_if(Rare::NoRoom, placing.pinned.is_none());
                let pinned = placing.pinned.as_ref();
                self.reached.hit_if(
                    Rare::ForeignBound,
                    pinned.is_some_and(|host| {
                        self.dimensions.iter().any(|dim| {
                            let Some(home) = self.hosts.get(host) else { return false };
                            let others = self.foreign(host, dim);
                            let ours = self.used(host, dim) + taken(&placing.vm, &home.host, dim);
                            others > 0
                                && ours <= room(&home.host, dim)
                                && ours + others > room(&home.host, dim)
                        })
                    }),
                );
                ensure(placing.hold.is_none(), Law::Reservations, || {
                    format!("{} was rejected and holds a reservation", placing.vm.key)
                })
            }
            Verdict::Placed { host, incarnation, .. } => {
                let known = self.hosts.get(host).map(|home| home.host.incarnation);
                ensure(known == Some(*incarnation), Law::Honest, || {
                    format!("{host} is {known:?}, the decision speaks of {incarnation}")
                })
            }
        }
    }

    /// The VM is counted already; is it where it may be?
    pub(crate) fn check_placed(&self, vm: &VmKey, host: &Name) -> Checked {
        let (Some(guest), Some(home)) = (self.guests.get(vm), self.hosts.get(host)) else {
            return broken(Law::OnePlace, format!("{vm} was placed on {host} and is not there"));
        };
        match self.fits(&guest.vm, home) {
            Fits::No(law, why) => broken(law, format!("{vm} was placed on {host}: {why}")),
            Fits::Yes | Fits::Unsure => self.check_parts(host),
        }
    }

    /// "No host fits" must be so.
    pub(crate) fn check_rejected_rightly(&self, placing: &Placing) -> Checked {
        if placing.decision.host().is_some() {
            return Ok(());
        }
        for (name, home) in &self.hosts {
            let asked = placing.pinned.as_ref().is_none_or(|pinned| pinned == name)
                && (placing.among.is_empty() || placing.among.contains(name));
            if asked && self.fits(&placing.vm, home) == Fits::Yes {
                let vm = &placing.vm.key;
                return broken(Law::Progress, format!("{vm} was rejected, but {name} can take it"));
            }
        }
        Ok(())
    }

    /// Tries the rules for `vm` on `home`; if it is there already, it is not counted twice.
    fn fits(&self, vm: &Vm, home: &Home) -> Fits {
        let host = &home.host;
        let no = |why: &str| Fits::No(Law::Rules, why.to_owned());
        if !home.takes_vms() {
            return no("it takes no VMs");
        }
        if vm.pool.as_ref().is_some_and(|pool| host.pool.as_ref() != Some(pool)) {
            return no("it is of another pool");
        }
        if !vm.selectors.iter().all(|selector| selector.matches(&host.labels)) {
            return no("a selector does not match");
        }
        let untolerated = host.taints.iter().any(|taint| {
            taint.effect != TaintEffect::PreferNoSchedule
                && !vm.tolerations.iter().any(|toleration| toleration.tolerates(taint))
        });
        if untolerated {
            return no("a taint is not tolerated");
        }
        if vm.excluded_hosts.contains(&host.id) {
            return no("the VM excludes it");
        }
        if let Some(other) = self.repelled_by(vm, home) {
            return no(&format!("it has to be apart from {other}"));
        }
        if let Some(limit) = self.limited_by(vm, home) {
            return no(&format!("{limit} allows no more"));
        }
        for dim in self.dimensions.iter() {
            let asked = taken(vm, host, dim);
            let others = self.on(&host.id).filter(|(key, _)| **key != vm.key);
            let others: u128 = others.map(|(_, it)| u128::from(it.committed.get(dim))).sum();
            let (room, foreign) = (room(host, dim), self.foreign(&host.id, dim));
            let others = others + foreign;
            if asked > 0 && others + asked > room {
                let what = format!("{others} and {asked} of dimension {} are over {room}", dim.0);
                return Fits::No(Law::Capacity, what);
            }
        }
        let required = |rule: &Affinity| {
            rule.strength == Strength::Required
                && (rule.kind == AffinityKind::Together
                    || matches!(rule.subject, Subject::Hosts(_)))
        };
        let spread = vm.spreads.iter().any(|spread| spread.strength == Strength::Required);
        if spread
            || vm.topology.is_some()
            || vm.affinities.iter().any(required)
            || !vm.datastores.is_empty()
        {
            return Fits::Unsure;
        }
        Fits::Yes
    }

    /// A VM in whose domain this one may not be, in either direction.
    fn repelled_by(&self, vm: &Vm, home: &Home) -> Option<&VmKey> {
        let neighbours = self.guests.iter().filter(|(key, _)| **key != vm.key);
        let mut neighbours = neighbours.filter_map(|(key, guest)| {
            self.hosts.get(&guest.host).map(|other| (key, guest.vm.as_ref(), other))
        });
        neighbours.find_map(|(key, other, their_home)| {
            let apart = |from: &Vm, to: &Vm| {
                from.key.tenant == to.key.tenant
                    && from.affinities.iter().any(|rule| {
                        rule.kind == AffinityKind::Apart
                            && rule.strength == Strength::Required
                            && belongs(to, &rule.subject)
                            && same_domain(rule, home, their_home)
                    })
            };
            (apart(vm, other) || apart(other, vm)).then_some(key)
        })
    }
}

fn same_domain(rule: &Affinity, one: &Home, other: &Home) -> bool {
    let domain = one.host.domain(&rule.level);
    domain.is_some() && domain == other.host.domain(&rule.level)
}

fn belongs(vm: &Vm, subject: &Subject) -> bool {
    match subject {
        Subject::Vm(id) => vm.key.id == *id,
        Subject::Group(group) => {
            vm.groups.contains(group) || vm.spreads.iter().any(|spread| spread.group == *group)
        }
        Subject::Hosts(_) => false,
    }
}
