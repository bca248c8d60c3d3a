//! What files must and must not contain.
//!
//! Forbidden texts are written in two halves here, so that this file does not contain them.

use super::{Complaints, Tree};

/// Complains of Rust files that do not begin by saying what they do.
pub fn rust_files_say_what_they_do(tree: &Tree) -> Complaints {
    let silent = tree.ending(&[".rs"]).filter(|(_, text)| {
        text.lines()
            .next()
            .and_then(|line| line.strip_prefix("//!"))
            .is_none_or(|s| s.trim().is_empty())
    });
    silent.map(|(path, _)| format!("{path}: no //! header says what it does")).collect()
}

/// Complains of work that was put off and of tests that do not run.
pub fn nothing_is_left_undone(tree: &Tree) -> Complaints {
    let code = [concat!("todo", "!("), concat!("unimplemented", "!("), concat!("#[", "ignore")];
    let mut complaints = containing(tree.ending(&[".rs"]), &code);
    complaints.extend(containing(tree.ending(&[""]), &[concat!("FIX", "ME")]));
    complaints
}

/// Complains of paths that exist on one machine only and of hosts to download packages from:
/// which mirror to use is for the user's own configuration to say.
pub fn nothing_names_a_machine(tree: &Tree) -> Complaints {
    const HOSTS: [&str; 8] = [
        concat!("index.", "crates.io"),
        concat!("static.", "crates.io"),
        concat!("pypi", ".org"),
        concat!("files.", "pythonhosted.org"),
        concat!("registry.", "npmjs.org"),
        concat!("proxy.", "golang.org"),
        concat!("sum.", "golang.org"),
        concat!("deb.", "debian.org"),
    ];
    let mut complaints = containing(tree.ending(&[""]), &HOSTS);
    for folder in [concat!("/wo", "rk"), concat!("/ro", "ot"), concat!("/ho", "me")] {
        for (path, text) in tree.ending(&[""]) {
            let found = text.lines().enumerate().filter(|(_, line)| has_absolute(line, folder));
            complaints.extend(found.map(|(row, _)| format!("{path}:{}: {folder}", row + 1)));
        }
    }
    let public = concat!("registry+https://github.com/rust-lang/", "crates.io-index");
    for (row, line) in tree.text("Cargo.lock").unwrap_or("").lines().enumerate() {
        if line.strip_prefix("source = ").is_some_and(|source| source.trim_matches('"') != public) {
            complaints.push(format!("Cargo.lock:{}: {line}", row + 1));
        }
    }
    complaints
}

/// Whether `line` has a path that starts with `folder`, and not just one that goes through it.
fn has_absolute(line: &str, folder: &str) -> bool {
    line.match_indices(folder).any(|(start, _)| {
        let before = line[..start].chars().next_back();
        let after = line[start + folder.len()..].chars().next();
        before.is_none_or(|c| !c.is_alphanumeric() && !"._-}/*)".contains(c))
            && after.is_none_or(|c| !c.is_alphanumeric() && !"_-{".contains(c))
    })
}

fn containing<'a>(
    files: impl Iterator<Item = (&'a str, &'a str)>,
    forbidden: &[&str],
) -> Complaints {
    let mut complaints = Vec::new();
    for (path, text) in files {
        for (row, line) in text.lines().enumerate() {
            if let Some(found) = forbidden.iter().find(|found| line.contains(**found)) {
                complaints.push(format!("{path}:{}: {found}", row + 1));
            }
        }
    }
    complaints
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(rule: fn(&Tree) -> Complaints, path: &str, text: &str, complaints: usize) {
        let found = rule(&Tree::of(&[(path, text)]));
        assert_eq!(found.len(), complaints, "{path} with {text:?}: {found:?}");
    }

    #[test]
    fn a_rust_file_begins_with_a_header() {
        check(rust_files_say_what_they_do, "a.rs", "//! Does something.\n", 0);
        check(rust_files_say_what_they_do, "a.rs", "//!\n", 1);
        check(rust_files_say_what_they_do, "a.rs", "use std::fs;\n", 1);
        check(rust_files_say_what_they_do, "a.rs", "", 1);
        check(rust_files_say_what_they_do, "a.md", "", 0);
    }

    #[test]
    fn work_that_was_put_off_is_found() {
        check(nothing_is_left_undone, "a.rs", concat!("fn f() { todo", "!() }"), 1);
        check(nothing_is_left_undone, "a.rs", concat!("fn f() { unimplemented", "!() }"), 1);
        check(nothing_is_left_undone, "a.rs", concat!("#[", "ignore = \"slow\"]"), 1);
        check(nothing_is_left_undone, "a.go", concat!("// FIX", "ME"), 1);
        check(nothing_is_left_undone, "a.rs", "fn todo() {}", 0);
    }

    #[test]
    fn paths_of_one_machine_are_found() {
        check(nothing_names_a_machine, "a.sh", concat!("cd /wo", "rk/main"), 1);
        check(nothing_names_a_machine, "a.rs", concat!("let home = \"/ro", "ot\";"), 1);
        check(nothing_names_a_machine, "a.md", concat!("in `/ho", "me/me/data`"), 1);
        check(nothing_names_a_machine, "a.yml", concat!("{id}/wo", "rk"), 0);
        check(nothing_names_a_machine, "a.rs", concat!("\"https://host/ro", "ot\""), 0);
        check(nothing_names_a_machine, "a.rs", concat!("\"/wo", "rkers\""), 0);
    }

    #[test]
    fn package_hosts_are_found() {
        check(
            nothing_names_a_machine,
            "a.toml",
            concat!("url = \"https://index.", "crates.io\""),
            1,
        );
        check(nothing_names_a_machine, "p.json", concat!("https://registry.", "npmjs.org/a"), 1);
        check(nothing_names_a_machine, "Cargo.lock", "source = \"registry+https://mirror/\"", 1);
        let public =
            concat!("source = \"registry+https://github.com/rust-lang/", "crates.io-index\"");
        check(nothing_names_a_machine, "Cargo.lock", public, 0);
    }
}
