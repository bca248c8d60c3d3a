//! A small cluster, a VM with every kind of rule, and decisions about it that are right.

use cluster::{
    Affinity, AffinityKind, Alternative, Amounts, Bindings, Breakdown, Cores, Decision, Dim,
    Dimensions, Host, HostIx, Labels, Level, Name, NodeBinding, NumaNode, NumaPolicy, Placed,
    Reason, Rejections, Revision, Selector, SelectorOp, Siblings, Snapshot, Spread, Strategy,
    Strength, Subject, Taint, TaintEffect, Toleration, TolerationOp, Topology, Verdict, Vm, VmKey,
};
use std::sync::Arc;
use verify::{Ledger, Report, Violation, demand_on};

pub(crate) const DIMENSIONS: usize = Dim::BUILT_IN + 1;

pub(crate) fn name(text: &str) -> Name {
    Name::new(text).expect("a valid name")
}

/// Hosts `a`, `a2`, `b` and `c`. The VM `new` may go to `a` and `a2`, is decided to go to `a`;
/// `b` holds nobody of its group, and `c` is of another pool.
#[derive(Clone)]
pub(crate) struct Scene {
    pub(crate) snapshot: Snapshot,
    pub(crate) vm: Vm,
    pub(crate) host: Name,
    pub(crate) committed: Amounts,
    pub(crate) decision: Decision,
    pub(crate) index: HostIx,
}

impl Scene {
    pub(crate) fn placed() -> Self {
        let hosts = [host("a", "r1", "z1"), host("a2", "r1", "z1"), host("b", "r2", "z2")];
        let mut elsewhere = host("c", "r3", "z3");
        elsewhere.pool = Some(name("silver"));
        let vm = picky_vm();
        let mut snapshot = Snapshot {
            revision: Revision(7),
            dimensions: Dimensions::with_extra(vec![name("gpu_slots")]).expect("one more"),
            hosts: hosts.into_iter().chain([elsewhere]).map(Arc::new).collect(),
            placed: Vec::new(),
            constraints: Vec::new(),
        };
        let mut app = small_vm("app-1");
        app.groups = vec![name("app")];
        let mut noisy = small_vm("noisy-1");
        noisy.groups = vec![name("noisy")];
        put(&mut snapshot, app, "a");
        put(&mut snapshot, noisy, "b");
        let mut rejections = Rejections::default();
        rejections.add(Reason::Pool, 1);
        rejections.add(Reason::Affinity, 1);
        let breakdown = Breakdown::of_terms([10, 20, 30, 40, 0]);
        let decision = Decision {
            vm: vm.key.clone(),
            verdict: Verdict::Placed {
                host: name("a"),
                incarnation: 3,
                score: 100,
                breakdown,
                bindings: None,
            },
            strategy: Strategy::Balanced,
            alternatives: [Alternative { host: name("a2"), score: 90 }].into_iter().collect(),
            rejections,
            policy_rejections: Vec::new(),
            hosts_considered: 4,
            based_on: Revision(7),
            policy_revision: 0,
            demand_revision: 0,
        };
        let committed = demand_on(&snapshot.hosts[0], &vm);
        Self { snapshot, vm, host: name("a"), committed, decision, index: HostIx(0) }
    }

    /// The same VM, asking for a core of its own on one NUMA node, and getting it.
    pub(crate) fn bound() -> Self {
        let mut scene = Self::placed();
        scene.list_parts();
        scene.vm.topology = Some(Box::new(one_core()));
        if let Verdict::Placed { bindings, .. } = &mut scene.decision.verdict {
            *bindings = Some(Arc::new(on_node(&[0], 4)));
        }
        scene
    }

    /// Gives every host one NUMA node with four cores.
    pub(crate) fn list_parts(&mut self) {
        for host in &mut self.snapshot.hosts {
            let node =
                NumaNode { cores: 4, threads_per_core: 1, memory_mib: 10, ..NumaNode::default() };
            let host = Arc::make_mut(host);
            host.hardware.numa_nodes = vec![node];
            host.capacity.set(Dim::CPU_MILLIS, 4_000);
        }
    }

    pub(crate) fn request(&mut self) -> &mut Topology {
        self.vm.topology.as_mut().expect("a VM that asks for parts")
    }

    /// The parts that the decision gives the VM.
    pub(crate) fn bindings(&mut self) -> &mut Bindings {
        let Verdict::Placed { bindings: Some(bindings), .. } = &mut self.decision.verdict else {
            panic!("the decision has parts");
        };
        Arc::make_mut(bindings)
    }

    pub(crate) fn unbind(&mut self) {
        if let Verdict::Placed { bindings, .. } = &mut self.decision.verdict {
            *bindings = None;
        }
    }

    /// Puts a VM on a host that has these threads for itself.
    pub(crate) fn bind(&mut self, host: &str, cpus: &[u16]) -> &mut Bindings {
        let mut vm = small_vm(&format!("bound-{}", self.snapshot.placed.len()));
        // Just enough to need as many threads, so that capacity is not what is short.
        vm.demand = Amounts::cpu_memory(cpus.len() as u64 * 1000 - 999, 1);
        vm.topology = Some(Box::new(one_core()));
        let placed = self.put(vm, host);
        Arc::make_mut(placed.bindings.insert(Arc::new(on_node(cpus, 1))))
    }

    /// The same VM, asking for more memory than any host has.
    pub(crate) fn rejected() -> Self {
        let mut scene = Self::placed();
        scene.vm.demand.set(Dim::MEMORY_MIB, 1_000);
        scene.decision.verdict = Verdict::Rejected;
        scene.decision.alternatives.clear();
        scene.decision.rejections.add(Reason::Capacity(Dim::MEMORY_MIB), 2);
        scene
    }

