//! NovaCron's scheduling contract over HTTP.

use crate::novacron_nodes::{error, node, register};
use crate::world::{Answer, World};
use serde_json::{Value, json};
use server::{AcceptLimits, Options};

/// A VM of this many cores as Go encodes it, with `more` in its configuration.
pub(crate) fn config(cores: u64, more: Value) -> Value {
    let mut config = json!({
        "id": "", "name": "web", "type": "kvm", "command": "", "args": null, "cpu_shares": cores,
        "memory_mb": cores * 1024, "disk_size_gb": 10, "rootfs": "", "image": "",
        "cloud_init_iso": "", "mounts": null, "env": null, "network_id": "", "work_dir": "",
        "tags": null,
    });
    for (key, value) in more.as_object().expect("an object") {
        config[key] = value.clone();
    }
    config
}

pub(crate) async fn schedule(world: &World, vm_id: &str, vm: Value, more: Value) -> Answer {
    let mut body = json!({"vm": vm});
    for (key, value) in more.as_object().expect("an object") {
        body[key] = value.clone();
    }
    world.send(&format!("POST /scheduler/vms/{vm_id}/schedule"), &body.to_string()).await
}

async fn chosen(world: &World, vm_id: &str, vm: Value, more: Value) -> String {
    let answer = schedule(world, vm_id, vm, more).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()["node_id"].as_str().expect("a node").to_owned()
}

fn placement(policy: &str, preferred: Value, excluded: Value) -> Value {
    let lists = json!({"policy": policy, "preferred_nodes": preferred, "excluded_nodes": excluded});
    json!({"placement": lists})
}

/// Nodes of 16 cores: `n1` runs one large VM, `n2` three small ones, `n3` nothing.
async fn fleet() -> World {
    let world = World::start().await;
    for (id, used, vms) in [("n1", 10, 1), ("n2", 3, 3), ("n3", 0, 0)] {
        let mut node = node(id, 16, used);
        node["vm_count"] = json!(vms);
        register(&world, &node).await;
    }
    world
}

