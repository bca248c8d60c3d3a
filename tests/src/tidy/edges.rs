//! Which crate may depend on which.

use super::{Complaints, Tree};
use std::collections::{BTreeMap, BTreeSet};
use toml::{Table, Value};

/// "A crate on the right may use those on the left, and whatever these may use."
const LAYERS: [(&[&str], &[&str]); 11] = [
    (&["cluster"], &["policy"]),
    (&["policy"], &["solver"]),
    (&["solver"], &["planner", "queue", "ilp"]),
    (&["planner", "queue", "ilp"], &["engine"]),
    (&["cluster", "policy"], &["verify"]),
    (&["verify", "forecast", "lifetime", "store"], &["engine"]),
    (&["cluster", "policy"], &["wire", "formats"]),
    (&["ilp", "planner", "verify"], &["optimise"]),
    (&["engine", "wire", "formats"], &["server"]),
    (&["optimise"], &["server"]),
    (&["cluster"], &["fixture"]),
];

/// Crates below the HTTP edge: what the command line, benches and chaos runs are made of.
const INNER: [&str; 15] = [
    "cluster", "policy", "solver", "ilp", "optimise", "planner", "queue", "verify", "engine",
    "store", "fixture", "forecast", "lifetime", "wire", "formats",
];

/// Never, not even in tests: the two that must not share a mistake, and the two that must not
/// know what they are used for.
const NEVER: [(&str, &str); 4] =
    [("solver", "verify"), ("verify", "solver"), ("forecast", "cluster"), ("engine", "axum")];

/// Where code may wait for sockets; everything else is called and answers.
const ASYNC_FOLDERS: [&str; 3] = ["api/", "chaos", "tests"];
const ASYNC_CRATES: [&str; 2] = ["tokio", "axum"];

/// Complains of every dependency that is not drawn in `backend/ARCHITECTURE.md`.
pub fn dependencies_point_one_way(tree: &Tree) -> Complaints {
    let mut complaints = Vec::new();
    let crates: BTreeSet<&str> = tree.manifests().map(|(folder, _)| crate_of(folder)).collect();
    for (folder, text) in tree.manifests() {
        let name = crate_of(folder);
        let manifest: Table = match toml::from_str(text) {
            Ok(manifest) => manifest,
            Err(error) => {
                complaints.push(format!("{folder}/Cargo.toml: {}", error.message()));
                continue;
            }
        };
        let declared = manifest.get("package").and_then(|package| package.get("name"));
        if declared.and_then(Value::as_str) != Some(name) {
            complaints.push(format!("{folder}/Cargo.toml: the crate is not named {name}"));
        }
        for (used, in_tests) in dependencies(&manifest) {
            if !allowed(folder, name, &used, in_tests, &crates) {
                complaints.push(format!("{folder}/Cargo.toml: {name} must not use {used}"));
            }
        }
    }
    complaints
}

fn crate_of(folder: &str) -> &str {
    folder.rsplit('/').next().unwrap_or(folder)
}

fn allowed(folder: &str, name: &str, used: &str, in_tests: bool, crates: &BTreeSet<&str>) -> bool {
    if NEVER.contains(&(name, used)) {
        return false;
    }
    let family = used.split(['-', '_']).next().unwrap_or(used);
    if ASYNC_CRATES.contains(&family) {
        return ASYNC_FOLDERS.iter().any(|start| folder.starts_with(start));
    }
    if !crates.contains(used) {
        return true;
    }
    match name {
        "tests" => true,
        "cli" => INNER.contains(&used) || ["server", "benches", "chaos"].contains(&used),
        "benches" | "chaos" => INNER.contains(&used),
        _ => below(name).contains(used) || (in_tests && used == "fixture"),
    }
}

/// Everything that `name` may use, however far down.
fn below(name: &str) -> BTreeSet<&'static str> {
    let mut direct: BTreeMap<&str, Vec<&'static str>> = BTreeMap::new();
    for (lower, upper) in LAYERS {
        for user in upper {
            direct.entry(user).or_default().extend(lower);
        }
    }
    let mut found = BTreeSet::new();
    let mut open = vec![name];
    while let Some(user) = open.pop() {
        for used in direct.get(user).into_iter().flatten() {
            if found.insert(*used) {
                open.push(used);
            }
        }
    }
    found
}

