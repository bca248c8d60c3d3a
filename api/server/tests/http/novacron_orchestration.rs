//! NovaCron's placement interface: decisions on the live fleet, and nodes that callers bring along.

use crate::world::{Answer, World};
use serde_json::{Value, json};

const PLACE: &str = "POST /api/orchestration/placement";
const EVALUATE: &str = "POST /api/orchestration/placement/evaluate";

/// A fleet of small hosts in two zones; `n3` is the cheapest and `n4` has the GPUs.
async fn fleet() -> World {
    let world = World::start().await;
    for (id, zone, cores, price, gpus) in [
        ("n1", "z1", 16, 300_000, 0),
        ("n2", "z1", 32, 200_000, 0),
        ("n3", "z2", 8, 100_000, 0),
        ("n4", "z2", 16, 900_000, 2),
    ] {
        let gpu = json!({"model": "A100", "memory_mib": 40_960});
        let host = json!({
            "id": id, "zone": zone, "region": "eu", "labels": {"ssd": zone},
            "capacity": {"cpu_millis": cores * 1000, "memory_mib": cores * 4096, "disk_gib": 1000,
                "net_mbps": 10_000, "gpu_slots": gpus},
            "price": {"micros_per_hour": price},
            "latencies": [{"region": "paris", "latency_us": if zone == "z1" { 2000 } else { 9000 }}],
            "hardware": {"gpus": vec![gpu; gpus]},
        });
        let answer = world.send("POST /v1/hosts", &host.to_string()).await;
        assert_eq!(answer.status, 201, "{answer:?}");
    }
    world
}

/// A request for two cores, with `more` in it.
fn request(vm_id: &str, more: Value) -> Value {
    let mut request = json!({
        "vm_id": vm_id,
        "vm_spec": {"cpu_cores": 2, "memory_mb": 4096, "storage_gb": 50},
        "constraints": null, "preferences": null, "strategy": "balanced",
    });
    for (key, value) in more.as_object().expect("an object") {
        request[key] = value.clone();
    }
    request
}

async fn place(world: &World, more: Value) -> Value {
    let answer = world.send(PLACE, &request("vm-1", more).to_string()).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()
}

async fn chosen(world: &World, more: Value) -> String {
    place(world, more).await["selected_node"].as_str().expect("a node").to_owned()
}

async fn refused(world: &World, more: Value) -> (u16, String, String) {
    error(&world.send(PLACE, &request("vm-1", more).to_string()).await)
}

fn error(answer: &Answer) -> (u16, String, String) {
    assert_eq!(answer.header("content-type"), Some("application/json"), "{answer:?}");
    let body = answer.json();
    let text = |key: &str| body["error"][key].as_str().expect("a string").to_owned();
    (answer.status, text("code"), text("message"))
}

fn constraint(kind: &str, parameters: Value) -> Value {
    json!({"constraints": [{"type": kind, "enforcement": "hard", "parameters": parameters}]})
}

