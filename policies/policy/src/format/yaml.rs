//! The same as YAML. Every string is quoted, so that nothing is taken for a number or a bool.

use super::dsl::literal;
use crate::document::{ActionKind, Document, Parameter, Rule};
use crate::expr::quoted;
use std::fmt::Write;

pub(super) fn document(document: &Document) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = write_document(document, &mut out);
    out
}

fn write_document(document: &Document, out: &mut String) -> std::fmt::Result {
    writeln!(out, "policy: {}", quoted(&document.name))?;
    writeln!(out, "id: {}", quoted(&document.id))?;
    writeln!(out, "type: {}", document.kind.name())?;
    if let Some(description) = &document.description {
        writeln!(out, "description: {}", quoted(description))?;
    }
    if let Some(target) = &document.target {
        writeln!(out, "target: {}", quoted(&target.to_string()))?;
    }
    if !document.metadata.is_empty() {
        writeln!(out, "metadata:")?;
        for (key, text) in &document.metadata {
            writeln!(out, "  {}: {}", quoted(key), quoted(text))?;
        }
    }
    if !document.parameters.is_empty() {
        writeln!(out, "parameters:")?;
        for parameter in &document.parameters {
            write_parameter(parameter, out)?;
        }
    }
    writeln!(out, "rules:")?;
    for rule in &document.rules {
        write_rule(rule, out)?;
    }
    Ok(())
}

fn write_parameter(parameter: &Parameter, out: &mut String) -> std::fmt::Result {
    writeln!(out, "  {}:", quoted(&parameter.name))?;
    writeln!(out, "    type: {}", parameter.kind.name())?;
    if let Some(description) = &parameter.description {
        writeln!(out, "    description: {}", quoted(description))?;
    }
    if let Some(default) = &parameter.default {
        writeln!(out, "    default: {}", literal(default))?;
    }
    for (key, bound) in [("min", parameter.min), ("max", parameter.max)] {
        if let Some(bound) = bound {
            writeln!(out, "    {key}: {bound}")?;
        }
    }
    if !parameter.allowed.is_empty() {
        let values: Vec<String> = parameter.allowed.iter().map(literal).collect();
        writeln!(out, "    allowed: [{}]", values.join(", "))?;
    }
    Ok(())
}

fn write_rule(rule: &Rule, out: &mut String) -> std::fmt::Result {
    writeln!(out, "  - rule: {}", quoted(&rule.name))?;
    writeln!(out, "    id: {}", quoted(&rule.id))?;
    if let Some(description) = &rule.description {
        writeln!(out, "    description: {}", quoted(description))?;
    }
    writeln!(out, "    priority: {}", rule.priority)?;
    writeln!(out, "    weight: {}", rule.weight)?;
    if let Some(hard) = rule.hard_constraint {
        writeln!(out, "    hard_constraint: {hard}")?;
    }
    writeln!(out, "    when: {}", quoted(&rule.when.to_string()))?;
    writeln!(out, "    then:")?;
    for action in &rule.then {
        match &action.kind {
            ActionKind::Score { points, reason } => {
                writeln!(out, "      - score: {}", quoted(&points.to_string()))?;
                writeln!(out, "        reason: {}", quoted(reason))?;
            }
            ActionKind::Filter { reason } => writeln!(out, "      - filter: {}", quoted(reason))?,
            ActionKind::Log { text, level } => {
                writeln!(out, "      - log: {}", quoted(text))?;
                writeln!(out, "        level: {}", level.name())?;
            }
        }
    }
    Ok(())
}
