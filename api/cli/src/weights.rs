//! `novaplace weights`: how much each part of a score counts.

use crate::client::{Ask, Connection};
use crate::input;
use crate::output::{Format, Paint, Table, Usage, bar, grouped, print, print_json};
use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use policy::Profile;
use serde_json::{Map, Value};
use std::process::ExitCode;

#[derive(Debug, Args)]
pub(crate) struct Weights {
    #[command(flatten)]
    connection: Connection,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Show the weights in force
    Get,
    /// Change weights; those that are not named stay as they are
    Set {
        /// Such as fit=30
        #[arg(required_unless_present = "profile", value_name = "NAME=WEIGHT", value_parser = input::amount)]
        weights: Vec<(String, u64)>,
        /// Weights and strategy of a profile instead
        #[arg(long, conflicts_with = "weights", value_parser = PossibleValuesParser::new(Profile::ALL.map(Profile::name)))]
        profile: Option<String>,
        /// Say what would happen, and do nothing
        #[arg(long)]
        dry_run: bool,
    },
}

impl Weights {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let Weights { connection, verb } = self;
        let client = connection.open();
        let mut answer = client.send(&Ask::get(&["v1", "weights"]))?;
        if let Verb::Set { weights, profile, dry_run } = verb {
            let mut all: Map<String, Value> = answer.read()?;
            let known: Vec<String> = all.keys().cloned().collect();
            for (name, weight) in weights {
                match all.get_mut(&name) {
                    Some(place) => *place = weight.into(),
                    None => {
                        let known = known.join(", ");
                        return Err(Usage(format!(
                            "there is no weight {name:?}; known are {known}"
                        ))
                        .into());
                    }
                }
            }
            if let Some(profile) = profile {
                all = Map::from_iter([("profile".to_owned(), profile.into())]);
            }
            // Somebody else's change since then is not overwritten.
            let ask = Ask::put(&["v1", "weights"]).dry_run(dry_run).if_match(answer.etag.clone());
            answer = client.send(&ask.json(serde_json::to_vec(&all)?))?;
        }
        match connection.output {
            Format::Json => print_json(&answer.body)?,
            Format::Table => show(&answer.read()?)?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn show(weights: &Map<String, Value>) -> anyhow::Result<()> {
    let amount = |value: &Value| value.as_u64().unwrap_or(0);
    let sum = weights.values().map(amount).sum();
    let mut table = Table::new(&["WEIGHT", "COUNTS", "SHARE"]);
    for (name, weight) in weights {
        let weight = amount(weight);
        table.row([name.clone(), grouped(weight), bar(weight, sum, 20)]);
    }
    Ok(print(table.painted(Paint::for_stdout()))?)
}
