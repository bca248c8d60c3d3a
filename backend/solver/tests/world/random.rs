//! Random hosts and VMs from a vocabulary small enough that rules meet.

use cluster::{
    Affinity, AffinityKind, Amounts, CpuUnit, DataRef, DataSite, Dim, Foreign, Hints, Host,
    HostState, Labels, Level, Location, Name, Price, PriceKind, Qos, RegionLatency, Selector,
    SelectorOp, Spread, Strategy, Strength, Subject, Taint, TaintEffect, Toleration, TolerationOp,
    Vm, VmKey,
};
use policy::Weights;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use solver::How;

pub(crate) struct Random(Xoshiro256PlusPlus);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0.random_range(0..bound)
    }

    pub(crate) fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    pub(crate) fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize].clone()
    }

    fn name(&mut self, prefix: &str, count: u64) -> Name {
        name(&format!("{prefix}{}", self.below(count)))
    }

    fn maybe(&mut self, percent: u64, prefix: &str, count: u64) -> Option<Name> {
        self.chance(percent).then(|| self.name(prefix, count))
    }

    fn some<T>(&mut self, percent: u64, most: u64, mut make: impl FnMut(&mut Self) -> T) -> Vec<T> {
        let count = if self.chance(percent) { 1 + self.below(most) } else { 0 };
        (0..count).map(|_| make(self)).collect()
    }

    pub(crate) fn host(&mut self, row: usize) -> Host {
        let mut capacity = Amounts::from_slice(&[
            self.pick(&[4_000, 8_000, 16_001]),
            self.pick(&[16_384, 32_768, 65_537]),
            self.pick(&[0, 500, 1_000]),
            self.pick(&[0, 10_000]),
        ]);
        if self.chance(20) {
            capacity.set(Dim(6), 4);
        }
        let mut host = Host::new(name(&format!("h{row}")), capacity);
        host.pool = self.maybe(70, "pool", 2);
        host.location = Location {
            region: self.maybe(90, "region", 2),
            zone: self.maybe(90, "zone", 3),
            rack: self.maybe(90, "rack", 6),
            power_feed: self.maybe(70, "feed", 2),
        };
        let labels = self.some(70, 3, |random| (random.name("key", 3), random.name("value", 3)));
        host.labels = Labels::from_iter(labels);
        host.taints = self.some(25, 3, |random| Taint {
            key: random.name("taint", 2),
            value: random.maybe(50, "value", 2),
            effect: random.effect(),
        });
        host.state = self.pick(&[
            HostState::Available,
            HostState::Available,
            HostState::Available,
            HostState::Available,
            HostState::Available,
            HostState::Available,
            HostState::Cordoned,
            HostState::Down,
        ]);
        if self.chance(30) {
            host.reserved = Amounts::cpu_memory(500, 1_024);
            host.overcommit_permille = Amounts::cpu_memory(1_500, 0);
        }
        if self.chance(30) {
            let used = [self.below(6_000), self.below(20_000), self.below(400)];
            let vms = self.below(5) as u32;
            host.foreign = Foreign { used: Amounts::from_slice(&used), vms };
        }
        host.benchmark_permille = self.pick(&[0, 700, 1_300]);
        let micros_per_hour = self.below(5) * 1_000;
        let kind = self.pick(&[PriceKind::OnDemand, PriceKind::Spot, PriceKind::Reserved]);
        host.price = Price { kind, micros_per_hour };
        host.latencies = self.some(50, 2, |random| RegionLatency {
            region: random.name("users", 2),
            latency_us: random.below(120_000) as u32,
        });
        host.datastores = self.some(70, 2, |random| random.name("store", 3));
        host
    }

    /// A VM with a fresh id; `next` counts the ids given out so far.
    pub(crate) fn vm(&mut self, next: &mut u64) -> Vm {
        let key = VmKey { tenant: self.name("tenant", 2), id: name(&format!("vm{next}")) };
        *next += 1;
        let mut demand = Amounts::zero();
        for (dim, amounts) in
            [[0, 500, 1_000, 2_500], [0, 1_024, 4_096, 8_192], [0, 0, 10, 100]].iter().enumerate()
        {
            demand.set(Dim(dim as u8), self.pick(amounts));
        }
        if self.chance(5) {
            demand.set(Dim(6), 1);
        }
        if self.chance(3) {
            demand.set(Dim::MEMORY_MIB, 1 << 33);
        }
        let newest = *next;
        let mut vm = Vm::new(key, demand);
        vm.cpu_unit = self.pick(&[CpuUnit::Raw, CpuUnit::Raw, CpuUnit::Normalised]);
        vm.qos = self.pick(&[Qos::Guaranteed, Qos::Burstable, Qos::BestEffort]);
        vm.pool = self.maybe(25, "pool", 3);
        vm.groups = self.some(50, 2, |random| random.name("group", 4));
        vm.selectors = self.some(25, 2, |random| random.selector());
        vm.tolerations = self.some(40, 2, |random| random.toleration());
        vm.affinities = self.some(50, 2, |random| random.affinity(newest));
        vm.spreads = self.some(35, 2, |random| Spread {
            group: random.name("group", 4),
            level: random.level(),
            max_skew: 1 + random.below(2) as u32,
            strength: random.strength(),
        });
        vm.preferred_hosts = self.some(15, 2, |random| random.name("h", 12));
        vm.excluded_hosts = self.some(15, 3, |random| random.name("h", 12));
        vm.datastores = self.some(15, 1, |random| random.name("store", 3));
        vm.data = self.some(20, 3, |random| DataRef {
            site: random.site(),
            weight: 1 + random.below(9) as u16,
        });
        vm.hints = Hints {
            expected_lifetime_s: None,
            colocate_with: self.some(15, 2, |random| random.name("vm", newest)),
            user_region: self.maybe(15, "users", 3),
            bursty: self.chance(15),
        };
        vm
    }

    pub(crate) fn how(&mut self, hosts: usize) -> How {
        let weights = if self.chance(50) {
            Weights::default()
        } else {
            let weights = std::array::from_fn(|_| self.below(4) as u32 * 17);
            Weights::new(weights).unwrap_or_default()
        };
        let strategy = self.pick(&Strategy::ALL);
        let last = cluster::HostIx(self.below(hosts as u64 + 1) as u32);
        How { weights, strategy, round_robin_after: self.chance(80).then_some(last) }
    }

    fn effect(&mut self) -> TaintEffect {
        let effects =
            [TaintEffect::NoSchedule, TaintEffect::NoExecute, TaintEffect::PreferNoSchedule];
        self.pick(&effects)
    }

    fn selector(&mut self) -> Selector {
        let values = self.some(100, 2, |random| random.name("value", 3));
        let ops = [
            SelectorOp::In(values.clone()),
            SelectorOp::NotIn(values),
            SelectorOp::Exists,
            SelectorOp::Missing,
        ];
        Selector { key: self.name("key", 3), op: self.pick(&ops) }
    }

    fn toleration(&mut self) -> Toleration {
        let value = self.maybe(60, "value", 2);
        let effect = self.effect();
        Toleration {
            key: self.maybe(80, "taint", 2),
            op: self.pick(&[TolerationOp::Exists, TolerationOp::Equal(value)]),
            effect: self.chance(40).then_some(effect),
        }
    }

    fn affinity(&mut self, newest: u64) -> Affinity {
        let subject = match self.below(4) {
            0 => Subject::Vm(self.name("vm", newest)),
            1 => Subject::Hosts(self.some(100, 3, |random| random.name("h", 14))),
            _ => Subject::Group(self.name("group", 4)),
        };
        Affinity {
            kind: self.pick(&[AffinityKind::Together, AffinityKind::Apart, AffinityKind::Apart]),
            subject,
            level: self.level(),
            strength: self.strength(),
        }
    }

    fn level(&mut self) -> Level {
        let label = Level::Label(self.name("key", 3));
        self.pick(&[Level::Host, Level::Rack, Level::PowerFeed, Level::Zone, Level::Region, label])
    }

    fn strength(&mut self) -> Strength {
        let weight = 1 + self.below(5) as u16;
        self.pick(&[Strength::Required, Strength::Preferred(weight)])
    }

    fn site(&mut self) -> DataSite {
        match self.below(5) {
            0 => DataSite::Host(self.name("h", 14)),
            1 => DataSite::Rack(self.name("rack", 7)),
            2 => DataSite::Zone(self.name("zone", 4)),
            3 => DataSite::Region(self.name("region", 3)),
            _ => DataSite::Datastore(self.name("store", 4)),
        }
    }
}

pub(crate) fn name(text: &str) -> Name {
    Name::new(text).expect("a valid name")
}
