//! A reporter that runs VMs, and channels that lose, delay, repeat and reorder what it says.
//!
//! The reporter is the truth: VMs that were placed here, VMs that were not, starts, ends, moves
//! and new sizes. After every step, what the engine counts on a host must be at least what truly
//! runs there plus what is held; excused is only what the reporter did by itself and has told
//! nobody yet. When everything has arrived, the engine must know the truth exactly.

mod common;

use cluster::{Amounts, Dim};
use common::{Bench, key, name, vm};
use engine::{Options, PlaceRequest, Request, UseReport, UseReports, VmNews};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::collections::BTreeMap;
use std::sync::Arc;

const HOSTS: usize = 4;
const CORES: u64 = 16;
const SECOND_NS: u64 = 1_000_000_000;
const TTL_S: u64 = 30;
/// A hold of `TTL_S` is safe if the VM starts, is reported and the report arrives within it.
const LONGEST_START_S: u64 = 9;
const LONGEST_DELAY_S: u64 = 7;
const REPORT_EVERY_S: u64 = 3;
const REPORTS_LOST_IN_A_ROW: u64 = 2;

/// A VM as it truly is.
#[derive(Clone, Debug)]
struct True {
    host: usize,
    cores: u64,
    /// When it came to this host or to this size.
    since_ns: u64,
    /// It runs where we placed it, and as large.
    as_placed: bool,
}

#[derive(Clone, Debug)]
enum Message {
    News { vm: String, at_ns: u64, news: VmNews },
    Report(UseReports),
}

struct World {
    dice: Xoshiro256PlusPlus,
    bench: Option<Bench>,
    now_s: u64,
    /// The reporter's clock: every happening has its own instant.
    clock_ns: u64,
    vms: BTreeMap<String, True>,
    /// Placed here, and about to be started there at this time.
    starting: Vec<(u64, String, usize, u64)>,
    ended: BTreeMap<String, u64>,
    on_the_way: Vec<(u64, Message)>,
    /// When the report that was applied last was taken.
    taken_ns: u64,
    generation: u64,
    lost_reports: u64,
    next: u64,
    placed: u64,
    refused_there: u64,
}

impl World {
    fn new(seed: u64) -> Self {
        let options = Options { snapshot_every: 0, retain: 10_000 };
        Self {
            dice: Xoshiro256PlusPlus::seed_from_u64(seed),
            bench: Some(Bench::with_options(&[CORES * 1_000; HOSTS], options)),
            now_s: 0,
            clock_ns: 1,
            vms: BTreeMap::new(),
            starting: Vec::new(),
            ended: BTreeMap::new(),
            on_the_way: Vec::new(),
            taken_ns: 0,
            generation: 0,
            lost_reports: 0,
            next: 0,
            placed: 0,
            refused_there: 0,
        }
    }

