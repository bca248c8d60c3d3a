//! Newcomers beside VMs that are under way.
//!
//! The tables have a VM under way on both of its hosts, which is right for everything that takes
//! room or keeps others away. A rule that needs a VM nearby, or counts the emptiest domain, must
//! hold wherever the VM ends up. So whoever shares a rule with it is asked about twice more: as if
//! it had arrived, and as if it had failed.

use crate::core::Core;
use crate::request::Refusal;
use crate::state::{State, VmEntry};
use cluster::{Constraint, Vm};
use solver::Chosen;
use std::sync::Arc;
use verify::Ledger;

impl Core {
    /// Refuses choices, each on top of those before it, that a migration under way might break.
    pub(crate) fn check_tied(&mut self, chosen: &[(&Vm, &Chosen)]) -> Result<(), Refusal> {
        if self.state.plans().moving().len() == 0 {
            return Ok(());
        }
        let constraints: Vec<Arc<Constraint>> =
            self.state.constraints().map(|it| Arc::clone(&it.constraint)).collect();
        let constraints: Vec<&Constraint> = constraints.iter().map(Arc::as_ref).collect();
        let Self { state, ledger, .. } = self;
        for (key, under_way) in state.plans().moving() {
            let (Some((_, home)), Some(target)) = (state.find_vm(key), state.target_of(key)) else {
                continue;
            };
            let tied = chosen.iter().find(|(vm, _)| planner::tied(vm, &home.vm, &constraints));
            let Some((vm, _)) = tied else { continue };
            let holds = holds_if(state, ledger, home, target, true, chosen)?
                && holds_if(state, ledger, home, target, false, chosen)?;
            if !holds {
                let (vm, other, plan) = (vm.key.clone(), key.clone(), under_way.plan);
                return Err(Refusal::Tied { vm, other, plan });
            }
        }
        Ok(())
    }
}

/// Whether every choice would be right with the VM where it goes, or where it comes from. Leaves
/// the ledger as it was.
fn holds_if(
    state: &State,
    ledger: &mut Ledger,
    home: &VmEntry,
    target: &VmEntry,
    arrived: bool,
    chosen: &[(&Vm, &Chosen)],
) -> Result<bool, Refusal> {
    let remove = |ledger: &mut Ledger, it: &VmEntry| {
        ledger.remove_vm(it.host, &it.vm, &it.committed).map_err(unverified)
    };
    let add = |ledger: &mut Ledger, it: &VmEntry| {
        ledger.add_vm(it.host, &it.vm, &it.committed).map_err(unverified)
    };
    remove(ledger, target)?;
    if arrived {
        remove(ledger, home)?;
        ledger.add_vm(target.host, &home.vm, &target.committed).map_err(unverified)?;
    }
    let holds = all_hold(state, ledger, chosen)?;
    if arrived {
        ledger.remove_vm(target.host, &home.vm, &target.committed).map_err(unverified)?;
        add(ledger, home)?;
    }
    add(ledger, target)?;
    Ok(holds)
}

fn all_hold(
    state: &State,
    ledger: &mut Ledger,
    chosen: &[(&Vm, &Chosen)],
) -> Result<bool, Refusal> {
    let mut added: Vec<(&Vm, &Chosen)> = Vec::with_capacity(chosen.len());
    let mut holds = true;
    for &(vm, chosen) in chosen {
        let Some(host) = state.host(chosen.host) else { continue };
        holds &= ledger.check(vm, chosen.host, &host.host.id, &chosen.committed).is_empty();
        ledger.add_vm(chosen.host, vm, &chosen.committed).map_err(unverified)?;
        added.push((vm, chosen));
    }
    for (vm, chosen) in added.into_iter().rev() {
        ledger.remove_vm(chosen.host, vm, &chosen.committed).map_err(unverified)?;
    }
    Ok(holds)
}

fn unverified(error: impl std::fmt::Display) -> Refusal {
    Refusal::Unverified(error.to_string())
}
