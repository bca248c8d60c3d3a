//! The same policies as YAML (or JSON): the keys are those of the policy language.
//!
//! Expressions are strings in the language itself. Actions are maps, or strings as they would
//! stand in a `then` block.

use super::cursor::Cursor;
use super::draft::{DraftDocument, DraftParameter, DraftRule};
use super::dsl::{action, level_named};
use super::expression::expression;
use super::tree::{Node, NodeKind, tree};
use crate::diagnostic::{Findings, suggestion};
use crate::document::{Action, ActionKind, LogLevel, MAX_ALLOWED_VALUES, Marks};
use crate::{At, Expr, Value};

const POLICY_KEYS: [&str; 8] =
    ["policy", "id", "type", "description", "metadata", "target", "parameters", "rules"];
const PARAMETER_KEYS: [&str; 6] = ["type", "default", "description", "min", "max", "allowed"];
const RULE_KEYS: [&str; 8] =
    ["rule", "id", "description", "priority", "weight", "hard_constraint", "when", "then"];
const ACTION_KEYS: [&str; 5] = ["score", "reason", "filter", "log", "level"];

/// Reads a whole text.
pub(crate) fn document(text: &str, findings: &mut Findings) -> DraftDocument {
    let mut draft = DraftDocument::default();
    let Some(root) = tree(text, findings) else { return draft };
    draft.marks = Marks::starting(root.at);
    let mut reader = Reader { findings };
    reader.map(&root, "policy", &POLICY_KEYS, |reader, key, at, value| {
        if !reader.mark(&mut draft.marks, key, at) {
            return;
        }
        match key {
            "policy" => {
                draft.marks.put("name", value.at);
                draft.name = reader.text(value, "policy").unwrap_or_default();
            }
            "id" => draft.id = reader.text(value, key),
            "type" => draft.kind = reader.text(value, key),
            "description" => draft.description = reader.text(value, key),
            "target" => draft.target = reader.expression(value, key),
            "metadata" => reader.entries(value, key, |reader, name, _, value| {
                let field = format!("metadata.{name}");
                let text = reader.text(value, &field).unwrap_or_default();
                if draft.metadata.insert(name.into(), text).is_some() {
                    let message = format!("{name} is written twice");
                    reader.findings.error("duplicate-key", value.at, &field, message);
                }
            }),
            "parameters" => reader.entries(value, key, |reader, name, at, value| {
                let parameter = reader.parameter(name, at, value);
                draft.parameters.push(parameter);
            }),
            _ => {
                for item in reader.list(value, key) {
                    let rule = reader.rule(item, draft.rules.len());
                    draft.rules.push(rule);
                }
            }
        }
    });
    if !draft.marks.has("policy") {
        let message = "invalid policy format: missing policy header";
        findings
            .error("missing-header", root.at, "policy", message)
            .hint("the policy's name stands under the key policy");
    }
    draft
}

struct Reader<'f> {
    findings: &'f mut Findings,
}

