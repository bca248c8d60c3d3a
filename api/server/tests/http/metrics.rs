//! Metrics: what they count, and what they never grow by.

use crate::world::World;
use axum::body::Body;
use axum::http::Request;
use tower::ServiceExt;

/// The value of a series, by its name with labels.
fn value(metrics: &str, series: &str) -> f64 {
    let line = metrics.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    let line = line.unwrap_or_else(|| panic!("no {series} in\n{metrics}"));
    line.parse().unwrap_or_else(|_| panic!("{series} is {line:?}"))
}

fn series(metrics: &str) -> usize {
    metrics.lines().filter(|line| !line.starts_with('#')).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_tell_what_happened() {
    let world = World::start().await;
    world.host("h1", 2).await;
    let place = |id: &str, more: &str| {
        format!(r#"{{"vm":{{"id":"{id}","demand":{{"cpu_millis":800}}}}{more}}}"#)
    };
    for (id, more) in [("a", ""), ("a", ""), ("b", r#","hold_ttl_ms":60000"#), ("c", "")] {
        world.send("POST /v1/placements", &place(id, more)).await;
    }
    let other = place("a", "").replace("800", "900");
    assert_eq!(world.send("POST /v1/placements", &other).await.status, 409);
    let answer = world.get("/metrics").await;
    assert_eq!(answer.status, 200);
    let kind = answer.header("content-type").expect("a content type");
    assert!(kind.starts_with("application/openmetrics-text"), "{kind}");
    let metrics = answer.text;
    let check = |name: &str, expected: f64| {
        assert_eq!(value(&metrics, &format!("novacron_scheduler_{name}")), expected, "{metrics}");
    };
    for outcome in ["placed", "repeated", "reserved", "rejected", "refused"] {
        check(&format!("placements_total{{outcome=\"{outcome}\"}}"), 1.0);
    }
    let placements = |status| {
        format!("requests_total{{route=\"/v1/placements\",method=\"POST\",status=\"{status}\"}}")
    };
    check(&placements("2xx"), 4.0);
    check(&placements("4xx"), 1.0);
    check("request_duration_seconds_count{route=\"/v1/placements\"}", 5.0);
    check("decision_duration_seconds_count", 5.0);
    check("hosts", 1.0);
    check("vms", 2.0);
    check("reservations", 1.0);
    check("queue_depth", 0.0);
    check("log_failures_total", 0.0);
    let revision = world.get("/v1/state/hash").await.json()["revision"].as_u64();
    check("revision", revision.expect("a number") as f64);
    assert!(value(&metrics, "novacron_scheduler_commit_duration_seconds_count") >= 4.0);
    assert!(value(&metrics, "novacron_scheduler_resident_memory_bytes") > 1e6);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_thousand_random_paths_add_no_series() {
    let world = World::start().await;
    let ask = async |method: &str, path: &str| {
        let request = Request::builder().method(method).uri(path).body(Body::empty());
        let answer = world.app.clone().oneshot(request.expect("a request")).await;
        answer.expect("infallible").status()
    };
    let paths = |n: u32| {
        let n = n.wrapping_mul(2_654_435_761);
        [
            format!("/{n:x}"),
            format!("/v1/hosts/{n:x}"),
            format!("/v1/vms/{n:x}?tenant=t{n}"),
            format!("/docs/{n:x}/{n}"),
            format!("/v1/{n:x}:bulk"),
        ]
    };
    for path in paths(0) {
        ask("GET", &path).await;
        ask("BREW", &path).await;
    }
    world.get("/metrics").await;
    let before = series(&world.get("/metrics").await.text);
    for n in 0..20_000 {
        for path in paths(n) {
            ask("GET", &path).await;
        }
        ask(&format!("M{n}"), "/").await;
    }
    let metrics = world.get("/metrics").await.text;
    assert_eq!(series(&metrics), before, "{metrics}");
    let unmatched =
        r#"novacron_scheduler_requests_total{route="unmatched",method="GET",status="4xx"}"#;
    assert!(value(&metrics, unmatched) >= 40_000.0);
    world.stop().await;
}
