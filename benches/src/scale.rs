//! How fast the engine decides on a large, nearly full fleet, and how much memory that takes.
//!
//! Arrivals and departures keep the fleet as full as it starts. What is timed is one decision as
//! the service makes it: the checks, the choice among every host, and the verifier's consent;
//! not the commit.

use crate::machine::rss_mib;
use crate::no_log::NoLog;
use engine::{Call, Engine, Options, Outcome, PlaceRequest, Refusal, Request};
use fixture::{Churn, Event, Fleet, FleetSpec, MixReport, MixSpec, Requests};
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// VMs in one batch.
const BATCH: usize = 1_000;

#[derive(Clone, Debug)]
pub struct ScaleSpec {
    pub hosts: usize,
    pub vms: usize,
    /// How long to measure: two thirds single decisions, one third batches.
    pub seconds: u64,
    pub seed: u64,
}

#[derive(Clone, Debug, Serialize)]
pub struct ScaleReport {
    pub hosts: usize,
    pub vms: usize,
    pub seed: u64,
    pub place_p50_us: f64,
    pub place_p99_us: f64,
    pub place_max_us: f64,
    pub decisions: usize,
    /// Decisions for which no host was left.
    pub rejected: usize,
    pub batch_per_s: f64,
    pub batch_size: usize,
    pub rss_mib: u64,
    pub fill_permille: u32,
    pub fill_dimension: &'static str,
    pub vm_shapes: usize,
    pub zones: usize,
    pub racks: usize,
    pub load_seconds: f64,
    /// Share of requests with each kind of rule, in permille, counted on the requests made.
    pub mix_permille: BTreeMap<&'static str, u32>,
}

/// Runs the bench. Fails only if the engine breaks a promise on the way.
pub fn run(spec: &ScaleSpec) -> Result<ScaleReport, Refusal> {
    let mix = MixSpec::default();
    let fleet = Fleet::generate(&FleetSpec::new(spec.hosts, spec.vms, spec.seed));
    let mut report = describe(spec, &fleet);
    let mut churn = Churn::new(&fleet, &mix, 1);
    let requests = Requests::new(&fleet, &mix, 2);
    let started = Instant::now();
    let mut engine = load(fleet)?;
    report.load_seconds = started.elapsed().as_secs_f64();

    let budget = Duration::from_secs(spec.seconds);
    let mut taken = place_one_by_one(&mut engine, &mut churn, budget * 2 / 3, &mut report)?;
    taken.sort_unstable();
    report.decisions = taken.len();
    report.place_p50_us = percentile_us(&taken, 500);
    report.place_p99_us = percentile_us(&taken, 990);
    report.place_max_us = percentile_us(&taken, 1000);
    report.mix_permille = shares(churn.report());
    report.batch_per_s = place_in_batches(&mut engine, requests, budget / 3)?;
    report.rss_mib = rss_mib();
    Ok(report)
}

/// An engine with the whole fleet in it.
pub fn load(fleet: Fleet) -> Result<Engine<NoLog>, Refusal> {
    let options = Options { snapshot_every: 0, retain: 0 };
    let mut engine =
        Engine::open(NoLog::default(), options).map_err(|e| Refusal::Unverified(e.to_string()))?;
    for request in loading(fleet) {
        ask(&mut engine, request)?;
    }
    Ok(engine)
}

/// The requests that bring a fleet in: every host, then every VM where it runs.
pub fn loading(fleet: Fleet) -> impl Iterator<Item = Request> {
    let ids: Vec<_> = fleet.hosts.iter().map(|host| host.id.clone()).collect();
    let put = |host| Request::PutHost {
        host: Box::new(host),
        mode: engine::PutMode::Create,
        if_generation: None,
    };
    let adopt = move |(vm, row): (_, usize)| Request::Adopt {
        vm: Arc::new(vm),
        host: ids[row].clone(),
        bindings: None,
    };
    fleet.hosts.into_iter().map(put).chain(fleet.placed.into_iter().map(adopt))
}

fn place_one_by_one(
    engine: &mut Engine<NoLog>,
    churn: &mut Churn,
    budget: Duration,
    report: &mut ScaleReport,
) -> Result<Vec<u64>, Refusal> {
    let mut taken = Vec::with_capacity(1 << 16);
    let started = Instant::now();
    while started.elapsed() < budget {
        let Some(event) = churn.next() else { break };
        match event {
            Event::Depart(vm) => {
                ask(engine, Request::RemoveVm { vm, if_generation: None })?;
            }
            Event::Arrive(vm) => {
                let request = Request::Place(PlaceRequest::new(*vm));
                let before = Instant::now();
                let reply = engine.preview(&request, 0)?;
                taken.push(before.elapsed().as_nanos() as u64);
                match reply.outcome {
                    Outcome::Placement(placement) if placement.host.is_some() => {
                        ask(engine, request)?;
                    }
                    _ => {
                        report.rejected += 1;
                        churn.refused();
                    }
                }
            }
        }
    }
    Ok(taken)
}

fn place_in_batches(
    engine: &mut Engine<NoLog>,
    mut requests: Requests,
    budget: Duration,
) -> Result<f64, Refusal> {
    let (mut decided, mut spent) = (0usize, Duration::ZERO);
    while spent < budget {
        let batch = requests.by_ref().take(BATCH).map(PlaceRequest::new).collect();
        let request = Request::PlaceBatch { requests: batch, atomic: false };
        let before = Instant::now();
        engine.preview(&request, 0)?;
        spent += before.elapsed();
        decided += BATCH;
    }
    Ok(decided as f64 / spent.as_secs_f64().max(1e-9))
}

fn describe(spec: &ScaleSpec, fleet: &Fleet) -> ScaleReport {
    let (dimension, fill_permille) = fleet.fill().tightest();
    let distinct = |level: &cluster::Level| {
        let domains: std::collections::BTreeSet<_> =
            fleet.hosts.iter().filter_map(|host| host.domain(level)).collect();
        domains.len()
    };
    const NAMES: [&str; 5] = ["cpu_millis", "memory_mib", "disk_gib", "disk_iops", "net_mbps"];
    ScaleReport {
        hosts: fleet.hosts.len(),
        vms: fleet.placed.len(),
        seed: spec.seed,
        place_p50_us: 0.0,
        place_p99_us: 0.0,
        place_max_us: 0.0,
        decisions: 0,
        rejected: 0,
        batch_per_s: 0.0,
        batch_size: BATCH,
        rss_mib: 0,
        fill_permille,
        fill_dimension: NAMES[dimension.row()],
        vm_shapes: fleet.shapes().len(),
        zones: distinct(&cluster::Level::Zone),
        racks: distinct(&cluster::Level::Rack),
        load_seconds: 0.0,
        mix_permille: BTreeMap::new(),
    }
}

pub(crate) fn ask(engine: &mut Engine<NoLog>, request: Request) -> Result<(), Refusal> {
    engine.propose(&Call::internal(request), 0)?;
    engine.commit()?;
    Ok(())
}

fn shares(mix: &MixReport) -> BTreeMap<&'static str, u32> {
    mix.shares_permille().into_iter().collect()
}

pub(crate) fn percentile_us(sorted_ns: &[u64], permille: usize) -> f64 {
    let row = (sorted_ns.len() * permille / 1000).min(sorted_ns.len().saturating_sub(1));
    sorted_ns.get(row).map_or(0.0, |ns| *ns as f64 / 1000.0)
}
