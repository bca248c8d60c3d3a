//! How long the service takes from a dead process to a verified state.
//!
//! Builds a data directory with a snapshot of a full fleet and a tail of commands behind it, then
//! opens it again and again: snapshot read and checked, every record decoded, applied and held
//! against its state hash, usage recomputed, tables compiled.

use engine::{Call, Engine, Options, PlaceRequest, Refusal, Request};
use fixture::{Churn, Event, Fleet, FleetSpec, MixSpec};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::time::Instant;
use store::{CommandLog, EmbeddedLog};

/// Commands in one commit while the directory is being built.
const COMMIT_EVERY: usize = 256;

#[derive(Clone, Debug)]
pub struct RecoverySpec {
    pub hosts: usize,
    pub vms: usize,
    pub tail: u64,
    pub restarts: usize,
    pub seed: u64,
    /// Where to build the data directory. It must be empty, and is left behind.
    pub data_dir: PathBuf,
}

#[derive(Clone, Debug, Serialize)]
pub struct RecoveryReport {
    pub hosts: usize,
    pub vms: usize,
    pub tail: u64,
    pub seed: u64,
    pub restarts: usize,
    pub recovery_p50_s: f64,
    pub recovery_max_s: f64,
    pub build_seconds: f64,
    pub log_mib: u64,
}

/// What can go wrong: the disk, or the engine.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

pub fn run(spec: &RecoverySpec) -> Result<RecoveryReport, Failure> {
    let path = spec.data_dir.join(store::LOG_FILE);
    let started = Instant::now();
    let revision = build(spec, &path)?;
    let build_seconds = started.elapsed().as_secs_f64();
    let mut taken = Vec::with_capacity(spec.restarts);
    for _ in 0..spec.restarts {
        let started = Instant::now();
        let engine = open(&path)?;
        taken.push(started.elapsed().as_secs_f64());
        let reached = engine.read(|state| state.revision().0);
        if reached != revision {
            return Err(format!("recovered {reached} of {revision} commands").into());
        }
    }
    taken.sort_by(f64::total_cmp);
    Ok(RecoveryReport {
        hosts: spec.hosts,
        vms: spec.vms,
        tail: spec.tail,
        seed: spec.seed,
        restarts: spec.restarts,
        recovery_p50_s: taken.get(taken.len() / 2).copied().unwrap_or(0.0),
        recovery_max_s: taken.last().copied().unwrap_or(0.0),
        build_seconds,
        log_mib: std::fs::metadata(&path)?.len() >> 20,
    })
}

fn open(path: &Path) -> Result<Engine<EmbeddedLog>, Failure> {
    let log = EmbeddedLog::open(path, store::Options::default())?;
    Ok(Engine::open(log, Options { snapshot_every: 0, retain: u64::MAX })?)
}

/// Writes the fleet, a snapshot and the tail. Returns the last revision.
fn build(spec: &RecoverySpec, path: &Path) -> Result<u64, Failure> {
    let fleet = Fleet::generate(&FleetSpec::new(spec.hosts, spec.vms, spec.seed));
    let mut churn = Churn::new(&fleet, &MixSpec::default(), 1);
    let mut engine = open(path)?;
    for request in crate::scale::loading(fleet) {
        propose(&mut engine, request)?;
    }
    engine.snapshot_now()?;
    let first = engine.log().head().revision;
    while engine.read(|state| state.revision().0) - first < spec.tail {
        let Some(event) = churn.next() else { break };
        match event {
            Event::Depart(vm) => {
                propose(&mut engine, Request::RemoveVm { vm, if_generation: None })?
            }
            Event::Arrive(vm) => {
                let key = vm.key.clone();
                propose(&mut engine, Request::Place(PlaceRequest::new(*vm)))?;
                if engine.read(|state| state.find_vm(&key).is_none()) {
                    churn.refused();
                }
            }
        }
    }
    engine.commit()?;
    Ok(engine.log().head().revision)
}

fn propose(engine: &mut Engine<EmbeddedLog>, request: Request) -> Result<(), Refusal> {
    engine.propose(&Call::internal(request), 0)?;
    if engine.pending().0 >= COMMIT_EVERY {
        engine.commit()?;
    }
    Ok(())
}
