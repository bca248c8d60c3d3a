//! Which parts of a host a VM gets, which it is refused, and what it is told then.

use cluster::{
    Accelerator, AcceleratorRequest, Amounts, Architecture, Bindings, CoreClass, Cores,
    DriverVersion, Gpu, GpuAmount, GpuBinding, GpuGrouping, GpuRequest, GpuShare, Hardware,
    HugePages, MigProfile, Name, Near, Nic, NicRequest, NumaNode, NumaPolicy, PciFunction,
    PciePort, PortKind, Siblings, Topology,
};
use solver::topology::{Devices, Layout, bind, fragmentation};
use std::sync::Arc;

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

/// Two nodes of four cores with two threads, 1000 MiB each; two switches with two GPUs on each
/// node, cliques across the switches of a node; an RDMA NIC on node 0, another NIC on node 1.
fn hardware() -> Hardware {
    let mut hardware = Hardware {
        architecture: Some(Architecture::X86_64),
        thermal_limit_watts: 500,
        ..Hardware::default()
    };
    let cuts: [(&str, u8, &[u8]); 5] = [
        ("1g", 1, &[0, 1, 2, 3, 4, 5, 6]),
        ("2g", 2, &[0, 2, 4]),
        ("3g", 4, &[0, 4]),
        ("4g", 4, &[0]),
        ("7g", 8, &[0]),
    ];
    for node in 0..2 {
        hardware.numa_nodes.push(NumaNode {
            socket: node,
            cores: 4,
            threads_per_core: 2,
            efficiency_cores: 0,
            memory_mib: 1000,
            hugepages: vec![HugePages { size_kib: 2048, count: 100 }],
        });
        let root = hardware.pcie_ports.len() as u16;
        hardware.pcie_ports.push(PciePort {
            kind: PortKind::RootComplex,
            parent: None,
            numa_node: Some(node),
            bandwidth_mbps: 500,
        });
        for switch in 1..3 {
            hardware.pcie_ports.push(PciePort {
                kind: PortKind::Switch,
                parent: Some(root),
                numa_node: None,
                bandwidth_mbps: 300,
            });
            for _ in 0..2 {
                let profile = |&(text, slices, starts): &(&str, u8, &[u8])| MigProfile {
                    name: name(text),
                    slices,
                    starts: starts.to_vec(),
                    memory_mib: 10 * u32::from(slices),
                };
                hardware.gpus.push(Gpu {
                    compute_capability_tenths: 80,
                    pcie_port: Some(root + switch),
                    nvlink_group: Some(node),
                    driver: Some(DriverVersion { major: 550, minor: 0, patch: 0 }),
                    mig_profiles: cuts.iter().map(profile).collect(),
                    ..Gpu::new(name("A100"), 80)
                });
            }
        }
        hardware.nics.push(Nic {
            functions: 4,
            rdma: node == 0,
            pcie_port: Some(root),
            ..Nic::default()
        });
        hardware.accelerators.push(Accelerator {
            kind: name("fpga"),
            count: 2,
            pcie_port: None,
            numa_node: Some(node),
        });
    }
    hardware
}

fn host(hardware: &Hardware) -> Devices {
    Devices::new(Arc::new(Layout::new(hardware, 1000).unwrap()))
}

fn demand(vcpus: u64, memory_mib: u64) -> Amounts {
    Amounts::cpu_memory(vcpus * 1000, memory_mib)
}

fn place(devices: &mut Devices, request: &Topology, demand: &Amounts) -> Bindings {
    let bindings = bind(devices, request, demand).unwrap_or_else(|why| panic!("{why}"));
    devices.take(&bindings).unwrap();
    bindings
}

fn refusal(devices: &Devices, request: &Topology, demand: &Amounts) -> String {
    bind(devices, request, demand).unwrap_err().to_string()
}

fn exclusive(siblings: Siblings) -> Topology {
    Topology { cores: Cores::Exclusive(siblings), numa: NumaPolicy::Single, ..Topology::default() }
}

