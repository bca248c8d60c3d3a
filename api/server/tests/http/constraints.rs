//! Constraints over HTTP: every example is played, and what is installed can be read and removed.

use crate::world::World;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;

const TWO_EACH: &str = r#"{"type":"limit","max":2}"#;

fn examples() -> Vec<(String, Value)> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../policies/constraints");
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).expect("the examples are there") {
        let path = entry.expect("readable").path();
        let text = std::fs::read_to_string(&path).expect("UTF-8");
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        found.push((name, serde_json::from_str(&text).expect("JSON")));
    }
    found.sort_by(|one, other| one.0.cmp(&other.0));
    found
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().map_or(&[], Vec::as_slice)
}

/// Installs a constraint of an example, whose name goes into the path.
async fn install(world: &World, constraint: &Value) -> crate::world::Answer {
    let mut body = constraint.clone();
    let name = body.as_object_mut().and_then(|body| body.remove("name")).expect("a name");
    let line = format!("PUT /v1/constraints/{}", name.as_str().expect("text"));
    world.send(&line, &body.to_string()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn every_example_does_what_it_says() {
    let mut shown = BTreeSet::new();
    for (name, example) in examples() {
        let world = World::start().await;
        for host in list(&example, "hosts") {
            let answer = world.send("POST /v1/hosts", &host.to_string()).await;
            assert_eq!(answer.status, 201, "{name}: {answer:?}");
        }
        for constraint in list(&example, "constraints") {
            let answer = install(&world, constraint).await;
            assert_eq!(answer.status, 201, "{name}: {answer:?}");
            shown.insert(constraint["type"].as_str().expect("a type").to_owned());
        }
        for (number, step) in list(&example, "steps").iter().enumerate() {
            let what = format!("{name}, step {number}");
            if step["constraint"].is_object() {
                let answer = install(&world, &step["constraint"]).await;
                assert_eq!(answer.status, 409, "{what}: {answer:?}");
                assert_eq!(answer.json()["code"], "constraints_contradict", "{what}");
                assert_eq!(answer.json()["conflicts"], step["conflicts"], "{what}");
                continue;
            }
            let body = json!({"vm": step["vm"]}).to_string();
            let answer = world.send("POST /v1/placements", &body).await.json();
            assert_eq!(answer["host_id"], step["host_id"], "{what}: {answer}");
            if step["rejections"].is_object() {
                assert_eq!(answer["rejections"], step["rejections"], "{what}: {answer}");
            }
        }
        world.stop().await;
    }
    let types = wire::constraint_types();
    let all: BTreeSet<String> = types.iter().map(|kind| kind.kind.to_string()).collect();
    assert_eq!(shown, all, "every type has an example");
}

#[tokio::test(flavor = "multi_thread")]
async fn constraints_are_installed_read_changed_and_removed() {
    let world = World::start().await;
    world.host("h1", 8).await;
    let dry = world.send("PUT /v1/constraints/two?dry_run=true", TWO_EACH).await;
    assert_eq!((dry.status, &dry.json()["generation"]), (200, &json!(1)));
    assert_eq!(world.get("/v1/constraints/two").await.status, 404);

    let made = world.send("PUT /v1/constraints/two", TWO_EACH).await;
    assert_eq!((made.status, made.header("etag")), (201, Some("\"1\"")), "{made:?}");
    let read = world.get("/v1/constraints/two").await;
    let expect = json!({"name":"two","generation":1,"type":"limit","level":"host","max":2});
    assert_eq!((read.json(), read.header("etag")), (expect.clone(), Some("\"1\"")));
    let same = world.send("PUT /v1/constraints/two", TWO_EACH).await;
    assert_eq!((same.status, same.header("etag")), (200, Some("\"1\"")), "nothing is new");

    let json = "Content-Type: application/json";
    let three = TWO_EACH.replace('2', "3");
    let put = "PUT /v1/constraints/two";
    let stale = world.ask(put, &[json, "If-Match: \"7\""], &three).await;
    assert_eq!((stale.status, &stale.json()["code"]), (409, &json!("concurrent_update")));
    let headers = [json, "If-Match: \"1\"", "Idempotency-Key: once"];
    let changed = world.ask(put, &headers, &three).await;
    assert_eq!((changed.status, &changed.json()["generation"]), (200, &json!(2)));
    let again = world.ask(put, &headers, &three).await;
    assert_eq!((again.status, again.json()), (200, changed.json()), "the same answer");

    let listed = world.get("/v1/constraints").await.json();
    assert_eq!(
        listed["items"],
        json!([{"name":"two","generation":2,"type":"limit","level":"host","max":3}])
    );
    let limit = list(&listed, "types").iter().find(|kind| kind["type"] == "limit");
    let max = list(limit.expect("the type"), "parameters").iter().find(|it| it["name"] == "max");
    assert_eq!(max.expect("the field")["unit"], "VMs");

    let remove = "DELETE /v1/constraints/two";
    let dry = world.ask("DELETE /v1/constraints/two?dry_run=true", &[], "").await;
    assert_eq!(dry.status, 204);
    assert_eq!(world.ask(remove, &["If-Match: \"1\""], "").await.status, 409);
    assert_eq!(world.ask(remove, &["If-Match: \"2\""], "").await.status, 204);
    let gone = world.ask(remove, &[], "").await;
    assert_eq!((gone.status, &gone.json()["code"]), (404, &json!("constraint_not_found")));
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_with_a_constraint_is_named_by_its_field() {
    let world = World::start().await;
    let check = async |body: &str, path: &str, code: &str| {
        let answer = world.send("PUT /v1/constraints/c", body).await;
        let fault = &answer.json()["errors"][0];
        assert_eq!(
            (answer.status, &fault["path"], &fault["code"]),
            (422, &json!(path), &json!(code))
        );
        assert!(fault["hint"].as_str().is_some_and(|hint| !hint.is_empty()), "{fault}");
    };
    check(r#"{"type":"limt","max":2}"#, "type", "unknown_choice").await;
    check(r#"{"type":"limit"}"#, "max", "missing_field").await;
    check(r#"{"type":"limit","max":0}"#, "max", "number_too_small").await;
    check(r#"{"type":"limit","max":1,"min":2}"#, "min", "unknown_field").await;
    check(r#"{"type":"limit","max":1,"vms":{"group":"g"}}"#, "vms.tenant", "missing_field").await;
    let within = r#"{"type":"fence","hosts":{"within":[{"level":"zone","names":[]}]}}"#;
    check(within, "hosts.within[0].names", "missing_field").await;
    let both = r#"{"type":"spare","keep_hosts":1,"keep_permille":5}"#;
    check(both, "$", "conflicting_fields").await;
    let nowhere = r#"{"type":"network","vms":{},"to":{},"over":"x","bandwidth_mbps":1}"#;
    check(nowhere, "over", "invalid_value").await;
    let twice = r#"{"type":"links","level":"zone","links":[
        {"a":"a","b":"b","latency_us":1,"bandwidth_mbps":1},
        {"a":"b","b":"a","latency_us":1,"bandwidth_mbps":1}]}"#;
    check(twice, "links", "invalid_value").await;
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn links_stay_while_they_are_used_and_a_lacking_fleet_is_a_warning() {
    let world = World::start().await;
    world.host("h1", 8).await;
    let links = r#"{"type":"links","level":"zone","links":[]}"#;
    let near = r#"{"type":"network","vms":{},"to":{},"over":"lan","max_latency_us":1}"#;
    assert_eq!(world.send("PUT /v1/constraints/lan", links).await.status, 201);
    assert_eq!(world.send("PUT /v1/constraints/near", near).await.status, 201);
    let used = world.ask("DELETE /v1/constraints/lan", &[], "").await;
    assert_eq!((used.status, &used.json()["code"]), (409, &json!("constraint_in_use")));
    assert!(used.json()["detail"].as_str().is_some_and(|it| it.contains("near")), "{used:?}");
    assert_eq!(world.ask("DELETE /v1/constraints/near", &[], "").await.status, 204);
    assert_eq!(world.ask("DELETE /v1/constraints/lan", &[], "").await.status, 204);

    let wide = r#"{"type":"min_domains","level":"zone","min":3}"#;
    let answer = world.send("PUT /v1/constraints/wide", wide).await;
    assert_eq!((answer.status, list(&answer.json(), "warnings").len()), (201, 1), "{answer:?}");
    world.stop().await;
}