impl Reader<'_> {
    fn parameter(&mut self, name: &str, at: At, node: &Node) -> DraftParameter {
        let mut draft = DraftParameter { marks: Marks::starting(at), ..Default::default() };
        draft.name = name.into();
        let field = format!("parameters.{name}");
        self.map(node, &field, &PARAMETER_KEYS, |reader, key, at, value| {
            if !reader.mark(&mut draft.marks, key, at) {
                return;
            }
            let field = format!("{field}.{key}");
            match key {
                "type" => draft.kind = reader.text(value, &field),
                "description" => draft.description = reader.text(value, &field),
                "default" => draft.default = reader.value(value, &field),
                "min" => draft.min = reader.value(value, &field),
                "max" => draft.max = reader.value(value, &field),
                _ => {
                    let items = reader.list(value, &field);
                    if items.len() > MAX_ALLOWED_VALUES {
                        let message = format!("at most {MAX_ALLOWED_VALUES} values are allowed");
                        reader.findings.error("too-many", at, &field, message);
                    }
                    let items = items.iter().take(MAX_ALLOWED_VALUES);
                    draft.allowed = items.filter_map(|item| reader.value(item, &field)).collect();
                }
            }
        });
        draft
    }

    fn rule(&mut self, node: &Node, index: usize) -> DraftRule {
        let mut draft = DraftRule { marks: Marks::starting(node.at), ..Default::default() };
        let base = format!("rules[{index}]");
        self.map(node, &base, &RULE_KEYS, |reader, key, at, value| {
            if !reader.mark(&mut draft.marks, key, at) {
                return;
            }
            let field = format!("{base}.{key}");
            match key {
                "rule" => {
                    draft.marks.put("name", value.at);
                    draft.name = reader.text(value, &field).unwrap_or_default();
                }
                "id" => draft.id = reader.text(value, &field),
                "description" => draft.description = reader.text(value, &field),
                "priority" => draft.priority = reader.number(value, &field),
                "weight" => draft.weight = reader.number(value, &field),
                "hard_constraint" => draft.hard_constraint = reader.bool(value, &field),
                "when" => draft.when = reader.expression(value, &field),
                _ => {
                    let items = reader.list(value, &field);
                    draft.then =
                        items.iter().filter_map(|item| reader.action(item, &field)).collect();
                }
            }
        });
        if !draft.marks.has("rule") && matches!(node.kind, NodeKind::Map(_)) {
            let message = "a rule's name stands under the key rule";
            self.findings.error("missing-name", node.at, &base, message);
        }
        draft
    }

    fn action(&mut self, node: &Node, field: &str) -> Option<Action> {
        if let NodeKind::Scalar { text, .. } = &node.kind {
            let mut cursor = Cursor::new(text, field, self.findings).starting_at(node.at);
            let action = action(&mut cursor)?;
            if !cursor.at_end() {
                cursor.expected("nothing more");
            }
            return Some(action);
        }
        let (mut marks, before) = (Marks::starting(node.at), self.findings.errors());
        let (mut points, mut filter, mut log) = (None, None, None);
        let (mut reason, mut level) = (None, LogLevel::default());
        self.map(node, field, &ACTION_KEYS, |reader, key, at, value| {
            if !reader.mark(&mut marks, key, at) {
                return;
            }
            match key {
                "score" => points = reader.expression(value, field),
                "reason" => reason = reader.text(value, field),
                "filter" => filter = reader.text(value, field),
                "log" => log = reader.text(value, field),
                _ => {
                    let name = reader.text(value, field).unwrap_or_default();
                    level = level_named(&name, value.at, field, reader.findings);
                }
            }
        });
        let kind = match (points, filter, log, reason) {
            (Some(points), None, None, Some(reason)) if !marks.has("level") => {
                ActionKind::Score { points, reason: reason.into() }
            }
            (None, Some(reason), None, None) if !marks.has("level") => {
                ActionKind::Filter { reason: reason.into() }
            }
            (None, None, Some(text), None) => ActionKind::Log { text: text.into(), level },
            _ => {
                // Where a part is broken, its own finding says more.
                if self.findings.errors() == before {
                    let message = "an action is a score with its reason, a filter, or a log";
                    self.findings.error("unknown-action", node.at, field, message).hint(
                        "write {score: .., reason: ..}, {filter: reason} or {log: text, level: ..}",
                    );
                }
                return None;
            }
        };
        Some(Action { at: node.at, kind })
    }

    fn expression(&mut self, node: &Node, field: &str) -> Option<Expr> {
        let text = self.text(node, field)?;
        let mut cursor = Cursor::new(&text, field, self.findings).starting_at(node.at);
        let found = expression(&mut cursor)?;
        if cursor.at_end() {
            return Some(found);
        }
        cursor.expected("nothing more");
        None
    }

    /// Calls `read` for every known key of a map.
    fn map(
        &mut self,
        node: &Node,
        field: &str,
        known: &'static [&'static str],
        mut read: impl FnMut(&mut Self, &'static str, At, &Node),
    ) {
        self.entries(node, field, |reader, key, at, value| {
            let alias = match key {
                "name" if known.contains(&"policy") => "policy",
                "name" if known.contains(&"rule") => "rule",
                "allowed_values" => "allowed",
                key => key,
            };
            match known.iter().find(|name| **name == alias) {
                // Programs that write JSON write null for what they leave out.
                Some(_) if value.is_null() => {}
                Some(name) => read(reader, name, at, value),
                None => {
                    let message = format!("{key} is not known here");
                    let hint = suggestion(key, known);
                    reader.findings.error("unknown-key", at, field, message).hint(hint);
                }
            }
        });
    }

    fn entries(
        &mut self,
        node: &Node,
        field: &str,
        mut read: impl FnMut(&mut Self, &str, At, &Node),
    ) {
        let NodeKind::Map(pairs) = &node.kind else {
            self.wanted(node, field, "a map");
            return;
        };
        for (key, value) in pairs {
            match &key.kind {
                NodeKind::Scalar { text, .. } => read(self, text, key.at, value),
                _ => self.wanted(key, field, "a name"),
            }
        }
    }

    fn list<'n>(&mut self, node: &'n Node, field: &str) -> &'n [Node] {
        match &node.kind {
            NodeKind::List(items) => items,
            _ => {
                self.wanted(node, field, "a list");
                &[]
            }
        }
    }

    fn text(&mut self, node: &Node, field: &str) -> Option<String> {
        match &node.kind {
            NodeKind::Scalar { text, .. } => Some(text.clone()),
            _ => {
                self.wanted(node, field, "a single value");
                None
            }
        }
    }

    fn number(&mut self, node: &Node, field: &str) -> Option<f64> {
        match self.value(node, field)? {
            Value::Number(number) => Some(number),
            _ => {
                self.wanted(node, field, "a number");
                None
            }
        }
    }

    fn bool(&mut self, node: &Node, field: &str) -> Option<bool> {
        match self.value(node, field)? {
            Value::Bool(value) => Some(value),
            _ => {
                self.wanted(node, field, "true or false");
                None
            }
        }
    }

    /// A scalar as YAML means it: bare numbers and bools are such, all else is text.
    fn value(&mut self, node: &Node, field: &str) -> Option<Value> {
        let NodeKind::Scalar { text, plain } = &node.kind else {
            self.wanted(node, field, "a single value");
            return None;
        };
        if !plain {
            return Some(Value::text(text));
        }
        let numeric = text.trim_start_matches(['-', '+']).starts_with(|c: char| c.is_ascii_digit());
        Some(match (text.as_str(), text.parse::<f64>()) {
            ("true", _) => Value::Bool(true),
            ("false", _) => Value::Bool(false),
            (_, Ok(number)) if numeric && number.is_finite() => Value::Number(number),
            (text, _) => Value::text(text),
        })
    }

    fn mark(&mut self, marks: &mut Marks, key: &'static str, at: At) -> bool {
        let new = marks.put(key, at);
        if !new {
            let message = format!("{key} is written twice");
            self.findings.error("duplicate-key", at, key, message);
        }
        new
    }

    fn wanted(&mut self, node: &Node, field: &str, wanted: &str) {
        let message = format!("{wanted} is wanted, this is {}", node.describe());
        self.findings.error("type-mismatch", node.at, field, message);
    }
}
