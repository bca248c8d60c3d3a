//! The whole verdict on a snapshot and on what somebody decided or means to do on it.

use crate::{Checked, Report, Violation, ViolationKind, Violations, demand_on, plan};
use cluster::{
    Bindings, Claim, Decision, Host, Name, Placed, Plan, Rejections, Revision, Snapshot, Verdict,
    Vm,
};
use policy::ActiveSet;
use serde::Serialize;
use std::fmt;
use std::sync::Arc;

/// What was found, and how much was looked at to find it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Certificate {
    pub violations: Vec<Finding>,
    /// Rules that bind at placement only and do not hold for a VM where it is.
    pub drift: Vec<Violation>,
    /// Such rules that hold before the plan and not after it.
    pub drift_after: Vec<Violation>,
    pub checked: Checked,
}

/// A violation and where it was found; all `None` for one of the snapshot itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The place of the decision, from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wave: Option<usize>,
    /// The place of the step in its wave.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<usize>,
    #[serde(flatten)]
    pub violation: Violation,
}

impl From<Violation> for Finding {
    fn from(violation: Violation) -> Self {
        Self { decision: None, wave: None, step: None, violation }
    }
}

impl Certificate {
    /// Whether nothing is violated. Drift is information, not refusal.
    pub fn accepted(&self) -> bool {
        self.violations.is_empty()
    }
}

/// Whether the snapshot is one that can be, each decision right with those before it in place,
/// and the plan, which starts from there, safe at every instant.
///
/// `policies` are those that bind decisions without a record of their own, and steps; a snapshot
/// does not have them.
pub fn certificate(
    snapshot: Snapshot,
    claims: &[Claim],
    plan: &Plan,
    policies: &ActiveSet,
) -> Certificate {
    let Report { violations, drift, mut checked } = crate::snapshot(&snapshot);
    let mut violations: Vec<Finding> = violations.into_iter().map(Finding::from).collect();
    let mut now = snapshot;
    violations.extend(decided(&mut now, claims));
    violations.extend(plan::findings(&now, plan, policies));
    checked.decisions = claims.len();
    checked.steps = plan.waves.iter().map(|wave| wave.steps.len()).sum();
    let drift_after = match plan.waves.is_empty() {
        true => Vec::new(),
        false => {
            let before = if claims.is_empty() { &drift } else { &crate::snapshot(&now).drift };
            let after = crate::snapshot(&plan::outcome(&now, plan)).drift;
            after.into_iter().filter(|it| !before.contains(it)).collect()
        }
    };
    Certificate { violations, drift, drift_after, checked }
}

/// A VM as a decision or a step leaves it.
pub(crate) fn placed(
    vm: &Arc<Vm>,
    id: &Name,
    host: &Host,
    bindings: Option<&Arc<Bindings>>,
) -> Placed {
    Placed {
        committed: demand_on(host, vm),
        vm: Arc::clone(vm),
        host: id.clone(),
        bindings: bindings.cloned(),
        over_capacity: false,
        adopted: false,
        held: false,
    }
}

/// Checks decisions one after the other, and leaves their VMs in place.
fn decided(now: &mut Snapshot, claims: &[Claim]) -> Vec<Finding> {
    let start = now.revision;
    let mut found = Vec::new();
    let mut taken = 0;
    // Answers in a row are checked together, which reads the snapshot once for all of them.
    for run in claims.chunk_by(|a, b| a.decision.is_some() && b.decision.is_some()) {
        let answers: Vec<Decision> =
            run.iter().filter_map(|claim| claim.decision.clone()).collect();
        let violations = match answers.first() {
            Some(first) => {
                let latest = Revision(start.0.saturating_add(taken as u64));
                now.revision = if (start..=latest).contains(&first.based_on) {
                    first.based_on
                } else {
                    latest
                };
                let vms: Vec<Vm> = run.iter().map(|claim| claim.vm.clone()).collect();
                let order: Vec<usize> = (0..run.len()).collect();
                crate::batch(now, &vms, &answers, &order).violations
            }
            None => run.iter().flat_map(|claim| bare(now, claim)).collect(),
        };
        let place = |violation: &Violation| {
            let about = |claim: &Claim| Some(&claim.vm.key) == violation.vm.as_ref();
            run.iter().position(about).map(|row| taken + row)
        };
        found.extend(
            violations.into_iter().map(|violation| Finding {
                decision: place(&violation),
                ..Finding::from(violation)
            }),
        );
        taken += run.len();
        for claim in run {
            let host = claim.host.as_ref().and_then(|id| now.hosts.iter().find(|it| it.id == *id));
            if let Some(host) = host {
                let vm =
                    placed(&Arc::new(claim.vm.clone()), &host.id, host, claim.bindings.as_ref());
                now.placed.push(vm);
            }
        }
    }
    found
}

/// What is wrong with a decision that says only the host.
fn bare(now: &Snapshot, claim: &Claim) -> Violations {
    if let Some(host) = &claim.host {
        return crate::violations(now, &claim.vm, host);
    }
    let nowhere = Decision {
        vm: claim.vm.key.clone(),
        verdict: Verdict::Rejected,
        strategy: Default::default(),
        alternatives: Default::default(),
        rejections: Rejections::default(),
        policy_rejections: Vec::new(),
        hosts_considered: 0,
        based_on: now.revision,
        policy_revision: 0,
        demand_revision: 0,
    };
    let mut found = crate::placement(now, &claim.vm, &nowhere).violations;
    // The claim gives no counts, so none of them can be wrong.
    found.retain(|violation| violation.kind == ViolationKind::HostFits);
    found
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(decision) = self.decision {
            write!(f, "decision {decision}: ")?;
        }
        if let (Some(wave), Some(step)) = (self.wave, self.step) {
            write!(f, "wave {wave}, step {step}: ")?;
        }
        self.violation.fmt(f)
    }
}

impl fmt::Display for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Checked { hosts, vms, decisions, steps } = self.checked;
        write!(
            f,
            "{} violations and {} drifted rules in {hosts} hosts, {vms} VMs, {decisions} \
             decisions, {steps} steps",
            self.violations.len(),
            self.drift.len() + self.drift_after.len(),
        )?;
        self.violations.iter().try_for_each(|violation| write!(f, "\n{violation}"))?;
        self.drift.iter().try_for_each(|violation| write!(f, "\ndrift: {violation}"))?;
        let after = &mut self.drift_after.iter();
        after.try_for_each(|violation| write!(f, "\ndrift after the plan: {violation}"))
    }
}
