//! What callers come for: hosts in, VMs placed, read, resized, removed.

use crate::world::World;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const PLACE: &str = r#"{"vm":{"id":"web-1","demand":{"cpu_millis":2000,"memory_mib":4096}}}"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_vm_is_placed_read_resized_and_removed() {
    let world = World::start().await;
    world.host("h1", 4).await;
    world.host("h2", 1).await;

    let placed = world.send("POST /v1/placements", PLACE).await;
    assert_eq!(placed.status, 201, "{placed:?}");
    let decision = placed.json();
    assert_eq!(decision["outcome"], "placed");
    assert_eq!(decision["host_id"], "h1");
    assert_eq!(decision["rejections"], json!({"capacity:cpu_millis": 1}));
    let parts = decision["breakdown"].as_object().expect("a breakdown").values();
    let sum: i64 = parts.map(|part| part.as_i64().expect("an integer")).sum();
    assert_eq!(Some(sum), decision["score"].as_i64());

    let again = world.send("POST /v1/placements", PLACE).await;
    assert_eq!((again.status, again.json()), (201, decision.clone()), "the same answer");
    let other = PLACE.replace("4096", "4097");
    let conflict = world.send("POST /v1/placements", &other).await;
    assert_eq!((conflict.status, &conflict.json()["code"]), (409, &json!("vm_exists")));

    let id = decision["decision_id"].as_str().expect("an id");
    assert_eq!(world.get(&format!("/v1/decisions/{id}")).await.json(), decision);
    let host = world.get("/v1/hosts/h1").await.json();
    assert_eq!(host["allocated"]["cpu_millis"], 2_000);
    assert_eq!(host["free"]["cpu_millis"], 2_000);
    assert_eq!(host["capacity"]["gpu_slots"], 0);
    assert_eq!(host["vm_count"], 1);
    let capacity = world.get("/v1/cluster/capacity").await.json();
    assert_eq!(capacity["capacity"]["cpu_millis"], 5_000);
    assert_eq!(capacity["free"]["cpu_millis"], 3_000);

    let vm = world.get("/v1/vms/web-1").await;
    assert_eq!((vm.json()["host_id"].as_str(), vm.header("etag")), (Some("h1"), Some("\"1\"")));
    let grown = world.send("PATCH /v1/vms/web-1", r#"{"demand":{"cpu_millis":3000}}"#).await.json();
    assert_eq!(
        (&grown["outcome"], &grown["demand"]["memory_mib"]),
        (&json!("resized"), &json!(4096))
    );
    let refused = world.send("PATCH /v1/vms/web-1", r#"{"demand":{"cpu_millis":9000}}"#).await;
    assert_eq!(refused.status, 200);
    assert_eq!(refused.json()["outcome"], "does_not_fit");
    assert_eq!(refused.json()["shortfall"], json!({"cpu_millis": 5_000}));
    assert_eq!(refused.json()["alternatives"], serde_json::Value::Null, "nobody has so much");

    let blocked = world.ask("DELETE /v1/hosts/h1", &[], "").await;
    assert_eq!((blocked.status, &blocked.json()["code"]), (409, &json!("host_not_empty")));
    assert_eq!(world.ask("DELETE /v1/vms/web-1", &[], "").await.status, 204);
    assert_eq!(world.get("/v1/vms/web-1").await.status, 404);
    assert_eq!(world.ask("DELETE /v1/hosts/h1", &[], "").await.status, 204);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_room_is_an_answer_with_reasons() {
    let world = World::start().await;
    world.host("h1", 1).await;
    let rejected = world.send("POST /v1/placements", PLACE).await;
    assert_eq!(rejected.status, 200);
    let answer = rejected.json();
    assert_eq!((&answer["outcome"], &answer["host_id"]), (&json!("rejected"), &json!(null)));
    assert_eq!(answer["rejections"], json!({"capacity:cpu_millis": 1}));
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_changes_nothing() {
    let world = World::start().await;
    world.host("h1", 4).await;
    let hash = world.get("/v1/state/hash").await.json();
    let dry = world.send("POST /v1/placements?dry_run=true", PLACE).await;
    assert_eq!((dry.status, &dry.json()["host_id"]), (200, &json!("h1")));
    let host = r#"{"id":"h9","capacity":{"cpu_millis":1}}"#;
    assert_eq!(world.send("POST /v1/hosts?dry_run=true", host).await.json()["id"], "h9");
    let smaller = r#"{"id":"h1","capacity":{"cpu_millis":1000}}"#;
    let replaced = world.send("PUT /v1/hosts/h1?dry_run=true", smaller).await.json();
    assert_eq!(
        (&replaced["free"]["cpu_millis"], &replaced["generation"]),
        (&json!(1000), &json!(2))
    );
    let cordoned = world.send("POST /v1/hosts/h1/cordon?dry_run=true", "").await.json();
    assert_eq!((&cordoned["state"], &cordoned["generation"]), (&json!("cordoned"), &json!(2)));
    let open = world.send("POST /v1/hosts/h1/uncordon?dry_run=true", "").await.json();
    assert_eq!((&open["state"], &open["generation"]), (&json!("available"), &json!(1)));
    let adopt = r#"{"id":"a","demand":{"cpu_millis":9000},"host_id":"h1"}"#;
    let adopted = world.send("POST /v1/vms?dry_run=true", adopt).await.json();
    assert_eq!(adopted["over_capacity"], true);
    assert_eq!(world.ask("DELETE /v1/hosts/h1?dry_run=true", &[], "").await.status, 204);
    assert_eq!(world.get("/v1/state/hash").await.json(), hash);
    let past = world.get("/v1/state/hash?revision=1").await.json();
    assert_ne!(past["hash"], hash["hash"]);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn reservations_are_confirmed_or_released() {
    let world = World::start().await;
    world.host("h1", 4).await;
    let hold = PLACE.replace("}}}", "}},\"hold_ttl_ms\":60000}");
    let held = world.send("POST /v1/placements", &hold).await.json();
    let id = held["reservation_id"].as_str().expect("a reservation").to_owned();
    assert_eq!(world.get(&format!("/v1/reservations/{id}")).await.json()["state"], "held");
    let confirmed = world.send(&format!("POST /v1/reservations/{id}/confirm"), "").await;
    assert_eq!((confirmed.status, &confirmed.json()["state"]), (200, &json!("confirmed")));
    let hold = hold.replace("web-1", "web-2");
    let held = world.send("POST /v1/placements", &hold).await.json();
    let id = held["reservation_id"].as_str().expect("a reservation").to_owned();
    for _ in 0..2 {
        let released = world.send(&format!("POST /v1/reservations/{id}/release"), "").await;
        assert_eq!((released.status, &released.json()["state"]), (200, &json!("released")));
    }
    assert_eq!(world.get("/v1/vms/web-2").await.status, 404);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn retries_and_races_are_told_apart() {
    let world = World::start().await;
    world.host("h1", 8).await;
    let key = ["Content-Type: application/json", "Idempotency-Key: k1"];
    let first = world.ask("POST /v1/placements", &key, PLACE).await;
    let second = world.ask("POST /v1/placements", &key, PLACE).await;
    assert_eq!(first.json(), second.json());
    let other = PLACE.replace("web-1", "web-2");
    let reused = world.ask("POST /v1/placements", &key, &other).await;
    assert_eq!((reused.status, &reused.json()["code"]), (422, &json!("idempotency_key_reused")));
    let stale = world.ask("DELETE /v1/vms/web-1", &["If-Match: \"7\""], "").await;
    assert_eq!(stale.status, 409);
    assert_eq!(
        (&stale.json()["code"], &stale.json()["current"]),
        (&json!("concurrent_update"), &json!(1))
    );
    let weights = world.get("/v1/weights").await;
    assert_eq!(weights.json(), json!({"fit":30,"affinity":20,"load":20,"locality":20,"cost":10}));
    let tag = format!("If-Match: {}", weights.header("etag").expect("an etag"));
    let headers = ["Content-Type: application/json", tag.as_str()];
    let set = world.ask("PUT /v1/weights", &headers, r#"{"fit":1,"cost":2}"#).await;
    assert_eq!(set.json(), json!({"fit":1,"affinity":0,"load":0,"locality":0,"cost":2}));
    assert_eq!(world.ask("PUT /v1/weights", &headers, r#"{"fit":9}"#).await.status, 409);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bulk_loads_batches_and_pages() {
    let world = World::start().await;
    let hosts: String = (0..600)
        .map(|n| format!("{{\"id\":\"h{n:03}\",\"capacity\":{{\"cpu_millis\":4000}}}}\n"))
        .collect();
    let ndjson = ["Content-Type: application/x-ndjson"];
    let loaded = world.ask("POST /v1/hosts:bulk", &ndjson, &hosts).await.json();
    assert_eq!((&loaded["accepted"], &loaded["failed"]), (&json!(600), &json!(0)));
    let vms = "{\"id\":\"a\",\"demand\":{\"cpu_millis\":1},\"host_id\":\"h000\"}\n\
               {\"id\":\"b\",\"demand\":{\"cpu_millis\":1},\"host_id\":\"nowhere\"}\n";
    let adopted = world.ask("POST /v1/vms:bulk", &ndjson, vms).await.json();
    assert_eq!(
        (&adopted["accepted"], &adopted["failures"][0]["code"]),
        (&json!(1), &json!("host_not_found"))
    );
    let mut seen = Vec::new();
    let mut path = "/v1/hosts?limit=250".to_owned();
    loop {
        let page = world.get(&path).await.json();
        let items = page["items"].as_array().expect("items").clone();
        seen.extend(items.iter().map(|host| host["id"].as_str().expect("an id").to_owned()));
        let Some(cursor) = page["next_cursor"].as_str() else { break };
        path = format!("/v1/hosts?limit=250&cursor={cursor}");
    }
    assert_eq!(seen.len(), 600);
    assert!(seen.is_sorted());
    let vm = |n: u32, cpu: u32| format!(r#"{{"id":"v{n}","demand":{{"cpu_millis":{cpu}}}}}"#);
    let batch = format!(r#"{{"vms":[{},{}],"atomic":false}}"#, vm(1, 4000), vm(2, 5000));
    let placed = world.send("POST /v1/placements:batch", &batch).await.json();
    assert_eq!((&placed["outcome"], &placed["placed"]), (&json!("partial"), &json!(1)));
    let batch = format!(r#"{{"vms":[{},{}],"atomic":true}}"#, vm(3, 4000), vm(4, 5000));
    let placed = world.send("POST /v1/placements:batch", &batch).await.json();
    assert_eq!((&placed["outcome"], &placed["placed"]), (&json!("rejected"), &json!(0)));
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_can_be_followed() {
    let world = World::start().await;
    let start = world.get("/v1/state/hash").await.json()["revision"].as_u64().expect("a number");
    let mut stream = world.connect().await;
    let ask = "GET /v1/events HTTP/1.1\r\nHost: test\r\n\r\n";
    stream.write_all(ask.as_bytes()).await.expect("sent");
    let mut seen = [0; 4_096];
    let count = stream.read(&mut seen).await.expect("the head of the stream");
    assert!(String::from_utf8_lossy(&seen[..count]).contains("text/event-stream"));
    let path = format!("/v1/events?wait=20s&since={start}");
    let (page, ()) = tokio::join!(world.get(&path), world.host("h1", 4));
    assert_eq!(page.json()["events"][0]["kind"], "host_put");
    assert_eq!(page.json()["revision"], start + 1);
    let mut text = String::new();
    while !text.contains("host_put") {
        let count = stream.read(&mut seen).await.expect("an event");
        assert_ne!(count, 0, "the stream ended: {text}");
        text.push_str(&String::from_utf8_lossy(&seen[..count]));
    }
    assert!(text.contains(&format!("id: {}", start + 1)), "{text}");
    let empty = world.get(&format!("/v1/events?wait=10ms&since={}", start + 1)).await.json();
    assert_eq!(empty, json!({"events": [], "revision": start + 1}));
    drop(stream);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hosts_are_cordoned_and_heard() {
    let world = World::start().await;
    world.host("rack1/h1", 4).await;
    let path = "/v1/hosts/rack1%2Fh1";
    let cordoned = world.send(&format!("POST {path}/cordon"), "").await;
    assert_eq!((cordoned.status, &cordoned.json()["state"]), (200, &json!("cordoned")));
    let rejected = world.send("POST /v1/placements", PLACE).await.json();
    assert_eq!(rejected["rejections"], json!({"host_state": 1}));
    let uncordoned = world.send(&format!("POST {path}/uncordon"), "").await;
    assert_eq!(uncordoned.json()["state"], "available");
    assert_eq!(world.send(&format!("POST {path}/heartbeat"), "").await.status, 204);
    assert_eq!(world.send("POST /v1/hosts/nobody/heartbeat", "").await.status, 404);
    let ready = world.get("/ready").await;
    assert_eq!((ready.status, &ready.json()["status"]), (200, &json!("ok")));
    assert_eq!(world.get("/healthz").await.status, 200);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_resize_that_does_not_fit_names_the_hosts_where_it_would() {
    let world = World::start().await;
    world.host("h1", 4).await;
    let placed = r#"{"vm":{"id":"a","demand":{"cpu_millis":1000},"groups":["g"]}}"#;
    assert_eq!(world.send("POST /v1/placements", placed).await.status, 201);
    for (host, cpus) in [("h2", 8), ("h3", 16), ("h4", 6)] {
        world.host(host, cpus).await;
    }
    assert_eq!(world.ask("POST /v1/hosts/h3/cordon", &[], "").await.status, 200);
    let refused = world.send("PATCH /v1/vms/a", r#"{"demand":{"cpu_millis":5000}}"#).await.json();
    assert_eq!(refused["outcome"], "does_not_fit");
    assert_eq!(refused["shortfall"], json!({"cpu_millis": 1_000}));
    let hosts = refused["alternatives"].as_array().expect("some").iter();
    let mut hosts: Vec<&str> = hosts.filter_map(|it| it["host_id"].as_str()).collect();
    hosts.sort_unstable();
    assert_eq!(hosts, ["h2", "h4"], "h1 is where it is, h3 takes nobody");
    assert_eq!(world.get("/v1/vms/a").await.json()["demand"]["cpu_millis"], 1_000);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_resize_gets_its_first_answer_whatever_others_did_since() {
    let world = World::start().await;
    world.host("h1", 8).await;
    let placed = r#"{"vm":{"id":"a","demand":{"cpu_millis":1000,"memory_mib":64}}}"#;
    assert_eq!(world.send("POST /v1/placements", placed).await.status, 201);
    let key = ["Idempotency-Key: k-1"];
    let resize = async |headers: &[&str], body: &str| {
        let headers = [headers, &["Content-Type: application/json"]].concat();
        world.ask("PATCH /v1/vms/a", &headers, body).await
    };
    let first = resize(&key, r#"{"demand":{"cpu_millis":2000}}"#).await;
    assert_eq!(first.json()["demand"], json!({"cpu_millis": 2_000, "memory_mib": 64}));
    resize(&[], r#"{"demand":{"cpu_millis":500,"memory_mib":128}}"#).await;
    let again = resize(&key, r#"{"demand":{"cpu_millis":2000}}"#).await;
    assert_eq!((again.status, again.json()), (200, first.json()));
    assert_eq!(world.get("/v1/vms/a").await.json()["demand"]["cpu_millis"], 500);
    let other = resize(&key, r#"{"demand":{"cpu_millis":2001}}"#).await;
    assert_eq!((other.status, &other.json()["code"]), (422, &json!("idempotency_key_reused")));
    world.stop().await;
}
