//! What lies at the top, how long files are and what they are called.

use super::{Complaints, Tree};
use std::collections::BTreeSet;

const TOP_LEVEL: [&str; 19] = [
    ".cargo",
    ".ci",
    ".clippy.toml",
    ".deny.toml",
    ".gitignore",
    ".rustfmt.toml",
    "Cargo.lock",
    "Cargo.toml",
    "LICENSE",
    "Makefile",
    "README.md",
    "api",
    "backend",
    "benches",
    "chaos",
    "models",
    "policies",
    "rust-toolchain.toml",
    "tests",
];

/// A file of one idea is about 500 lines at most; beyond this it has two.
const MAX_LINES: usize = 600;

/// Words that fit everything and therefore say nothing.
const EMPTY_WORDS: [&str; 8] =
    ["manager", "helper", "util", "processor", "enhanced", "advanced", "unified", "v2"];

/// Complains of files and folders at the top that have no place there.
pub fn top_level_is_as_drawn(tree: &Tree) -> Complaints {
    let top: BTreeSet<&str> = tree.0.keys().filter_map(|path| path.split('/').next()).collect();
    let strangers = top.into_iter().filter(|name| !TOP_LEVEL.contains(name));
    strangers.map(|name| format!("{name}: not among {}", TOP_LEVEL.join(" "))).collect()
}

/// Complains of source files over 600 lines.
pub fn files_are_short(tree: &Tree) -> Complaints {
    let lengths =
        tree.ending(&[".rs", ".go", ".ts"]).map(|(path, text)| (path, text.lines().count()));
    lengths
        .filter(|(_, lines)| *lines > MAX_LINES)
        .map(|(path, lines)| format!("{path}: {lines} lines, at most {MAX_LINES} are one idea"))
        .collect()
}

/// Complains of files, folders and modules that are called after nothing in particular.
pub fn file_names_say_something(tree: &Tree) -> Complaints {
    let mut complaints = Vec::new();
    for path in tree.0.keys() {
        if let Some(word) = path.split('/').find_map(empty_word) {
            complaints.push(format!("{path}: {word:?} says nothing about what is inside"));
        }
    }
    for (path, text) in tree.ending(&[".rs"]) {
        for (row, line) in text.lines().enumerate() {
            let words: Vec<&str> = line.split([' ', ';', '{']).filter(|w| !w.is_empty()).collect();
            let module = match words.as_slice() {
                ["mod", name, ..] | ["pub" | "pub(crate)", "mod", name, ..] => name,
                _ => continue,
            };
            if let Some(word) = empty_word(module) {
                complaints.push(format!("{path}:{}: module {module:?} says {word:?}", row + 1));
            }
        }
    }
    complaints
}

fn empty_word(name: &str) -> Option<&'static str> {
    let parts = || name.split(|c: char| !c.is_ascii_alphanumeric()).map(str::to_ascii_lowercase);
    EMPTY_WORDS.into_iter().find(|word| {
        parts().any(|part| part.strip_prefix(word).is_some_and(|rest| ["", "s"].contains(&rest)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strangers_at_the_top_are_named() {
        let top = |path: &str| top_level_is_as_drawn(&Tree::of(&[(path, "")])).len();
        assert_eq!(top("README.md"), 0);
        assert_eq!(top("backend/solver/src/lib.rs"), 0);
        assert_eq!(top("NOTES.md"), 1);
        assert_eq!(top("scripts/run.sh"), 1);
        assert_eq!(top(".env"), 1);
    }

    #[test]
    fn long_source_files_are_named() {
        let long = |path: &str, lines: usize| {
            files_are_short(&Tree::of(&[(path, &"x\n".repeat(lines))])).len()
        };
        assert_eq!(long("a/b.rs", 600), 0);
        assert_eq!(long("a/b.rs", 601), 1);
        assert_eq!(long("a/b.go", 601), 1);
        assert_eq!(long("a/b.ts", 601), 1);
        assert_eq!(long("Cargo.lock", 5_000), 0);
    }

    #[test]
    fn names_that_say_nothing_are_named() {
        let check = |path: &str, text: &str, complaints: usize| {
            let found = file_names_say_something(&Tree::of(&[(path, text)]));
            assert_eq!(found.len(), complaints, "{path}: {found:?}");
        };
        check("backend/solver/src/score.rs", "mod utilisation;", 0);
        check("backend/solver/src/utils.rs", "", 1);
        check("backend/solver/src/host_manager.rs", "", 1);
        check("api/server/src/v2/mod.rs", "", 1);
        check("api/clients/go/Helper.go", "", 1);
        check("a/lib.rs", "//! x\npub(crate) mod util;", 1);
        check("a/lib.rs", "//! x\nmod unified_score {", 1);
        check("a/lib.rs", "//! no mod helpers here", 0);
    }
}
