//! Migration: memory of VMs that leave their host, in MiB. Where a VM has to stop for it, it counts
//! as much more as is set. The range is from nobody moving to everybody.

use super::Natural;
use super::facts::Facts;
use cluster::assignment::Goal;
use cluster::{Dim, Migratability};

pub(super) fn goals(facts: &mut Facts<'_>) -> Natural {
    let cold = u64::from(facts.setting.cold_permille);
    let rows = facts.vms.iter().zip(&facts.problem.vms);
    let cost = rows.map(|(vm, row)| match (row.initial, vm.migratability) {
        (None, _) => 0,
        (_, Migratability::Cold) => vm.demand.get(Dim::MEMORY_MIB) * cold / 1_000,
        _ => vm.demand.get(Dim::MEMORY_MIB),
    });
    let vms: Vec<u64> = cost.collect();
    let moves = vms.iter().any(|&cost| cost > 0);
    let goals = moves.then_some(Goal::Moves { vms, between: None, busiest: None });
    Natural { goals: goals.into_iter().collect(), per_unit: 1 }
}
