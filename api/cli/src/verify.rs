//! `novaplace verify`: a second opinion on decisions, ours or another scheduler's, from files
//! alone.

use crate::input;
use crate::output::{Format, Paint, print};
use anyhow::{Context, bail};
use clap::Args;
use cluster::Dimensions;
use policy::ActiveSet;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use verify::Certificate;
use wire::Limits;
use wire::certify::Document;

#[derive(Debug, Args)]
pub(crate) struct Verify {
    /// A document with `snapshot`, `decisions` and `waves`; - is standard input
    #[arg(required_unless_present = "snapshot", conflicts_with_all = ["snapshot", "plan"])]
    file: Option<PathBuf>,
    /// A snapshot of a cluster
    #[arg(long, value_name = "FILE", requires = "plan")]
    snapshot: Option<PathBuf>,
    /// What is decided or planned on it: a JSON array of decisions in the order in which they were
    /// taken, or an object with `decisions` and `waves`
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
        let Document { snapshot, decisions, plan } = document;
        let snapshot = snapshot.context("the document has no field \"snapshot\"")?;
        // Policies are no part of a snapshot; a service that has some is asked by POST /v1/validate.
        let report = verify::certificate(snapshot, &decisions, &plan, &ActiveSet::default());
        match self.output {
            Format::Json => print(json(&report)?)?,
            Format::Table => show(&report)?,
        }
        Ok(ExitCode::from(u8::from(!report.accepted())))
    }
}

/// One document of two files. A plan is an array of decisions, or an object.
fn joined(snapshot: &Path, plan: &Path) -> anyhow::Result<Vec<u8>> {
    let whole = |text| serde_json::from_str::<BTreeMap<String, Box<RawValue>>>(text);
    let (snapshot, proposed) = (input::document(snapshot)?, input::document(plan)?);
    let mut parts = match whole(proposed.get()) {
        Ok(fields) if !fields.contains_key("decisions") && !fields.contains_key("waves") => {
            bail!("{} has neither a field \"decisions\" nor \"waves\"", plan.display());
        }
        Ok(mut fields) => {
            fields.retain(|name, _| name == "decisions" || name == "waves");
            fields
        }
        Err(_) => BTreeMap::from([("decisions".into(), proposed)]),
    };
    parts.insert("snapshot".into(), snapshot);
    Ok(serde_json::to_vec(&parts)?)
}

fn show(report: &Certificate) -> anyhow::Result<()> {
    let paint = Paint::for_stdout();
    let verdict = match report.accepted() {
        true => paint.good("accepted"),
        false => paint.bad("refused"),
    };
    Ok(print(format!("{verdict}: {report}"))?)
}

fn json(report: &Certificate) -> anyhow::Result<String> {
    let mut value = serde_json::to_value(report)?;
    value["accepted"] = report.accepted().into();
    Ok(value.to_string())
}
