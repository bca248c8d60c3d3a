//! Text to tokens.
//!
//! Every byte of any text ends up in a token, in a comment, or in a finding; the list always ends
//! with `End`, so that a reader never runs off it.

use crate::At;
use crate::diagnostic::Findings;
use std::iter::Peekable;
use std::str::Chars;

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Token {
    Word(String),
    Text(String),
    Number(f64),
    /// Brackets, operators and other marks.
    Mark(&'static str),
    End,
}

impl Token {
    /// As messages call it.
    pub(crate) fn describe(&self) -> String {
        match self {
            Token::Word(word) => format!("`{word}`"),
            Token::Text(text) => format!("the string {text:?}"),
            Token::Number(number) => format!("the number {number}"),
            Token::Mark(mark) => format!("`{mark}`"),
            Token::End => "the end of the text".into(),
        }
    }
}

/// Two-character marks first: the longest that matches is taken.
const MARKS: [&str; 22] = [
    "==", "!=", "<=", ">=", "&&", "||", "{", "}", "(", ")", "[", "]", "=", "<", ">", "!", "+", "-",
    "*", "/", ".", "$",
];

/// Splits `text`; `field` names what it is part of in findings.
pub(crate) fn lex(text: &str, field: &str, findings: &mut Findings) -> Vec<(Token, At)> {
    let at = At { line: 1, column: 1 };
    let mut lexer = Lexer { chars: text.chars().peekable(), at, field, findings };
    let mut tokens = Vec::new();
    loop {
        let (token, at) = lexer.next();
        let end = token == Token::End;
        tokens.push((token, at));
        if end {
            return tokens;
        }
    }
}

struct Lexer<'a> {
    chars: Peekable<Chars<'a>>,
    at: At,
    field: &'a str,
    findings: &'a mut Findings,
}

