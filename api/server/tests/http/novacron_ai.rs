//! NovaCron's AI engine: answers for everything that can be read, and only from what is known.

use crate::world::World;
use axum::body::Body;
use axum::http::Request;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tower::ServiceExt;

const ROUTES: [&str; 7] = [
    "/predict/resources",
    "/predict/migration",
    "/optimize/performance",
    "/analyze/workload",
    "/detect/anomaly",
    "/optimize/scaling",
    "/optimize/bandwidth",
];

async fn ask(world: &World, route: &str, body: Value) -> Value {
    let answer = world.send(&format!("POST {route}"), &body.to_string()).await;
    assert_eq!(answer.status, 200, "{route}: {answer:?}");
    let answer = answer.json();
    assert_eq!(answer["model"], "naive", "{answer}");
    answer
}

async fn predict(world: &World, resource: &str) -> Value {
    let metrics = json!({"cpu_usage": 0.5});
    let body = json!({"resource_id": resource, "metrics": metrics, "prediction_horizon": 60});
    ask(world, "/predict/resources", body).await
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_can_be_read_is_answered_and_nothing_is_claimed() {
    let world = World::start().await;
    for route in ROUTES {
        for body in [json!({}), json!({"future_key": [1, {"a": null}]})] {
            let answer = ask(&world, route, body).await;
            assert_eq!(answer["basis"], "no_history", "{route}");
            let confidence = answer.get("confidence").unwrap_or(&json!(0.0)).clone();
            assert_eq!(confidence, 0.0, "{route}");
        }
        for broken in ["", "{", "[]", "7", r#"{"a":1,"a":2}"#] {
            let answer = world.send(&format!("POST {route}"), broken).await;
            assert_eq!(answer.status, 400, "{route} {broken}");
            assert_eq!(answer.json()["error"]["code"], "invalid_argument", "{answer:?}");
        }
    }
    let typed = world.send("POST /predict/resources", r#"{"metrics":[1]}"#).await;
    assert_eq!(typed.status, 400);
    assert!(typed.text.contains("metrics: an array of 1"), "{typed:?}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_constant_in_a_prediction_request_is_never_evidence() {
    let world = World::start().await;
    for _ in 0..20 {
        let answer = predict(&world, "n1").await;
        assert_eq!((&answer["prediction"], &answer["confidence"]), (&Value::Null, &json!(0.0)));
    }
    world.host("n1", 8).await;
    let placed = r#"{"id":"v","host_id":"n1","demand":{"cpu_millis":2000,"memory_mib":1024}}"#;
    assert_eq!(world.send("POST /v1/vms", placed).await.status, 201);
    let answer = predict(&world, "n1").await;
    assert_eq!((&answer["prediction"], &answer["basis"]), (&json!(0.25), &json!("current_state")));
    assert_eq!(answer["confidence"], 0.0);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn predictions_follow_the_history_that_was_ingested() {
    let world = World::start().await;
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let now = now.expect("after 1970").as_secs();
    // A percent more every minute, up to now.
    let data: Vec<Value> = (0..30u64)
        .map(|minute| {
            let back = 29 - minute;
            json!({"timestamp": now - back * 60, "cpu_usage": 0.10 + 0.01 * minute as f64})
        })
        .collect();
    let body = json!({"vm_id": "vm-1", "workload_data": data});
    let analysis = ask(&world, "/analyze/workload", body).await;
    assert_eq!((&analysis["pattern"], &analysis["basis"]), (&json!("growing"), &json!("request")));
    let body =
        json!({"resource_id": "vm-1", "metrics": {"cpu_usage": 0.5}, "prediction_horizon": 10});
    let answer = ask(&world, "/predict/resources", body).await;
    let prediction = answer["prediction"].as_f64().expect("a number");
    assert!((0.485..0.505).contains(&prediction), "0.39 and ten minutes: {answer}");
    assert_eq!(
        (&answer["basis"], &answer["predictions"]["cpu_usage"]["samples"]),
        (&json!("history"), &json!(30))
    );
    assert!(answer["confidence"].as_f64().is_some_and(|it| it > 0.5), "{answer}");
    let far = predict(&world, "vm-1").await;
    assert!(far["prediction"].as_f64() > Some(prediction));
    let body = json!({"resource_id": "vm-1", "metrics": {"cpu_usage": 0.5}, "prediction_horizon": 10_000_000});
    assert_eq!(
        ask(&world, "/predict/resources", body).await["prediction"],
        1.0,
        "a share stays one"
    );
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn reports_of_nodes_are_history() {
    let world = World::start().await;
    let report = wire::novacron::NodeResourceInfo {
        node_id: "n1".into(),
        total_cpu: 8,
        used_cpu: 6,
        ..Default::default()
    };
    world.observe(&report);
    let answer = predict(&world, "n1").await;
    assert_eq!((&answer["prediction"], &answer["basis"]), (&json!(0.75), &json!("history")));
    assert_eq!(answer["confidence"], 0.0, "one sample proves nothing");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_anomaly_is_what_the_history_does_not_know() {
    let world = World::start().await;
    let judge = |value: f64| {
        ask(
            &world,
            "/detect/anomaly",
            json!({"resource_id": "node_metrics", "metrics": {"n1": {"cpu": value}, "text": "x"}}),
        )
    };
    let mut judged = 0;
    // Two calls within a millisecond count once, so more are made than are needed.
    for round in 0..64 {
        let report = judge(0.40 + f64::from(round % 3) / 100.0).await;
        assert_eq!(report["is_anomaly"], false, "{report}");
        judged += usize::from(report["basis"] == "history");
        if judged > 3 {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    }
    let report = judge(0.95).await;
    assert_eq!(report["is_anomaly"], true, "{report}");
    assert!(report["anomaly_score"].as_f64().is_some_and(|it| it > 0.5 && it < 1.0));
    let said = report["recommendations"][0].as_str().expect("a sentence");
    assert!(said.contains("n1.cpu") && said.contains("above its median"), "{said}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_migration_target_is_one_that_can_take_the_vm() {
    let world = World::start().await;
    for (id, cores) in [("n1", 8), ("n2", 2), ("n3", 16), ("n4", 16)] {
        world.host(id, cores).await;
    }
    let placed = r#"{"id":"v","tenant":"acme","host_id":"n1","demand":{"cpu_millis":4000,"memory_mib":8192}}"#;
    assert_eq!(world.send("POST /v1/vms", placed).await.status, 201);
    let ask = |targets: Value, metrics: Value| {
        ask(
            &world,
            "/predict/migration",
            json!({"vm_id": "v", "source_host": "n1", "target_hosts": targets, "vm_metrics": metrics}),
        )
    };
    let answer = ask(json!(["n2", "n3", "nowhere"]), Value::Null).await;
    assert_eq!((&answer["recommended_host"], &answer["target_host"]), (&json!("n3"), &json!("n3")));
    let reasons = answer["reasons"].to_string();
    assert!(reasons.contains("nowhere") && reasons.contains("capacity:cpu_millis"), "{reasons}");
    assert!(answer["migration_score"].as_f64().is_some_and(|it| it > 0.0 && it <= 1.0));
    let quiet = ask(json!(["n3"]), json!({"dirty_page_rate": 0})).await;
    let busy = ask(json!(["n3"]), json!({"dirty_page_rate": 25_000})).await;
    assert!(busy["estimated_downtime"].as_f64() > quiet["estimated_downtime"].as_f64());
    assert_eq!(quiet["network_impact"]["dirty_rate_is_assumed"], false);
    assert_eq!(answer["network_impact"]["dirty_rate_is_assumed"], true);
    let none = ask(json!(["n1", "n2"]), Value::Null).await;
    assert_eq!((&none["recommended_host"], &none["confidence"]), (&Value::Null, &json!(0.0)));
    assert!(none["reasons"].to_string().contains("none of the targets"), "{none}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn advice_is_made_of_the_data() {
    let world = World::start().await;
    world.host("n1", 10).await;
    let placed = r#"{"id":"v","host_id":"n1","demand":{"cpu_millis":9000,"memory_mib":1024}}"#;
    assert_eq!(world.send("POST /v1/vms", placed).await.status, 201);
    let rows = |metric: &str, value: f64| vec![json!({metric: value}); 12];
    let scaling = json!({"vm_id": "v", "current_resources": {"memory_mb": 4096}, "historical_data": rows("memory_usage", 90.0)});
    let scaling = ask(&world, "/optimize/scaling", scaling).await;
    assert_eq!(scaling["decisions"][0]["action"], "scale_up");
    assert_eq!(scaling["decisions"][0]["recommended"], 4096.0 * 0.9 / 0.6);
    let bandwidth = json!({"network_id": "n", "traffic_data": rows("bandwidth_mbps", 100.0), "qos_requirements": {"max_bandwidth_mbps": 120}});
    let bandwidth = ask(&world, "/optimize/bandwidth", bandwidth).await;
    assert_eq!(bandwidth["recommended_bandwidth"]["bandwidth_mbps"], 120.0);
    assert_eq!(bandwidth["qos"][0]["met"], true);
    let body = json!({"cluster_id": "default", "performance_data": rows("cpu_usage", 0.95), "optimization_goals": ["minimise cpu", "latency"]});
    let performance = ask(&world, "/optimize/performance", body).await;
    assert_eq!(performance["hot_hosts"][0], json!({"host": "n1", "utilisation": 0.9, "vms": 1}));
    assert_eq!(performance["goals_without_data"], json!(["latency"]));
    let said = performance["recommendations"].to_string();
    assert!(said.contains("scale_up cpu") && said.contains("1 of 1 hosts"), "{said}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn from_elsewhere_the_routes_are_closed() {
    let world = World::start().await;
    for route in ROUTES {
        let request = Request::post(route).header("content-type", "application/json");
        let request = request.body(Body::from("{}")).expect("a request");
        let answer = world.seen_from_elsewhere().oneshot(request).await.expect("infallible");
        assert_eq!(answer.status(), 403, "{route}");
        let body = answer.into_body().collect().await.expect("a body").to_bytes();
        let body: Value = serde_json::from_slice(&body).expect("JSON");
        assert_eq!(body["error"]["code"], "forbidden");
        let said = body["error"]["message"].as_str().expect("a sentence");
        assert!(said.contains("--ai-routes-open"), "{said}");
    }
    world.stop().await;
}
