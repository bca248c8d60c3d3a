//! The problem of VMs to come alone: those that run stay where they are.
//!
//! A VM that runs is a row only if a rule speaks of it and of an arrival at once; all others are use
//! of their hosts, so that the problem is as large as the batch and not as the fleet. An assignment
//! is one in which each arrival might have come last; what those that run demand of each other is
//! not asked again, so that what is broken already is in nobody's way.

use super::{Ask, Fleet, FleetError, Origin, build};
use cluster::assignment::Rule;
use cluster::{
    Affinity, AffinityKind, ConstraintRule, HostIx, Name, Placed, Snapshot, Strength, Subject, Vm,
    VmIx, VmSet,
};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// The problem of placing these VMs, without goals. Rows are those that run and matter to them, in
/// order, then the arrivals.
pub fn arrivals_only(snapshot: &Snapshot, arrivals: &[Arc<Vm>]) -> Result<Fleet, FleetError> {
    let ix: FxHashMap<&Name, HostIx> =
        (0..).zip(&snapshot.hosts).map(|(row, host)| (&host.id, HostIx(row))).collect();
    let neighbours = Neighbours::of(snapshot, arrivals);
    let (mut kept, mut folded) = (Vec::new(), Vec::new());
    for placed in &snapshot.placed {
        if neighbours.matter(&placed.vm) {
            kept.push(placed.clone());
            continue;
        }
        let Some(&host) = ix.get(&placed.host) else {
            return Err(FleetError::UnknownHost(placed.vm.key.clone(), placed.host.clone()));
        };
        folded.push((host, placed));
    }
    let near = Snapshot {
        revision: snapshot.revision,
        dimensions: snapshot.dimensions.clone(),
        hosts: snapshot.hosts.clone(),
        placed: kept,
        constraints: snapshot.constraints.clone(),
    };
    let ask = Ask { snapshot: &near, arrivals, stays: &|_| true, may_stay: true };
    let mut fleet = build(ask, Some(&folded))?;
    let first = near.placed.len() as u32;
    for_arrivals(&mut fleet, first);
    alone(&mut fleet, snapshot, arrivals, first, &folded);
    fleet.problem.check()?;
    Ok(fleet)
}

/// Which VMs that run a rule speaks of together with an arrival.
struct Neighbours<'a> {
    /// By tenant: groups and VMs that arrivals name in required rules.
    groups: FxHashSet<(&'a Name, &'a Name)>,
    vms: FxHashSet<(&'a Name, &'a Name)>,
    /// What arrivals are and belong to: VMs that run may keep away from it.
    own_groups: FxHashSet<(&'a Name, &'a Name)>,
    own: FxHashSet<(&'a Name, &'a Name)>,
    /// Sets of constraints that an arrival is bound by.
    sets: Vec<&'a VmSet>,
    parts: bool,
}

impl<'a> Neighbours<'a> {
    fn of(snapshot: &'a Snapshot, arrivals: &'a [Arc<Vm>]) -> Self {
        let mut found = Self {
            groups: FxHashSet::default(),
            vms: FxHashSet::default(),
            own_groups: FxHashSet::default(),
            own: FxHashSet::default(),
            sets: Vec::new(),
            parts: arrivals.iter().any(|vm| vm.topology.is_some()),
        };
        for vm in arrivals {
            let tenant = &vm.key.tenant;
            found.own.insert((tenant, &vm.key.id));
            found.own_groups.extend(groups(vm).map(|group| (tenant, group)));
            for rule in vm.affinities.iter().filter(|rule| rule.strength == Strength::Required) {
                match &rule.subject {
                    Subject::Vm(id) => drop(found.vms.insert((tenant, id))),
                    Subject::Group(group) => drop(found.groups.insert((tenant, group))),
                    Subject::Hosts(_) => {}
                }
            }
            for spread in vm.spreads.iter().filter(|rule| rule.strength == Strength::Required) {
                found.groups.insert((tenant, &spread.group));
            }
        }
        let any = |set: &VmSet| arrivals.iter().any(|vm| set.contains(vm));
        let rules = || snapshot.constraints.iter().map(|constraint| &constraint.rule);
        let networked = rules().any(|rule| match rule {
            ConstraintRule::Network(network) => any(&network.vms) || any(&network.to),
            _ => false,
        });
        for rule in rules() {
            match rule {
                ConstraintRule::MinDomains(rule) if any(&rule.vms) => found.sets.push(&rule.vms),
                ConstraintRule::Limit(rule) if any(&rule.vms) => found.sets.push(&rule.vms),
                ConstraintRule::Dependency(rule) if any(&rule.vms) => found.sets.push(&rule.on),
                ConstraintRule::Exclusive(rule) => found.sets.push(&rule.vms),
                // Links are shared by all pairs.
                ConstraintRule::Network(rule) if networked => {
                    found.sets.extend([&rule.vms, &rule.to]);
                }
                _ => {}
            }
        }
        found
    }

