//! Optimisations, fronts, joint batches and weights over HTTP.

use crate::world::World;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// A fleet where power and users pull in different directions: frugal hosts far away, hungry ones
/// nearby.
async fn fleet(world: &World, hosts: usize) {
    for row in 0..hosts {
        let near = row % 2 == 0;
        let host = json!({
            "id": format!("h{row}"),
            "capacity": {"cpu_millis": 16_000, "memory_mib": 65_536},
            "zone": format!("z{}", row % 3),
            "rack": format!("r{}", row % 6),
            "power": if near { json!({"idle_mw": 200_000, "peak_mw": 400_000}) }
                     else { json!({"idle_mw": 50_000, "peak_mw": 150_000}) },
            "latencies": [{"region": "eu", "latency_us": if near { 1_000 } else { 40_000 }}],
        });
        let answer = world.send("POST /v1/hosts", &host.to_string()).await;
        assert_eq!(answer.status, 201, "{answer:?}");
    }
}

fn vm(id: &str) -> Value {
    json!({"id": id, "demand": {"cpu_millis": 2_000, "memory_mib": 4_096},
           "hints": {"user_region": "eu"}})
}

fn vms(count: usize) -> Vec<Value> {
    (0..count).map(|row| vm(&format!("v{row}"))).collect()
}

/// Asks, and waits until it is over.
async fn optimised(world: &World, body: &Value) -> Value {
    let taken = world.send("POST /v1/optimisations", &body.to_string()).await;
    assert_eq!(taken.status, 202, "{taken:?}");
    let place = taken.header("location").expect("a place to look").to_owned();
    ended(world, &place).await
}

