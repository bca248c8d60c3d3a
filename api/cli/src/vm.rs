//! `novaplace vm`: place, hold, look at, resize and release VMs, take in running ones, and ask why.

mod explain;

use crate::client::{Ask, Connection};
use crate::output::{Format, Paint, Table, Usage, grouped, print, print_json};
use crate::{bulk, input, placement};
use anyhow::Context;
use clap::{Args, Subcommand};
use cluster::{Name, Strategy};
use serde_json::value::{RawValue, to_raw_value};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use wire::{AdoptRequest, Choice, Quantities, ResizeAnswer, ResizeOutcome, VmView};

#[derive(Debug, Args)]
pub(crate) struct Vm {
    #[command(flatten)]
    connection: Connection,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Find a host for a VM and commit it there; exit code 1 if no host can take it
    Place(Place),
    /// Make a held place final
    Confirm(Target),
    /// Remove a VM and give its capacity back
    Release(Target),
    /// Show one VM
    Get(Target),
    /// List VMs
    List(List),
    /// Take in VMs that run already, whether or not they fit
    Adopt(Adopt),
    /// Resize a VM where it is; exit code 1 if it does not fit there
    Resize(Resize),
    /// Say what keeps a VM off a host, and what would help; exit code 1 if it is kept off
    WhyNot(explain::WhyNot),
    /// Say what keeps a VM off hosts, what would help, and why a placed VM is where it is; exit
    /// code 1 if no host can take it
    Explain(explain::Explain),
}

/// What a VM asks for.
#[derive(Clone, Debug, Args)]
struct Demand {
    #[arg(long, value_name = "MILLIS")]
    cpu_millis: Option<u64>,
    #[arg(long, value_name = "MIB")]
    memory_mib: Option<u64>,
    #[arg(long, value_name = "GIB")]
    disk_gib: Option<u64>,
    #[arg(long, value_name = "IOPS")]
    disk_iops: Option<u64>,
    #[arg(long, value_name = "MBPS")]
    net_mbps: Option<u64>,
    /// Any dimension, by its name; repeat for more
    #[arg(long = "dimension", value_name = "NAME=AMOUNT", value_parser = input::amount)]
    dimensions: Vec<(String, u64)>,
}

/// A VM that is described by flags.
#[derive(Clone, Debug, Args)]
struct Described {
    /// The VM's id, unique within its tenant
    #[arg(value_parser = input::name, required_unless_present = "file", conflicts_with = "file")]
    id: Option<Name>,
    #[arg(long, value_parser = input::name, conflicts_with = "file")]
    tenant: Option<Name>,
    /// Only hosts of this pool
    #[arg(long, value_parser = input::name, conflicts_with = "file")]
    pool: Option<Name>,
    /// A group to be a member of; repeat for more
    #[arg(long = "group", value_parser = input::name, conflicts_with = "file")]
    groups: Vec<Name>,
    #[command(flatten)]
    demand: Demand,
}

#[derive(Debug, Args)]
struct Place {
    #[command(flatten)]
    vm: Described,
    /// A VM as JSON, or a whole body of POST /v1/placements, instead of flags; - is standard input
    #[arg(long, conflicts_with_all = DEMAND_FLAGS)]
    file: Option<PathBuf>,
    /// How to choose among the hosts that can take the VM [default: the policy's]
    #[arg(long, value_parser = strategy)]
    strategy: Option<Strategy>,
    /// Only hold the place, and give it back after this time unless it is confirmed
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u64).range(1_000..=3_600_000))]
    hold_ttl_ms: Option<u64>,
    /// Say what would happen, and do nothing
    #[arg(long)]
    dry_run: bool,
}

#[derive(Debug, Args)]
struct Target {
    #[arg(value_parser = input::name)]
    id: Name,
    /// The VM's tenant [default: default]
    #[arg(long, value_parser = input::name)]
    tenant: Option<Name>,
    /// Say what would happen, and do nothing
    #[arg(long)]
    dry_run: bool,
}

