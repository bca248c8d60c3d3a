//! The mix of shapes that the engine learns: put to use, and the same again after a crash.

mod common;

use cluster::{Gpu, GpuAmount, GpuRequest, Host, NumaNode, Strategy, Topology, Vm};
use common::{Bench, host, key, name, vm};
use engine::{Options, PlaceRequest, Request};

/// Two GPUs, 32 cores.
fn server(row: usize) -> Host {
    let mut host = host(row, 32_000);
    let node =
        NumaNode { cores: 32, threads_per_core: 1, memory_mib: 1_000, ..NumaNode::default() };
    host.hardware.numa_nodes = vec![node];
    host.hardware.gpus = vec![Gpu::new(name("L4"), 24_576); 2];
    host
}

fn wants(id: &str, amount: GpuAmount) -> Vm {
    let topology = Topology { gpus: Some(GpuRequest::new(amount)), ..Topology::default() };
    Vm { topology: Some(Box::new(topology)), ..vm(id, 1_000) }
}

fn least_fragmentation(vm: Vm) -> PlaceRequest {
    PlaceRequest { strategy: Some(Strategy::LeastFragmentation), ..PlaceRequest::new(vm) }
}

fn bench(snapshot_every: u64) -> Bench {
    let mut bench = Bench::with_options(&[], Options { snapshot_every, retain: 1_000 });
    (0..12).for_each(|row| {
        bench.put(server(row)).expect("a new host");
    });
    bench
}

fn fill(bench: &mut Bench, steps: std::ops::Range<u32>) {
    for step in steps {
        let amount = match step % 5 {
            0 => GpuAmount::Whole(1),
            1 | 2 => GpuAmount::Milli(600),
            _ => GpuAmount::Milli(300),
        };
        let request = least_fragmentation(wants(&format!("vm-{step}"), amount));
        bench.place_request(request).expect("an answer");
        if step % 7 == 6 {
            let vm = key(&format!("vm-{}", step - 3));
            let _ = bench.ask(Request::RemoveVm { vm, if_generation: None });
        }
    }
}

#[test]
fn what_was_learned_is_put_to_use() {
    let after = |models: &[&str]| {
        let mut bench = Bench::with_hosts(&[]);
        for (row, model) in ["H100", "L4"].into_iter().enumerate() {
            let mut host = server(row);
            host.hardware.gpus = vec![Gpu::new(name(model), 24_576); 2];
            bench.put(host).expect("a new host");
        }
        for step in 0..16 {
            let mut vm = wants("came", GpuAmount::Whole(1));
            let gpus = vm.topology.as_mut().and_then(|topology| topology.gpus.as_mut());
            gpus.expect("it wants GPUs").models =
                models.iter().filter(|_| step % 2 == 0).map(|model| name(model)).collect();
            bench.place(vm).expect("room");
            let gone = Request::RemoveVm { vm: key("came"), if_generation: None };
            bench.ask(gone).expect("there");
        }
        let request = least_fragmentation(wants("next", GpuAmount::Whole(1)));
        bench.place_request(request).expect("room").host.map(|host| host.to_string())
    };
    assert_eq!(after(&[]).as_deref(), Some("h0"), "nobody needs the model of h0");
    assert_eq!(after(&["H100"]).as_deref(), Some("h1"), "every other VM needs the model of h0");
}

#[test]
fn the_same_is_known_after_a_crash_with_and_without_a_snapshot() {
    let mut undisturbed = bench(0);
    fill(&mut undisturbed, 0..60);
    for snapshot_every in [0, 5] {
        let mut bench = bench(snapshot_every);
        fill(&mut bench, 0..30);
        if snapshot_every > 0 {
            bench.engine.snapshot_now().expect("written");
        }
        let before = bench.engine.read(|state| state.mix().clone());
        let mut bench = bench.restart();
        assert_eq!(bench.engine.read(|state| state.mix().clone()), before);
        fill(&mut bench, 30..60);
        assert_eq!(bench.hash(), undisturbed.hash(), "snapshot every {snapshot_every}");
        let report = verify::snapshot(&bench.engine.read(|state| state.snapshot()));
        assert!(report.accepted(), "{report}");
    }
}

#[test]
fn decisions_replay_bit_for_bit() {
    let mut bench = bench(0);
    fill(&mut bench, 0..40);
    let ids: Vec<_> =
        bench.engine.read(|state| state.vms().map(|(_, entry)| entry.decided).collect());
    for id in ids {
        let replay = bench.engine.history().replay(id).expect("readable").expect("recorded");
        assert!(replay.is_exact(), "{id}: {replay:?}");
    }
}
