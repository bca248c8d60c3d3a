//! Wrong requests get a 4xx that says what is wrong, and leave no trace.

use crate::world::World;
use serde_json::json;

const JSON: &str = "Content-Type: application/json";
const NDJSON: &str = "Content-Type: application/x-ndjson";
const GOOD: &str = r#"{"id":"h","capacity":{}}"#;

#[tokio::test(flavor = "multi_thread")]
async fn every_wrong_request_is_named_and_changes_nothing() {
    let world = World::start().await;
    world.host("h1", 4).await;
    let before = world.get("/v1/state/hash").await.json();
    // Request line, header, body, status, code, path of the first fault.
    #[rustfmt::skip]
    let table: &[(&str, &str, &str, u16, &str, &str)] = &[
        ("GET /", "", "", 404, "route_not_found", ""),
        ("GET /v1/nothing", "", "", 404, "route_not_found", ""),
        ("GET /v2/hosts", "", "", 404, "route_not_found", ""),
        ("GET /v1/hosts/unknown", "", "", 404, "host_not_found", ""),
        ("GET /v1/hosts/a%20b", "", "", 400, "invalid_path", ""),
        ("GET /v1/hosts/%FF", "", "", 400, "invalid_path", ""),
        ("GET /v1/hosts/%2e%2e", "", "", 400, "invalid_path", ""),
        ("GET /v1/vms/unknown", "", "", 404, "vm_not_found", ""),
        ("GET /v1/vms/v?tenant=other", "", "", 404, "vm_not_found", ""),
        ("GET /v1/vms/v?tenant=a%20b", "", "", 400, "invalid_query", ""),
        ("GET /v1/vms/v?tennant=a", "", "", 400, "invalid_query", ""),
        ("GET /v1/decisions/1", "", "", 404, "decision_not_found", ""),
        ("GET /v1/decisions/d999", "", "", 404, "decision_not_found", ""),
        ("GET /v1/decisions/d-1", "", "", 404, "decision_not_found", ""),
        ("GET /v1/reservations/r1", "", "", 404, "reservation_not_found", ""),
        ("GET /v1/reservations/7", "", "", 404, "reservation_not_found", ""),
        ("GET /v1/state/hash?revision=99999", "", "", 410, "revision_gone", ""),
        ("GET /v1/state/hash?revision=-1", "", "", 400, "invalid_query", ""),
        ("GET /v1/hosts?limit=many", "", "", 400, "invalid_query", ""),
        ("GET /v1/hosts?state=broken", "", "", 400, "invalid_query", ""),
        ("GET /v1/events?wait=soon", "", "", 400, "invalid_query", ""),
        ("GET /v1/events?since=99999", "", "", 400, "invalid_query", ""),
        ("POST /v1/cluster/capacity", JSON, "{}", 405, "method_not_allowed", ""),
        ("DELETE /v1/weights", "", "", 405, "method_not_allowed", ""),
        ("PATCH /v1/hosts/h1", JSON, "{}", 405, "method_not_allowed", ""),
        ("BREW /v1/hosts", "", "", 405, "method_not_allowed", ""),
        ("POST /v1/hosts", "", GOOD, 415, "unsupported_media_type", ""),
        ("POST /v1/hosts", "Content-Type: text/plain", GOOD, 415, "unsupported_media_type", ""),
        ("POST /v1/hosts", NDJSON, GOOD, 415, "unsupported_media_type", ""),
        ("POST /v1/hosts:bulk", JSON, GOOD, 415, "unsupported_media_type", ""),
        ("POST /v1/hosts?dry=true", JSON, GOOD, 400, "invalid_query", ""),
        ("POST /v1/hosts?dry_run=maybe", JSON, GOOD, 400, "invalid_query", ""),
        ("POST /v1/hosts", JSON, "", 400, "invalid_json", "$"),
        ("POST /v1/hosts", JSON, "{\"id\":\"h\"", 400, "invalid_json", "$"),
        ("POST /v1/hosts", JSON, "[]", 422, "invalid_body", "$"),
        ("POST /v1/hosts", JSON, "{\"id\":\"h\"}", 422, "invalid_body", "capacity"),
        ("POST /v1/hosts", JSON, "{\"id\":\"h h\",\"capacity\":{}}", 422, "invalid_body", "id"),
        ("POST /v1/hosts", JSON, "{\"id\":\"h1\",\"capacity\":{}}", 409, "host_exists", ""),
        ("POST /v1/hosts", JSON, "{\"id\":\"h\",\"capacity\":{\"cpu_millis\":1.5}}", 422, "invalid_body", "capacity.cpu_millis"),
        ("POST /v1/hosts", JSON, "{\"id\":\"h\",\"capacity\":{\"ram\":1}}", 422, "invalid_body", "capacity.ram"),
        ("POST /v1/hosts:bulk", NDJSON, "{\"id\":\"h\",\"capacity\":{}}\n{\"id\":\"i\"}", 422, "invalid_body", "[1].capacity"),
        ("PUT /v1/hosts/other", JSON, GOOD, 400, "invalid_path", ""),
        ("PUT /v1/hosts/h1", JSON, "{\"id\":\"h1\",\"capacity\":{},\"free\":{}}", 422, "invalid_body", "free"),
        ("DELETE /v1/hosts/unknown", "", "", 404, "host_not_found", ""),
        ("DELETE /v1/hosts/h1", "If-Match: \"99\"", "", 409, "concurrent_update", ""),
        ("DELETE /v1/hosts/h1", "If-Match: latest", "", 400, "invalid_header", ""),
        ("DELETE /v1/hosts/h1?force=true", "", "", 400, "invalid_query", ""),
        ("POST /v1/hosts/unknown/cordon", "", "", 404, "host_not_found", ""),
        ("POST /v1/hosts/unknown/heartbeat", "", "", 404, "host_not_found", ""),
        ("POST /v1/placements", JSON, "{}", 422, "invalid_body", "vm"),
        ("POST /v1/placements", JSON, "{\"vm\":{\"id\":\"v\",\"demand\":{\"cpu_millis\":-1}}}", 422, "invalid_body", "vm.demand.cpu_millis"),
        ("POST /v1/placements", JSON, "{\"vm\":{\"id\":\"v\",\"demand\":{}},\"strategy\":\"magic\"}", 422, "invalid_body", "strategy"),
        ("POST /v1/placements", JSON, "{\"vm\":{\"id\":\"v\",\"demand\":{}},\"hold_ttl_ms\":1}", 422, "invalid_body", "hold_ttl_ms"),
        ("POST /v1/placements:batch", JSON, "{\"vms\":[]}", 422, "invalid_body", "vms"),
        ("POST /v1/placements:batch", JSON, "{\"vms\":[{\"id\":\"a\",\"demand\":{}},{\"id\":\"a\",\"demand\":{}}]}", 422, "invalid_body", "vms[1].id"),
        ("POST /v1/vms", JSON, "{\"id\":\"v\",\"demand\":{}}", 422, "invalid_body", "host_id"),
        ("POST /v1/vms", JSON, "{\"id\":\"v\",\"demand\":{},\"host_id\":\"nowhere\"}", 404, "host_not_found", "host_id"),
        ("PATCH /v1/vms/unknown", JSON, "{\"demand\":{\"cpu_millis\":1}}", 404, "vm_not_found", ""),
        ("PATCH /v1/vms/unknown", JSON, "{\"demand\":{}}", 422, "invalid_body", "demand"),
        ("DELETE /v1/vms/unknown", "", "", 404, "vm_not_found", ""),
        ("POST /v1/reservations/r1/confirm", "", "", 404, "reservation_not_found", ""),
        ("POST /v1/reservations/r999/release", "", "", 404, "reservation_not_found", ""),
        ("POST /v1/explain", JSON, "{}", 422, "invalid_body", "vm"),
        ("POST /v1/explain", JSON, "{\"vm_id\":\"unknown\"}", 404, "vm_not_found", ""),
        ("POST /v1/explain", JSON, "{\"vm\":{\"id\":\"v\",\"demand\":{}},\"host_id\":\"nowhere\"}", 404, "host_not_found", ""),
        ("POST /v1/explain", JSON, "{\"vm\":{\"id\":\"v\",\"demand\":{}},\"hots_id\":\"h1\"}", 422, "invalid_body", "hots_id"),
        ("GET /v1/explain", "", "", 405, "method_not_allowed", ""),
        ("POST /v1/validate", JSON, "[]", 422, "invalid_body", "$"),
        ("POST /v1/validate", JSON, "{\"waves\":[{\"steps\":[{\"action\":\"move\"}]}]}", 422, "invalid_body", "waves[0].steps[0].vm_id"),
        ("POST /v1/validate", JSON, "{\"plan\":[]}", 422, "invalid_body", "plan"),
        ("GET /v1/capacity/slots?shape=ram:1", "", "", 400, "invalid_query", ""),
        ("GET /v1/capacity/slots?shape=cpu_millis", "", "", 400, "invalid_query", ""),
        ("GET /v1/capacity/slots?shapes=cpu_millis:1", "", "", 400, "invalid_query", ""),
        ("GET /v1/capacity/slots?pool=a%20b", "", "", 400, "invalid_query", ""),
        ("PUT /v1/weights", JSON, "{\"fit\":0}", 422, "invalid_body", "$"),
        ("PUT /v1/weights", JSON, "{\"speed\":1}", 422, "invalid_body", "speed"),
        ("PUT /v1/weights", "If-Match: \"77\"\r\nContent-Type: application/json", "{\"fit\":1}", 409, "concurrent_update", ""),
        ("POST /v1/hosts", "Idempotency-Key: \r\nContent-Type: application/json", GOOD, 400, "invalid_header", ""),
        ("GET /v1/weights", "X-Request-Timeout-Ms: never", "", 400, "invalid_header", ""),
    ];
    for (line, header, body, status, code, path) in table {
        let headers: Vec<&str> =
            [*header].into_iter().filter(|header| !header.is_empty()).collect();
        let answer = world.ask(line, &headers, body).await;
        let problem = answer.json();
        assert_eq!(answer.status, *status, "{line} {body}: {problem}");
        assert_eq!(answer.header("content-type"), Some("application/problem+json"), "{line}");
        assert_eq!(
            (&problem["code"], &problem["status"]),
            (&json!(code), &json!(status)),
            "{line}"
        );
        assert_eq!(problem["request_id"].as_str(), answer.header("x-request-id"), "{line}");
        assert!(!problem["hint"].as_str().unwrap_or_default().is_empty(), "{line}: {problem}");
        assert_eq!(problem["errors"][0]["path"].as_str().unwrap_or(""), *path, "{line} {body}");
    }
    assert_eq!(world.get("/v1/state/hash").await.json(), before, "nothing reached the log");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_method_is_told_the_right_ones() {
    let world = World::start().await;
    let answer = world.ask("DELETE /v1/weights", &[], "").await;
    let allowed = answer.header("allow").expect("an Allow header");
    assert!(allowed.contains("GET") && allowed.contains("PUT"), "{allowed}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_that_are_too_large_are_refused_before_they_are_read() {
    let world = World::start().await;
    let head = "POST /v1/hosts HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\
                Content-Type: application/json\r\n";
    let announced = format!("{head}Content-Length: 1048577\r\n\r\n");
    assert_eq!(world.raw(announced.as_bytes()).await.status, 413);
    let chunk = "x".repeat(0x8000);
    let mut chunked = format!("{head}Transfer-Encoding: chunked\r\n\r\n");
    for _ in 0..33 {
        chunked.push_str(&format!("8000\r\n{chunk}\r\n"));
    }
    chunked.push_str("0\r\n\r\n");
    assert_eq!(world.raw(chunked.as_bytes()).await.status, 413);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_stops_is_a_timeout() {
    let world = World::start().await;
    let half = "POST /v1/hosts HTTP/1.1\r\nHost: t\r\nX-Request-Timeout-Ms: 200\r\n\
                Connection: close\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{\"id\"";
    let answer = world.raw(half.as_bytes()).await;
    assert_eq!(answer.status, 408, "{answer:?}");
    assert_eq!(answer.json()["code"], "request_timeout");
    world.stop().await;
}
