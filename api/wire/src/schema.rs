//! Schemas that no struct stands for: names, topology levels, configured dimensions.

use crate::quantities::{amount_schema, unbounded_schema};
use cluster::{Dimensions, MAX_NAME_BYTES};
use std::borrow::Cow;
use std::collections::BTreeMap;
use utoipa::openapi::schema::{AdditionalProperties, AllOf, ArrayBuilder, ObjectBuilder, Type};
use utoipa::openapi::{Object, OpenApi, Ref, RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

/// The schema of `cluster::Name`.
#[derive(Debug)]
pub struct NameSchema;

impl PartialSchema for NameSchema {
    fn schema() -> RefOr<Schema> {
        name_object().build().into()
    }
}

impl ToSchema for NameSchema {
    fn name() -> Cow<'static, str> {
        "Name".into()
    }
}

fn name_object() -> ObjectBuilder {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .description(Some("A name or id."))
        .pattern(Some("^[A-Za-z0-9][A-Za-z0-9._:/@-]*$"))
        .min_length(Some(1))
        .max_length(Some(MAX_NAME_BYTES))
}

/// The schema of `cluster::Level`.
#[derive(Debug)]
pub struct LevelSchema;

impl PartialSchema for LevelSchema {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::String)
            .description(Some("A topology level; `label:KEY` groups hosts by a label's value."))
            .pattern(Some(
                "^(host|rack|power_feed|zone|region|label:[A-Za-z0-9][A-Za-z0-9._:/@-]{0,127})$",
            ))
            .build()
            .into()
    }
}

impl ToSchema for LevelSchema {
    fn name() -> Cow<'static, str> {
        "Level".into()
    }
}

/// The schema of sums over hosts or VMs, which no limit of one host bounds.
#[derive(Debug)]
pub struct TotalsSchema;

impl PartialSchema for TotalsSchema {
    fn schema() -> RefOr<Schema> {
        let mut object = ObjectBuilder::new()
            .description(Some("A sum per resource dimension."))
            .additional_properties(Some(AdditionalProperties::FreeForm(false)));
        let dimensions = Dimensions::default();
        for dim in dimensions.iter() {
            object = object.property(dimensions.name(dim), unbounded_schema());
        }
        object.build().into()
    }
}

impl ToSchema for TotalsSchema {
    fn name() -> Cow<'static, str> {
        "Totals".into()
    }
}

/// The schema of an object of names by name, as labels are.
#[derive(Debug)]
pub struct LabelsSchema;

impl PartialSchema for LabelsSchema {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .description(Some("Labels by key."))
            .property_names(Some(name_object().build()))
            .additional_properties(Some(name_object()))
            .build()
            .into()
    }
}

impl ToSchema for LabelsSchema {
    fn name() -> Cow<'static, str> {
        "Labels".into()
    }
}

/// Completes the generated document: the extra dimensions of this cluster, and the strictness of
/// the reader, which the derives cannot express.
pub fn complete(api: &mut OpenApi, dimensions: &Dimensions) {
    let Some(components) = &mut api.components else { return };
    let schemas = &mut components.schemas;
    for (name, amount) in [("Quantities", amount_schema()), ("Totals", unbounded_schema())] {
        if let Some(RefOr::T(Schema::Object(object))) = schemas.get_mut(name) {
            let amount = amount.build();
            let extra =
                dimensions.extra().iter().map(|name| (name.to_string(), amount.clone().into()));
            object.properties.extend(extra);
        }
    }
    let generated = schemas.clone();
    for (name, schema) in schemas.iter_mut() {
        if let RefOr::T(Schema::AllOf(parts)) = schema {
            *schema = flattened(parts, &generated).into();
        }
        let is_strict = !name.starts_with("novacron.");
        let is_request = is_strict && name.ends_with("Spec") || name == "WeightMap";
        if let (true, RefOr::T(Schema::Object(object))) = (is_request, schema) {
            object.additional_properties = Some(Box::new(AdditionalProperties::FreeForm(false)));
        }
    }
    // A page's items are generated in place, as "all of" the parts of what they are.
    let known: Vec<String> = schemas.keys().cloned().collect();
    for name in known {
        let page = schemas.get_mut(&format!("Page_{name}"));
        if let Some(RefOr::T(Schema::Object(page))) = page {
            let items = ArrayBuilder::new().items(Ref::from_schema_name(name));
            page.properties.insert("items".into(), items.build().into());
        }
    }
}

/// One object for a struct that flattens another, which is generated as "all of" the two. A
/// closed object among several could never hold together with the others.
fn flattened(parts: &AllOf, schemas: &BTreeMap<String, RefOr<Schema>>) -> Object {
    let mut whole = Object::new();
    whole.description = parts.description.clone();
    for part in &parts.items {
        let part = match part {
            RefOr::Ref(to) => to.ref_location.rsplit('/').next().and_then(|name| schemas.get(name)),
            RefOr::T(_) => Some(part),
        };
        if let Some(RefOr::T(Schema::Object(object))) = part {
            whole.properties.extend(object.properties.clone());
            whole.required.extend(object.required.iter().cloned());
        }
    }
    whole
}
