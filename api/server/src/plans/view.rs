//! Plans as they are shown.

use cluster::{Amounts, Name, VmKey};
use engine::{
    Migration, MigrationStatus, OnFailure, PlanEntry, PlanKind, PlanStatus, State, demand_on,
};
use std::collections::BTreeMap;
use wire::{
    BlockedView, HostDiffView, MigrationView, PlanDiffView, PlanTotalsView, PlanView, Quantities,
    Word,
};

/// A plan; `whole` with its migrations.
pub(crate) fn plan_view(plan: &PlanEntry, state: &State, whole: bool) -> PlanView {
    let worth = &plan.worth;
    let waves = plan.waves.iter().filter(|_| whole);
    let blocked = plan.blocked.iter().filter(|_| whole).map(|it| BlockedView {
        tenant: it.vm.tenant.clone(),
        vm_id: it.vm.id.clone(),
        from: it.from.clone(),
        to: it.to.clone(),
        why: it.why.clone(),
    });
    let gap = worth.objective.zip(worth.bound).map(|(objective, bound)| match objective {
        0 => 0.0,
        objective => objective.saturating_sub(bound) as f64 / objective as f64,
    });
    PlanView {
        id: plan.id.to_string(),
        kind: Word(kind(plan.kind)),
        status: Word(status(plan.status)),
        because: plan.because.clone(),
        note: plan.note.clone(),
        actor: plan.actor.clone(),
        created_at_ms: plan.created_ms,
        changed_at_ms: plan.changed_ms,
        based_on: plan.based_on.0,
        hosts: plan.hosts.clone(),
        waves: waves.map(|wave| wave.iter().map(|it| migration(plan, it)).collect()).collect(),
        begun: plan.next_wave,
        blocked: blocked.collect(),
        totals: totals(plan),
        on_failure: Word(match plan.on_failure {
            OnFailure::Pause => wire::OnFailure::Pause,
            OnFailure::Continue => wire::OnFailure::Continue,
        }),
        rolled_back_by: plan.rolled_back_by.map(|id| id.to_string()),
        rolls_back: match plan.kind {
            PlanKind::Rollback(of) => Some(of.to_string()),
            _ => None,
        },
        objective_before: worth.before,
        objective: worth.objective,
        bound: worth.bound,
        gap,
        stop_reason: worth.stop_reason.clone(),
        power_down: worth.power_down.clone(),
        wake: worth.wake.clone(),
        revision: state.revision().0,
    }
}

/// What is different when everything of a plan that may still be done is done.
pub(crate) fn diff_view(plan: &PlanEntry, state: &State) -> PlanDiffView {
    // Where each VM is now, and where its last open migration takes it.
    let mut last: BTreeMap<&VmKey, &Name> = BTreeMap::new();
    for (_, it) in plan.steps() {
        if matches!(it.status, MigrationStatus::Waiting | MigrationStatus::Running) {
            last.insert(&it.planned.vm, &it.planned.to);
        }
    }
    let mut hosts: BTreeMap<Name, HostDiffView> = BTreeMap::new();
    let mut after: BTreeMap<Name, Amounts> = BTreeMap::new();
    let mut moved = 0u32;
    for (key, to) in last {
        let Some((_, entry)) = state.find_vm(key) else { continue };
        let Some(from) = state.host(entry.host).map(|host| host.host.id.clone()) else { continue };
        let Some((_, target)) = state.find_host(to) else { continue };
        if from == *to {
            continue;
        }
        moved = moved.saturating_add(1);
        let committed = demand_on(&entry.vm, &target.host);
        for (name, comes) in [(&from, false), (to, true)] {
            let view = hosts.entry(name.clone()).or_insert_with(|| untouched(state, name));
            let used = after.entry(name.clone()).or_insert_with(|| used_on(state, name).0);
            if comes {
                view.arrives.push(key.to_string());
                view.vms_after = view.vms_after.saturating_add(1);
                *used = used.checked_add(&committed).unwrap_or_default();
            } else {
                view.leaves.push(key.to_string());
                view.vms_after = view.vms_after.saturating_sub(1);
                *used = used.saturating_sub(&entry.committed);
            }
        }
    }
    for (name, view) in &mut hosts {
        let used = after.remove(name).unwrap_or_default();
        view.used_after = Quantities::full(&used, state.dimensions());
    }
    PlanDiffView {
        id: plan.id.to_string(),
        status: Word(status(plan.status)),
        hosts: hosts.into_values().collect(),
        moved,
        revision: state.revision().0,
    }
}

/// What VMs take of a host, without those that are only on their way to it.
fn used_on(state: &State, host: &Name) -> (Amounts, u32) {
    let Some((_, entry)) = state.find_host(host) else { return Default::default() };
    let vms = entry.vms.iter().filter_map(|ix| state.vm(*ix));
    let vms = vms.filter(|vm| !vm.vm.key.is_stand_in());
    vms.fold((Amounts::zero(), 0), |(used, count), vm| {
        (used.checked_add(&vm.committed).unwrap_or(used), count.saturating_add(1))
    })
}

