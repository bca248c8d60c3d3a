//! Parts of hosts through the engine: chosen, logged, recovered, and given back exactly.

mod common;

use cluster::{
    Amounts, Bindings, Cores, Dim, Gpu, GpuAmount, GpuRequest, Host, Nic, NodeBinding, NumaNode,
    NumaPolicy, Reason, Siblings, Topology, Vm,
};
use common::{Bench, host, key, name, vm};
use engine::{Options, Outcome, Refusal, Request};
use std::sync::Arc;

/// Two nodes of two cores with two threads, 100 MiB and a GPU each; one NIC with two functions.
fn server(row: usize) -> Host {
    let mut host = host(row, 8_000);
    let node = NumaNode { cores: 2, threads_per_core: 2, memory_mib: 100, ..NumaNode::default() };
    host.hardware.numa_nodes = vec![node.clone(), node];
    for numa_node in [0, 1] {
        let numa_node = Some(numa_node);
        host.hardware.gpus.push(Gpu { numa_node, ..Gpu::new(name("L4"), 24_576) });
    }
    host.hardware.nics = vec![Nic { functions: 2, ..Nic::default() }];
    host
}

/// A VM with whole cores of its own on one node.
fn own_cores(id: &str, cpu_millis: u64) -> Vm {
    let cores = Cores::Exclusive(Siblings::Own);
    let topology = Topology { cores, numa: NumaPolicy::Single, ..Topology::default() };
    Vm { topology: Some(Box::new(topology)), ..vm(id, cpu_millis) }
}

fn bench() -> Bench {
    let mut bench = Bench::with_hosts(&[]);
    bench.put(server(0)).expect("a new host");
    bench
}

fn parts(bench: &Bench, id: &str) -> Option<Arc<Bindings>> {
    bench.engine.read(|state| state.find_vm(&key(id)).and_then(|(_, vm)| vm.bindings.clone()))
}

fn cpuset(bench: &Bench, id: &str) -> String {
    parts(bench, id).expect("a bound VM").cpuset()
}

fn adopt(vm: Vm, bindings: Bindings) -> Request {
    Request::Adopt { vm: Arc::new(vm), host: name("h0"), bindings: Some(Arc::new(bindings)) }
}

#[test]
fn exclusive_cores_are_never_shared_and_come_back_when_the_vm_goes() {
    let mut bench = bench();
    for (id, expect) in [("a", "0-1"), ("b", "2-3"), ("c", "4-5"), ("d", "6-7")] {
        bench.place(own_cores(id, 2_000)).expect("room");
        assert_eq!(cpuset(&bench, id), expect);
    }
    let full = bench.place(own_cores("e", 1)).expect("an answer").decision.expect("kept");
    assert_eq!(full.rejections.0.as_slice(), [(Reason::Capacity(cluster::Dim::CPU_MILLIS), 1)]);
    for id in ["a", "c"] {
        let gone = Request::RemoveVm { vm: key(id), if_generation: None };
        bench.ask(gone).expect("it was there");
    }
    let apart = bench.place(own_cores("e", 4_000)).expect("an answer").decision.expect("kept");
    assert_eq!(apart.rejections.0.as_slice(), [(Reason::Numa, 1)], "two free cores, not together");
    bench.place(own_cores("f", 2_000)).expect("room");
    assert_eq!(cpuset(&bench, "f"), "0-1");
}

