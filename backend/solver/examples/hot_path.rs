//! Times placing on a full fleet: `cargo run --release -p solver --example hot_path [HOSTS] [VMS]`.
//!
//! The fleet has 60 shapes on four kinds of hosts in racks and zones. Of the requests, 30 % have
//! selectors, 20 % anti-affinity, 20 % spread rules, 10 % need a toleration, and 2 % fit nowhere.

#![allow(clippy::print_stdout)]

use cluster::{
    Affinity, AffinityKind, Amounts, Host, HostIx, Labels, Level, Location, Name, Price, PriceKind,
    Selector, SelectorOp, Spread, Strength, Subject, Taint, TaintEffect, Toleration, TolerationOp,
    Vm, VmKey,
};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use solver::{How, Problem, Scratch, place, place_batch};
use std::time::{Duration, Instant};

const SHAPES: usize = 60;

fn main() {
    let mut arguments = std::env::args().skip(1).filter_map(|argument| argument.parse().ok());
    let hosts: usize = arguments.next().unwrap_or(10_000);
    let vms: usize = arguments.next().unwrap_or(hosts * 10);
    let requests: usize = arguments.next().unwrap_or(20_000);

    let mut mix = Mix::new(7, vms);
    let mut problem = Problem::new(5);
    let mut total = [0u64; 2];
    for row in 0..hosts {
        let host = mix.host(row);
        total[0] += host.capacity.get(cluster::Dim(0));
        total[1] += host.capacity.get(cluster::Dim(1));
        problem.put_host(HostIx(row as u32), &host);
    }
    let mut scratch = Scratch::default();
    let how = How::default();
    let mut used = [0u64; 2];
    let started = Instant::now();
    let mut placed = Vec::new();
    for _ in 0..vms {
        let vm = mix.vm(false);
        if let Some(chosen) = place(&mut problem, &mut scratch, &vm, &how).host {
            problem.add_vm(chosen.host, &vm, &chosen.committed);
            used[0] += chosen.committed.get(cluster::Dim(0));
            used[1] += chosen.committed.get(cluster::Dim(1));
            placed.push((chosen.host, vm, chosen.committed));
        }
    }
    println!("{} VMs placed in {:.1?}", placed.len(), started.elapsed());
    println!("cpu {} %, memory {} %", used[0] * 100 / total[0], used[1] * 100 / total[1]);

    let mut times = Vec::new();
    let mut changes = Duration::ZERO;
    let mut infeasible = 0;
    for _ in 0..requests {
        let vm = mix.vm(true);
        let started = Instant::now();
        let choice = place(&mut problem, &mut scratch, &vm, &how);
        times.push(started.elapsed());
        let started = Instant::now();
        if let Some(chosen) = choice.host {
            problem.add_vm(chosen.host, &vm, &chosen.committed);
            placed.push((chosen.host, vm, chosen.committed));
            let row = mix.below(placed.len() as u64) as usize;
            let (host, vm, committed) = placed.swap_remove(row);
            problem.remove_vm(host, &vm, &committed);
        } else {
            infeasible += 1;
        }
        changes += started.elapsed();
    }
    times.sort();
    let at = |permille: usize| times[(times.len() - 1) * permille / 1000];
    println!(
        "place p50 {:.1?} p90 {:.1?} p99 {:.1?} max {:.1?}",
        at(500),
        at(900),
        at(990),
        at(1000)
    );
    println!(
        "{infeasible} of {requests} infeasible; add + remove {:.2?} each",
        changes / requests as u32
    );

    let batches: Vec<Vec<Vm>> =
        (0..10).map(|_| (0..1000).map(|_| mix.vm(true)).collect()).collect();
    let started = Instant::now();
    for batch in &batches {
        let batch: Vec<&Vm> = batch.iter().collect();
        place_batch(&mut problem, &mut scratch, &batch, &how, false);
    }
    println!("batches of 1000: {:.0} decisions/s", 10_000.0 / started.elapsed().as_secs_f64());
    let one = mix.vm(true);
    let equal: Vec<Vm> = (0..1000)
        .map(|row| {
            let mut vm = Vm::new(one.key.clone(), one.demand.clone());
            vm.key.id = name(format!("equal-{row}"));
            vm
        })
        .collect();
    let equal: Vec<&Vm> = equal.iter().collect();
    let started = Instant::now();
    place_batch(&mut problem, &mut scratch, &equal, &how, false);
    println!("1000 equal VMs: {:.0} decisions/s", 1_000.0 / started.elapsed().as_secs_f64());
}