fn untouched(state: &State, host: &Name) -> HostDiffView {
    let (used, vms) = used_on(state, host);
    let used = Quantities::full(&used, state.dimensions());
    HostDiffView {
        host_id: host.clone(),
        vms_before: vms,
        vms_after: vms,
        used_before: used.clone(),
        used_after: used,
        leaves: Vec::new(),
        arrives: Vec::new(),
    }
}

fn migration(plan: &PlanEntry, it: &Migration) -> MigrationView {
    let planned = &it.planned;
    let (status, reason) = match &it.status {
        MigrationStatus::Waiting => (wire::MigrationStatus::Waiting, None),
        MigrationStatus::Running => (wire::MigrationStatus::Running, None),
        MigrationStatus::Done => (wire::MigrationStatus::Done, None),
        MigrationStatus::Failed(why) => (wire::MigrationStatus::Failed, Some(why.clone())),
        MigrationStatus::Skipped(why) => (wire::MigrationStatus::Skipped, Some(why.clone())),
        MigrationStatus::Cancelled => (wire::MigrationStatus::Cancelled, None),
        MigrationStatus::RolledBack => (wire::MigrationStatus::RolledBack, None),
    };
    MigrationView {
        tenant: planned.vm.tenant.clone(),
        vm_id: planned.vm.id.clone(),
        from: planned.from.clone(),
        to: planned.to.clone(),
        status: Word(status),
        why: why(plan.kind, planned.staging).into(),
        reason,
        memory_mib: planned.memory_mib,
        brownout_ms: planned.brownout_ms,
        downtime_ms: planned.downtime_ms,
        gain: planned.gain,
        started_at_ms: Some(it.started_ms).filter(|ms| *ms > 0),
        ended_at_ms: Some(it.ended_ms).filter(|ms| *ms > 0),
    }
}

fn totals(plan: &PlanEntry) -> PlanTotalsView {
    let mut totals = PlanTotalsView::default();
    let mut gain: Option<i64> = None;
    for (_, it) in plan.steps() {
        let count = match &it.status {
            MigrationStatus::Waiting => &mut totals.waiting,
            MigrationStatus::Running => &mut totals.running,
            MigrationStatus::Done => &mut totals.done,
            MigrationStatus::RolledBack => &mut totals.rolled_back,
            MigrationStatus::Failed(_)
            | MigrationStatus::Skipped(_)
            | MigrationStatus::Cancelled => &mut totals.not_done,
        };
        *count = count.saturating_add(1);
        let planned = &it.planned;
        totals.migrations = totals.migrations.saturating_add(1);
        totals.memory_mib = totals.memory_mib.saturating_add(planned.memory_mib);
        totals.brownout_ms = totals.brownout_ms.saturating_add(planned.brownout_ms);
        totals.downtime_ms = totals.downtime_ms.saturating_add(planned.downtime_ms);
        if let Some(more) = planned.gain {
            gain = Some(gain.unwrap_or(0).saturating_add(more));
        }
    }
    let searched = plan.worth.before.zip(plan.worth.objective);
    totals.gain = gain.or(searched.map(|(before, after)| before.saturating_sub(after)));
    let rate = |per: f64| totals.gain.filter(|_| per > 0.0).map(|gain| gain as f64 / per);
    totals.gain_per_move = rate(f64::from(totals.migrations));
    totals.gain_per_second = rate(totals.brownout_ms as f64 / 1_000.0);
    totals
}

fn why(kind: PlanKind, staging: bool) -> &'static str {
    match kind {
        _ if staging => "makes room, and moves on later",
        PlanKind::Moves => "asked for",
        PlanKind::Optimisation | PlanKind::Rebalance => "lowers the objective",
        PlanKind::Drain | PlanKind::Maintenance => "its host is emptied",
        PlanKind::Consolidation => "frees a host",
        PlanKind::Defragmentation => "frees capacity that is stranded",
        PlanKind::Rollback(_) => "turns a migration round",
    }
}

fn kind(kind: PlanKind) -> wire::PlanKind {
    match kind {
        PlanKind::Moves => wire::PlanKind::Moves,
        PlanKind::Optimisation => wire::PlanKind::Optimisation,
        PlanKind::Rebalance => wire::PlanKind::Rebalance,
        PlanKind::Drain => wire::PlanKind::Drain,
        PlanKind::Consolidation => wire::PlanKind::Consolidation,
        PlanKind::Defragmentation => wire::PlanKind::Defragmentation,
        PlanKind::Maintenance => wire::PlanKind::Maintenance,
        PlanKind::Rollback(_) => wire::PlanKind::Rollback,
    }
}

fn status(status: PlanStatus) -> wire::PlanStatus {
    match status {
        PlanStatus::Proposed => wire::PlanStatus::Proposed,
        PlanStatus::Approved => wire::PlanStatus::Approved,
        PlanStatus::Running => wire::PlanStatus::Running,
        PlanStatus::Paused => wire::PlanStatus::Paused,
        PlanStatus::Stale => wire::PlanStatus::Stale,
        PlanStatus::Completed => wire::PlanStatus::Completed,
        PlanStatus::Incomplete => wire::PlanStatus::Incomplete,
        PlanStatus::Cancelled => wire::PlanStatus::Cancelled,
        PlanStatus::RolledBack => wire::PlanStatus::RolledBack,
    }
}
