//! Times a batch of VMs on a large fleet by four goals: `batch HOSTS PLACED ARRIVALS STEPS SEED`.
//!
//! Prints what each part takes from a ready snapshot, what the batch is worth, and the most memory
//! that the process had. With a last argument `all`, every VM is a row that may move.

#![allow(clippy::print_stdout)]

use cluster::{GoalKind, Snapshot, Vm};
use fixture::{Fleet, FleetSpec, MixSpec, Requests};
use solver::assignment::{Ask, Budget, Model, Outcome, State, arrivals_only, from_fleet};
use solver::engines::{Annealing, Engine, Greedy, Lns, Task};
use solver::objective::{Setting, Wish, add_goals};
use std::sync::Arc;
use std::time::Instant;

fn main() {
    let given: Vec<String> = std::env::args().skip(1).collect();
    let number =
        |at: usize, usual: u64| given.get(at).and_then(|text| text.parse().ok()).unwrap_or(usual);
    let (hosts, placed) = (number(0, 10_000) as usize, number(1, 100_000) as usize);
    let (count, steps, seed) = (number(2, 1_000) as usize, number(3, 10_000), number(4, 1));
    let all = given.get(5).is_some_and(|text| text == "all");
    let fleet = Fleet::generate(&FleetSpec::new(hosts, placed, seed));
    let mix = MixSpec { infeasible: 0, ..MixSpec::default() };
    let requests = Requests::new(&fleet, &mix, seed).take(count + count / 50);
    let requests: Vec<Arc<Vm>> = requests.map(Arc::new).collect();
    let snapshot = fleet.snapshot();
    drop(fleet);
    let arrivals = with_room(&snapshot, requests, count);
    println!("ready: {} MiB", memory_mib());
    let (begin, cpu) = (Instant::now(), cpu_ms());
    let mut last = (begin, cpu);
    let mut lap = |what: &str| {
        println!("{what}: {} ms, {} ms of CPU", last.0.elapsed().as_millis(), cpu_ms() - last.1);
        last = (Instant::now(), cpu_ms());
    };
    let ask = Ask { snapshot: &snapshot, arrivals: &arrivals, stays: &|_| false, may_stay: true };
    let made = if all { from_fleet(ask) } else { arrivals_only(&snapshot, &arrivals) };
    let mut fleet = made.expect("no rules that are not modelled");
    lap("problem");
    let kinds = [GoalKind::Energy, GoalKind::Cost, GoalKind::Latency, GoalKind::Reliability];
    let wishes = kinds.map(|kind| Wish { kind, weight: 100 });
    let setting = Setting::default();
    let objective =
        add_goals(&mut fleet, &snapshot, &arrivals, &wishes, &setting).expect("goals that fit");
    lap("goals");
    let model = Model::compile(&fleet.problem).expect("a sound problem");
    lap("compile");
    let task = Task::new(&fleet.problem, &model, seed);
    let greedy = Greedy.solve(task, &mut Budget::steps(u64::MAX));
    lap("greedy");
    let show = |outcome: &Outcome| {
        let (objective, bound) = (outcome.objective.unwrap_or(0), outcome.bound);
        let gap = (objective - bound) as f64 / objective.max(1) as f64;
        println!("  {}: {objective}, bound {bound}, gap {gap:.4}", outcome.engine);
    };
    show(&greedy);
    let Some(start) = greedy.assignment.as_deref() else {
        println!("no assignment");
        return;
    };
    let task = Task { start: Some(start), ..task };
    let lns = Lns::default().solve(task, &mut Budget::steps(steps));
    lap("lns");
    let (wall, busy) = (begin.elapsed().as_millis(), cpu_ms() - cpu);
    println!("in all: {wall} ms, {busy} ms of CPU, {} rows, {} MiB", model.vms(), memory_mib());
    show(&lns);
    let annealing = Annealing::default().solve(task, &mut Budget::steps(steps * 50));
    lap("annealing");
    show(&annealing);
    let judge = objective.judge(&fleet.problem).expect("sound goals");
    for outcome in [greedy, lns, annealing] {
        let hosts = outcome.assignment.unwrap_or_default();
        for value in judge.values(&hosts) {
            let (kind, unit) = (value.kind.name(), value.kind.unit());
            print!("  {kind} {} {unit} ({:.3})", value.value, value.normalised);
        }
        println!("  {}", outcome.engine);
    }
    println!("most memory: {} MiB", memory_mib());
}

/// The first so many VMs that some host has room for as the fleet is.
fn with_room(snapshot: &Snapshot, requests: Vec<Arc<Vm>>, count: usize) -> Vec<Arc<Vm>> {
    let fleet = arrivals_only(snapshot, &requests).expect("no rules that are not modelled");
    let model = Model::compile(&fleet.problem).expect("a sound problem");
    let state = State::empty(&model);
    let first = model.vms() - requests.len();
    let fits = |vm: usize| (0..model.hosts() as u32).any(|host| state.fits(vm as u32, host));
    let rows = requests.into_iter().enumerate().filter(|(row, _)| fits(first + row));
    rows.map(|(_, vm)| vm).take(count).collect()
}

/// How long this thread had a processor.
fn cpu_ms() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let first = text.split_whitespace().next();
    first.and_then(|text| text.parse::<u64>().ok()).unwrap_or(0) / 1_000_000
}

/// The most that the process had at once.
fn memory_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM"));
    let kib = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
    kib.unwrap_or(0) / 1024
}
