//! Plans that are made, approved, paused, cancelled and turned round, and what the core reports.
//!
//! Every request may come twice, late or out of order; one that changes nothing says so. How a wave
//! begins is in `waves`.

use super::Proposal;
use crate::check;
use crate::command::Command;
use crate::core::Core;
use crate::plans::{
    DisruptionBudget, Draft, MAX_OPEN_PLANS, MAX_STEPS, MigrationReport, MigrationStatus,
    PlanAction, PlanChange, PlanEntry, PlanId, PlanKind, PlanStatus, Planned,
};
use crate::request::{Outcome, Refusal};
use cluster::{Migratability, Name, VmKey};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Most bytes of any text that comes with a plan.
const MAX_TEXT: usize = 1_024;
/// Most hosts that a plan names.
const MAX_HOSTS: usize = 20_000;
/// Shortest and longest window of a budget: a second, 31 days.
const WINDOW_MS: std::ops::RangeInclusive<u64> = 1_000..=2_678_400_000;

impl Core {
    pub(super) fn propose_plan(&self, draft: &Draft) -> Result<Proposal, Refusal> {
        self.check_draft(draft)?;
        let id = PlanId(self.state.revision().next().0);
        let status = draft.first_status();
        let outcome = Outcome::Plan { plan: id, status };
        Proposal::change(Command::CreatePlan(Box::new(draft.clone())), outcome)
    }

    pub(super) fn propose_change(
        &self,
        id: PlanId,
        action: &PlanAction,
    ) -> Result<Proposal, Refusal> {
        use PlanStatus::{Approved, Cancelled, Paused, Proposed, RolledBack, Running, Stale};
        let plan = self.known_plan(id)?;
        let to = |status: PlanStatus| self.change(plan, status, "", false);
        match (action, plan.status) {
            (PlanAction::Approve, Approved | Running)
            | (PlanAction::Apply | PlanAction::Resume, Running)
            | (PlanAction::Pause, Paused)
            | (PlanAction::Rollback, RolledBack) => nothing(plan),
            (PlanAction::Approve, Proposed) => to(Approved),
            (PlanAction::Apply, Approved) => to(Running),
            (PlanAction::Apply, Proposed) => refused(id, "is not approved; approve it first"),
            (PlanAction::Pause, Running) => self.change(plan, Paused, "by an operator", false),
            (PlanAction::Resume, Paused | Stale) => to(Running),
            (PlanAction::Cancel { abandon }, Cancelled) => match *abandon && plan.is_under_way() {
                true => self.change(plan, Cancelled, "", true),
                false => nothing(plan),
            },
            (PlanAction::Cancel { abandon }, status) if !status.is_over() => {
                self.change(plan, Cancelled, "", *abandon)
            }
            (PlanAction::Rollback, _) => self.propose_rollback(plan),
            (action, status) => {
                refused(id, &format!("is {status:?}; {action:?} does nothing there"))
            }
        }
    }

    pub(super) fn propose_migration_report(
        &self,
        id: PlanId,
        vm: &VmKey,
        to: Option<&Name>,
        report: &MigrationReport,
    ) -> Result<Proposal, Refusal> {
        use MigrationStatus::{Done, Failed, RolledBack, Running};
        let plan = self.known_plan(id)?;
        let Some((step, migration)) = plan.reported(vm, to) else {
            return refused(id, &format!("has no such migration of VM {vm}"));
        };
        let failed = match (report, &migration.status) {
            (MigrationReport::Confirmed, Running) => None,
            (MigrationReport::Failed(why), Running) => Some(shortened(why)),
            (MigrationReport::Confirmed, Done | RolledBack)
            | (MigrationReport::Failed(_), Failed(_)) => return nothing(plan),
            (report, status) => {
                let problem = format!("cannot take {report:?} for VM {vm}: it is {status:?}");
                return refused(id, &problem);
            }
        };
        let outcome = Outcome::Plan { plan: id, status: plan.status };
        Proposal::change(Command::ReportMigration { plan: id, step, failed }, outcome)
    }

    pub(super) fn propose_budget(&self, budget: &DisruptionBudget) -> Result<Proposal, Refusal> {
        if !WINDOW_MS.contains(&budget.window_ms) {
            let (least, most) = (WINDOW_MS.start(), WINDOW_MS.end());
            let problem = format!("is {}; it must be from {least} to {most}", budget.window_ms);
            return Err(check::invalid("window_ms", &problem));
        }
        let outcome = Outcome::Budget(*budget);
        if self.state.plans().budget() == *budget {
            return Proposal::nothing(outcome);
        }
        Proposal::change(Command::SetBudget(*budget), outcome)
    }