#[test]
fn bindings_survive_a_crash_with_and_without_a_snapshot_and_replay_bit_for_bit() {
    for snapshot_every in [0, 3] {
        let mut bench = Bench::with_options(&[], Options { snapshot_every, retain: 100 });
        bench.put(server(0)).expect("a new host");
        let mut gpu = own_cores("gpu", 1_000);
        let request = GpuRequest { near_cores: true, ..GpuRequest::new(GpuAmount::Whole(1)) };
        gpu.topology.as_mut().expect("bound").gpus = Some(request);
        let placement = bench.place(gpu).expect("room");
        bench.place(own_cores("b", 2_000)).expect("room");
        bench.ask(Request::RemoveVm { vm: key("b"), if_generation: None }).expect("there");
        bench.place(own_cores("c", 3_000)).expect("room");
        let (before, hash) = ((parts(&bench, "gpu"), parts(&bench, "c")), bench.hash());
        let mut bench = bench.restart();
        assert_eq!(bench.hash(), hash);
        assert_eq!((parts(&bench, "gpu"), parts(&bench, "c")), before);
        let replay = bench.engine.history().replay(placement.id).expect("a good log");
        assert!(replay.expect("a recorded decision").is_exact());
        // The tables know what is taken, too.
        let full = bench.place(own_cores("d", 4_000)).expect("an answer");
        assert_eq!(full.host, None);
    }
}

#[test]
fn a_reservation_holds_parts_and_gives_them_back_when_it_ends() {
    let mut bench = bench();
    let reservation = bench.hold(own_cores("held", 4_000), 5_000);
    assert_eq!(cpuset(&bench, "held"), "0-3");
    bench.place(own_cores("other", 4_000)).expect("an answer");
    assert_eq!(cpuset(&bench, "other"), "4-7");
    bench.now_ms += 10_000;
    bench.ask(Request::Tick).expect("time goes on");
    assert!(bench.engine.read(|state| state.reservation(reservation).is_none()));
    bench.place(own_cores("next", 4_000)).expect("room");
    assert_eq!(cpuset(&bench, "next"), "0-3");
}

#[test]
fn an_adopted_vm_has_the_parts_it_names_unless_somebody_else_has_them() {
    let mut bench = bench();
    let on = |cpus: &[u16], memory_mib| Bindings {
        cpus: cpus.to_vec(),
        nodes: vec![NodeBinding { node: 1, vcpus: 2, memory_mib, ..NodeBinding::default() }],
        ..Bindings::default()
    };
    bench.ask(adopt(own_cores("runs", 2_000), on(&[4, 5], 1))).expect("they are free");
    assert_eq!(cpuset(&bench, "runs"), "4-5");
    let refused =
        |bench: &mut Bench, bindings| match bench.ask(adopt(own_cores("late", 2_000), bindings)) {
            Err(Refusal::PartsRefused { problem, .. }) => problem,
            other => panic!("{other:?}"),
        };
    assert_eq!(refused(&mut bench, on(&[5, 6], 1)), "thread 5 is not there or not free");
    assert_eq!(refused(&mut bench, on(&[6, 8], 1)), "thread 8 is not there or not free");
    let memory = refused(&mut bench, on(&[6, 7], 100));
    assert!(memory.contains("NUMA node 1"), "{memory}");
    // Nobody says what this one has, so nothing is kept for it.
    let silent = Request::Adopt {
        vm: Arc::new(own_cores("silent", 2_000)),
        host: name("h0"),
        bindings: None,
    };
    bench.ask(silent).expect("adoption asks no rule");
    assert_eq!(parts(&bench, "silent"), None);
    bench.place(own_cores("new", 4_000)).expect("room");
    assert_eq!(cpuset(&bench, "new"), "0-3");
}

