//! `novaplace import novacron`: pulls the nodes of a NovaCron runtime and pushes them as inventory.
//!
//! The first push is the whole inventory, later ones are what has changed; when the service says
//! that it is not where the push builds on, the whole is sent again. Generations are the time of
//! the pull, so that they go on counting up when the importer is started again.

use crate::client::{Ask, Client, ClientError, Connection, base_url};
use crate::output::{Format, Paint, print};
use crate::serve::now_ms;
use anyhow::{Context, anyhow};
use clap::{Args, Subcommand};
use serde::Serialize;
use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};
use wire::Limits;
use wire::novacron::{Inventory, InventoryDelta, NodeResourceInfo, RuntimeNode};

/// Faults told of one pull.
const FAULTS_SHOWN: usize = 20;

#[derive(Debug, Args)]
pub(crate) struct Import {
    #[command(flatten)]
    connection: Connection,
    #[command(subcommand)]
    from: From,
}

#[derive(Debug, Subcommand)]
enum From {
    /// Nodes of a NovaCron runtime, from its /api/cluster/nodes
    Novacron(Novacron),
}

#[derive(Debug, Args)]
struct Novacron {
    /// Where the runtime answers
    #[arg(long, value_name = "URL", value_parser = base_url)]
    url: String,
    /// Pull again and again with this pause, such as 30s; left out: once
    #[arg(long, value_name = "PAUSE", value_parser = pause)]
    interval: Option<Duration>,
    /// With --interval: stop after this many pulls [default: never]
    #[arg(long, value_name = "PULLS", requires = "interval")]
    rounds: Option<u64>,
}

/// `30s`, `500ms`, `5m` or `1h`, from 100 ms to a day.
fn pause(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let number: u64 = digits.parse().map_err(|_| "it must be a number and ms, s, m or h")?;
    let millis = match &text[digits.len()..] {
        "ms" => Some(number),
        "s" => number.checked_mul(1_000),
        "m" => number.checked_mul(60_000),
        "h" => number.checked_mul(3_600_000),
        _ => None,
    };
    match millis {
        Some(millis @ 100..=86_400_000) => Ok(Duration::from_millis(millis)),
        _ => Err("it must be from 100ms to 24h, in ms, s, m or h".into()),
    }
}

/// What became of one pull.
#[derive(Debug, Default, PartialEq, Serialize)]
struct Round {
    generation: u64,
    nodes: usize,
    /// The whole inventory was sent, not only what has changed.
    full: bool,
    upserted: usize,
    removed: usize,
    /// Nodes that make no sense, and why. They are left out.
    refused: Vec<String>,
}

impl Import {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let From::Novacron(from) = &self.from;
        let source = self.connection.open_at(&from.url);
        let mut sync = Sync { service: self.connection.open(), pushed: None };
        let mut refused = false;
        let rounds = if from.interval.is_some() { from.rounds.unwrap_or(u64::MAX) } else { 1 };
        for round in 0..rounds {
            let started = Instant::now();
            match pull(&source, &from.url).and_then(|nodes| sync.push(nodes, now_ms())) {
                Ok(done) => {
                    refused = !done.refused.is_empty();
                    self.show(&done)?;
                }
                // A runtime that restarts is back at the next round; a single pull has no next.
                Err(error) if from.interval.is_some() && round + 1 < rounds => {
                    eprintln!("novaplace: {error:#}");
                }
                Err(error) => return Err(error),
            }
            if let Some(interval) = from.interval.filter(|_| round + 1 < rounds) {
                std::thread::sleep(interval.saturating_sub(started.elapsed()));
            }
        }
        Ok(ExitCode::from(u8::from(refused)))
    }

    fn show(&self, round: &Round) -> anyhow::Result<()> {
        if self.connection.output == Format::Json {
            return Ok(print(serde_json::to_string(round)?)?);
        }
        let paint = Paint::for_stdout();
        let how = if round.full { "all sent" } else { "changes sent" };
        print(format!(
            "{} nodes {}: {} new or changed, {} gone, {how}, generation {}",
            round.nodes,
            paint.good("in sync"),
            round.upserted,
            round.removed,
            round.generation
        ))?;
        if !round.refused.is_empty() {
            print(format!("{} nodes {}", round.refused.len(), paint.bad("left out")))?;
        }
        for fault in round.refused.iter().take(FAULTS_SHOWN) {
            print(format!("  {fault}"))?;
        }
        let untold = round.refused.len().saturating_sub(FAULTS_SHOWN);
        if untold > 0 {
            print(format!("  and {untold} more"))?;
        }
        Ok(())
    }
}

fn pull(source: &Client, url: &str) -> anyhow::Result<Vec<RuntimeNode>> {
    let answer = source.send(&Ask::get(&["api", "cluster", "nodes"])).map_err(|error| {
        let why = match error {
            ClientError::Unreachable { reason, .. } => format!("cannot be reached: {reason}"),
            ClientError::Foreign { status, .. } => format!("answered {status}"),
            ClientError::Refused(problem) => problem.detail,
        };
        anyhow!("NovaCron at {url}: {why}")
    })?;
    let limits = Limits::novacron(Arc::default());
    wire::read(&answer.body, &limits).map_err(|faults| {
        let told = faults.first().map(ToString::to_string).unwrap_or_default();
        anyhow!("NovaCron at {url} sent a list of nodes that cannot be read: {told}")
    })
}

