//! The attributes of hosts and VMs: each has a value, and the README lists it.

use cluster::{
    Accelerator, Amounts, Dim, Dimensions, Host, Name, Power, Price, PriceKind, RegionLatency, Vm,
    VmKey,
};
use policy::vocabulary::{Attribute, HOST, VM, host_value, vm_value};
use policy::{Path, Root, Value};

fn name(text: &str) -> Name {
    Name::new(text).expect("a name")
}

fn dimensions() -> Dimensions {
    Dimensions::with_extra(vec![name("gpu")]).expect("one more")
}

/// 40 cores of which 8 are kept back, doubled; 64 GiB; two GPUs; a quarter of the CPU in use.
fn host() -> Host {
    let capacity = Amounts::from_slice(&[40_000, 65_536, 1_000, 0, 10_000, 2]);
    let mut host = Host::new(name("h1"), capacity);
    host.pool = Some(name("general"));
    host.location.region = Some(name("eu"));
    host.location.zone = Some(name("eu-1"));
    host.location.rack = Some(name("r7"));
    host.location.power_feed = Some(name("f2"));
    host.reserved = Amounts::cpu_memory(8_000, 0);
    host.overcommit_permille = Amounts::cpu_memory(2_000, 0);
    host.price = Price { kind: PriceKind::Spot, micros_per_hour: 1_250_000 };
    host.power = Power::Linear { idle_mw: 100_000, peak_mw: 300_000 };
    host.latencies = vec![RegionLatency { region: name("paris"), latency_us: 7_500 }];
    host.benchmark_permille = 1_200;
    host.failure_ppm_per_year = 20_000;
    let kind = name("fpga");
    host.hardware.accelerators =
        vec![Accelerator { kind, count: 1, pcie_port: None, numa_node: None }];
    for (key, value) in [
        ("tier", "gold"),
        ("tpm", "false"),
        ("network_performance_score", "0.75"),
        ("maintenance_window", "sun-02:00"),
    ] {
        host.labels.insert(name(key), name(value));
    }
    host
}

fn of_host(keys: &[&str]) -> Value {
    let used = Amounts::from_slice(&[16_000, 16_384, 100, 0, 0, 1]);
    let promised = |dim: Dim| used.get(dim);
    host_value(&host(), &promised, 3, &dimensions(), &Path::new(Root::Candidate, keys))
}

fn of_vm(keys: &[&str]) -> Value {
    let demand = Amounts::from_slice(&[2_500, 3_072, 50, 0, 0, 1]);
    let mut vm = Vm::new(VmKey::in_default_tenant(name("v1")), demand);
    vm.pool = Some(name("general"));
    vm.groups = vec![name("web")];
    vm.hints.user_region = Some(name("paris"));
    vm.hints.expected_lifetime_s = Some(3_600);
    for (key, value) in [("tier", "gold"), ("type", "kvm"), ("created_at", "2026-01-01")] {
        vm.labels.insert(name(key), name(value));
    }
    vm_value(&vm, &dimensions(), &Path::new(Root::Vm, keys))
}

/// A path that the listed name stands for.
fn keys(attribute: &Attribute) -> Vec<String> {
    let name = attribute
        .name
        .replace("<key>", "tier")
        .replace("<dimension>", "cpu_millis")
        .replace("<region>", "paris")
        .replace("<resource>.<amount>", "cpu.available")
        .replace("<resource>", "cpu");
    let name = match name.as_str() {
        "capabilities.<name>" => "capabilities.gpu".to_string(),
        "groups[\"<name>\"]" => "groups[\"web\"]".to_string(),
        _ => name,
    };
    match name.split_once('[') {
        Some((first, rest)) => vec![first.into(), rest.trim_matches(['"', ']']).into()],
        None => name.split('.').map(String::from).collect(),
    }
}

#[test]
fn every_listed_attribute_has_a_value_of_its_kind() {
    type Reader = fn(&[&str]) -> Value;
    let lists: [(&[Attribute], Reader); 2] = [(HOST, of_host), (VM, of_vm)];
    for (list, value) in lists {
        for attribute in list {
            let keys = keys(attribute);
            let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
            let kind = match value(&keys) {
                Value::Null => panic!("{} is null", attribute.name),
                Value::Bool(_) => "bool",
                Value::Number(_) => "number",
                Value::Text(_) => "string",
            };
            assert_eq!(kind, attribute.kind, "{}", attribute.name);
        }
    }
}

#[test]
fn amounts_have_the_units_that_their_names_promise() {
    let check = |keys: &[&str], expect: f64| {
        assert_eq!(of_host(keys), Value::Number(expect), "{keys:?}");
    };
    check(&["capacity", "cpu_millis"], 40_000.0);
    check(&["allocatable", "cpu_millis"], 64_000.0);
    check(&["allocated", "cpu_millis"], 16_000.0);
    check(&["free", "cpu_millis"], 48_000.0);
    check(&["utilisation", "cpu_millis"], 25.0);
    check(&["total_cpu_cores"], 64.0);
    check(&["available_cpu"], 48.0);
    check(&["total_memory_gb"], 64.0);
    check(&["used_memory_gb"], 16.0);
    check(&["available_memory"], 49_152.0);
    check(&["resources", "memory.available"], 49_152.0);
    check(&["resources", "gpu.capacity"], 2.0);
    check(&["resources", "gpu.available"], 1.0);
    check(&["metrics", "memory.utilization"], 25.0);
    check(&["metrics", "network.latency.to.paris"], 7.5);
    check(&["cost_per_hour"], 1.25);
    check(&["power_watts"], 150.0);
    check(&["power_utilization"], 50.0);
    check(&["network_performance_score"], 0.75);
    assert_eq!(of_vm(&["cpu_cores"]), Value::Number(2.5));
    assert_eq!(of_vm(&["memory_gb"]), Value::Number(3.0));
    assert_eq!(of_vm(&["resource_requests", "memory"]), Value::Number(3_072.0));
    assert_eq!(of_vm(&["resource_requests", "gpu"]), Value::Number(1.0));
    assert_eq!(of_vm(&["priority"]), Value::Number(50.0));
}

#[test]
fn capabilities_come_from_devices_and_labels() {
    assert_eq!(of_host(&["capabilities", "gpu"]), Value::Bool(true));
    assert_eq!(of_host(&["capabilities", "fpga"]), Value::Bool(true));
    assert_eq!(of_host(&["capabilities", "tpm"]), Value::Bool(false));
    assert_eq!(of_host(&["capabilities", "sgx"]), Value::Null);
    assert_eq!(of_host(&["datacenter"]), Value::from("eu-1"));
}

#[test]
fn strangers_are_null() {
    for keys in [&["rak"][..], &["capacity", "bananas"], &["labels"], &["labels", "x", "y"]] {
        assert_eq!(of_host(keys), Value::Null, "{keys:?}");
        assert_eq!(of_vm(keys), Value::Null, "{keys:?}");
    }
}

#[test]
fn the_reference_lists_every_attribute() {
    let reference = include_str!("../../README.md");
    for attribute in HOST.iter().chain(VM) {
        assert!(reference.contains(&format!("`{}`", attribute.name)), "{}", attribute.name);
    }
}
