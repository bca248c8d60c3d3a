//! `novaplace policy`: what operators decide, as texts. Checked without a service, or installed,
//! activated, tuned and rolled back on one.

mod check;
mod excerpt;
mod show;

use crate::client::{Answer, Ask, ClientError, Connection};
use crate::input;
use crate::output::{Format, print_json};
use ::policy::{PolicyType, Syntax, load};
use anyhow::Context;
use clap::{Args, Subcommand};
use serde_json::{Map, Value, json};
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Debug, Args)]
pub(crate) struct Policy {
    #[command(flatten)]
    connection: Connection,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Say what is wrong with policy files; needs no service. Exit code 1 if anything is
    Check(check::Check),
    /// List the policies, active or not, and the files that are not in force
    List {
        /// Only policies of this type
        #[arg(long = "type", value_parser = kind)]
        kind: Option<PolicyType>,
    },
    /// Show a policy with its parameters and its text
    Show { id: String },
    /// Register a policy, or give it a new version
    Install(Install),
    /// Put a policy in force. Parameters that are not named have their defaults
    Activate {
        id: String,
        #[command(flatten)]
        activation: Activation,
        #[command(flatten)]
        how: How,
    },
    /// Change parameters of an active policy; those that are not named stay
    Tune {
        id: String,
        #[command(flatten)]
        activation: Activation,
        #[command(flatten)]
        how: How,
    },
    /// Take a policy out of force and keep it
    Deactivate {
        id: String,
        /// Say what would happen, and do nothing
        #[arg(long)]
        dry_run: bool,
    },
    /// Make the text of an older version the newest one
    Rollback {
        id: String,
        /// The version to go back to
        version: u32,
        #[command(flatten)]
        how: How,
    },
}

#[derive(Debug, Args)]
struct Install {
    /// A policy in NovaCron's language, or as YAML if its name says so
    file: PathBuf,
    /// Put it in force at once
    #[arg(long)]
    activate: bool,
    #[command(flatten)]
    activation: Activation,
    #[command(flatten)]
    how: How,
}

#[derive(Debug, Args)]
struct Activation {
    /// Policies of higher priority go first
    #[arg(long, allow_negative_numbers = true)]
    priority: Option<i32>,
    /// The value of a parameter; repeat for more
    #[arg(long = "set", value_name = "PARAMETER=VALUE", value_parser = setting)]
    settings: Vec<(String, Value)>,
}

#[derive(Debug, Args)]
struct How {
    /// What is different and why, for the audit
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    /// Say what would happen, and do nothing
    #[arg(long)]
    dry_run: bool,
}

impl Policy {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let Policy { connection, verb } = self;
        let post = |id: &str, verb: &str| Ask::post(&["v1", "policies", id, verb]);
        let (ask, dry_run) = match verb {
            Verb::Check(check) => return check.run(connection.output),
            Verb::List { kind } => {
                let ask = Ask::get(&["v1", "policies"]).query("type", kind.map(PolicyType::name));
                return told(&connection, connection.open().send(&ask), show::list);
            }
            Verb::Show { id } => {
                let ask = Ask::get(&["v1", "policies", &id]);
                return told(&connection, connection.open().send(&ask), show::one);
            }
            Verb::Install(install) => match install.ask(connection.output)? {
                Ok(found) => found,
                Err(code) => return Ok(code),
            },
            Verb::Activate { id, activation, how } => {
                let body = how.body(activation.fields());
                (post(&id, "activate").json(body), how.dry_run)
            }
            Verb::Tune { id, activation, how } => {
                let ask = Ask::patch(&["v1", "policies", &id, "parameters"]);
                (ask.json(how.body(activation.fields())), how.dry_run)
            }
            Verb::Deactivate { id, dry_run } => (post(&id, "deactivate"), dry_run),
            Verb::Rollback { id, version, how } => {
                let fields = Map::from_iter([("version".into(), version.into())]);
                (post(&id, "rollback").json(how.body(fields)), how.dry_run)
            }
        };
        let answer = connection.open().send(&ask.dry_run(dry_run));
        told(&connection, answer, |value| show::changed(value, dry_run))
    }
}

