//! "Did you mean": the known word that is nearest to an unknown one.

/// The nearest of `known` if it is near enough to be a slip of the finger.
pub(crate) fn nearest<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    // Longer words are no slips, and would make the comparison below expensive.
    if word.len() > 64 {
        return None;
    }
    let allowed = (word.chars().count() / 3).clamp(1, 3);
    known
        .into_iter()
        .map(|candidate| (distance(word, candidate), candidate))
        .filter(|(distance, _)| *distance <= allowed)
        .min()
        .map(|(_, candidate)| candidate)
}

/// Insertions, deletions and replacements of one letter that lead from `a` to `b`, where case and
/// `-` against `_` do not count.
fn distance(a: &str, b: &str) -> usize {
    let fold = |c: char| if c == '-' { '_' } else { c.to_ascii_lowercase() };
    let b: Vec<char> = b.chars().map(fold).collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (line, from) in a.chars().map(fold).enumerate() {
        let mut diagonal = line;
        let mut left = line.saturating_add(1);
        let mut next = Vec::with_capacity(row.len());
        next.push(left);
        for (to, above) in b.iter().zip(row.iter().skip(1)) {
            let replaced = diagonal.saturating_add(usize::from(*to != from));
            let shifted = left.min(*above).saturating_add(1);
            diagonal = *above;
            left = replaced.min(shifted);
            next.push(left);
        }
        row = next;
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_slips_and_leaves_other_words_alone() {
        let known = ["cpu_millis", "memory_mib", "disk_gib"];
        assert_eq!(nearest("cpu_milis", known), Some("cpu_millis"));
        assert_eq!(nearest("memory-MiB", known), Some("memory_mib"));
        assert_eq!(nearest("network", known), None);
        assert_eq!(nearest("", known), None);
    }

    #[test]
    fn distance_is_the_number_of_edits() {
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("abc", "abc"), 0);
    }
}
