//! The policy language.

use crate::Value;
use crate::document::{ActionKind, Document, Parameter, Rule};
use crate::expr::{is_identifier, quoted};
use std::fmt::Write;

pub(super) fn document(document: &Document) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = write_document(document, &mut out);
    out
}

fn write_document(document: &Document, out: &mut String) -> std::fmt::Result {
    writeln!(out, "policy {} {{", quoted(&document.name))?;
    writeln!(out, "  id = {}", quoted(&document.id))?;
    writeln!(out, "  type = \"{}\"", document.kind.name())?;
    if let Some(description) = &document.description {
        writeln!(out, "  description = {}", quoted(description))?;
    }
    if let Some(target) = &document.target {
        writeln!(out, "  target = {target}")?;
    }
    if !document.metadata.is_empty() {
        writeln!(out, "  metadata {{")?;
        for (key, text) in &document.metadata {
            let key = if is_identifier(key) { key.clone() } else { quoted(key) };
            writeln!(out, "    {key} = {}", quoted(text))?;
        }
        writeln!(out, "  }}")?;
    }
    if !document.parameters.is_empty() {
        writeln!(out, "\n  parameters {{")?;
        for parameter in &document.parameters {
            write_parameter(parameter, out)?;
        }
        writeln!(out, "  }}")?;
    }
    writeln!(out, "\n  rules {{")?;
    for rule in &document.rules {
        write_rule(rule, out)?;
    }
    writeln!(out, "  }}\n}}")
}

fn write_parameter(parameter: &Parameter, out: &mut String) -> std::fmt::Result {
    writeln!(out, "    param {} {{", quoted(&parameter.name))?;
    writeln!(out, "      type = \"{}\"", parameter.kind.name())?;
    if let Some(description) = &parameter.description {
        writeln!(out, "      description = {}", quoted(description))?;
    }
    if let Some(default) = &parameter.default {
        writeln!(out, "      default = {}", literal(default))?;
    }
    for (key, bound) in [("min", parameter.min), ("max", parameter.max)] {
        if let Some(bound) = bound {
            writeln!(out, "      {key} = {bound}")?;
        }
    }
    if !parameter.allowed.is_empty() {
        let values: Vec<String> = parameter.allowed.iter().map(literal).collect();
        writeln!(out, "      allowed = [{}]", values.join(", "))?;
    }
    writeln!(out, "    }}")
}

fn write_rule(rule: &Rule, out: &mut String) -> std::fmt::Result {
    writeln!(out, "    rule {} {{", quoted(&rule.name))?;
    writeln!(out, "      id = {}", quoted(&rule.id))?;
    if let Some(description) = &rule.description {
        writeln!(out, "      description = {}", quoted(description))?;
    }
    writeln!(out, "      priority = {}", rule.priority)?;
    writeln!(out, "      weight = {}", rule.weight)?;
    if let Some(hard) = rule.hard_constraint {
        writeln!(out, "      hard_constraint = {hard}")?;
    }
    writeln!(out, "      when {{ {} }}", rule.when)?;
    writeln!(out, "      then {{")?;
    for action in &rule.then {
        match &action.kind {
            ActionKind::Score { points, reason } => {
                writeln!(out, "        score {points} {}", quoted(reason))?;
            }
            ActionKind::Filter { reason } => writeln!(out, "        filter {}", quoted(reason))?,
            ActionKind::Log { text, level } => {
                writeln!(out, "        log {} level = \"{}\"", quoted(text), level.name())?;
            }
        }
    }
    writeln!(out, "      }}\n    }}")
}

pub(super) fn literal(value: &Value) -> String {
    match value {
        Value::Text(text) => quoted(text),
        other => other.to_string(),
    }
}
