//! NovaCron's JSON: what its Go structs encode is read, and written again to the letter.

use crate::round_trip::limits;
use expect_test::{Expect, expect};
use serde::Serialize;
use wire::novacron::*;
use wire::{Limits, Read};

fn read<T: Read>(json: &str) -> Result<T, Vec<wire::Fault>> {
    wire::read(json.as_bytes(), &Limits::novacron(limits().dimensions))
}

/// Reads what Go would have written and writes it again.
fn check<T: Read + Serialize>(json: &str) -> T {
    let value: T = read(json).unwrap_or_else(|faults| panic!("{faults:?}"));
    let written = serde_json::to_string(&value).expect("JSON");
    let without_space: String = json.lines().map(str::trim).collect();
    assert_eq!(written, without_space);
    value
}

fn check_faults<T: Read>(json: &str, expected: Expect) {
    let faults = match read::<T>(json) {
        Ok(_) => Vec::new(),
        Err(faults) => faults,
    };
    let lines: Vec<String> = faults.iter().map(ToString::to_string).collect();
    expected.assert_eq(&lines.join("\n"));
}

const CONFIG_OF_NILS: &str = r#"{"id":"vm-7","name":"web","type":"kvm","command":"","args":null,"cpu_shares":2048,
"memory_mb":4096,"disk_size_gb":40,"rootfs":"","image":"debian-13","cloud_init_iso":"","mounts":null,
"env":null,"network_id":"","work_dir":"","tags":null}"#;

#[test]
fn a_node_keeps_its_keys_and_units() {
    let node: NodeResourceInfo = check(
        r#"{"node_id":"n1","total_cpu":32,"used_cpu":8,"total_memory_mb":65536,
        "used_memory_mb":16384,"total_disk_gb":2000,"used_disk_gb":500,"cpu_usage_percent":25.0,
        "memory_usage_percent":25.0,"disk_usage_percent":25.0,"vm_count":6,"status":"available",
        "labels":{"hypervisor":"kvm","runtime":"novacron"}}"#,
    );
    let host = node.to_host().expect("a host");
    let shown = NodeResourceInfo::new(&host, &node.used().expect("amounts"), 6);
    assert_eq!(shown, node);
}

#[test]
fn a_node_without_labels_has_no_key_for_them() {
    let node: NodeResourceInfo = check(
        r#"{"node_id":"n1","total_cpu":0,"used_cpu":0,"total_memory_mb":0,"used_memory_mb":0,
        "total_disk_gb":0,"used_disk_gb":0,"cpu_usage_percent":0.0,"memory_usage_percent":0.0,
        "disk_usage_percent":0.0,"vm_count":0,"status":""}"#,
    );
    assert_eq!(node, NodeResourceInfo { node_id: "n1".into(), ..Default::default() });
    let same = read::<NodeResourceInfo>(r#"{"node_id":"n1","labels":null,"status":null}"#);
    assert_eq!(same.expect("zero values"), node);
}

#[test]
fn nil_slices_and_maps_of_a_vm_stay_null() {
    let config: VmConfig = check(CONFIG_OF_NILS);
    assert_eq!((&config.args, &config.tags), (&None, &None));
    let vm = config.to_vm(None, true).expect("a VM");
    assert_eq!(vm.demand, cluster::Amounts::from_slice(&[2000, 4096, 40]));
    let empty: VmConfig = read(r#"{"args":[],"tags":{}}"#).expect("a VM");
    let written = serde_json::to_value(&empty).expect("JSON");
    assert_eq!((&written["args"], &written["mounts"]), (&serde_json::json!([]), &().into()));
    assert_eq!(written["tags"], serde_json::json!({}));
}

#[test]
fn a_vm_keeps_all_it_has() {
    check::<CreateVmRequest>(
        r#"{"name":"db","spec":{"id":"","name":"db","type":"process","command":"/bin/db",
        "args":["--fast",""],"cpu_shares":4,"memory_mb":0,"disk_size_gb":0,"rootfs":"/r","image":"",
        "cloud_init_iso":"","mounts":[{"source":"/a","target":"/b","type":"bind","flags":4096,
        "data":""}],"env":{"A":"1"},"network_id":"net","owner_id":"o","tenant_id":"acme",
        "volume_attachments":[{"volume_id":"v"},{"volume_id":"w","device":"vdb","read_only":true,
        "boot":true}],"network_attachments":[{"network_id":"n","interface_name":"eth0",
        "mac_address":"02:00:00:00:00:01","ip_address":"10.0.0.2","primary":true}],
        "placement":{"policy":"custom","preferred_nodes":["n1"],"excluded_nodes":["n2"]},
        "migration":{"type":"live","bandwidth_limit":9223372036854775807,"compression_level":-1,
        "priority":0},"replication":{"enabled":true,"factor":2,"mode":"sync"},"work_dir":"/",
        "tags":{"tier":"gold"},"predictive_prefetching":true},"tags":null}"#,
    );
}

