//! The fleet while a plan is made for it: who is where, as far as the plan has got.

use super::{Drafted, Terms};
use crate::plans::{BlockedMove, Planned};
use crate::proposal::rule;
use crate::state::VmEntry;
use crate::tables::Tables;
use cluster::{Constraint, Dim, Host, HostIx, Migratability, Name, Step, VmKey, Wave};
use planner::{Move, Obstruction, Placed, timing};
use rustc_hash::FxHashMap;
use std::sync::Arc;

pub(super) struct Scene {
    pub(super) vms: Vec<Arc<VmEntry>>,
    rows: FxHashMap<VmKey, usize>,
    pub(super) hosts: FxHashMap<HostIx, Arc<Host>>,
    by_name: FxHashMap<Name, HostIx>,
}

impl Scene {
    pub(super) fn of(tables: &Tables) -> Self {
        let vms: Vec<Arc<VmEntry>> = tables.vms().map(Arc::clone).collect();
        let rows = vms.iter().enumerate().map(|(row, entry)| (entry.vm.key.clone(), row));
        let hosts: FxHashMap<HostIx, Arc<Host>> =
            tables.hosts().map(|(ix, entry)| (ix, entry.effective_host())).collect();
        let by_name = hosts.iter().map(|(ix, host)| (host.id.clone(), *ix)).collect();
        Self { rows: rows.collect(), vms, hosts, by_name }
    }

    pub(super) fn host(&self, name: &Name) -> Option<HostIx> {
        self.by_name.get(name).copied()
    }

    /// The row of a VM; stand-ins are none.
    pub(super) fn vm(&self, key: &VmKey) -> Option<usize> {
        self.rows.get(key).copied().filter(|_| !key.is_stand_in())
    }

    pub(super) fn name(&self, ix: HostIx) -> Option<Name> {
        self.hosts.get(&ix).map(|host| host.id.clone())
    }

    pub(super) fn home_of(&self, row: usize) -> Option<Name> {
        self.name(self.vms.get(row)?.host)
    }

    /// Adds the waves of these moves to a draft, and the moves that cannot be. Returns where each
    /// VM is after them. The tables are left as they were.
    pub(super) fn order(
        &self,
        tables: &mut Tables,
        moves: &[(Move, Option<i64>)],
        terms: &Terms,
        drafted: &mut Drafted,
    ) -> Vec<planner::Step> {
        let fleet: Vec<Placed<'_>> = self
            .vms
            .iter()
            .map(|entry| Placed {
                vm: &entry.vm,
                host: entry.host,
                committed: entry.committed.clone(),
                bindings: entry.bindings.clone(),
            })
            .collect();
        let constraints: Vec<Arc<Constraint>> = tables.constraints().to_vec();
        let constraints: Vec<&Constraint> = constraints.iter().map(Arc::as_ref).collect();
        let host = |ix: HostIx| self.hosts.get(&ix).map(Arc::as_ref);
        let wanted: Vec<Move> = moves.iter().map(|(it, _)| *it).collect();
        let ordered =
            planner::order(&mut tables.problem, &host, &fleet, &constraints, &wanted, &terms.caps);
        let gains: FxHashMap<usize, i64> =
            moves.iter().filter_map(|(it, gain)| Some((it.vm, (*gain)?))).collect();
        for wave in &ordered.waves {
            let planned = wave.iter().filter_map(|step| {
                let planned = self.planned(step, terms)?;
                let gain = gains.get(&step.vm).copied().filter(|_| !step.staging);
                Some(Planned { gain, ..planned })
            });
            drafted.draft.waves.push(planned.collect());
            let steps = wave.iter().filter_map(|step| self.step(step));
            drafted.plan.waves.push(Wave { steps: steps.collect() });
        }
        let blocked = ordered.blocked.iter().filter_map(|it| {
            let entry = self.vms.get(it.vm)?;
            let (from, to) = (self.name(entry.host)?, Some(self.name(it.to)?));
            Some(BlockedMove { vm: entry.vm.key.clone(), from, to, why: why(&it.why) })
        });
        drafted.draft.blocked.extend(blocked);
        ordered.waves.into_iter().flatten().collect()
    }

    fn planned(&self, step: &planner::Step, terms: &Terms) -> Option<Planned> {
        let vm = &self.vms.get(step.vm)?.vm;
        let memory_mib = vm.demand.get(Dim::MEMORY_MIB);
        let takes = timing(memory_mib, vm.migratability == Migratability::Live, &terms.link);
        Some(Planned {
            vm: vm.key.clone(),
            from: self.name(step.from)?,
            to: self.name(step.to)?,
            staging: step.staging,
            memory_mib,
            brownout_ms: takes.total_ms,
            downtime_ms: takes.downtime_ms,
            gain: None,
        })
    }

    fn step(&self, step: &planner::Step) -> Option<Step> {
        Some(Step::Move {
            vm: self.vms.get(step.vm)?.vm.key.clone(),
            from: self.name(step.from),
            to: self.name(step.to)?,
            bindings: step.bindings.clone(),
        })
    }
}

fn why(obstruction: &Obstruction) -> String {
    match obstruction {
        Obstruction::Pinned => "the VM must not be moved".into(),
        Obstruction::Rule(reason) => format!("its target fails {}", rule(*reason)),
        Obstruction::Neighbour(other) => format!("VM {other} could not stay where it is"),
    }
}