fn gpus(amount: GpuAmount) -> Topology {
    Topology { gpus: Some(GpuRequest::new(amount)), ..Topology::default() }
}

fn pieces(profile: &str, count: u16) -> Topology {
    gpus(GpuAmount::Mig { profile: name(profile), count })
}

fn rows(bindings: &Bindings) -> Vec<u16> {
    bindings.gpus.iter().map(|bound| bound.gpu).collect()
}

#[test]
fn cores_come_from_the_fullest_node_that_still_fits() {
    let mut devices = host(&hardware());
    let own = exclusive(Siblings::Own);
    assert_eq!(place(&mut devices, &own, &demand(3, 10)).cpuset(), "0-3");
    assert_eq!(place(&mut devices, &own, &demand(4, 10)).cpuset(), "4-7");
    // Node 0 is full now.
    assert_eq!(place(&mut devices, &own, &demand(2, 10)).cpuset(), "8-9");
    assert_eq!(
        refusal(&devices, &own, &demand(7, 10)),
        "7 exclusive threads of whole cores on one NUMA node; at most 6 can be had"
    );
}

#[test]
fn siblings_are_owned_idle_or_anybodys_as_asked() {
    let mut devices = host(&hardware());
    let idle = place(&mut devices, &exclusive(Siblings::Idle), &demand(2, 10));
    assert_eq!((idle.cpuset().as_str(), &idle.idle_cpus[..]), ("0,2", &[1, 3][..]));
    let any = exclusive(Siblings::Any);
    assert_eq!(place(&mut devices, &any, &demand(1, 10)).cpuset(), "4");
    // The odd thread fills the core that is partly taken.
    assert_eq!(place(&mut devices, &any, &demand(3, 10)).cpuset(), "5-7");
}

#[test]
fn shared_vms_keep_what_they_were_promised() {
    let mut devices = host(&hardware());
    let shared = Topology { numa: NumaPolicy::Single, ..Topology::default() };
    let bound = place(&mut devices, &shared, &Amounts::cpu_memory(6500, 10));
    assert_eq!((bound.nodes[0].node, bound.nodes[0].shared_millis), (0, 6500));
    // Seven threads are needed for 6500 millis, which leaves one thread and no whole core.
    let any = exclusive(Siblings::Any);
    assert_eq!(place(&mut devices, &any, &demand(1, 10)).cpuset(), "0");
    assert_eq!(place(&mut devices, &exclusive(Siblings::Own), &demand(1, 10)).cpuset(), "8-9");
    assert_eq!(
        refusal(&devices, &shared, &Amounts::cpu_memory(6001, 10)),
        "6001 millis of shared CPU on one NUMA node; at most 6000 can be had"
    );
}

#[test]
fn overcommit_lets_a_thread_carry_more_shared_vms() {
    let layout = Layout::new(&hardware(), 2500).unwrap();
    let devices = Devices::new(Arc::new(layout));
    let shared = Topology { numa: NumaPolicy::Single, ..Topology::default() };
    assert!(bind(&devices, &shared, &Amounts::cpu_memory(20_000, 10)).is_ok());
    assert!(bind(&devices, &shared, &Amounts::cpu_memory(20_001, 10)).is_err());
}

