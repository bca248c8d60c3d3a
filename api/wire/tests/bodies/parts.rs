//! Requests for parts of a host, and the parts that VMs have: what is read, and what is refused.

use crate::full;
use cluster::{
    Bindings, Cores, GpuAmount, GpuGrouping, GpuShare, Hardware, Near, NumaPolicy, Siblings,
    Topology, Vm,
};
use fixture::{Dice, hardware};
use wire::{AdoptRequest, BindingsView, HardwareSpec, Limits, Read, TopologySpec};

fn read<T: Read>(body: &str) -> Result<T, Vec<wire::Fault>> {
    wire::read(body.as_bytes(), &Limits::single(full::dimensions()))
}

#[test]
fn a_request_says_everything_that_can_be_asked_of_a_host() {
    let vm: Vm = read(
        r#"{"id": "a", "demand": {"cpu_millis": 4000}, "topology": {
            "cores": "exclusive", "siblings": "idle", "core_class": "performance",
            "numa": "split", "numa_nodes": 2, "hugepages": {"size_kib": 2048, "count": 512},
            "gpus": {"count": 2, "models": ["A100", "H100"], "min_memory_mib": 40960,
                "min_compute_capability_tenths": 80, "min_driver": "535", "max_driver": "550.54.14",
                "min_pcie_mbps": 128000, "together": "nvlink_clique", "near_cores": true},
            "nic": {"functions": 1, "rdma": true, "near": "gpus"},
            "accelerators": [{"kind": "nvme", "count": 1, "near": "cores"}],
            "architecture": "x86_64", "cpu_features": ["avx512f"], "watts": 700}}"#,
    )
    .expect("a good body");
    let topology = vm.topology.expect("it asks for parts");
    assert_eq!(topology.cores, Cores::Exclusive(Siblings::Idle));
    assert_eq!(topology.numa, NumaPolicy::Split(2));
    let gpus = topology.gpus.as_ref().expect("GPUs");
    assert_eq!((&gpus.amount, gpus.together), (&GpuAmount::Whole(2), GpuGrouping::NvlinkClique));
    let driver = gpus.min_driver.expect("a version");
    assert_eq!((driver.major, driver.minor, driver.patch), (535, 0, 0));
    assert_eq!(topology.nic.as_ref().expect("a NIC").near, Near::Gpus);
}

