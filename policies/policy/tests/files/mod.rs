//! The example policies on disk.

use std::fs;
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples")
}

/// Their file names, sorted.
pub fn names() -> Vec<String> {
    let entries = fs::read_dir(folder()).expect("the folder of examples");
    let mut names: Vec<String> = entries
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

pub fn read(name: &str) -> String {
    fs::read_to_string(folder().join(name)).expect("an example")
}