#[test]
fn a_resized_vm_is_bound_anew_or_refused_with_what_is_missing() {
    let mut bench = bench();
    bench.place(own_cores("a", 2_000)).expect("room");
    bench.place(own_cores("b", 2_000)).expect("room");
    let resize = |cpu_millis| Request::Resize {
        vm: key("a"),
        changes: vec![(Dim::CPU_MILLIS, cpu_millis)],
        if_generation: None,
    };
    bench.ask(resize(4_000)).expect("the other node is free");
    assert_eq!(cpuset(&bench, "a"), "4-7");
    bench.ask(resize(1_000)).expect("smaller always fits");
    assert_eq!(cpuset(&bench, "a"), "0-1", "beside the other, so that a node stays free");
    bench.place(own_cores("c", 3_000)).expect("room");
    match bench.ask(resize(3_000)) {
        Err(Refusal::DoesNotFit { reason, .. }) => {
            assert!(reason.contains("exclusive"), "{reason}")
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(cpuset(&bench, "a"), "0-1");
}

#[test]
fn a_host_cannot_lose_parts_that_a_vm_has() {
    let mut bench = bench();
    let mut gpu = own_cores("a", 2_000);
    let request = GpuRequest { models: vec![name("L4")], ..GpuRequest::new(GpuAmount::Whole(1)) };
    gpu.topology.as_mut().expect("bound").gpus = Some(request);
    bench.place(gpu).expect("room");
    let mut update = |change: fn(&mut Host)| {
        let mut host = server(0);
        change(&mut host);
        bench.put(host).map(|_| ()).map_err(|refusal| refusal.to_string())
    };
    let lost = update(|host| host.hardware.gpus.clear()).unwrap_err();
    assert!(lost.contains("VM default/a has GPU 0"), "{lost}");
    let other = update(|host| host.hardware.gpus.iter_mut().for_each(|g| g.model = name("T4")));
    assert!(other.unwrap_err().contains("breaks what a VM has"));
    assert!(update(|host| host.hardware.numa_nodes[0].cores = 0).is_err());
    assert!(update(|host| *host.hardware = Default::default()).is_err());
    update(|host| host.hardware.numa_nodes[1].memory_mib = 200).expect("nobody has that");
    assert_eq!(cpuset(&bench, "a"), "0-1");
    bench.place(own_cores("b", 4_000)).expect("room");
    assert_eq!(cpuset(&bench, "b"), "4-7", "what was taken before is still taken");
}

#[test]
fn guaranteed_vms_never_get_more_than_there_is_and_others_get_up_to_the_ratio() {
    let mut bench = Bench::with_hosts(&[]);
    let mut overcommitted = host(0, 1_000);
    overcommitted.overcommit_permille = Amounts::cpu_memory(2_000, 0);
    bench.put(overcommitted.clone()).expect("a new host");
    let mut place = |id: &str, qos, cpu_millis| {
        let vm = Vm { qos, ..vm(id, cpu_millis) };
        bench.place(vm).expect("an answer").host.is_some()
    };
    use cluster::Qos::{BestEffort, Burstable, Guaranteed};
    assert!(place("g1", Guaranteed, 600));
    assert!(!place("g2", Guaranteed, 500), "600 + 500 > 1000 that are there");
    assert!(place("b1", Burstable, 700));
    assert!(place("g3", Guaranteed, 400));
    assert!(!place("g4", Guaranteed, 1));
    assert!(place("b2", BestEffort, 300), "2000 are allocatable");
    assert!(!place("b3", Burstable, 1));
    let resized = bench.ask(Request::Resize {
        vm: key("g3"),
        changes: vec![(Dim::CPU_MILLIS, 401)],
        if_generation: None,
    });
    assert!(matches!(resized, Err(Refusal::DoesNotFit { .. })), "{resized:?}");
    // As much would be allocatable as before, but not as much could be guaranteed.
    overcommitted.capacity = Amounts::cpu_memory(900, 1_000);
    overcommitted.overcommit_permille = Amounts::cpu_memory(3_000, 0);
    let shrunk = bench.put(overcommitted);
    assert!(
        matches!(&shrunk, Err(Refusal::Invalid { field, .. }) if field == "capacity.cpu_millis")
    );
    let adopted = Request::Adopt {
        vm: Arc::new(Vm { qos: Guaranteed, ..vm("late", 1) }),
        host: name("h0"),
        bindings: None,
    };
    let reply = bench.ask(adopted).expect("adoption asks no rule");
    assert!(matches!(reply.outcome, Outcome::Adopted { over_capacity: true, .. }));
    let report = bench.engine.read(|state| verify::snapshot(&state.snapshot()));
    assert!(report.accepted(), "{report}");
}
