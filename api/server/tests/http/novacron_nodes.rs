//! NovaCron's node registry over HTTP, and short ways to ask for things there.

use crate::world::{Answer, World};
use serde_json::{Value, json};

/// A node with this many cores, of which some are in use.
pub(crate) fn node(id: &str, total_cpu: u64, used_cpu: u64) -> Value {
    json!({
        "node_id": id, "total_cpu": total_cpu, "used_cpu": used_cpu,
        "total_memory_mb": total_cpu * 4096, "used_memory_mb": used_cpu * 4096,
        "total_disk_gb": 1000, "used_disk_gb": 0, "cpu_usage_percent": 0, "memory_usage_percent": 0,
        "disk_usage_percent": 0, "vm_count": 0, "status": "available", "labels": null,
    })
}

pub(crate) async fn register(world: &World, node: &Value) {
    let answer = world.send("POST /scheduler/nodes", &node.to_string()).await;
    assert_eq!(answer.status, 201, "{answer:?}");
}

/// The status and the words of a failure.
pub(crate) fn error(answer: &Answer) -> (u16, String, String) {
    assert_eq!(answer.header("content-type"), Some("application/json"), "{answer:?}");
    let body = answer.json();
    let text = |key: &str| body["error"][key].as_str().expect("a string").to_owned();
    (answer.status, text("code"), text("message"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_is_registered_read_changed_and_removed() {
    let world = World::start().await;
    let mut sent = node("n1", 8, 2);
    sent["labels"] = json!({"os": "Debian 13"});
    let answer = world.send("POST /scheduler/nodes", &sent.to_string()).await;
    assert_eq!(answer.status, 201, "{answer:?}");
    let shown = answer.json();
    for (key, value) in sent.as_object().expect("an object") {
        if !key.ends_with("percent") {
            assert_eq!(shown[key], *value, "{key}");
        }
    }
    assert_eq!(shown["cpu_usage_percent"], 25.0);
    assert_eq!(world.get("/scheduler/nodes/n1").await.json(), shown);
    register(&world, &node("n0", 4, 0)).await;
    let list = world.get("/scheduler/nodes").await.json();
    let ids: Vec<&str> = list.as_array().expect("a list").iter().map(|it| id_of(it)).collect();
    assert_eq!(ids, ["n0", "n1"]);
    sent["status"] = json!("rebooting");
    sent["used_cpu"] = json!(3);
    let answer = world.send("PUT /scheduler/nodes/n1", &sent.to_string()).await;
    assert_eq!((answer.status, &answer.json()["status"]), (200, &json!("rebooting")));
    assert_eq!(answer.json()["used_cpu"], 3);
    assert_eq!(world.send("DELETE /scheduler/nodes/n1", "").await.status, 204);
    let gone = error(&world.get("/scheduler/nodes/n1").await);
    assert_eq!(gone, (404, "not_found".into(), "node n1 is not registered".into()));
    world.stop().await;
}

fn id_of(node: &Value) -> &str {
    node["node_id"].as_str().expect("an id")
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_with_a_node_is_said_in_novacrons_form() {
    let world = World::start().await;
    register(&world, &node("n1", 8, 0)).await;
    let twice = world.send("POST /scheduler/nodes", &node("n1", 8, 0).to_string()).await;
    let expected = (409, "conflict".into(), "node n1 is already registered".into());
    assert_eq!(error(&twice), expected);
    let unknown = world.send("PUT /scheduler/nodes/n9", &node("n9", 8, 0).to_string()).await;
    let expected = (404, "not_found".into(), "node n9 is not registered".into());
    assert_eq!(error(&unknown), expected);
    let unknown = world.send("DELETE /scheduler/nodes/n9", "").await;
    assert_eq!(error(&unknown), expected);
    let mut wrong = node("n2", 8, 0);
    wrong["total_cpu"] = json!(-1);
    let (status, code, message) =
        error(&world.send("POST /scheduler/nodes", &wrong.to_string()).await);
    assert_eq!((status, code.as_str()), (400, "invalid_argument"));
    assert!(message.contains("total_cpu: -1 is negative"), "{message}");
    let other = world.send("PUT /scheduler/nodes/n1", &node("n2", 8, 0).to_string()).await;
    assert_eq!(error(&other).0, 400);
    assert_eq!(error(&world.send("POST /scheduler/nodes", "{}").await).0, 400);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_novacron_does_not_know_of_a_host_stays() {
    let world = World::start().await;
    let host =
        json!({"id": "n1", "pool": "gold", "capacity": {"cpu_millis": 8000, "gpu_slots": 2}});
    assert_eq!(world.send("POST /v1/hosts", &host.to_string()).await.status, 201);
    assert_eq!(world.get("/v1/hosts/n1").await.json()["foreign"], Value::Null);
    let answer = world.send("PUT /scheduler/nodes/n1", &node("n1", 16, 4).to_string()).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let host = world.get("/v1/hosts/n1").await.json();
    assert_eq!((&host["pool"], &host["capacity"]["gpu_slots"]), (&json!("gold"), &json!(2)));
    assert_eq!(host["capacity"]["cpu_millis"], 16_000);
    assert_eq!(host["foreign"]["cpu_millis"], 4_000);
    assert_eq!(host["free"]["cpu_millis"], 12_000);
    let all = world.get("/v1/cluster/capacity").await.json();
    assert_eq!(all["free"]["cpu_millis"], 12_000);
    world.stop().await;
}
