//! The schemas and the reader agree on what fields there are.

use crate::full;
use std::collections::BTreeSet;
use utoipa::ToSchema;
use utoipa::openapi::{Components, ComponentsBuilder, OpenApi, OpenApiBuilder, RefOr, Schema};
use wire::*;

fn add<T: ToSchema>(components: ComponentsBuilder) -> ComponentsBuilder {
    let mut schemas = Vec::new();
    T::schemas(&mut schemas);
    let components = components.schema(T::name(), T::schema());
    schemas
        .into_iter()
        .fold(components, |components, (name, schema)| components.schema(name, schema))
}

fn components() -> Components {
    let builder = add::<HostSpec>(Components::builder());
    let builder = add::<HostView>(add::<VmView>(builder));
    let builder = add::<PlacementSpec>(add::<AdoptSpec>(builder));
    let mut api: OpenApi = OpenApiBuilder::new().components(Some(builder.build())).build();
    complete(&mut api, &full::dimensions());
    api.components.expect("components were given")
}

fn properties(components: &Components, name: &str) -> BTreeSet<String> {
    let Some(RefOr::T(Schema::Object(object))) = components.schemas.get(name) else {
        panic!("{name} is not an object");
    };
    object.properties.keys().cloned().collect()
}

fn written(body: &impl serde::Serialize) -> BTreeSet<String> {
    let body = serde_json::to_value(body).expect("plain data");
    body.as_object().expect("an object").keys().cloned().collect()
}

#[test]
fn a_body_with_everything_in_it_has_exactly_the_documented_fields() {
    let components = components();
    let dimensions = full::dimensions();
    let host = HostSpec::new(&full::host(), &dimensions);
    assert_eq!(written(&host), properties(&components, "HostSpec"));
    let topology = Some(TopologySpec::default());
    let vm = VmSpec { topology, ..VmSpec::new(&full::vm(), &dimensions) };
    assert_eq!(written(&vm), properties(&components, "VmSpec"));
    let adopt = AdoptSpec {
        vm: vm.clone(),
        host_id: full::name("h"),
        bindings: Some(BindingsView::default()),
    };
    assert_eq!(written(&adopt), properties(&components, "AdoptSpec"));
    let strategy = Some(Word(cluster::Strategy::Spread));
    let place = PlacementSpec { vm, strategy, hold_ttl_ms: Some(1_000) };
    assert_eq!(written(&place), properties(&components, "PlacementSpec"));
}

#[test]
fn views_are_one_object_and_requests_are_closed() {
    let components = components();
    assert!(properties(&components, "HostView").is_superset(&properties(&components, "HostSpec")));
    let closed = |name: &str| {
        let json = serde_json::to_value(&components.schemas[name]).expect("plain data");
        json["additionalProperties"] == false
    };
    for name in ["HostSpec", "VmSpec", "AdoptSpec", "PlacementSpec", "TaintSpec", "Quantities"] {
        assert!(closed(name), "{name} is open");
    }
    assert!(!closed("HostView"));
    assert!(properties(&components, "Quantities").contains("gpu_slots"));
}

#[test]
fn every_reference_in_the_schemas_leads_somewhere() {
    let components = components();
    let json = serde_json::to_string(&components).expect("plain data");
    for reference in json.split("#/components/schemas/").skip(1) {
        let name = reference.split('"').next().unwrap_or_default();
        assert!(components.schemas.contains_key(name), "{name} is not defined");
    }
}
