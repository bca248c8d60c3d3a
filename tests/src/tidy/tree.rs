//! The source tree in memory: paths and texts.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::{fs, io};

/// Every file that belongs to the project, by its path from the root with `/` between folders.
/// Files that are not text are empty.
#[derive(Clone, Debug, Default)]
pub struct Tree(pub BTreeMap<String, String>);

/// Folders that builds leave behind, for checkouts without git.
const MADE_BY_BUILDS: [&str; 4] = [".git", ".venv", "node_modules", "target"];

impl Tree {
    pub fn read(root: &Path) -> io::Result<Self> {
        let mut files = BTreeMap::new();
        for path in listed_by_git(root).map_or_else(|| walk(root), Ok)? {
            // Listed but deleted in the work tree: gone with the next commit.
            let Ok(bytes) = fs::read(root.join(&path)) else { continue };
            files.insert(path, String::from_utf8(bytes).unwrap_or_default());
        }
        Ok(Self(files))
    }

    /// A tree of these files, for tests.
    pub fn of(files: &[(&str, &str)]) -> Self {
        Self(files.iter().map(|(path, text)| (path.to_string(), text.to_string())).collect())
    }

    pub fn text(&self, path: &str) -> Option<&str> {
        self.0.get(path).map(String::as_str)
    }

    /// Paths and texts of files with one of these endings.
    pub fn ending(&self, endings: &[&str]) -> impl Iterator<Item = (&str, &str)> {
        let files = self.0.iter().map(|(path, text)| (path.as_str(), text.as_str()));
        files.filter(|(path, _)| endings.iter().any(|ending| path.ends_with(ending)))
    }

    /// The manifest of each crate with its folder, but for the workspace's own.
    pub fn manifests(&self) -> impl Iterator<Item = (&str, &str)> {
        self.ending(&["/Cargo.toml"])
            .filter_map(|(path, text)| Some((path.strip_suffix("/Cargo.toml")?, text)))
    }
}

/// Tracked files and new ones that are not ignored; `None` without git or outside a repository.
fn listed_by_git(root: &Path) -> Option<Vec<String>> {
    let listing = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output()
        .ok()?;
    let text = String::from_utf8(listing.stdout).ok()?;
    let paths: Vec<String> = text.split_terminator('\0').map(String::from).collect();
    (listing.status.success() && !paths.is_empty()).then_some(paths)
}

fn walk(root: &Path) -> io::Result<Vec<String>> {
    let mut paths = Vec::new();
    let mut folders = vec![String::new()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(root.join(&folder))? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
            if !entry.file_type()?.is_dir() {
                paths.push(path);
            } else if !MADE_BY_BUILDS.contains(&name.as_str()) {
                folders.push(path);
            }
        }
    }
    Ok(paths)
}
