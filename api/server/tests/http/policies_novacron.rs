//! NovaCron's policy API: the same policies under its names, questions, simulations.

use crate::policies::{filter, rack_host};
use crate::world::{Answer, World};
use policy::{ActiveSet, Configuration, PolicyType, Root, Syntax, load, scalar};
use serde_json::{Value, json};
use std::sync::Arc;

fn spare(id: &str, limit: u32) -> String {
    format!(
        r#"policy "Spare room {id}" {{
  id = "{id}"
  parameters {{ param "limit" {{ type = "float" default = {limit} min = 0 max = 1000 }} }}
  rules {{
    rule "nearly full" {{ id = "full" when {{ node.available_cpu < param.limit }} then {{ filter "too little CPU left" }} }}
    rule "room" {{ id = "room" weight = 2 when {{ node.available_cpu > 0 }} then {{ score node.available_cpu "free cores" }} }}
    rule "near" {{ id = "near" when {{ node.metrics["network.latency.to.eu"] < 5 }} then {{ score 10 "near" score 1 "free cores" }} }}
  }}
}}"#
    )
}

fn failure(answer: &Answer) -> (u16, String, String) {
    let body = answer.json();
    let text = |key: &str| body["error"][key].as_str().unwrap_or_default().to_owned();
    (answer.status, text("code"), text("message"))
}