#[derive(Debug, Args)]
struct List {
    /// Only VMs of this tenant
    #[arg(long, value_parser = input::name)]
    tenant: Option<Name>,
    /// Only VMs on this host
    #[arg(long, value_parser = input::name)]
    host: Option<Name>,
    /// At most this many [default: all]
    #[arg(long, value_name = "VMS")]
    limit: Option<usize>,
}

#[derive(Debug, Args)]
struct Adopt {
    #[command(flatten)]
    vm: Described,
    /// The host that it runs on
    #[arg(long, value_parser = input::name, required_unless_present = "file", conflicts_with = "file")]
    host: Option<Name>,
    /// VMs as JSON with their host_id, on lines or in an array, instead of flags; - is standard
    /// input
    #[arg(long, conflicts_with_all = DEMAND_FLAGS)]
    file: Option<PathBuf>,
    /// Say what would happen, and do nothing
    #[arg(long)]
    dry_run: bool,
}

#[derive(Debug, Args)]
struct Resize {
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    demand: Demand,
}

const DEMAND_FLAGS: [&str; 6] =
    ["cpu_millis", "memory_mib", "disk_gib", "disk_iops", "net_mbps", "dimensions"];

impl Vm {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let Vm { connection, verb } = self;
        match verb {
            Verb::Place(place) => place.run(&connection),
            Verb::Confirm(target) => target.confirm(&connection),
            Verb::Release(target) => target.release(&connection),
            Verb::Get(target) => target.get(&connection),
            Verb::List(list) => list.run(&connection),
            Verb::Adopt(adopt) => adopt.run(&connection),
            Verb::Resize(resize) => resize.run(&connection),
            Verb::WhyNot(why_not) => why_not.run(&connection),
            Verb::Explain(explain) => explain.run(&connection),
        }
    }
}

type Body = BTreeMap<String, Box<RawValue>>;

impl Demand {
    /// The amounts that were given, each dimension once; at least one.
    fn amounts(&self) -> anyhow::Result<BTreeMap<String, u64>> {
        let amounts = self.given()?;
        if amounts.is_empty() {
            let said =
                "say how much is needed: --cpu-millis, --memory-mib, --dimension NAME=AMOUNT";
            return Err(Usage(said.into()).into());
        }
        Ok(amounts)
    }

    /// The amounts that were given, each dimension once.
    fn given(&self) -> anyhow::Result<BTreeMap<String, u64>> {
        let named =
            [self.cpu_millis, self.memory_mib, self.disk_gib, self.disk_iops, self.net_mbps];
        let named = DEMAND_FLAGS.iter().zip(named);
        let named = named.filter_map(|(name, amount)| Some(((*name).to_owned(), amount?)));
        let mut amounts = BTreeMap::new();
        for (name, amount) in named.chain(self.dimensions.iter().cloned()) {
            if amounts.insert(name.clone(), amount).is_some() {
                return Err(Usage(format!("{name} is given twice")).into());
            }
        }
        Ok(amounts)
    }
}

impl Described {
    fn body(&self) -> anyhow::Result<Body> {
        let mut body = Body::new();
        for (field, value) in [("id", &self.id), ("tenant", &self.tenant), ("pool", &self.pool)] {
            if let Some(value) = value {
                body.insert(field.into(), to_raw_value(value)?);
            }
        }
        if !self.groups.is_empty() {
            body.insert("groups".into(), to_raw_value(&self.groups)?);
        }
        body.insert("demand".into(), to_raw_value(&self.demand.amounts()?)?);
        Ok(body)
    }
}

