//! NovaCron's policy language.
//!
//! After a mistake, reading goes on at the next key, rule or closing brace, so that one pass finds
//! what is wrong everywhere.

use super::cursor::Cursor;
use super::draft::{DraftDocument, DraftParameter, DraftRule};
use super::expression::expression;
use super::lex::Token;
use crate::diagnostic::{Findings, suggestion};
use crate::document::{Action, ActionKind, LogLevel, MAX_ALLOWED_VALUES, Marks};
use crate::{At, Expr, Value};

const POLICY_KEYS: [&str; 7] =
    ["id", "type", "description", "metadata", "target", "parameters", "rules"];
const PARAMETER_KEYS: [&str; 6] = ["type", "default", "description", "min", "max", "allowed"];
const RULE_KEYS: [&str; 7] =
    ["id", "description", "priority", "weight", "hard_constraint", "when", "then"];
const ACTIONS: [&str; 3] = ["score", "filter", "log"];

/// Reads a whole text.
pub(crate) fn document(text: &str, findings: &mut Findings) -> DraftDocument {
    let mut cursor = Cursor::new(text, "policy", findings);
    let mut draft = DraftDocument::default();
    if !cursor.is_word("policy") {
        let at = cursor.at();
        let message = "invalid policy format: missing policy header";
        cursor
            .findings
            .error("missing-header", at, "policy", message)
            .hint("a policy begins with: policy \"its name\" {");
        return draft;
    }
    draft.marks = Marks::starting(cursor.at());
    cursor.bump();
    draft.marks.put("name", cursor.at());
    match cursor.take_text() {
        Some(name) => draft.name = name,
        None => cursor.expected("the policy's name as a string"),
    }
    if cursor.expect_mark("{") {
        block(
            &mut cursor,
            "policy",
            |_| false,
            |cursor, key, at| policy_key(cursor, key, at, &mut draft),
        );
    }
    if !cursor.at_end() {
        cursor.expected("nothing more");
    }
    draft
}

/// Reads one action, for notations that have actions as strings.
pub(super) fn action(cursor: &mut Cursor<'_>) -> Option<Action> {
    let at = cursor.at();
    let word = cursor.take_word().unwrap_or_default();
    let kind = match word.as_str() {
        "score" => {
            let points = expression(cursor)?;
            ActionKind::Score { points, reason: reason(cursor)? }
        }
        "filter" => ActionKind::Filter { reason: reason(cursor)? },
        "log" => ActionKind::Log { text: reason(cursor)?, level: level(cursor)? },
        _ => {
            let message = match word.as_str() {
                "" => "an action is expected".to_string(),
                word => format!("{word} is not an action"),
            };
            let hint = suggestion(&word, &ACTIONS);
            cursor.findings.error("unknown-action", at, &cursor.field, message).hint(hint);
            return None;
        }
    };
    Some(Action { at, kind })
}

/// The level of a log action.
pub(super) fn level_named(name: &str, at: At, field: &str, findings: &mut Findings) -> LogLevel {
    LogLevel::named(name).unwrap_or_else(|| {
        let message = format!("unknown log level: {name}");
        let hint = suggestion(name, &LogLevel::ALL.map(LogLevel::name));
        findings.error("unknown-level", at, field, message).hint(hint);
        LogLevel::default()
    })
}

