//! The architecture page and the crates there are.

use super::{Complaints, Tree};

const PAGE: &str = "backend/ARCHITECTURE.md";

/// Complains of crates without a row in the code map of the architecture page.
pub fn code_map_names_every_crate(tree: &Tree) -> Complaints {
    let Some(page) = tree.text(PAGE) else { return vec![format!("{PAGE}: is not there")] };
    let start = page.find("## Code map").unwrap_or(page.len());
    let map = &page[start..];
    let map = map[1.min(map.len())..].find("\n## ").map_or(map, |end| &map[..=end]);
    let rows: Vec<&str> = map.lines().filter(|line| line.starts_with('|')).collect();
    tree.manifests()
        .filter(|(folder, _)| !rows.iter().any(|row| row.contains(&format!("`{folder}`"))))
        .map(|(folder, _)| format!("{PAGE}: the code map has no row for `{folder}`"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_crate_needs_a_row_in_the_map() {
        let check = |page: &str, complaints: usize| {
            let tree = Tree::of(&[("backend/solver/Cargo.toml", ""), (PAGE, page)]);
            assert_eq!(code_map_names_every_crate(&tree).len(), complaints, "{page}");
        };
        check("## Code map\n| `backend/solver` | places |\n", 0);
        check("## Code map\n| `backend/solver` | places |\n## Next\n", 0);
        check("## Code map\n| `backend/cluster` | nouns |\n", 1);
        check("## Code map\n\n## Elsewhere\n| `backend/solver` | places |\n", 1);
        check("no map", 1);
        assert_eq!(code_map_names_every_crate(&Tree::default()).len(), 1);
    }
}
