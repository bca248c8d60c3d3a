//! `novaplace host`: the machines that VMs run on.

use crate::capacity;
use crate::client::{Ask, Connection};
use crate::output::{Format, Paint, Table, bar, grouped, percent, print, print_json};
use crate::{bulk, input};
use clap::{Args, Subcommand};
use cluster::{Host as HostNoun, HostState, Name};
use std::path::PathBuf;
use std::process::ExitCode;
use wire::{Choice, HostHealth, HostView};

#[derive(Debug, Args)]
pub(crate) struct Host {
    #[command(flatten)]
    connection: Connection,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// List hosts with what is free on them
    List(List),
    /// Show one host
    Get {
        #[arg(value_parser = input::name)]
        id: Name,
    },
    /// Register or replace the hosts of a file: JSON documents on lines or in an array
    Import {
        /// The file; - is standard input
        file: PathBuf,
        /// Say what would happen, and do nothing
        #[arg(long)]
        dry_run: bool,
    },
    /// Let a host take no new VMs
    Cordon(Change),
    /// Let a host take VMs again
    Uncordon(Change),
}

#[derive(Debug, Args)]
struct List {
    /// Only hosts of this pool
    #[arg(long, value_parser = input::name)]
    pool: Option<Name>,
    /// Only hosts of this zone
    #[arg(long, value_parser = input::name)]
    zone: Option<Name>,
    /// Only hosts in this state, as their operator set it
    #[arg(long, value_parser = state)]
    state: Option<HostState>,
    /// At most this many [default: all]
    #[arg(long, value_name = "HOSTS")]
    limit: Option<usize>,
}

#[derive(Debug, Args)]
struct Change {
    #[arg(value_parser = input::name)]
    id: Name,
    /// Say what would happen, and do nothing
    #[arg(long)]
    dry_run: bool,
}

impl Host {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let Host { connection, verb } = self;
        match verb {
            Verb::List(list) => list.run(&connection)?,
            Verb::Get { id } => show(&connection, &Ask::get(&["v1", "hosts", id.as_str()]))?,
            Verb::Import { file, dry_run } => {
                return bulk::load::<HostNoun>(&connection, "hosts:bulk", "hosts", &file, dry_run);
            }
            Verb::Cordon(change) => change.run(&connection, "cordon")?,
            Verb::Uncordon(change) => change.run(&connection, "uncordon")?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl List {
    fn run(self, connection: &Connection) -> anyhow::Result<()> {
        let ask = Ask::get(&["v1", "hosts"])
            .query("pool", self.pool)
            .query("zone", self.zone)
            .query("state", self.state.map(Choice::word));
        let listed = connection.open().list::<HostView>(&ask, self.limit)?;
        if connection.output == Format::Json {
            return Ok(print(listed.json())?);
        }
        let mut table = Table::new(&[
            "HOST",
            "STATE",
            "POOL",
            "ZONE",
            "RACK",
            "VMS",
            "CPU FREE",
            "MEMORY FREE",
            "FULL",
        ]);
        for view in listed.items()? {
            table.row(row(&view));
        }
        match table.is_empty() {
            true => print("no hosts")?,
            false => print(table.painted(Paint::for_stdout()))?,
        }
        Ok(())
    }
}

impl Change {
    fn run(self, connection: &Connection, verb: &str) -> anyhow::Result<()> {
        let ask = Ask::post(&["v1", "hosts", self.id.as_str(), verb]).dry_run(self.dry_run);
        let answer = connection.open().send(&ask)?;
        if connection.output == Format::Json {
            return Ok(print_json(&answer.body)?);
        }
        let view: HostView = answer.read()?;
        let is = if self.dry_run { "would be" } else { "is" };
        Ok(print(format!("{} {is} {}", view.spec.id, state_of(&view)))?)
    }
}

fn show(connection: &Connection, ask: &Ask) -> anyhow::Result<()> {
    let answer = connection.open().send(ask)?;
    if connection.output == Format::Json {
        return Ok(print_json(&answer.body)?);
    }
    let view: HostView = answer.read()?;
    let paint = Paint::for_stdout();
    let spec = &view.spec;
    print(format!("{}  {}", paint.bold(&spec.id), state_of(&view)))?;
    let place = [&spec.region, &spec.zone, &spec.rack].map(|name| text(name.as_ref()));
    print(format!("region {}, zone {}, rack {}", place[0], place[1], place[2]))?;
    print(format!("pool {}, {} VMs", text(spec.pool.as_ref()), grouped(view.vm_count)))?;
    print(paint.faint(format!("generation {}, revision {}", view.generation, view.revision)))?;
    print("")?;
    let rows = [&spec.capacity, &view.allocatable, &view.allocated, &view.free];
    Ok(print(capacity::by_dimension(rows).painted(paint))?)
}

fn row(view: &HostView) -> [String; 9] {
    let spec = &view.spec;
    let fullest = view.allocatable.0.iter().map(|(dimension, room)| {
        let taken = view.allocated.get(dimension);
        (u128::from(taken) * 1000 / u128::from((*room).max(1)), taken, *room)
    });
    let (_, taken, room) = fullest.max().unwrap_or_default();
    [
        spec.id.to_string(),
        state_of(view),
        text(spec.pool.as_ref()),
        text(spec.zone.as_ref()),
        text(spec.rack.as_ref()),
        grouped(view.vm_count),
        grouped(view.free.get("cpu_millis")),
        grouped(view.free.get("memory_mib")),
        format!("{:>7} {}", percent(taken, room), bar(taken, room, 10)),
    ]
}

/// The operator's word, and what the heartbeats say if that is worse.
fn state_of(view: &HostView) -> String {
    let state = view.spec.state.0.word();
    match view.health.0 {
        HostHealth::Healthy => state.to_owned(),
        health => format!("{state}, {}", health.word()),
    }
}

fn text(name: Option<&Name>) -> String {
    name.map_or_else(|| "-".to_owned(), ToString::to_string)
}

fn state(word: &str) -> Result<HostState, String> {
    HostState::from_word(word).ok_or_else(|| {
        let words: Vec<&str> = HostState::WORDS.iter().map(|(word, _)| *word).collect();
        format!("it must be one of {}", words.join(", "))
    })
}