/// Reads keys until the closing brace. `begins` tells when a brace must have been forgotten.
fn block<'f>(
    cursor: &mut Cursor<'f>,
    field: &str,
    begins: impl Fn(&Cursor<'f>) -> bool,
    mut read: impl FnMut(&mut Cursor<'f>, &str, At) -> bool,
) {
    loop {
        cursor.field = field.into();
        if cursor.take_mark("}") {
            return;
        }
        if cursor.at_end() || begins(cursor) {
            cursor.expected("`}`");
            return;
        }
        let (at, before) = (cursor.at(), cursor.position());
        // Metadata may have keys that are no words.
        let Some(key) = cursor.take_word().or_else(|| cursor.take_text()) else {
            cursor.expected("a key");
            cursor.bump();
            skip_value(cursor);
            continue;
        };
        if !read(cursor, &key, at) {
            skip_value(cursor);
        }
        debug_assert!(cursor.position() > before, "reading goes forward");
    }
}

/// After a mistake: over whatever is left of a value, to the next key or closing brace.
fn skip_value(cursor: &mut Cursor<'_>) {
    loop {
        match cursor.peek() {
            Token::End | Token::Mark("}") => return,
            Token::Mark("{") => {
                cursor.bump();
                cursor.skip_block(begins_rule);
                return;
            }
            Token::Word(_) if matches!(cursor.peek_at(1), Token::Mark("=" | "{")) => return,
            Token::Word(word) if ACTIONS.contains(&word.as_str()) => return,
            Token::Word(_) if begins_rule(cursor) => return,
            _ => cursor.bump(),
        }
    }
}

fn begins_rule(cursor: &Cursor<'_>) -> bool {
    cursor.is_word("rule") && matches!(cursor.peek_at(1), Token::Text(_))
}

fn policy_key(cursor: &mut Cursor<'_>, key: &str, at: At, draft: &mut DraftDocument) -> bool {
    let Some(known) = known_key(cursor, key, at, &POLICY_KEYS, &mut draft.marks) else {
        return false;
    };
    cursor.field = known.into();
    match known {
        "id" => text_value(cursor, &mut draft.id),
        "type" => name_value(cursor, &mut draft.kind),
        "description" => text_value(cursor, &mut draft.description),
        "target" => target(cursor, &mut draft.target),
        "metadata" => open(cursor, |cursor| {
            block(
                cursor,
                "metadata",
                |_| false,
                |cursor, key, at| {
                    let value = cursor.expect_mark("=").then(|| literal(cursor)).flatten();
                    let text = match value {
                        Some(Value::Text(text)) => text.to_string(),
                        Some(other) => other.to_string(),
                        None => return false,
                    };
                    if draft.metadata.insert(key.into(), text).is_some() {
                        let message = format!("{key} is written twice");
                        cursor.findings.error("duplicate-key", at, "metadata", message);
                    }
                    true
                },
            )
        }),
        "parameters" => open(cursor, |cursor| {
            block(cursor, "parameters", begins_rule, |cursor, key, at| {
                if key != "param" && key != "parameter" {
                    unknown(cursor, key, at, &["param"]);
                    return false;
                }
                let draft_parameter = parameter(cursor, at);
                draft.parameters.extend(draft_parameter);
                true
            })
        }),
        _ => open(cursor, |cursor| {
            block(
                cursor,
                "rules",
                |_| false,
                |cursor, key, at| {
                    if key != "rule" {
                        unknown(cursor, key, at, &["rule"]);
                        return false;
                    }
                    let draft_rule = rule(cursor, at, draft.rules.len());
                    draft.rules.push(draft_rule);
                    true
                },
            )
        }),
    }
}

fn target(cursor: &mut Cursor<'_>, slot: &mut Option<Expr>) -> bool {
    if cursor.take_mark("=") {
        *slot = expression(cursor);
        return slot.is_some();
    }
    open(cursor, |cursor| {
        block(
            cursor,
            "target",
            |_| false,
            |cursor, key, at| {
                if key != "selector" {
                    unknown(cursor, key, at, &["selector"]);
                    return false;
                }
                *slot = cursor.expect_mark("=").then(|| expression(cursor)).flatten();
                slot.is_some()
            },
        )
    })
}

fn parameter(cursor: &mut Cursor<'_>, at: At) -> Option<DraftParameter> {
    let mut draft = DraftParameter { marks: Marks::starting(at), ..Default::default() };
    match cursor.take_text() {
        Some(name) => draft.name = name,
        None => cursor.expected("the parameter's name as a string"),
    }
    let field = format!("parameters.{}", draft.name);
    if !cursor.expect_mark("{") {
        skip_value(cursor);
        return None;
    }
    block(cursor, &field, begins_rule, |cursor, key, at| {
        let key = if key == "allowed_values" { "allowed" } else { key };
        let known = known_key(cursor, key, at, &PARAMETER_KEYS, &mut draft.marks);
        let Some(known) = known else { return false };
        cursor.field = format!("{field}.{known}");
        let mut value = |slot: &mut Option<Value>| {
            *slot = cursor.expect_mark("=").then(|| literal(cursor)).flatten();
            slot.is_some()
        };
        match known {
            "type" => name_value(cursor, &mut draft.kind),
            "description" => text_value(cursor, &mut draft.description),
            "default" => value(&mut draft.default),
            "min" => value(&mut draft.min),
            "max" => value(&mut draft.max),
            _ => cursor.expect_mark("=") && list(cursor, &mut draft.allowed),
        }
    });
    Some(draft)
}

fn rule(cursor: &mut Cursor<'_>, at: At, index: usize) -> DraftRule {
    let mut draft = DraftRule { marks: Marks::starting(at), ..Default::default() };
    let field = format!("rules[{index}]");
    cursor.field.clone_from(&field);
    draft.marks.put("name", cursor.at());
    match cursor.take_text() {
        Some(name) => draft.name = name,
        None => cursor.expected("the rule's name as a string"),
    }
    if !cursor.expect_mark("{") {
        skip_value(cursor);
        // Its parts are unknown, not missing.
        draft.marks.put("when", at);
        draft.marks.put("then", at);
        return draft;
    }
    block(cursor, &field, begins_rule, |cursor, key, at| {
        let known = known_key(cursor, key, at, &RULE_KEYS, &mut draft.marks);
        let Some(known) = known else { return false };
        cursor.field = format!("{field}.{known}");
        match known {
            "id" => text_value(cursor, &mut draft.id),
            "description" => text_value(cursor, &mut draft.description),
            "priority" => number_value(cursor, &mut draft.priority),
            "weight" => number_value(cursor, &mut draft.weight),
            "hard_constraint" => bool_value(cursor, &mut draft.hard_constraint),
            "when" => open(cursor, |cursor| {
                draft.when = expression(cursor);
                let closed = draft.when.is_some() && cursor.expect_mark("}");
                if !closed {
                    cursor.skip_block(begins_rule);
                }
            }),
            _ => open(cursor, |cursor| then(cursor, &mut draft.then)),
        }
    });
    draft
}

fn then(cursor: &mut Cursor<'_>, actions: &mut Vec<Action>) {
    while !cursor.take_mark("}") {
        if cursor.at_end() || begins_rule(cursor) {
            cursor.expected("`}`");
            return;
        }
        match action(cursor) {
            Some(action) => actions.push(action),
            None => skip_value(cursor),
        }
        // `skip_value` stops at anything that looks like a key, and no key belongs here.
        if let Token::Word(word) = cursor.peek()
            && !ACTIONS.contains(&word.as_str())
            && matches!(cursor.peek_at(1), Token::Mark("=" | "{"))
        {
            cursor.expected("an action");
            cursor.bump();
            cursor.bump();
        }
    }
}

fn reason(cursor: &mut Cursor<'_>) -> Option<smol_str::SmolStr> {
    let text = cursor.take_text();
    if text.is_none() {
        cursor.expected("the reason as a string");
    }
    text.map(Into::into)
}

fn level(cursor: &mut Cursor<'_>) -> Option<LogLevel> {
    if !cursor.is_word("level") {
        return Some(LogLevel::default());
    }
    cursor.bump();
    let mut name = None;
    let at = cursor.at();
    name_value(cursor, &mut name)
        .then(|| level_named(&name.unwrap_or_default(), at, &cursor.field, cursor.findings))
}

fn open<'f>(cursor: &mut Cursor<'f>, read: impl FnOnce(&mut Cursor<'f>)) -> bool {
    let opened = cursor.expect_mark("{");
    if opened {
        read(cursor);
    }
    opened
}

/// The key if it is known and new here.
fn known_key(
    cursor: &mut Cursor<'_>,
    key: &str,
    at: At,
    known: &'static [&'static str],
    marks: &mut Marks,
) -> Option<&'static str> {
    let Some(found) = known.iter().find(|name| **name == key) else {
        unknown(cursor, key, at, known);
        return None;
    };
    if !marks.put(found, at) {
        let message = format!("{key} is written twice");
        cursor.findings.error("duplicate-key", at, &cursor.field, message);
        return None;
    }
    Some(found)
}

