//! What is wrong or doubtful in a policy, and where.

use crate::At;
use serde::Serialize;
use std::fmt;

/// Most findings kept of one text; a file of noise is not worth more.
pub const MAX_DIAGNOSTICS: usize = 100;

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Diagnostic {
    pub severity: Severity,
    /// Stable, for programs: `unknown-key`, `type-mismatch`, ...
    pub code: &'static str,
    /// From 1; 0 where the finding is about no place in particular.
    pub line: u32,
    pub column: u32,
    /// Where in the document's structure: `rules[0].when`, `parameters.limit.default`.
    pub field: String,
    pub message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    Error,
    Warning,
}

impl Diagnostic {
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = match self.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        let Self { code, line, column, field, message, .. } = self;
        write!(f, "{line}:{column}: {severity}[{code}] {field}: {message}")?;
        self.hint.as_ref().map_or(Ok(()), |hint| write!(f, "; {hint}"))
    }
}

/// Collects findings; the first hundred are kept.
#[derive(Clone, Debug, Default)]
pub(crate) struct Findings {
    found: Vec<Diagnostic>,
    errors: usize,
}

impl Findings {
    pub(crate) fn error(
        &mut self,
        code: &'static str,
        at: At,
        field: &str,
        message: impl Into<String>,
    ) -> &mut Self {
        self.errors += 1;
        self.push(Severity::Error, code, at, field, message.into())
    }

    pub(crate) fn warning(
        &mut self,
        code: &'static str,
        at: At,
        field: &str,
        message: impl Into<String>,
    ) -> &mut Self {
        self.push(Severity::Warning, code, at, field, message.into())
    }

    /// Adds a hint to the finding just made.
    pub(crate) fn hint(&mut self, hint: impl Into<String>) {
        if self.found.len() <= MAX_DIAGNOSTICS
            && let Some(last) = self.found.last_mut()
        {
            last.hint.get_or_insert(hint.into());
        }
    }

    pub(crate) fn errors(&self) -> usize {
        self.errors
    }

    pub(crate) fn is_full(&self) -> bool {
        self.found.len() >= MAX_DIAGNOSTICS
    }

    /// Whether `field` could not be read, or the text as a whole.
    pub(crate) fn touches(&self, field: &str) -> bool {
        let unread = |found: &Diagnostic| {
            let whole = found.field == "policy" && found.code != "unknown-key";
            found.is_error() && (whole || found.field.starts_with(field))
        };
        self.errors > MAX_DIAGNOSTICS || self.found.iter().any(unread)
    }

    /// Everything found in the order of the text.
    pub(crate) fn into_sorted(mut self) -> Vec<Diagnostic> {
        self.found.truncate(MAX_DIAGNOSTICS);
        self.found.sort_by_key(|found| (found.line, found.column));
        self.found
    }

    fn push(
        &mut self,
        severity: Severity,
        code: &'static str,
        at: At,
        field: &str,
        message: String,
    ) -> &mut Self {
        // One beyond the limit is kept as the place where hints of dropped findings go.
        self.found.truncate(MAX_DIAGNOSTICS);
        let At { line, column } = at;
        let field = field.to_string();
        self.found.push(Diagnostic { severity, code, line, column, field, message, hint: None });
        self
    }
}

/// The known name nearest to `word`, if it is near enough to be a slip of the keyboard.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = (word.chars().count() / 3).clamp(1, 3);
    let scored = known.into_iter().map(|name| (distance(word, name), name));
    scored.filter(|(edits, _)| *edits <= limit).min().map(|(_, name)| name)
}

/// "did you mean ..." if something known is near, else the whole list.
pub(crate) fn suggestion(word: &str, known: &[&str]) -> String {
    match nearest(word, known.iter().copied()) {
        Some(name) => format!("did you mean {name}?"),
        None => format!("known here: {}", known.join(", ")),
    }
}

/// How many letters to change, add, drop, or swap with the next.
fn distance(a: &str, b: &str) -> usize {
    // Long words are never slips of short ones, and this keeps the table small.
    if a.len().abs_diff(b.len()) > 3 || a.len() > 64 {
        return usize::MAX;
    }
    strsim::osa_distance(a, b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_recognised_and_strangers_are_not() {
        let known = ["priority", "weight", "when", "then"];
        assert_eq!(nearest("prority", known), Some("priority"));
        assert_eq!(nearest("wieght", known), Some("weight"));
        assert_eq!(nearest("banana", known), None);
        assert_eq!(nearest("wehn", known), Some("when"), "two letters swapped are one slip");
        assert_eq!(distance("kitten", "sitting"), 3);
    }

    #[test]
    fn only_the_first_hundred_findings_are_kept() {
        let mut findings = Findings::default();
        for number in 0..500 {
            let at = At { line: number + 1, column: 1 };
            findings.error("x", at, "f", "m").hint(number.to_string());
        }
        assert_eq!(findings.errors(), 500);
        let kept = findings.into_sorted();
        assert_eq!(kept.len(), MAX_DIAGNOSTICS);
        assert_eq!(kept.last().and_then(|last| last.hint.clone()), Some("99".into()));
    }
}