fn ids(list: &Value, key: &str) -> Vec<String> {
    let items = list.as_array().expect("a list").iter();
    items.map(|item| item[key].as_str().unwrap_or_default().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn policies_live_under_novacrons_names() {
    let world = World::start().await;
    let send = async |line: &str, body: Value| world.send(line, &body.to_string()).await;
    let made =
        send("POST /scheduler/policies", json!({"dsl": spare("s", 4), "author": "op"})).await;
    assert_eq!(made.status, 201, "{made:?}");
    let policy = made.json();
    assert_eq!((&policy["version"], &policy["status"]), (&json!("v1"), &json!("draft")));
    assert_eq!((&policy["created_by"], &policy["type"]), (&json!("op"), &json!("placement")));
    assert_eq!(policy["rules"][0]["then"], json!(["filter \"too little CPU left\""]));
    assert_eq!(policy["parameters"]["limit"]["default_value"], 4);
    let again = send("POST /scheduler/policies", json!({"dsl": spare("s", 4)})).await;
    let expected = (409, "conflict".into(), "policy with ID s already exists".into());
    assert_eq!(failure(&again), expected);

    let activate = "POST /scheduler/policies/s/activate";
    let body = json!({"Priority": 3, "ParameterValues": {"limit": 6}});
    let active = send(activate, body).await.json();
    assert_eq!((&active["status"], &active["priority"]), (&json!("active"), &json!(3)));
    assert_eq!(active["parameters"]["limit"]["current_value"], 6);
    let body = json!({"dsl": spare("s", 1), "updated_by": "op2", "change_description": "less"});
    let put = send("PUT /scheduler/policies/s", body).await.json();
    assert_eq!((&put["version"], &put["updated_by"]), (&json!("v2"), &json!("op2")));
    let versions = world.get("/scheduler/policies/s/versions").await.json();
    assert_eq!(ids(&versions, "version"), ["v1", "v2"]);
    assert_eq!(versions[1]["change_description"], "less");
    assert_eq!(versions[0]["policy"]["parameters"]["limit"]["default_value"], 4);
    let one = world.get("/scheduler/policies/s/versions/v1").await.json();
    assert_eq!(one, versions[0]);
    let missing = world.get("/scheduler/policies/s/versions/v9").await;
    assert_eq!(failure(&missing).2, "version v9 not found for policy s");
    let body = json!({"version": "v1", "user": "op3", "description": "oops"});
    let back = send("POST /scheduler/policies/s/rollback", body).await.json();
    assert_eq!((&back["version"], &back["updated_by"]), (&json!("v3"), &json!("op3")));
    let audit = world.get("/scheduler/policies/s/audit").await.json();
    assert_eq!(ids(&audit, "action"), ["register", "activate", "update", "rollback"]);
    assert_eq!(audit[3]["from_version"], "v2");
    let off = world.ask("POST /scheduler/policies/s/deactivate", &[], "").await.json();
    assert_eq!(off["status"], "disabled");
    send(activate, json!({})).await;
    assert_eq!(world.ask("DELETE /scheduler/policies/s", &[], "").await.status, 204);
    let gone = world.get("/scheduler/policies/s").await;
    assert_eq!(failure(&gone), (404, "not_found".into(), "policy with ID s not found".into()));
    let put = send("PUT /scheduler/policies/s", json!({"dsl": spare("s", 1)})).await;
    assert_eq!(put.status, 404);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_may_come_as_an_object_with_the_names_of_go_fields() {
    let world = World::start().await;
    let rule = json!({"Name": "full", "Priority": 9, "Weight": 0, "IsHardConstraint": true,
        "Condition": "node.available_cpu < param.limit", "Actions": ["filter \"full\""]});
    let object = json!({
        "ID": "objects", "Name": "Objects", "Description": "As an object", "Type": "migration",
        "TargetSelector": "vm.labels[\"tier\"] == \"web\"", "Metadata": {"owner": "x", "n": 3},
        "Parameters": {"limit": {"Type": "int", "DefaultValue": 4, "MinValue": 1, "AllowedValues": null}},
        "Rules": [rule], "CreatedAt": "2025-01-01T00:00:00Z", "Version": "v9",
    });
    let made = world.send("POST /scheduler/policies", &object.to_string()).await;
    assert_eq!(made.status, 201, "{made:?}");
    let policy = made.json();
    assert_eq!(policy["rules"][0]["when"], "candidateNode.available_cpu < param.limit");
    assert_eq!(policy["rules"][0]["weight"], 1, "0 is what a Go client sends for nothing");
    assert_eq!(policy["target_selector"], "vm.labels.tier == \"web\"");
    assert_eq!(policy["metadata"], json!({"n": "3", "owner": "x"}));
    assert_eq!(policy["parameters"]["limit"]["min_value"], 1.0);
    // What is shown can be sent back, in the other spelling, and is the same.
    let mut shown = policy.clone();
    shown.as_object_mut().expect("an object").remove("dsl");
    let put = json!({"policy": shown, "updated_by": "op"}).to_string();
    let same = world.send("PUT /scheduler/policies/objects", &put).await.json();
    assert_eq!((&same["version"], &same["dsl"]), (&json!("v1"), &policy["dsl"]));
    let wrong = object.to_string().replace("node.available_cpu <", "node.available_cpu <<");
    let wrong = world.send("POST /scheduler/policies", &wrong).await;
    let (status, code, message) = failure(&wrong);
    assert_eq!((status, code.as_str()), (422, "validation_failed"));
    assert!(
        message.starts_with("policy validation failed: ") && message.contains("rules[0].when"),
        "{message}"
    );
    let list = world.get("/scheduler/policies?type=migration").await.json();
    assert_eq!(ids(&list, "id"), ["objects"]);
    assert_eq!(world.get("/scheduler/policies?type=placement").await.json(), json!([]));
    let unknown = world.get("/scheduler/policies?type=x").await;
    assert_eq!(failure(&unknown).2, "unknown policy type: x");
    for (body, expected) in [("{}", 400), (r#"{"rules":[{}]}"#, 422)] {
        assert_eq!(world.send("POST /scheduler/policies", body).await.status, expected, "{body}");
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_is_validated_without_being_installed() {
    let world = World::start().await;
    let validate = async |body: Value| {
        let answer = world.send("POST /scheduler/policies/validate", &body.to_string()).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()
    };
    assert_eq!(validate(json!({"dsl": spare("s", 1)})).await["valid"], true);
    let wrong = validate(json!({"dsl": "policy \"x\" {"})).await;
    assert_eq!((&wrong["valid"], &wrong["errors"][0]["line"]), (&json!(false), &json!(1)));
    let doubtful = validate(json!({"dsl": filter("gpu", "vm.labels[\"w\"] == \"gpu\"")})).await;
    assert_eq!(doubtful["valid"], true);
    assert_ne!(doubtful["warnings"], json!([]), "its filter mentions no host");
    assert_eq!(world.get("/scheduler/policies").await.json(), json!([]));
    world.stop().await;
}

/// Nodes with every kind of hole, by a rule that is the same every time.
fn nodes() -> Vec<Value> {
    let node = |n: u64| {
        let mut node = json!({"id": format!("n{n}"), "metrics": {"network.latency.to.eu": n % 9}});
        match n % 5 {
            0 => {}
            1 => node["available_cpu"] = json!(null),
            2 => node["metrics"] = json!({"network": {"latency": {"to": {"eu": 1}}}}),
            _ => node["available_cpu"] = json!(n as f64 / 2.0),
        }
        node
    };
    (0..60).map(node).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn questions_are_answered_as_the_plain_reading_of_the_policies_has_it() {
    let world = World::start().await;
    let text = spare("s", 4);
    let made = json!({"dsl": text}).to_string();
    world.send("POST /scheduler/policies", &made).await;
    world.send("POST /scheduler/policies/s/activate", "{}").await;
    let nodes = nodes();
    let body = json!({"vm": {"id": "v"}, "candidate_nodes": nodes}).to_string();
    let told = world.send("POST /scheduler/policies/evaluate/placement", &body).await.json();
    assert_eq!(told["policy_revision"], 2);

    let (program, _) = load(&text, Syntax::Dsl).expect("a policy");
    let set = ActiveSet::new(vec![(Arc::new(program), Configuration::default())]).expect("valid");
    let mut expected = Vec::new();
    let mut removed = Vec::new();
    for (row, node) in nodes.iter().enumerate() {
        let lookup = |path: &policy::Path| {
            let keys: Vec<&str> = path.keys.iter().map(|key| key.as_str()).collect();
            assert_eq!(path.root, Root::Candidate);
            let nested = keys.iter().fold(node, |node, key| &node[*key]);
            let deep = node.pointer("/metrics/network/latency/to/eu").unwrap_or(&Value::Null);
            let found = if nested.is_null() && keys.len() > 1 { deep } else { nested };
            found.as_f64().map_or(policy::Value::Null, policy::Value::Number)
        };
        let verdict = scalar::evaluate(&set, PolicyType::Placement, &lookup);
        match verdict.filtered_by {
            Some(_) => removed.push(format!("n{row}")),
            None => expected.push((-verdict.score_millis, row)),
        }
    }
    expected.sort_unstable();
    let scores: Vec<f64> = expected.iter().map(|(score, _)| -*score as f64 / 1000.0).collect();
    let order: Vec<String> = expected.iter().map(|(_, row)| format!("n{row}")).collect();
    assert_eq!(ids(&told["nodes"], "node_id"), order);
    let told_scores: Vec<f64> = told["nodes"]
        .as_array()
        .expect("nodes")
        .iter()
        .filter_map(|it| it["score"].as_f64())
        .collect();
    assert_eq!(told_scores, scores);
    assert_eq!(ids(&told["filtered"], "node_id"), removed);
    assert_eq!(told["filtered_count"], removed.len());
    assert_eq!(told["filtered"][0]["reason"], "too little CPU left");
    let best = &told["nodes"][0];
    assert_eq!(best["node"]["id"], best["node_id"]);
    let sum: f64 = best["score_components"]
        .as_object()
        .expect("parts")
        .values()
        .filter_map(Value::as_f64)
        .sum();
    assert_eq!(Some(sum), best["score"].as_f64());

    let body = json!({"workload": {"id": "v"}, "nodes": nodes}).to_string();
    let judged = world.send("POST /scheduler/policies/s/filter", &body).await.json();
    let refused: Vec<String> = judged["results"]
        .as_array()
        .expect("results")
        .iter()
        .filter(|it| it["feasible"] == false)
        .map(|it| it["node_id"].as_str().unwrap_or_default().to_owned())
        .collect();
    assert_eq!(refused, removed);
    let scored = world.send("POST /scheduler/policies/s/score", &body).await.json();
    let of_best =
        scored["results"].as_array().expect("results").iter().find(|it| it["node_id"] == order[0]);
    assert_eq!(of_best.expect("there")["score"], scores[0]);
    let none = world.send("POST /scheduler/policies/none/score", &body).await;
    assert_eq!(failure(&none).2, "policy with ID none not found");
    let limited = json!({"vm": {}, "candidate_nodes": nodes, "limit": 2}).to_string();
    let limited = world.send("POST /scheduler/policies/evaluate/placement", &limited).await.json();
    assert_eq!(ids(&limited["nodes"], "node_id"), order[..2]);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_nodes_the_inventory_is_asked_and_stays_up_to_date() {
    let world = World::start().await;
    for (id, rack, cores) in [("h1", "a", 4), ("h2", "b", 8), ("h3", "b", 16)] {
        rack_host(&world, id, rack, cores).await;
    }
    world.send("POST /scheduler/policies", &json!({"dsl": spare("s", 5)}).to_string()).await;
    world.send("POST /scheduler/policies/s/activate", "{}").await;
    let ask = async |kind: &str, more: Value| {
        let mut body = json!({"vm": {"id": "v"}});
        for (key, value) in more.as_object().expect("an object") {
            body[key] = value.clone();
        }
        let line = format!("POST /scheduler/policies/evaluate/{kind}");
        let answer = world.send(&line, &body.to_string()).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()
    };
    let told = ask("placement", json!({})).await;
    assert_eq!(ids(&told["nodes"], "node_id"), ["h3", "h2"]);
    assert_eq!(told["nodes"][0]["score_components"], json!({"free cores": 32.0}));
    assert_eq!(told["nodes"][0].get("node"), None, "the caller has the inventory");
    assert_eq!((&told["filtered_count"], &told["feasible_count"]), (&json!(1), &json!(2)));
    let place = json!({"vm": {"id": "x", "demand": {"cpu_millis": 12000}}}).to_string();
    assert_eq!(world.send("POST /v1/placements", &place).await.json()["host_id"], "h3");
    let told = ask("placement", json!({})).await;
    assert_eq!(ids(&told["nodes"], "node_id"), ["h2"], "h3 has 4 cores left");
    world.ask("POST /v1/hosts/h2/cordon", &[], "").await;
    assert_eq!(ask("placement", json!({})).await["nodes"], json!([]));
    world.ask("POST /v1/hosts/h2/uncordon", &[], "").await;
    rack_host(&world, "h0", "c", 32).await;
    let told = ask("placement", json!({"limit": 1})).await;
    assert_eq!(ids(&told["nodes"], "node_id"), ["h0"]);
    assert_eq!(told["feasible_count"], 2);

    let moves = r#"policy "Same rack" { type = "migration" rules { rule "r" {
        when { sourceNode.rack != node.rack } then { filter "another rack" } } } }"#;
    let body = json!({"dsl": moves}).to_string();
    assert_eq!(world.send("POST /scheduler/policies", &body).await.status, 201);
    world.send("POST /scheduler/policies/same-rack/activate", "{}").await;
    let told = ask("migration", json!({"source_node": {"id": "h2"}})).await;
    assert_eq!(ids(&told["nodes"], "node_id"), ["h3"], "its own node is none to move to");
    let told = ask("migration", json!({"source_node": {"id": "h2", "rack": "c"}})).await;
    assert_eq!(ids(&told["nodes"], "node_id"), ["h0"], "the caller knows better");
    let nodes = json!([{"id": "n1", "rack": "x"}, {"id": "n2", "rack": "y"}]);
    let more = json!({"source_node": {"rack": "y"}, "candidate_nodes": nodes});
    assert_eq!(ids(&ask("migration", more).await["nodes"], "node_id"), ["n2"]);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn simulations_place_by_the_policies_that_are_asked_for() {
    let world = World::start().await;
    let pack = r#"policy "Pack" { rules { rule "r" {
        when { node.vm_count > 0 } then { score 1000 * node.vm_count "in use" } } } }"#;
    let spread = r#"policy "Spread" { parameters { param "w" { type = "int" default = 1000 } }
        rules { rule "r" { when { node.vm_count > 0 } then { score -param.w * node.vm_count "in use" } } } }"#;
    for text in [pack, spread] {
        let made = world.send("POST /scheduler/policies", &json!({"dsl": text}).to_string()).await;
        assert_eq!(made.status, 201, "{made:?}");
    }
    let nodes: Vec<Value> = (0..4)
        .map(|n| json!({"id": format!("n{n}"), "total_cpu_cores": 8, "total_memory_gb": 32, "color": "red"}))
        .collect();
    let vms: Vec<Value> =
        (0..5).map(|n| json!({"id": format!("v{n}"), "cpu_cores": 2, "memory_gb": 1})).collect();
    let run = async |more: Value| {
        let mut body = json!({"name": "s", "vms": vms, "nodes": nodes});
        for (key, value) in more.as_object().expect("an object") {
            body[key] = value.clone();
        }
        let answer = world.send("POST /scheduler/simulations", &body.to_string()).await;
        assert_eq!(answer.status, 201, "{answer:?}");
        answer.json()
    };
    let packed = run(json!({"policy_ids": ["pack"]})).await;
    let spread = run(json!({"policy_ids": ["spread"]})).await;
    let hosts = |result: &Value| {
        let mut nodes = ids(&result["results"], "node_id");
        nodes.sort_unstable();
        nodes.dedup();
        nodes.len()
    };
    assert_eq!((hosts(&packed), hosts(&spread)), (2, 4), "{packed} {spread}");
    assert_eq!(packed["summary"]["total_placements"], 5);
    assert_eq!(packed["summary"]["placement_percentage"], 100.0);
    assert_eq!(packed["results"][1]["policy_results"], json!({"pack": 1000.0}));
    let overridden = json!({"spread": {"parameter_values": {"w": -1000}}});
    let turned = run(json!({"policy_ids": ["spread"], "config_overrides": overridden})).await;
    assert_eq!(ids(&turned["results"], "node_id"), ids(&packed["results"], "node_id"));
    let (a, b) = (packed["id"].as_str().expect("an id"), spread["id"].as_str().expect("an id"));
    let compared = world.get(&format!("/scheduler/simulations/compare?a={a}&b={b}")).await.json();
    assert!(compared["moved_count"].as_u64() >= Some(3), "{compared}");
    assert_eq!(compared["difference"]["failed_placements"], 0);
    assert!(compared["cpu_spread_a"].as_f64() > compared["cpu_spread_b"].as_f64());
    let list = world.get("/scheduler/simulations").await.json();
    assert_eq!(ids(&list, "id"), ["sim-1", "sim-2", "sim-3"]);
    assert_eq!(list[0]["results"], json!([]));
    assert_eq!(world.get(&format!("/scheduler/simulations/{a}")).await.json(), packed);

    // What is installed counts for simulated VMs as for any.
    let rule = json!({"type": "limit", "max": 1}).to_string();
    assert_eq!(world.send("PUT /v1/constraints/one-each", &rule).await.status, 201);
    let limited = run(json!({"policy_ids": ["pack"]})).await;
    assert_eq!((hosts(&limited), hosts(&packed)), (5, 2), "one of the five has no node: {limited}");
    assert_eq!(limited["summary"]["failed_placements"], 1);
    assert_eq!(limited["results"][4]["filter_reason"], "limit");
    assert_eq!(world.send("DELETE /v1/constraints/one-each", "").await.status, 204);

    let closed = filter("closed", "node.colour == \"red\" || node.rack == \"x\"");
    let body = json!({"dsl": closed}).to_string();
    world.send("POST /scheduler/policies", &body).await;
    let all = run(json!({"policy_ids": ["closed"], "vms": [{"id": "big", "cpu_cores": 99}]})).await;
    assert_eq!(all["results"][0]["filtered"], true);
    assert_eq!(all["results"][0]["filter_reason"], "not enough cpu_millis");
    assert_eq!(all["unknown_attributes"], json!(["candidateNode.colour"]));
    for (line, status) in [
        ("/scheduler/simulations/none", 404),
        ("/scheduler/simulations/compare?a=sim-1&b=x", 404),
        ("/scheduler/simulations/compare", 400),
    ] {
        assert_eq!(world.get(line).await.status, status, "{line}");
    }
    let twice = json!({"vms": [{"id": "v"}, {"id": "v"}], "nodes": []}).to_string();
    let twice = world.send("POST /scheduler/simulations", &twice).await;
    assert!(failure(&twice).2.starts_with("vms[1].id: v is there twice"), "{twice:?}");
    let unknown = json!({"vms": [], "nodes": [], "policy_ids": ["none"]}).to_string();
    assert_eq!(world.send("POST /scheduler/simulations", &unknown).await.status, 404);
    for _ in 0..40 {
        run(json!({"vms": [], "nodes": []})).await;
    }
    let list = world.get("/scheduler/simulations").await.json();
    assert_eq!(list.as_array().map(Vec::len), Some(32), "the oldest are forgotten");
    world.stop().await;
}