fn unknown(cursor: &mut Cursor<'_>, key: &str, at: At, known: &[&str]) {
    let message = format!("{key} is not known here");
    let hint = suggestion(key, known);
    cursor.findings.error("unknown-key", at, &cursor.field, message).hint(hint);
}

fn text_value(cursor: &mut Cursor<'_>, slot: &mut Option<String>) -> bool {
    if !cursor.expect_mark("=") {
        return false;
    }
    *slot = cursor.take_text();
    if slot.is_none() {
        cursor.expected("a string");
    }
    slot.is_some()
}

/// A name of a fixed list: the quotes may be left out.
fn name_value(cursor: &mut Cursor<'_>, slot: &mut Option<String>) -> bool {
    if matches!(cursor.peek_at(1), Token::Word(_)) && cursor.is_mark("=") {
        cursor.bump();
        *slot = cursor.take_word();
        return true;
    }
    text_value(cursor, slot)
}

fn number_value(cursor: &mut Cursor<'_>, slot: &mut Option<f64>) -> bool {
    if !cursor.expect_mark("=") {
        return false;
    }
    match literal(cursor) {
        Some(Value::Number(number)) => *slot = Some(number),
        Some(_) => cursor.expected("a number"),
        None => {}
    }
    slot.is_some()
}

fn bool_value(cursor: &mut Cursor<'_>, slot: &mut Option<bool>) -> bool {
    if !cursor.expect_mark("=") {
        return false;
    }
    match literal(cursor) {
        Some(Value::Bool(value)) => *slot = Some(value),
        Some(_) => cursor.expected("true or false"),
        None => {}
    }
    slot.is_some()
}

fn list(cursor: &mut Cursor<'_>, values: &mut Vec<Value>) -> bool {
    if !cursor.expect_mark("[") {
        return false;
    }
    while !cursor.take_mark("]") {
        if values.len() == MAX_ALLOWED_VALUES {
            let message = format!("at most {MAX_ALLOWED_VALUES} values are allowed");
            let at = cursor.at();
            cursor.findings.error("too-many", at, &cursor.field, message);
            return false;
        }
        let Some(value) = literal(cursor) else { return false };
        values.push(value);
    }
    true
}

fn literal(cursor: &mut Cursor<'_>) -> Option<Value> {
    let negative = cursor.take_mark("-");
    let value = match cursor.peek() {
        Token::Number(number) => Value::Number(if negative { -number } else { *number }),
        Token::Text(text) if !negative => Value::text(text),
        Token::Word(word) if !negative && word == "true" => Value::Bool(true),
        Token::Word(word) if !negative && word == "false" => Value::Bool(false),
        _ => {
            cursor.expected("a value: a number, a string, true or false");
            return None;
        }
    };
    cursor.bump();
    Some(value)
}