#[test]
fn a_vm_that_fits_the_host_but_no_node_is_refused_only_where_it_asks_to_be() {
    let devices = host(&hardware());
    let single = exclusive(Siblings::Own);
    assert_eq!(
        refusal(&devices, &single, &demand(10, 100)),
        "10 exclusive threads of whole cores on one NUMA node; at most 8 can be had"
    );
    let preferred = Topology { numa: NumaPolicy::Preferred, ..single.clone() };
    let bound = bind(&devices, &preferred, &demand(10, 100)).unwrap();
    assert_eq!(bound.nodes.iter().map(|node| node.vcpus).collect::<Vec<_>>(), [8, 2]);
    let split = Topology { numa: NumaPolicy::Split(2), ..single };
    let bound = bind(&devices, &split, &demand(9, 101)).unwrap();
    assert_eq!(bound.nodes.iter().map(|node| node.vcpus).collect::<Vec<_>>(), [5, 4]);
    assert_eq!(bound.nodes.iter().map(|node| node.memory_mib).collect::<Vec<_>>(), [51, 50]);
    assert_eq!(bound.cpuset(), "0-5,8-11");
    let three = Topology { numa: NumaPolicy::Split(3), ..split };
    assert_eq!(
        refusal(&devices, &three, &demand(9, 100)),
        "3 exclusive threads of whole cores on each of 3 NUMA nodes; at most 0 can be had"
    );
}

#[test]
fn huge_pages_are_counted_apart_from_ordinary_memory() {
    let mut devices = host(&hardware());
    let pages = Topology {
        numa: NumaPolicy::Single,
        hugepages: Some(HugePages { size_kib: 2048, count: 60 }),
        ..Topology::default()
    };
    let bound = place(&mut devices, &pages, &demand(1, 130));
    assert_eq!((bound.nodes[0].hugepages, bound.nodes[0].memory_mib), (60, 10));
    place(&mut devices, &pages, &demand(1, 130));
    assert_eq!(
        refusal(&devices, &pages, &demand(1, 130)),
        "60 huge pages of 2048 KiB on one NUMA node; at most 40 can be had"
    );
    let ordinary = Topology { numa: NumaPolicy::Single, ..Topology::default() };
    assert_eq!(
        refusal(&devices, &ordinary, &demand(1, 900)),
        "900 MiB of memory on one NUMA node; at most 790 can be had"
    );
}

#[test]
fn a_share_goes_where_it_leaves_the_smallest_piece() {
    let mut devices = host(&hardware());
    let share = |milli| gpus(GpuAmount::Milli(milli));
    assert_eq!(rows(&place(&mut devices, &share(600), &demand(1, 1))), [0]);
    assert_eq!(rows(&place(&mut devices, &share(500), &demand(1, 1))), [1]);
    assert_eq!(rows(&place(&mut devices, &share(400), &demand(1, 1))), [0]);
    assert_eq!(rows(&place(&mut devices, &share(300), &demand(1, 1))), [1]);
    let left = fragmentation(&devices);
    assert_eq!((left.gpu_milli_in_pieces, left.largest_gpu_piece_milli), (200, 200));
    assert_eq!((left.unused_gpus, left.largest_switch_gpus, left.largest_clique_gpus), (6, 2, 4));
}

#[test]
fn whole_gpus_come_from_the_fullest_switch_and_stay_together() {
    let mut devices = host(&hardware());
    let whole = |count| gpus(GpuAmount::Whole(count));
    assert_eq!(rows(&place(&mut devices, &whole(1), &demand(1, 1))), [0]);
    assert_eq!(rows(&place(&mut devices, &whole(2), &demand(1, 1))), [2, 3]);
    assert_eq!(rows(&place(&mut devices, &whole(1), &demand(1, 1))), [1]);
    assert_eq!(rows(&place(&mut devices, &whole(4), &demand(1, 1))), [4, 5, 6, 7]);
    assert_eq!(refusal(&devices, &whole(1), &demand(1, 1)), "1 whole GPUs; at most 0 can be had");
}

#[test]
fn gpus_that_have_to_be_together_are_not_taken_from_two_places() {
    let devices = host(&hardware());
    let together = |count, together| Topology {
        gpus: Some(GpuRequest { together, ..GpuRequest::new(GpuAmount::Whole(count)) }),
        ..Topology::default()
    };
    assert_eq!(
        refusal(&devices, &together(3, GpuGrouping::SameSwitch), &demand(1, 1)),
        "3 whole GPUs behind one PCIe switch; at most 2 can be had"
    );
    let bound = bind(&devices, &together(3, GpuGrouping::NvlinkClique), &demand(1, 1)).unwrap();
    assert_eq!(rows(&bound), [0, 1, 2]);
    assert_eq!(
        refusal(&devices, &together(5, GpuGrouping::NvlinkClique), &demand(1, 1)),
        "5 whole GPUs in one NVLink clique; at most 4 can be had"
    );
}

