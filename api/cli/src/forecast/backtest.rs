//! `novaplace forecast backtest`: how good models would have been, as a table and as pictures.

use super::Asked;
use super::read::{self, Row};
use crate::output::{Format, Paint, Table, print};
use anyhow::Context;
use clap::Args;
use forecast::backtest::{self, Plan, Score, Window};
use forecast::method::Method;
use forecast::plot;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

#[derive(Debug, Args)]
pub(crate) struct Backtest {
    /// Series, one a line: `id,v1,v2,...`
    #[arg(long, value_name = "FILE")]
    input: PathBuf,
    #[command(flatten)]
    asked: Asked,
    /// Models to compare
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "auto,ridge,net,arima,ets,dot,mstl,seasonal-naive,last"
    )]
    models: Vec<Method>,
    /// Earlier moments of each series
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    origins: u32,
    /// Samples between two of them; one horizon if left out
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    stride: Option<u32>,
    /// Train models for all series on one half of them and ask about the other
    #[arg(long)]
    leave_series_out: bool,
    /// A directory for pictures of the newest window of the first series, one SVG a model
    #[arg(long, value_name = "DIR")]
    plots: Option<PathBuf>,
    /// Series to draw
    #[arg(long, default_value_t = 3)]
    plotted: usize,
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    output: Format,
}

impl Backtest {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let rows = read::series(&self.input)?;
        let (ids, values): (Vec<String>, Vec<Vec<f64>>) =
            rows.into_iter().map(|Row { id, values }| (id, values)).unzip();
        let plan = Plan {
            origins: self.origins as usize,
            stride: self.stride.unwrap_or(self.asked.horizon) as usize,
            leave_series_out: self.leave_series_out,
        };
        let headings = [
            "MODEL",
            "WINDOWS",
            "MAE",
            "SMAPE",
            "MASE",
            "PINBALL",
            "COVERAGE",
            "INTERVAL",
            "MS/FORECAST",
        ];
        let mut table = Table::new(&headings);
        let mut lines = Vec::new();
        for &method in &self.models {
            let spec = self.asked.spec(method);
            let started = Instant::now();
            let windows = backtest::windows(&values, &spec, &plan);
            let millis = started.elapsed().as_secs_f64() * 1e3 / windows.len().max(1) as f64;
            let score = backtest::score(&values, &windows, &spec);
            if let Some(folder) = &self.plots {
                draw(folder, method, &ids, &values, &windows[..windows.len().min(self.plotted)])?;
            }
            table.row(cells(method, &score, millis));
            lines.push(line(method, &score, millis));
        }
        match self.output {
            Format::Table => print(table.painted(Paint::for_stdout()))?,
            Format::Json => print(serde_json::Value::from(lines))?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn cells(method: Method, score: &Score, millis: f64) -> [String; 9] {
    [
        method.to_string(),
        score.windows.to_string(),
        format!("{:.4}", score.mae),
        format!("{:.3}", score.smape),
        format!("{:.4}", score.mase),
        format!("{:.4}", score.pinball),
        format!("{:.4}", score.coverage),
        format!("{:.3}", score.interval),
        format!("{millis:.2}"),
    ]
}

fn line(method: Method, score: &Score, millis: f64) -> serde_json::Value {
    serde_json::json!({
        "model": method.name(),
        "windows": score.windows,
        "mae": score.mae,
        "smape": score.smape,
        "mase": score.mase,
        "pinball": score.pinball,
        "coverage": score.coverage,
        "interval_score": score.interval,
        "ms_per_forecast": millis,
    })
}

fn draw(
    folder: &Path,
    method: Method,
    ids: &[String],
    values: &[Vec<f64>],
    windows: &[Window],
) -> anyhow::Result<()> {
    std::fs::create_dir_all(folder)
        .with_context(|| format!("cannot make the directory {}", folder.display()))?;
    for window in windows {
        let id = &ids[window.series];
        // Ids may be anything; names of files may not.
        let plain: String =
            id.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).take(80).collect();
        let path = folder.join(format!("{}-{plain}-{method}.svg", window.series));
        let title = format!("{id}: {}", window.forecast.model);
        std::fs::write(&path, plot::svg(&title, &values[window.series], window))
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}
