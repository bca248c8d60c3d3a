//! Policies as a resource: every route, and what each refuses.

use crate::world::{Answer, World};
use serde_json::{Value, json};

const NOT_RACK_A: &str = r#"policy "Not rack A" {
  id = "not-rack-a"
  description = "Keeps VMs off a rack."
  parameters {
    param "rack" { type = "string" default = "a" description = "the rack" allowed = ["a", "b"] }
    param "bonus" { type = "int" default = 5 min = 0 max = 100 }
  }
  rules {
    rule "rack" { when { node.rack == param.rack } then { filter "rack is closed" } }
    rule "room" { when { node.available_cpu > 0 } then { score param.bonus "room" } }
  }
}"#;

pub(crate) fn filter(id: &str, when: &str) -> String {
    format!(
        r#"policy "Policy {id}" {{ id = "{id}" rules {{ rule "r" {{ when {{ {when} }} then {{ filter "no" }} }} }} }}"#
    )
}

pub(crate) async fn rack_host(world: &World, id: &str, rack: &str, cores: u32) {
    let body = json!({
        "id": id, "rack": rack,
        "capacity": {"cpu_millis": cores * 1000, "memory_mib": 65536},
    });
    let answer = world.send("POST /v1/hosts", &body.to_string()).await;
    assert_eq!(answer.status, 201, "{answer:?}");
}

async fn register(world: &World, text: &str, activate: bool) -> Answer {
    let body = json!({"text": text, "activate": activate});
    world.send("POST /v1/policies", &body.to_string()).await
}

async fn place(world: &World, id: &str) -> Value {
    let body = json!({"vm": {"id": id, "demand": {"cpu_millis": 100}}});
    world.send("POST /v1/placements", &body.to_string()).await.json()
}

