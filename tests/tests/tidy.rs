//! Keeps the tree as it is drawn. The checks, and tests that they can fail, are in `tests::tidy`.

use std::path::Path;
use tests::tidy::{CHECKS, Tree};

#[test]
fn the_tree_is_tidy() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let tree = Tree::read(&root).expect("the source tree can be read");
    assert!(tree.text("Cargo.toml").is_some(), "{} is not the workspace", root.display());
    let mut complaints = Vec::new();
    for (check, run) in CHECKS {
        complaints.extend(run(&tree).into_iter().map(|complaint| format!("{check}: {complaint}")));
    }
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}