impl Place {
    fn run(self, connection: &Connection) -> anyhow::Result<ExitCode> {
        let mut body = match &self.file {
            Some(file) => placement_in(file)?,
            None => Body::from([("vm".into(), to_raw_value(&self.vm.body()?)?)]),
        };
        if let Some(strategy) = self.strategy {
            body.insert("strategy".into(), to_raw_value(strategy.word())?);
        }
        if let Some(hold_ttl_ms) = self.hold_ttl_ms {
            body.insert("hold_ttl_ms".into(), to_raw_value(&hold_ttl_ms)?);
        }
        let ask = Ask::post(&["v1", "placements"]).dry_run(self.dry_run);
        let answer = connection.open().send(&ask.json(serde_json::to_vec(&body)?))?;
        let decided: wire::PlacementAnswer = answer.read()?;
        if connection.output == Format::Json {
            print_json(&answer.body)?;
            return Ok(ExitCode::from(u8::from(decided.host_id.is_none())));
        }
        placement::show(&decided, self.dry_run)
    }
}

/// The body of a placement in a file, which may also be the VM alone.
fn placement_in(file: &Path) -> anyhow::Result<Body> {
    let document = input::document(file)?;
    let body: Body = serde_json::from_str(document.get())
        .with_context(|| format!("{} is not a JSON object", file.display()))?;
    Ok(if body.contains_key("vm") { body } else { Body::from([("vm".into(), document)]) })
}

impl Target {
    fn ask(&self, ask: fn(&[&str]) -> Ask) -> Ask {
        ask(&["v1", "vms", self.id.as_str()])
            .query("tenant", self.tenant.as_ref())
            .dry_run(self.dry_run)
    }

    fn get(&self, connection: &Connection) -> anyhow::Result<ExitCode> {
        let answer = connection.open().send(&self.ask(Ask::get))?;
        match connection.output {
            Format::Json => print_json(&answer.body)?,
            Format::Table => show(&answer.read()?)?,
        }
        Ok(ExitCode::SUCCESS)
    }

    fn release(&self, connection: &Connection) -> anyhow::Result<ExitCode> {
        connection.open().send(&self.ask(Ask::delete))?;
        if connection.output == Format::Table {
            let would = if self.dry_run { "would be " } else { "" };
            print(format!("{} {would}released", self.id))?;
        }
        Ok(ExitCode::SUCCESS)
    }

