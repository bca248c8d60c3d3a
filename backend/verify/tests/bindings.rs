//! Every kind of wrong binding, made on purpose, is found, and nothing else with it.

use cluster::{
    Accelerator, AcceleratorBinding, AcceleratorRequest, Amounts, Architecture, Bindings,
    CoreClass, Cores, DriverVersion, Gpu, GpuAmount, GpuBinding, GpuGrouping, GpuRequest, GpuShare,
    Hardware, HugePages, MigProfile, Name, Near, Nic, NicRequest, NodeBinding, NumaNode,
    NumaPolicy, PciFunction, PciePort, PortKind, Siblings, Topology, VmKey,
};
use std::collections::BTreeSet;
use verify::Guest;

/// A host and VMs on it that are bound as they asked.
struct Scene {
    hardware: Hardware,
    vms: Vec<Vm>,
}

#[derive(Clone)]
struct Vm {
    key: VmKey,
    request: Topology,
    demand: Amounts,
    bindings: Bindings,
}

// Positions of the VMs in the scene.
const WHOLE: usize = 0;
const IDLE: usize = 1;
const SPLIT: usize = 2;
const SHARE: usize = 3;
const PIECES: usize = 4;

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

fn vm(id: &str, request: Topology, demand: [u64; 2], bindings: Bindings) -> Vm {
    let key = VmKey::in_default_tenant(name(id));
    Vm { key, request, demand: Amounts::cpu_memory(demand[0], demand[1]), bindings }
}

/// Two nodes of four cores with two threads (0 to 7, 10 to 17) and two efficiency cores (8, 9, 18,
/// 19), two GPUs and a NIC on each.
fn hardware() -> Hardware {
    let node = NumaNode {
        socket: 0,
        cores: 4,
        threads_per_core: 2,
        efficiency_cores: 2,
        memory_mib: 1000,
        hugepages: vec![
            HugePages { size_kib: 2048, count: 10 },
            HugePages { size_kib: 4096, count: 5 },
        ],
    };
    let root = |node| PciePort {
        kind: PortKind::RootComplex,
        parent: None,
        numa_node: Some(node),
        bandwidth_mbps: 500,
    };
    let switch =
        |parent| PciePort { parent: Some(parent), bandwidth_mbps: 300, ..PciePort::default() };
    let profile = |text, slices, starts: &[u8]| MigProfile {
        name: name(text),
        slices,
        starts: starts.to_vec(),
        memory_mib: 10 * u32::from(slices),
    };
    let gpu = |port, group| Gpu {
        compute_capability_tenths: 80,
        pcie_port: Some(port),
        nvlink_group: Some(group),
        driver: Some(DriverVersion { major: 550, minor: 0, patch: 0 }),
        mig_profiles: vec![profile("1g", 1, &[0, 1, 2]), profile("2g", 2, &[0, 2])],
        ..Gpu::new(name("A"), 40)
    };
    let nic = |port, rdma| Nic { functions: 4, rdma, pcie_port: Some(port), ..Nic::default() };
    let accelerator = |kind, node| Accelerator {
        kind: name(kind),
        count: 2,
        pcie_port: None,
        numa_node: Some(node),
    };
    Hardware {
        numa_nodes: vec![node.clone(), node],
        pcie_ports: vec![root(0), switch(0), root(1), switch(2)],
        gpus: vec![gpu(1, 0), gpu(1, 0), gpu(3, 1), gpu(3, 1)],
        accelerators: vec![accelerator("fpga", 0), accelerator("nvme", 1)],
        nics: vec![nic(0, true), nic(2, false)],
        architecture: Some(Architecture::X86_64),
        cpu_features: vec![name("avx2")],
        thermal_limit_watts: 150,
    }
}

