//! Reads JSON text into a bounded tree that keeps what a typed reader needs to complain well.
//!
//! Numbers stay text, so that nothing is rounded before it is judged; objects keep their members
//! in order with repetitions, so that a repeated name can be pointed at. Only what makes the rest
//! unreadable stops the parser: bad syntax, and more depth, items or values than allowed.
//! Everything about meaning is `read`'s and `fields`'.

use crate::fault::{Fault, code};
use crate::limits::Limits;
use crate::read::{Step, render_path};
use std::borrow::Cow;

/// A JSON value. Strings without escapes borrow from the body.
#[derive(Debug, PartialEq)]
pub enum Value<'a> {
    Null,
    Bool(bool),
    /// The text as written: JSON's grammar, or `NaN`, `Infinity`, `-Infinity`, which are no JSON
    /// but common enough to be worth naming the field that has them.
    Number(&'a str),
    String(Cow<'a, str>),
    Array(Vec<Value<'a>>),
    Object(Vec<(Cow<'a, str>, Value<'a>)>),
}

impl Value<'_> {
    /// The value in a few words, for messages.
    pub(crate) fn describe(&self) -> String {
        match self {
            Value::Null => "null".into(),
            Value::Bool(value) => value.to_string(),
            Value::Number(text) => shorten(text),
            Value::String(text) => format!("{:?}", shorten(text)),
            Value::Array(items) => format!("an array of {}", items.len()),
            Value::Object(members) => format!("an object of {}", members.len()),
        }
    }
}

/// At most 64 characters of `text`.
pub(crate) fn shorten(text: &str) -> String {
    match text.char_indices().nth(64) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}...", text.get(..end).unwrap_or_default()),
    }
}

/// Reads one document that takes up all of `bytes`.
pub(crate) fn parse<'a>(bytes: &'a [u8], limits: &Limits) -> Result<Value<'a>, Fault> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let sound = bytes.get(..error.valid_up_to()).unwrap_or_default();
        let (line, column) = position(&String::from_utf8_lossy(sound));
        Fault {
            path: "$".into(),
            code: code::INVALID_UTF8.into(),
            message: format!("the body is not UTF-8 at line {line}, column {column}"),
            hint: "send the body as UTF-8".into(),
        }
    })?;
    let mut parser = Parser { text, at: 0, values: 0, path: Vec::new(), limits };
    let document = parser.document();
    document.map_err(|stop| {
        let (line, column) = position(text.get(..parser.at).unwrap_or(text));
        Fault {
            path: render_path(&parser.path),
            code: stop.code.into(),
            message: format!("{} at line {line}, column {column}", stop.what),
            hint: stop.hint,
        }
    })
}

/// Line and column, from 1, of the character after `before`.
fn position(before: &str) -> (usize, usize) {
    let line = before.matches('\n').count().saturating_add(1);
    let start_of_line = before.rfind('\n').map_or(0, |newline| newline.saturating_add(1));
    let column = before.get(start_of_line..).unwrap_or_default().chars().count();
    (line, column.saturating_add(1))
}

struct Parser<'a, 'l> {
    text: &'a str,
    /// Offset of the next byte; always on a character boundary.
    at: usize,
    values: usize,
    /// Where in the document the parser is. Left as it was when parsing stops.
    path: Vec<Step<'a>>,
    limits: &'l Limits,
}

/// Why the parser cannot go on at the place where it is.
struct Stop {
    code: &'static str,
    what: String,
    hint: String,
}

fn bad_syntax(what: impl Into<String>) -> Stop {
    Stop { code: code::INVALID_JSON, what: what.into(), hint: "send valid JSON (RFC 8259)".into() }
}