impl Lexer<'_> {
    fn next(&mut self) -> (Token, At) {
        loop {
            let at = self.at;
            let Some(&c) = self.chars.peek() else { return (Token::End, at) };
            match c {
                // Separators are allowed and mean nothing.
                c if c.is_whitespace() || c == ';' || c == ',' || c == '\u{feff}' => {
                    self.bump();
                }
                '#' => self.skip_line(),
                '"' => return (self.text(), at),
                c if c.is_ascii_digit() => return (self.number(), at),
                c if c.is_ascii_alphabetic() || c == '_' => {
                    let word = self.take(|c| c.is_ascii_alphanumeric() || c == '_');
                    return (Token::Word(word), at);
                }
                _ => match self.mark() {
                    Some("//") => self.skip_line(),
                    Some(mark) => return (Token::Mark(mark), at),
                    None => self.stranger(c, at),
                },
            }
        }
    }

    fn bump(&mut self) -> Option<char> {
        let c = self.chars.next()?;
        if c == '\n' {
            self.at.line += 1;
            self.at.column = 1;
        } else {
            self.at.column += 1;
        }
        Some(c)
    }

    fn take(&mut self, belongs: impl Fn(char) -> bool) -> String {
        let mut taken = String::new();
        while let Some(&c) = self.chars.peek().filter(|c| belongs(**c)) {
            taken.push(c);
            self.bump();
        }
        taken
    }

    fn skip_line(&mut self) {
        while self.chars.peek().is_some_and(|c| *c != '\n') {
            self.bump();
        }
    }

    fn mark(&mut self) -> Option<&'static str> {
        let mut ahead = self.chars.clone();
        let first = ahead.next()?;
        let second = ahead.next();
        if first == '/' && second == Some('/') {
            return Some("//");
        }
        let fits = |mark: &&&str| {
            let mut chars = mark.chars();
            chars.next() == Some(first) && chars.next().is_none_or(|c| Some(c) == second)
        };
        let mark = MARKS.iter().find(fits)?;
        for _ in mark.chars() {
            self.bump();
        }
        Some(mark)
    }

    fn stranger(&mut self, c: char, at: At) {
        self.bump();
        let message = format!("{c:?} means nothing here");
        let found = self.findings.error("unexpected-character", at, self.field, message);
        match c {
            '\'' => found.hint("strings are written in double quotes"),
            '&' | '|' => found.hint(format!("write {c}{c}")),
            '%' => found.hint("there is no remainder; use + - * /"),
            _ => {}
        }
    }

    fn number(&mut self) -> Token {
        let at = self.at;
        let mut text = self.take(|c| c.is_ascii_digit() || c == '_');
        let followed_by = |lexer: &Self, mark: char| {
            let mut ahead = lexer.chars.clone();
            ahead.next().is_some_and(|c| c.eq_ignore_ascii_case(&mark))
                && ahead
                    .next()
                    .is_some_and(|c| c.is_ascii_digit() || mark == 'e' && "+-".contains(c))
        };
        if followed_by(self, '.') {
            self.bump();
            text.push('.');
            text.push_str(&self.take(|c| c.is_ascii_digit() || c == '_'));
        }
        if followed_by(self, 'e') {
            self.bump();
            text.push('e');
            text.extend(self.chars.peek().copied().filter(|c| "+-".contains(*c)));
            if text.ends_with(['+', '-']) {
                self.bump();
            }
            text.push_str(&self.take(|c| c.is_ascii_digit()));
        }
        text.retain(|c| c != '_');
        match text.parse::<f64>() {
            Ok(number) if number.is_finite() => Token::Number(number),
            _ => {
                let message = format!("{text} is not a number that can be kept");
                self.findings.error("bad-number", at, self.field, message);
                Token::Number(0.0)
            }
        }
    }

    fn text(&mut self) -> Token {
        let start = self.at;
        self.bump();
        let mut text = String::new();
        loop {
            let at = self.at;
            // A string ends with its line, so that one forgotten quote spoils one line only.
            let Some(c) = self.chars.peek().copied().filter(|c| *c != '\n') else {
                let message = "the string has no closing quote on its line";
                self.findings.error("unterminated-string", start, self.field, message);
                return Token::Text(text);
            };
            self.bump();
            match c {
                '"' => return Token::Text(text),
                '\\' => match self.escape() {
                    Some(c) => text.push(c),
                    None => {
                        let message = "unknown escape in a string";
                        self.findings
                            .error("bad-escape", at, self.field, message)
                            .hint("known: \\\" \\\\ \\n \\r \\t \\u followed by four hex digits");
                    }
                },
                c => text.push(c),
            }
        }
    }

    fn escape(&mut self) -> Option<char> {
        match self.chars.peek().copied().filter(|c| *c != '\n')? {
            'u' => {
                self.bump();
                let mut code = 0;
                for _ in 0..4 {
                    let digit = self.chars.peek()?.to_digit(16)?;
                    self.bump();
                    code = code * 16 + digit;
                }
                char::from_u32(code)
            }
            c => {
                let meant = match c {
                    '"' | '\\' | '/' => c,
                    'n' => '\n',
                    'r' => '\r',
                    't' => '\t',
                    _ => return None,
                };
                self.bump();
                Some(meant)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expect: &[Token], errors: usize) {
        let mut findings = Findings::default();
        let tokens: Vec<Token> =
            lex(text, "policy", &mut findings).into_iter().map(|(token, _)| token).collect();
        let (end, rest) = tokens.split_last().expect("an end");
        assert_eq!((rest, end), (expect, &Token::End), "{text:?}");
        assert_eq!(findings.errors(), errors, "{text:?}");
    }

    #[test]
    fn comments_and_separators_are_skipped() {
        check("a // b\n# c\n; d,", &[Token::Word("a".into()), Token::Word("d".into())], 0);
    }

    #[test]
    fn numbers_have_fractions_and_exponents() {
        let numbers = [1.5, 2e3, 1000.0].map(Token::Number);
        check("1.5 2e3 1_000", &numbers, 0);
        check("3.x", &[Token::Number(3.0), Token::Mark("."), Token::Word("x".into())], 0);
        check("1e999", &[Token::Number(0.0)], 1);
    }

    #[test]
    fn a_string_without_end_spoils_its_line_only() {
        check("\"abc\nrule", &[Token::Text("abc".into()), Token::Word("rule".into())], 1);
        check(r#""a\"\u0041""#, &[Token::Text("a\"A".into())], 0);
    }

    #[test]
    fn strange_characters_are_reported_and_skipped() {
        check("a § b", &[Token::Word("a".into()), Token::Word("b".into())], 1);
        check("a & b", &[Token::Word("a".into()), Token::Word("b".into())], 1);
    }
}
