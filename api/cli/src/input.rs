//! What verbs read: names, amounts, and files of JSON documents.

use anyhow::{Context, bail};
use cluster::Name;
use serde_json::value::RawValue;
use std::io::Read;
use std::path::Path;

/// A name as an argument.
pub(crate) fn name(text: &str) -> Result<Name, String> {
    Name::new(text).map_err(|error| error.to_string())
}

/// `NAME=NUMBER` as an argument.
pub(crate) fn amount(text: &str) -> Result<(String, u64), String> {
    let (name, number) = text.split_once('=').ok_or("it must be NAME=NUMBER")?;
    let name = Name::new(name).map_err(|error| error.to_string())?;
    let number = number.parse().map_err(|_| format!("{number:?} is not a whole number"))?;
    Ok((name.to_string(), number))
}

/// The bytes of a file; `-` is standard input.
pub(crate) fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    if path.as_os_str() == "-" {
        let mut bytes = Vec::new();
        std::io::stdin().lock().read_to_end(&mut bytes).context("cannot read standard input")?;
        return Ok(bytes);
    }
    std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}

/// The one JSON document of a file, as it is written there.
pub(crate) fn document(path: &Path) -> anyhow::Result<Box<RawValue>> {
    let bytes = read(path)?;
    serde_json::from_slice(&bytes)
        .with_context(|| format!("{} is not a JSON document", path.display()))
}

/// The documents of a file: one after the other, or in one array. Each is given on one line.
pub(crate) fn documents(path: &Path) -> anyhow::Result<Vec<String>> {
    let bytes = read(path)?;
    let found = split(&bytes).with_context(|| format!("in {}", path.display()))?;
    if found.is_empty() {
        bail!("there is nothing in {}", path.display());
    }
    // Line breaks in JSON are space between tokens; strings have theirs escaped.
    Ok(found.iter().map(|document| document.get().replace(['\n', '\r'], " ")).collect())
}

fn split(bytes: &[u8]) -> serde_json::Result<Vec<Box<RawValue>>> {
    if bytes.trim_ascii_start().starts_with(b"[") {
        return serde_json::from_slice(bytes);
    }
    serde_json::Deserializer::from_slice(bytes).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_and_lines_hold_the_same_documents() {
        let texts = |bytes: &str| -> Vec<String> {
            split(bytes.as_bytes()).expect("JSON").iter().map(|it| it.get().to_owned()).collect()
        };
        assert_eq!(texts("[{\"a\":1}, {\"b\":2}]"), ["{\"a\":1}", "{\"b\":2}"]);
        assert_eq!(texts("{\"a\":1}\n\n{\"b\":2}\n"), ["{\"a\":1}", "{\"b\":2}"]);
        assert_eq!(texts("{\"a\":\n1}"), ["{\"a\":\n1}"]);
        assert!(split(b"{\"a\":1} nonsense").is_err());
    }

    #[test]
    fn amounts_are_a_name_and_a_whole_number() {
        assert_eq!(amount("gpu=2"), Ok(("gpu".into(), 2)));
        for wrong in ["gpu", "=2", "gpu=", "gpu=-1", "gpu=1.5", "a b=1"] {
            assert!(amount(wrong).is_err(), "{wrong}");
        }
    }
}
