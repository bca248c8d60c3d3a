//! `novaplace bench forecast` and `bench arima`.

use crate::output::{Paint, Table, print};
use anyhow::{Context, bail};
use benches::fleet_forecast::{self, FleetSpec};
use benches::golden_arima::{self, Golden};
use clap::Args;
use flate2::read::MultiGzDecoder;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[derive(Debug, Args)]
pub(crate) struct Fleet {
    #[arg(long, default_value_t = 100_000)]
    series: usize,
    #[arg(long, default_value_t = 12)]
    horizon: usize,
    #[arg(long, default_value_t = 2)]
    threads: usize,
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Print one line of JSON and nothing else
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Arima {
    /// A directory with golden_arima.json, workload_5min.csv.gz and m4_hourly_train.csv.gz
    #[arg(long, env = "NOVAPLACE_DATA", value_name = "DIR")]
    data: PathBuf,
    /// Print one line of JSON and nothing else
    #[arg(long)]
    json: bool,
}

impl Fleet {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let Fleet { series, horizon, threads, seed, json } = self;
        let report = fleet_forecast::run(&FleetSpec { series, horizon, threads, seed })?;
        if !json {
            print(format_args!(
                "{series} series x {horizon} steps x {} quantiles in {:.2} s on {threads} threads; \
                 update {:.2} us a sample; {} MiB resident; trained in {:.1} s",
                report.quantiles,
                report.predict_s,
                report.update_us,
                report.rss_mib,
                report.train_s
            ))?;
        }
        print(serde_json::to_string(&report)?)?;
        Ok(ExitCode::SUCCESS)
    }
}

impl Arima {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let path = self.data.join("golden_arima.json");
        let text = std::fs::read_to_string(&path)
            .with_context(|| format!("cannot read {}", path.display()))?;
        let golden = golden_arima::read(&text).with_context(|| format!("in {}", path.display()))?;
        let mut compared = Vec::new();
        for golden in &golden {
            compared.push(golden_arima::compare(golden, &samples(&self.data, golden)?));
        }
        if !self.json {
            let headings =
                ["SERIES", "ORDER", "THEIRS", "OURS AT THEIRS", "RELATIVE", "OUR FIT", "GAIN"];
            let mut table = Table::new(&headings);
            for it in &compared {
                let number = |value: Option<f64>| value.map_or("-".into(), |v| format!("{v:.4}"));
                table.row([
                    it.series.clone(),
                    it.order.clone(),
                    number(it.sm),
                    number(it.ours_at_sm),
                    it.relative.map_or("-".into(), |relative| format!("{relative:.1e}")),
                    number(Some(it.ours)),
                    number(it.gain),
                ]);
            }
            print(table.painted(Paint::for_stdout()))?;
        }
        print(serde_json::to_string(&compared)?)?;
        Ok(ExitCode::SUCCESS)
    }
}

/// The samples that a fit was made on: the last before the first origin of a workload series, or
/// the last of an hourly series in units of their mean.
fn samples(data: &Path, golden: &Golden) -> anyhow::Result<Vec<f64>> {
    let (source, id) = golden.series.split_once(':').unwrap_or(("", &golden.series));
    let last = |values: &[f64]| values[values.len().saturating_sub(golden.n)..].to_vec();
    match source {
        "workload" => {
            let text = unpacked(&data.join("workload_5min.csv.gz"))?;
            for line in text.lines() {
                let cells: Vec<&str> = line.split(';').collect();
                if let [key, _, _, origins, values] = cells[..]
                    && key == id
                {
                    let values = numbers(values.split(' '));
                    let first = origins.split(' ').next().and_then(|it| it.parse().ok());
                    return Ok(last(&values[..first.unwrap_or(values.len()).min(values.len())]));
                }
            }
        }
        "m4" => {
            let text = unpacked(&data.join("m4_hourly_train.csv.gz"))?;
            for line in text.lines() {
                let mut cells = line.split(',');
                if cells.next() == Some(id) {
                    let values = last(&numbers(cells));
                    let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
                    return Ok(values.iter().map(|value| value / mean).collect());
                }
            }
        }
        _ => bail!("series {}: its source is neither workload nor m4", golden.series),
    }
    bail!("series {} is not in {}", golden.series, data.display())
}

fn numbers<'a>(cells: impl Iterator<Item = &'a str>) -> Vec<f64> {
    cells.filter_map(|cell| cell.parse().ok()).collect()
}

fn unpacked(path: &Path) -> anyhow::Result<String> {
    let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut text = String::new();
    MultiGzDecoder::new(file)
        .take(1 << 30)
        .read_to_string(&mut text)
        .with_context(|| format!("cannot unpack {}", path.display()))?;
    Ok(text)
}
