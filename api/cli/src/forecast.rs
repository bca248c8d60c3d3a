//! `novaplace forecast`: what comes next in series of a file, with intervals.

mod backtest;
mod read;

use anyhow::Context;
use clap::{Args, Subcommand};
use forecast::batch::{self, Spec};
use forecast::method::Method;
use read::Row;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct Forecast {
    #[command(subcommand)]
    verb: Option<Verb>,
    #[command(flatten)]
    ahead: Ahead,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// How good models would have been at earlier moments of the series, as a table
    Backtest(backtest::Backtest),
}

#[derive(Debug, Args)]
struct Ahead {
    /// Series, one a line: `id,v1,v2,...`; lines may differ in length, empty means missing. `-` is
    /// standard input, and `.gz` is unpacked
    #[arg(long, value_name = "FILE", required = true)]
    input: Option<PathBuf>,
    /// Where to write `id,step,mean,lower,upper`; standard output if left out
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    asked: Asked,
    /// auto, arima, ets, theta, dot, mstl, ridge, net, gru, lstm, ses, holt, drift,
    /// seasonal-naive or last
    #[arg(long, default_value = "auto")]
    model: Method,
}

/// What is asked about each series.
#[derive(Debug, Args)]
struct Asked {
    /// Steps to look ahead
    #[arg(long, default_value_t = 12, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    horizon: u32,
    /// Lengths of seasons in samples, for instance 24,168 for hours
    #[arg(long, value_delimiter = ',', value_parser = clap::value_parser!(u32).range(2..=100_000))]
    season: Vec<u32>,
    /// How many of 100 samples intervals are to hold
    #[arg(long, default_value_t = 95.0, value_parser = percent)]
    level: f64,
    /// Threads; the answer is the same on any number
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=256))]
    threads: u16,
    /// What samples cannot fall below
    #[arg(long, allow_negative_numbers = true)]
    floor: Option<f64>,
    /// What samples cannot rise above
    #[arg(long, allow_negative_numbers = true)]
    ceiling: Option<f64>,
}

impl Asked {
    fn spec(&self, method: Method) -> Spec {
        let mut seasons: Vec<usize> = self.season.iter().map(|&m| m as usize).collect();
        seasons.sort_unstable();
        seasons.dedup();
        Spec {
            horizon: self.horizon as usize,
            seasons,
            level: self.level / 100.0,
            method,
            threads: usize::from(self.threads),
            floor: self.floor,
            ceiling: self.ceiling,
        }
    }
}

/// A share in percent that leaves something inside and something outside.
fn percent(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(level) if level > 0.0 && level < 100.0 => Ok(level),
        _ => Err(format!("{text:?} is not a number between 0 and 100")),
    }
}

impl Forecast {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        match self.verb {
            Some(Verb::Backtest(backtest)) => backtest.run(),
            None => self.ahead.run(),
        }
    }
}

impl Ahead {
    fn run(self) -> anyhow::Result<ExitCode> {
        let input = self.input.context("give the series by --input FILE")?;
        let rows = read::series(&input)?;
        let (ids, values): (Vec<String>, Vec<Vec<f64>>) =
            rows.into_iter().map(|Row { id, values }| (id, values)).unzip();
        let answers = batch::forecast(&values, &self.asked.spec(self.model));
        let mut text = String::from("id,step,mean,lower,upper\n");
        for (id, answer) in ids.iter().zip(&answers) {
            for step in 0..answer.point.len() {
                let (mean, lower, upper) =
                    (answer.point[step], answer.lower[step], answer.upper[step]);
                // Writing to a string does not fail.
                let _ = writeln!(text, "{id},{},{mean},{lower},{upper}", step + 1);
            }
            if !answer.findings.is_clean() {
                eprintln!("novaplace: series {id}: {}", answer.findings);
            }
        }
        match &self.output {
            Some(path) => std::fs::write(path, text)
                .with_context(|| format!("cannot write {}", path.display()))?,
            None => crate::output::print(text.trim_end())?,
        }
        Ok(ExitCode::SUCCESS)
    }
}