    fn matter(&self, vm: &Vm) -> bool {
        let tenant = &vm.key.tenant;
        let repels = |rule: &Affinity| {
            let away = rule.strength == Strength::Required && rule.kind == AffinityKind::Apart;
            away && match &rule.subject {
                Subject::Vm(id) => self.own.contains(&(tenant, id)),
                Subject::Group(group) => self.own_groups.contains(&(tenant, group)),
                Subject::Hosts(_) => false,
            }
        };
        groups(vm).any(|group| self.groups.contains(&(tenant, group)))
            || self.vms.contains(&(tenant, &vm.key.id))
            || vm.affinities.iter().any(repels)
            || self.sets.iter().any(|set| set.contains(vm))
            || self.parts && vm.topology.is_some()
    }
}

/// Groups that a VM belongs to.
fn groups(vm: &Vm) -> impl Iterator<Item = &Name> {
    vm.groups.iter().chain(vm.spreads.iter().map(|spread| &spread.group))
}

/// Leaves of every rule what it demands of arrivals, or of those that run for an arrival's sake.
fn for_arrivals(fleet: &mut Fleet, first: u32) {
    let problem = &mut fleet.problem;
    let is_new = |vm: &VmIx| vm.0 >= first;
    let halves: Vec<(Vec<VmIx>, Vec<VmIx>)> = problem
        .groups
        .iter()
        .map(|members| members.iter().copied().partition(|vm| is_new(vm)))
        .collect();
    let add = |members: &[VmIx], groups: &mut Vec<Vec<VmIx>>| {
        groups.push(members.to_vec());
        groups.len() as u32 - 1
    };
    let (mut rules, mut origins) = (Vec::new(), Vec::new());
    let old = std::mem::take(&mut problem.rules);
    for (rule, origin) in old.into_iter().zip(std::mem::take(&mut fleet.origins)) {
        let (new, running) = &halves[rule.subject().0 as usize];
        let mut made: Vec<Rule> = Vec::new();
        match rule {
            Rule::Away { from, scope, .. } => {
                if !new.is_empty() {
                    let group = add(new, &mut problem.groups);
                    made.push(Rule::Away { group, from, scope });
                }
                let others = &halves[from as usize].0;
                if !running.is_empty() && !others.is_empty() {
                    let group = add(running, &mut problem.groups);
                    let from = add(others, &mut problem.groups);
                    made.push(Rule::Away { group, from, scope });
                }
            }
            // What pairs put on links adds up, whoever came first.
            Rule::Network { .. } => {
                let touches = |group: &u32| !halves[*group as usize].0.is_empty();
                made.extend(rule.groups().iter().any(touches).then_some(rule));
            }
            _ if new.is_empty() => {}
            Rule::Dependency { needs, scope, .. } => {
                let group = add(new, &mut problem.groups);
                made.push(Rule::Dependency { group, needs, scope });
            }
            Rule::Beside { with, scope, .. } => {
                let group = add(new, &mut problem.groups);
                made.push(Rule::Beside { group, with, scope });
            }
            Rule::Skew { of, scope, most, among, .. } => {
                let group = add(new, &mut problem.groups);
                made.push(Rule::Skew { group, of, scope, most, among });
            }
            Rule::Spare { hosts, keep, .. } => {
                let group = add(new, &mut problem.groups);
                made.push(Rule::Spare { group, hosts, keep });
            }
            whole => made.push(whole),
        }
        origins.extend(made.iter().map(|_| origin.clone()));
        rules.extend(made);
    }
    (problem.rules, fleet.origins) = (rules, origins);
}

/// Arrivals that share hosts with nobody else keep off hosts that others use.
fn alone(
    fleet: &mut Fleet,
    snapshot: &Snapshot,
    arrivals: &[Arc<Vm>],
    first: u32,
    folded: &[(HostIx, &Placed)],
) {
    for constraint in &snapshot.constraints {
        let ConstraintRule::Exclusive(rule) = &constraint.rule else { continue };
        let rows = (first..).map(VmIx).zip(arrivals);
        let inside: Vec<VmIx> =
            rows.filter(|(_, vm)| rule.vms.contains(vm)).map(|(row, _)| row).collect();
        if inside.is_empty() {
            continue;
        }
        let taken: FxHashSet<HostIx> = folded.iter().map(|(host, _)| *host).collect();
        let hosts = (0..snapshot.hosts.len() as u32).map(HostIx);
        let hosts = hosts.filter(|host| !taken.contains(host)).collect();
        let problem = &mut fleet.problem;
        problem.groups.push(inside);
        problem.rules.push(Rule::Fence { group: problem.groups.len() as u32 - 1, hosts });
        fleet.origins.push(Origin::Constraint(constraint.name.clone()));
    }
}