#[test]
fn a_placement_request_keeps_all_it_has() {
    let request: PlacementRequest = check(
        r#"{"vm_id":"vm-1","vm_spec":{"cpu_cores":4,"memory_mb":8192,"storage_gb":100,
        "network":{"bandwidth_mbps":1000,"latency_ms":5,"networks":["a","b"],"public_ip":true},
        "gpu":{"count":2,"model":"A100","memory_mb":40960,"shared":true},"labels":{"tier":"web"},
        "metadata":{"owner":{"id":7,"share":0.25,"tags":[null,true]}}},"constraints":[
        {"type":"affinity","enforcement":"hard","parameters":{"labels":{"ssd":"yes"},"zone":"z1"},
        "weight":0.5},{"type":"compliance","enforcement":"soft","parameters":null}],"preferences":[
        {"type":"low_cost","weight":0.75,"parameters":{}}],"strategy":"cost_optimized",
        "exclude_nodes":["n9"],"context":{"reserve":true}}"#,
    );
    assert_eq!(request.known_strategy(), Ok(PlacementStrategy::CostOptimized));
    let vm = request.to_vm().expect("a VM");
    assert_eq!(vm.demand, cluster::Amounts::from_slice(&[4000, 8192, 100, 0, 1000]));
    check::<PlacementRequest>(
        r#"{"vm_id":"","vm_spec":{"cpu_cores":0,"memory_mb":0,"storage_gb":0,"network":{}},
        "constraints":null,"preferences":null,"strategy":""}"#,
    );
}

#[test]
fn both_spellings_of_a_vm_spec_are_read() {
    let request: PlacementRequest = read(
        r#"{"vm_id":"v","vm_spec":{"disk_gb":7,"network_requirements":["a"]},
            "strategy":{"name":"bin_packing","parameters":{}}}"#,
    )
    .expect("a request");
    assert_eq!(request.vm_spec.storage_gb, 7);
    assert_eq!(request.vm_spec.network.networks, Some(vec!["a".to_owned()]));
    assert_eq!(request.known_strategy(), Ok(PlacementStrategy::Consolidated));
    assert!(read::<VmSpec>(r#"{"disk_gb":7,"storage_gb":7}"#).is_ok());
    check_faults::<VmSpec>(
        r#"{"disk_gb":7,"storage_gb":8}"#,
        expect!["disk_gb: disk_gb is 7 and storage_gb is 8; send one of them (conflicting_fields)"],
    );
}

#[test]
fn a_placement_decision_keeps_all_it_has() {
    check::<PlacementDecision>(
        r#"{"request_id":"placement-1","vm_id":"vm-1","selected_node":"n1","score":0.875,
        "confidence":0.5,"explanation":"fits","alternatives":[{"node_id":"n2","score":0.5,
        "explanation":""}],"timestamp":"2026-04-19T10:00:00.123456789+02:00",
        "metadata":{"feasible_nodes":2}}"#,
    );
    check::<PlacementDecision>(
        r#"{"request_id":"","vm_id":"","selected_node":"","score":0.0,"confidence":0.0,
        "explanation":"","alternatives":null,"timestamp":"0001-01-01T00:00:00Z"}"#,
    );
}

#[test]
fn a_scored_node_keeps_all_it_has() {
    let scored: NodeScore = check(
        r#"{"node":{"id":"n1","name":"Node 1","region":"eu","zone":"eu-1","rack":"r1",
        "capacity":{"cpu_cores":16,"memory_mb":32768,"storage_gb":1000,"network_mbps":10000,
        "gpus":[{"id":"0","model":"A100","memory_mb":40960,"in_use":true}]},
        "available":{"cpu_cores":12,"memory_mb":24576,"storage_gb":800,"network_mbps":8000},
        "state":"ready","health":0.95,"cost":0.1,"labels":{"ssd":"yes"},"taints":[{"key":"gpu",
        "value":"","effect":"NoSchedule"}],"metadata":{"a":[]},"last_updated":"2026-04-19T08:00:00Z"},
        "score":0.5,"breakdown":{"resource_score":1.0,"constraint_score":1.0,"preference_score":1.0,
        "health_score":0.95,"cost_score":0.5,"location_score":0.25},"feasible":true}"#,
    );
    let node = scored.node.expect("a node");
    let host = node.to_host().expect("a host");
    assert_eq!(host.price.micros_per_hour, 100_000);
    assert_eq!((host.taints.len(), host.state), (1, cluster::HostState::Available));
    let used = node.used().expect("amounts");
    assert_eq!(used, cluster::Amounts::from_slice(&[4000, 8192, 200, 0, 2000]));
}

#[test]
fn a_runtime_node_leaves_zeros_out() {
    check::<RuntimeNode>(r#"{"id":"n1","status":"ready","schedulable":false}"#);
    let node: RuntimeNode = check(
        r#"{"id":"n1","address":"10.0.0.1:9000","status":"ready","cpu":8,"memory":16384,"disk":100,
        "used_cpu":1,"remaining_cpu":7,"used_memory_mb":512,"remaining_memory_mb":15872,
        "used_disk_gb":10,"remaining_disk_gb":90,"cpu_usage_percent":12.5,
        "memory_usage_percent":3.125,"disk_usage_percent":10.0,"vm_count":1,"schedulable":true,
        "labels":{"runtime":"novacron"}}"#,
    );
    let host = node.to_info().to_host().expect("a host");
    assert_eq!(host.capacity, cluster::Amounts::from_slice(&[8000, 16384, 100]));
}

