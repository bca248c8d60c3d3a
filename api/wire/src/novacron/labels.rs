//! Labels and tags of any text as names, and back.
//!
//! NovaCron's labels may hold spaces, be empty, or be written in any script; names may not. What
//! is no name is written in hexadecimal after a mark, so that two labels are equal exactly if
//! their names are, and the text can be shown again as it came.

use super::go::fault;
use crate::fault::{Fault, code};
use crate::json::shorten;
use cluster::{Labels, Name};
use std::collections::BTreeMap;

/// Begins the names that stand for other text.
const MARK: &str = "q@";

/// The name that stands for a label's key or value; `None` if it would be too long.
pub fn label_name(text: &str) -> Option<Name> {
    if !text.starts_with(MARK)
        && let Ok(name) = Name::new(text)
    {
        return Some(name);
    }
    let mut marked = String::from(MARK);
    for byte in text.bytes() {
        match byte {
            b'.' | b'_' | b':' | b'/' | b'-' => marked.push(char::from(byte)),
            byte if byte.is_ascii_alphanumeric() => marked.push(char::from(byte)),
            byte => marked.push_str(&format!("@{byte:02x}")),
        }
    }
    Name::new(&marked).ok()
}

/// The text that `label_name` was given.
pub fn label_text(name: &Name) -> String {
    let Some(marked) = name.as_str().strip_prefix(MARK) else { return name.as_str().to_owned() };
    let mut bytes = Vec::with_capacity(marked.len());
    let mut rest = marked.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let hex = after.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(code) if byte == b'@' => {
                bytes.push(code);
                rest = after.get(2..).unwrap_or_default();
            }
            _ => {
                bytes.push(byte);
                rest = after;
            }
        }
    }
    // A name that somebody else made up with the mark need not stand for any text.
    String::from_utf8(bytes).unwrap_or_else(|_| name.as_str().to_owned())
}

/// Labels as the cluster has them. `path` is where they are in the body.
pub(super) fn to_labels(
    path: &str,
    labels: &Option<BTreeMap<String, String>>,
) -> Result<Labels, Fault> {
    let name = |key: &str, text: &str| {
        label_name(text).ok_or_else(|| {
            let message = format!("{:?} is too long for a label", shorten(text));
            fault(format!("{path}[{key:?}]"), code::STRING_TOO_LONG, message, "shorten it")
        })
    };
    let pairs = labels.iter().flatten();
    pairs.map(|(key, value)| Ok((name(key, key)?, name(key, value)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_has_a_name_of_its_own_and_comes_back() {
        for text in ["", "kvm", "Ubuntu 22.04 LTS", "ü", "q@", "q@20", "-x", "@", "a=b,c", "a@b"] {
            let name = label_name(text).unwrap_or_else(|| panic!("{text:?} has a name"));
            assert_eq!(label_text(&name), text, "{name}");
        }
        assert_eq!(label_name("kvm").expect("a name").as_str(), "kvm");
        assert_eq!(label_name("a b").expect("a name").as_str(), "q@a@20b");
        assert_eq!(label_name(&" ".repeat(60)), None);
    }

    #[test]
    fn names_that_stand_for_nothing_are_shown_as_they_are() {
        for text in ["q@@ff", "q@@f", "q@@"] {
            let name = Name::new(text).expect("a name");
            label_text(&name);
        }
        assert_eq!(label_text(&Name::new("q@@ff").expect("a name")), "q@@ff");
    }
}
