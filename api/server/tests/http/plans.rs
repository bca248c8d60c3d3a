//! Plans over HTTP: made, approved, carried out wave by wave, cancelled and turned round.

use crate::world::World;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Three hosts, and a VM on each of the first two that fills most of it.
async fn fleet() -> World {
    let world = World::start().await;
    for id in ["h0", "h1", "h2"] {
        world.host(id, 4).await;
    }
    put(&world, "a", json!({"cpu_millis": 3_000, "memory_mib": 1_024}), "h0").await;
    put(&world, "b", json!({"cpu_millis": 3_000, "memory_mib": 1_024}), "h1").await;
    world
}

async fn put(world: &World, id: &str, demand: Value, host: &str) {
    let body = json!({"id": id, "demand": demand, "host_id": host}).to_string();
    let answer = world.send("POST /v1/vms", &body).await;
    assert_eq!(answer.status, 201, "{answer:?}");
}

async fn made(world: &World, body: Value) -> Value {
    let answer = world.send("POST /v1/plans", &body.to_string()).await;
    assert_eq!(answer.status, 201, "{answer:?}");
    let place = answer.header("location").expect("a place to look").to_owned();
    let view = answer.json();
    assert_eq!(place, format!("/v1/plans/{}", view["id"].as_str().expect("an id")));
    view
}

async fn act(world: &World, plan: &Value, verb: &str) -> Value {
    let id = plan["id"].as_str().expect("an id");
    let answer = world.send(&format!("POST /v1/plans/{id}/{verb}"), "").await;
    assert_eq!(answer.status, 200, "{verb}: {answer:?}");
    answer.json()
}

