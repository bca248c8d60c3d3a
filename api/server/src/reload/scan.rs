//! Reads the policy files of a directory without trusting anything about them.
//!
//! Names are one plain component, links are not followed, sizes are looked at before reading, and
//! a file that changes under the reader is read again. What the bytes mean is for others to say.

use crate::policy_files::MAX_POLICY_FILES;
use policy::{Diagnostic, MAX_TEXT_BYTES, Severity};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat, fstat, open, openat, statat};
use rustix::io::Errno;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

/// Entries of the directory that are looked at, policy files or not.
const MAX_ENTRIES: usize = 16_384;
/// How often a file that changes while it is read is read again.
const READS: usize = 3;
const LONGEST_STEM: usize = 63;
const ENDINGS: [&str; 3] = ["policy", "yaml", "yml"];

/// The policy files of a directory by name.
pub(super) type Scan = BTreeMap<String, Found>;

#[derive(Clone, Debug)]
pub(super) struct Found {
    /// Changes whenever the file does; `None` if it could not be looked at.
    pub(super) stamp: Option<Stamp>,
    pub(super) content: Content,
}

#[derive(Clone, Debug)]
pub(super) enum Content {
    Bytes(Vec<u8>),
    /// Not something to read a policy from.
    Unfit(Box<Diagnostic>),
    /// Still being written: nothing can be said about it yet.
    Unsettled,
}

/// What tells one state of a file from the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    device: u64,
    inode: u64,
    size: i64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl From<&Stat> for Stamp {
    #[allow(clippy::useless_conversion, reason = "the widths differ between platforms")]
    fn from(stat: &Stat) -> Self {
        Self {
            device: stat.st_dev.into(),
            inode: stat.st_ino.into(),
            size: stat.st_size,
            modified: (stat.st_mtime, i64::try_from(stat.st_mtime_nsec).unwrap_or(0)),
            changed: (stat.st_ctime, i64::try_from(stat.st_ctime_nsec).unwrap_or(0)),
        }
    }
}

/// Reads every policy file in `directory`, which itself may be behind a link.
pub(super) fn scan(directory: &Path) -> io::Result<Scan> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = open(directory, flags, Mode::empty())?;
    let mut names = BTreeSet::new();
    for entry in Dir::read_from(&directory)?.take(MAX_ENTRIES) {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if claims_to_be_a_policy(&name) {
            names.insert(name);
        }
    }
    let mut found = Scan::new();
    for name in names {
        let file = if found.len() >= MAX_POLICY_FILES {
            let message = format!("the directory has more than {MAX_POLICY_FILES} policy files");
            Some(unfit("too-many-files", message, "move policies that belong together elsewhere"))
        } else if !is_plain(&name) {
            let message = format!("{name:?} is not a name for a policy file");
            let hint = "use up to 63 of a-z, 0-9 and -, then .policy, .yaml or .yml";
            Some(unfit("file-name", message, hint))
        } else {
            read(&directory, &name)
        };
        if let Some(file) = file {
            found.insert(name, file);
        }
    }
    Ok(found)
}

/// The device and inode of a directory: another one may have taken its place.
pub(super) fn identity(directory: &Path) -> io::Result<(u64, u64)> {
    let stamp = Stamp::from(&rustix::fs::stat(directory)?);
    Ok((stamp.device, stamp.inode))
}

/// Of two looks at a directory, what the second saw; what is different from the first is not
/// settled.
pub(super) fn settled(first: &Scan, mut second: Scan) -> Scan {
    for (name, found) in &mut second {
        let same = first.get(name).is_some_and(|before| before.stamp == found.stamp);
        if !same {
            found.content = Content::Unsettled;
        }
    }
    second
}

/// Whether somebody means the file to be a policy, by its ending. Editors keep copies under names
/// that begin with a dot or end in other ways; those are left alone.
fn claims_to_be_a_policy(name: &str) -> bool {
    let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
    !name.starts_with('.') && ENDINGS.contains(&ending.to_ascii_lowercase().as_str())
}

fn is_plain(name: &str) -> bool {
    let Some((stem, ending)) = name.split_once('.') else { return false };
    let letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    ENDINGS.contains(&ending)
        && stem.len() <= LONGEST_STEM
        && stem.bytes().next().is_some_and(letter)
        && stem.bytes().all(|byte| letter(byte) || byte == b'-')
}

/// `None`: it is gone by now.
fn read(directory: &OwnedFd, name: &str) -> Option<Found> {
    for _ in 0..READS {
        match read_once(directory, name) {
            Ok(Some(found)) => return Some(found),
            Ok(None) => {}
            Err(Errno::NOENT) => return None,
            Err(error) => {
                let message = format!("it cannot be read: {error}");
                return Some(unfit("unreadable-file", message, "give the service access to it"));
            }
        }
    }
    let hint = "write it under another name and rename it";
    Some(unfit("changing-file", "it changes while it is read".into(), hint))
}

/// `Ok(None)`: it changed meanwhile.
fn read_once(directory: &OwnedFd, name: &str) -> Result<Option<Found>, Errno> {
    let look = || statat(directory, name, AtFlags::SYMLINK_NOFOLLOW);
    let before = look()?;
    let stamp = Stamp::from(&before);
    if let Some(content) = unsuitable(&before) {
        return Ok(Some(Found { stamp: Some(stamp), content }));
    }
    // Not blocking, in case it has become a pipe since.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = openat(directory, name, flags, Mode::empty())?;
    if Stamp::from(&fstat(file.as_fd())?) != stamp {
        return Ok(None);
    }
    let mut file = File::from(file);
    let mut bytes = Vec::new();
    let limit = MAX_TEXT_BYTES as u64;
    let whole = file.by_ref().take(limit.saturating_add(1)).read_to_end(&mut bytes);
    whole.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
    let unchanged = Stamp::from(&fstat(file.as_fd())?) == stamp
        && Stamp::from(&look()?) == stamp
        && i64::try_from(bytes.len()) == Ok(stamp.size);
    Ok(unchanged.then_some(Found { stamp: Some(stamp), content: Content::Bytes(bytes) }))
}