impl<'a> Parser<'a, '_> {
    fn document(&mut self) -> Result<Value<'a>, Stop> {
        self.skip_space();
        if self.at == self.text.len() {
            return Err(bad_syntax("the body is empty where a JSON value is expected"));
        }
        let value = self.value(0)?;
        self.skip_space();
        match self.peek() {
            None => Ok(value),
            Some(_) => Err(bad_syntax(format!("{} after the end of the document", self.seen()))),
        }
    }

    fn value(&mut self, depth: usize) -> Result<Value<'a>, Stop> {
        self.values = self.values.saturating_add(1);
        if self.values > self.limits.values {
            return Err(Stop {
                code: code::TOO_MANY_ITEMS,
                what: format!("the body has more than {} values", self.limits.values),
                hint: "split the body".into(),
            });
        }
        match self.peek() {
            Some(b'{') => self.object(depth.saturating_add(1)),
            Some(b'[') => self.array(depth.saturating_add(1)),
            Some(b'"') => Ok(Value::String(self.string()?)),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(_) => self.word(),
            None => Err(bad_syntax("the body ends where a value is expected")),
        }
    }

    fn object(&mut self, depth: usize) -> Result<Value<'a>, Stop> {
        self.check_depth(depth)?;
        self.at = self.at.saturating_add(1);
        let mut members = Vec::new();
        self.skip_space();
        if self.take(b'}') {
            return Ok(Value::Object(members));
        }
        loop {
            self.skip_space();
            if self.peek() != Some(b'"') {
                return Err(self.expected("a field name in double quotes"));
            }
            let key = self.string()?;
            self.skip_space();
            if !self.take(b':') {
                return Err(self.expected("':'"));
            }
            self.skip_space();
            self.path.push(Step::Field(key.clone()));
            let value = self.value(depth)?;
            self.path.pop();
            members.push((key, value));
            self.check_items(members.len(), "fields")?;
            self.skip_space();
            if self.take(b'}') {
                return Ok(Value::Object(members));
            }
            if !self.take(b',') {
                return Err(self.expected("',' or '}'"));
            }
        }
    }

    fn array(&mut self, depth: usize) -> Result<Value<'a>, Stop> {
        self.check_depth(depth)?;
        self.at = self.at.saturating_add(1);
        let mut items = Vec::new();
        self.skip_space();
        if self.take(b']') {
            return Ok(Value::Array(items));
        }
        loop {
            self.skip_space();
            self.path.push(Step::Item(items.len()));
            let value = self.value(depth)?;
            self.path.pop();
            items.push(value);
            self.check_items(items.len(), "items")?;
            self.skip_space();
            if self.take(b']') {
                return Ok(Value::Array(items));
            }
            if !self.take(b',') {
                return Err(self.expected("',' or ']'"));
            }
        }
    }

    fn string(&mut self) -> Result<Cow<'a, str>, Stop> {
        self.at = self.at.saturating_add(1);
        let mut unescaped: Option<String> = None;
        let mut plain_from = self.at;
        loop {
            let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
            let plain = rest.iter().take_while(|byte| !matches!(byte, b'"' | b'\\' | 0..=0x1f));
            self.at = self.at.saturating_add(plain.count());
            let piece = self.text.get(plain_from..self.at).unwrap_or_default();
            match self.peek() {
                Some(b'"') => {
                    self.at = self.at.saturating_add(1);
                    return Ok(match unescaped {
                        None => Cow::Borrowed(piece),
                        Some(text) => Cow::Owned(text + piece),
                    });
                }
                Some(b'\\') => {
                    let text = unescaped.get_or_insert_default();
                    text.push_str(piece);
                    text.push(self.escape()?);
                    plain_from = self.at;
                }
                Some(_) => return Err(bad_syntax("an unescaped control character in a string")),
                None => return Err(bad_syntax("the body ends inside a string")),
            }
        }
    }

    fn escape(&mut self) -> Result<char, Stop> {
        self.at = self.at.saturating_add(1);
        let Some(letter) = self.peek() else {
            return Err(bad_syntax("the body ends inside a string"));
        };
        let plain = match letter {
            b'"' => '"',
            b'\\' => '\\',
            b'/' => '/',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => return self.unicode_escape(),
            _ => return Err(bad_syntax("an escape that JSON does not have")),
        };
        self.at = self.at.saturating_add(1);
        Ok(plain)
    }

    fn unicode_escape(&mut self) -> Result<char, Stop> {
        let first = self.four_hex_digits()?;
        let point = match first {
            0xd800..=0xdbff => {
                let second =
                    match self.text.get(self.at..).is_some_and(|rest| rest.starts_with("\\u")) {
                        true => {
                            self.at = self.at.saturating_add(1);
                            self.four_hex_digits()?
                        }
                        false => 0,
                    };
                match second {
                    0xdc00..=0xdfff => 0x10000 | (first & 0x3ff) << 10 | (second & 0x3ff),
                    _ => first,
                }
            }
            other => other,
        };
        char::from_u32(point).ok_or_else(|| bad_syntax("half of a surrogate pair in a string"))
    }

    /// Reads `uXXXX` at the current place.
    fn four_hex_digits(&mut self) -> Result<u32, Stop> {
        let end = self.at.saturating_add(5);
        let digits = self.text.get(self.at.saturating_add(1)..end);
        let digits = digits.filter(|text| text.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let value = digits.and_then(|text| u32::from_str_radix(text, 16).ok());
        let value = value.ok_or_else(|| bad_syntax("a \\u escape without four hex digits"))?;
        self.at = end;
        Ok(value)
    }

    fn number(&mut self) -> Result<Value<'a>, Stop> {
        let start = self.at;
        self.take(b'-');
        if self.rest().starts_with("Infinity") {
            self.at = self.at.saturating_add("Infinity".len());
            return Ok(Value::Number(self.since(start)));
        }
        match self.digits() {
            0 => return Err(self.expected("a digit")),
            1 => {}
            _ if self.since(start).trim_start_matches('-').starts_with('0') => {
                return Err(bad_syntax("a number with a leading zero"));
            }
            _ => {}
        }
        if self.take(b'.') && self.digits() == 0 {
            return Err(self.expected("a digit after the point"));
        }
        if self.take(b'e') || self.take(b'E') {
            let _ = self.take(b'+') || self.take(b'-');
            if self.digits() == 0 {
                return Err(self.expected("a digit in the exponent"));
            }
        }
        Ok(Value::Number(self.since(start)))
    }

    fn word(&mut self) -> Result<Value<'a>, Stop> {
        let start = self.at;
        let length = self.rest().bytes().take_while(u8::is_ascii_alphabetic).count();
        let end = self.at.saturating_add(length);
        let word = self.text.get(start..end).unwrap_or_default();
        let value = match word {
            "null" => Value::Null,
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            "NaN" | "Infinity" => Value::Number(word),
            _ => return Err(self.expected("a value")),
        };
        self.at = end;
        Ok(value)
    }

    fn check_depth(&self, depth: usize) -> Result<(), Stop> {
        if depth <= self.limits.depth {
            return Ok(());
        }
        Err(Stop {
            code: code::TOO_DEEP,
            what: format!("nested more than {} deep", self.limits.depth),
            hint: "no body of this API needs that depth; look for a missing bracket".into(),
        })
    }

    fn check_items(&self, items: usize, kind: &str) -> Result<(), Stop> {
        if items <= self.limits.items {
            return Ok(());
        }
        Err(Stop {
            code: code::TOO_MANY_ITEMS,
            what: format!("more than {} {kind}", self.limits.items),
            hint: format!("send at most {} in one body", self.limits.items),
        })
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn since(&self, start: usize) -> &'a str {
        self.text.get(start..self.at).unwrap_or_default()
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> bool {
        let there = self.peek() == Some(byte);
        if there {
            self.at = self.at.saturating_add(1);
        }
        there
    }

    fn digits(&mut self) -> usize {
        let count = self.rest().bytes().take_while(u8::is_ascii_digit).count();
        self.at = self.at.saturating_add(count);
        count
    }

    fn skip_space(&mut self) {
        let space = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
        let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
        self.at = self.at.saturating_add(rest.iter().take_while(|byte| space(byte)).count());
    }

    /// The next character, for messages.
    fn seen(&self) -> String {
        match self.rest().chars().next() {
            Some(next) => format!("{next:?}"),
            None => "the end of the body".into(),
        }
    }

    fn expected(&self, what: &str) -> Stop {
        bad_syntax(format!("{} where {what} is expected", self.seen()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::sync::Arc;

    fn limits() -> Limits {
        Limits { depth: 5, items: 8, ..Limits::single(Arc::default()) }
    }

    fn check(text: &str, path: &str, message: &str) {
        let fault = parse(text.as_bytes(), &limits()).expect_err(text);
        assert_eq!((fault.path.as_str(), fault.message.as_str()), (path, message), "{text}");
    }

    #[test]
    fn bad_syntax_is_reported_with_path_line_and_column() {
        check("", "$", "the body is empty where a JSON value is expected at line 1, column 1");
        check("{\"a\":\n 1 2}", "$", "'2' where ',' or '}' is expected at line 2, column 4");
        check(
            "{\"é\":[1,\"é\",}",
            "[\"é\"][2]",
            "'}' where a value is expected at line 1, column 13",
        );
        check("[01]", "[0]", "a number with a leading zero at line 1, column 4");
        check("[1.]", "[0]", "']' where a digit after the point is expected at line 1, column 4");
        check(
            "{a:1}",
            "$",
            "'a' where a field name in double quotes is expected at line 1, column 2",
        );
        check("[1] x", "$", "'x' after the end of the document at line 1, column 5");
        check("\"\\ud800\"", "$", "half of a surrogate pair in a string at line 1, column 8");
        check("\"a\nb\"", "$", "an unescaped control character in a string at line 1, column 3");
    }

    #[test]
    fn depth_items_and_values_are_bounded() {
        check("[[[[[[1]]]]]]", "[0][0][0][0][0]", "nested more than 5 deep at line 1, column 6");
        check("[1,1,1,1,1,1,1,1,1]", "$", "more than 8 items at line 1, column 19");
        let few = Limits { values: 3, ..limits() };
        assert!(parse(b"[1,1]", &few).is_ok());
        assert_eq!(parse(b"[1,1,1]", &few).expect_err("four values").code, "too_many_items");
    }

    #[test]
    fn bytes_that_are_no_utf8_are_located() {
        let fault = parse(b"{\"a\":\n\"\xff\"}", &limits()).expect_err("not UTF-8");
        assert_eq!(fault.message, "the body is not UTF-8 at line 2, column 2");
    }

    /// What serde_json makes of the same tree.
    fn as_serde(value: &Value<'_>) -> serde_json::Value {
        match value {
            Value::Null => serde_json::Value::Null,
            Value::Bool(value) => (*value).into(),
            Value::Number(text) => serde_json::from_str(text).expect("a number serde_json reads"),
            Value::String(text) => text.clone().into(),
            Value::Array(items) => items.iter().map(as_serde).collect(),
            Value::Object(members) => {
                members.iter().map(|(key, value)| (key.to_string(), as_serde(value))).collect()
            }
        }
    }

    fn wide() -> Limits {
        Limits { depth: 100, items: 1_000, ..Limits::single(Arc::default()) }
    }

    proptest! {
        #[test]
        fn agrees_with_serde_json_on_text_that_looks_like_json(
            text in r#"([\[\]{}:, \n]|"[a-z\\u0-9"]{0,4}"|-?[0-9]{1,3}(\.[0-9])?([eE][+-]?[0-9])?|true|null|"[^"\\]{0,3}"){0,12}"#
        ) {
            let ours = parse(text.as_bytes(), &wide());
            let theirs = serde_json::from_str::<serde_json::Value>(&text);
            prop_assert_eq!(ours.is_ok(), theirs.is_ok(), "{:?} {:?}", ours, theirs);
            if let (Ok(ours), Ok(theirs)) = (ours, theirs) {
                prop_assert_eq!(as_serde(&ours), theirs);
            }
        }

        #[test]
        fn reads_back_whatever_serde_json_writes(text in any::<String>(), number in any::<u64>()) {
            let tree = serde_json::json!({"k": [text, {"n": number, "x": [], "y": {}}], text.as_str(): null});
            for written in [tree.to_string(), serde_json::to_string_pretty(&tree).expect("plain data")] {
                let read = parse(written.as_bytes(), &wide()).map(|value| as_serde(&value));
                prop_assert_eq!(read, Ok(tree.clone()));
            }
        }
    }
}
