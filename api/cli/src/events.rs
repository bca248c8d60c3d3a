//! `novaplace events`: what happens in the cluster, as it happens.

use crate::client::{Ask, Client, ClientError, Connection};
use crate::output::{Format, Paint, print};
use anyhow::Context;
use clap::Args;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::process::ExitCode;
use std::time::Duration;
use wire::Event;

/// One question of a follower waits this long for something to happen.
const WAIT: &str = "20s";
/// Before asking again where nobody answers.
const PAUSE: Duration = Duration::from_secs(1);

#[derive(Debug, Args)]
pub(crate) struct Events {
    #[command(flatten)]
    connection: Connection,
    /// Only what happened after this revision [default: from now on]
    #[arg(long, value_name = "REVISION", required_unless_present = "follow")]
    since: Option<u64>,
    /// Go on with what happens next, until interrupted
    #[arg(long)]
    follow: bool,
}

#[derive(Debug, Deserialize)]
struct Told {
    events: Vec<Box<RawValue>>,
    revision: u64,
}

impl Events {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let client = self.connection.open();
        let told = page(&client, self.since, "0s")?;
        self.show(&told)?;
        let mut since = told.revision;
        if !self.follow {
            return Ok(ExitCode::SUCCESS);
        }
        loop {
            match page(&client, Some(since), WAIT) {
                Ok(told) => {
                    self.show(&told)?;
                    since = told.revision;
                }
                // The service may be restarting.
                Err(error) if is_passing(&error) => {
                    eprintln!("novaplace: {error:#}; asking again");
                    std::thread::sleep(PAUSE);
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn show(&self, told: &Told) -> anyhow::Result<()> {
        let paint = Paint::for_stdout();
        for event in &told.events {
            match self.connection.output {
                Format::Json => print(event.get())?,
                Format::Table => {
                    let event = serde_json::from_str(event.get());
                    print(line(&event.context("the event cannot be read")?, paint))?;
                }
            }
        }
        Ok(())
    }
}

fn page(client: &Client, since: Option<u64>, wait: &str) -> anyhow::Result<Told> {
    let ask = Ask::get(&["v1", "events"]).query("wait", Some(wait)).query("since", since);
    client.send(&ask)?.read()
}

fn is_passing(error: &anyhow::Error) -> bool {
    match error.downcast_ref() {
        Some(ClientError::Unreachable { .. }) => true,
        Some(ClientError::Refused(problem)) => problem.status == 503,
        _ => false,
    }
}

fn line(event: &Event, paint: Paint) -> String {
    let mut words = vec![format!("{:>8}", event.revision), paint.bold(&event.kind)];
    match (&event.tenant, &event.vm_id) {
        (Some(tenant), Some(vm)) => words.push(format!("vm {tenant}/{vm}")),
        (None, Some(vm)) => words.push(format!("vm {vm}")),
        _ => {}
    }
    words.extend(event.host_id.as_ref().map(|host| format!("host {host}")));
    words.extend(event.decision_id.as_ref().map(|id| paint.faint(id)));
    words.extend(event.reservation_id.as_ref().map(|id| paint.faint(id)));
    words.join("  ")
}
