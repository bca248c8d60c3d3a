//! Parts of hosts over HTTP: asked for, shown, refused, adopted and given back.

use crate::world::World;
use serde_json::{Value, json};

/// Two NUMA nodes of two cores with two threads, a GPU behind each, and a NIC on the first.
fn server() -> Value {
    let node = json!({"cores": 2, "threads_per_core": 2, "memory_mib": 4096});
    let root =
        |node: u8| json!({"kind": "root_complex", "numa_node": node, "bandwidth_mbps": 256_000});
    let gpu = |port: u8| {
        json!({"model": "A100", "memory_mib": 40_960, "pcie_port": port, "driver": "550.54.14",
            "mig_profiles": [{"name": "1g.5gb", "slices": 1, "starts": [0, 1, 2, 3], "memory_mib": 5120}]})
    };
    json!({"id": "h1", "capacity": {"cpu_millis": 8000, "memory_mib": 8192}, "hardware": {
        "numa_nodes": [node, node], "pcie_ports": [root(0), root(1)],
        "gpus": [gpu(0), gpu(1)], "nics": [{"functions": 4, "pcie_port": 0}],
        "architecture": "x86_64", "cpu_features": ["avx512f"]}})
}

async fn fleet() -> World {
    let world = World::start().await;
    let answer = world.send("POST /v1/hosts", &server().to_string()).await;
    assert_eq!(answer.status, 201, "{answer:?}");
    world
}

