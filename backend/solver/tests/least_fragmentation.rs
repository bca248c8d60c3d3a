//! The strategy `least_fragmentation` on a tiny cluster with GPUs: what it keeps, and that what it
//! remembers between requests changes no answer.

mod tiny;

use cluster::{
    Amounts, Bindings, Gpu, GpuAmount, GpuRequest, Host, HostIx, MigProfile, NumaNode, Strategy,
    Term, Topology, Vm,
};
use solver::fragmentation::{Mix, Wanted};
use std::sync::Arc;
use tiny::{Tiny, hosts, name, vm};

/// Eight cores and 16 GiB beside these GPUs.
fn with_gpus(host: &Host, models: &[&str]) -> Host {
    let mut host = host.clone();
    let node =
        NumaNode { cores: 8, threads_per_core: 1, memory_mib: 16_384, ..NumaNode::default() };
    host.hardware.numa_nodes = vec![node];
    host.hardware.gpus = models.iter().map(|model| Gpu::new(name(model), 24_576)).collect();
    host
}

fn wants(id: &str, amount: GpuAmount) -> Vm {
    let topology = Topology { gpus: Some(GpuRequest::new(amount)), ..Topology::default() };
    Vm { topology: Some(Box::new(topology)), ..vm(id) }
}

fn on_model(id: &str, amount: GpuAmount, model: &str) -> Vm {
    let mut vm = wants(id, amount);
    let gpus = vm.topology.as_mut().and_then(|topology| topology.gpus.as_mut());
    gpus.expect("it wants GPUs").models = vec![name(model)];
    vm
}

fn mix(shapes: &[(&Vm, u64)]) -> Arc<Mix<Wanted>> {
    Arc::new(Mix::given(shapes.iter().map(|(vm, weight)| (Wanted::of(vm), *weight))))
}

fn fleet(hosts: &[Host], shapes: &[(&Vm, u64)]) -> Tiny {
    let mut tiny = Tiny::new(hosts);
    tiny.how.strategy = Strategy::LeastFragmentation;
    tiny.problem.set_mix(mix(shapes));
    tiny
}

/// Places the VM and takes what it gets.
fn settle(tiny: &mut Tiny, vm: &Vm) -> Option<(HostIx, Option<Arc<Bindings>>)> {
    let chosen = tiny.place(vm).host?;
    assert_eq!(chosen.breakdown.total(), chosen.score);
    put(tiny, chosen.host, vm, chosen.bindings.as_ref());
    Some((chosen.host, chosen.bindings))
}

fn put(tiny: &mut Tiny, host: HostIx, vm: &Vm, bindings: Option<&Arc<Bindings>>) {
    tiny.problem.add_vm(host, vm, &vm.demand);
    if let Some(bindings) = bindings {
        tiny.problem.take(host, bindings).expect("free parts");
    }
}

/// Takes parts of one host, whatever the strategy would say.
fn occupy(tiny: &mut Tiny, row: u32, vm: &Vm) {
    let bindings = tiny.problem.bind(vm, HostIx(row)).expect("it asks for parts").expect("free");
    put(tiny, HostIx(row), vm, Some(&Arc::new(bindings)));
}

#[test]
fn a_share_goes_where_it_breaks_up_nothing() {
    let [half, whole] = [wants("half", GpuAmount::Milli(500)), wants("whole", GpuAmount::Whole(1))];
    let two: Vec<Host> = hosts(2).iter().map(|host| with_gpus(host, &["L4", "L4"])).collect();
    let mut tiny = fleet(&two, &[(&half, 1), (&whole, 1)]);
    occupy(&mut tiny, 1, &wants("first", GpuAmount::Milli(500)));
    let chosen = tiny.place(&half).host.expect("room");
    assert_eq!(chosen.host, HostIx(1), "the other half of a GPU in use");
    let kept = chosen.breakdown.get(Term::Fit);
    assert_eq!(kept, chosen.score);
    assert!((90_000..100_000).contains(&kept), "half a GPU of worth and its CPU: {kept}");
    tiny.how.strategy = Strategy::Balanced;
    assert_eq!(tiny.place(&half).host.expect("room").host, HostIx(0), "the emptier host");
}

