//! The last changes of the cluster, for callers that follow along.
//!
//! A bounded ring that the writer's listener fills; whoever falls behind further than it reaches
//! is told so and starts again from what is.

use cluster::{Name, Revision, VmKey};
use engine::{Command, Committed, DecisionId, Entry, Placing, PlanId, VmFact};
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use wire::Event;

/// Events that are kept for late followers.
const KEPT: usize = 65_536;
/// Events in one answer.
const AT_ONCE: usize = 1_000;

#[derive(Debug)]
pub(crate) struct Events {
    ring: Mutex<Ring>,
}

#[derive(Debug)]
struct Ring {
    /// Everything after this revision is in the ring.
    after: Revision,
    newest: Revision,
    events: VecDeque<Event>,
}

/// What happened since a revision.
#[derive(Debug)]
pub(crate) struct Since {
    pub(crate) events: Vec<Event>,
    /// Everything up to here has been told.
    pub(crate) revision: Revision,
}

impl Events {
    pub(crate) fn new(revision: Revision) -> Self {
        let ring = Ring { after: revision, newest: revision, events: VecDeque::new() };
        Self { ring: Mutex::new(ring) }
    }

    pub(crate) fn record(&self, committed: &Committed) {
        let mut ring = self.ring.lock().unwrap_or_else(PoisonError::into_inner);
        for (revision, entry) in committed {
            ring.events.extend(told(*revision, entry));
            ring.newest = *revision;
        }
        // Whole revisions are dropped, so that nobody sees half of a batch.
        while ring.events.len() > KEPT {
            let Some(oldest) = ring.events.front().map(|event| event.revision) else { break };
            while ring.events.front().is_some_and(|event| event.revision == oldest) {
                ring.events.pop_front();
            }
            ring.after = Revision(oldest);
        }
    }

    /// Events after `since`, oldest first; `None` when the ring no longer reaches back that far.
    pub(crate) fn since(&self, since: Revision) -> Option<Since> {
        let ring = self.ring.lock().unwrap_or_else(PoisonError::into_inner);
        if since < ring.after {
            return None;
        }
        let start = ring.events.partition_point(|event| event.revision <= since.0);
        let mut events: Vec<Event> = Vec::new();
        for event in ring.events.iter().skip(start) {
            let same = events.last().is_some_and(|last| last.revision == event.revision);
            if events.len() >= AT_ONCE && !same {
                let revision = Revision(events.last().map_or(since.0, |last| last.revision));
                return Some(Since { events, revision });
            }
            events.push(event.clone());
        }
        Some(Since { events, revision: ring.newest.max(since) })
    }
}

/// What a command means to a follower.
fn told(revision: Revision, entry: &Entry) -> Vec<Event> {
    let event = |kind: &str| Event {
        revision: revision.0,
        at_ms: entry.ts_ms,
        kind: kind.to_owned(),
        host_id: None,
        vm_id: None,
        tenant: None,
        decision_id: None,
        reservation_id: None,
        plan_id: None,
    };
    let on_host = |kind: &str, host: &Name| Event { host_id: Some(host.clone()), ..event(kind) };
    let of_vm = |kind: &str, vm: &VmKey| Event {
        vm_id: Some(vm.id.clone()),
        tenant: Some(vm.tenant.clone()),
        ..event(kind)
    };
    let held = |kind: &str, reservation: u64| Event {
        reservation_id: Some(format!("r{reservation}")),
        ..event(kind)
    };
    let of_plan =
        |kind: &str, plan: PlanId| Event { plan_id: Some(plan.to_string()), ..event(kind) };
    let placed = |placing: &Placing, position: u32| {
        let host_id = placing.decision.host().cloned();
        let kind = match (&host_id, &placing.hold) {
            (None, _) => "vm_rejected",
            (Some(_), None) => "vm_placed",
            (Some(_), Some(_)) => "vm_reserved",
        };
        Event {
            host_id,
            decision_id: Some(DecisionId { revision, position }.to_string()),
            reservation_id: placing.hold.map(|hold| format!("r{}", hold.reservation)),
            ..of_vm(kind, &placing.vm.key)
        }
    };
    match &entry.command {
        Command::DeclareDimensions(_) => vec![event("dimensions_declared")],
        Command::PutHost(host) => vec![on_host("host_put", &host.id)],
        Command::SetHostState { host, .. } => vec![on_host("host_state_changed", host)],
        Command::SetHostHealth { host, .. } => vec![on_host("host_health_changed", host)],
        Command::RemoveHost { host } => vec![on_host("host_removed", host)],
        Command::Place(placing) => vec![placed(placing, 0)],
        Command::PlaceBatch { placings, .. } => {
            (0..).zip(placings).map(|(position, placing)| placed(placing, position)).collect()
        }
        Command::Adopt(adoption) => {
            let host_id = Some(adoption.host.clone());
            vec![Event { host_id, ..of_vm("vm_adopted", &adoption.vm.key) }]
        }
        Command::Resize(resizing) => vec![of_vm("vm_resized", &resizing.vm)],
        Command::RemoveVm { vm } => vec![of_vm("vm_removed", vm)],
        Command::Confirm { reservation } => vec![held("reservation_confirmed", *reservation)],
        Command::Release { reservation } => vec![held("reservation_released", *reservation)],
        Command::Expire { reservations } => reservations
            .iter()
            .map(|reservation| held("reservation_expired", *reservation))
            .collect(),
        Command::InstallPolicy(_) => vec![event("policy_installed")],
        Command::EditPolicy(_) => vec![event("policies_changed")],
        Command::PutConstraint(_) => vec![event("constraint_put")],
        Command::RemoveConstraint { .. } => vec![event("constraint_removed")],
        Command::Tick => Vec::new(),
        // One for the inventory: a follower who wants the hosts reads them.
        Command::ReportUse(reports) if reports.last => vec![event("inventory_reported")],
        Command::ReportUse(_) => Vec::new(),
        Command::ReportVm(report) => match &report.fact {
            VmFact::AsRecorded => vec![of_vm("vm_confirmed", &report.vm)],
            VmFact::Otherwise(adoption) => {
                let host_id = Some(adoption.host.clone());
                vec![Event { host_id, ..of_vm("vm_found", &report.vm) }]
            }
            VmFact::Gone => vec![of_vm("vm_gone", &report.vm)],
            VmFact::Arrived => vec![of_vm("vm_arrived", &report.vm)],
        },
        Command::CreatePlan(_) => vec![of_plan("plan_created", PlanId(revision.0))],
        Command::ChangePlan(change) => vec![of_plan("plan_changed", change.plan)],
        Command::StartWave(start) => vec![of_plan("plan_wave_started", start.plan)],
        Command::ReportMigration { plan, failed: None, .. } => {
            vec![of_plan("plan_migration_done", *plan)]
        }
        Command::ReportMigration { plan, .. } => vec![of_plan("plan_migration_failed", *plan)],
        Command::SetBudget(_) => vec![event("disruption_budget_set")],
    }
}
