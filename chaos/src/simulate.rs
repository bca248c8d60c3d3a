//! Many seeds on many threads, each run twice; a run that broke a promise is told again.

use crate::machine::{Embedded, Medium, Simulated};
use crate::report::Report;
use crate::story::Story;
use crate::violation::{Finding, Law, Violation};
use crate::world::{Outline, World};
use fixture::Dice;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;
use store::SimulatedOptions;

/// What to simulate. The seeds are `first_seed` and those after it.
#[derive(Clone, Copy, Debug)]
pub struct Spec {
    pub first_seed: u64,
    pub seeds: u64,
    pub cycles_per_seed: u64,
    pub threads: usize,
    pub storage: Storage,
    #[cfg(feature = "planted-bugs")]
    pub bug: Option<crate::planted::Bug>,
}

/// The log under the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Storage {
    /// The simulator's own.
    Simulated,
    /// The service's, on the simulated disk.
    Embedded,
}

impl Default for Spec {
    fn default() -> Self {
        Self {
            first_seed: 1,
            seeds: 100,
            cycles_per_seed: 10,
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            storage: Storage::Simulated,
            #[cfg(feature = "planted-bugs")]
            bug: None,
        }
    }
}

/// Runs the seeds of `spec`. Stops taking new ones after the first violation.
pub fn simulate(spec: &Spec) -> Report {
    let started = Instant::now();
    let (next, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    let mut report = Report { first_seed: spec.first_seed, ..Report::default() };
    let work = || {
        let mut part = Report::default();
        plant(spec);
        while !stop.load(Ordering::Relaxed) {
            let row = next.fetch_add(1, Ordering::Relaxed);
            if row >= spec.seeds {
                break;
            }
            match run_twice(spec, spec.first_seed.wrapping_add(row)) {
                Ok(outline) => part.count(&outline),
                Err(violation) => {
                    part.violations.push(*violation);
                    stop.store(true, Ordering::Relaxed);
                }
            }
        }
        part
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..spec.threads.max(1)).map(|_| scope.spawn(work)).collect();
        for thread in threads {
            match thread.join() {
                Ok(part) => report.add(&part),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
    });
    report.violations.sort_by_key(|violation| violation.seed);
    report.elapsed = started.elapsed();
    report
}

fn run_twice(spec: &Spec, seed: u64) -> Result<Outline, Box<Violation>> {
    let first = run(spec, seed, Story::default())?;
    let again = run(spec, seed, Story::default())?;
    if first == again {
        return Ok(first);
    }
    let what = "two runs of the seed went different ways".to_owned();
    let finding = Finding { law: Law::Deterministic, what };
    Err(Box::new(Violation { seed, cycle: first.cycles as u32, finding, story: Vec::new() }))
}

fn run(spec: &Spec, seed: u64, story: Story) -> Result<Outline, Box<Violation>> {
    match spec.storage {
        Storage::Simulated => run_on(spec, seed, story, Simulated(options(spec, seed))),
        Storage::Embedded => run_on(spec, seed, story, Embedded),
    }
}

fn run_on<M: Medium + Copy>(
    spec: &Spec,
    seed: u64,
    story: Story,
    medium: M,
) -> Result<Outline, Box<Violation>> {
    let mut world = World::new(seed, medium, story);
    let Err(finding) = world.run(spec.cycles_per_seed) else { return Ok(world.outline) };
    let cycle = world.outline.cycles as u32;
    // The same seed leads to the same end, so it can be told from the start.
    let mut told = World::new(seed, medium, Story::told());
    let _ = told.run(spec.cycles_per_seed);
    let story = told.story.into_lines();
    Err(Box::new(Violation { seed, cycle, finding, story }))
}

fn options(spec: &Spec, seed: u64) -> SimulatedOptions {
    let segment_bytes = *Dice::stream(seed, 3).pick(&[2 << 10, 16 << 10, 1 << 20]);
    let options = SimulatedOptions { segment_bytes, ..SimulatedOptions::default() };
    #[cfg(feature = "planted-bugs")]
    let options = SimulatedOptions { planted: spec.bug.and_then(|bug| bug.in_store()), ..options };
    #[cfg(not(feature = "planted-bugs"))]
    let _ = spec;
    options
}

fn plant(spec: &Spec) {
    #[cfg(feature = "planted-bugs")]
    engine::planted::plant(spec.bug.and_then(|bug| bug.in_engine()));
    #[cfg(not(feature = "planted-bugs"))]
    let _ = spec;
}
