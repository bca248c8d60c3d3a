//! `novaplace constraint`: what operators demand of every placement.

use crate::client::{Ask, Connection};
use crate::input;
use crate::output::{Format, Paint, Table, print, print_json};
use clap::{Args, Subcommand};
use cluster::Name;
use std::path::PathBuf;
use std::process::ExitCode;
use wire::{ConstraintList, ConstraintSpec, ConstraintView};

#[derive(Debug, Args)]
pub(crate) struct Constraint {
    #[command(flatten)]
    connection: Connection,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// List what is in force
    List {
        /// List the types that there are instead, with what each takes
        #[arg(long)]
        types: bool,
    },
    /// Show a constraint in force
    Show {
        #[arg(value_parser = input::name)]
        name: Name,
    },
    /// Put a constraint in force, in place of the one of the same name
    Set {
        #[arg(value_parser = input::name)]
        name: Name,
        /// Its JSON, such as {"type": "limit", "max": 2}; - is standard input
        file: PathBuf,
        /// Say what would happen, and do nothing
        #[arg(long)]
        dry_run: bool,
    },
    /// Take a constraint out of force
    Delete {
        #[arg(value_parser = input::name)]
        name: Name,
        /// Say what would happen, and do nothing
        #[arg(long)]
        dry_run: bool,
    },
}

impl Constraint {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let Constraint { connection, verb } = self;
        let (client, json) = (connection.open(), connection.output == Format::Json);
        match verb {
            Verb::List { types } => {
                let answer = client.send(&Ask::get(&["v1", "constraints"]))?;
                match (json, types) {
                    (true, _) => print_json(&answer.body)?,
                    (false, true) => show_types(&answer.read()?)?,
                    (false, false) => show_all(&answer.read()?)?,
                }
            }
            Verb::Show { name } => {
                let answer = client.send(&Ask::get(&["v1", "constraints", name.as_str()]))?;
                match json {
                    true => print_json(&answer.body)?,
                    false => show_one(&answer.read()?)?,
                }
            }
            Verb::Set { name, file, dry_run } => {
                let body = input::document(&file)?.get().as_bytes().to_vec();
                let ask = Ask::put(&["v1", "constraints", name.as_str()]).dry_run(dry_run);
                let answer = client.send(&ask.json(body))?;
                match json {
                    true => print_json(&answer.body)?,
                    false => show_changed(&answer.read()?, dry_run)?,
                }
            }
            Verb::Delete { name, dry_run } => {
                let ask = Ask::delete(&["v1", "constraints", name.as_str()]).dry_run(dry_run);
                client.send(&ask)?;
                let done = if dry_run { "would no longer be" } else { "is no longer" };
                print(format!("{name} {done} in force"))?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn show_all(list: &ConstraintList) -> anyhow::Result<()> {
    let mut table = Table::new(&["CONSTRAINT", "TYPE", "GENERATION", "SAYS"]);
    for view in &list.items {
        let (kind, says) = told(&view.constraint)?;
        table.row([view.name.to_string(), kind, view.generation.to_string(), says]);
    }
    match table.is_empty() {
        true => print("no constraints; `constraint list --types` says what there could be")?,
        false => print(table.painted(Paint::for_stdout()))?,
    }
    Ok(())
}

fn show_types(list: &ConstraintList) -> anyhow::Result<()> {
    let paint = Paint::for_stdout();
    for kind in &list.types {
        print(format!("{}  {}", paint.bold(&kind.kind), kind.doc))?;
        let mut table = Table::new(&["  FIELD", "TYPE", "UNIT", "LEFT OUT", "MEANS"]);
        for field in &kind.parameters {
            let text = |text: &Option<_>| text.as_deref().unwrap_or("-").to_owned();
            let left_out = if field.required { "required".into() } else { text(&field.default) };
            let name = format!("  {}", field.name);
            table.row([
                name,
                field.kind.to_string(),
                text(&field.unit),
                left_out,
                field.doc.to_string(),
            ]);
        }
        print(format!("{}\n", table.painted(paint)))?;
    }
    Ok(())
}

fn show_one(view: &ConstraintView) -> anyhow::Result<()> {
    let paint = Paint::for_stdout();
    print(format!("{}  generation {}", paint.bold(&view.name), view.generation))?;
    Ok(print(serde_json::to_string_pretty(&view.constraint)?)?)
}

fn show_changed(view: &ConstraintView, dry_run: bool) -> anyhow::Result<()> {
    let paint = Paint::for_stdout();
    let done = if dry_run { "would be" } else { "is" };
    let (name, generation) = (&view.name, view.generation);
    print(format!("{} {done} in force, generation {generation}", paint.bold(name)))?;
    for warning in &view.warnings {
        print(format!("{} {warning}", paint.bad("!")))?;
    }
    Ok(())
}

/// The type of a constraint, and everything else that it says on one line.
fn told(constraint: &ConstraintSpec) -> anyhow::Result<(String, String)> {
    let mut fields: serde_json::Map<_, _> =
        serde_json::from_value(serde_json::to_value(constraint)?)?;
    let kind = fields.remove("type").and_then(|kind| kind.as_str().map(str::to_owned));
    let says = serde_json::to_string(&fields)?;
    Ok((kind.unwrap_or_default(), says))
}