#[tokio::test(flavor = "multi_thread")]
async fn a_vm_gets_a_node_a_score_and_a_reservation_and_the_same_again() {
    let world = fleet().await;
    let answer = schedule(&world, "vm-1", config(2, json!({})), json!({})).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let first = answer.json();
    assert_eq!(first["vm_id"], "vm-1");
    assert_eq!(first["reservation_ttl"], 30_000_000_000_u64);
    let score = first["score"].as_f64().expect("a number");
    let confidence = first["confidence"].as_f64().expect("a number");
    assert!((0.0..=1.0).contains(&score) && (0.5..=1.0).contains(&confidence), "{first}");
    assert_eq!(first["alternatives"].as_array().map(Vec::len), Some(2), "{first}");
    assert!(first["explanation"].as_str().is_some_and(|text| text.contains("3 nodes")), "{first}");
    let again = schedule(&world, "vm-1", config(2, json!({})), json!({})).await;
    assert_eq!(again.json(), first);
    let id = first["node_id"].as_str().expect("a node");
    let other = error(&schedule(&world, "vm-1", config(4, json!({})), json!({})).await);
    assert_eq!((other.0, other.1.as_str()), (409, "conflict"), "{}", other.2);
    let before = if id == "n1" {
        10
    } else if id == "n2" {
        3
    } else {
        0
    };
    let shown = world.get(&format!("/scheduler/nodes/{id}")).await.json();
    assert_eq!(shown["used_cpu"], before + 2, "held once");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn policies_of_a_vm_choose_as_novacrons_do() {
    let world = fleet().await;
    let none = json!([]);
    for (number, (policy, expected)) in [
        ("balanced", "n3"),
        ("", "n3"),
        ("consolidated", "n1"),
        ("efficiency", "n1"),
        ("performance", "n3"),
        ("network-aware", "n3"),
    ]
    .into_iter()
    .enumerate()
    {
        let vm = config(1, placement(policy, none.clone(), none.clone()));
        let vm_id = format!("vm-{number}");
        assert_eq!(chosen(&world, &vm_id, vm, json!({})).await, expected, "{policy}");
        let event = json!({"type": "deleted", "vm_id": vm_id, "timestamp": null});
        assert_eq!(world.send("POST /scheduler/events", &event.to_string()).await.status, 200);
    }
    // Few VMs and low load are not the same: `n1` is fuller, `n2` has more of them.
    let vm = config(1, placement("balanced", none.clone(), json!(["n3"])));
    assert_eq!(chosen(&world, "few", vm, json!({})).await, "n1");
    let vm = config(1, placement("performance", none, json!(["n3"])));
    assert_eq!(chosen(&world, "idle", vm, json!({})).await, "n2");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_schedulers_own_policy_is_for_vms_without_one() {
    let world = fleet().await;
    let with = |policy: &str| json!({"config": {"policy": policy}});
    assert_eq!(chosen(&world, "a", config(1, json!({})), with("bin_packing")).await, "n1");
    assert_eq!(chosen(&world, "b", config(1, json!({})), with("spread_out")).await, "n3");
    let custom = config(1, placement("custom", json!([]), json!(["n1"])));
    assert_eq!(chosen(&world, "c", custom, with("bin_packing")).await, "n2", "custom with lists");
    let plain = config(1, json!({}));
    assert_eq!(schedule(&world, "d", plain, json!({})).await.status, 200, "the service's own");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn preferred_nodes_come_first_while_one_of_them_fits_and_excluded_ones_never() {
    let world = fleet().await;
    let prefers = |cores, nodes| config(cores, placement("performance", nodes, json!(["n3"])));
    assert_eq!(chosen(&world, "a", prefers(2, json!([" n1 ", "n9"])), json!({})).await, "n1");
    assert_eq!(chosen(&world, "b", prefers(8, json!(["n1"])), json!({})).await, "n2", "full");
    assert_eq!(chosen(&world, "c", prefers(1, json!(["n9"])), json!({})).await, "n2", "unknown");
    assert_ne!(chosen(&world, "d", prefers(1, json!(["n3"])), json!({})).await, "n3", "excluded");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_node_is_said_in_the_schedulers_words() {
    let world = World::start().await;
    let ask = |vm: Value, more: Value| schedule(&world, "vm-1", vm, more);
    let unavailable = |text: &str| (409, "PLACEMENT_UNAVAILABLE".to_owned(), text.to_owned());
    let none = ask(config(1, json!({})), json!({})).await;
    assert_eq!(error(&none), unavailable("no nodes available for scheduling"));
    let mut down = node("n1", 8, 0);
    down["status"] = json!("maintenance");
    register(&world, &down).await;
    let down = ask(config(1, json!({})), json!({})).await;
    assert_eq!(error(&down), unavailable("no available nodes for scheduling"));
    register(&world, &node("n2", 8, 4)).await;
    let excluded = ask(config(1, placement("", json!([]), json!(["n2"]))), json!({})).await;
    let text = "no available nodes remain after applying placement exclusions";
    assert_eq!(error(&excluded), unavailable(text));
    let unknown = ask(config(1, json!({})), json!({"candidate_node_ids": ["n9"]})).await;
    assert_eq!(error(&unknown), unavailable("no nodes available for scheduling"));
    let full = |answer: Answer| {
        let text = "no node has enough resources for the VM".to_owned();
        assert_eq!(error(&answer), (409, "INSUFFICIENT_CAPACITY".to_owned(), text));
    };
    full(ask(config(5, json!({})), json!({})).await);
    full(ask(config(1, json!({"memory_mb": 4 * 4096 + 1})), json!({})).await);
    full(ask(config(1, json!({"disk_size_gb": 1001})), json!({})).await);
    assert_eq!(ask(config(4, json!({"disk_size_gb": 1000})), json!({})).await.status, 200);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn candidates_limit_the_choice_and_may_be_brought_along() {
    let world = fleet().await;
    let among = json!({"candidate_node_ids": ["n2", "n9"]});
    assert_eq!(chosen(&world, "a", config(1, json!({})), among).await, "n2");
    let nodes = json!({"nodes": [node("m1", 4, 4), node("m2", 4, 1)]});
    assert_eq!(chosen(&world, "b", config(1, json!({})), nodes).await, "m2");
    assert_eq!(world.get("/scheduler/nodes/m2").await.json()["used_cpu"], 2);
    let behind = schedule(&world, "c", config(1, json!({})), json!({"generation": 7})).await;
    assert_eq!(error(&behind).0, 409);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn equal_nodes_are_taken_in_the_same_order_every_time() {
    for _ in 0..3 {
        let world = World::start().await;
        let nodes: Vec<Value> = (0..5).rev().map(|n| node(&format!("n{n}"), 16, 0)).collect();
        let inventory = json!({"generation": 1, "nodes": nodes});
        let answer = world.send("PUT /scheduler/inventory", &inventory.to_string()).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let mut taken = Vec::new();
        for number in 0..5 {
            let vm = config(1, placement("balanced", json!([]), json!([])));
            taken.push(chosen(&world, &format!("vm-{number}"), vm, json!({})).await);
        }
        assert_eq!(taken, ["n0", "n1", "n2", "n3", "n4"], "ties go to the lowest id");
        world.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tags_must_be_labels_only_where_that_is_asked_for() {
    let world = fleet().await;
    let mut labelled = node("gpu node".replace(' ', "-").as_str(), 4, 3);
    labelled["labels"] = json!({"gpu": "A100 80GB", "zone": "z1"});
    register(&world, &labelled).await;
    let tagged = || config(1, json!({"tags": {"gpu": "A100 80GB"}}));
    let strict = json!({"config": {"enable_node_labels": true}});
    assert_eq!(chosen(&world, "a", tagged(), strict.clone()).await, "gpu-node");
    assert_ne!(chosen(&world, "b", tagged(), json!({})).await, "gpu-node");
    let other = config(1, json!({"tags": {"gpu": "H100"}}));
    assert_eq!(error(&schedule(&world, "c", other, strict).await).1, "INSUFFICIENT_CAPACITY");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn overcommit_counts_above_one() {
    let world = World::start().await;
    register(&world, &node("n1", 3, 0)).await;
    let with = |factor: f64| json!({"config": {"max_cpu_overcommit": factor}});
    let status = |answer: Answer| answer.status;
    assert_eq!(status(schedule(&world, "a", config(4, json!({})), with(0.5)).await), 409);
    assert_eq!(status(schedule(&world, "a", config(4, json!({})), with(1.0)).await), 409);
    assert_eq!(status(schedule(&world, "a", config(4, json!({})), with(1.5)).await), 200);
    assert_eq!(status(schedule(&world, "b", config(1, json!({})), with(1.5)).await), 409);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_number_of_vms_on_a_node_is_limited_by_request_or_by_the_service() {
    let world = fleet().await;
    let with = |most: u64| json!({"config": {"max_vms_per_node": most}});
    let among = |most: u64| {
        let mut asked = with(most);
        asked["candidate_node_ids"] = json!(["n2"]);
        asked
    };
    let full = schedule(&world, "a", config(1, json!({})), among(3)).await;
    assert_eq!(error(&full).1, "INSUFFICIENT_CAPACITY");
    assert_eq!(schedule(&world, "a", config(1, json!({})), among(4)).await.status, 200);
    assert_ne!(chosen(&world, "b", config(1, json!({})), with(4)).await, "n2");
    world.stop().await;
    let options = Options { max_vms_per_node: 2, ..Options::default() };
    let world = World::with_options(AcceptLimits::default(), 1_024, options).await;
    let mut one = node("n1", 64, 1);
    one["vm_count"] = json!(1);
    register(&world, &one).await;
    assert_eq!(chosen(&world, "a", config(1, json!({})), json!({})).await, "n1");
    assert_eq!(schedule(&world, "b", config(1, json!({})), json!({})).await.status, 409);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_time_that_a_place_is_held_is_a_setting() {
    let options = Options { hold_ttl_ms: 1_000, ..Options::default() };
    let world = World::with_options(AcceptLimits::default(), 1_024, options).await;
    register(&world, &node("n1", 4, 0)).await;
    let answer = schedule(&world, "a", config(4, json!({})), json!({})).await.json();
    assert_eq!(answer["reservation_ttl"], 1_000_000_000_u64);
    // The writer looks at reservations about four times a second.
    let mut tries = 0;
    while schedule(&world, "b", config(4, json!({})), json!({})).await.status != 200 {
        tries += 1;
        assert!(tries < 200, "the place of `a` is never given back");
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    world.stop().await;
}