struct Mix {
    random: Xoshiro256PlusPlus,
    shapes: Vec<Amounts>,
    groups: u64,
    next: u64,
}

impl Mix {
    fn new(seed: u64, vms: usize) -> Self {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let shapes = (0..SHAPES).map(|_| {
            let cores = [1, 2, 2, 4, 4, 8, 12, 16][random.random_range(0..8)];
            let per_core = [2, 4, 4, 8][random.random_range(0..4)];
            Amounts::from_slice(&[
                cores * 1_000,
                cores * per_core * 1_024,
                random.random_range(1..20) * 20,
                random.random_range(1..10) * 100,
                random.random_range(1..10) * 50,
            ])
        });
        Self { shapes: shapes.collect(), random, groups: vms as u64 / 20, next: 0 }
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.random.random_range(0..bound)
    }

    fn host(&mut self, row: usize) -> Host {
        let cores = [32, 48, 48, 96][self.below(4) as usize];
        let capacity = Amounts::from_slice(&[cores * 1_000, cores * 4_096, 8_000, 100_000, 25_000]);
        let mut host = Host::new(name(format!("host-{row}")), capacity);
        let rack = row / 40;
        host.location = Location {
            region: Some(name(format!("region-{}", rack % 2))),
            zone: Some(name(format!("zone-{}", rack % 6))),
            rack: Some(name(format!("rack-{rack}"))),
            power_feed: None,
        };
        let disk = ["ssd", "nvme", "hdd"][self.below(3) as usize];
        let cpu = ["zen3", "zen4", "icx", "spr"][self.below(4) as usize];
        let labels =
            [(name("disk".into()), name(disk.into())), (name("cpu".into()), name(cpu.into()))];
        host.labels = Labels::from_iter(labels);
        if self.below(100) < 10 {
            host.taints.push(Taint {
                key: name("dedicated".into()),
                value: Some(name("batch".into())),
                effect: TaintEffect::NoSchedule,
            });
        }
        host.price =
            Price { kind: PriceKind::OnDemand, micros_per_hour: cores * (900 + self.below(200)) };
        host
    }

    fn vm(&mut self, may_be_infeasible: bool) -> Vm {
        let shape = self.below(SHAPES as u64) as usize;
        let id = name(format!("vm-{}", self.next));
        self.next += 1;
        let tenant = name(format!("tenant-{}", self.below(50)));
        let mut vm = Vm::new(VmKey { tenant, id }, self.shapes[shape].clone());
        if self.below(100) < 30 {
            let (key, value) = match self.below(5) {
                0 => ("disk", "nvme"),
                1 => ("disk", "ssd"),
                2 => ("cpu", "zen4"),
                3 => ("cpu", "spr"),
                _ => ("cpu", "icx"),
            };
            let op = SelectorOp::In(vec![name(value.into())]);
            vm.selectors.push(Selector { key: name(key.into()), op });
        }
        let group = name(format!("group-{}", self.below(self.groups.max(1))));
        if self.below(100) < 20 {
            vm.groups.push(group.clone());
            let level = if self.below(2) == 0 { Level::Host } else { Level::Rack };
            vm.affinities.push(Affinity {
                kind: AffinityKind::Apart,
                subject: Subject::Group(group.clone()),
                level,
                strength: if self.below(3) == 0 {
                    Strength::Preferred(100)
                } else {
                    Strength::Required
                },
            });
        }
        if self.below(100) < 20 {
            vm.spreads.push(Spread {
                group,
                level: if self.below(2) == 0 { Level::Zone } else { Level::Rack },
                max_skew: 1 + self.below(3) as u32,
                strength: if self.below(3) == 0 {
                    Strength::Preferred(100)
                } else {
                    Strength::Required
                },
            });
        }
        if self.below(100) < 10 {
            vm.tolerations.push(Toleration {
                key: Some(name("dedicated".into())),
                op: TolerationOp::Equal(Some(name("batch".into()))),
                effect: None,
            });
        }
        if may_be_infeasible && self.below(100) < 2 {
            vm.demand.set(cluster::Dim::MEMORY_MIB, 1 << 24);
        }
        vm
    }
}

fn name(text: String) -> Name {
    Name::new(&text).expect("a valid name")
}
