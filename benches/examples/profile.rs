//! Runs one part of the hot path on the usual fleet for some seconds, for a profiler to look at.

use benches::scale;
use engine::{PlaceRequest, Request};
use fixture::{Fleet, FleetSpec, MixSpec, Requests};
use std::time::{Duration, Instant};

#[expect(clippy::print_stdout, reason = "the rate is what was asked for")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let part = std::env::args().nth(1).unwrap_or_default();
    let fleet = Fleet::generate(&FleetSpec::new(10_000, 100_000, 1));
    let mut requests = Requests::new(&fleet, &MixSpec::default(), 2);
    let mut engine = scale::load(fleet)?;
    let size = match part.as_str() {
        "single" => 1,
        "batch" => 1_000,
        _ => return Err("usage: profile single|batch".into()),
    };
    let (started, mut made) = (Instant::now(), 0);
    let cpu = cpu_seconds();
    while started.elapsed() < Duration::from_secs(6) {
        let mut batch: Vec<_> = requests.by_ref().take(size).map(PlaceRequest::new).collect();
        let request = match size {
            1 => Request::Place(batch.remove(0)),
            _ => Request::PlaceBatch { requests: batch, atomic: false },
        };
        engine.preview(&request, 0)?;
        made += size;
    }
    let spent = cpu_seconds() - cpu;
    println!("{made} decisions in {spent:.2} s of CPU: {:.0}/s", made as f64 / spent);
    Ok(())
}

/// CPU time of this process so far, in seconds, from clock ticks of a hundredth.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    let ticks: u64 = fields.skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    ticks as f64 / 100.0
}