#[test]
fn small_pieces_are_cut_where_large_ones_cannot_be() {
    let mut devices = host(&hardware());
    let start = |bindings: &Bindings| match bindings.gpus[0] {
        GpuBinding { gpu, share: GpuShare::Mig { start, .. } } => (gpu, start),
        _ => panic!("not a piece"),
    };
    // The end of the GPU is of no use to 4g and 2g.
    assert_eq!(start(&place(&mut devices, &pieces("1g", 1), &demand(1, 1))), (0, 6));
    assert_eq!(start(&place(&mut devices, &pieces("4g", 1), &demand(1, 1))), (0, 0));
    assert_eq!(start(&place(&mut devices, &pieces("2g", 1), &demand(1, 1))), (0, 4));
    // Nothing is left of the first but a slice that no piece can begin at.
    assert_eq!(start(&place(&mut devices, &pieces("1g", 1), &demand(1, 1))), (1, 6));
    assert_eq!(rows(&place(&mut devices, &pieces("1g", 6), &demand(1, 1))), [1; 6]);
    assert_eq!(
        refusal(&devices, &pieces("7g", 7), &demand(1, 1)),
        "7 pieces of 7g; at most 6 can be had"
    );
}

#[test]
fn devices_are_near_what_they_have_to_be_near() {
    let mut devices = host(&hardware());
    let mut request = gpus(GpuAmount::Whole(1));
    request.nic = Some(NicRequest { functions: 1, rdma: true, near: Near::Gpus });
    request.gpus.as_mut().unwrap().near_cores = true;
    let bound = place(&mut devices, &request, &demand(1, 1));
    assert_eq!((rows(&bound), bound.nodes[0].node), (vec![0], 0));
    assert_eq!(bound.functions, [PciFunction { nic: 0, function: 0 }]);

    // All cores of node 0 are taken, so that GPUs near them are near no RDMA.
    place(&mut devices, &exclusive(Siblings::Own), &demand(6, 1));
    let own = Topology { cores: Cores::Exclusive(Siblings::Own), ..request.clone() };
    assert_eq!(
        refusal(&devices, &own, &demand(2, 1)),
        "1 RDMA functions on the NUMA nodes of the VM's GPUs; at most 0 can be had"
    );
    let mut far = own;
    far.gpus.as_mut().unwrap().near_cores = false;
    let bound = bind(&devices, &far, &demand(2, 1)).unwrap();
    assert_eq!((rows(&bound), bound.nodes[0].node), (vec![1], 1));
}

#[test]
fn gpus_are_moved_to_the_node_that_has_the_accelerators() {
    let mut devices = host(&hardware());
    place(&mut devices, &gpus(GpuAmount::Whole(1)), &demand(1, 1));
    let mut request = gpus(GpuAmount::Whole(1));
    let fpga = |count, near| AcceleratorRequest { kind: name("fpga"), count, near };
    request.accelerators = vec![fpga(2, Near::Gpus)];
    assert_eq!(rows(&place(&mut devices, &request, &demand(1, 1))), [1]);
    assert_eq!(rows(&place(&mut devices, &request, &demand(1, 1))), [4]);
    assert_eq!(refusal(&devices, &request, &demand(1, 1)), "2 of fpga; at most 0 can be had");
}

#[test]
fn what_is_scarce_is_left_to_those_who_ask_for_it() {
    let mut hardware = hardware();
    hardware.gpus.truncate(4);
    let mut devices = host(&hardware);
    // GPUs are on node 0 only, and so is RDMA.
    let mut plain = exclusive(Siblings::Own);
    plain.nic = Some(NicRequest { functions: 2, rdma: false, near: Near::Any });
    let bound = place(&mut devices, &plain, &demand(2, 1));
    assert_eq!((bound.nodes[0].node, bound.functions[0].nic), (1, 1));
}

