//! Whether a document makes sense: limits, defaults, types, names.
//!
//! Attributes may hold anything, so their type is unknown until a policy runs; everything else is
//! known beforehand, and a mistake there is an error here. What is merely doubtful is `lint`'s.

mod lint;
mod types;

use crate::diagnostic::{Findings, nearest};
use crate::document::{ActionKind, Document, Parameter, ParameterType, Rule};
use crate::{At, Expr, ExprKind};
use std::collections::BTreeSet;
use types::{Type, type_of};

/// Longest id of a policy: what fits in a DNS label.
const MAX_ID_BYTES: usize = 63;

/// Adds everything that is wrong or doubtful in `document`.
pub(crate) fn check(document: &Document, findings: &mut Findings) {
    // Whatever could not be read is not missing: it has its own finding already.
    let complete = findings.errors() == 0;
    let declared = !findings.touches("parameters");
    texts(document, complete, findings);
    if complete && document.rules.is_empty() {
        let at = document.marks.of("rules");
        let message = "invalid policy format: missing rules section";
        findings.error("no-rules", at, "rules", message).hint("a policy has at least one rule");
    }
    parameters(document, findings);
    if declared {
        unknown_parameters(document, findings);
    }
    for (field, expr) in expressions(document) {
        lint::faults(&field, expr, findings);
    }
    if let Some(target) = &document.target {
        wanted(target, Type::Bool, "target", document, findings);
    }
    let mut ids = BTreeSet::new();
    for (index, rule) in document.rules.iter().enumerate() {
        let field = format!("rules[{index}]");
        if !ids.insert(rule.id.as_str()) {
            let message = format!("another rule has the id {} already", rule.id);
            findings.error("duplicate-id", rule.marks.of("id"), &field, message);
        }
        check_rule(rule, &field, document, findings);
    }
    if complete && findings.errors() == 0 {
        lint::lint(document, findings);
    }
}

fn texts(document: &Document, complete: bool, findings: &mut Findings) {
    let marks = &document.marks;
    if complete || !document.name.is_empty() {
        length("name", &document.name, 3, 100, marks.of("name"), findings);
    }
    if let Some(description) = &document.description {
        length("description", description, 10, 1000, marks.of("description"), findings);
    }
    let unread = document.id.is_empty() && document.name.is_empty();
    if !unread && !is_id(&document.id) {
        let message = format!("the id is {:?}", document.id);
        findings.error("bad-id", marks.of("id"), "id", message).hint(
            "an id has 1 to 63 lower-case letters, digits and dashes, and does not begin with a dash",
        );
    }
}

fn is_id(id: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    id.len() <= MAX_ID_BYTES
        && id.bytes().next().is_some_and(fits)
        && id.bytes().all(|byte| fits(byte) || byte == b'-')
}

fn length(field: &str, text: &str, least: usize, most: usize, at: At, findings: &mut Findings) {
    let chars = text.chars().count();
    if !(least..=most).contains(&chars) {
        let message = format!("{chars} characters, {least} to {most} are wanted");
        findings.error("bad-length", at, field, message);
    }
}

fn parameters(document: &Document, findings: &mut Findings) {
    let mut names = BTreeSet::new();
    for parameter in &document.parameters {
        let field = format!("parameters.{}", parameter.name);
        let marks = &parameter.marks;
        if parameter.name.is_empty() || parameter.name.chars().count() > 100 {
            let message = "a parameter's name has 1 to 100 characters";
            findings.error("bad-length", marks.at, &field, message);
        }
        if !names.insert(&parameter.name) {
            let message = format!("{} is declared twice", parameter.name);
            findings.error("duplicate-id", marks.at, &field, message);
        }
        check_parameter(parameter, &field, findings);
    }
}

fn check_parameter(parameter: &Parameter, field: &str, findings: &mut Findings) {
    let marks = &parameter.marks;
    let numeric = matches!(parameter.kind, ParameterType::Int | ParameterType::Float);
    if (parameter.min.is_some() || parameter.max.is_some()) && !numeric {
        let key = if parameter.min.is_some() { "min" } else { "max" };
        let message = format!("{key} means nothing for a {}", parameter.kind.name());
        findings
            .error("type-mismatch", marks.of(key), &format!("{field}.{key}"), message)
            .hint("give the parameter type = \"int\" or \"float\", or drop the limit");
    }
    if let (Some(min), Some(max)) = (parameter.min, parameter.max)
        && min > max
    {
        let message = format!("min is {min} and max is {max}: nothing lies between");
        findings.error("empty-range", marks.of("min"), field, message);
    }
    for value in &parameter.allowed {
        if !parameter.kind.accepts(value) {
            let message = format!("{value} is not of type {}", parameter.kind.name());
            findings.error(
                "type-mismatch",
                marks.of("allowed"),
                &format!("{field}.allowed"),
                message,
            );
        }
    }
    if let Some(Err(message)) = parameter.default.as_ref().map(|value| parameter.check(value)) {
        findings.error("bad-default", marks.of("default"), &format!("{field}.default"), message);
    }
}

fn check_rule(rule: &Rule, field: &str, document: &Document, findings: &mut Findings) {
    length(&format!("{field}.name"), &rule.name, 1, 100, rule.marks.of("name"), findings);
    length(&format!("{field}.id"), &rule.id, 1, 100, rule.marks.of("id"), findings);
    wanted(&rule.when, Type::Bool, &format!("{field}.when"), document, findings);
    for action in &rule.then {
        let field = format!("{field}.then");
        if let ActionKind::Score { points, .. } = &action.kind {
            wanted(points, Type::Number, &field, document, findings);
        }
    }
}

fn wanted(expr: &Expr, wanted: Type, field: &str, document: &Document, findings: &mut Findings) {
    let found = type_of(expr, document, field, findings);
    if found.is_some_and(|found| found != wanted && found != Type::Unknown) {
        let message = format!("{} is wanted here", wanted.name());
        findings.error("type-mismatch", expr.at, field, message);
    }
}

/// Complains of parameters that are used and not declared.
fn unknown_parameters(document: &Document, findings: &mut Findings) {
    let names: Vec<&str> = document.parameters.iter().map(|p| p.name.as_str()).collect();
    for (field, expr) in expressions(document) {
        expr.walk(&mut |expr| {
            let ExprKind::Parameter(name) = &expr.kind else { return };
            if document.parameter(name).is_some() {
                return;
            }
            let message = format!("there is no parameter {name}");
            findings.error("unknown-parameter", expr.at, &field, message).hint(
                match nearest(name, names.iter().copied()) {
                    Some(name) => format!("did you mean {name}?"),
                    None => format!("declare it: parameters {{ param \"{name}\" {{ ... }} }}"),
                },
            );
        });
    }
}

/// Every expression of a document with the field it stands in.
pub(crate) fn expressions(document: &Document) -> Vec<(String, &Expr)> {
    let mut found = Vec::new();
    found.extend(document.target.iter().map(|target| ("target".to_string(), target)));
    for (index, rule) in document.rules.iter().enumerate() {
        found.push((format!("rules[{index}].when"), &rule.when));
        for action in &rule.then {
            if let ActionKind::Score { points, .. } = &action.kind {
                found.push((format!("rules[{index}].then"), points));
            }
        }
    }
    found
}