/// The service, and what it was told last.
struct Sync {
    service: Client,
    pushed: Option<Pushed>,
}

struct Pushed {
    generation: u64,
    nodes: BTreeMap<String, NodeResourceInfo>,
}

impl Sync {
    fn push(&mut self, nodes: Vec<RuntimeNode>, now_ms: u64) -> anyhow::Result<Round> {
        let (nodes, refused) = sensible(nodes);
        let last = self.pushed.as_ref().map_or(0, |pushed| pushed.generation);
        let generation = now_ms.max(last + 1);
        let mut round = Round { generation, nodes: nodes.len(), refused, ..Round::default() };
        let delta = self.pushed.as_ref().map(|pushed| changes(pushed, &nodes, generation));
        // Until it is known to have arrived, nobody knows what the service has.
        self.pushed = None;
        let sent = match delta {
            Some(delta) => {
                round.upserted = delta.upsert.as_ref().map_or(0, Vec::len);
                round.removed = delta.remove.as_ref().map_or(0, Vec::len);
                let ask = Ask::patch(&["scheduler", "inventory"]).json(serde_json::to_vec(&delta)?);
                match self.service.send(&ask) {
                    Err(ClientError::Refused(problem)) if problem.status == 409 => false,
                    other => other.map(|_| true).context("the changes were not taken")?,
                }
            }
            None => false,
        };
        if !sent {
            round.full = true;
            round.upserted = nodes.len();
            round.removed = 0;
            let all = Some(nodes.values().cloned().collect());
            // No time: this machine's clock is not the one that NovaCron stamps its events with.
            let inventory = Inventory { generation, nodes: all, ..Inventory::default() };
            let ask = Ask::put(&["scheduler", "inventory"]).json(serde_json::to_vec(&inventory)?);
            self.service.send(&ask).context("the inventory was not taken")?;
        }
        self.pushed = Some(Pushed { generation, nodes });
        Ok(round)
    }
}

/// The nodes that stand for hosts, by id, and what is wrong with the others.
fn sensible(nodes: Vec<RuntimeNode>) -> (BTreeMap<String, NodeResourceInfo>, Vec<String>) {
    let mut good = BTreeMap::new();
    let mut refused = Vec::new();
    for node in nodes {
        let info = node.to_info();
        let fault = info.to_host().err().or_else(|| info.used().err());
        match fault {
            Some(fault) => refused.push(format!("{:?}: {fault}", info.node_id)),
            None if good.contains_key(&info.node_id) => {
                refused.push(format!("{:?}: it is in the list twice", info.node_id));
            }
            None => {
                good.insert(info.node_id.clone(), info);
            }
        }
    }
    (good, refused)
}

fn changes(
    pushed: &Pushed,
    nodes: &BTreeMap<String, NodeResourceInfo>,
    generation: u64,
) -> InventoryDelta {
    let changed = nodes.iter().filter(|(id, node)| pushed.nodes.get(*id) != Some(node));
    let gone = pushed.nodes.keys().filter(|id| !nodes.contains_key(*id));
    InventoryDelta {
        base_generation: pushed.generation,
        generation: Some(generation),
        upsert: Some(changed.map(|(_, node)| node.clone()).collect()),
        remove: Some(gone.cloned().collect()),
        ..InventoryDelta::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_have_a_unit_and_a_sensible_length() {
        assert_eq!(pause("30s"), Ok(Duration::from_secs(30)));
        assert_eq!(pause("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(pause("2m"), Ok(Duration::from_secs(120)));
        for wrong in ["", "30", "s", "1ms", "25h", "-1s", "1d", "99999999999999999999s", "3 s"] {
            assert!(pause(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn only_changes_are_sent_after_the_first_time() {
        let node = |id: &str, cpu: i64| {
            let cpu = RuntimeNode { cpu, ..RuntimeNode::default() };
            RuntimeNode { id: id.into(), schedulable: true, ..cpu }
        };
        let (before, _) = sensible(vec![node("a", 1), node("b", 1), node("c", 1)]);
        let (after, _) = sensible(vec![node("a", 1), node("b", 2), node("d", 1)]);
        let delta = changes(&Pushed { generation: 7, nodes: before }, &after, 9);
        let ids = |nodes: Option<Vec<NodeResourceInfo>>| -> Vec<String> {
            nodes.into_iter().flatten().map(|node| node.node_id).collect()
        };
        assert_eq!((delta.base_generation, delta.generation), (7, Some(9)));
        assert_eq!(ids(delta.upsert), ["b", "d"]);
        assert_eq!(delta.remove, Some(vec!["c".to_owned()]));
    }

    #[test]
    fn nodes_that_make_no_sense_are_named_and_left_out() {
        let node = |id: &str| RuntimeNode { id: id.into(), ..RuntimeNode::default() };
        let (good, refused) = sensible(vec![node("a"), node("a b"), node("a")]);
        assert_eq!(good.len(), 1);
        assert!(refused[0].contains("\"a b\": node_id"), "{refused:?}");
        assert!(refused[1].contains("twice"), "{refused:?}");
    }
}
