//! Limits that clients install, and what the model makes of them.

use crate::model::{Home, Model};
use crate::shapes::{name, one_of};
use crate::violation::{Checked, Law, broken};
use cluster::{Constraint, ConstraintRule, Generation, Level, Limit, Name, Vm, VmSet};
use engine::{Outcome, Request};
use fixture::Dice;
use std::collections::BTreeMap;

/// Limits by name, and how often each was changed.
pub(crate) type Limits = BTreeMap<Name, (Limit, Generation)>;

/// Names to go round.
const NAMES: &[&str] = &["c0", "c1", "c2"];

/// Installs a limit, or removes one.
pub(crate) fn request(dice: &mut Dice) -> Request {
    let (name, if_generation) = (one_of(dice, NAMES), None);
    if dice.chance(300) {
        return Request::RemoveConstraint { name, if_generation };
    }
    // Two are always allowed: a limit of one may contradict VMs that are to be together.
    let max = dice.between(2, 4) as u32;
    let level = dice.pick(&[Level::Host, Level::Rack, Level::Zone]).clone();
    let rule = ConstraintRule::Limit(Limit { vms: vms(dice), level, max });
    Request::PutConstraint { constraint: Box::new(Constraint { name, rule }), if_generation }
}

fn vms(dice: &mut Dice) -> VmSet {
    let tenant = Some(name("default"));
    match dice.below(3) {
        0 => VmSet::default(),
        1 => VmSet { tenant, ..VmSet::default() },
        _ => VmSet { tenant, group: Some(one_of(dice, &["g0", "g1"])), labels: Vec::new() },
    }
}

impl Model {
    pub(crate) fn put_constraint(&mut self, constraint: &Constraint) -> Checked<Outcome> {
        let Constraint { name, rule: ConstraintRule::Limit(limit) } = constraint else {
            return broken(Law::Asked, format!("nobody asks for {constraint:?}"));
        };
        let before = self.limits.get(name).map(|(_, generation)| *generation);
        let generation = before.unwrap_or(Generation(0)).next();
        self.limits.insert(name.clone(), (limit.clone(), generation));
        let (created, warnings) = (before.is_none(), Vec::new());
        Ok(Outcome::Constraint { generation, created, warnings })
    }

    pub(crate) fn remove_constraint(&mut self, name: &Name) -> Checked<Outcome> {
        match self.limits.remove(name) {
            Some(_) => Ok(Outcome::ConstraintRemoved),
            None => broken(Law::Asked, format!("constraint {name} was removed and not there")),
        }
    }

    /// A limit that the VM would break on this host, itself not counted.
    pub(crate) fn limited_by(&self, vm: &Vm, home: &Home) -> Option<&Name> {
        let reached = |limit: &Limit| {
            let Some(domain) = home.host.domain(&limit.level) else { return false };
            let near = self.guests.values().filter(|guest| {
                let theirs = self.hosts.get(&guest.host);
                guest.vm.key != vm.key
                    && belongs(&guest.vm, &limit.vms)
                    && theirs.is_some_and(|it| it.host.domain(&limit.level) == Some(domain))
            });
            belongs(vm, &limit.vms) && near.count() >= limit.max as usize
        };
        self.limits.iter().find(|(_, (limit, _))| reached(limit)).map(|(name, _)| name)
    }
}

fn belongs(vm: &Vm, set: &VmSet) -> bool {
    let in_group = |group: &Name| {
        vm.groups.contains(group) || vm.spreads.iter().any(|spread| spread.group == *group)
    };
    set.tenant.as_ref().is_none_or(|tenant| *tenant == vm.key.tenant)
        && set.group.as_ref().is_none_or(in_group)
}