async fn place(world: &World, id: &str, topology: Value) -> Value {
    let demand = json!({"cpu_millis": 2000, "memory_mib": 1024});
    let body = json!({"vm": {"id": id, "demand": demand, "topology": topology}});
    let answer = world.send("POST /v1/placements", &body.to_string()).await;
    assert!(answer.status == 200 || answer.status == 201, "{answer:?}");
    answer.json()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_names_the_parts_and_the_vm_and_the_host_show_them() {
    let world = fleet().await;
    let asked = json!({"cores": "exclusive", "numa": "single",
        "gpus": {"count": 1, "near_cores": true}, "nic": {"functions": 2, "near": "gpus"}});
    let placed = place(&world, "a", asked.clone()).await;
    let parts = json!({"cpuset": "0-1", "numa": [{"node": 0, "vcpus": 2, "memory_mib": 1024}],
        "gpus": [{"gpu": 0, "whole": true}],
        "pci": [{"nic": 0, "function": 0}, {"nic": 0, "function": 1}]});
    assert_eq!(placed["bindings"], parts, "{placed}");
    let vm = world.get("/v1/vms/a").await.json();
    assert_eq!(vm["bindings"], parts, "{vm}");
    assert_eq!(vm["topology"]["gpus"], json!({"count": 1, "near_cores": true}), "{vm}");
    let inside = world.get("/v1/hosts/h1").await.json()["inside"].clone();
    assert_eq!(inside["numa"][0]["free_cores"], 1, "{inside}");
    assert_eq!((&inside["largest_node_cores"], &inside["free_gpus"]), (&json!(2), &json!(1)));
    assert_eq!(inside["bound"][0]["vm_id"], "a");
    // The functions are on a node whose GPU is taken.
    let refused = place(&world, "b", asked).await;
    assert_eq!(refused["outcome"], "rejected");
    assert_eq!(refused["rejections"], json!({"numa": 1}), "{refused}");
    for (topology, reason) in [
        (json!({"architecture": "aarch64"}), "architecture"),
        (json!({"cpu_features": ["sve"]}), "architecture"),
        (json!({"gpus": {"count": 2}}), "gpus"),
        (json!({"gpus": {"count": 1, "min_driver": "560"}}), "gpus"),
        (json!({"nic": {"functions": 3}}), "devices"),
        (json!({"nic": {"functions": 1, "rdma": true}}), "devices"),
    ] {
        let refused = place(&world, "b", topology.clone()).await;
        assert_eq!(refused["rejections"], json!({reason: 1}), "{topology}: {refused}");
    }
    assert_eq!(world.ask("DELETE /v1/vms/a", &[], "").await.status, 204);
    let inside = world.get("/v1/hosts/h1").await.json()["inside"].clone();
    assert_eq!((&inside["free_cores"], &inside["free_gpus"]), (&json!(4), &json!(2)), "{inside}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_says_how_near_its_gpus_are() {
    let world = fleet().await;
    let mut near = server();
    near["id"] = json!("h2");
    for gpu in [0, 1] {
        near["hardware"]["gpus"][gpu]["nvlink_group"] = json!(7);
    }
    assert_eq!(world.send("POST /v1/hosts", &near.to_string()).await.status, 201);
    let clique =
        place(&world, "a", json!({"gpus": {"count": 2, "together": "nvlink_clique"}})).await;
    assert_eq!((&clique["host_id"], &clique["link_score"]), (&json!("h2"), &json!(3)), "{clique}");
    let apart = place(&world, "b", json!({"gpus": {"count": 2}})).await;
    assert_eq!((&apart["host_id"], &apart["link_score"]), (&json!("h1"), &json!(0)), "{apart}");
    let id = apart["decision_id"].as_str().unwrap_or_default();
    let again = world.get(&format!("/v1/decisions/{id}")).await.json();
    assert_eq!(again["link_score"], 0, "{again}");
    let none = place(&world, "c", json!({"cores": "exclusive"})).await;
    assert_eq!(none.get("link_score"), None, "{none}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn shares_and_pieces_of_gpus_are_counted_out() {
    let world = fleet().await;
    let share = place(&world, "a", json!({"gpus": {"milli": 400}})).await;
    assert_eq!(share["bindings"]["gpus"], json!([{"gpu": 0, "milli": 400}]), "{share}");
    let pieces = json!({"gpus": {"mig": {"profile": "1g.5gb", "count": 2}}});
    let pieces = place(&world, "b", pieces).await["bindings"]["gpus"].clone();
    assert_eq!(pieces.as_array().map(Vec::len), Some(2), "{pieces}");
    assert_eq!((&pieces[0]["gpu"], &pieces[1]["gpu"]), (&json!(1), &json!(1)), "{pieces}");
    let inside = world.get("/v1/hosts/h1").await.json()["inside"].clone();
    assert_eq!((&inside["free_gpus"], &inside["partly_free_gpus"]), (&json!(0), &json!(2)));
    assert_eq!(inside["largest_gpu_piece_milli"], 600, "{inside}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn batches_and_adopted_vms_have_parts_too() {
    let world = fleet().await;
    let vm = |id: &str| {
        json!({"id": id, "demand": {"cpu_millis": 2000, "memory_mib": 100},
            "topology": {"cores": "exclusive", "numa": "single"}})
    };
    let adopt = |id: &str, cpuset: &str| {
        let mut body = vm(id);
        body["host_id"] = json!("h1");
        body["bindings"] = json!({"cpuset": cpuset,
            "numa": [{"node": 0, "vcpus": 2, "memory_mib": 100}], "gpus": [], "pci": []});
        body.to_string()
    };
    let adopted = world.send("POST /v1/vms", &adopt("runs", "2-3")).await;
    assert_eq!((adopted.status, &adopted.json()["bindings"]["cpuset"]), (201, &json!("2-3")));
    let clash = world.send("POST /v1/vms", &adopt("late", "1-2")).await;
    assert_eq!(clash.status, 409, "{clash:?}");
    assert!(clash.json()["detail"].as_str().is_some_and(|text| text.contains("thread 2")));
    let lines = [adopt("third", "3"), adopt("fourth", "0-1")].join("\n");
    let bulk = world
        .ask("POST /v1/vms:bulk", &["content-type: application/x-ndjson"], &lines)
        .await
        .json();
    assert_eq!((&bulk["accepted"], &bulk["failed"]), (&json!(1), &json!(1)), "{bulk}");
    let batch = json!({"vms": [vm("x"), vm("y"), vm("z")]});
    let batch = world.send("POST /v1/placements:batch", &batch.to_string()).await.json();
    let cpusets: Vec<&Value> =
        (0..3).map(|row| &batch["decisions"][row]["bindings"]["cpuset"]).collect();
    assert_eq!(cpusets, [&json!("4-5"), &json!("6-7"), &Value::Null], "{batch}");
    let mut smaller = server();
    smaller["hardware"]["numa_nodes"][1]["cores"] = json!(1);
    let update = world.send("PUT /v1/hosts/h1", &smaller.to_string()).await;
    assert!(update.status == 400 || update.status == 422, "{update:?}");
    assert_eq!(update.json()["errors"][0]["path"], "hardware", "{update:?}");
    world.stop().await;
}
