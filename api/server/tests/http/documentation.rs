//! The API describes itself, without help from outside.

use crate::world::World;
use serde_json::Value;

fn references(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            if let Some(Value::String(to)) = members.get("$ref") {
                found.push(to.clone());
            }
            members.values().for_each(|value| references(value, found));
        }
        Value::Array(items) => items.iter().for_each(|value| references(value, found)),
        _ => {}
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_document_is_complete_and_names_the_dimensions_of_this_cluster() {
    let world = World::start().await;
    let api = world.get("/openapi.json").await.json();
    assert!(api["openapi"].as_str().is_some_and(|version| version.starts_with("3.1")), "{api}");
    let mut found = Vec::new();
    references(&api, &mut found);
    for reference in found {
        let pointer = reference.trim_start_matches('#');
        assert!(api.pointer(pointer).is_some(), "{reference} leads nowhere");
    }
    let extra = vec![cluster::Name::new("gpu_slots").expect("a name")];
    let dimensions = cluster::Dimensions::with_extra(extra).expect("one extra dimension");
    let generated = serde_json::to_value(server::openapi(&dimensions)).expect("a document");
    assert_eq!(api, generated);
    let quantities = &api["components"]["schemas"]["Quantities"]["properties"];
    assert!(quantities["gpu_slots"].is_object(), "{quantities}");
    for path in [
        "/v1/hosts",
        "/v1/hosts:bulk",
        "/v1/hosts/{id}",
        "/v1/hosts/{id}/cordon",
        "/v1/hosts/{id}/uncordon",
        "/v1/hosts/{id}/heartbeat",
        "/v1/placements",
        "/v1/placements:batch",
        "/v1/decisions/{id}",
        "/v1/reservations/{id}/confirm",
        "/v1/reservations/{id}/release",
        "/v1/vms",
        "/v1/vms:bulk",
        "/v1/vms/{id}",
        "/v1/cluster/capacity",
        "/v1/state/hash",
        "/v1/weights",
        "/v1/weights/history",
        "/v1/weights/rollback",
        "/v1/constraints",
        "/v1/constraints/{name}",
        "/v1/policies",
        "/v1/policies:validate",
        "/v1/policies/conflicts",
        "/v1/policies/audit",
        "/v1/policies/{id}",
        "/v1/policies/{id}/activate",
        "/v1/policies/{id}/deactivate",
        "/v1/policies/{id}/parameters",
        "/v1/policies/{id}/versions",
        "/v1/policies/{id}/versions/{version}",
        "/v1/policies/{id}/rollback",
        "/v1/policies/{id}/audit",
        "/scheduler/policies",
        "/scheduler/policies/{id}",
        "/scheduler/policies/{id}/activate",
        "/scheduler/policies/{id}/filter",
        "/scheduler/policies/{id}/score",
        "/scheduler/policies/evaluate/placement",
        "/scheduler/policies/evaluate/migration",
        "/scheduler/policies/conflicts",
        "/scheduler/simulations",
        "/scheduler/simulations/{id}",
        "/scheduler/simulations/compare",
        "/v1/events",
        "/v1/advice",
        "/scheduler/nodes",
        "/scheduler/nodes/{id}",
        "/scheduler/inventory",
        "/scheduler/events",
        "/scheduler/vms/{vm_id}/schedule",
        "/api/orchestration/placement",
        "/api/orchestration/placement/evaluate",
        "/predict/resources",
        "/predict/migration",
        "/optimize/performance",
        "/optimize/scaling",
        "/optimize/bandwidth",
        "/analyze/workload",
        "/detect/anomaly",
        "/health",
        "/healthz",
        "/ready",
        "/metrics",
    ] {
        assert!(api["paths"][path].is_object(), "{path} is not documented");
    }
    world.stop().await;
}

/// What is served for a cluster without dimensions of its own, as a file for those who generate
/// clients from it. `UPDATE=1 cargo test -p server --test http openapi` writes it anew.
#[test]
fn the_openapi_file_is_what_is_served() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../openapi.json");
    let generated = server::openapi(&cluster::Dimensions::default());
    let generated = generated.to_pretty_json().expect("a document") + "\n";
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(path, &generated).expect("written");
    }
    let kept = std::fs::read_to_string(path).expect("api/openapi.json");
    assert!(kept == generated, "api/openapi.json is stale: run this test again with UPDATE=1");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_to_try_it_out_needs_nothing_from_elsewhere() {
    let world = World::start().await;
    let page = world.get("/docs/").await;
    assert_eq!(page.status, 200, "{page:?}");
    let foreign = page.text.split(['"', '\'']).find(|text| text.contains("://"));
    assert_eq!(foreign, None);
    assert_eq!(world.get("/docs/swagger-ui-bundle.js").await.status, 200);
    world.stop().await;
}
