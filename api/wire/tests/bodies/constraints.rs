//! Constraints are read as they are written, and the list of types says what the reader takes.

use crate::full;
use crate::round_trip::{check_view, limits};
use cluster::{Constraint, ConstraintRule};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use wire::{ConstraintSpec, ConstraintView, Fault, constraint_types};

fn written(constraint: &Constraint) -> Map<String, Value> {
    let spec = ConstraintSpec::from(&constraint.rule);
    let value = serde_json::to_value(spec).expect("plain data");
    value.as_object().expect("an object").clone()
}

fn read(fields: &Map<String, Value>) -> Result<ConstraintRule, Vec<Fault>> {
    wire::read(Value::from(fields.clone()).to_string().as_bytes(), &limits())
}

#[test]
fn constraints_come_back_as_they_were() {
    for constraint in full::constraints() {
        assert_eq!(read(&written(&constraint)).as_ref(), Ok(&constraint.rule));
        check_view(&ConstraintView::new(&constraint, 3));
    }
}

#[test]
fn the_types_say_which_fields_there_are_and_which_are_needed() {
    let mut seen: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for constraint in full::constraints() {
        let fields = written(&constraint);
        let kind = constraint.rule.type_name();
        assert_eq!(fields["type"], kind);
        let types = constraint_types();
        let described = types.iter().find(|it| it.kind == kind).expect("every type is listed");
        for field in fields.keys().filter(|field| *field != "type") {
            let known = described.parameters.iter().find(|it| it.name == field.as_str());
            let known = known.unwrap_or_else(|| panic!("{kind} has {field}, and nobody says so"));
            assert!(!known.doc.is_empty());
            let mut without = fields.clone();
            without.remove(field);
            // Of two that exclude each other one is needed, which the type says in words.
            if !field.starts_with("keep_") {
                assert_eq!(read(&without).is_err(), known.required, "{kind} without {field}");
            }
            seen.entry(kind.into()).or_default().insert(field.clone());
        }
        let mut more = fields.clone();
        more.insert("colour".into(), "red".into());
        assert!(read(&more).is_err(), "{kind} takes what it does not know");
    }
    for kind in constraint_types() {
        let all = kind.parameters.iter().map(|it| it.name.to_string()).collect();
        assert_eq!(seen.get(kind.kind.as_ref()), Some(&all), "{}", kind.kind);
        let reason = kind.reason.as_deref();
        let known = cluster::REASON_ORDER.iter().filter_map(|reason| reason.name());
        assert!(reason.is_none_or(|reason| known.into_iter().any(|it| it == reason)));
    }
}
