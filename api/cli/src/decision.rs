//! `novaplace decision`: what was decided, and whether it comes out the same again.

use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use engine::{DecisionId, History};
use std::path::PathBuf;
use std::process::ExitCode;
use store::{CommandLog, EmbeddedLog};

#[derive(Debug, Subcommand)]
pub(crate) enum Decision {
    /// Print a recorded decision
    Show(Target),
    /// Compute a recorded decision again from the state it was made on; exit code 1 if it differs
    Replay(Target),
}

#[derive(Debug, Args)]
pub(crate) struct Target {
    /// The decision's id, as answers carry it: d42, or d42-3 within a batch
    id: String,
    /// The service's data directory; the service must not be running on it
    #[arg(long, env = "NOVAPLACE_DATA_DIR")]
    data_dir: PathBuf,
}

impl Decision {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        match self {
            Decision::Show(target) => target.show(),
            Decision::Replay(target) => target.replay(),
        }
    }
}

impl Target {
    #[expect(clippy::print_stdout, reason = "the decision is what was asked for")]
    fn show(&self) -> anyhow::Result<ExitCode> {
        let (id, history) = self.open()?;
        let Some(placing) = history.placing(id)? else {
            bail!("no decision {id} is kept in this log");
        };
        println!("{}", serde_json::to_string_pretty(&placing.decision)?);
        Ok(ExitCode::SUCCESS)
    }

    #[expect(clippy::print_stdout, reason = "the comparison is what was asked for")]
    fn replay(&self) -> anyhow::Result<ExitCode> {
        let (id, history) = self.open()?;
        let Some(replay) = history.replay(id)? else {
            bail!("no decision {id} is kept in this log, or the state before it is not");
        };
        if replay.is_exact() {
            println!("{id}: the same, bit for bit");
            return Ok(ExitCode::SUCCESS);
        }
        println!("{id}: differs");
        println!("recorded:   {}", serde_json::to_string(&replay.recorded)?);
        println!("recomputed: {}", serde_json::to_string(&replay.recomputed)?);
        Ok(ExitCode::from(1))
    }

    fn open(&self) -> anyhow::Result<(DecisionId, History)> {
        let id = DecisionId::parse(&self.id).with_context(|| {
            format!("{:?} is no decision id; they look like d42 or d42-3", self.id)
        })?;
        let log = EmbeddedLog::open(self.data_dir.join(store::LOG_FILE), store::Options::default())
            .with_context(|| format!("cannot open {}", self.data_dir.display()))?;
        Ok((id, History::new(log.reader())))
    }
}