    /// The done migrations turned round, those of the last wave first.
    fn propose_rollback(&self, plan: &PlanEntry) -> Result<Proposal, Refusal> {
        let id = plan.id;
        if plan.is_under_way() || plan.status == PlanStatus::Running {
            return refused(id, "is under way; pause it and wait for its migrations, or cancel it");
        }
        let earlier = plan.rolled_back_by.and_then(|by| self.state.plans().get(by));
        if let Some(earlier) = earlier.filter(|earlier| !earlier.status.is_over()) {
            return refused(id, &format!("is being rolled back by plan {} already", earlier.id));
        }
        let turned = |planned: &Planned| Planned {
            from: planned.to.clone(),
            to: planned.from.clone(),
            gain: planned.gain.map(i64::saturating_neg),
            ..planned.clone()
        };
        let done = plan.waves.iter().rev().map(|wave| {
            let done = wave.iter().filter(|it| it.status == MigrationStatus::Done);
            done.map(|it| turned(&it.planned)).collect::<Vec<_>>()
        });
        let waves: Vec<_> = done.filter(|wave| !wave.is_empty()).collect();
        if waves.is_empty() {
            return refused(id, "has no migration that is done; there is nothing to turn round");
        }
        self.propose_plan(&Draft {
            kind: PlanKind::Rollback(id),
            hosts: Vec::new(),
            waves,
            blocked: Vec::new(),
            worth: Default::default(),
            on_failure: plan.on_failure,
            approved: true,
            based_on: self.state.revision(),
            note: format!("turns plan {id} round"),
            asked: [0; 16],
        })
    }

    /// Whether the plan can be written down: sizes, and each VM where its steps say that it is.
    /// Whether it may be carried out is asked of the living state before every wave.
    fn check_draft(&self, draft: &Draft) -> Result<(), Refusal> {
        let steps: usize = draft.waves.iter().map(Vec::len).sum();
        if steps > MAX_STEPS || draft.blocked.len() > MAX_STEPS {
            let problem = format!("has {steps} migrations; at most {MAX_STEPS} go in one plan");
            return Err(check::invalid("waves", &problem));
        }
        if draft.hosts.len() > MAX_HOSTS {
            return Err(check::invalid("hosts", &format!("has more than {MAX_HOSTS} names")));
        }
        if draft.note.len() > MAX_TEXT || draft.blocked.iter().any(|it| it.why.len() > MAX_TEXT) {
            return Err(check::invalid("note", &format!("is longer than {MAX_TEXT} bytes")));
        }
        if steps > 0 && !self.state.plans().has_room(steps) {
            let problem = format!(
                "are too many: at most {MAX_OPEN_PLANS} may be open; cancel one that is not needed"
            );
            return Err(check::invalid("plans", &problem));
        }
        let mut at: BTreeMap<&VmKey, &Name> = BTreeMap::new();
        for (wave, steps) in draft.waves.iter().enumerate() {
            if steps.is_empty() {
                return Err(check::invalid(&format!("waves[{wave}]"), "is empty"));
            }
            let mut seen = BTreeSet::new();
            for (position, planned) in steps.iter().enumerate() {
                let field = format!("waves[{wave}][{position}]");
                if !seen.insert(&planned.vm) {
                    let problem = format!("moves VM {} twice in one wave", planned.vm);
                    return Err(check::invalid(&field, &problem));
                }
                self.check_planned(planned, at.get(&planned.vm).copied(), &field)?;
                at.insert(&planned.vm, &planned.to);
            }
        }
        Ok(())
    }

    /// `at`: where an earlier step takes the VM.
    fn check_planned(
        &self,
        planned: &Planned,
        at: Option<&Name>,
        field: &str,
    ) -> Result<(), Refusal> {
        let entry = self.known_vm(&planned.vm)?;
        self.known_host(&planned.to)?;
        let home = self.state.host(entry.host).map(|home| &home.host.id);
        let at = at.or(home);
        if at != Some(&planned.from) {
            let is = at.map_or("nowhere", Name::as_str);
            let problem =
                format!("says that VM {} is on {}, but it is on {is}", planned.vm, planned.from);
            return Err(check::invalid(&format!("{field}.from"), &problem));
        }
        if planned.from == planned.to {
            let problem = format!("is {}, where VM {} is already", planned.to, planned.vm);
            return Err(check::invalid(&format!("{field}.to"), &problem));
        }
        if entry.vm.migratability == Migratability::Pinned {
            let problem = format!("moves VM {}, which must not be moved", planned.vm);
            return Err(check::invalid(field, &problem));
        }
        Ok(())
    }

    fn change(
        &self,
        plan: &PlanEntry,
        status: PlanStatus,
        because: &str,
        abandon: bool,
    ) -> Result<Proposal, Refusal> {
        let change = PlanChange { plan: plan.id, status, because: because.into(), abandon };
        let outcome = Outcome::Plan { plan: plan.id, status };
        Proposal::change(Command::ChangePlan(change), outcome)
    }

    pub(super) fn known_plan(&self, id: PlanId) -> Result<&Arc<PlanEntry>, Refusal> {
        self.state.plans().get(id).ok_or(Refusal::UnknownPlan(id))
    }
}

fn nothing(plan: &PlanEntry) -> Result<Proposal, Refusal> {
    Proposal::nothing(Outcome::Plan { plan: plan.id, status: plan.status })
}

fn refused<T>(plan: PlanId, problem: &str) -> Result<T, Refusal> {
    Err(Refusal::PlanRefused { plan, problem: problem.into() })
}

/// At most so much of what the core says, cut between two characters.
fn shortened(why: &str) -> String {
    why.chars()
        .scan(0usize, |bytes, c| {
            *bytes = bytes.saturating_add(c.len_utf8());
            (*bytes <= MAX_TEXT).then_some(c)
        })
        .collect()
}