    pub(crate) fn host_mut(&mut self, id: &str) -> &mut Host {
        let hosts = &mut self.snapshot.hosts;
        let host = hosts.iter_mut().find(|host| host.id.as_str() == id).expect("a known host");
        Arc::make_mut(host)
    }

    pub(crate) fn put(&mut self, vm: Vm, host: &str) -> &mut Placed {
        put(&mut self.snapshot, vm, host)
    }

    /// What a ledger with this snapshot in it says of the chosen host.
    pub(crate) fn ask_ledger(&self) -> Vec<Violation> {
        let mut ledger = Ledger::new(DIMENSIONS);
        for (row, host) in self.snapshot.hosts.iter().enumerate() {
            ledger.put_host(HostIx(row as u32), host);
        }
        for placed in &self.snapshot.placed {
            let row = self.snapshot.hosts.iter().position(|host| host.id == placed.host);
            let ix = HostIx(row.expect("a known host") as u32);
            ledger.add_vm(ix, &placed.vm, &placed.committed).expect("a right snapshot");
        }
        let row = |id: &Name| self.snapshot.hosts.iter().position(|host| host.id == *id);
        let placed = self.snapshot.placed.iter();
        let vms = placed.filter_map(|it| Some((HostIx(row(&it.host)? as u32), &*it.vm)));
        ledger.set_constraints(&self.snapshot.constraints, vms);
        ledger.check(&self.vm, self.index, &self.host, &self.committed)
    }

    /// What such a ledger says of the parts of the chosen host.
    pub(crate) fn ask_ledger_of_parts(&self) -> Vec<Violation> {
        let mut ledger = Ledger::new(DIMENSIONS);
        for (row, host) in self.snapshot.hosts.iter().enumerate() {
            let ix = HostIx(row as u32);
            let on = self.snapshot.placed.iter().filter(|placed| placed.host == host.id);
            for (vm, bindings) in on.filter_map(|on| Some((&on.vm.key, on.bindings.as_ref()?))) {
                ledger.bind(ix, vm, bindings).expect("bound once");
            }
        }
        let host = &self.snapshot.hosts[self.index.0 as usize];
        let parts = self.decision.bindings().map(|bindings| &**bindings);
        ledger.check_bindings(&self.vm, self.index, host, &self.committed, parts)
    }

    pub(crate) fn certify(&self) -> Report {
        verify::placement(&self.snapshot, &self.vm, &self.decision)
    }
}

/// A VM that asks for one of each dimension, tolerates everything and has no rules.
pub(crate) fn small_vm(id: &str) -> Vm {
    let key = VmKey::in_default_tenant(name(id));
    let mut vm = Vm::new(key, Amounts::from_slice(&[1; DIMENSIONS]));
    vm.tolerations = vec![Toleration { key: None, op: TolerationOp::Exists, effect: None }];
    vm
}

pub(crate) fn apart(subject: Subject, level: Level) -> Affinity {
    Affinity { kind: AffinityKind::Apart, subject, level, strength: Strength::Required }
}

pub(crate) fn together(subject: Subject, level: Level) -> Affinity {
    Affinity { kind: AffinityKind::Together, subject, level, strength: Strength::Required }
}

fn host(id: &str, rack: &str, zone: &str) -> Host {
    let mut host = Host::new(name(id), Amounts::from_slice(&[10; DIMENSIONS]));
    host.incarnation = 3;
    host.pool = Some(name("gold"));
    host.location.rack = Some(name(rack));
    host.location.zone = Some(name(zone));
    host.labels = Labels::from_iter([(name("disk"), name("ssd"))]);
    host.taints = vec![Taint {
        key: name("dedicated"),
        value: Some(name("db")),
        effect: TaintEffect::NoSchedule,
    }];
    host.datastores = vec![name("san")];
    host
}

fn picky_vm() -> Vm {
    let mut vm = small_vm("new");
    vm.demand = Amounts::from_slice(&[4; DIMENSIONS]);
    vm.pool = Some(name("gold"));
    vm.groups = vec![name("app")];
    vm.selectors = vec![Selector { key: name("disk"), op: SelectorOp::In(vec![name("ssd")]) }];
    vm.tolerations = vec![Toleration {
        key: Some(name("dedicated")),
        op: TolerationOp::Equal(Some(name("db"))),
        effect: None,
    }];
    vm.datastores = vec![name("san")];
    vm.excluded_hosts = vec![name("c")];
    vm.affinities = vec![
        together(Subject::Hosts(vec![name("a"), name("b")]), Level::Zone),
        together(Subject::Group(name("app")), Level::Rack),
        apart(Subject::Group(name("noisy")), Level::Zone),
    ];
    vm.spreads = vec![Spread {
        group: name("web"),
        level: Level::Zone,
        max_skew: 1,
        strength: Strength::Required,
    }];
    vm
}

fn one_core() -> Topology {
    let cores = Cores::Exclusive(Siblings::Own);
    Topology { cores, numa: NumaPolicy::Single, ..Topology::default() }
}

/// These threads of the only node, and memory.
fn on_node(cpus: &[u16], memory_mib: u32) -> Bindings {
    let node = NodeBinding { vcpus: cpus.len() as u16, memory_mib, ..NodeBinding::default() };
    Bindings { cpus: cpus.to_vec(), nodes: vec![node], ..Bindings::default() }
}

fn put<'a>(snapshot: &'a mut Snapshot, vm: Vm, host: &str) -> &'a mut Placed {
    let committed = vm.demand.clone();
    let (vm, host) = (Arc::new(vm), name(host));
    snapshot.placed.push(Placed {
        vm,
        host,
        committed,
        bindings: None,
        over_capacity: false,
        adopted: false,
        held: false,
    });
    snapshot.placed.last_mut().expect("just added")
}
