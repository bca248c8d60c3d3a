//! `novaplace capacity`: what all hosts have, what is promised and what is left, and how many more
//! VMs fit into that.

use crate::client::{Ask, Connection};
use crate::input;
use crate::output::{Format, Paint, Table, bar, grouped, percent, print, print_json};
use clap::{Args, Subcommand};
use cluster::Name;
use std::process::ExitCode;
use wire::{CapacityView, Quantities, SlotsView};

#[derive(Debug, Args)]
pub(crate) struct Capacity {
    #[command(flatten)]
    connection: Connection,
    #[command(subcommand)]
    verb: Option<Verb>,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// How many more VMs fit, shape by shape and all shapes together, and what is scarce
    Slots(Slots),
}

#[derive(Debug, Args)]
struct Slots {
    /// A shape: cpu_millis:2000,memory_mib:4096, or 3*cpu_millis:2000,... for three of it in each
    /// bundle; repeat for more [default: what the placed VMs ask for]
    #[arg(long = "shape", value_name = "SHAPE")]
    shapes: Vec<String>,
    /// Only hosts of this pool
    #[arg(long, value_parser = input::name)]
    pool: Option<Name>,
}

impl Capacity {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        if let Some(Verb::Slots(slots)) = &self.verb {
            return slots.run(&self.connection);
        }
        let answer = self.connection.open().send(&Ask::get(&["v1", "cluster", "capacity"]))?;
        match self.connection.output {
            Format::Json => print_json(&answer.body)?,
            Format::Table => show(&answer.read()?)?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl Slots {
    fn run(&self, connection: &Connection) -> anyhow::Result<ExitCode> {
        let mut ask = Ask::get(&["v1", "capacity", "slots"]).query("pool", self.pool.as_ref());
        for shape in &self.shapes {
            ask = ask.query("shape", Some(shape));
        }
        let answer = connection.open().send(&ask)?;
        match connection.output {
            Format::Json => print_json(&answer.body)?,
            Format::Table => show_slots(&answer.read()?)?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn show_slots(view: &SlotsView) -> anyhow::Result<()> {
    let paint = Paint::for_stdout();
    let mut table = Table::new(&["SHAPE", "PER BUNDLE", "SLOTS"]);
    for shape in &view.shapes {
        table.row([listed(&shape.demand), grouped(shape.per_bundle), grouped(shape.slots)]);
    }
    if table.is_empty() {
        return Ok(print("no VM is placed to take a shape from; give one with --shape")?);
    }
    print(table.painted(paint))?;
    if view.shapes.len() > 1 {
        let (least, most) = (grouped(view.bundles.at_least), grouped(view.bundles.at_most));
        let told = if view.bundles.exact { least } else { format!("{least} to {most}") };
        print(format!("{} bundles of all shapes fit", paint.bold(told)))?;
    }
    print("")?;
    let mut table = Table::new(&["POOL", "HOSTS OF", "HOSTS", "SCARCE", "BUNDLES PER 1000"]);
    for class in &view.prices {
        let scarce = class.bundles_per_unit_billionths.iter().filter(|(_, price)| **price > 0);
        for (dimension, price) in scarce {
            table.row([
                class.pool.as_ref().map_or("-".into(), Name::to_string),
                class.capacity.as_ref().map_or("others".into(), listed),
                grouped(class.hosts),
                dimension.clone(),
                format!("{}.{:06}", price / 1_000_000, price % 1_000_000),
            ]);
        }
    }
    Ok(print(table.painted(paint))?)
}

/// `cpu_millis:2000 memory_mib:4096`.
fn listed(amounts: &Quantities) -> String {
    let told = amounts.0.iter().map(|(name, amount)| format!("{name}:{amount}"));
    told.collect::<Vec<_>>().join(" ")
}

fn show(view: &CapacityView) -> anyhow::Result<()> {
    let paint = Paint::for_stdout();
    let states: Vec<String> = view
        .hosts_by_state
        .iter()
        .map(|(state, hosts)| format!("{} {state}", grouped(*hosts)))
        .collect();
    let states =
        if states.is_empty() { String::new() } else { format!(" ({})", states.join(", ")) };
    print(format!(
        "{} hosts{states}, {} VMs, revision {}",
        paint.bold(grouped(view.hosts)),
        paint.bold(grouped(view.vms)),
        view.revision
    ))?;
    print("")?;
    let rows = [&view.capacity, &view.allocatable, &view.allocated, &view.free];
    print(by_dimension(rows).painted(paint))?;
    for pool in &view.pools {
        print("")?;
        print(format!(
            "pool {}: {} hosts, {} VMs",
            paint.bold(&pool.pool),
            grouped(pool.hosts),
            grouped(pool.vms)
        ))?;
        let rows = [&pool.capacity, &pool.allocatable, &pool.allocated, &pool.free];
        print(by_dimension(rows).painted(paint))?;
    }
    Ok(())
}

/// Capacity, allocatable, allocated and free, one dimension a row.
pub(crate) fn by_dimension(rows: [&Quantities; 4]) -> Table {
    let [capacity, allocatable, allocated, free] = rows;
    let mut table =
        Table::new(&["DIMENSION", "CAPACITY", "ALLOCATABLE", "ALLOCATED", "FREE", "FULL"]);
    for (dimension, amount) in &capacity.0 {
        let (taken, room) = (allocated.get(dimension), allocatable.get(dimension));
        table.row([
            dimension.clone(),
            grouped(*amount),
            grouped(room),
            grouped(taken),
            grouped(free.get(dimension)),
            format!("{:>7} {}", percent(taken, room), bar(taken, room, 20)),
        ]);
    }
    table
}
