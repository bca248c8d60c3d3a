//! The whole service under open-loop load: HTTP, placement, durable commit, answer.
//!
//! The service runs in a process of its own on a data directory of its own. Requests leave on a
//! timetable whatever the answers do, and latency counts from the time a request was due, so that
//! a stall shows in every request that it delayed and not only in the one that met it.

pub(crate) mod connection;
pub(crate) mod process;
mod timetable;

use crate::machine::LateWakes;
use crate::recovery::Failure;
use connection::Connection;
use fixture::{Fleet, FleetSpec, MixSpec, Requests};
use process::Process;
use serde::Serialize;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use wire::{AdoptSpec, HostSpec, PlacementSpec, VmSpec};

/// How full the fleet starts: requests only arrive here, and should find room to the end.
pub(crate) const FILL_PERMILLE: u32 = 650;
/// Lines in one bulk body while the fleet is brought in.
const LINES: usize = 5_000;
/// Requests before the measured ones: caches fill and connections open.
pub(crate) const WARM_UP: Duration = Duration::from_secs(2);

#[derive(Clone, Debug)]
pub struct HttpSpec {
    pub hosts: usize,
    pub vms: usize,
    pub rps: u32,
    pub seconds: u64,
    pub seed: u64,
    /// The binary to start as the service.
    pub program: PathBuf,
    /// Its data directory: empty, on the disk that is to be measured.
    pub data_dir: PathBuf,
}

#[derive(Clone, Debug, Serialize)]
pub struct HttpReport {
    pub hosts: usize,
    pub vms: usize,
    pub seed: u64,
    pub rps: u32,
    pub achieved_rps: f64,
    pub http_p50_ms: f64,
    pub http_p99_ms: f64,
    pub http_max_ms: f64,
    /// Median time the log took to make a batch durable, from the service's own histogram.
    pub commit_p50_ms: f64,
    pub commit_p99_ms: f64,
    pub requests: usize,
    pub placed: usize,
    pub no_room: usize,
    /// Answers that were neither.
    pub failed: usize,
    /// How many of them by status, or `no answer`.
    pub failures: BTreeMap<String, usize>,
    /// The same rate of requests that decide and write nothing, right after: what remains of
    /// `http_p99_ms` is the service's own.
    pub healthz_p99_ms: f64,
    /// How late a thread woke up that did nothing but ask for a millisecond's sleep, meanwhile:
    /// what the machine adds by itself to any answer.
    pub late_wake_p99_ms: f64,
    pub late_wake_max_ms: f64,
}

pub fn run(spec: &HttpSpec) -> Result<HttpReport, Failure> {
    let fleet = FleetSpec::new(spec.hosts, spec.vms, spec.seed);
    let fleet = Fleet::generate(&FleetSpec { fill_permille: FILL_PERMILLE, ..fleet });
    let bodies = bodies(spec, &fleet)?;
    let service = Process::start(&spec.program, &spec.data_dir, &[])?;
    let (hosts, vms) = (fleet.hosts.len(), fleet.placed.len());
    load(service.address(), fleet)?;

    let warm_up = spec.rps as usize * WARM_UP.as_secs() as usize;
    let (first, measured) = bodies.split_at(warm_up.min(bodies.len()));
    drive(service.address(), first, spec.rps, &|_| {})?;
    let commits_before = commits(service.address())?;
    let started = Instant::now();
    let wakes = LateWakes::start();
    let answers = Answers::new(drive(service.address(), measured, spec.rps, &|_| {})?);
    let seconds = started.elapsed().as_secs_f64();
    let wakes = wakes.stop();
    let commits_after = commits(service.address())?;
    let idle = drive_idle(service.address(), spec.rps)?;
    service.stop()?;

    let (placed, no_room) = (answers.count(201), answers.count(200));
    Ok(HttpReport {
        hosts,
        vms,
        seed: spec.seed,
        rps: spec.rps,
        achieved_rps: (placed + no_room) as f64 / seconds,
        http_p50_ms: answers.percentile_ms(500),
        http_p99_ms: answers.percentile_ms(990),
        http_max_ms: answers.percentile_ms(1000),
        commit_p50_ms: quantile_ms(&commits_before, &commits_after, 0.5),
        commit_p99_ms: quantile_ms(&commits_before, &commits_after, 0.99),
        requests: answers.0.len(),
        placed,
        no_room,
        failed: answers.0.len() - placed - no_room,
        failures: answers.failures(),
        healthz_p99_ms: idle.percentile_ms(990),
        late_wake_p99_ms: wakes.percentile_ms(990),
        late_wake_max_ms: wakes.percentile_ms(1000),
    })
}

/// One answer, with the time since its request was due.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answered {
    /// `None`: there was no answer.
    status: Option<u16>,
    took: Duration,
}

/// Answers, fastest first.
#[derive(Debug)]
pub(crate) struct Answers(pub(crate) Vec<Answered>);

impl Answers {
    pub(crate) fn new(mut answers: Vec<Answered>) -> Self {
        answers.sort_by_key(|answer| answer.took);
        Self(answers)
    }

    pub(crate) fn count(&self, status: u16) -> usize {
        self.0.iter().filter(|answer| answer.status == Some(status)).count()
    }

    /// Answers that are neither a placement nor a refusal for want of room, by status.
    fn failures(&self) -> BTreeMap<String, usize> {
        let failed = self.0.iter().filter(|answer| !matches!(answer.status, Some(200 | 201)));
        let names = failed.map(|answer| match answer.status {
            Some(status) => status.to_string(),
            None => "no answer".to_owned(),
        });
        names.fold(BTreeMap::new(), |mut counts, name| {
            *counts.entry(name).or_default() += 1;
            counts
        })
    }

