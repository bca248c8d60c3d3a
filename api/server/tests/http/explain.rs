//! "Why not?", certificates and sellable capacity, over HTTP.

use crate::world::World;
use serde_json::{Value, json};

async fn explained(world: &World, body: &Value) -> Value {
    let answer = world.send("POST /v1/explain", &body.to_string()).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()
}

async fn add(world: &World, host: &Value) {
    assert_eq!(world.send("POST /v1/hosts", &host.to_string()).await.status, 201);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_is_explained_and_the_change_that_is_told_is_placed() {
    let world = World::start().await;
    world.host("small", 2).await;
    add(
        &world,
        &json!({"id": "tainted", "capacity": {"cpu_millis": 64000, "memory_mib": 65536},
                "labels": {"disk": "ssd"},
                "taints": [{"key": "dedicated", "value": "db", "effect": "no_schedule"}]}),
    )
    .await;
    let vm = json!({"id": "v", "demand": {"cpu_millis": 3000, "memory_mib": 1024},
                    "selectors": [{"key": "dsik", "values": ["ssd"]}]});
    let placed = world.send("POST /v1/placements", &json!({"vm": vm}).to_string()).await;
    assert_eq!(placed.json()["outcome"], "rejected");

    let told = explained(&world, &json!({"vm": vm})).await;
    assert_eq!((&told["fits"], &told["hosts_that_fit"]), (&json!(false), &json!(0)));
    let reasons = told["reasons"].as_array().expect("reasons");
    let row = |reason: &str| reasons.iter().find(|row| row["reason"] == reason).expect("there");
    assert_eq!((&row("selector")["first"], &row("selector")["any"]), (&json!(2), &json!(2)));
    assert_eq!((&row("taint")["first"], &row("taint")["any"]), (&json!(0), &json!(1)));
    assert_eq!(
        told["unknown"][0],
        json!({"what": "label", "name": "dsik", "did_you_mean": "disk"})
    );
    let change = &told["counterfactual"];
    assert_eq!(change["host_id"], "small", "cutting a third costs less than a toleration");
    let kinds: Vec<&str> = change["changes"]
        .as_array()
        .expect("changes")
        .iter()
        .map(|change| change["kind"].as_str().expect("a kind"))
        .collect();
    assert_eq!(kinds, ["drop_selector", "demand"]);
    assert_eq!((&change["changes"][1]["to"], &change["minimal"]), (&json!(2000), &json!(true)));

    let told = explained(&world, &json!({"vm": vm, "host_id": "tainted"})).await;
    let text = told["obstacles"].to_string();
    assert!(text.contains("dsik") && text.contains("dedicated=db"), "{text}");
    let changed = &told["counterfactual"]["vm"];
    let placed = world.send("POST /v1/placements", &json!({"vm": changed}).to_string()).await;
    assert_eq!(placed.json()["host_id"], "tainted", "{placed:?}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn obstacles_tell_the_deficit_and_the_vms_that_are_in_the_way() {
    let world = World::start().await;
    world.host("h1", 4).await;
    let first = json!({"vm": {"id": "a", "groups": ["web"], "demand": {"cpu_millis": 3000}}});
    assert_eq!(world.send("POST /v1/placements", &first.to_string()).await.status, 201);
    let second = json!({"vm": {"id": "b", "demand": {"cpu_millis": 2000},
        "affinity": [{"kind": "apart", "group": "web"}]}, "host_id": "h1"});
    let told = explained(&world, &second).await;
    let obstacles = told["obstacles"].as_array().expect("obstacles");
    assert_eq!(obstacles.len(), 2, "{told}");
    assert_eq!(
        (&obstacles[0]["reason"], &obstacles[0]["vms"]),
        (&json!("anti_affinity"), &json!(["a"]))
    );
    assert_eq!(obstacles[1]["reason"], "capacity:cpu_millis");
    let deficit = ["need", "free", "short_by"].map(|field| obstacles[1][field].as_u64());
    assert_eq!(deficit, [Some(2000), Some(1000), Some(1000)]);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_placed_vm_is_told_why_it_is_where_it_is() {
    let world = World::start().await;
    world.host("h1", 8).await;
    world.host("h2", 8).await;
    let vm = json!({"vm": {"id": "a", "demand": {"cpu_millis": 2000, "memory_mib": 1000}}});
    let placed = world.send("POST /v1/placements", &vm.to_string()).await.json();
    let told = explained(&world, &json!({"vm_id": "a"})).await;
    assert_eq!((&told["fits"], &told["hosts_that_fit"]), (&json!(true), &json!(2)));
    let host = &told["placed"]["host"];
    assert_eq!((&host["host_id"], &host["score"]), (&placed["host_id"], &placed["score"]));
    assert_eq!(host["breakdown"], placed["breakdown"], "the tables were put back as they were");
    assert_ne!(told["placed"]["runner_up"]["host_id"], placed["host_id"]);
    assert_eq!(told["placed"]["decision_id"], placed["decision_id"]);
    assert_eq!(explained(&world, &json!({"vm_id": "a"})).await, told);
    // The tables follow what happens.
    assert_eq!(world.ask("POST /v1/hosts/h1/cordon", &[], "").await.status, 200);
    let told = explained(&world, &json!({"vm_id": "a", "host_id": "h1"})).await;
    assert_eq!(told["obstacles"][0]["reason"], "host_state");
    assert_eq!(world.ask("DELETE /v1/vms/a", &[], "").await.status, 204);
    let gone = world.send("POST /v1/explain", &json!({"vm_id": "a"}).to_string()).await;
    assert_eq!(gone.status, 404, "{gone:?}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn plans_are_certified_on_the_living_state_and_on_snapshots() {
    let world = World::start().await;
    world.host("h1", 4).await;
    world.host("h2", 4).await;
    for id in ["a", "b"] {
        let vm = json!({"vm": {"id": id, "demand": {"cpu_millis": 3000}}});
        assert_eq!(world.send("POST /v1/placements", &vm.to_string()).await.status, 201);
    }
    let on = |vm: &str| format!("/v1/vms/{vm}");
    let at = world.get(&on("a")).await.json()["host_id"].clone();
    let other = world.get(&on("b")).await.json()["host_id"].clone();
    let swap = json!({"waves": [{"steps": [
        {"action": "move", "vm_id": "a", "from": at, "host_id": other},
        {"action": "move", "vm_id": "b", "from": other, "host_id": at}]}]});
    let told = world.send("POST /v1/validate", &swap.to_string()).await.json();
    assert_eq!(told["accepted"], false);
    let first = &told["violations"][0];
    assert_eq!(
        (&first["kind"], &first["wave"], &first["step"]),
        (&json!("capacity"), &json!(0), &json!(0))
    );
    assert_eq!(
        (&first["facts"]["asked"], &first["facts"]["free"]),
        (&json!("3000"), &json!("1000"))
    );
    let release = json!({"waves": [{"steps": [{"action": "release", "vm_id": "a"}]},
        {"steps": [{"action": "move", "vm_id": "b", "host_id": at}]}]});
    let told = world.send("POST /v1/validate", &release.to_string()).await.json();
    assert_eq!((&told["accepted"], &told["checked"]["steps"]), (&json!(true), &json!(2)), "{told}");
    let sent = json!({"snapshot": {"hosts": [{"id": "x", "capacity": {"cpu_millis": 1000}}]},
        "decisions": [{"vm": {"id": "n", "demand": {"cpu_millis": 2000}}, "host_id": "x"}]});
    let told = world.send("POST /v1/validate", &sent.to_string()).await.json();
    assert_eq!((&told["accepted"], &told["violations"][0]["decision"]), (&json!(false), &json!(0)));
    assert_eq!(world.send("POST /v1/validate", "{}").await.json()["accepted"], true);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn slots_are_counted_by_shape_in_bundles_and_priced() {
    let world = World::start().await;
    world.host("h1", 4).await;
    world.host("h2", 3).await;
    let counted = |query: &'static str| {
        let world = &world;
        async move {
            let answer = world.get(&format!("/v1/capacity/slots{query}")).await;
            assert_eq!(answer.status, 200, "{answer:?}");
            answer.json()
        }
    };
    let told = counted("?shape=cpu_millis:2000,memory_mib:4096").await;
    assert_eq!(told["shapes"][0]["slots"], 3, "two and one");
    assert_eq!(told["bundles"], json!({"at_least": 3, "at_most": 3, "exact": true}));
    let told = counted("?shape=2*cpu_millis:1000&shape=cpu_millis:2000").await;
    assert_eq!((&told["shapes"][0]["slots"], &told["shapes"][1]["slots"]), (&json!(7), &json!(3)));
    assert_eq!(told["bundles"]["at_least"], 1);
    let prices = told["prices"].as_array().expect("prices");
    assert!(prices.iter().any(|class| class["bundles_per_unit_billionths"]["cpu_millis"] != 0));
    assert_eq!(counted("").await["shapes"], json!([]), "nothing is placed");
    let vm = json!({"vm": {"id": "a", "demand": {"cpu_millis": 1500}}});
    assert_eq!(world.send("POST /v1/placements", &vm.to_string()).await.status, 201);
    let told = counted("").await;
    assert_eq!((&told["from_placed_vms"], &told["shapes"][0]["slots"]), (&json!(true), &json!(3)));
    assert_eq!(counted("?pool=none&shape=cpu_millis:1").await["shapes"][0]["slots"], 0);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn constraints_and_bound_parts_are_in_the_way_as_they_are_for_placing() {
    let world = World::start().await;
    add(
        &world,
        &json!({"id": "gpu", "capacity": {"cpu_millis": 8000, "memory_mib": 8192}, "hardware": {
            "numa_nodes": [{"cores": 8, "memory_mib": 8192}], "gpus": [{"model": "A100", "memory_mib": 40960}]}}),
    )
    .await;
    let vm = |id: &str| {
        json!({"id": id, "demand": {"cpu_millis": 1000, "memory_mib": 512},
               "topology": {"gpus": {"count": 1}}})
    };
    assert_eq!(explained(&world, &json!({"vm": vm("a")})).await["fits"], true);
    let placed = world.send("POST /v1/placements", &json!({"vm": vm("a")}).to_string()).await;
    assert_eq!(placed.json()["outcome"], "placed", "{placed:?}");
    let told = explained(&world, &json!({"vm": vm("b"), "host_id": "gpu"})).await;
    assert_eq!(told["obstacles"][0]["reason"], "gpus", "{told}");
    assert_eq!(told["counterfactual"]["changes"][0]["kind"], "relax_topology", "{told}");
    assert_eq!(explained(&world, &json!({"vm_id": "a"})).await["fits"], true, "its own is free");

    let plain = json!({"id": "c", "demand": {"cpu_millis": 1000}});
    assert_eq!(explained(&world, &json!({"vm": plain})).await["fits"], true);
    let limit = json!({"type": "limit", "vms": {}, "level": "host", "max": 1});
    let put = world.send("PUT /v1/constraints/one-each", &limit.to_string()).await;
    assert!(put.status == 200 || put.status == 201, "{put:?}");
    let told = explained(&world, &json!({"vm": plain, "host_id": "gpu"})).await;
    assert_eq!(told["obstacles"][0]["reason"], "limit", "{told}");
    assert!(told["obstacles"][0]["text"].to_string().contains("one-each"), "{told}");
    world.stop().await;
}
