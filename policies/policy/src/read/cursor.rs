//! A place in a list of tokens, with the findings made on the way.

use super::lex::{Token, lex};
use crate::At;
use crate::diagnostic::Findings;

pub(crate) struct Cursor<'f> {
    tokens: Vec<(Token, At)>,
    next: usize,
    pub(crate) findings: &'f mut Findings,
    /// What is being read, for findings.
    pub(crate) field: String,
}

impl<'f> Cursor<'f> {
    pub(crate) fn new(text: &str, field: &str, findings: &'f mut Findings) -> Self {
        let tokens = lex(text, field, findings);
        Self { tokens, next: 0, findings, field: field.into() }
    }

    /// Moves every place by where the text begins inside a larger one.
    pub(crate) fn starting_at(mut self, start: At) -> Self {
        for (_, at) in &mut self.tokens {
            if at.line == 1 {
                at.column = at.column.saturating_add(start.column.saturating_sub(1));
            }
            at.line = at.line.saturating_add(start.line.saturating_sub(1));
        }
        self
    }

    pub(crate) fn peek(&self) -> &Token {
        self.peek_at(0)
    }

    pub(crate) fn peek_at(&self, ahead: usize) -> &Token {
        self.tokens.get(self.next.saturating_add(ahead)).map_or(&Token::End, |(token, _)| token)
    }

    pub(crate) fn at(&self) -> At {
        self.tokens.get(self.next).or(self.tokens.last()).map_or(At::default(), |(_, at)| *at)
    }

    pub(crate) fn is_mark(&self, mark: &str) -> bool {
        matches!(self.peek(), Token::Mark(found) if *found == mark)
    }

    pub(crate) fn is_word(&self, word: &str) -> bool {
        matches!(self.peek(), Token::Word(found) if found == word)
    }

    pub(crate) fn at_end(&self) -> bool {
        *self.peek() == Token::End
    }

    /// Steps over one token; stays on `End`.
    pub(crate) fn bump(&mut self) {
        if !self.at_end() {
            self.next += 1;
        }
    }

    pub(crate) fn take_mark(&mut self, mark: &str) -> bool {
        let found = self.is_mark(mark);
        if found {
            self.bump();
        }
        found
    }

    pub(crate) fn take_text(&mut self) -> Option<String> {
        let Token::Text(text) = self.peek() else { return None };
        let text = text.clone();
        self.bump();
        Some(text)
    }

    pub(crate) fn take_word(&mut self) -> Option<String> {
        let Token::Word(word) = self.peek() else { return None };
        let word = word.clone();
        self.bump();
        Some(word)
    }

    /// Complains that something else than `wanted` is next.
    pub(crate) fn expected(&mut self, wanted: &str) {
        let message = format!("{wanted} is expected before {}", self.peek().describe());
        let at = self.at();
        self.findings.error("syntax", at, &self.field, message);
    }

    /// Steps over `mark` or complains.
    pub(crate) fn expect_mark(&mut self, mark: &str) -> bool {
        let found = self.take_mark(mark);
        if !found {
            self.expected(&format!("`{mark}`"));
        }
        found
    }

    /// Steps to the brace that closes the block we are in, and over it.
    ///
    /// Stops early where `begins` says that something new begins: a brace was forgotten then.
    pub(crate) fn skip_block(&mut self, begins: impl Fn(&Self) -> bool) {
        let mut open = 1_usize;
        while !self.at_end() && !begins(self) {
            if self.is_mark("{") {
                open += 1;
            } else if self.is_mark("}") {
                open -= 1;
            }
            self.bump();
            if open == 0 {
                return;
            }
        }
    }

    pub(crate) fn position(&self) -> usize {
        self.next
    }
}
