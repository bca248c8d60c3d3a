//! `novaplace verify`: a second opinion on decisions, ours or another scheduler's, from files
//! alone.

use crate::input;
use crate::output::{Format, Paint, print};
use anyhow::{Context, bail};
use clap::Args;
use cluster::{Decision, Dimensions, Placed, Rejections, Revision, Snapshot, Verdict, Vm};
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use verify::{Report, ViolationKind, Violations, demand_on};
use wire::Limits;
use wire::certify::{Claim, Document};

#[derive(Debug, Args)]
pub(crate) struct Verify {
    /// A document with `snapshot` and `decisions`; - is standard input
    #[arg(required_unless_present = "snapshot", conflicts_with_all = ["snapshot", "plan"])]
    file: Option<PathBuf>,
    /// A snapshot of a cluster
    #[arg(long, value_name = "FILE", requires = "plan")]
    snapshot: Option<PathBuf>,
    /// The decisions taken on it: a JSON array in the order in which they were taken
    #[arg(long, value_name = "FILE", requires = "snapshot")]
    plan: Option<PathBuf>,
    /// A table for people, or JSON for programs
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    output: Format,
}

impl Verify {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let text = match (&self.file, &self.snapshot, &self.plan) {
            (Some(file), _, _) => input::read(file)?,
            (None, Some(snapshot), Some(plan)) => joined(snapshot, plan)?,
            _ => bail!("there is nothing to verify"),
        };
        let limits = Limits::document(Arc::new(Dimensions::default()));
        let document: Document = wire::read(&text, &limits).map_err(|faults| {
            let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
            anyhow::anyhow!("the document has {} faults\n  {}", faults.len(), faults.join("\n  "))
        })?;
        let report = certified(document);
        match self.output {
            Format::Json => print(json(&report)?)?,
            Format::Table => show(&report)?,
        }
        Ok(ExitCode::from(u8::from(!report.accepted())))
    }
}

/// One document of two files. A plan is an array, or an object with `decisions`.
fn joined(snapshot: &Path, plan: &Path) -> anyhow::Result<Vec<u8>> {
    let whole = |path| serde_json::from_str::<BTreeMap<String, Box<RawValue>>>(path);
    let (snapshot, mut decisions) = (input::document(snapshot)?, input::document(plan)?);
    if let Ok(mut fields) = whole(decisions.get()) {
        let none = || format!("{} has no field \"decisions\"", plan.display());
        decisions = fields.remove("decisions").with_context(none)?;
    }
    let parts = BTreeMap::from([("snapshot", snapshot), ("decisions", decisions)]);
    Ok(serde_json::to_vec(&parts)?)
}

/// Whether the snapshot is one that can be, and each claim right with those before it in place.
fn certified(document: Document) -> Report {
    let Document { snapshot: mut now, decisions: claims } = document;
    let mut report = verify::snapshot(&now);
    report.checked.decisions = claims.len();
    let start = now.revision;
    let mut taken = 0;
    // Answers in a row are checked together, which reads the snapshot once for all of them.
    for run in claims.chunk_by(|a, b| a.decision.is_some() && b.decision.is_some()) {
        let answers: Vec<Decision> =
            run.iter().filter_map(|claim| claim.decision.clone()).collect();
        let found = match answers.first() {
            Some(first) => {
                let latest = Revision(start.0.saturating_add(taken));
                now.revision = if (start..=latest).contains(&first.based_on) {
                    first.based_on
                } else {
                    latest
                };
                let vms: Vec<Vm> = run.iter().map(|claim| claim.vm.clone()).collect();
                let order: Vec<usize> = (0..run.len()).collect();
                verify::batch(&now, &vms, &answers, &order).violations
            }
            None => run.iter().flat_map(|claim| bare(&now, claim)).collect(),
        };
        report.violations.extend(found);
        taken += run.len() as u64;
        now.placed.extend(run.iter().filter_map(|claim| placed(&now, claim)).collect::<Vec<_>>());
    }
    report
}

/// What is wrong with a claim that says only the host.
fn bare(now: &Snapshot, claim: &Claim) -> Violations {
    if let Some(host) = &claim.host {
        return verify::violations(now, &claim.vm, host);
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
    let mut found = verify::placement(now, &claim.vm, &nowhere).violations;
    // The claim gives no counts, so none of them can be wrong.
    found.retain(|violation| violation.kind == ViolationKind::HostFits);
    found
}

/// The VM where the claim puts it, so that later claims find it there.
fn placed(now: &Snapshot, claim: &Claim) -> Option<Placed> {
    let id = claim.host.as_ref()?;
    let host = now.hosts.iter().find(|host| host.id == *id)?;
    Some(Placed {
        committed: demand_on(host, &claim.vm),
        vm: Arc::new(claim.vm.clone()),
        host: id.clone(),
        bindings: claim.bindings.clone(),
        over_capacity: false,
        adopted: false,
        held: false,
    })
}

fn show(report: &Report) -> anyhow::Result<()> {
    let paint = Paint::for_stdout();
    let verdict = match report.accepted() {
        true => paint.good("accepted"),
        false => paint.bad("refused"),
    };
    Ok(print(format!("{verdict}: {report}"))?)
}

fn json(report: &Report) -> anyhow::Result<String> {
    let mut value = serde_json::to_value(report)?;
    value["accepted"] = report.accepted().into();
    Ok(value.to_string())
}
