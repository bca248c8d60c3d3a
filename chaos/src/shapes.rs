//! Hosts and VMs of the simulated clusters: small, tight, and full of rules.

use cluster::{
    Affinity, AffinityKind, Amounts, Cores, CpuUnit, Dim, Gpu, GpuAmount, GpuRequest, Hardware,
    Host, Labels, Level, Name, Near, Nic, NicRequest, NumaNode, NumaPolicy, Selector, SelectorOp,
    Siblings, Spread, Strength, Subject, Topology, Vm, VmKey,
};
use fixture::Dice;

/// VM names to go round. With a third of them in use a cluster is about full.
const VM_NAMES: u64 = 40;

pub(crate) const ZONES: &[&str] = &["z0", "z1", "z2"];
const GROUPS: &[&str] = &["g0", "g1"];
const TENANTS: &[&str] = &["default", "default", "default", "default", "other"];

pub(crate) fn name(text: &str) -> Name {
    Name::new(text).expect("only valid names are spelled out here")
}

pub(crate) fn one_of(dice: &mut Dice, names: &[&str]) -> Name {
    let text: &&str = dice.pick(names);
    name(text)
}

pub(crate) fn host_name(row: u64) -> Name {
    name(&format!("h{row}"))
}

/// A host for this row; zone and rack mostly follow from the row.
pub(crate) fn host(dice: &mut Dice, row: u64, extra: usize) -> Host {
    let cpu_millis = dice.between(4, 10) * 1_000;
    let mut host = Host::new(host_name(row), Amounts::cpu_memory(cpu_millis, dice.between(8, 32)));
    host.location.zone = dice.chance(950).then(|| name(&format!("z{}", row % 3)));
    host.location.rack = dice.chance(900).then(|| name(&format!("r{}", row % 4)));
    host.benchmark_permille = *dice.weighted(&[(0, 8), (800, 1), (1_500, 1)]);
    if dice.chance(200) {
        host.overcommit_permille = Amounts::cpu_memory(1_500, 0);
    }
    if dice.chance(200) {
        host.reserved = Amounts::cpu_memory(500, 1);
    }
    if dice.chance(300) {
        host.labels = Labels::from_iter([(name("disk"), name("ssd"))]);
    }
    if row.is_multiple_of(2) {
        host.hardware = Box::new(hardware());
    }
    for dim in 0..extra {
        host.capacity.set(Dim((Dim::BUILT_IN + dim) as u8), dice.below(4));
    }
    host
}

/// Two nodes with two cores of two threads, a GPU on each, and a NIC with three functions.
fn hardware() -> Hardware {
    let node = NumaNode { cores: 2, threads_per_core: 2, memory_mib: 12, ..NumaNode::default() };
    let gpu = |node| Gpu { numa_node: Some(node), ..Gpu::new(name("L4"), 24) };
    let nic = Nic { functions: 3, numa_node: Some(0), ..Nic::default() };
    Hardware {
        numa_nodes: vec![node.clone(), node],
        gpus: vec![gpu(0), gpu(1)],
        nics: vec![nic],
        ..Hardware::default()
    }
}

/// A request for some of that.
fn topology(dice: &mut Dice) -> Topology {
    let mut topology = Topology {
        cores: *dice.pick(&[
            Cores::Shared,
            Cores::Exclusive(Siblings::Own),
            Cores::Exclusive(Siblings::Idle),
            Cores::Exclusive(Siblings::Any),
        ]),
        numa: *dice.pick(&[NumaPolicy::Preferred, NumaPolicy::Single, NumaPolicy::Split(2)]),
        ..Topology::default()
    };
    if dice.chance(400) {
        let amount = dice.pick(&[GpuAmount::Whole(1), GpuAmount::Milli(400)]).clone();
        let near_cores = dice.chance(500);
        topology.gpus = Some(GpuRequest { near_cores, ..GpuRequest::new(amount) });
    }
    if dice.chance(300) {
        topology.nic = Some(NicRequest { functions: 1, rdma: false, near: Near::Any });
    }
    topology
}

pub(crate) fn vm_key(dice: &mut Dice) -> VmKey {
    let tenant = one_of(dice, TENANTS);
    VmKey { tenant, id: name(&format!("v{}", dice.below(VM_NAMES))) }
}

pub(crate) fn vm(dice: &mut Dice, extra: usize) -> Vm {
    let demand = Amounts::cpu_memory(dice.between(1, 7) * 500, dice.between(1, 9));
    let mut vm = Vm::new(vm_key(dice), demand);
    if dice.chance(100) {
        vm.cpu_unit = CpuUnit::Normalised;
    }
    if extra > 0 && dice.chance(300) {
        vm.demand.set(Dim((Dim::BUILT_IN + dice.row(extra)) as u8), 1);
    }
    if dice.chance(200) {
        vm.topology = Some(Box::new(topology(dice)));
    }
    if dice.chance(350) {
        vm.groups = vec![one_of(dice, GROUPS)];
    }
    if dice.chance(300) {
        let group = one_of(dice, GROUPS);
        let level = dice.pick(&[Level::Host, Level::Host, Level::Rack, Level::Zone]).clone();
        let subject = Subject::Group(group);
        let (kind, strength) = (AffinityKind::Apart, Strength::Required);
        vm.affinities.push(Affinity { kind, subject, level, strength });
    }
    if dice.chance(60) {
        let subject = Subject::Group(name("g1"));
        let (kind, strength) = (AffinityKind::Together, Strength::Required);
        vm.affinities.push(Affinity { kind, subject, level: Level::Zone, strength });
    }
    if dice.chance(60) {
        let (group, strength) = (name("g0"), Strength::Required);
        vm.spreads.push(Spread { group, level: Level::Zone, max_skew: 1, strength });
    }
    if dice.chance(60) {
        vm.selectors = vec![Selector { key: name("disk"), op: SelectorOp::Exists }];
    }
    vm
}