/// Every crate that a manifest names, and whether only its tests use it.
fn dependencies(manifest: &Table) -> Vec<(String, bool)> {
    let mut found = Vec::new();
    for (kind, in_tests) in
        [("dependencies", false), ("build-dependencies", false), ("dev-dependencies", true)]
    {
        let per_target = manifest.get("target").and_then(Value::as_table).into_iter().flatten();
        let tables =
            per_target.filter_map(|(_, target)| target.get(kind)).chain(manifest.get(kind));
        for (key, value) in tables.filter_map(Value::as_table).flatten() {
            let renamed = value.get("package").and_then(Value::as_str);
            found.push((renamed.unwrap_or(key).to_string(), in_tests));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two crates, the first with these lines in its manifest; complains or not.
    fn check(folder: &str, lines: &str, other: &str, complains: bool) {
        let manifest = |folder| format!("[package]\nname = \"{}\"\n", crate_of(folder));
        let mut files = vec![(format!("{folder}/Cargo.toml"), manifest(folder) + lines)];
        files.push((format!("{other}/Cargo.toml"), manifest(other)));
        let tree = Tree(files.into_iter().collect());
        let complaints = dependencies_point_one_way(&tree);
        assert_eq!(!complaints.is_empty(), complains, "{folder} with {lines}: {complaints:?}");
    }

    fn uses(folder: &str, other: &str, complains: bool) {
        let lines = format!("[dependencies]\n{} = \"*\"", crate_of(other));
        check(folder, &lines, other, complains);
    }

    #[test]
    fn what_is_drawn_is_allowed_however_far_down() {
        uses("policies/policy", "backend/cluster", false);
        uses("backend/solver", "backend/cluster", false);
        uses("backend/engine", "backend/solver", false);
        uses("backend/engine", "backend/cluster", false);
        uses("backend/engine", "models/forecast", false);
        uses("api/server", "backend/verify", false);
        uses("api/cli", "benches", false);
        uses("benches", "backend/engine", false);
        uses("chaos", "backend/fixture", false);
        uses("tests", "api/server", false);
    }

    #[test]
    fn what_is_not_drawn_is_refused() {
        uses("backend/cluster", "policies/policy", true);
        uses("backend/solver", "backend/engine", true);
        uses("backend/store", "backend/cluster", true);
        uses("models/lifetime", "backend/cluster", true);
        uses("backend/fixture", "backend/solver", true);
        uses("backend/engine", "backend/fixture", true);
        uses("backend/engine", "api/wire", true);
        uses("api/server", "chaos", true);
        uses("benches", "chaos", true);
        uses("api/cli", "tests", true);
    }

    #[test]
    fn some_edges_are_refused_in_every_form() {
        let dev = "[dev-dependencies]\nverify.workspace = true";
        check("backend/solver", dev, "backend/verify", true);
        uses("backend/verify", "backend/solver", true);
        uses("models/forecast", "backend/cluster", true);
        let target = "[target.'cfg(unix)'.dependencies]\nsolver = \"*\"";
        check("backend/verify", target, "backend/solver", true);
        let renamed = "[dependencies]\nkernel = { package = \"solver\", version = \"*\" }";
        check("backend/verify", renamed, "backend/solver", true);
        check("backend/verify", "[build-dependencies]\nsolver = \"*\"", "backend/solver", true);
    }

    #[test]
    fn tests_of_every_crate_may_use_fixtures() {
        let dev = "[dev-dependencies]\nfixture.workspace = true";
        check("backend/solver", dev, "backend/fixture", false);
        check("backend/verify", dev, "backend/fixture", false);
    }

    #[test]
    fn only_the_edge_waits_for_sockets() {
        let tokio = "[dependencies]\ntokio = \"1\"";
        check("api/server", tokio, "backend/cluster", false);
        check("chaos", tokio, "backend/cluster", false);
        check("backend/engine", tokio, "backend/cluster", true);
        check("backend/store", "[dependencies]\ntokio-util = \"1\"", "backend/cluster", true);
        check("backend/engine", "[dependencies]\naxum = \"1\"", "backend/cluster", true);
    }

    #[test]
    fn folders_and_crates_have_the_same_name() {
        let named = |name: &str| {
            let manifest = format!("[package]\nname = \"{name}\"");
            dependencies_point_one_way(&Tree::of(&[("backend/solver/Cargo.toml", &manifest)])).len()
        };
        assert_eq!((named("solver"), named("novaplace-solver")), (0, 1));
    }
}