async fn ended(world: &World, place: &str) -> Value {
    let started = Instant::now();
    loop {
        let view = world.get(place).await.json();
        if !["queued", "running"].contains(&view["state"].as_str().expect("a state")) {
            return view;
        }
        assert!(started.elapsed() < Duration::from_secs(60), "{view}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn goal(view: &Value, name: &str) -> i64 {
    let goals = view["goals"].as_array().expect("goals");
    let found = goals.iter().find(|goal| goal["goal"] == name).expect("the goal");
    found["value"].as_i64().expect("a number")
}

#[tokio::test(flavor = "multi_thread")]
async fn weights_decide_where_a_batch_goes() {
    let world = World::start().await;
    fleet(&world, 6).await;
    let ask = |goals: Value| json!({"vms": vms(8), "goals": goals, "steps": 2_000});
    let green = optimised(&world, &ask(json!({"energy": 100, "latency": 1}))).await;
    let fast = optimised(&world, &ask(json!({"energy": 1, "latency": 100}))).await;
    for view in [&green, &fast] {
        assert_eq!(view["state"], "done", "{view}");
        assert_eq!(view["placements"].as_array().map(Vec::len), Some(8));
        assert!(view["objective"].as_i64() >= view["bound"].as_i64(), "{view}");
        assert!(view["gap"].as_f64().is_some_and(|gap| (0.0..=1.0).contains(&gap)));
    }
    assert!(goal(&green, "energy") < goal(&fast, "energy"), "{green} {fast}");
    assert!(goal(&green, "latency") > goal(&fast, "latency"));
    let again = optimised(&world, &ask(json!({"energy": 1, "latency": 100}))).await;
    assert_eq!(again["placements"], fast["placements"], "same seed and steps, same answer");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_is_applied_and_moves_come_in_waves() {
    let world = World::start().await;
    fleet(&world, 6).await;
    let spread = json!({"vms": vms(6), "strategy": "worst_fit"});
    let placed = world.send("POST /v1/placements:batch", &spread.to_string()).await.json();
    assert_eq!(placed["placed"], 6, "{placed}");
    let body = json!({"scope": "cluster", "profile": "energy", "steps": 4_000,
                      "vms": [vm("new")]});
    let view = optimised(&world, &body).await;
    assert_eq!(view["state"], "done", "{view}");
    let moves = view["moves"].as_array().expect("moves").len();
    assert!(moves > 0, "hosts are emptied: {view}");
    let few = json!({"scope": "cluster", "profile": "energy", "steps": 4_000, "max_moves": 1});
    let few = optimised(&world, &few).await;
    assert!(few["moves"].as_array().is_some_and(|moves| moves.len() <= 1), "{few}");

    let id = view["id"].as_str().expect("an id");
    let applied = world.send(&format!("POST /v1/optimisations/{id}/apply"), "").await;
    assert_eq!(applied.status, 200, "{applied:?}");
    let applied = applied.json();
    let waves = applied["waves"].as_array().expect("waves");
    let steps: usize = waves.iter().map(|wave| wave.as_array().map_or(0, Vec::len)).sum();
    let blocked = applied["blocked"].as_array().expect("a list").len();
    assert_eq!(steps + blocked, moves, "{applied}");
    assert_eq!(applied["placed"][0]["vm_id"], "new");
    let new = world.get("/v1/vms/new").await.json();
    assert_eq!(new["host_id"], applied["placed"][0]["to"], "{new}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_front_is_a_resource_with_a_slider() {
    let world = World::start().await;
    fleet(&world, 6).await;
    let body = json!({"vms": vms(10), "mode": "pareto", "goals": {"energy": 1, "latency": 1},
                      "points": 9, "steps": 20_000});
    let view = optimised(&world, &body).await;
    assert_eq!(view["state"], "done", "{view}");
    let front = view["front"].as_str().expect("a front").to_owned();
    let shown = world.get(&format!("/v1/fronts/{front}")).await.json();
    let points = shown["points"].as_array().expect("points").clone();
    assert!(points.len() > 2, "{shown}");
    let values: Vec<(i64, i64)> =
        points.iter().map(|point| (goal(point, "energy"), goal(point, "latency"))).collect();
    for (row, a) in values.iter().enumerate() {
        for b in &values[row + 1..] {
            assert!(a.0 < b.0 && a.1 > b.1, "none dominates another: {values:?}");
        }
    }
    assert!(shown["hypervolume"].as_f64().is_some_and(|share| share > 0.0 && share <= 1.0));
    assert!(shown["knee"].as_u64().is_some_and(|knee| (knee as usize) < points.len()));

    let nearest = async |weights: &str| {
        world.get(&format!("/v1/fronts/{front}/nearest?weights={weights}")).await
    };
    let green = nearest("energy:1").await.json();
    let fast = nearest("latency:1").await.json();
    assert_eq!(green["point"]["point"], 0, "{green}");
    assert_eq!(fast["point"]["point"], points.len() - 1, "{fast}");
    let wrong = world.get(&format!("/v1/fronts/{front}/nearest?weights=speed:1")).await;
    assert_eq!(wrong.status, 400, "{wrong:?}");

    let last = points.len() - 1;
    let applied = world.send(&format!("POST /v1/fronts/{front}/points/{last}/apply"), "").await;
    let applied = applied.json();
    assert_eq!(applied["placed"].as_array().map(Vec::len), Some(10), "{applied}");
    let missing = world.send(&format!("POST /v1/fronts/{front}/points/999/apply"), "").await;
    assert_eq!(missing.status, 404, "{missing:?}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_search_tells_what_it_finds_and_ends_when_it_is_told_to() {
    let world = World::start().await;
    fleet(&world, 12).await;
    let body = json!({"vms": vms(40), "engine": "annealing", "profile": "balanced",
                      "budget_ms": 600_000});
    let taken = world.send("POST /v1/optimisations", &body.to_string()).await;
    let place = taken.header("location").expect("a place").to_owned();
    let started = Instant::now();
    loop {
        let view = world.get(&place).await.json();
        let found = view["incumbents"].as_array().expect("a list").clone();
        if !found.is_empty() {
            let objectives: Vec<i64> =
                found.iter().filter_map(|it| it["objective"].as_i64()).collect();
            assert!(objectives.windows(2).all(|pair| pair[0] > pair[1]), "{objectives:?}");
            break;
        }
        assert!(started.elapsed() < Duration::from_secs(60), "{view}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let stopped = world.send(&format!("DELETE {place}"), "").await;
    assert_eq!(stopped.status, 204, "{stopped:?}");
    let view = world.get(&place).await.json();
    assert_eq!((&view["state"], &view["stop_reason"]), (&json!("cancelled"), &json!("cancelled")));
    assert!(!view["placements"].as_array().expect("a list").is_empty(), "the best so far is kept");
    let told = world.get(&format!("{place}/events")).await;
    let text = &told.text;
    assert!(text.contains("event: incumbent") && text.contains("event: end"), "{text}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_done_is_said_in_words() {
    let world = World::start().await;
    fleet(&world, 2).await;
    for (body, path) in [
        (json!({"scope": "group"}), "group"),
        (json!({"scope": "pending"}), "vms"),
        (json!({"goals": {"speed": 1}}), "goals.speed"),
        (json!({"goals": {"energy": 0}}), "goals"),
        (json!({"mode": "pareto", "goals": {"energy": 1}}), "goals"),
        (json!({"profile": "energy", "goals": {"cost": 1}}), "profile"),
        (json!({"settings": {"hour": 24}}), "settings.hour"),
        (json!({"settings": {"carbon": {"z0": [1, 2]}}}), "settings.carbon.z0"),
        (json!({"budget_ms": 0}), "budget_ms"),
    ] {
        let answer = world.send("POST /v1/optimisations", &body.to_string()).await;
        assert_eq!(answer.status, 422, "{body}: {answer:?}");
        assert_eq!(answer.json()["errors"][0]["path"], path, "{body}: {answer:?}");
    }
    let too_large = json!({"vms": [{"id": "x", "demand": {"cpu_millis": 99_000}}], "steps": 100});
    let view = optimised(&world, &too_large).await;
    assert_eq!(
        (&view["state"], &view["left_out"]),
        (&json!("done"), &json!(["default/x"])),
        "{view}"
    );
    assert_eq!(view["placements"], json!([]));
    assert_eq!(world.get("/v1/optimisations/o99").await.status, 404);
    assert_eq!(world.get("/v1/fronts/f1").await.status, 404);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_is_placed_jointly_when_there_is_time() {
    let world = World::start().await;
    for row in 0..2 {
        world.host(&format!("h{row}"), 8).await;
    }
    let of = |id: &str, cores: u64| json!({"id": id, "demand": {"cpu_millis": cores * 1_000}});
    let vms = [of("a", 3), of("b", 3), of("c", 5), of("d", 5)];
    let body = json!({"vms": vms, "strategy": "first_fit"});
    let alone =
        world.send("POST /v1/placements:batch?dry_run=true", &body.to_string()).await.json();
    assert_eq!((&alone["placed"], &alone["joint"]), (&json!(3), &Value::Null), "{alone}");
    let body = json!({"vms": vms, "strategy": "first_fit", "joint_ms": 50});
    let jointly = world.send("POST /v1/placements:batch", &body.to_string()).await.json();
    assert_eq!((&jointly["placed"], &jointly["outcome"]), (&json!(4), &json!("placed")));
    assert_eq!(jointly["joint"]["placed_as_given"], 3, "{jointly}");
    let order: Vec<&Value> =
        jointly["decisions"].as_array().expect("four").iter().map(|it| &it["vm_id"]).collect();
    assert_eq!(order, ["a", "b", "c", "d"], "answers are in the order of the request");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn profiles_change_the_next_decision_and_what_if_says_so_before() {
    let world = World::start().await;
    world.host("h1", 8).await;
    world.host("h2", 8).await;
    for id in ["a", "b", "c"] {
        let body = json!({"vm": {"id": id, "demand": {"cpu_millis": 1_000}}}).to_string();
        world.send("POST /v1/placements", &body).await;
    }
    let what =
        async |body: Value| world.send("POST /v1/weights/whatif", &body.to_string()).await.json();
    let same = what(json!({"profile": "balanced"})).await;
    assert_eq!((&same["decisions"], &same["changed"]), (&json!(3), &json!(0)), "{same}");
    let packed = what(json!({"profile": "energy"})).await;
    assert!(packed["changed"].as_u64().is_some_and(|changed| changed > 0), "{packed}");
    let change = &packed["changes"][0];
    assert!(change["best_score"].as_i64() >= change["score"].as_i64(), "{change}");
    assert_ne!(change["host_id"], change["would_be"]);
    let one = what(json!({"load": 10, "last": 1})).await;
    assert_eq!(one["decisions"], 1, "{one}");

    let set = world.send("PUT /v1/weights", r#"{"profile":"energy"}"#).await;
    assert_eq!(set.status, 200, "{set:?}");
    let body = json!({"vm": {"id": "d", "demand": {"cpu_millis": 1_000}}}).to_string();
    let next = world.send("POST /v1/placements", &body).await.json();
    assert_eq!(next["strategy"], "consolidate", "{next}");
    let profiles = world.get("/v1/weights/profiles").await.json();
    assert_eq!(profiles["profiles"].as_array().map(Vec::len), Some(5));
    let unknown = world.send("PUT /v1/weights", r#"{"profile":"speed"}"#).await;
    assert_eq!(unknown.status, 422, "{unknown:?}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn engines_are_listed_with_what_they_were_measured_to_do() {
    let world = World::start().await;
    let list = world.get("/v1/engines").await.json();
    let engines = list["engines"].as_array().expect("engines");
    assert_eq!(engines.len(), 9);
    for engine in engines {
        assert!(engine["measured"].as_array().is_some_and(|rows| rows.len() >= 3), "{engine}");
    }
    world.stop().await;
}
