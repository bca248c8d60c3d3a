//! What installed constraints say of a VM on a host.
//!
//! Each constraint is judged in a file of its own, from facts that either reading collects in
//! its own way: the ledger from its tallies, the plain reading from lists.

mod dependency;
mod exclusive;
mod fabric;
pub(crate) mod fence;
mod limit;
mod min_domains;
mod network;
mod spare;

use crate::ViolationKind;
use crate::reading::vm_in;
use cluster::{Amounts, Constraint, ConstraintRule, Dim, Level, Name, Spare, Vm};
use fabric::Fabric;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Which VMs of a constraint are counted: those of its first set only, of its second only, or of
/// both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    First,
    Second,
    Both,
}

/// A constraint's row among those in force.
pub(crate) type RuleRow = usize;

/// What a reading knows of the host that a VM is to go to, and of all other VMs.
pub(crate) trait Facts {
    /// The host's domain.
    fn domain(&self, level: &Level) -> Option<Name>;
    /// VMs on the host, those of others included.
    fn vms_on_host(&self) -> u32;
    /// VMs of a kind in the host's domain.
    fn near(&self, rule: RuleRow, kind: Kind, level: &Level) -> u32;
    /// How many domains have VMs of a kind, counted no further than `most`.
    fn covered(&self, rule: RuleRow, kind: Kind, level: &Level, most: u32) -> u32;
    /// VMs of a kind by domain; those in none are under `None`.
    fn everywhere(&self, rule: RuleRow, kind: Kind, level: &Level) -> ByDomain;
    /// The room of all hosts that keep spare room together with this one, if it does.
    fn scope(&self, spare: &Spare, dimension: Dim) -> Option<Scope>;
}

pub(crate) type ByDomain = BTreeMap<Option<Name>, u32>;

/// Room that is looked at together.
#[derive(Debug, Default)]
pub(crate) struct Scope {
    /// What each host can promise.
    pub(crate) allocatable: Vec<u64>,
    /// What is left on all of them.
    pub(crate) free: u64,
}

/// The constraints in force, ready to be held against VMs.
#[derive(Debug, Default)]
pub(crate) struct Rules {
    pub(crate) rows: Vec<Arc<Constraint>>,
    fabrics: BTreeMap<Name, Fabric>,
}

impl Rules {
    pub(crate) fn new(constraints: &[Arc<Constraint>]) -> Self {
        let fabric = |constraint: &Arc<Constraint>| match &constraint.rule {
            ConstraintRule::Links(links) => Some((constraint.name.clone(), Fabric::new(links))),
            _ => None,
        };
        Self {
            rows: constraints.to_vec(),
            fabrics: constraints.iter().filter_map(fabric).collect(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The level by which a constraint counts VMs.
    pub(crate) fn level(&self, rule: RuleRow) -> Option<&Level> {
        match &self.rows[rule].rule {
            ConstraintRule::Network(network) => {
                self.fabrics.get(&network.over).map(|fabric| &fabric.level)
            }
            other => other.level(),
        }
    }

    /// Everything but fences that keeps the VM, which takes `demand`, off the host: in the order
    /// of the reasons, then of the constraints' names.
    pub(crate) fn check(
        &self,
        vm: &Vm,
        demand: &Amounts,
        facts: &impl Facts,
    ) -> Vec<ViolationKind> {
        let mut found = Vec::new();
        for (row, name, rule) in self.each() {
            if let ConstraintRule::MinDomains(rule) = rule {
                found.extend(min_domains::check(row, name, rule, vm, facts));
            }
        }
        for (row, name, rule) in self.each() {
            if let ConstraintRule::Limit(rule) = rule {
                found.extend(limit::check(row, name, rule, vm, facts));
            }
        }
        for (row, name, rule) in self.each() {
            if let ConstraintRule::Exclusive(rule) = rule {
                found.extend(exclusive::check(row, name, rule, vm, facts));
            }
        }
        for (row, name, rule) in self.each() {
            if let ConstraintRule::Dependency(rule) = rule {
                found.extend(dependency::check(row, name, rule, vm, facts));
            }
        }
        for (name, fabric) in &self.fabrics {
            let over = self.each().filter_map(|(row, rule_name, rule)| match rule {
                ConstraintRule::Network(rule) if rule.over == *name => Some((row, rule_name, rule)),
                _ => None,
            });
            let over: Vec<_> = over.collect();
            network::check(&over, name, fabric, vm, facts, &mut found);
        }
        for (_, name, rule) in self.each() {
            if let ConstraintRule::Spare(rule) = rule {
                spare::check(name, rule, vm, demand, facts, &mut found);
            }
        }
        found
    }

    fn each(&self) -> impl Iterator<Item = (RuleRow, &Name, &ConstraintRule)> {
        self.rows.iter().enumerate().map(|(row, it)| (row, &it.name, &it.rule))
    }
}

/// Which kind of the constraint's VMs this one is, if any.
pub(crate) fn kind_of(rule: &ConstraintRule, vm: &Vm) -> Option<Kind> {
    let [first, second] = rule.vm_sets().map(|set| set.is_some_and(|set| vm_in(set, vm)));
    match (first, second) {
        (true, true) => Some(Kind::Both),
        (true, false) => Some(Kind::First),
        (false, true) => Some(Kind::Second),
        (false, false) => None,
    }
}