#[test]
fn vms_without_gpus_stay_away_from_them() {
    let mut all = hosts(2);
    all[0] = with_gpus(&all[0], &["L4"]);
    let [plain, whole] = [vm("plain"), wants("whole", GpuAmount::Whole(1))];
    let hungry = Vm { demand: Amounts::cpu_memory(8_000, 2_048), ..whole };
    let mut tiny = fleet(&all, &[(&hungry, 1)]);
    assert_eq!(tiny.place(&plain).host.expect("room").host, HostIx(1));
}

#[test]
fn models_that_others_need_are_kept_for_them() {
    let mut all = hosts(2);
    all[0] = with_gpus(&all[0], &["H100"]);
    all[1] = with_gpus(&all[1], &["L4"]);
    let any = wants("any", GpuAmount::Whole(1));
    let picky = on_model("picky", GpuAmount::Whole(1), "H100");
    let mut tiny = fleet(&all, &[(&any, 1), (&picky, 1)]);
    assert_eq!(tiny.place(&any).host.expect("room").host, HostIx(1));
    assert_eq!(tiny.place(&picky).host.expect("room").host, HostIx(0));
    let mut tiny = fleet(&all, &[(&any, 1)]);
    assert_eq!(tiny.place(&any).host.expect("room").host, HostIx(0), "nobody needs it");
}

#[test]
fn pieces_go_to_a_gpu_that_is_cut_already() {
    let mut all: Vec<Host> = hosts(2).iter().map(|host| with_gpus(host, &["A100"])).collect();
    for host in &mut all {
        let profile =
            MigProfile { name: name("1g"), memory_mib: 5_120, slices: 1, starts: (0..7).collect() };
        host.hardware.gpus[0].mig_profiles = vec![profile];
    }
    let piece = |id: &str| wants(id, GpuAmount::Mig { profile: name("1g"), count: 1 });
    let whole = wants("whole", GpuAmount::Whole(1));
    let mut tiny = fleet(&all, &[(&whole, 1)]);
    occupy(&mut tiny, 1, &piece("first"));
    assert_eq!(tiny.place(&piece("second")).host.expect("room").host, HostIx(1));
}

#[test]
fn what_is_remembered_changes_no_answer() {
    let shapes = [
        wants("a", GpuAmount::Milli(300)),
        wants("b", GpuAmount::Milli(500)),
        wants("c", GpuAmount::Whole(1)),
        wants("d", GpuAmount::Whole(2)),
        on_model("e", GpuAmount::Milli(700), "H100"),
        vm("f"),
    ];
    let models = [["L4", "L4"], ["H100", "H100"]];
    let hosts: Vec<Host> =
        hosts(70).iter().enumerate().map(|(row, host)| with_gpus(host, &models[row % 2])).collect();
    let ratios: Vec<(&Vm, u64)> = shapes.iter().zip([5, 4, 3, 2, 1, 6]).collect();
    let mut tiny = fleet(&hosts, &ratios);
    let mut placed: Vec<(HostIx, Vm, Option<Arc<Bindings>>)> = Vec::new();
    let mut random = 7u64;
    for step in 0..400 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let dice = (random >> 33) as usize;
        if dice.is_multiple_of(4) && !placed.is_empty() {
            let (host, vm, bindings) = placed.swap_remove(dice / 4 % placed.len());
            if let Some(bindings) = bindings {
                tiny.problem.give_back(host, &bindings).expect("taken parts");
            }
            tiny.problem.remove_vm(host, &vm, &vm.demand);
            continue;
        }
        let mut asks = shapes[dice / 4 % shapes.len()].clone();
        asks.key = vm(&format!("vm-{step}")).key;
        if step % 20 == 0 {
            let mut fresh = fleet(&hosts, &ratios);
            for (host, vm, bindings) in &placed {
                put(&mut fresh, *host, vm, bindings.as_ref());
            }
            assert_eq!(tiny.place(&asks), fresh.place(&asks), "step {step}");
        }
        if let Some((host, bindings)) = settle(&mut tiny, &asks) {
            placed.push((host, asks, bindings));
        }
    }
    assert!(placed.len() > 100, "{} are placed", placed.len());
}
