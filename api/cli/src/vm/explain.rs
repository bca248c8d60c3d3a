//! `novaplace vm why-not` and `novaplace vm explain`.

use super::{Body, Demand, placement_in};
use crate::client::{Ask, Connection};
use crate::input;
use crate::output::{Format, Paint, Table, grouped, print, print_json};
use clap::Args;
use cluster::Name;
use serde_json::value::{RawValue, to_raw_value};
use std::path::PathBuf;
use std::process::ExitCode;
use wire::{ComparisonView, CounterfactualView, ExplanationView, ScoreParts};

/// The VM that a question is about: one that is placed, unless it is described.
#[derive(Debug, Args)]
struct Subject {
    /// The VM's id
    #[arg(value_parser = input::name)]
    vm: Name,
    /// The VM's tenant [default: default]
    #[arg(long, value_parser = input::name)]
    tenant: Option<Name>,
    /// A VM as JSON, or a body of POST /v1/placements, that is to get the id; - is standard input
    #[arg(long, conflicts_with_all = super::DEMAND_FLAGS)]
    file: Option<PathBuf>,
    #[command(flatten)]
    demand: Demand,
}

#[derive(Debug, Args)]
pub(super) struct WhyNot {
    #[command(flatten)]
    subject: Subject,
    #[arg(value_parser = input::name)]
    host: Name,
}

#[derive(Debug, Args)]
pub(super) struct Explain {
    #[command(flatten)]
    subject: Subject,
}

impl WhyNot {
    pub(super) fn run(self, connection: &Connection) -> anyhow::Result<ExitCode> {
        self.subject.ask(connection, Some(&self.host))
    }
}

impl Explain {
    pub(super) fn run(self, connection: &Connection) -> anyhow::Result<ExitCode> {
        self.subject.ask(connection, None)
    }
}

impl Subject {
    fn ask(&self, connection: &Connection, host: Option<&Name>) -> anyhow::Result<ExitCode> {
        let mut body = self.body()?;
        if let Some(host) = host {
            body.insert("host_id".into(), to_raw_value(host)?);
        }
        let ask = Ask::post(&["v1", "explain"]).json(serde_json::to_vec(&body)?);
        let answer = connection.open().send(&ask)?;
        let told: ExplanationView = answer.read()?;
        match connection.output {
            Format::Json => print_json(&answer.body)?,
            Format::Table => show(&told)?,
        }
        Ok(ExitCode::from(u8::from(!told.fits)))
    }

    fn body(&self) -> anyhow::Result<Body> {
        let demand = self.demand.given()?;
        let mut vm = match &self.file {
            Some(file) => {
                let body: Body = placement_in(file)?;
                let vm: Option<&Box<RawValue>> = body.get("vm");
                serde_json::from_str(vm.map_or("{}", |vm| vm.get()))?
            }
            None if demand.is_empty() => {
                let mut body = Body::from([("vm_id".into(), to_raw_value(&self.vm)?)]);
                if let Some(tenant) = &self.tenant {
                    body.insert("tenant".into(), to_raw_value(tenant)?);
                }
                return Ok(body);
            }
            None => Body::from([("demand".into(), to_raw_value(&demand)?)]),
        };
        vm.insert("id".into(), to_raw_value(&self.vm)?);
        if let Some(tenant) = &self.tenant {
            vm.insert("tenant".into(), to_raw_value(tenant)?);
        }
        Ok(Body::from([("vm".into(), to_raw_value(&vm)?)]))
    }
}

fn show(told: &ExplanationView) -> anyhow::Result<()> {
    let paint = Paint::for_stdout();
    let vm = paint.bold(&told.vm_id);
    let verdict = if told.fits { paint.good("fits") } else { paint.bad("does not fit") };
    match (&told.host_id, told.hosts_that_fit) {
        (Some(host), _) => print(format!("{vm} {verdict} on {host}"))?,
        (None, fit) => {
            let (fit, all) = (grouped(fit.unwrap_or(0)), grouped(told.hosts_considered));
            print(format!("{vm} {verdict}: {fit} of {all} hosts can take it"))?;
        }
    }
    if !told.obstacles.is_empty() {
        print("")?;
        let mut table = Table::new(&["RULE", "WHAT IS IN THE WAY", "VMS"]);
        for it in &told.obstacles {
            let vms: Vec<&str> = it.vms.iter().map(Name::as_str).collect();
            table.row([it.reason.clone(), it.text.clone(), vms.join(" ")]);
        }
        print(table.painted(paint))?;
    }
    if !told.reasons.is_empty() {
        print("")?;
        let mut table = Table::new(&["RULE", "HOSTS THAT FAIL IT FIRST", "AT ALL", "ALONE"]);
        for it in &told.reasons {
            let counts = [it.first, it.any, it.alone].map(grouped);
            let [first, any, alone] = counts;
            table.row([it.reason.clone(), first, any, alone]);
        }
        print(table.painted(paint))?;
    }
    for it in &told.unknown {
        let label = it.label.as_ref().map_or(String::new(), |label| format!(" of {label}"));
        let hint = it.did_you_mean.as_ref();
        let hint = hint.map_or(String::new(), |near| format!("; did you mean {near}?"));
        print(format!("no host has {} {}{label}{hint}", it.what.replace('_', " "), it.name))?;
    }
    if let Some(found) = &told.counterfactual {
        show_change(found, paint)?;
    }
    if let Some(placed) = &told.placed {
        show_placed(placed, paint)?;
    }
    Ok(())
}

fn show_change(found: &CounterfactualView, paint: Paint) -> anyhow::Result<()> {
    print("")?;
    let minimal = if found.minimal { "" } else { ", though something smaller may do" };
    print(format!("it would fit on {} with{minimal}:", paint.good(&found.host_id)))?;
    for change in &found.changes {
        print(format!("  {}", change.text))?;
    }
    Ok(())
}

fn show_placed(placed: &ComparisonView, paint: Paint) -> anyhow::Result<()> {
    print("")?;
    let (host, decided) = (paint.good(&placed.host.host_id), &placed.decision_id);
    let (Some(other), Some(ahead)) = (&placed.runner_up, &placed.ahead) else {
        print(format!("it is on {host} by decision {decided}; no other host can take it"))?;
        return Ok(());
    };
    print(format!("it is on {host} by decision {decided}; if it were placed now:"))?;
    let (own, next) = (placed.host.host_id.as_str(), other.host_id.as_str());
    let mut table = Table::new(&["PART", own, next, "AHEAD BY"]);
    let columns = [&placed.host.breakdown, &other.breakdown, ahead].map(parts);
    let [one, two, three] = columns;
    for (((part, own), (_, next)), (_, ahead)) in one.into_iter().zip(two).zip(three) {
        table.row([part.into(), grouped(own), grouped(next), grouped(ahead)]);
    }
    let total = [placed.host.score, other.score, placed.host.score - other.score].map(grouped);
    let [own, next, ahead] = total;
    table.row(["score".into(), own, next, ahead]);
    Ok(print(table.painted(paint))?)
}

fn parts(parts: &ScoreParts) -> [(&'static str, i64); 6] {
    [
        ("fit", parts.fit),
        ("affinity", parts.affinity),
        ("load", parts.load),
        ("locality", parts.locality),
        ("cost", parts.cost),
        ("policy", parts.policy),
    ]
}