/// Waits until so many migrations are under way.
async fn running(world: &World, plan: &Value, count: u64) -> Value {
    let path = format!("/v1/plans/{}", plan["id"].as_str().expect("an id"));
    let started = Instant::now();
    loop {
        let view = world.get(&path).await.json();
        if view["totals"]["running"] == count {
            return view;
        }
        assert!(started.elapsed() < Duration::from_secs(20), "{view}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn host_of(world: &World, vm: &str) -> Value {
    world.get(&format!("/v1/vms/{vm}")).await.json()["host_id"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_is_approved_carried_out_wave_by_wave_and_turned_round() {
    let world = fleet().await;
    // They want each other's place, so one waits aside.
    let moves = json!([{"vm_id": "a", "to": "h1"}, {"vm_id": "b", "to": "h0"}]);
    let plan = made(&world, json!({"moves": moves})).await;
    assert_eq!((&plan["status"], &plan["totals"]["migrations"]), (&json!("proposed"), &json!(3)));
    assert!(plan["waves"][0][0]["brownout_ms"].as_u64() > Some(0), "{plan}");
    let early = format!("POST /v1/plans/{}/apply", plan["id"].as_str().expect("an id"));
    let early = world.send(&early, "").await;
    assert_eq!((early.status, &early.json()["code"]), (409, &json!("plan_refused")));
    let diff = world.get(&format!("/v1/plans/{}/diff", plan["id"].as_str().expect("id"))).await;
    assert_eq!((diff.status, &diff.json()["moved"]), (200, &json!(2)), "{diff:?}");

    act(&world, &plan, "approve").await;
    act(&world, &plan, "apply").await;
    for _ in 0..3 {
        let view = running(&world, &plan, 1).await;
        let waves = view["waves"].as_array().expect("waves").iter();
        let mut steps = waves.flat_map(|wave| wave.as_array().expect("a wave"));
        let step = steps.find(|step| step["status"] == "running").expect("one runs").clone();
        let (vm, to) =
            (step["vm_id"].as_str().expect("a VM"), step["to"].as_str().expect("a host"));
        let confirm = format!("migrations/{vm}/confirm?to={to}");
        act(&world, &plan, &confirm).await;
        act(&world, &plan, &confirm).await;
    }
    let view = running(&world, &plan, 0).await;
    assert_eq!((&view["status"], &view["totals"]["done"]), (&json!("completed"), &json!(3)));
    assert_eq!(
        (host_of(&world, "a").await, host_of(&world, "b").await),
        (json!("h1"), json!("h0"))
    );

    let back = act(&world, &plan, "rollback").await;
    assert_eq!((&back["kind"], &back["rolls_back"]), (&json!("rollback"), &plan["id"]), "{back}");
    running(&world, &back, 1).await;
    let list = world.get("/v1/plans").await.json();
    assert_eq!(list["items"].as_array().map(Vec::len), Some(2), "{list}");
    let events = world.get("/v1/events?since=1").await.json();
    let kinds: Vec<&str> = events["events"]
        .as_array()
        .expect("events")
        .iter()
        .filter_map(|it| it["kind"].as_str())
        .collect();
    for kind in ["plan_created", "plan_changed", "plan_wave_started", "plan_migration_done"] {
        assert!(kinds.contains(&kind), "{kind}: {kinds:?}");
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_migration_and_a_cancelled_plan_give_their_places_back() {
    let world = fleet().await;
    let body = json!({"moves": [{"vm_id": "a", "to": "h2"}], "approve": true});
    let plan = made(&world, body.clone()).await;
    act(&world, &plan, "apply").await;
    running(&world, &plan, 1).await;
    let taken = |host: Value| host["allocated"]["cpu_millis"].clone();
    assert_eq!(taken(world.get("/v1/hosts/h2").await.json()), 3_000, "its place is held");
    let list = world.get("/v1/vms").await.json();
    assert_eq!(list["items"].as_array().map(Vec::len), Some(2), "a place is no VM: {list}");
    let view = act(&world, &plan, "migrations/a/fail?reason=no%20route").await;
    assert_eq!(view["waves"][0][0]["reason"], "no route", "{view}");
    assert_eq!(view["status"], "incomplete");
    assert_eq!(taken(world.get("/v1/hosts/h2").await.json()), 0);

    let plan = made(&world, body).await;
    act(&world, &plan, "apply").await;
    running(&world, &plan, 1).await;
    let view = act(&world, &plan, "cancel?abandon=true").await;
    assert_eq!(view["status"], "cancelled");
    assert_eq!(taken(world.get("/v1/hosts/h2").await.json()), 0);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn drains_empty_hosts_or_name_what_is_in_the_way() {
    let world = fleet().await;
    let plan = made(&world, json!({"kind": "drain", "hosts": ["h0"]})).await;
    assert_eq!(plan["totals"]["migrations"], 1, "{plan}");
    assert_eq!((&plan["waves"][0][0]["to"], &plan["hosts"]), (&json!("h2"), &json!(["h0"])));
    let body = json!({"hosts": ["h0", "h1", "h2"], "batch": 3}).to_string();
    let blocked = world.send("POST /v1/maintenance?dry_run=true", &body).await;
    assert_eq!(blocked.status, 200, "{blocked:?}");
    let blocked = blocked.json();
    assert_eq!(blocked["blocked"].as_array().map(Vec::len), Some(2), "{blocked}");
    assert!(
        blocked["blocked"][0]["why"].as_str().expect("why").contains("host_state"),
        "{blocked}"
    );
    let rolling = json!({"hosts": ["h0", "h1", "h2"], "batch": 1}).to_string();
    let rolling = world.send("POST /v1/maintenance", &rolling).await.json();
    assert_eq!(rolling["blocked"], Value::Null, "one after the other there is room: {rolling}");
    let unknown = world.send("POST /v1/plans", r#"{"kind":"drain","hosts":["h9"]}"#).await;
    assert_eq!((unknown.status, &unknown.json()["code"]), (404, &json!("host_not_found")));
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rebalance_has_a_bound_and_moves_nobody_for_less_than_it_costs() {
    let world = fleet().await;
    for id in ["c", "d", "e", "f"] {
        put(&world, id, json!({"cpu_millis": 200, "memory_mib": 10_000}), "h0").await;
    }
    let ask = json!({"kind": "rebalance", "goals": {"balance": 1}, "steps": 20_000});
    let plan = made(&world, ask.clone()).await;
    assert!(plan["totals"]["migrations"].as_u64() > Some(0), "{plan}");
    assert!(plan["bound"].as_i64() <= plan["objective"].as_i64(), "{plan}");
    assert!(plan["objective"].as_i64() < plan["objective_before"].as_i64(), "{plan}");
    assert!(plan["totals"]["gain_per_move"].as_f64() > Some(0.0), "{plan}");
    let mut dear = ask.clone();
    dear["price_per_move_ppm"] = json!(1_000_000);
    let nothing = made(&world, dear).await;
    assert_eq!(
        (&nothing["totals"]["migrations"], &nothing["status"]),
        (&json!(0), &json!("completed"))
    );
    assert!(nothing["note"].as_str().expect("a note").contains("costs"), "{nothing}");
    let mut there = ask;
    there["host"] = json!("h2");
    assert_eq!(made(&world, there).await["totals"]["migrations"], 0, "nobody is on h2");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disruption_budget_makes_the_next_wave_wait() {
    let world = fleet().await;
    let body = r#"{"per_vm_ms": 1, "window_ms": 60000}"#;
    let set = world.send("PUT /v1/disruption-budget", body).await;
    assert_eq!((set.status, &set.json()["per_vm_ms"]), (200, &json!(1)), "{set:?}");
    let moves = json!({"moves": [{"vm_id": "a", "to": "h2"}], "approve": true});
    let plan = made(&world, moves).await;
    act(&world, &plan, "apply").await;
    let path = format!("/v1/plans/{}", plan["id"].as_str().expect("an id"));
    let started = Instant::now();
    while world.get(&path).await.json()["status"] != "stale" {
        assert!(started.elapsed() < Duration::from_secs(20));
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let because = world.get(&path).await.json()["because"].to_string();
    assert!(because.contains("brown-out"), "{because}");
    let wrong = world.send("PUT /v1/disruption-budget", r#"{"window_ms": 5}"#).await;
    assert_eq!(wrong.status, 422, "{wrong:?}");
    world.stop().await;
}
