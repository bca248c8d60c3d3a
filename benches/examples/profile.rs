//! Runs one part of the hot path on the usual fleet for a while, for a profiler to look at.
//!
//! `profile single|batch [decisions] [hosts]`; there are ten VMs to a host.

use benches::scale;
use engine::{PlaceRequest, Request};
use fixture::{Fleet, FleetSpec, MixSpec, Requests};
use std::time::Instant;

/// Requests made before the clock runs, and VMs in one batch.
const CHUNK: usize = 1_000;

#[expect(clippy::print_stdout, reason = "the rate is what was asked for")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let together = match args.next().as_deref() {
        Some("single") => false,
        Some("batch") => true,
        _ => return Err("usage: profile single|batch [decisions] [hosts]".into()),
    };
    let decisions: usize = args.next().map_or(Ok(200_000), |count| count.parse())?;
    let hosts: usize = args.next().map_or(Ok(10_000), |count| count.parse())?;
    let fleet = Fleet::generate(&FleetSpec::new(hosts, 10 * hosts, 1));
    let mut requests = Requests::new(&fleet, &MixSpec::default(), 2);
    let mut engine = scale::load(fleet)?;
    let (mut made, mut spent) = (0, 0.0);
    let started = Instant::now();
    while made < decisions {
        let chunk: Vec<_> = requests.by_ref().take(CHUNK).map(PlaceRequest::new).collect();
        let asked = match together {
            true => vec![Request::PlaceBatch { requests: chunk, atomic: false }],
            false => chunk.into_iter().map(Request::Place).collect(),
        };
        let before = cpu_seconds();
        for request in &asked {
            engine.preview(request, 0)?;
        }
        spent += cpu_seconds() - before;
        made += CHUNK;
    }
    let wall = started.elapsed().as_secs_f64();
    println!("{made} decisions in {spent:.2} s of CPU: {:.0}/s ({wall:.1} s)", made as f64 / spent);
    Ok(())
}

/// CPU time of this thread so far, in seconds.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = stat.split_whitespace().next().and_then(|field| field.parse::<u64>().ok());
    nanos.unwrap_or(0) as f64 / 1e9
}