#[test]
fn wrong_requests_are_refused_by_field() {
    let rows = [
        (r#"{"cores": "mine"}"#, "cores", "unknown_choice"),
        (r#"{"siblings": "own"}"#, "siblings", "conflicting_fields"),
        (r#"{"numa": "split"}"#, "numa_nodes", "conflicting_fields"),
        (r#"{"numa": "single", "numa_nodes": 2}"#, "numa_nodes", "conflicting_fields"),
        (r#"{"numa": "split", "numa_nodes": 17}"#, "numa_nodes", "number_too_large"),
        (r#"{"numa": "split", "numa_nodes": 1}"#, "numa_nodes", "number_too_small"),
        (r#"{"hugepages": {"size_kib": 2048}}"#, "hugepages.count", "missing_field"),
        (r#"{"hugepages": {"size_kib": 1, "count": 1}}"#, "hugepages.size_kib", "number_too_small"),
        (r#"{"gpus": {}}"#, "gpus", "conflicting_fields"),
        (r#"{"gpus": {"count": 1, "milli": 500}}"#, "gpus", "conflicting_fields"),
        (r#"{"gpus": {"count": 65}}"#, "gpus.count", "number_too_large"),
        (r#"{"gpus": {"milli": 0}}"#, "gpus.milli", "number_too_small"),
        (r#"{"gpus": {"mig": {}}}"#, "gpus.mig.profile", "missing_field"),
        (r#"{"gpus": {"count": 1, "min_driver": "new"}}"#, "gpus.min_driver", "invalid_value"),
        (r#"{"gpus": {"count": 1, "min_driver": "1.2.3.4"}}"#, "gpus.min_driver", "invalid_value"),
        (
            r#"{"gpus": {"count": 1, "min_driver": "2", "max_driver": "1"}}"#,
            "$",
            "conflicting_fields",
        ),
        (r#"{"gpus": {"count": 1, "together": "here"}}"#, "gpus.together", "unknown_choice"),
        (r#"{"nic": {"functions": 1, "near": "gpus"}}"#, "$", "conflicting_fields"),
        (r#"{"nic": {"functions": 257}}"#, "nic.functions", "number_too_large"),
        (r#"{"accelerators": [{"kind": "x"}]}"#, "accelerators[0].count", "missing_field"),
        (r#"{"architecture": "vax"}"#, "architecture", "unknown_choice"),
        (r#"{"watts": -1}"#, "watts", "negative_number"),
        (r#"{"gpu": {"count": 1}}"#, "gpu", "unknown_field"),
    ];
    for (body, path, code) in rows {
        refused::<Topology>(body, path, code);
    }
}

#[test]
fn wrong_parts_are_refused_by_field() {
    let rows = [
        (r#"{"cpuset": "3-1"}"#, "cpuset", "invalid_value"),
        (r#"{"cpuset": "0,,1"}"#, "cpuset", "invalid_value"),
        (r#"{"cpuset": "4096"}"#, "cpuset", "invalid_value"),
        (r#"{"numa": [{"vcpus": 1}]}"#, "numa[0].node", "missing_field"),
        (r#"{"gpus": [{"gpu": 0}]}"#, "gpus[0]", "conflicting_fields"),
        (r#"{"gpus": [{"gpu": 0, "whole": true, "milli": 1}]}"#, "gpus[0]", "conflicting_fields"),
        (
            r#"{"gpus": [{"gpu": 0, "mig": {"profile": 0, "start": 16}}]}"#,
            "gpus[0].mig.start",
            "number_too_large",
        ),
        (r#"{"pci": [{"nic": 0}]}"#, "pci[0].function", "missing_field"),
        (r#"{"cpus": "0"}"#, "cpus", "unknown_field"),
    ];
    for (body, path, code) in rows {
        refused::<Bindings>(body, path, code);
    }
    let adopted = r#"{"id": "a", "demand": {}, "host_id": "h", "bindings": {"cpuset": "0"}}"#;
    refused::<AdoptRequest>(adopted, "bindings", "conflicting_fields");
    refused::<Vm>(r#"{"id": "a", "demand": {}, "bindings": {}}"#, "bindings", "read_only_field");
}

#[test]
fn wrong_hardware_is_refused_by_field() {
    let rows = [
        (
            r#"{"nics": [{"functions": 1, "numa_node": 0}]}"#,
            "nics[0].numa_node",
            "unknown_reference",
        ),
        (r#"{"nics": [{"functions": 257}]}"#, "nics[0].functions", "number_too_large"),
        (
            r#"{"gpus": [{"model": "A", "memory_mib": 1, "driver": "x"}]}"#,
            "gpus[0].driver",
            "invalid_value",
        ),
        (
            r#"{"gpus": [{"model": "A", "memory_mib": 1,
            "mig_profiles": [{"name": "1g", "slices": 4, "starts": [14], "memory_mib": 1}]}]}"#,
            "$",
            "conflicting_fields",
        ),
        (
            r#"{"numa_nodes": [{"cores": 1, "memory_mib": 1, "hugepages":
            [{"size_kib": 2048, "count": 9}]}]}"#,
            "$",
            "conflicting_fields",
        ),
        (
            r#"{"pcie_ports": [{"kind": "wire", "bandwidth_mbps": 1}]}"#,
            "pcie_ports[0].kind",
            "unknown_choice",
        ),
        (r#"{"thermal_limit_watts": 4294967296}"#, "thermal_limit_watts", "number_too_large"),
    ];
    for (body, path, code) in rows {
        refused::<Hardware>(body, path, code);
    }
}

fn refused<T: Read + std::fmt::Debug>(body: &str, path: &str, code: &str) {
    let faults = read::<T>(body).expect_err(body);
    let found = faults.iter().any(|fault| fault.path == path && fault.code == code);
    assert!(found, "{body}\nwanted {code} at {path}, found {faults:#?}");
}

#[test]
fn bindings_read_back_as_they_were() {
    let whole = cluster::GpuBinding { gpu: 1, share: GpuShare::Whole };
    let milli = cluster::GpuBinding { gpu: 2, share: GpuShare::Milli(250) };
    let piece = cluster::GpuBinding { gpu: 3, share: GpuShare::Mig { profile: 2, start: 4 } };
    let bindings = Bindings {
        cpus: vec![0, 1, 2, 8],
        idle_cpus: vec![3, 9],
        nodes: vec![cluster::NodeBinding {
            node: 1,
            vcpus: 4,
            memory_mib: 512,
            hugepages: 3,
            ..Default::default()
        }],
        hugepage_kib: 2048,
        gpus: vec![whole, milli, piece],
        functions: vec![cluster::PciFunction { nic: 0, function: 7 }],
        accelerators: vec![cluster::AcceleratorBinding { row: 2, count: 1 }],
        watts: 300,
        ..Bindings::default()
    };
    let text = serde_json::to_string(&BindingsView::from(&bindings)).expect("plain data");
    assert!(text.contains(r#""cpuset":"0-2,8""#), "{text}");
    assert_eq!(read::<Bindings>(&text), Ok(bindings));
}

#[test]
fn hardware_and_requests_read_back_as_they_were_written() {
    let limits = Limits::single(full::dimensions());
    for seed in 0..300 {
        let mut dice = Dice::new(seed);
        for described in [hardware::server(&mut dice), hardware::tiny(&mut dice)] {
            let text = serde_json::to_vec(&HardwareSpec::from(&described)).expect("plain data");
            assert_eq!(wire::read::<Hardware>(&text, &limits).as_ref(), Ok(&described));
        }
        let (topology, _) = hardware::request(&mut dice);
        let text = serde_json::to_vec(&TopologySpec::from(&topology)).expect("plain data");
        assert_eq!(wire::read::<Topology>(&text, &limits).as_ref(), Ok(&topology));
    }
}
