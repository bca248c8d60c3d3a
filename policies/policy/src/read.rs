//! Text to documents, in either notation, with everything that is wrong found at once.

mod cursor;
mod draft;
mod dsl;
mod expression;
mod lex;
mod tree;
mod yaml;

use crate::diagnostic::{Diagnostic, Findings};
use crate::document::MAX_TEXT_BYTES;
use crate::{At, Document, Expr, check};
use serde::{Deserialize, Serialize};

/// How a policy is written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Syntax {
    /// NovaCron's policy language.
    Dsl,
    /// The same keys as YAML, of which JSON is a part.
    Yaml,
}

impl Syntax {
    /// The notation that a file with this name has: `.yaml`, `.yml` and `.json` are YAML.
    pub fn of_file(name: &str) -> Self {
        let yaml = [".yaml", ".yml", ".json"];
        if yaml.iter().any(|end| name.ends_with(end)) { Syntax::Yaml } else { Syntax::Dsl }
    }

    /// The notation that `text` seems to be in: the language begins with `policy "`.
    pub fn of_text(text: &str) -> Self {
        let code =
            |line: &&str| !line.is_empty() && !line.starts_with('#') && !line.starts_with("//");
        let first = text.trim_start_matches('\u{feff}').lines().map(str::trim).find(code);
        let rest = first.unwrap_or("").strip_prefix("policy").map(str::trim_start);
        if rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['"', '{', '/', '#'])) {
            Syntax::Dsl
        } else {
            Syntax::Yaml
        }
    }
}

/// Reads and checks one policy: the document and its warnings, or all findings.
pub fn parse(text: &str, syntax: Syntax) -> Result<(Document, Vec<Diagnostic>), Vec<Diagnostic>> {
    let mut findings = Findings::default();
    if text.len() > MAX_TEXT_BYTES {
        let at = At { line: 1, column: 1 };
        let message = format!("{} bytes, at most {MAX_TEXT_BYTES} are allowed", text.len());
        findings.error("too-large", at, "policy", message);
        return Err(findings.into_sorted());
    }
    let draft = match syntax {
        Syntax::Dsl => dsl::document(text, &mut findings),
        Syntax::Yaml => yaml::document(text, &mut findings),
    };
    let document = draft.finish(&mut findings);
    check::check(&document, &mut findings);
    if findings.errors() == 0 {
        Ok((document, findings.into_sorted()))
    } else {
        Err(findings.into_sorted())
    }
}

/// Reads one expression, as it stands in a `when` block.
pub fn parse_expression(text: &str) -> Result<Expr, Vec<Diagnostic>> {
    let mut findings = Findings::default();
    let mut found = None;
    if text.len() > MAX_TEXT_BYTES {
        findings.error("too-large", At::default(), "expression", "the text is too long");
    } else {
        let mut cursor = cursor::Cursor::new(text, "expression", &mut findings);
        found = expression::expression(&mut cursor);
        if found.is_some() && !cursor.at_end() {
            cursor.expected("nothing more");
        }
    }
    match found {
        Some(expr) if findings.errors() == 0 => Ok(expr),
        _ => Err(findings.into_sorted()),
    }
}