    fn confirm(&self, connection: &Connection) -> anyhow::Result<ExitCode> {
        let client = connection.open();
        let view: VmView = client.send(&self.ask(Ask::get))?.read()?;
        let Some(reservation) = view.reservation_id else {
            print(format!("{} is on {} for good already", self.id, view.host_id))?;
            return Ok(ExitCode::SUCCESS);
        };
        let ask = Ask::post(&["v1", "reservations", &reservation, "confirm"]).dry_run(self.dry_run);
        let answer = client.send(&ask)?;
        match connection.output {
            Format::Json => print_json(&answer.body)?,
            Format::Table => {
                let stays = if self.dry_run { "would stay" } else { "stays" };
                print(format!("{} {stays} on {}", self.id, view.host_id))?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl List {
    fn run(self, connection: &Connection) -> anyhow::Result<ExitCode> {
        let ask = Ask::get(&["v1", "vms"]).query("tenant", self.tenant).query("host_id", self.host);
        let listed = connection.open().list::<VmView>(&ask, self.limit)?;
        if connection.output == Format::Json {
            print(listed.json())?;
            return Ok(ExitCode::SUCCESS);
        }
        let mut table = Table::new(&["TENANT", "VM", "HOST", "CPU", "MEMORY", "IS"]);
        for view in listed.items()? {
            table.row([
                view.spec.tenant.to_string(),
                view.spec.id.to_string(),
                view.host_id.to_string(),
                grouped(view.committed.get("cpu_millis")),
                grouped(view.committed.get("memory_mib")),
                standing(&view),
            ]);
        }
        match table.is_empty() {
            true => print("no VMs")?,
            false => print(table.painted(Paint::for_stdout()))?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl Adopt {
    fn run(self, connection: &Connection) -> anyhow::Result<ExitCode> {
        if let Some(file) = &self.file {
            return bulk::load::<AdoptRequest>(connection, "vms:bulk", "VMs", file, self.dry_run);
        }
        let mut body = self.vm.body()?;
        if let Some(host) = &self.host {
            body.insert("host_id".into(), to_raw_value(host)?);
        }
        let ask = Ask::post(&["v1", "vms"]).dry_run(self.dry_run);
        let answer = connection.open().send(&ask.json(serde_json::to_vec(&body)?))?;
        match connection.output {
            Format::Json => print_json(&answer.body)?,
            Format::Table => show(&answer.read()?)?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl Resize {
    fn run(self, connection: &Connection) -> anyhow::Result<ExitCode> {
        let demand = self.demand.amounts()?;
        let body = serde_json::to_vec(&BTreeMap::from([("demand", demand)]))?;
        let answer = connection.open().send(&self.target.ask(Ask::patch).json(body))?;
        let resized: ResizeAnswer = answer.read()?;
        let done = resized.outcome.0 == ResizeOutcome::Resized;
        match (connection.output, done) {
            (Format::Json, _) => print_json(&answer.body)?,
            (Format::Table, true) => {
                let would = if self.target.dry_run { "would have" } else { "has" };
                let (id, host) = (&resized.vm_id, &resized.host_id);
                print(format!("{id} {would} {} on {host}", listed(&resized.demand)))?;
            }
            (Format::Table, false) => {
                let (id, host, lacks) = (&resized.vm_id, &resized.host_id, &resized.shortfall);
                let bad = Paint::for_stdout().bad("does not fit");
                print(format!("{id} {bad} on {host}, which lacks {}", listed(lacks)))?;
                print(format!("it keeps {}", listed(&resized.demand)))?;
                let hosts = resized.alternatives.iter().map(|it| it.host_id.as_str());
                let hosts: Vec<&str> = hosts.collect();
                print(match hosts.as_slice() {
                    [] => "no other host could take it at that size".to_owned(),
                    hosts => format!("it would fit on {}", hosts.join(", ")),
                })?;
            }
        }
        Ok(ExitCode::from(u8::from(!done)))
    }
}

fn show(view: &VmView) -> anyhow::Result<()> {
    let paint = Paint::for_stdout();
    let spec = &view.spec;
    let vm = format!("{}/{}", spec.tenant, spec.id);
    print(format!("{} on {}, {}", paint.bold(vm), paint.good(&view.host_id), standing(view)))?;
    print(paint.faint(format!("generation {}, revision {}", view.generation, view.revision)))?;
    print("")?;
    let mut table = Table::new(&["DIMENSION", "DEMAND", "COMMITTED"]);
    for (dimension, committed) in &view.committed.0 {
        table.row([dimension.clone(), grouped(spec.demand.get(dimension)), grouped(*committed)]);
    }
    Ok(print(table.painted(paint))?)
}

fn standing(view: &VmView) -> String {
    let mut words = Vec::new();
    match &view.reservation_id {
        Some(reservation) => words.push(format!("held by {reservation}")),
        None => words.push(if view.adopted { "adopted" } else { "placed" }.to_owned()),
    }
    if view.over_capacity {
        words.push("over capacity".into());
    }
    words.join(", ")
}

/// `2,000 cpu_millis and 4,096 memory_mib`.
fn listed(amounts: &Quantities) -> String {
    let told: Vec<String> =
        amounts.0.iter().map(|(name, amount)| format!("{} {name}", grouped(*amount))).collect();
    told.join(" and ")
}

fn strategy(word: &str) -> Result<Strategy, String> {
    Strategy::from_word(word).ok_or_else(|| {
        let words: Vec<&str> = Strategy::WORDS.iter().map(|(word, _)| *word).collect();
        format!("it must be one of {}", words.join(", "))
    })
}