impl Install {
    /// What to send; or the exit code, after its mistakes were shown.
    fn ask(self, output: Format) -> anyhow::Result<Result<(Ask, bool), ExitCode>> {
        let bytes = input::read(&self.file)?;
        let text = String::from_utf8(bytes)
            .with_context(|| format!("{} is not UTF-8", self.file.display()))?;
        let name = self.file.to_string_lossy();
        let syntax = match name.as_ref() {
            "-" => Syntax::of_text(&text),
            name => Syntax::of_file(name),
        };
        let Ok((program, _)) = load(&text, syntax) else {
            let check = check::Check { files: vec![self.file], deny_warnings: false };
            return check.of(vec![(name.into_owned(), text)], output).map(Err);
        };
        let syntax = if syntax == Syntax::Dsl { "dsl" } else { "yaml" };
        let mut fields = Map::from_iter([
            ("text".into(), Value::String(text.clone())),
            ("syntax".into(), syntax.into()),
        ]);
        // What belongs to activating is refused without it, with a hint.
        fields.extend(self.activation.fields());
        if self.activate {
            fields.insert("activate".into(), true.into());
        }
        let ask = Ask::put(&["v1", "policies", program.id()]).json(self.how.body(fields));
        Ok(Ok((ask, self.how.dry_run)))
    }
}

impl Activation {
    fn fields(self) -> Map<String, Value> {
        let mut fields = Map::new();
        fields.extend(self.priority.map(|priority| ("priority".to_owned(), json!(priority))));
        if !self.settings.is_empty() {
            let values: Map<String, Value> = self.settings.into_iter().collect();
            fields.insert("parameter_values".into(), values.into());
        }
        fields
    }
}

impl How {
    fn body(&self, mut fields: Map<String, Value>) -> Vec<u8> {
        let description = self.description.clone();
        fields.extend(description.map(|text| ("description".to_owned(), text.into())));
        Value::from(fields).to_string().into_bytes()
    }
}

/// Prints an answer as it came, or as `show` tells it.
fn told(
    connection: &Connection,
    answer: Result<Answer, ClientError>,
    show: impl FnOnce(&Value) -> anyhow::Result<()>,
) -> anyhow::Result<ExitCode> {
    let answer = answer?;
    match connection.output {
        Format::Json => print_json(&answer.body)?,
        Format::Table => show(&answer.read()?)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn kind(name: &str) -> Result<PolicyType, String> {
    PolicyType::named(name).ok_or_else(|| {
        let names = PolicyType::ALL.map(PolicyType::name);
        format!("it must be one of {}", names.join(", "))
    })
}

/// `NAME=VALUE`: a number, `true`, `false` or `null` where it looks like one, otherwise text.
fn setting(text: &str) -> Result<(String, Value), String> {
    let (name, value) = text.split_once('=').ok_or("it must be PARAMETER=VALUE")?;
    if name.is_empty() {
        return Err("it must be PARAMETER=VALUE".into());
    }
    let scalar = serde_json::from_str(value)
        .ok()
        .filter(|it: &Value| it.is_number() || it.is_boolean() || it.is_null() || it.is_string());
    Ok((name.into(), scalar.unwrap_or_else(|| value.into())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_numbers_and_truths_where_they_look_like_them() {
        for (text, value) in [
            ("a=5", json!(5)),
            ("a=-0.5", json!(-0.5)),
            ("a=true", json!(true)),
            ("a=null", json!(null)),
            ("a=eu-west", json!("eu-west")),
            ("a=\"5\"", json!("5")),
            ("a=x=y", json!("x=y")),
            ("a=[1]", json!("[1]")),
            ("a=", json!("")),
        ] {
            assert_eq!(setting(text), Ok(("a".into(), value)), "{text}");
        }
        assert!(setting("a").is_err() && setting("=1").is_err());
    }
}
