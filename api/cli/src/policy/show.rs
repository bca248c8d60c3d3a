//! Policies as people see them: a table, one with its text, and what became of a change.

use crate::output::{Paint, Table, grouped, print};
use serde_json::Value;

/// What is installed, and the files that are not in force.
pub(super) fn list(answer: &Value) -> anyhow::Result<()> {
    let paint = Paint::for_stdout();
    let mut table =
        Table::new(&["POLICY", "TYPE", "STATUS", "PRIORITY", "VERSION", "RULES", "STEPS", "FROM"]);
    for policy in items(answer, "items") {
        let number = |key: &str| policy[key].as_i64().map_or_else(String::new, grouped);
        let from = policy["file"].as_str().or(policy["author"].as_str()).unwrap_or("-");
        table.row([
            text(policy, "id"),
            text(policy, "type"),
            text(policy, "status"),
            number("priority"),
            number("version"),
            number("rules"),
            policy["cost"]["per_host"].as_u64().map_or_else(String::new, grouped),
            from.to_owned(),
        ]);
    }
    match table.is_empty() {
        true => print("no policies")?,
        false => print(table.painted(paint))?,
    }
    for file in items(answer, "rejected_files") {
        let found = items(file, "diagnostics");
        print(format!("\n{} {} is not in force:", paint.bad("!"), text(file, "file")))?;
        for found in found {
            print(format!("  {}", finding(found)))?;
        }
    }
    Ok(())
}

/// One policy with its parameters and its text.
pub(super) fn one(policy: &Value) -> anyhow::Result<()> {
    let paint = Paint::for_stdout();
    let priority = policy["priority"].as_i64();
    let priority = priority.map_or_else(String::new, |it| format!(", priority {it}"));
    let (id, name, status) = (text(policy, "id"), text(policy, "name"), text(policy, "status"));
    print(format!("{}  {name}", paint.bold(id)))?;
    print(format!("{} {status}{priority}, version {}", text(policy, "type"), policy["version"]))?;
    if let Some(description) = policy["description"].as_str() {
        print(description)?;
    }
    let from = policy["file"].as_str().map(|file| format!(", file {file}")).unwrap_or_default();
    let (author, updated) = (text(policy, "author"), text(policy, "updated_at"));
    print(paint.faint(format!("by {author} at {updated}{from}")))?;
    doubts(policy, paint)?;
    let mut table = Table::new(&["PARAMETER", "TYPE", "VALUE", "DEFAULT", "ALLOWED"]);
    for parameter in items(policy, "parameters") {
        let shown = |key: &str| match &parameter[key] {
            Value::Null => "-".to_owned(),
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let allowed: Vec<String> = items(parameter, "allowed").iter().map(plain).collect();
        let allowed = match (allowed.is_empty(), &parameter["min"], &parameter["max"]) {
            (false, ..) => allowed.join(", "),
            (true, Value::Null, Value::Null) => "any".into(),
            (true, min, max) => format!("{} to {}", bound(min), bound(max)),
        };
        let (name, kind) = (text(parameter, "name"), text(parameter, "type"));
        table.row([name, kind, shown("value"), shown("default"), allowed]);
    }
    if !table.is_empty() {
        print(format!("\n{}", table.painted(paint)))?;
    }
    if let Some(text) = policy["text"].as_str() {
        print(format!("\n{}", text.trim_end()))?;
    }
    Ok(())
}

/// What became of a change.
pub(super) fn changed(answer: &Value, dry_run: bool) -> anyhow::Result<()> {
    let paint = Paint::for_stdout();
    let policy = &answer["policy"];
    let is = if dry_run { "would be" } else { "is" };
    let priority = policy["priority"].as_i64();
    let priority = priority.map_or_else(String::new, |it| format!(", priority {it}"));
    let again = if answer["changed"] == Value::Bool(false) { "; it was so already" } else { "" };
    print(format!(
        "{} {is} {}, version {}{priority}{again}",
        paint.bold(text(policy, "id")),
        text(policy, "status"),
        policy["version"],
    ))?;
    doubts(policy, paint)?;
    for conflict in items(answer, "conflicts") {
        let certain = conflict["certain"] == Value::Bool(true);
        let word = paint.bold(if certain { "conflict" } else { "possible conflict" });
        print(format!("{word}: {}", text(conflict, "message")))?;
    }
    let tried = &answer["dry_run"];
    let without = tried["vms_without_host"].as_u64().unwrap_or(0);
    if without > 0 {
        let vms = tried["vms"].as_u64().unwrap_or(0);
        print(format!("{}: no host is left for {without} of {vms} VMs", paint.bad("careful")))?;
    }
    Ok(())
}

fn doubts(policy: &Value, paint: Paint) -> anyhow::Result<()> {
    for found in items(policy, "warnings") {
        print(format!("{} {}", paint.bold("!"), finding(found)))?;
    }
    Ok(())
}

fn finding(found: &Value) -> String {
    let hint = found["hint"].as_str().map(|hint| format!("; {hint}")).unwrap_or_default();
    let (code, field, message) =
        (text(found, "code"), text(found, "field"), text(found, "message"));
    match found["line"].as_u64() {
        Some(line @ 1..) => format!("{line}:{} {code} {field}: {message}{hint}", found["column"]),
        _ => format!("{code} {field}: {message}{hint}"),
    }
}

fn items<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value, key: &str) -> String {
    value[key].as_str().unwrap_or("-").to_owned()
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn bound(value: &Value) -> String {
    if value.is_null() { "any".into() } else { value.to_string() }
}