fn scene() -> Scene {
    let node = |node, vcpus, shared_millis, memory_mib, hugepages| NodeBinding {
        node,
        vcpus,
        shared_millis,
        memory_mib,
        hugepages,
    };
    let gpu = |gpu, share| GpuBinding { gpu, share };
    let piece = |start| gpu(3, GpuShare::Mig { profile: 0, start });
    let whole = vm(
        "whole",
        Topology {
            cores: Cores::Exclusive(Siblings::Own),
            numa: NumaPolicy::Single,
            hugepages: Some(HugePages { size_kib: 2048, count: 2 }),
            gpus: Some(GpuRequest {
                models: vec![name("A")],
                together: GpuGrouping::SameSwitch,
                near_cores: true,
                ..GpuRequest::new(GpuAmount::Whole(2))
            }),
            nic: Some(NicRequest { functions: 1, rdma: true, near: Near::Gpus }),
            accelerators: vec![AcceleratorRequest {
                kind: name("fpga"),
                count: 1,
                near: Near::Cores,
            }],
            architecture: Some(Architecture::X86_64),
            cpu_features: vec![name("avx2")],
            watts: 100,
            ..Topology::default()
        },
        [3000, 104],
        Bindings {
            cpus: vec![0, 1, 2, 3],
            nodes: vec![node(0, 3, 0, 100, 2)],
            hugepage_kib: 2048,
            gpus: vec![gpu(0, GpuShare::Whole), gpu(1, GpuShare::Whole)],
            functions: vec![PciFunction { nic: 0, function: 0 }],
            accelerators: vec![AcceleratorBinding { row: 0, count: 1 }],
            watts: 100,
            ..Bindings::default()
        },
    );
    let idle = vm(
        "idle",
        Topology { cores: Cores::Exclusive(Siblings::Idle), ..Topology::default() },
        [1000, 10],
        Bindings {
            cpus: vec![4],
            idle_cpus: vec![5],
            nodes: vec![node(0, 1, 0, 10, 0)],
            ..Bindings::default()
        },
    );
    let split = vm(
        "split",
        Topology {
            cores: Cores::Exclusive(Siblings::Any),
            numa: NumaPolicy::Split(2),
            ..Topology::default()
        },
        [2500, 21],
        Bindings {
            cpus: vec![6, 10, 11],
            nodes: vec![node(0, 1, 0, 11, 0), node(1, 2, 0, 10, 0)],
            ..Bindings::default()
        },
    );
    let share = vm(
        "share",
        Topology { gpus: Some(GpuRequest::new(GpuAmount::Milli(600))), ..Topology::default() },
        [1500, 10],
        Bindings {
            nodes: vec![node(1, 0, 1500, 10, 0)],
            gpus: vec![gpu(2, GpuShare::Milli(600))],
            ..Bindings::default()
        },
    );
    let pieces = vm(
        "pieces",
        Topology {
            core_class: Some(CoreClass::Efficiency),
            gpus: Some(GpuRequest::new(GpuAmount::Mig { profile: name("1g"), count: 2 })),
            nic: Some(NicRequest { functions: 1, rdma: false, near: Near::Any }),
            ..Topology::default()
        },
        [500, 10],
        Bindings {
            core_class: CoreClass::Efficiency,
            nodes: vec![node(1, 0, 500, 10, 0)],
            gpus: vec![piece(0), piece(1)],
            functions: vec![PciFunction { nic: 1, function: 0 }],
            ..Bindings::default()
        },
    );
    Scene { hardware: hardware(), vms: vec![whole, idle, split, share, pieces] }
}

/// The names of the kinds that are found, once each.
fn found(scene: &Scene) -> BTreeSet<String> {
    found_by(scene, verify::bindings)
}

