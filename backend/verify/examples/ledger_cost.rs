//! What the ledger costs on a fleet: time per check, add and remove, and memory per VM.
//!
//! `cargo run --release -p verify --example ledger_cost [hosts] [vms]`. Half of the VMs are in
//! groups of ten. The questions have the mix of the scale bench (30 % selectors, 20 %
//! anti-affinity, 20 % spread, 10 % taints) and are about hosts that may take the VM, as the
//! engine's are; the last line asks about hosts taken at random instead.

#![allow(clippy::print_stdout)]

use cluster::{
    Affinity, AffinityKind, Amounts, Dim, Host, HostIx, Labels, Level, Name, Placed, Selector,
    SelectorOp, Snapshot, Spread, Strength, Subject, Taint, TaintEffect, Toleration, TolerationOp,
    Vm, VmKey,
};
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;
use verify::{Ledger, demand_on};

const QUESTIONS: usize = 20_000;
const ROUNDS: usize = 5;

fn main() {
    let mut arguments = std::env::args().skip(1).filter_map(|text| text.parse().ok());
    let hosts: usize = arguments.next().unwrap_or(10_000);
    let vms: usize = arguments.next().unwrap_or(100_000);
    let fleet: Vec<Host> = (0..hosts).map(host).collect();
    let mut dice = Dice(42);

    let mut ledger = Ledger::new(Dim::BUILT_IN);
    let started = Instant::now();
    for (row, host) in fleet.iter().enumerate() {
        ledger.put_host(HostIx(row as u32), host);
    }
    println!("{hosts} hosts, put_host {:.2} us each", micros(started) / hosts as f64);

    let mut homes = vec![0; vms];
    let before = resident_kib();
    for (number, home) in homes.iter_mut().enumerate() {
        *home = dice.below(hosts) as u32;
        let vm = resident(number);
        ledger.add_vm(HostIx(*home), &vm, &vm.demand).expect("a new VM");
    }
    let grown = resident_kib().saturating_sub(before) * 1024;
    println!("{vms} VMs, {} bytes each in the ledger", grown / vms.max(1) as u64);

    change("add and remove without rules", &mut ledger, &fleet, &mut dice, plain);
    change("add and remove in a group", &mut ledger, &fleet, &mut dice, |number| {
        resident(vms + 2 * number + 1)
    });

    let mut fitting = Vec::new();
    let mut anywhere = Vec::new();
    while fitting.len() < QUESTIONS {
        let vm = newcomer(fitting.len(), vms, &mut dice);
        for _ in 0..200 {
            let row = dice.below(hosts);
            let accepted = ask(&ledger, &fleet, &vm, row);
            anywhere.push((vm.clone(), row));
            if accepted {
                fitting.push((vm, row));
                break;
            }
        }
    }
    anywhere.truncate(QUESTIONS);
    let kind = |wanted: fn(&Vm) -> bool| {
        fitting.iter().filter(|(vm, _)| wanted(vm)).cloned().collect::<Vec<_>>()
    };
    time("check, all that fit", &ledger, &fleet, &fitting);
    time(
        "check, no rules",
        &ledger,
        &fleet,
        &kind(|vm| vm.spreads.is_empty() && vm.affinities.is_empty()),
    );
    time("check, anti-affinity", &ledger, &fleet, &kind(|vm| !vm.affinities.is_empty()));
    time("check, spread", &ledger, &fleet, &kind(|vm| !vm.spreads.is_empty()));
    time("check, random hosts", &ledger, &fleet, &anywhere);
    drop(ledger);
    rederive(&fleet, &homes);
}

/// The plain reading of the same fleet, for comparison.
fn rederive(fleet: &[Host], homes: &[u32]) {
    let placed = homes.iter().enumerate().map(|(number, home)| {
        let vm = Arc::new(resident(number));
        let (committed, host) = (vm.demand.clone(), fleet[*home as usize].id.clone());
        let bindings = None;
        Placed { vm, host, committed, bindings, over_capacity: false, adopted: false, held: false }
    });
    let hosts = fleet.iter().cloned().map(Arc::new).collect();
    let snapshot = Snapshot { hosts, placed: placed.collect(), ..Snapshot::default() };
    let started = Instant::now();
    let report = verify::snapshot(&snapshot);
    println!(
        "full re-derivation: {:.0} ms, {} drifted",
        micros(started) / 1000.0,
        report.drift.len()
    );
}

fn ask(ledger: &Ledger, fleet: &[Host], vm: &Vm, row: usize) -> bool {
    ledger.check(vm, HostIx(row as u32), &fleet[row].id, &demand_on(&fleet[row], vm)).is_empty()
}

fn time(what: &str, ledger: &Ledger, fleet: &[Host], questions: &[(Vm, usize)]) {
    let mut nanos = Vec::with_capacity(questions.len() * ROUNDS);
    let mut accepted = 0;
    for _ in 0..ROUNDS {
        for (vm, row) in questions {
            let (ix, id) = (HostIx(*row as u32), &fleet[*row].id);
            let committed = demand_on(&fleet[*row], vm);
            let started = Instant::now();
            let found = black_box(ledger.check(vm, ix, id, &committed));
            nanos.push(started.elapsed().as_nanos() as u64);
            accepted += usize::from(found.is_empty());
        }
    }
    show(
        what,
        nanos,
        &format!(", {} % accepted", 100 * accepted / (questions.len() * ROUNDS).max(1)),
    );
}