#[tokio::test(flavor = "multi_thread")]
async fn a_decision_says_where_and_why_and_holds_nothing() {
    let world = fleet().await;
    let decision = place(&world, json!({})).await;
    assert_eq!(decision["vm_id"], "vm-1");
    let score = decision["score"].as_f64().expect("a number");
    let confidence = decision["confidence"].as_f64().expect("a number");
    assert!(score > 0.0 && score <= 1.0, "{decision}");
    assert!((0.5..=1.0).contains(&confidence), "{decision}");
    assert!(decision["explanation"].as_str().is_some_and(|text| text.contains("best of 4")));
    let alternatives = decision["alternatives"].as_array().expect("a list");
    assert_eq!(alternatives.len(), 3);
    for other in alternatives {
        assert!(other["score"].as_f64().is_some_and(|other| other > 0.0 && other <= score));
        assert!(other["explanation"].as_str().is_some_and(|text| !text.is_empty()));
    }
    let metadata = &decision["metadata"];
    assert_eq!((&metadata["committed"], &metadata["nodes_evaluated"]), (&json!(false), &json!(4)));
    assert_eq!(
        (&metadata["algorithm"], &metadata["strategy"]),
        (&json!("balanced"), &json!("balanced"))
    );
    let parts = metadata["breakdown"].as_object().expect("parts").len();
    assert_eq!(parts, 6);
    assert!(decision["timestamp"].as_str().is_some_and(|time| time.ends_with('Z')));
    assert_eq!(world.get("/v1/vms/vm-1").await.status, 404);
    let same = world
        .send(
            "POST /v1/placements?dry_run=true",
            r#"{"vm":{"id":"vm-1","demand":{"cpu_millis":2000,"memory_mib":4096,"disk_gib":50}}}"#,
        )
        .await;
    assert_eq!(decision["selected_node"], same.json()["host_id"], "the engine's own choice");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn strategies_choose_differently() {
    let world = fleet().await;
    let busy = r#"{"id":"busy","host_id":"n1","demand":{"cpu_millis":12000,"memory_mib":49152,"disk_gib":750,"net_mbps":7500}}"#;
    assert_eq!(world.send("POST /v1/vms", busy).await.status, 201);
    let with = |strategy: &str| json!({"strategy": strategy});
    assert_eq!(chosen(&world, with("consolidated")).await, "n1");
    assert_eq!(chosen(&world, with("efficiency")).await, "n1");
    assert_ne!(chosen(&world, with("performance")).await, "n1");
    assert_eq!(chosen(&world, with("cost_optimized")).await, "n3");
    let large = json!({"strategy": "cost_optimized",
        "vm_spec": {"cpu_cores": 20, "memory_mb": 1024, "disk_gb": 1}});
    assert_eq!(chosen(&world, large).await, "n2", "the cheapest that it fits on");
    let named = json!({"strategy": {"name": "bin_packing", "parameters": {}}});
    assert_eq!(chosen(&world, named).await, "n1");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn constraints_and_exclusions_are_honoured() {
    let world = fleet().await;
    assert_eq!(chosen(&world, json!({"exclude_nodes": ["n1", " n2 ", "n4", ""]})).await, "n3");
    let only = |kind, parameters| chosen(&world, constraint(kind, parameters));
    assert_eq!(only("affinity", json!({"nodes": ["n4"]})).await, "n4");
    assert_eq!(only("anti_affinity", json!({"nodes": ["n1", "n2"], "zone": "z9"})).await.len(), 2);
    assert_eq!(only("cost", json!({"max_cost_per_hour": 0.1})).await, "n3");
    for _ in 0..3 {
        let zone = only("affinity", json!({"zone": "z2", "labels": {"ssd": "z2"}})).await;
        assert!(["n3", "n4"].contains(&zone.as_str()), "{zone}");
        let near = only("network_latency", json!({"region": "paris", "max_latency_ms": 5})).await;
        assert!(["n1", "n2"].contains(&near.as_str()), "{near}");
    }
    let roomy = only("resource_limit", json!({"max_cpu_utilization": 0.1})).await;
    assert_eq!(roomy, "n2", "two cores are a tenth of no other");
    let (status, code, message) =
        refused(&world, constraint("compliance", json!({"regions": ["us"]}))).await;
    assert_eq!((status, code.as_str()), (409, "PLACEMENT_UNAVAILABLE"));
    assert!(
        message.contains("no feasible nodes found") && message.contains("4 x constraints[0]"),
        "{message}"
    );
    let (status, code, message) =
        refused(&world, json!({"vm_spec": {"cpu_cores": 100, "memory_mb": 1}})).await;
    assert_eq!((status, code.as_str()), (409, "INSUFFICIENT_CAPACITY"));
    assert!(message.contains("no feasible nodes found") && message.contains("cpu_millis"));
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn wishes_count_and_do_not_bind() {
    let world = fleet().await;
    let soft = |enforcement: &str, node: &str| {
        json!({"constraints": [{"type": "affinity", "enforcement": enforcement,
            "parameters": {"nodes": [node]}, "weight": 5.0}]})
    };
    for node in ["n1", "n2", "n3", "n4"] {
        assert_eq!(chosen(&world, soft("soft", node)).await, node);
        assert_eq!(chosen(&world, soft("preferred", node)).await, node);
    }
    assert_ne!(chosen(&world, soft("soft", "elsewhere")).await, "elsewhere");
    let wish = |kind: &str, parameters: Value| json!({"preferences": [{"type": kind, "weight": 1.0, "parameters": parameters}]});
    let zone = chosen(&world, wish("low_latency", json!({"preferred_zone": "z2"}))).await;
    assert!(["n3", "n4"].contains(&zone.as_str()), "{zone}");
    assert_eq!(chosen(&world, wish("gpu_optimized", Value::Null)).await, "n4");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn gpus_are_counted_where_they_can_be_and_refused_where_not() {
    let world = fleet().await;
    let gpu = |count: u32, model: &str, memory: u32| {
        json!({"vm_spec": {"cpu_cores": 1, "memory_mb": 1024, "storage_gb": 1,
            "gpu": {"count": count, "model": model, "memory_mb": memory}},
            "context": {"reserve": true}})
    };
    let held = place(&world, gpu(2, "A100", 40_960)).await;
    assert_eq!(
        (&held["selected_node"], &held["metadata"]["committed"]),
        (&json!("n4"), &json!(true))
    );
    let vm = world.get("/v1/vms/vm-1").await;
    let gpus = json!([{"gpu": 0, "whole": true}, {"gpu": 1, "whole": true}]);
    assert_eq!(vm.json()["bindings"]["gpus"], gpus, "{vm:?}");
    let again = world.send(PLACE, &request("vm-2", gpu(1, "A100", 0)).to_string()).await;
    assert_eq!(again.status, 409, "both are held: {again:?}");
    let (_, code, message) = refused(&world, gpu(1, "H100", 0)).await;
    assert_eq!(code, "PLACEMENT_UNAVAILABLE");
    assert!(message.contains("GPUs"), "{message}");
    let networks = json!({"vm_spec": {"cpu_cores": 1, "network_requirements": ["dmz"]}});
    let (_, _, message) = refused(&world, networks).await;
    assert!(message.contains("which networks a node reaches is not known"), "{message}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reservation_holds_what_was_decided() {
    let world = fleet().await;
    let reserve = json!({"context": {"reserve": true, "reserve_ttl_ms": 60_000}});
    let decision = place(&world, reserve.clone()).await;
    let id = decision["metadata"]["reservation_id"].as_str().expect("an id");
    let vm = world.get("/v1/vms/vm-1").await.json();
    assert_eq!(vm["host_id"], decision["selected_node"], "{vm}");
    let confirmed = world.send(&format!("POST /v1/reservations/{id}/confirm"), "{}").await;
    assert_eq!(confirmed.status, 200, "{confirmed:?}");
    let (status, code, _) = refused(&world, reserve).await;
    assert_eq!((status, code.as_str()), (409, "conflict"), "it is placed");
    let moved = place(&world, json!({"vm_spec": {}})).await;
    assert_ne!(moved["selected_node"], decision["selected_node"]);
    assert_eq!(moved["metadata"]["present_node"], decision["selected_node"]);
    let (status, code, message) = refused(&world, json!({"context": {"reserve": "yes"}})).await;
    assert_eq!((status, code.as_str()), (400, "invalid_argument"));
    assert!(message.starts_with("context.reserve"), "{message}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_requests_are_refused_by_name() {
    let world = World::start().await;
    let (status, code, message) = refused(&world, json!({})).await;
    assert_eq!((status, code.as_str()), (409, "PLACEMENT_UNAVAILABLE"));
    assert!(message.contains("no available nodes found"), "{message}");
    for kind in ["affinity", "anti_affinity", "resource_limit"] {
        let (status, code, message) = refused(&world, constraint(kind, Value::Null)).await;
        assert_eq!((status, code.as_str()), (400, "invalid_argument"));
        assert!(message.contains("missing parameters"), "{message}");
    }
    let check = |body: String, needle: &'static str| {
        let world = &world;
        async move {
            let (status, code, message) = error(&world.send(PLACE, &body).await);
            assert_eq!((status, code.as_str()), (400, "invalid_argument"), "{message}");
            assert!(message.contains(needle), "{message}");
        }
    };
    check("{".into(), "end of the body").await;
    check(r#"{"vm_id":7}"#.into(), "vm_id: 7 where a string").await;
    check(r#"{"vm_id":""}"#.into(), "vm_id").await;
    check(request("v", json!({"strategy": "magic"})).to_string(), "strategy").await;
    check(request("v", json!({"vm_spec": {"cpu_cores": 1.5}})).to_string(), "vm_spec.cpu_cores")
        .await;
    check(request("v", json!({"vm_spec": {"memory_mb": -1}})).to_string(), "vm_spec.memory_mb")
        .await;
    let (status, code, _) = error(&world.get("/api/orchestration/placement").await);
    assert_eq!((status, code.as_str()), (405, "method_not_allowed"));
    let (status, code, _) = error(&world.get("/api/orchestration/nothing").await);
    assert_eq!((status, code.as_str()), (404, "not_found"));
    let text = world.ask(PLACE, &["Content-Type: text/plain"], "{}").await;
    assert_eq!(error(&text).0, 415);
    world.stop().await;
}

fn node(id: &str, more: Value) -> Value {
    let mut node = json!({
        "id": id, "name": id, "state": "ready", "health": 0.95,
        "capacity": {"cpu_cores": 16, "memory_mb": 32768, "storage_gb": 1000, "network_mbps": 1000},
        "available": {"cpu_cores": 12, "memory_mb": 24576, "storage_gb": 800, "network_mbps": 500},
        "last_updated": "2026-04-19T08:00:00Z",
    });
    for (key, value) in more.as_object().expect("an object") {
        node[key] = value.clone();
    }
    node
}

async fn scores(world: &World, more: Value, nodes: &[Value]) -> Vec<Value> {
    let body = json!({"request": request("v", more), "nodes": nodes});
    let answer = world.send(EVALUATE, &body.to_string()).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json().as_array().expect("a list").clone()
}

fn score(of: &Value) -> f64 {
    of["score"].as_f64().expect("a number")
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_are_judged_in_order_with_parts_and_reasons() {
    let world = World::start().await;
    let full = json!({"available": {"cpu_cores": 1, "memory_mb": 24576, "storage_gb": 800}});
    let tainted = json!({"taints": [{"key": "gpu", "value": "", "effect": "NoSchedule"}]});
    let nodes = [
        node("good", json!({"cost": 0.15, "labels": {"os": "Debian 13"}})),
        node("down", json!({"state": "not_ready"})),
        node("kept", json!({"state": "maintenance", "health": 0.0})),
        node("full", full),
        node("tainted", tainted),
        node("excluded", json!({})),
    ];
    let scores = scores(&world, json!({"exclude_nodes": ["excluded"]}), &nodes).await;
    let shown: Vec<String> = scores
        .iter()
        .map(|it| format!("{}: {} {}", it["node"]["id"], it["feasible"], it["reason"]))
        .collect();
    assert_eq!(
        shown,
        [
            r#""good": true null"#,
            r#""down": false "the node is not ready""#,
            r#""kept": false "the node is not ready""#,
            r#""full": false "not enough CPU is available""#,
            r#""tainted": false "the node has a taint that the VM does not tolerate""#,
            r#""excluded": false "the node is excluded by the request""#,
        ]
    );
    let parts = &scores[0]["breakdown"];
    assert_eq!(parts["health_score"], 0.95);
    assert!(score(&scores[0]) > 0.0 && parts["resource_score"].as_f64() > Some(0.0));
    assert!(parts["constraint_score"].as_f64() > Some(0.0));
    assert!(parts["cost_score"].as_f64() > Some(0.0));
    assert_eq!(score(&scores[1]), 0.0);
    assert_eq!(scores[0]["node"], nodes[0], "the node comes back as it was");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn strategies_and_wishes_change_the_scores_of_nodes() {
    let world = World::start().await;
    let available = |cores: u32, memory: u32| json!({"available": {"cpu_cores": cores, "memory_mb": memory, "storage_gb": 800, "network_mbps": 500}});
    let pair = [node("fuller", available(4, 8192)), node("emptier", available(14, 28_672))];
    let with = |strategy: &str| json!({"strategy": strategy});
    let order = |scores: &[Value]| score(&scores[0]) > score(&scores[1]);
    assert!(order(&scores(&world, with("consolidated"), &pair).await));
    assert!(order(&scores(&world, with("efficiency"), &pair).await));
    assert!(!order(&scores(&world, with("balanced"), &pair).await));
    assert!(!order(&scores(&world, with("performance"), &pair).await));
    let prices = [node("dear", json!({"cost": 0.5})), node("cheap", json!({"cost": 0.1}))];
    assert!(!order(&scores(&world, with("cost_optimized"), &prices).await));
    let wish = json!({"preferences": [{"type": "low_cost", "weight": 1.0, "parameters": null}]});
    assert!(!order(&scores(&world, wish, &prices).await));
    let limit = |enforcement: &str| {
        json!({"constraints": [{"type": "resource_limit", "enforcement": enforcement,
            "parameters": {"max_cpu_utilization": 0.5}}]})
    };
    let soft = scores(&world, limit("soft"), &pair).await;
    let preferred = scores(&world, limit("preferred"), &pair).await;
    let hard = scores(&world, limit("hard"), &pair).await;
    assert_eq!((&soft[0]["feasible"], &hard[0]["feasible"]), (&json!(true), &json!(false)));
    assert!(hard[0]["reason"].as_str().is_some_and(|it| it.contains("fuller than allowed")));
    assert!(score(&preferred[0]) < score(&soft[0]), "half kept is not kept");
    let near = constraint("affinity", json!({"vms": ["other"]}));
    let near = scores(&world, near, &pair).await;
    assert!(near[0]["reason"].as_str().is_some_and(|it| it.contains("which VMs")), "{near:?}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn gpus_of_nodes_are_an_exact_filter() {
    let world = World::start().await;
    let gpus = |list: &[(&str, u32, bool)]| {
        let gpu = |(model, memory, in_use): &(&str, u32, bool)| json!({"id": "g", "model": model, "memory_mb": memory, "in_use": in_use});
        let gpus: Vec<Value> = list.iter().map(gpu).collect();
        node(
            "n",
            json!({"available": {"cpu_cores": 12, "memory_mb": 24576, "storage_gb": 800, "network_mbps": 500, "gpus": gpus}}),
        )
    };
    let nodes = [
        gpus(&[("A100", 40_960, false), ("A100", 40_960, false)]),
        gpus(&[("A100", 40_960, false), ("A100", 40_960, true)]),
        gpus(&[("A100", 40_960, false), ("A100", 20_480, false)]),
        gpus(&[("A100", 40_960, false), ("T4", 40_960, false)]),
        gpus(&[]),
    ];
    let asked = json!({"vm_spec": {"cpu_cores": 1, "memory_mb": 1, "storage_gb": 1,
        "gpu": {"count": 2, "model": "A100", "memory_mb": 40_960}}});
    let feasible: Vec<bool> =
        scores(&world, asked, &nodes).await.iter().map(|it| it["feasible"] == true).collect();
    assert_eq!(feasible, [true, false, false, false, false]);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_nodes_are_refused_by_name() {
    let world = World::start().await;
    let check = |nodes: Value, needle: &'static str| {
        let world = &world;
        async move {
            let body = json!({"request": request("v", json!({})), "nodes": nodes});
            let (status, _, message) = error(&world.send(EVALUATE, &body.to_string()).await);
            assert_eq!(status, 400);
            assert!(message.contains(needle), "{message}");
        }
    };
    check(json!([node("n", json!({})), node("n", json!({"state": "odd"}))]), "nodes[1].state")
        .await;
    check(json!([node("n", json!({"health": 2.0}))]), "nodes[0].health").await;
    check(
        json!([node("n", json!({"capacity": {"cpu_cores": -1}}))]),
        "nodes[0].capacity.cpu_cores",
    )
    .await;
    check(json!(vec![json!({}); 20_001]), "nodes: an array of 20001").await;
    let empty = world.send(EVALUATE, r#"{"request":{"vm_id":"v"},"nodes":null}"#).await;
    assert_eq!((empty.status, empty.text.as_str()), (200, "[]"));
    world.stop().await;
}
