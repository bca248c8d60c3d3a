//! The ledger and the plain reading give the same answer, fact for fact, whatever happened.

mod support;

use cluster::{
    Amounts, Constraint, Dim, Dimensions, Host, HostIx, Name, Placed, Revision, Snapshot, Vm,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use support::{Dice, name};
use verify::{Ledger, LedgerError, Violation, ViolationKind, demand_on};

const CLUSTERS: u64 = 3_000;
const CHANGES: usize = 24;

#[test]
fn the_ledger_agrees_with_the_plain_reading() {
    let mut seen = BTreeSet::new();
    let mut accepted = 0;
    for seed in 0..CLUSTERS {
        let mut run = Run::new(seed);
        for change in 0..CHANGES {
            run.change();
            run.compare(change, &mut seen, &mut accepted);
        }
        run.empty_out();
    }
    for kind in RULES.iter().chain(&["wrong_committed", "already_placed"]) {
        assert!(seen.contains(*kind), "no cluster ever broke {kind}, only {seen:?}");
    }
    assert!(accepted > 10_000, "only {accepted} of the random placements were possible");
}

const RULES: [&str; 20] = [
    "host_state",
    "pool",
    "selector",
    "taint",
    "datastore",
    "excluded_host",
    "host_affinity",
    "fence",
    "affinity",
    "anti_affinity",
    "repelled",
    "spread",
    "min_domains",
    "limit",
    "exclusive",
    "dependency",
    "latency",
    "bandwidth",
    "spare",
    "capacity",
];

/// A cluster as the engine would keep it, and a ledger that is told of every change.
struct Run {
    seed: u64,
    dice: Dice,
    ledger: Ledger,
    extra: usize,
    hosts: BTreeMap<HostIx, Host>,
    placed: Vec<(HostIx, Placed)>,
    constraints: Vec<Arc<Constraint>>,
}

impl Run {
    fn new(seed: u64) -> Self {
        Self {
            seed,
            dice: Dice::new(seed),
            ledger: Ledger::new(Dim::BUILT_IN),
            extra: 0,
            hosts: BTreeMap::new(),
            placed: Vec::new(),
            constraints: Vec::new(),
        }
    }

    fn change(&mut self) {
        match self.dice.below(13) {
            0..=2 => self.put_host(),
            3 => self.relocate(),
            4 => self.remove_host(),
            5 | 6 => self.remove_vm(),
            12 => self.install(),
            7 if self.extra < 2 => {
                self.extra += 1;
                self.ledger.set_dimensions(Dim::BUILT_IN + self.extra);
            }
            _ => self.place(),
        }
    }

    /// A new host, or a new description of one that is there.
    fn put_host(&mut self) {
        let ix = HostIx(self.dice.below(8) as u32);
        let id = name(&format!("h{}", ix.0));
        let host = if self.open() { self.dice.open_host(id) } else { self.dice.host(id) };
        self.ledger.put_host(ix, &host);
        self.hosts.insert(ix, host);
    }

    fn relocate(&mut self) {
        let Some(ix) = self.some_host() else { return };
        let host = self.hosts.get_mut(&ix).expect("a known host");
        if self.dice.once_in(2) {
            self.dice.locate(host);
        } else {
            host.labels = self.dice.labels();
        }
        self.ledger.put_host(ix, host);
    }

    fn remove_host(&mut self) {
        let Some(ix) = self.some_host() else { return };
        let vms = self.placed.iter().filter(|(on, _)| *on == ix).count() as u32;
        let expect = match vms {
            0 => Ok(()),
            vms => Err(LedgerError::NotEmpty { host: self.hosts[&ix].id.clone(), vms }),
        };
        assert_eq!(self.ledger.remove_host(ix), expect, "seed {}", self.seed);
        if vms == 0 {
            self.hosts.remove(&ix);
        }
    }

    /// Places a VM where it may go, or adopts it where it may not.
    fn place(&mut self) {
        let Some(ix) = self.some_host() else { return };
        let host = self.hosts[&ix].clone();
        let vm = self.random_vm();
        let committed = demand_on(&host, &vm);
        let violations = self.ledger.check(&vm, ix, &host.id, &committed);
        let there = self.placed.iter().any(|(_, placed)| placed.vm.key == vm.key);
        let adopted = self.dice.once_in(3);
        if !violations.is_empty() && (!adopted || there) {
            return;
        }
        if self.ledger.add_vm(ix, &vm, &committed).is_err() {
            assert!(committed.width() > Dim::BUILT_IN + self.extra, "seed {}", self.seed);
            return;
        }
        assert!(matches!(
            self.ledger.add_vm(ix, &vm, &committed),
            Err(LedgerError::AlreadyPlaced { .. })
        ));
        let over_capacity =
            violations.iter().any(|found| matches!(found.kind, ViolationKind::Capacity { .. }));
        let (vm, host, held) = (Arc::new(vm), host.id, self.dice.once_in(4));
        self.placed.push((
            ix,
            Placed {
                vm,
                host,
                committed,
                bindings: None,
                over_capacity,
                adopted: over_capacity,
                held,
            },
        ));
    }

    fn install(&mut self) {
        self.constraints = self.dice.constraints();
        let vms = self.placed.iter().map(|(ix, placed)| (*ix, &*placed.vm));
        self.ledger.set_constraints(&self.constraints, vms);
    }

    fn remove_vm(&mut self) {
        if self.placed.is_empty() {
            return;
        }
        let at = self.dice.below(self.placed.len());
        let (ix, placed) = self.placed.swap_remove(at);
        let more = placed.committed.clone().with(Dim::CPU_MILLIS, 1_000);
        let changed = LedgerError::Changed(placed.vm.key.clone());
        assert_eq!(self.ledger.remove_vm(ix, &placed.vm, &more), Err(changed));
        assert_eq!(self.ledger.remove_vm(ix, &placed.vm, &placed.committed), Ok(()));
        let gone = LedgerError::NotPlaced(placed.vm.key.clone());
        assert_eq!(self.ledger.remove_vm(ix, &placed.vm, &placed.committed), Err(gone));
    }

    fn compare(&mut self, change: usize, seen: &mut BTreeSet<String>, accepted: &mut u32) {
        let snapshot = self.snapshot();
        let vm = self.random_vm();
        for (&ix, host) in &self.hosts {
            let mut committed = demand_on(host, &vm);
            if self.dice.once_in(10) {
                committed.set(Dim::MEMORY_MIB, committed.get(Dim::MEMORY_MIB) + 1);
            }
            let found = self.ledger.check(&vm, ix, &host.id, &committed);
            let expect = plain(&snapshot, &vm, host, &committed);
            assert_eq!(
                found, expect,
                "seed {}, change {change}: the ledger (left) differs on host {}\n{vm:#?}\n{snapshot:#?}",
                self.seed, host.id
            );
            *accepted += u32::from(found.is_empty());
            seen.extend(found.iter().map(kind_name));
        }
    }

    /// Takes everything out again: nothing may be left over that keeps a host or a group.
    fn empty_out(&mut self) {
        while !self.placed.is_empty() {
            self.remove_vm();
        }
        for ix in std::mem::take(&mut self.hosts).into_keys() {
            assert_eq!(self.ledger.remove_host(ix), Ok(()), "seed {}", self.seed);
        }
        assert_eq!(self.ledger.vms(), 0);
    }

    fn snapshot(&self) -> Snapshot {
        let extra = ["x5", "x6"].map(name)[..self.extra].to_vec();
        Snapshot {
            revision: Revision(1),
            dimensions: Dimensions::with_extra(extra).expect("two more dimensions"),
            hosts: self.hosts.values().cloned().map(Arc::new).collect(),
            placed: self.placed.iter().map(|(_, placed)| placed.clone()).collect(),
            constraints: self.constraints.clone(),
        }
    }

    fn some_host(&mut self) -> Option<HostIx> {
        let hosts: Vec<HostIx> = self.hosts.keys().copied().collect();
        if hosts.is_empty() { None } else { Some(*self.dice.pick(&hosts)) }
    }

    fn random_vm(&mut self) -> Vm {
        let id: Name = name(&format!("vm{}", self.dice.below(12)));
        if self.open() { self.dice.spread_vm(id) } else { self.dice.vm(id) }
    }

    /// Half of the clusters are open ones, where little but the neighbours decides.
    fn open(&self) -> bool {
        self.seed % 2 == 1
    }
}

/// What the ledger should find, from the snapshot alone.
fn plain(snapshot: &Snapshot, vm: &Vm, host: &Host, committed: &Amounts) -> Vec<Violation> {
    let rules = verify::violations(snapshot, vm, &host.id);
    if rules.iter().any(|found| matches!(found.kind, ViolationKind::AlreadyPlaced { .. })) {
        return rules;
    }
    let demand = demand_on(host, vm);
    let mut found = Vec::new();
    for dimension in (0..64).map(Dim) {
        let (stated, derived) = (committed.get(dimension), demand.get(dimension));
        if stated != derived {
            found.push(Violation {
                vm: Some(vm.key.clone()),
                host: Some(host.id.clone()),
                kind: ViolationKind::WrongCommitted { dimension, stated, derived },
            });
        }
    }
    found.extend(rules);
    found
}

fn kind_name(violation: &Violation) -> String {
    let json = serde_json::to_value(violation).expect("violations are plain data");
    json["kind"].as_str().expect("every violation names its kind").to_owned()
}
