//! Advice mode: everything is heard and answered, nothing is placed.

use crate::novacron_nodes::{node, register};
use crate::novacron_schedule::{config, schedule};
use crate::world::World;
use serde_json::{Value, json};
use server::{AcceptLimits, Options};

async fn advising() -> World {
    let options = Options { advise: true, ..Options::default() };
    let world = World::with_options(AcceptLimits::default(), 1_024, options).await;
    register(&world, &node("busy", 16, 12)).await;
    register(&world, &node("idle", 16, 0)).await;
    world
}

async fn started(world: &World, vm_id: &str, node_id: &str, cores: u64) {
    let event = json!({
        "type": "started", "vm_id": vm_id, "node_id": node_id,
        "timestamp": "2026-03-01T12:00:00Z", "config": config(cores, json!({})),
    });
    let answer = world.send("POST /scheduler/events", &event.to_string()).await;
    assert_eq!(answer.status, 200, "{answer:?}");
}

fn performance(cores: u64) -> Value {
    config(cores, json!({"placement": {"policy": "performance"}}))
}

#[tokio::test(flavor = "multi_thread")]
async fn advice_holds_nothing_and_is_compared_when_the_vm_starts() {
    let world = advising().await;
    let answer = schedule(&world, "vm-1", performance(2), json!({})).await.json();
    assert_eq!((&answer["node_id"], &answer["reservation_id"]), (&json!("idle"), &json!(null)));
    assert_eq!(world.get("/scheduler/nodes/idle").await.json()["used_cpu"], 0);
    started(&world, "vm-1", "busy", 2).await;
    started(&world, "vm-1", "busy", 2).await;
    assert_eq!(world.get("/scheduler/nodes/busy").await.json()["used_cpu"], 14, "taken in");
    schedule(&world, "vm-2", performance(2), json!({})).await;
    started(&world, "vm-2", "idle", 2).await;
    let advice = world.get("/v1/advice").await.json();
    assert_eq!(advice["advising"], true);
    assert_eq!(
        advice["totals"],
        json!({
            "asked": 2, "compared": 2, "agreed": 1, "better_known": 1, "broken": 0,
            "score_gain": 75_000,
        })
    );
    let first = &advice["entries"][1];
    assert_eq!((&first["vm_id"], &first["agreed"]), (&json!("vm-1"), &json!(false)));
    assert_eq!((&first["chosen_host"], &first["advised_host"]), (&json!("busy"), &json!("idle")));
    assert_eq!(first["gain_by_term"], json!({"load": 75_000}), "100 x (1000 - 250) permille");
    assert_eq!(first["chosen_headroom_permille"], 125);
    assert_eq!(first["advised_headroom_permille"], 875);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_without_room_is_named_and_one_that_nobody_asked_about_is_compared_too() {
    let world = advising().await;
    started(&world, "vm-1", "busy", 6).await;
    let advice = world.get("/v1/advice").await.json();
    let entry = &advice["entries"][0];
    assert_eq!((&entry["broken"], &entry["score_gain"]), (&json!("cpu_millis"), &json!(null)));
    assert_eq!(entry["advised_host"], "idle");
    assert_eq!(entry["chosen_headroom_permille"], -125);
    assert_eq!(advice["totals"]["broken"], 1);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_placed_by_other_routes_either() {
    let world = advising().await;
    let body = r#"{"vm":{"id":"a","demand":{"cpu_millis":100}}}"#;
    let refused = world.send("POST /v1/placements", body).await;
    assert_eq!((refused.status, &refused.json()["code"]), (409, &json!("advise_mode")));
    let dry = world.send("POST /v1/placements?dry_run=true", body).await;
    assert_eq!(dry.status, 200, "{dry:?}");
    world.stop().await;
}
