//! The text of a policy, which knows its program while anybody uses it.
//!
//! A text is compiled when a change is tried and needed again when it is checked, logged and put
//! in force. All of these share one program, so that only the first of them pays for it.

use crate::diagnostic::Diagnostic;
use crate::program::{Program, load};
use crate::read::Syntax;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Cheap to clone; clones share the program. Equal texts in the same syntax are equal.
#[derive(Clone, Serialize, Deserialize)]
pub struct Source {
    text: Arc<str>,
    syntax: Syntax,
    #[serde(skip)]
    program: Arc<Mutex<Weak<Program>>>,
}

impl Source {
    pub fn new(text: impl Into<Arc<str>>, syntax: Syntax) -> Self {
        Self { text: text.into(), syntax, program: Arc::default() }
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn syntax(&self) -> Syntax {
        self.syntax
    }

    /// The compiled text, or everything that is wrong with it.
    pub fn program(&self) -> Result<Arc<Program>, Vec<Diagnostic>> {
        match self.known() {
            Some(program) => Ok(program),
            None => self.load().map(|(program, _)| program),
        }
    }

    /// Compiles the text; the program comes with its warnings.
    pub fn load(&self) -> Result<(Arc<Program>, Vec<Diagnostic>), Vec<Diagnostic>> {
        let (program, warnings) = load(&self.text, self.syntax)?;
        let program = Arc::new(program);
        *self.program.lock().unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(&program);
        Ok((program, warnings))
    }

    fn known(&self) -> Option<Arc<Program>> {
        self.program.lock().unwrap_or_else(PoisonError::into_inner).upgrade()
    }
}

impl PartialEq for Source {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text && self.syntax == other.syntax
    }
}

impl Eq for Source {}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Source").field(&self.text).field(&self.syntax).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str =
        r#"policy "abc" { rules { rule "r" { when { true } then { filter "f" } } } }"#;

    #[test]
    fn clones_share_a_program_while_somebody_has_it() {
        let source = Source::new(TEXT, Syntax::Dsl);
        let first = source.program().expect("a policy");
        let second = source.clone().program().expect("a policy");
        assert!(Arc::ptr_eq(&first, &second));
        drop((first, second));
        assert!(source.known().is_none(), "nobody uses it any more");
    }

    #[test]
    fn it_is_written_as_text_and_syntax_alone() {
        let source = Source::new(TEXT, Syntax::Dsl);
        let written = serde_json::to_value(&source).expect("written");
        assert_eq!(written, serde_json::json!({"text": TEXT, "syntax": "dsl"}));
        assert_eq!(serde_json::from_value::<Source>(written).expect("read"), source);
    }

    #[test]
    fn a_text_with_mistakes_has_no_program() {
        let source = Source::new("policy", Syntax::Dsl);
        assert!(source.program().is_err_and(|found| !found.is_empty()));
    }
}