fn etag(answer: &Answer) -> String {
    answer.header("etag").expect("an ETag").to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_is_registered_activated_tuned_and_taken_back() {
    let world = World::start().await;
    rack_host(&world, "h1", "a", 8).await;
    rack_host(&world, "h2", "b", 8).await;
    let made = register(&world, NOT_RACK_A, false).await;
    assert_eq!(made.status, 201, "{made:?}");
    let body = made.json();
    assert_eq!(body["policy"]["status"], "inactive");
    assert_eq!(body["policy"]["parameters"][0]["value"], "a");
    assert_eq!(body["policy"]["parameters"][0]["allowed"], json!(["a", "b"]));
    assert_eq!(body["policy"]["parameters"][1]["max"], 100.0);
    assert_eq!(body["changed"], true);
    assert_eq!(place(&world, "v0").await["host_id"], "h1", "it is not in force yet");

    let line = "POST /v1/policies/not-rack-a/activate";
    let active = world.send(line, r#"{"priority":7,"parameter_values":{"bonus":9}}"#).await;
    assert_eq!(active.status, 200, "{active:?}");
    let body = active.json();
    assert_eq!(body["policy"]["priority"], 7);
    assert_eq!(body["dry_run"]["vms"], 1);
    assert_eq!(body["dry_run"]["vms_off_their_host"], 1, "{body}");
    assert_eq!(body["dry_run"]["rules"][0]["hosts_removed"], 1);
    let placed = place(&world, "v1").await;
    assert_eq!(placed["host_id"], "h2");
    assert_eq!(placed["policy_revision"], body["policy_revision"]);

    let tag = etag(&active);
    let tune = "PATCH /v1/policies/not-rack-a/parameters";
    let headers = ["Content-Type: application/json", &format!("If-Match: {tag}")];
    let tuned = world.ask(tune, &headers, r#"{"parameter_values":{"rack":"b"}}"#).await;
    assert_eq!(tuned.status, 200, "{tuned:?}");
    let parameters = tuned.json()["policy"]["parameters"].clone();
    assert_eq!((&parameters[0]["value"], &parameters[1]["value"]), (&json!("b"), &json!(9)));
    let stale = world.ask(tune, &headers, r#"{"parameter_values":{"rack":"a"}}"#).await;
    assert_eq!((stale.status, stale.json()["code"].as_str()), (409, Some("concurrent_update")));
    assert_eq!(place(&world, "v2").await["host_id"], "h1");
    let reset = world.send(tune, r#"{"parameter_values":{"rack":null},"priority":1}"#).await.json();
    assert_eq!(reset["policy"]["parameters"][0]["value"], "a");
    assert_eq!(reset["policy"]["priority"], 1);

    let text = NOT_RACK_A.replace("\"Keeps", "\"Still keeps");
    let put = world.send("PUT /v1/policies/not-rack-a", &json!({"dsl": text}).to_string()).await;
    assert_eq!((put.status, &put.json()["policy"]["version"]), (200, &json!(2)));
    assert_eq!(put.json()["policy"]["status"], "active", "and stays in force");
    let again = world.send("PUT /v1/policies/not-rack-a", &json!({"dsl": text}).to_string()).await;
    assert_eq!(again.json()["changed"], false);
    let versions = world.get("/v1/policies/not-rack-a/versions").await.json();
    assert_eq!(versions["items"].as_array().map(Vec::len), Some(2));
    let first = world.get("/v1/policies/not-rack-a/versions/1").await.json();
    assert_eq!(first["text"], NOT_RACK_A);
    let back = world.send("POST /v1/policies/not-rack-a/rollback", r#"{"version":1}"#).await;
    assert_eq!(back.json()["policy"]["version"], 3);
    assert_eq!(world.get("/v1/policies/not-rack-a").await.json()["text"], NOT_RACK_A);

    let off = world.ask("POST /v1/policies/not-rack-a/deactivate", &[], "").await;
    assert_eq!(off.json()["policy"]["status"], "inactive");
    let removed = world.ask("DELETE /v1/policies/not-rack-a", &[], "").await;
    assert_eq!(removed.status, 204, "{removed:?}");
    let audit = world.get("/v1/policies/not-rack-a/audit").await.json();
    let actions: Vec<&str> = audit["items"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|entry| entry["action"].as_str())
        .collect();
    let expected =
        ["remove", "deactivate", "rollback", "update", "tune", "tune", "activate", "register"];
    assert_eq!(actions, expected);
    assert_eq!(world.get("/v1/policies/audit").await.json()["items"], audit["items"]);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_done_is_refused_with_the_reason() {
    let world = World::start().await;
    register(&world, NOT_RACK_A, true).await;
    let check = async |line: &str, body: &str, status: u16, code: &str, part: &str| {
        let answer = world.send(line, body).await;
        let problem = answer.json();
        assert_eq!(
            (answer.status, problem["code"].as_str()),
            (status, Some(code)),
            "{line} {body}"
        );
        assert!(answer.text.contains(part), "{line}: {}", answer.text);
    };
    let text = |text: &str| json!({ "text": text }).to_string();
    check("POST /v1/policies", &text(NOT_RACK_A), 409, "policy_exists", "already exists").await;
    check("POST /v1/policies", "{}", 422, "invalid_body", "there is no").await;
    check("POST /v1/policies", r#"{"dsl":"a","yaml":"b"}"#, 422, "invalid_body", "one text").await;
    check("POST /v1/policies", r#"{"text":"a","prority":1}"#, 422, "invalid_body", "priority")
        .await;
    check("POST /v1/policies", r#"{"text":"a","priority":1}"#, 422, "invalid_body", "activate")
        .await;
    check(
        "POST /v1/policies",
        &text(&filter("audit", "node.rack == \"a\"")),
        422,
        "policy_refused",
        "route",
    )
    .await;
    let put = "PUT /v1/policies/other";
    check(put, &text(NOT_RACK_A), 422, "policy_refused", "not of other").await;
    for line in ["activate", "rollback"] {
        let body = if line == "rollback" { r#"{"version":1}"# } else { "{}" };
        check(&format!("POST /v1/policies/none/{line}"), body, 404, "policy_not_found", "none")
            .await;
    }
    let activate = "POST /v1/policies/not-rack-a/activate";
    check(activate, r#"{"parameter_values":{"bonus":101}}"#, 422, "policy_refused", "100").await;
    check(activate, r#"{"parameter_values":{"rack":"c"}}"#, 422, "policy_refused", "not one of")
        .await;
    check(activate, r#"{"parameter_values":{"bonus":[1]}}"#, 422, "invalid_body", "bonus").await;
    check(activate, r#"{"parameter_values":{"x":1}}"#, 422, "policy_refused", "bonus").await;
    let roll = "POST /v1/policies/not-rack-a/rollback";
    check(roll, r#"{"version":9}"#, 404, "policy_version_not_found", "version 9").await;
    check("DELETE /v1/policies/not-rack-a", "", 409, "conflict", "deactivate").await;
    world.ask("POST /v1/policies/not-rack-a/deactivate", &[], "").await;
    let tune = "PATCH /v1/policies/not-rack-a/parameters";
    check(tune, r#"{"parameter_values":{"bonus":1}}"#, 409, "conflict", "not active").await;
    for path in ["none", "none/versions", "none/audit", "none/versions/1"] {
        assert_eq!(world.get(&format!("/v1/policies/{path}")).await.status, 404, "{path}");
    }
    assert_eq!(world.get("/v1/policies/not-rack-a/versions/7").await.status, 404);
    let huge = json!({ "text": "x".repeat(600 << 10) }).to_string();
    assert_eq!(world.send("POST /v1/policies", &huge).await.status, 413);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_mistake_of_a_text_is_shown_with_its_place() {
    let world = World::start().await;
    let text = "policy \"Bad\" {\n  rules {\n    rule \"r\" { when { node.cpu < \"x\" } then { filtr \"y\" } }\n  }\n}";
    let refused = register(&world, text, true).await;
    assert_eq!((refused.status, refused.json()["code"].as_str()), (422, Some("policy_refused")));
    let problem = refused.json();
    let found = problem["diagnostics"].as_array().expect("diagnostics");
    assert!(found.iter().all(|found| found["line"] == 3), "{found:?}");
    let said = world.send("POST /v1/policies:validate", &json!({"text": text}).to_string()).await;
    assert_eq!((said.status, &said.json()["valid"]), (200, &json!(false)));
    let errors = said.json()["errors"].clone();
    let hints = errors.as_array().expect("errors").iter().filter(|it| it["hint"].is_string());
    assert!(hints.count() > 0, "{errors}");
    assert_eq!(world.get("/v1/policies").await.json()["items"], json!([]), "nothing is installed");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_text_is_tried_on_the_fleet_before_it_counts() {
    let world = World::start().await;
    for (id, rack) in [("h1", "a"), ("h2", "a"), ("h3", "b")] {
        rack_host(&world, id, rack, 8).await;
    }
    for vm in ["v1", "v2", "v3"] {
        place(&world, vm).await;
    }
    register(&world, &filter("no-a", "node.rack == \"a\""), true).await;
    let text = filter("no-b", "node.rack == \"b\"");
    let said = world.send("POST /v1/policies:validate", &json!({"text": text}).to_string()).await;
    let said = said.json();
    assert_eq!(said["valid"], true);
    assert_eq!(said["dry_run"]["hosts"], 3);
    assert_eq!(said["dry_run"]["vms"], 3);
    assert_eq!(said["dry_run"]["vms_without_host"], 3);
    assert_eq!(said["dry_run"]["without_host"][0], "default/v1");
    let removed: Vec<_> = said["dry_run"]["rules"]
        .as_array()
        .expect("rules")
        .iter()
        .map(|rule| (rule["policy"].as_str(), rule["hosts_removed"].as_u64()))
        .collect();
    assert_eq!(removed, [(Some("no-a"), Some(2)), (Some("no-b"), Some(1))]);
    assert!(said["cost"]["per_host"].as_u64() > Some(0));
    let kinds: Vec<&str> = said["conflicts"]
        .as_array()
        .expect("conflicts")
        .iter()
        .filter_map(|conflict| conflict["kind"].as_str())
        .collect();
    assert!(kinds.contains(&"priority_tie"), "{kinds:?}");
    // A rule that never has a value is refused, and what is in force stays.
    let broken = r#"policy "Broken" { rules { rule "r" { when { node.nothing * 2 > 1 } then { score 1 "x" } } } }"#;
    let refused = register(&world, broken, true).await;
    assert_eq!(refused.status, 422, "{refused:?}");
    assert!(refused.text.contains("rule-1") && refused.text.contains("never fire"), "{refused:?}");
    let said = world.send("POST /v1/policies:validate", &json!({"text": broken}).to_string()).await;
    assert_eq!(said.json()["errors"][0]["code"], "cannot-activate");
    let kept = register(&world, broken, false).await;
    assert_eq!(kept.status, 201, "while it is not active it harms nobody: {kept:?}");
    let list = world.get("/v1/policies").await.json();
    assert_eq!(list["items"].as_array().map(Vec::len), Some(2));
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn conflicts_are_shown_when_they_come_and_as_long_as_they_last() {
    let world = World::start().await;
    register(&world, &filter("not-a", "!(node.rack == \"a\")"), true).await;
    assert_eq!(world.get("/v1/policies/conflicts").await.json()["items"], json!([]));
    let second = register(&world, &filter("not-b", "!(node.rack == \"b\")"), true).await.json();
    let shown = world.get("/v1/policies/conflicts").await.json();
    assert_eq!(second["conflicts"], shown["items"]);
    assert_eq!(shown["items"][0]["kind"], "removes_every_host");
    assert_eq!(shown["items"][0]["policies"], json!(["not-a", "not-b"]));
    assert_eq!(shown["items"][0]["rules"][1]["policy"], "not-b");
    world.ask("POST /v1/policies/not-b/deactivate", &[], "").await;
    assert_eq!(world.get("/v1/policies/conflicts").await.json()["items"], json!([]));
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_changes_nothing() {
    let world = World::start().await;
    let before = world.get("/v1/state/hash").await.json();
    let body = json!({"text": NOT_RACK_A, "activate": true}).to_string();
    let would = world.send("POST /v1/policies?dry_run=true", &body).await;
    assert_eq!(would.status, 200, "{would:?}");
    assert_eq!(would.json()["policy"]["status"], "active");
    assert_eq!(would.json()["policy_revision"], 1);
    let would = world.send("PUT /v1/policies/not-rack-a?dry_run=true", &body).await;
    assert_eq!(would.status, 200, "{would:?}");
    assert_eq!(world.get("/v1/state/hash").await.json(), before);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_who_change_the_same_revision_one_wins_and_all_others_are_told() {
    let world = World::start().await;
    let made = register(&world, NOT_RACK_A, true).await;
    let tag = format!("If-Match: {}", etag(&made));
    let tune = async |bonus: u32| {
        let headers = ["Content-Type: application/json", tag.as_str()];
        let body = json!({"parameter_values": {"bonus": bonus}}).to_string();
        world.ask("PATCH /v1/policies/not-rack-a/parameters", &headers, &body).await.status
    };
    let all = futures_util::future::join_all((10..26).map(tune)).await;
    assert_eq!(all.iter().filter(|status| **status == 200).count(), 1, "{all:?}");
    assert_eq!(all.iter().filter(|status| **status == 409).count(), 15, "{all:?}");
    // Without a condition all are made, one after the other.
    let register = async |n: u32| {
        let text = filter(&format!("p{n}"), "node.rack == \"z\"");
        register(&world, &text, true).await.status
    };
    let all = futures_util::future::join_all((0..8).map(register)).await;
    assert_eq!(all, [201; 8]);
    let list = world.get("/v1/policies").await.json();
    assert_eq!(list["policy_revision"], 10);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_registration_again_under_its_key_is_the_same_answer() {
    let world = World::start().await;
    let body = json!({"text": NOT_RACK_A}).to_string();
    let headers = ["Content-Type: application/json", "Idempotency-Key: k1"];
    for _ in 0..2 {
        let answer = world.ask("POST /v1/policies", &headers, &body).await;
        assert_eq!((answer.status, answer.json()["policy_revision"].as_u64()), (201, Some(1)));
    }
    let other = json!({"text": filter("other", "node.rack == \"a\"")}).to_string();
    assert_eq!(world.ask("POST /v1/policies", &headers, &other).await.status, 422);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn placements_go_on_while_policies_change() {
    let world = World::start().await;
    for n in 0..20 {
        rack_host(&world, &format!("h{n}"), if n % 2 == 0 { "a" } else { "b" }, 64).await;
    }
    register(&world, NOT_RACK_A, true).await;
    let edits = async {
        let mut revisions = vec![1];
        for n in 0..30 {
            let rack = if n % 2 == 0 { "b" } else { "a" };
            let body = json!({"parameter_values": {"rack": rack}}).to_string();
            let tune = "PATCH /v1/policies/not-rack-a/parameters";
            let answer = world.send(tune, &body).await;
            assert_eq!(answer.status, 200, "{answer:?}");
            revisions.push(answer.json()["policy_revision"].as_u64().expect("a number"));
        }
        revisions
    };
    let placements = async {
        let mut seen = Vec::new();
        for n in 0..120 {
            let placed = place(&world, &format!("v{n}")).await;
            let (host, revision) = (placed["host_id"].as_str(), placed["policy_revision"].as_u64());
            let host = host.unwrap_or_else(|| panic!("not placed: {placed}")).to_owned();
            seen.push((host, revision.expect("a number")));
        }
        seen
    };
    let (revisions, seen) = tokio::join!(edits, placements);
    assert_eq!(revisions, (1..=31).collect::<Vec<u64>>());
    for (host, revision) in seen {
        // Odd revisions close rack a, where even hosts are.
        let even: u64 = host.trim_start_matches('h').parse::<u64>().expect("a number") % 2;
        assert_eq!(even, revision % 2, "{host} at revision {revision}");
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn weights_have_a_history_and_a_way_back() {
    let world = World::start().await;
    let first = world.get("/v1/weights").await.json();
    for fit in [1, 2] {
        let body = json!({ "fit": fit }).to_string();
        assert_eq!(world.send("PUT /v1/weights", &body).await.status, 200);
    }
    let history = world.get("/v1/weights/history").await.json();
    let revisions: Vec<_> = history["items"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|it| it["revision"].as_u64())
        .collect();
    assert_eq!(revisions, [Some(2), Some(1), Some(0)]);
    assert_eq!(history["items"][0]["actor"], "anonymous");
    let back = world.send("POST /v1/weights/rollback", r#"{"revision":0}"#).await;
    assert_eq!((back.status, back.json()), (200, first));
    assert_eq!(back.header("etag"), Some("\"3\""));
    let gone = world.send("POST /v1/weights/rollback", r#"{"revision":77}"#).await;
    assert_eq!((gone.status, gone.json()["code"].as_str()), (410, Some("revision_gone")));
    let headers = ["Content-Type: application/json", "If-Match: \"1\""];
    let stale = world.ask("POST /v1/weights/rollback", &headers, r#"{"revision":1}"#).await;
    assert_eq!(stale.status, 409);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_tell_of_policies() {
    let world = World::start().await;
    rack_host(&world, "h1", "a", 8).await;
    let errs = r#"policy "Errs" { rules {
        rule "x" { when { vm.labels["n"] != "" && node.nothing * 2 > 1 } then { score 1 "x" } } } }"#;
    register(&world, errs, true).await;
    register(&world, NOT_RACK_A, false).await;
    let body = json!({"vm": {"id": "v", "labels": {"n": "1"}, "demand": {"cpu_millis": 1}}});
    world.send("POST /v1/placements", &body.to_string()).await;
    let metrics = world.get("/metrics").await.text;
    for line in [
        "policy_changes_total 2",
        "policies_active 1",
        "policy_revision 2",
        "policy_rejected_files 0",
        "policy_evaluation_errors_total 1",
    ] {
        assert!(metrics.contains(&format!("novacron_scheduler_{line}\n")), "{line}\n{metrics}");
    }
    world.stop().await;
}