#[test]
fn efficiency_cores_are_used_where_they_are_asked_for_or_nothing_else_is_left() {
    let mut hardware = hardware();
    hardware.numa_nodes.truncate(1);
    hardware.pcie_ports.clear();
    (hardware.gpus, hardware.nics, hardware.accelerators) = Default::default();
    hardware.numa_nodes[0].efficiency_cores = 2;
    let mut devices = host(&hardware);
    let mut request = exclusive(Siblings::Own);
    request.core_class = Some(CoreClass::Efficiency);
    assert_eq!(place(&mut devices, &request, &demand(1, 1)).cpuset(), "8");
    request.core_class = None;
    assert_eq!(place(&mut devices, &request, &demand(8, 1)).cpuset(), "0-7");
    assert_eq!(place(&mut devices, &request, &demand(1, 1)).cpuset(), "9");
    request.core_class = Some(CoreClass::Performance);
    assert!(bind(&devices, &request, &demand(1, 1)).is_err());
}

#[test]
fn the_kind_of_host_and_gpu_is_asked_first_and_named() {
    let devices = host(&hardware());
    let check = |change: fn(&mut Topology), expect: &str| {
        let mut request = gpus(GpuAmount::Whole(1));
        change(&mut request);
        assert_eq!(refusal(&devices, &request, &demand(1, 1)), expect);
    };
    fn gpu(request: &mut Topology) -> &mut GpuRequest {
        request.gpus.as_mut().unwrap()
    }
    check(|r| r.architecture = Some(Architecture::Aarch64), "not an aarch64 host");
    check(|r| r.cpu_features = vec![name("avx512f")], "the CPU lacks avx512f");
    check(|r| r.watts = 501, "501 watts of heat; at most 500 can be had");
    check(|r| gpu(r).models = vec![name("H100"), name("B200")], "no GPU is of model H100 or B200");
    check(|r| gpu(r).min_memory_mib = 81, "81 MiB of memory in a GPU; at most 80 can be had");
    check(
        |r| gpu(r).min_compute_capability_tenths = 90,
        "90 tenths of compute capability; at most 80 can be had",
    );
    check(
        |r| gpu(r).min_driver = Some(DriverVersion { major: 560, minor: 0, patch: 0 }),
        "no GPU has a driver from 560.0.0",
    );
    check(
        |r| gpu(r).max_driver = Some(DriverVersion { major: 535, minor: 9, patch: 0 }),
        "no GPU has a driver up to 535.9.0",
    );
    check(|r| gpu(r).min_pcie_mbps = 301, "301 Mbit/s to a GPU; at most 300 can be had");
    let shared = gpus(GpuAmount::Milli(500));
    let small = GpuRequest { min_memory_mib: 41, ..shared.gpus.clone().unwrap() };
    let small = Topology { gpus: Some(small), ..shared };
    assert_eq!(
        refusal(&devices, &small, &demand(1, 1)),
        "41 MiB of memory in a GPU; at most 40 can be had"
    );
}

#[test]
fn a_host_that_lists_no_nodes_takes_vms_that_do_not_ask_about_them() {
    let mut hardware = Hardware::default();
    hardware.gpus.push(Gpu::new(name("T4"), 16));
    let mut devices = host(&hardware);
    let bound = place(&mut devices, &gpus(GpuAmount::Milli(500)), &demand(4, 4096));
    assert_eq!((bound.nodes.len(), rows(&bound)), (0, vec![0]));
    assert_eq!(
        refusal(&devices, &exclusive(Siblings::Own), &demand(1, 1)),
        "1 exclusive threads of whole cores on one NUMA node; at most 0 can be had"
    );
}
