//! What is allowed and yet probably not meant, and what can never work.

use super::expressions;
use crate::diagnostic::Findings;
use crate::document::{ActionKind, Document, PolicyType, Rule};
use crate::scalar::{Fault, constant};
use crate::{Expr, ExprKind, Op, Root, Value, vocabulary};

/// Adds warnings.
pub(super) fn lint(document: &Document, findings: &mut Findings) {
    for (field, expr) in expressions(document) {
        attributes(document, &field, expr, findings);
    }
    for (index, rule) in document.rules.iter().enumerate() {
        lint_rule(rule, &format!("rules[{index}]"), findings);
    }
    unused_parameters(document, findings);
}

fn lint_rule(rule: &Rule, field: &str, findings: &mut Findings) {
    let when = format!("{field}.when");
    let removes = rule.removes() && rule.has_filter();
    // Asked once of the whole: asking at every `&&` would cost the square of a long condition.
    let truth = truth(&rule.when).or_else(|| by_region(&rule.when));
    match truth {
        Some(false) => {
            let message = format!("rule {} never fires", rule.name);
            findings.warning("never-fires", rule.when.at, &when, message);
        }
        Some(true) if rule.when.kind != ExprKind::Bool(true) => {
            let message = format!("rule {} always fires", rule.name);
            findings
                .warning("always-fires", rule.when.at, &when, message)
                .hint("write when { true } if that is meant");
        }
        _ => {}
    }
    if removes && !rule.when.mentions_host() && truth != Some(false) {
        let message = "the filter's condition asks nothing of the host, \
                       so it removes every host or none";
        findings.warning("filter-ignores-host", rule.when.at, &when, message).hint(
            "a filter removes the host when its condition is true: \
             add what is wrong with the host, as in && !(candidateNode.capabilities.gpu == true)",
        );
    }
    for action in &rule.then {
        if let ActionKind::Score { points, .. } = &action.kind
            && !points.mentions_host()
            && !rule.when.mentions_host()
        {
            let message = "every host gets the same points, so the order does not change";
            findings.warning("score-ignores-host", points.at, &format!("{field}.then"), message);
        }
    }
    if rule.weight == 0 {
        let message = "a weight of 0 takes the rule's points away";
        findings.warning(
            "zero-weight",
            rule.marks.of("weight"),
            &format!("{field}.weight"),
            message,
        );
    }
}

fn attributes(document: &Document, field: &str, expr: &Expr, findings: &mut Findings) {
    expr.walk(&mut |expr| {
        let ExprKind::Attribute(path) = &expr.kind else { return };
        // Looking for the nearest name is not cheap, and nobody would be told.
        if findings.is_full() {
            return;
        }
        if path.root == Root::Source && document.kind == PolicyType::Placement {
            let message = "a placement has no sourceNode, so this is never there";
            findings
                .warning("no-source", expr.at, field, message)
                .hint("use type = \"migration\" or \"composite\"");
        }
        if let Some(near) = vocabulary::misspelt(path) {
            let message = format!("{path} is not an attribute that this service fills in");
            findings.warning("unknown-attribute", expr.at, field, message).hint(match near {
                Some(near) => format!("did you mean {near}?"),
                None => "it is only there when the caller sends it".into(),
            });
        }
    });
}

/// Complains of constant parts that can never have a value, such as a division by zero. Wrong types
/// have been complained of before.
pub(super) fn faults(field: &str, expr: &Expr, findings: &mut Findings) {
    let mut parts = Vec::new();
    if constant_parts(expr, &mut parts) {
        parts.push(expr);
    }
    let mut failing = parts.iter().filter(|part| constant(part) == Some(Err(Fault::NotFinite)));
    if let Some(part) = failing.next() {
        findings.error("always-fails", part.at, field, Fault::NotFinite.to_string());
    }
}

/// Whether all of `expr` is constant; if not, its largest constant parts are added to `parts`.
fn constant_parts<'a>(expr: &'a Expr, parts: &mut Vec<&'a Expr>) -> bool {
    match &expr.kind {
        ExprKind::Attribute(_) | ExprKind::Parameter(_) => false,
        ExprKind::Not(inner) | ExprKind::Negate(inner) => constant_parts(inner, parts),
        ExprKind::Binary(_, left, right) => {
            let constant = [left, right].map(|side| constant_parts(side, parts));
            if constant != [true, true] {
                let sides = [left, right].into_iter().zip(constant);
                parts.extend(sides.filter(|(_, constant)| *constant).map(|(side, _)| &**side));
            }
            constant == [true, true]
        }
        _ => true,
    }
}

fn unused_parameters(document: &Document, findings: &mut Findings) {
    let mut used = Vec::new();
    for (_, expr) in expressions(document) {
        expr.walk(&mut |expr| {
            if let ExprKind::Parameter(name) = &expr.kind {
                used.push(name);
            }
        });
    }
    for parameter in &document.parameters {
        if !used.contains(&&parameter.name) {
            let field = format!("parameters.{}", parameter.name);
            let message = format!("parameter {} is never used", parameter.name);
            findings.warning("unused-parameter", parameter.marks.at, &field, message);
        }
    }
}

/// Whether a condition is the same for all values of its attributes and parameters.
fn truth(expr: &Expr) -> Option<bool> {
    match &expr.kind {
        ExprKind::Not(inner) => truth(inner).map(|value| !value),
        ExprKind::Binary(Op::And, left, right) => match (truth(left), truth(right)) {
            (Some(false), _) | (_, Some(false)) => Some(false),
            (Some(true), Some(true)) => Some(true),
            _ => None,
        },
        ExprKind::Binary(Op::Or, left, right) => match (truth(left), truth(right)) {
            (Some(true), _) | (_, Some(true)) => Some(true),
            (Some(false), Some(false)) => Some(false),
            _ => None,
        },
        _ => match constant(expr)? {
            Ok(Value::Bool(value)) => Some(value),
            _ => None,
        },
    }
}

/// The same for conditions on one attribute, such as `x > 5 && x < 3`.
fn by_region(expr: &Expr) -> Option<bool> {
    let (_, region) = crate::conflicts::region_of(expr)?;
    if region.holds.is_empty() {
        Some(false)
    } else if region.holds.is_everything() {
        Some(true)
    } else {
        None
    }
}