    fn below(&mut self, end: u64) -> u64 {
        self.dice.random_range(0..end)
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    fn bench(&mut self) -> &mut Bench {
        self.bench.as_mut().expect("only a restart takes it")
    }

    fn tick_clock(&mut self) -> u64 {
        self.clock_ns = (self.clock_ns + 1).max(self.now_s * SECOND_NS);
        self.clock_ns
    }

    fn used(&self, host: usize) -> u64 {
        self.vms.values().filter(|vm| vm.host == host).map(|vm| vm.cores).sum()
    }

    fn step(&mut self, seed: u64) {
        self.now_s += 1;
        self.bench().now_ms += 1_000;
        self.bench().ask(Request::Tick).expect("a tick");
        self.start_what_is_due();
        match self.below(100) {
            0..25 => self.place(),
            25..33 => self.start_by_itself(),
            33..43 => self.end(),
            43..49 => self.migrate(),
            49..53 => self.resize(),
            53 => {
                let bench = self.bench.take().expect("there");
                self.bench = Some(bench.restart());
            }
            _ => {}
        }
        if self.now_s.is_multiple_of(REPORT_EVERY_S) {
            self.report();
        }
        self.deliver();
        self.check(seed);
    }

    fn place(&mut self) {
        self.next += 1;
        let (id, cores) = (format!("v{}", self.next), 1 + self.below(6));
        let request = PlaceRequest {
            hold_ttl_ms: Some(TTL_S * 1_000),
            ..PlaceRequest::new(vm(&id, cores * 1_000))
        };
        let placement = self.bench().place_request(request).expect("an answer");
        let Some(host) = placement.host else { return };
        self.placed += 1;
        let host = host.as_str()[1..].parse().expect("hosts are h0, h1, ...");
        if self.chance(90) {
            let at_s = self.now_s + self.below(LONGEST_START_S + 1);
            self.starting.push((at_s, id, host, cores));
        }
    }

    fn start_what_is_due(&mut self) {
        let due = |(at_s, ..): &(u64, String, usize, u64)| *at_s <= self.now_s;
        let (now, later) = std::mem::take(&mut self.starting).into_iter().partition(due);
        self.starting = later;
        for (_, id, host, cores) in now {
            if self.used(host) + cores > CORES {
                self.refused_there += 1;
                continue;
            }
            let since_ns = self.tick_clock();
            self.vms.insert(id.clone(), True { host, cores, since_ns, as_placed: true });
            let described = self.chance(50);
            self.tell_runs(&id, described);
        }
    }

    fn start_by_itself(&mut self) {
        self.next += 1;
        let (id, cores) = (format!("x{}", self.next), 1 + self.below(4));
        let host = self.below(HOSTS as u64) as usize;
        if self.used(host) + cores > CORES {
            return;
        }
        let since_ns = self.tick_clock();
        self.vms.insert(id.clone(), True { host, cores, since_ns, as_placed: false });
        if self.chance(60) {
            self.tell_runs(&id, true);
        }
    }

    fn any(&mut self) -> Option<String> {
        let row = self.below(self.vms.len().max(1) as u64) as usize;
        self.vms.keys().nth(row).cloned()
    }

    fn end(&mut self) {
        let Some(id) = self.any() else { return };
        self.vms.remove(&id);
        let at_ns = self.tick_clock();
        self.ended.insert(id.clone(), at_ns);
        self.send(Message::News { vm: id, at_ns, news: VmNews::Gone });
    }

    fn migrate(&mut self) {
        let Some(id) = self.any() else { return };
        let host = self.below(HOSTS as u64) as usize;
        if self.used(host) + self.vms[&id].cores > CORES {
            return;
        }
        let since_ns = self.tick_clock();
        let vm = self.vms.get_mut(&id).expect("there");
        *vm = True { host, since_ns, as_placed: false, ..vm.clone() };
        self.tell_runs(&id, true);
    }

    fn resize(&mut self) {
        let Some(id) = self.any() else { return };
        let cores = 1 + self.below(6);
        let True { host, cores: before, .. } = self.vms[&id];
        if self.used(host) - before + cores > CORES {
            return;
        }
        let since_ns = self.tick_clock();
        let vm = self.vms.get_mut(&id).expect("there");
        *vm = True { cores, since_ns, as_placed: false, ..vm.clone() };
        self.tell_runs(&id, true);
    }

    fn tell_runs(&mut self, id: &str, described: bool) {
        let message = self.runs(id, described);
        self.send(message);
    }

    fn runs(&self, id: &str, described: bool) -> Message {
        let True { host, cores, since_ns, .. } = self.vms[id];
        let vm = described.then(|| Arc::new(vm(id, cores * 1_000)));
        let news = VmNews::Runs { host: name(&format!("h{host}")), vm };
        Message::News { vm: id.to_owned(), at_ns: since_ns, news }
    }

    fn report(&mut self) {
        let message = self.inventory();
        if self.lost_reports < REPORTS_LOST_IN_A_ROW && self.chance(25) {
            self.lost_reports += 1;
            return;
        }
        self.lost_reports = 0;
        let late_s = self.below(LONGEST_DELAY_S + 1);
        self.on_the_way.push((self.now_s + late_s, message));
    }

    fn inventory(&mut self) -> Message {
        self.generation += 1;
        let reports = (0..HOSTS).map(|host| UseReport {
            host: name(&format!("h{host}")),
            used: Amounts::cpu_memory(self.used(host) * 1_000, 0),
            vms: Some(self.vms.values().filter(|vm| vm.host == host).count() as u32),
        });
        let reports = reports.collect();
        Message::Report(UseReports {
            generation: self.generation,
            base: None,
            digest: [0; 16],
            taken_ns: Some(self.tick_clock()),
            last: true,
            reports,
        })
    }

    /// Into the channel, where it may be lost, late, or there twice.
    fn send(&mut self, message: Message) {
        if self.chance(20) {
            return;
        }
        let copies = if self.chance(20) { 2 } else { 1 };
        for _ in 0..copies {
            let late_s = self.below(LONGEST_DELAY_S + 1);
            self.on_the_way.push((self.now_s + late_s, message.clone()));
        }
    }

    fn deliver(&mut self) {
        let due = |(at_s, _): &(u64, Message)| *at_s <= self.now_s;
        let (mut now, later): (Vec<_>, _) =
            std::mem::take(&mut self.on_the_way).into_iter().partition(due);
        self.on_the_way = later;
        while !now.is_empty() {
            let row = self.below(now.len() as u64) as usize;
            let (_, message) = now.swap_remove(row);
            self.hand_over(message);
        }
    }

    fn hand_over(&mut self, message: Message) {
        let request = match message {
            Message::News { vm, at_ns, news } => Request::ReportVm { vm: key(&vm), at_ns, news },
            Message::Report(reports) => {
                self.taken_ns = reports.taken_ns.expect("always said");
                Request::ReportUse(Box::new(reports))
            }
        };
        self.bench().ask(request).expect("known hosts");
    }

    /// What the engine counts on a host: committed and foreign.
    fn counted(&self, host: usize) -> u64 {
        self.bench.as_ref().expect("there").engine.read(|state| {
            let (_, entry) = state.find_host(&name(&format!("h{host}"))).expect("there");
            let cpu = Dim::CPU_MILLIS;
            (entry.allocated.get(cpu) + entry.foreign().used.get(cpu)) / 1_000
        })
    }

    fn check(&self, seed: u64) {
        for host in 0..HOSTS {
            let (mut held, mut excused) = (0, 0);
            self.bench.as_ref().expect("there").engine.read(|state| {
                let (ix, entry) = state.find_host(&name(&format!("h{host}"))).expect("there");
                for vm in entry.vms.iter().filter_map(|vm| state.vm(*vm)) {
                    let running = self.vms.get(vm.vm.key.id.as_str());
                    if vm.hold.is_some() && running.is_none_or(|running| running.host != host) {
                        held += vm.committed.get(Dim::CPU_MILLIS) / 1_000;
                    }
                }
                for (id, truth) in self.vms.iter().filter(|(_, truth)| truth.host == host) {
                    let known = state.find_vm(&key(id)).map(|(_, entry)| entry);
                    let known = known.filter(|known| {
                        known.host == ix && (!known.included || known.heard_ns >= truth.since_ns)
                    });
                    let known = known.map_or(0, |known| known.committed.get(Dim::CPU_MILLIS));
                    let unknown = truth.cores.saturating_sub(known / 1_000);
                    if truth.since_ns >= self.taken_ns && !truth.as_placed {
                        excused += unknown;
                    }
                }
            });
            let (counted, used) = (self.counted(host), self.used(host));
            assert!(
                used + held <= counted + excused,
                "seed {seed}, second {}: h{host} runs {used} and holds {held}, but {counted} is \
                 counted and {excused} could not be known",
                self.now_s
            );
        }
    }

    /// Nothing happens any more and everything arrives: the last word on every VM, one report.
    fn settle(&mut self) {
        self.starting.clear();
        self.now_s += LONGEST_DELAY_S;
        self.deliver();
        for _ in 0..=TTL_S {
            self.bench().now_ms += 1_000;
            self.bench().ask(Request::Tick).expect("a tick");
        }
        let ended = std::mem::take(&mut self.ended);
        for (vm, at_ns) in ended {
            self.hand_over(Message::News { vm, at_ns, news: VmNews::Gone });
        }
        for id in self.vms.keys().cloned().collect::<Vec<_>>() {
            let message = self.runs(&id, true);
            self.hand_over(message);
        }
        let report = self.inventory();
        self.hand_over(report);
    }
}

#[test]
fn no_loss_delay_or_repetition_oversubscribes_a_host_and_in_the_end_every_core_is_known() {
    let (mut placed, mut refused_there) = (0, 0);
    for seed in 0..150 {
        let mut world = World::new(seed);
        for _ in 0..300 {
            world.step(seed);
        }
        world.settle();
        for host in 0..HOSTS {
            let (counted, used) = (world.counted(host), world.used(host));
            assert_eq!(counted, used, "seed {seed}: h{host} when all is said");
        }
        placed += world.placed;
        refused_there += world.refused_there;
    }
    println!("{placed} placed, {refused_there} of them overtaken by the reporter's own VMs");
    assert!(placed > 1_000, "{placed} placed");
    assert!(refused_there * 10 < placed, "{refused_there} of {placed} met no room");
}