    /// Requests that were never answered.
    pub(crate) fn dropped(&self) -> usize {
        self.0.iter().filter(|answer| answer.status.is_none()).count()
    }

    pub(crate) fn percentile_ms(&self, permille: usize) -> f64 {
        let row = (self.0.len() * permille / 1000).min(self.0.len().saturating_sub(1));
        self.0.get(row).map_or(0.0, |answer| answer.took.as_secs_f64() * 1e3)
    }
}

/// The bodies to send, made beforehand so that making them takes no time from sending.
pub(crate) fn bodies(spec: &HttpSpec, fleet: &Fleet) -> Result<Vec<Vec<u8>>, Failure> {
    let seconds = spec.seconds as usize + WARM_UP.as_secs() as usize;
    let requests = Requests::new(fleet, &MixSpec::default(), 2);
    let body = |vm| {
        let vm = VmSpec::new(&vm, &fleet.dimensions);
        Ok(serde_json::to_vec(&PlacementSpec { vm, strategy: None, hold_ttl_ms: None })?)
    };
    requests.take(spec.rps as usize * seconds).map(body).collect()
}

/// Brings the fleet in as an operator would: two bulk loads.
pub(crate) fn load(address: SocketAddr, fleet: Fleet) -> Result<(), Failure> {
    let dimensions = &fleet.dimensions;
    let hosts =
        fleet.hosts.iter().map(|host| serde_json::to_string(&HostSpec::new(host, dimensions)));
    bulk(address, "/v1/hosts:bulk", hosts)?;
    let vms = fleet.placed.iter().map(|(vm, row)| {
        let host_id = fleet.hosts[*row].id.clone();
        serde_json::to_string(&AdoptSpec {
            vm: VmSpec::new(vm, dimensions),
            host_id,
            bindings: None,
        })
    });
    bulk(address, "/v1/vms:bulk", vms)
}

fn bulk(
    address: SocketAddr,
    path: &str,
    lines: impl Iterator<Item = serde_json::Result<String>>,
) -> Result<(), Failure> {
    let mut connection = Connection::open(address)?;
    let mut lines = lines.peekable();
    while lines.peek().is_some() {
        let body: Result<Vec<String>, _> = lines.by_ref().take(LINES).collect();
        let body = body?.join("\n");
        let answer = connection.post(path, "application/x-ndjson", body.as_bytes())?;
        let (status, answer) = (answer.status, String::from_utf8_lossy(&answer.body).into_owned());
        if status != 200 || !answer.contains("\"failed\":0") {
            return Err(format!("{path} answered {status}: {answer}").into());
        }
    }
    Ok(())
}

/// Asks for a placement with each body on a timetable, and shows every answer to `see`.
pub(crate) fn drive(
    address: SocketAddr,
    bodies: &[Vec<u8>],
    rps: u32,
    see: &dyn Fn(&[u8]),
) -> Result<Vec<Answered>, Failure> {
    let request =
        |row: usize| connection::post(address, "/v1/placements", "application/json", &bodies[row]);
    timetable::drive(address, bodies.len(), &request, rps, see)
}

/// Asks for nothing but a sign of life, on the same timetable: what connections, threads and the
/// machine take of every answer, without a decision and without the log.
fn drive_idle(address: SocketAddr, rps: u32) -> Result<Answers, Failure> {
    let request = connection::get(address, "/healthz");
    let count = rps as usize * WARM_UP.as_secs() as usize;
    Ok(Answers::new(timetable::drive(address, count, &|_| request.clone(), rps, &|_| {})?))
}

/// The service's histogram of commit times: upper bounds in seconds and counts so far.
fn commits(address: SocketAddr) -> Result<Vec<(f64, u64)>, Failure> {
    let answer = Connection::open(address)?.get("/metrics")?;
    let text = String::from_utf8_lossy(&answer.body);
    let buckets = text.lines().filter_map(|line| {
        let rest = line.strip_prefix("novacron_scheduler_commit_duration_seconds_bucket{le=\"")?;
        let (bound, count) = rest.split_once("\"} ")?;
        Some((bound.parse().unwrap_or(f64::INFINITY), count.trim().parse().ok()?))
    });
    Ok(buckets.collect())
}

/// A quantile of what was counted between two readings, within its bucket by proportion.
fn quantile_ms(before: &[(f64, u64)], after: &[(f64, u64)], quantile: f64) -> f64 {
    let counted: Vec<(f64, u64)> =
        after.iter().zip(before).map(|(a, b)| (a.0, a.1.saturating_sub(b.1))).collect();
    let wanted = counted.last().map_or(0, |last| last.1) as f64 * quantile;
    let mut below = (0.0, 0.0);
    for (bound, count) in counted {
        let count = count as f64;
        if count >= wanted && wanted > 0.0 {
            let bound = if bound.is_finite() { bound } else { below.0 };
            let share = (wanted - below.1) / (count - below.1).max(1.0);
            return (below.0 + (bound - below.0) * share) * 1e3;
        }
        below = (bound, count);
    }
    0.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_lies_within_its_bucket() {
        let before = [(0.001, 10), (0.002, 10), (f64::INFINITY, 10)];
        let after = [(0.001, 10), (0.002, 110), (f64::INFINITY, 110)];
        assert!((quantile_ms(&before, &after, 0.5) - 1.5).abs() < 1e-9);
        assert_eq!(quantile_ms(&before, &before, 0.5), 0.0);
    }
}