fn change(
    what: &str,
    ledger: &mut Ledger,
    fleet: &[Host],
    dice: &mut Dice,
    make: impl Fn(usize) -> Vm,
) {
    let (mut adds, mut removes) = (Vec::new(), Vec::new());
    let batch: Vec<(Vm, HostIx)> = (0..QUESTIONS)
        .map(|number| (make(number), HostIx(dice.below(fleet.len()) as u32)))
        .collect();
    for (vm, ix) in &batch {
        let started = Instant::now();
        ledger.add_vm(*ix, vm, &vm.demand).expect("a new VM");
        adds.push(started.elapsed().as_nanos() as u64);
    }
    for (vm, ix) in &batch {
        let started = Instant::now();
        ledger.remove_vm(*ix, vm, &vm.demand).expect("it was added");
        removes.push(started.elapsed().as_nanos() as u64);
    }
    show(&format!("{what}: add"), adds, "");
    show(&format!("{what}: remove"), removes, "");
}

fn show(what: &str, mut nanos: Vec<u64>, more: &str) {
    if nanos.is_empty() {
        return;
    }
    nanos.sort_unstable();
    let at = |permille: usize| nanos[(nanos.len() - 1) * permille / 1000] as f64 / 1000.0;
    let (p50, p99, top) = (at(500), at(990), at(1000));
    println!(
        "{what}: p50 {p50:.2} us, p99 {p99:.2} us, p99.9 {:.2} us, max {top:.2} us{more}",
        at(999)
    );
}

fn host(number: usize) -> Host {
    let capacity = Amounts::from_slice(&[64_000, 262_144, 8_000, 100_000, 40_000]);
    let mut host = Host::new(named("host-", number), capacity);
    host.pool = Some(named("pool-", number / 40 % 5));
    host.location.rack = Some(named("rack-", number / 40));
    host.location.zone = Some(named("zone-", number / 40 % 6));
    host.location.region = Some(named("region-", number / 40 % 2));
    host.labels = Labels::from_iter([
        (name("disk"), named("disk-", number % 3)),
        (name("cpu"), named("generation-", number / 7 % 4)),
    ]);
    if number.is_multiple_of(10) {
        let effect = TaintEffect::NoSchedule;
        host.taints = vec![Taint { key: name("dedicated"), value: None, effect }];
    }
    host
}

fn plain(number: usize) -> Vm {
    Vm::new(VmKey::in_default_tenant(named("plain-", number)), Amounts::cpu_memory(100, 256))
}

/// A VM that is there already: half of them are in groups, and two in ten keep the others of
/// their group off their host.
fn resident(number: usize) -> Vm {
    let mut vm = plain(number);
    vm.key.id = named("resident-", number);
    if number % 2 == 1 {
        let group = named("group-", number / 20);
        vm.groups = vec![group.clone()];
        if number % 10 < 4 {
            vm.affinities = vec![apart(group, Level::Host)];
        }
    }
    vm
}

fn newcomer(number: usize, vms: usize, dice: &mut Dice) -> Vm {
    let mut vm = plain(number);
    vm.key.id = named("newcomer-", number);
    let group = named("group-", dice.below(vms) / 20);
    if dice.below(10) < 3 {
        let op = SelectorOp::In(vec![named("disk-", dice.below(3))]);
        vm.selectors = vec![Selector { key: name("disk"), op }];
    }
    if dice.below(10) < 1 {
        vm.tolerations = vec![Toleration {
            key: Some(name("dedicated")),
            op: TolerationOp::Exists,
            effect: None,
        }];
    }
    match dice.below(10) {
        0 | 1 => {
            vm.groups = vec![group.clone()];
            let level = if dice.below(2) == 0 { Level::Host } else { Level::Rack };
            vm.affinities = vec![apart(group, level)];
        }
        2 | 3 => {
            let level = if dice.below(2) == 0 { Level::Rack } else { Level::Zone };
            vm.pool = (dice.below(2) == 0).then(|| named("pool-", dice.below(5)));
            vm.spreads = vec![Spread { group, level, max_skew: 1, strength: Strength::Required }];
        }
        _ => {}
    }
    vm
}

fn apart(group: Name, level: Level) -> Affinity {
    let (kind, strength) = (AffinityKind::Apart, Strength::Required);
    Affinity { kind, subject: Subject::Group(group), level, strength }
}

fn named(prefix: &str, number: usize) -> Name {
    name(&format!("{prefix}{number}"))
}

fn name(text: &str) -> Name {
    Name::new(text).expect("a valid name")
}

fn micros(since: Instant) -> f64 {
    since.elapsed().as_nanos() as f64 / 1000.0
}

/// Memory of this process in KiB, zero where the system does not tell.
fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    number.and_then(|number| number.parse().ok()).unwrap_or(0)
}

struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % limit as u64) as usize
    }
}
