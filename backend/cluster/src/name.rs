//! Names: ids of hosts, VMs, tenants, pools, groups, zones, and keys and values of labels.

use serde::{Deserialize, Deserializer, Serialize};
use smol_str::SmolStr;
use std::borrow::Borrow;
use std::fmt;

/// Longest name accepted, in bytes. Bounds every table that holds names.
pub const MAX_NAME_BYTES: usize = 128;

/// A checked name: 1 to 128 bytes of `A-Z a-z 0-9 . _ : / @ -`, starting with a letter or digit.
///
/// The alphabet leaves out whatever would need escaping in a URL path segment after encoding,
/// a log line or a metric label. Up to 23 bytes are stored inline; longer names are shared.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Name(SmolStr);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    #[error("name is empty")]
    Empty,
    #[error("name has {0} bytes, at most {MAX_NAME_BYTES} are allowed")]
    TooLong(usize),
    #[error("name starts with {0:?}; it must start with a letter or digit")]
    BadStart(char),
    #[error("name has {0:?} in it; allowed are letters, digits and . _ : / @ -")]
    BadCharacter(char),
}

impl Name {
    pub fn new(text: &str) -> Result<Self, NameError> {
        check(text)?;
        Ok(Self(SmolStr::new(text)))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn check(text: &str) -> Result<(), NameError> {
    if text.len() > MAX_NAME_BYTES {
        return Err(NameError::TooLong(text.len()));
    }
    let first = text.chars().next().ok_or(NameError::Empty)?;
    // By bytes: every log record has a dozen names, and anything beyond ASCII is refused anyway.
    if !text.bytes().all(|byte| ALLOWED[usize::from(byte)]) {
        let bad = text.chars().find(|c| !c.is_ascii() || !ALLOWED[*c as usize]);
        return Err(NameError::BadCharacter(bad.unwrap_or(first)));
    }
    if !first.is_ascii_alphanumeric() {
        return Err(NameError::BadStart(first));
    }
    Ok(())
}

/// Which bytes a name may have in it.
const ALLOWED: [bool; 256] = {
    let mut allowed = [false; 256];
    let mut byte = 0;
    while byte < 128 {
        let c = byte as u8;
        allowed[byte] =
            c.is_ascii_alphanumeric() || matches!(c, b'.' | b'_' | b':' | b'/' | b'@' | b'-');
        byte += 1;
    }
    allowed
};

impl Borrow<str> for Name {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.0.as_str(), f)
    }
}

impl std::str::FromStr for Name {
    type Err = NameError;
    fn from_str(text: &str) -> Result<Self, NameError> {
        Self::new(text)
    }
}

impl TryFrom<&str> for Name {
    type Error = NameError;
    fn try_from(text: &str) -> Result<Self, NameError> {
        Self::new(text)
    }
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = SmolStr::deserialize(deserializer)?;
        check(&text).map_err(serde::de::Error::custom)?;
        Ok(Self(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expect: Result<(), NameError>) {
        assert_eq!(Name::new(text).map(|_| ()), expect, "{text:?}");
    }

    #[test]
    fn accepts_uuids_host_names_and_scoped_names() {
        check("6f1c2a30-0d2b-7c41-9a55-1d3e9f0a7b11", Ok(()));
        check("rack-12.zone_a:feed/2", Ok(()));
        check("9", Ok(()));
    }

    #[test]
    fn refuses_what_would_need_escaping_and_says_which_character() {
        check("", Err(NameError::Empty));
        check("a b", Err(NameError::BadCharacter(' ')));
        check("a\0", Err(NameError::BadCharacter('\0')));
        check("../etc", Err(NameError::BadStart('.')));
        check("naïve", Err(NameError::BadCharacter('ï')));
        check(&"x".repeat(129), Err(NameError::TooLong(129)));
    }
}