#[test]
fn inventories_and_events_keep_all_they_have() {
    let nodes = r#"[{"node_id":"n1","total_cpu":1,"used_cpu":0,"total_memory_mb":1,
        "used_memory_mb":0,"total_disk_gb":1,"used_disk_gb":0,"cpu_usage_percent":0.0,
        "memory_usage_percent":0.0,"disk_usage_percent":0.0,"vm_count":0,"status":"available"}]"#;
    check::<Inventory>(&format!(r#"{{"generation":7,"nodes":{nodes}}}"#));
    check::<Inventory>(
        r#"{"generation":18446744073709551615,"nodes":null,"vms":[{"vm_id":"v","node_id":"n"}]}"#,
    );
    let delta: InventoryDelta =
        check(&format!(r#"{{"base_generation":7,"upsert":{nodes},"remove":["n2"]}}"#));
    assert_eq!(delta.next_generation(), 8);
    let event: VmEvent = check(&format!(
        r#"{{"type":"created","vm_id":"vm-7","node_id":"n1","timestamp":"2026-04-19T10:00:00.5Z",
        "config":{CONFIG_OF_NILS}}}"#
    ));
    assert_eq!(event.known_kind(), Some(EventKind::Created));
    assert_eq!(event.timestamp.unix_millis(), 1_776_592_800_500);
}

#[test]
fn durations_are_nanoseconds() {
    let ttl = Duration::from_millis(30_000);
    assert_eq!(serde_json::to_string(&ttl).expect("JSON"), "30000000000");
    assert_eq!(read::<Duration>("-1"), Ok(Duration(-1)));
    assert!(read::<Duration>("\"30s\"").is_err());
    assert!(read::<Duration>("1.5").is_err());
}

#[test]
fn untagged_fields_have_the_names_they_have_in_go() {
    check::<ResourceAllocation>(
        r#"{"VMID":"v","NodeID":"n","CPUCores":1,"MemoryMB":2,"DiskGB":3,"RequestID":"r"}"#,
    );
    check::<SchedulerConfig>(
        r#"{"policy":"custom","enable_resource_checking":true,"enable_anti_affinity":false,
        "enable_node_labels":true,"max_vms_per_node":10,"max_cpu_overcommit":1.5,
        "max_memory_overcommit":1.0}"#,
    );
}

#[test]
fn unknown_keys_are_let_be_and_wrong_types_are_named() {
    let request = r#"{"vm":{"id":"v","future":[1]},"novel":{}}"#;
    assert_eq!(read::<ScheduleRequest>(request).expect("a request").vm.id, "v");
    check_faults::<ScheduleRequest>(
        r#"{"vm":{"cpu_shares":1.5,"memory_mb":"512","tags":{"a":1},"mounts":[{"flags":1e99}],
            "placement":{"preferred_nodes":"n1"},"id":1,"name":"x","name":"y"},"generation":-1}"#,
        expect![[r#"
            vm.name: "name" is given more than once; give it once (duplicate_field)
            vm.id: 1 where a string is expected; send a string (wrong_type)
            vm.cpu_shares: 1.5 is not a whole number; send a whole number of 64 bits (fractional_number)
            vm.memory_mb: "512" where an integer is expected; send an integer (wrong_type)
            vm.mounts[0].flags: 1e99 is out of range; send a whole number of 64 bits (number_too_large)
            vm.placement.preferred_nodes: "n1" where an array is expected; send an array (wrong_type)
            vm.tags.a: 1 where a string is expected; send a string (wrong_type)
            generation: -1 is negative; send an integer from 0 to 18446744073709551615 (negative_number)"#]],
    );
    check_faults::<InventoryDelta>(
        r#"{"base_generation":4,"generation":4}"#,
        expect!["generation: the generation after 4 is not above it; count up (number_too_small)"],
    );
    check_faults::<VmEvent>(
        r#"{"timestamp":"yesterday"}"#,
        expect![
            "timestamp: \"yesterday\" is not a time; send RFC 3339, such as 2026-01-31T12:00:00.5Z (wrong_type)"
        ],
    );
}

#[test]
fn words_that_are_no_choice_are_named() {
    let node = |json: &str| read::<Node>(json).expect("a node").to_host().expect_err("wrong");
    let wrong = node(r#"{"id":"n","state":"redy"}"#);
    assert_eq!((wrong.path.as_str(), wrong.hint.as_str()), ("state", "did you mean \"ready\"?"));
    let wrong = node(r#"{"id":"n","state":"ready","taints":[{"key":"a","effect":"no"}]}"#);
    assert_eq!(wrong.path, "taints[0].effect");
    let wrong = node(r#"{"id":"n","state":"ready","cost":-1}"#);
    assert_eq!(wrong.path, "cost");
}
