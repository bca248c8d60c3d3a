//! `novaplace decision`: what was decided, and whether it comes out the same again.

use crate::client::{Ask, Connection};
use crate::output::{Format, print, print_json};
use crate::{offline, placement};
use anyhow::bail;
use clap::{Args, Subcommand};
use cluster::Revision;
use engine::{DecisionId, History};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use store::CommandLog;
use wire::PlacementAnswer;

#[derive(Debug, Subcommand)]
pub(crate) enum Decision {
    /// Print a recorded decision
    Show(Show),
    /// Compute a recorded decision again from the state it was made on; exit code 1 if it differs
    Replay(Replay),
}

#[derive(Debug, Args)]
pub(crate) struct Show {
    /// As answers carry it: d42, or d42-3 within a batch
    #[arg(value_parser = decision_id)]
    id: DecisionId,
    /// Read this data directory instead of asking a service, which must not be running on it
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    #[command(flatten)]
    connection: Connection,
}

#[derive(Debug, Args)]
pub(crate) struct Replay {
    /// As answers carry it: d42, or d42-3 within a batch
    #[arg(value_parser = decision_id)]
    id: DecisionId,
    /// The service's data directory; the service must not be running on it
    #[arg(long, env = "NOVAPLACE_DATA_DIR", value_name = "DIR")]
    data_dir: PathBuf,
}

impl Decision {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        match self {
            Decision::Show(show) => show.run(),
            Decision::Replay(replay) => replay.run(),
        }
    }
}

impl Show {
    fn run(&self) -> anyhow::Result<ExitCode> {
        let (decided, json) = match &self.data_dir {
            Some(data_dir) => {
                let decided = recorded(data_dir, self.id)?;
                let json = serde_json::to_vec(&decided)?;
                (decided, json)
            }
            None => {
                let ask = Ask::get(&["v1", "decisions", &self.id.to_string()]);
                let answer = self.connection.open().send(&ask)?;
                (answer.read()?, answer.body)
            }
        };
        match self.connection.output {
            Format::Json => print_json(&json)?,
            // What was decided then is no refusal now.
            Format::Table => drop(placement::show(&decided, false)?),
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// The decision as the service would answer it.
fn recorded(data_dir: &Path, id: DecisionId) -> anyhow::Result<PlacementAnswer> {
    let log = offline::open(data_dir)?;
    let history = History::new(log.reader());
    let Some(placing) = history.placing(id)? else {
        bail!("no decision {id} is kept in this log");
    };
    let state = history.state_at(Revision(id.revision.0.saturating_sub(1)))?;
    let dimensions = state.map(|state| state.dimensions().clone()).unwrap_or_default();
    let reservation = placing.hold.as_ref().map(|hold| format!("r{}", hold.reservation));
    let (text, revision) = (id.to_string(), id.revision);
    Ok(PlacementAnswer::new(&placing.decision, text, revision, reservation, &dimensions))
}

impl Replay {
    fn run(&self) -> anyhow::Result<ExitCode> {
        let log = offline::open(&self.data_dir)?;
        let history = History::new(log.reader());
        let id = self.id;
        let Some(replay) = history.replay(id)? else {
            bail!("no decision {id} is kept in this log, or the state before it is not");
        };
        if replay.is_exact() {
            print(format!("{id}: the same, bit for bit"))?;
            return Ok(ExitCode::SUCCESS);
        }
        print(format!("{id}: differs"))?;
        print(format!("recorded:   {}", serde_json::to_string(&replay.recorded)?))?;
        print(format!("recomputed: {}", serde_json::to_string(&replay.recomputed)?))?;
        Ok(ExitCode::from(1))
    }
}

fn decision_id(text: &str) -> Result<DecisionId, String> {
    DecisionId::parse(text).ok_or_else(|| "decision ids look like d42 or d42-3".to_owned())
}
