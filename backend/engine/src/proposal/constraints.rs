//! Constraints that are put in force or removed: checked, and held against each other, before.

use super::{Proposal, check_generation};
use crate::check;
use crate::command::Command;
use crate::core::Core;
use crate::request::{Outcome, Refusal};
use crate::state::State;
use cluster::{
    AffinityKind, Constraint, ConstraintRule, Generation, Host, MAX_CONSTRAINTS, Name, Strength,
    Subject, Vm,
};
use solver::{CarriedTogether, Findings};
use std::collections::BTreeMap;
use std::sync::Arc;

impl Core {
    pub(super) fn propose_put_constraint(
        &self,
        constraint: &Constraint,
        if_generation: Option<Generation>,
    ) -> Result<Proposal, Refusal> {
        let Constraint { name, rule } = constraint;
        check::constraint(rule)?;
        let known = self.state.find_constraint(name);
        let generation = known.map_or(Generation(0), |entry| entry.generation);
        check_generation(if_generation, generation)?;
        if known.is_none() && self.state.constraints().len() >= MAX_CONSTRAINTS {
            let problem = format!("is one more than the {MAX_CONSTRAINTS} that a cluster may have");
            return Err(check::invalid("name", &problem));
        }
        self.check_fabric(constraint)?;
        let Findings { contradiction, warnings } = self.held_against_others(constraint);
        if let Some(found) = contradiction {
            return Err(Refusal::Contradiction { between: found.between, why: found.why });
        }
        if known.is_some_and(|entry| *entry.constraint == *constraint) {
            return Proposal::nothing(Outcome::Constraint { generation, created: false, warnings });
        }
        let (generation, created) = (generation.next(), known.is_none());
        let outcome = Outcome::Constraint { generation, created, warnings };
        Proposal::change(Command::PutConstraint(Box::new(constraint.clone())), outcome)
    }

    pub(super) fn propose_remove_constraint(
        &self,
        name: &Name,
        if_generation: Option<Generation>,
    ) -> Result<Proposal, Refusal> {
        let Some(entry) = self.state.find_constraint(name) else {
            return Err(Refusal::UnknownConstraint(name.clone()));
        };
        check_generation(if_generation, entry.generation)?;
        self.check_unused(name)?;
        Proposal::change(
            Command::RemoveConstraint { name: name.clone() },
            Outcome::ConstraintRemoved,
        )
    }

    /// What a network constraint is over must be links, and stays links while it is used.
    fn check_fabric(&self, constraint: &Constraint) -> Result<(), Refusal> {
        if !matches!(constraint.rule, ConstraintRule::Links(_)) {
            self.check_unused(&constraint.name)?;
        }
        let ConstraintRule::Network(network) = &constraint.rule else { return Ok(()) };
        let over = self.state.find_constraint(&network.over);
        if over.is_some_and(|it| matches!(it.constraint.rule, ConstraintRule::Links(_))) {
            return Ok(());
        }
        let problem = format!(
            "names {}, which is no constraint of type links; install it first",
            network.over
        );
        Err(check::invalid("over", &problem))
    }

    fn check_unused(&self, name: &Name) -> Result<(), Refusal> {
        let by = self.state.constraints().filter(|entry| match &entry.constraint.rule {
            ConstraintRule::Network(network) => network.over == *name,
            _ => false,
        });
        let by: Vec<Name> = by.map(|entry| entry.constraint.name.clone()).collect();
        if by.is_empty() {
            Ok(())
        } else {
            Err(Refusal::ConstraintInUse { name: name.clone(), by })
        }
    }

    fn held_against_others(&self, constraint: &Constraint) -> Findings {
        let others = self.state.constraints().map(|entry| entry.constraint.as_ref());
        let mut all: Vec<&Constraint> =
            others.filter(|other| other.name != constraint.name).chain([constraint]).collect();
        all.sort_by(|one, other| one.name.cmp(&other.name));
        let hosts: Vec<&Host> = self.state.hosts().map(|(_, entry)| entry.host.as_ref()).collect();
        solver::contradictions(&all, &carried(&self.state), &hosts, &constraint.name)
    }
}

/// The rules of placed VMs to be together with their own group, each once.
fn carried(state: &State) -> Vec<CarriedTogether> {
    let mut found = BTreeMap::new();
    for vm in state.vms().map(|(_, entry)| &entry.vm) {
        for rule in &vm.affinities {
            let Subject::Group(group) = &rule.subject else { continue };
            let required = rule.strength == Strength::Required;
            if rule.kind == AffinityKind::Together && required && belongs(vm, group) {
                let key = (vm.key.tenant.clone(), group.clone(), rule.level.clone());
                found.entry(key).or_insert_with(|| vm.key.clone());
            }
        }
    }
    let carried = |((tenant, group, level), vm)| CarriedTogether { tenant, group, level, vm };
    found.into_iter().map(carried).collect()
}

fn belongs(vm: &Arc<Vm>, group: &Name) -> bool {
    vm.groups.contains(group) || vm.spreads.iter().any(|spread| spread.group == *group)
}
