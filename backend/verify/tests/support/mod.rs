//! Random small clusters with every kind of rule in them.
//!
//! Names come from short lists, so that VMs and hosts meet often; small numbers make most
//! capacity tests close calls.

mod constraints;

use cluster::{
    Affinity, AffinityKind, Amounts, CpuUnit, Dim, Host, HostState, Labels, Level, Name, Selector,
    SelectorOp, Spread, Strength, Subject, Taint, TaintEffect, Toleration, TolerationOp, Vm, VmKey,
};

pub(crate) fn name(text: &str) -> Name {
    Name::new(text).expect("a valid name")
}

/// SplitMix64: a few lines, and every seed is a good one.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `limit`.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    /// True once in `times`.
    pub(crate) fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }

    fn named(&mut self, prefix: &str, limit: usize) -> Name {
        name(&format!("{prefix}{}", self.below(limit)))
    }

    fn maybe(&mut self, times: usize, prefix: &str, limit: usize) -> Option<Name> {
        if self.once_in(times) { None } else { Some(self.named(prefix, limit)) }
    }

    /// Up to `most` things, usually none.
    fn few<T>(&mut self, most: usize, mut make: impl FnMut(&mut Self) -> T) -> Vec<T> {
        let count = if self.once_in(2) { self.below(most + 1) } else { 0 };
        (0..count).map(|_| make(self)).collect()
    }

    fn level(&mut self) -> Level {
        match self.below(7) {
            0 | 1 => Level::Host,
            2 => Level::Rack,
            3 => Level::PowerFeed,
            4 => Level::Zone,
            5 => Level::Region,
            _ => Level::Label(self.named("k", 3)),
        }
    }

    pub(crate) fn host(&mut self, id: Name) -> Host {
        let mut host = Host::new(id, self.amounts(24));
        host.incarnation = self.below(3) as u64;
        host.pool = self.maybe(3, "p", 2);
        self.locate(&mut host);
        host.labels =
            self.few(3, |dice| (dice.named("k", 3), dice.named("v", 2))).into_iter().collect();
        if self.once_in(3) {
            host.taints = self.few(2, Self::taint);
        }
        if self.once_in(6) {
            host.state = *self.pick(&[
                HostState::Cordoned,
                HostState::Draining,
                HostState::Maintenance,
                HostState::Down,
            ]);
        }
        if self.once_in(3) {
            host.reserved = self.amounts(6);
            host.overcommit_permille = Amounts::cpu_memory(1_500, 2_000);
        }
        host.benchmark_permille = *self.pick(&[0, 700, 1_000, 1_300, 2_000]);
        host.datastores = (0..self.below(3)).map(|_| self.named("d", 2)).collect();
        host
    }

    pub(crate) fn locate(&mut self, host: &mut Host) {
        host.location.rack = self.maybe(5, "r", 4);
        host.location.power_feed = self.maybe(3, "f", 2);
        host.location.zone = self.maybe(6, "z", 3);
        host.location.region = self.maybe(4, "g", 2);
    }

    fn amounts(&mut self, most: usize) -> Amounts {
        let mut amounts = Amounts::zero();
        for row in 0..7 {
            amounts.set(Dim(row), self.below(most + 1) as u64);
        }
        amounts
    }

    fn taint(&mut self) -> Taint {
        let effects =
            [TaintEffect::NoSchedule, TaintEffect::NoExecute, TaintEffect::PreferNoSchedule];
        Taint {
            key: self.named("t", 2),
            value: self.maybe(2, "v", 2),
            effect: *self.pick(&effects),
        }
    }

    pub(crate) fn vm(&mut self, id: Name) -> Vm {
        let key = VmKey { tenant: self.named("tenant", 2), id };
        let mut demand = Amounts::zero();
        for row in 0..7 {
            if self.once_in(3) {
                demand.set(Dim(row), self.below(7) as u64);
            }
        }
        let mut vm = Vm::new(key, demand);
        if self.once_in(2) {
            vm.cpu_unit = CpuUnit::Normalised;
        }
        vm.pool = if self.once_in(4) { Some(self.named("p", 2)) } else { None };
        vm.groups = self.few(3, |dice| dice.named("group", 3));
        if self.once_in(3) {
            vm.selectors = self.few(2, Self::selector);
        }
        vm.tolerations = self.few(2, Self::toleration);
        vm.affinities = self.few(3, Self::affinity);
        vm.spreads = self.few(2, Self::spread);
        vm.excluded_hosts = self.few(2, |dice| dice.named("h", 8));
        if self.once_in(4) {
            vm.datastores = self.few(2, |dice| dice.named("d", 2));
        }
        self.label(&mut vm);
        vm
    }

    fn selector(&mut self) -> Selector {
        let values = vec![self.named("v", 2)];
        let op = match self.below(4) {
            0 => SelectorOp::In(values),
            1 => SelectorOp::NotIn(values),
            2 => SelectorOp::Exists,
            _ => SelectorOp::Missing,
        };
        Selector { key: self.named("k", 3), op }
    }

    fn toleration(&mut self) -> Toleration {
        let op = match self.below(2) {
            0 => TolerationOp::Exists,
            _ => TolerationOp::Equal(self.maybe(2, "v", 2)),
        };
        let effects = [None, Some(TaintEffect::NoSchedule), Some(TaintEffect::NoExecute)];
        Toleration { key: self.maybe(2, "t", 2), op, effect: *self.pick(&effects) }
    }

    fn affinity(&mut self) -> Affinity {
        let subject = match self.below(5) {
            0 | 1 => Subject::Group(self.named("group", 3)),
            2 | 3 => Subject::Vm(self.named("vm", 12)),
            _ => Subject::Hosts((0..=self.below(3)).map(|_| self.named("h", 8)).collect()),
        };
        Affinity {
            kind: *self.pick(&[AffinityKind::Together, AffinityKind::Apart, AffinityKind::Apart]),
            subject,
            level: self.level(),
            strength: self.strength(),
        }
    }

    fn spread(&mut self) -> Spread {
        Spread {
            group: self.named("group", 3),
            level: self.level(),
            max_skew: 1 + self.below(2) as u32,
            strength: self.strength(),
        }
    }

    fn strength(&mut self) -> Strength {
        if self.once_in(4) { Strength::Preferred(10) } else { Strength::Required }
    }

    /// A roomy host that is much like others, so that VMs gather and spreads are close calls.
    pub(crate) fn open_host(&mut self, id: Name) -> Host {
        let mut host = Host::new(id, Amounts::cpu_memory(20, 20));
        self.locate(&mut host);
        host.labels = Labels::from_iter([(name("k0"), self.named("v", 3))]);
        host
    }

    /// A small VM whose rules are about other VMs and single hosts.
    pub(crate) fn spread_vm(&mut self, id: Name) -> Vm {
        let key = VmKey { tenant: name("tenant0"), id };
        let mut vm = Vm::new(key, Amounts::cpu_memory(1, 1));
        vm.groups = vec![self.named("group", 2)];
        vm.excluded_hosts = self.few(5, |dice| dice.named("h", 8));
        if self.once_in(4) {
            vm.affinities = vec![self.affinity()];
        }
        let level = if self.once_in(3) { Level::Label(name("k0")) } else { self.level() };
        vm.spreads = vec![Spread { group: self.named("group", 2), level, ..self.spread() }];
        self.label(&mut vm);
        vm
    }

    fn label(&mut self, vm: &mut Vm) {
        if let Some(role) = self.maybe(3, "v", 2) {
            vm.labels.insert(name("role"), role);
        }
    }

    pub(crate) fn labels(&mut self) -> Labels {
        self.few(3, |dice| (dice.named("k", 3), dice.named("v", 2))).into_iter().collect()
    }
}