type Check = fn(&Hardware, u64, &[Guest<'_>]) -> verify::BindingViolations;

fn found_by(scene: &Scene, check: Check) -> BTreeSet<String> {
    let guests = scene.vms.iter().map(|Vm { key, request, demand, bindings }| Guest {
        vm: key,
        request,
        demand,
        bindings,
    });
    let guests: Vec<Guest<'_>> = guests.collect();
    let violations = check(&scene.hardware, 1000, &guests);
    for violation in &violations {
        assert!(violation.to_string().starts_with("vm default/"), "{violation}");
    }
    let json = violations.iter().map(|violation| serde_json::to_value(violation).unwrap());
    json.map(|json| json["kind"].as_str().unwrap().to_string()).collect()
}

/// Another VM with this share of a GPU and nothing else.
fn intruder(scene: &mut Scene, gpu: u16, share: GpuShare) {
    let amount = match share {
        GpuShare::Whole => GpuAmount::Whole(1),
        GpuShare::Milli(milli) => GpuAmount::Milli(milli),
        GpuShare::Mig { .. } => GpuAmount::Mig { profile: name("2g"), count: 1 },
    };
    let request = Topology { gpus: Some(GpuRequest::new(amount)), ..Topology::default() };
    let gpus = vec![GpuBinding { gpu, share }];
    scene.vms.push(vm("intruder", request, [0, 0], Bindings { gpus, ..Bindings::default() }));
}

type Break = fn(&mut Scene);

fn gpus(scene: &mut Scene, vm: usize) -> &mut GpuRequest {
    scene.vms[vm].request.gpus.as_mut().unwrap()
}

/// About one VM and what it asked for.
const OWN: [(&str, Break); 36] = [
    ("disorder", |s| s.vms[WHOLE].bindings.cpus.swap(0, 1)),
    ("unknown", |s| s.vms[WHOLE].bindings.functions[0].function = 4),
    ("unknown", |s| s.vms[SPLIT].bindings.cpus[2] = 20),
    ("architecture", |s| s.hardware.architecture = Some(Architecture::Aarch64)),
    ("cpu_feature", |s| s.hardware.cpu_features.clear()),
    ("wrong_watts", |s| s.vms[WHOLE].bindings.watts = 99),
    ("core_class", |s| s.vms[PIECES].bindings.core_class = CoreClass::Performance),
    ("core_class", |s| s.vms[SPLIT].bindings.cpus = vec![8, 10, 11]),
    ("not_shared", |s| s.vms[SHARE].bindings.cpus.push(12)),
    ("not_exclusive", |s| s.vms[IDLE].bindings.nodes[0].shared_millis = 1),
    ("siblings", |s| s.vms[WHOLE].bindings.cpus = vec![0, 1, 2, 7]),
    ("siblings", |s| s.vms[IDLE].bindings.idle_cpus.clear()),
    ("thread_count", |s| s.vms[SPLIT].bindings.cpus = vec![6, 7, 10, 11]),
    ("cpu_sum", |s| s.vms[SPLIT].demand = Amounts::cpu_memory(3001, 21)),
    ("memory_sum", |s| s.vms[IDLE].bindings.nodes[0].memory_mib = 11),
    ("page_size", |s| s.vms[WHOLE].bindings.hugepage_kib = 4096),
    ("page_sum", |s| s.vms[WHOLE].bindings.nodes[0].hugepages = 3),
    ("not_single", |s| {
        s.vms[WHOLE].bindings.nodes[0].memory_mib = 60;
        let rest = NodeBinding { node: 1, memory_mib: 40, ..NodeBinding::default() };
        s.vms[WHOLE].bindings.nodes.push(rest);
    }),
    ("split_ways", |s| s.vms[SPLIT].request.numa = NumaPolicy::Split(3)),
    ("split_uneven", |s| {
        s.vms[SPLIT].bindings.nodes[0].memory_mib = 12;
        s.vms[SPLIT].bindings.nodes[1].memory_mib = 9;
    }),
    ("gpu_count", |s| s.vms[WHOLE].bindings.gpus.truncate(1)),
    ("gpu_count", |s| s.vms[SHARE].request.gpus = None),
    ("gpu_share", |s| s.vms[SHARE].bindings.gpus[0].share = GpuShare::Milli(500)),
    ("illegal_piece", |s| {
        s.vms[PIECES].bindings.gpus[1].share = GpuShare::Mig { profile: 0, start: 3 };
    }),
    ("gpu_model", |s| gpus(s, SHARE).models = vec![name("B"), name("C")]),
    ("gpu_memory", |s| gpus(s, SHARE).min_memory_mib = 25),
    ("compute_capability", |s| gpus(s, SHARE).min_compute_capability_tenths = 90),
    ("driver", |s| {
        gpus(s, SHARE).min_driver = Some(DriverVersion { major: 550, minor: 0, patch: 1 });
    }),
    ("driver", |s| {
        gpus(s, SHARE).max_driver = Some(DriverVersion { major: 549, minor: 9, patch: 9 });
    }),
    ("pcie_bandwidth", |s| gpus(s, SHARE).min_pcie_mbps = 301),
    ("not_one_switch", |s| s.hardware.gpus[1].pcie_port = Some(0)),
    ("not_one_clique", |s| {
        gpus(s, WHOLE).together = GpuGrouping::NvlinkClique;
        s.hardware.gpus[1].nvlink_group = None;
    }),
    ("gpu_not_near", |s| s.hardware.gpus[1].numa_node = Some(1)),
    ("function_count", |s| {
        s.vms[WHOLE].bindings.functions.push(PciFunction { nic: 0, function: 1 });
    }),
    ("not_rdma", |s| s.hardware.nics[0].rdma = false),
    ("nic_not_near", |s| s.hardware.nics[0].numa_node = Some(1)),
];

/// About accelerators, and about VMs beside each other.
const BETWEEN: [(&str, Break); 17] = [
    ("accelerator_count", |s| s.vms[WHOLE].request.accelerators[0].count = 2),
    ("accelerator_count", |s| {
        s.vms[IDLE].bindings.accelerators.push(AcceleratorBinding { row: 1, count: 1 });
    }),
    ("accelerator_not_near", |s| s.hardware.accelerators[0].numa_node = Some(1)),
    ("thread_twice", |s| s.vms[SPLIT].bindings.cpus = vec![0, 10, 11]),
    ("sibling_taken", |s| s.vms[SPLIT].bindings.cpus = vec![5, 10, 11]),
    ("shared_cpu_over", |s| {
        // Six of eight threads are left for shared VMs.
        s.vms[SHARE].demand = Amounts::cpu_memory(6001, 10);
        s.vms[SHARE].bindings.nodes[0].shared_millis = 6001;
    }),
    ("memory_over", |s| {
        s.vms[SHARE].demand = Amounts::cpu_memory(1500, 941);
        s.vms[SHARE].bindings.nodes[0].memory_mib = 941;
    }),
    ("huge_pages_over", |s| {
        s.vms[WHOLE].request.hugepages = Some(HugePages { size_kib: 2048, count: 11 });
        s.vms[WHOLE].bindings.nodes[0].hugepages = 11;
        s.vms[WHOLE].demand = Amounts::cpu_memory(3000, 122);
    }),
    ("gpu_over", |s| intruder(s, 2, GpuShare::Milli(401))),
    ("whole_gpu_shared", |s| intruder(s, 0, GpuShare::Milli(1))),
    ("whole_gpu_shared", |s| intruder(s, 2, GpuShare::Whole)),
    ("whole_gpu_shared", |s| intruder(s, 1, GpuShare::Mig { profile: 1, start: 0 })),
    ("gpu_cut_and_shared", |s| intruder(s, 3, GpuShare::Milli(1))),
    ("pieces_overlap", |s| intruder(s, 3, GpuShare::Mig { profile: 1, start: 0 })),
    ("function_twice", |s| {
        s.vms[PIECES].bindings.functions[0] = PciFunction { nic: 0, function: 0 };
    }),
    ("accelerators_over", |s| {
        s.vms[WHOLE].request.accelerators[0].count = 3;
        s.vms[WHOLE].bindings.accelerators[0].count = 3;
    }),
    ("watts_over", |s| s.hardware.thermal_limit_watts = 99),
];

#[test]
fn bindings_as_they_were_asked_for_are_accepted() {
    assert_eq!(found(&scene()), BTreeSet::new());
}

#[test]
fn each_kind_is_found_when_it_is_made_on_purpose_and_nothing_else_is() {
    let kinds: BTreeSet<&str> = OWN.iter().chain(&BETWEEN).map(|(kind, _)| *kind).collect();
    assert_eq!(kinds.len(), 45, "every kind of `BindingViolationKind` is made");
    for (kind, broken) in OWN.into_iter().chain(BETWEEN) {
        let mut scene = scene();
        broken(&mut scene);
        assert_eq!(found(&scene), BTreeSet::from([kind.to_string()]), "made: {kind}");
    }
}

#[test]
fn a_newcomer_is_held_against_its_own_request_and_against_the_others() {
    let mut scene = scene();
    // Of those that were there before, what they asked for is not read again.
    scene.vms[SHARE].bindings.gpus[0].share = GpuShare::Milli(500);
    intruder(&mut scene, 2, GpuShare::Milli(501));
    assert_eq!(found_by(&scene, newcomer), BTreeSet::from(["gpu_over".to_string()]));
    scene.vms.last_mut().unwrap().request.watts = 1;
    let both = BTreeSet::from(["gpu_over".to_string(), "wrong_watts".to_string()]);
    assert_eq!(found_by(&scene, newcomer), both);
}

#[test]
fn room_to_the_last_unit_is_no_violation() {
    let full: [Break; 5] = [
        |s| {
            s.vms[SHARE].demand = Amounts::cpu_memory(6000, 940);
            s.vms[SHARE].bindings.nodes[0].shared_millis = 6000;
            s.vms[SHARE].bindings.nodes[0].memory_mib = 940;
        },
        |s| intruder(s, 2, GpuShare::Milli(400)),
        |s| intruder(s, 3, GpuShare::Mig { profile: 1, start: 2 }),
        |s| s.hardware.thermal_limit_watts = 100,
        |s| s.hardware.thermal_limit_watts = 0,
    ];
    for (row, change) in full.into_iter().enumerate() {
        let mut scene = scene();
        change(&mut scene);
        assert_eq!(found(&scene), BTreeSet::new(), "change {row}");
    }
}

#[test]
fn a_unified_gpu_works_in_the_memory_of_the_vm() {
    let mut scene = scene();
    gpus(&mut scene, SHARE).min_memory_mib = 10;
    scene.hardware.gpus[2].unified_memory = true;
    assert_eq!(found(&scene), BTreeSet::new());
    gpus(&mut scene, SHARE).min_memory_mib = 11;
    assert_eq!(found(&scene), BTreeSet::from(["gpu_memory".to_string()]));
}

/// All but the last were checked before.
fn newcomer(
    hardware: &Hardware,
    permille: u64,
    guests: &[verify::Guest<'_>],
) -> verify::BindingViolations {
    let (last, before) = guests.split_last().expect("at least one VM");
    let before: Vec<_> = before.iter().map(|guest| verify::Holder::from(*guest)).collect();
    verify::newcomer(hardware, permille, &before, last)
}
