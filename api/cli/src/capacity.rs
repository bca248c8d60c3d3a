//! `novaplace capacity`: what all hosts have, what is promised and what is left.

use crate::client::{Ask, Connection};
use crate::output::{Format, Paint, Table, bar, grouped, percent, print, print_json};
use clap::Args;
use std::process::ExitCode;
use wire::{CapacityView, Quantities};

#[derive(Debug, Args)]
pub(crate) struct Capacity {
    #[command(flatten)]
    connection: Connection,
}

impl Capacity {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let answer = self.connection.open().send(&Ask::get(&["v1", "cluster", "capacity"]))?;
        match self.connection.output {
            Format::Json => print_json(&answer.body)?,
            Format::Table => show(&answer.read()?)?,
        }
        Ok(ExitCode::SUCCESS)
    }
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