fn unsuitable(stat: &Stat) -> Option<Content> {
    let found = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile
            if u64::try_from(stat.st_size).unwrap_or(0) > MAX_TEXT_BYTES as u64 =>
        {
            let message = format!("{} bytes, at most {MAX_TEXT_BYTES} are read", stat.st_size);
            finding("too-large", message, "split the policy")
        }
        FileType::RegularFile => return None,
        FileType::Symlink => {
            let hint = "put the file itself here; the directory may be behind a link";
            finding("link", "it is a link, and links are not followed".into(), hint)
        }
        other => finding("not-a-file", format!("it is no file but a {other:?}"), "remove it"),
    };
    Some(Content::Unfit(Box::new(found)))
}

fn unfit(code: &'static str, message: String, hint: &str) -> Found {
    Found { stamp: None, content: Content::Unfit(Box::new(finding(code, message, hint))) }
}

/// An error about a file as a whole.
pub(super) fn finding(code: &'static str, message: String, hint: &str) -> Diagnostic {
    Diagnostic {
        severity: Severity::Error,
        code,
        line: 0,
        column: 0,
        field: "file".into(),
        message,
        hint: Some(hint.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn code(found: &Found) -> &'static str {
        match &found.content {
            Content::Bytes(_) => "read",
            Content::Unfit(found) => found.code,
            Content::Unsettled => "unsettled",
        }
    }

    #[test]
    fn only_plain_names_are_read_and_only_likely_ones_are_complained_of() {
        for good in
            ["a.policy", "0-x.yaml", "gpu-placement.yml", &format!("{}.yml", "a".repeat(63))]
        {
            assert!(claims_to_be_a_policy(good) && is_plain(good), "{good}");
        }
        let long = format!("{}.yml", "a".repeat(64));
        for bad in ["A.policy", "-a.policy", "a b.yaml", "ä.yml", "a.b.policy", "a.POLICY", &long]
        {
            assert!(claims_to_be_a_policy(bad) && !is_plain(bad), "{bad}");
        }
        for other in [".a.policy.swp", ".a.policy", "a.policy~", "README.md", "policy", "..data"] {
            assert!(!claims_to_be_a_policy(other), "{other}");
        }
    }

    #[test]
    fn what_is_no_regular_file_of_moderate_size_is_not_read() {
        let dir = tempfile::tempdir().expect("a directory");
        let at = |name: &str| dir.path().join(name);
        let secret = tempfile::NamedTempFile::new().expect("a file");
        fs::write(at("good.policy"), "text").expect("written");
        fs::write(at("empty.policy"), "").expect("written");
        fs::write(at("huge.policy"), vec![b' '; MAX_TEXT_BYTES + 1]).expect("written");
        fs::write(at("Upper.policy"), "text").expect("written");
        fs::create_dir(at("folder.policy")).expect("made");
        std::os::unix::fs::symlink(secret.path(), at("link.policy")).expect("linked");
        std::os::unix::fs::symlink("../nowhere", at("dangling.yaml")).expect("linked");
        let _socket = std::os::unix::net::UnixListener::bind(at("socket.policy")).expect("bound");
        fs::write(at("notes.txt"), "text").expect("written");
        let scan = scan(dir.path()).expect("readable");
        let codes: Vec<(&str, &str)> =
            scan.iter().map(|(name, found)| (name.as_str(), code(found))).collect();
        let expected = [
            ("Upper.policy", "file-name"),
            ("dangling.yaml", "link"),
            ("empty.policy", "read"),
            ("folder.policy", "not-a-file"),
            ("good.policy", "read"),
            ("huge.policy", "too-large"),
            ("link.policy", "link"),
            ("socket.policy", "not-a-file"),
        ];
        assert_eq!(codes, expected);
    }

    #[test]
    fn a_file_is_settled_when_two_looks_see_the_same() {
        let dir = tempfile::tempdir().expect("a directory");
        let at = |name: &str| dir.path().join(name);
        fs::write(at("a.policy"), "one").expect("written");
        fs::write(at("b.policy"), "one").expect("written");
        let first = scan(dir.path()).expect("readable");
        fs::write(at("b.policy"), "two and more").expect("written");
        fs::write(at("c.policy"), "new").expect("written");
        let both = settled(&first, scan(dir.path()).expect("readable"));
        let codes: Vec<&str> = both.values().map(code).collect();
        assert_eq!(codes, ["read", "unsettled", "unsettled"]);
    }

    #[test]
    fn no_more_files_are_read_than_allowed() {
        let dir = tempfile::tempdir().expect("a directory");
        for number in 0..MAX_POLICY_FILES + 3 {
            fs::write(dir.path().join(format!("{number:04}.policy")), "x").expect("written");
        }
        let scan = scan(dir.path()).expect("readable");
        let surplus = scan.values().filter(|found| code(found) == "too-many-files").count();
        assert_eq!((scan.len(), surplus), (MAX_POLICY_FILES + 3, 3));
    }

    #[test]
    fn a_missing_directory_is_an_error_and_not_an_empty_one() {
        let dir = tempfile::tempdir().expect("a directory");
        assert!(scan(&dir.path().join("gone")).is_err());
    }
}
