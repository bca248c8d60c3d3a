//! Lists in pages: in order of a key, from where the last page ended.

use cluster::Revision;
use wire::Page;

/// Which page is wanted.
#[derive(Debug)]
pub(super) struct Cut {
    /// `next_cursor` of the page before.
    pub(super) cursor: Option<String>,
    /// Items in one page; 100 unless told.
    pub(super) limit: Option<u16>,
}

impl Cut {
    /// The page after the cursor. Rows come in any order; keys are unique.
    pub(super) fn of<T, V>(
        &self,
        rows: impl Iterator<Item = (String, T)>,
        revision: Revision,
        show: impl Fn(T) -> V,
    ) -> Page<V> {
        let limit = usize::from(self.limit.unwrap_or(100).clamp(1, 1_000));
        let after = |key: &str| self.cursor.as_deref().is_none_or(|cursor| key > cursor);
        let mut rows: Vec<(String, T)> = rows.filter(|(key, _)| after(key)).collect();
        let more = rows.len() > limit;
        if more {
            rows.select_nth_unstable_by(limit, |(a, _), (b, _)| a.cmp(b));
            rows.truncate(limit);
        }
        rows.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        let next_cursor = rows.last().filter(|_| more).map(|(key, _)| key.clone());
        let items = rows.into_iter().map(|(_, row)| show(row)).collect();
        Page { items, next_cursor, revision: revision.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_join_up_to_the_whole_list() {
        let mut cursor = None;
        let mut seen = Vec::new();
        loop {
            let rows = [5, 3, 9, 1, 7].map(|n: u32| (n.to_string(), n));
            let cut = Cut { cursor, limit: Some(2) };
            let page = cut.of(rows.into_iter(), Revision(1), |row| row);
            seen.extend(page.items);
            cursor = page.next_cursor;
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!(seen, [1, 3, 5, 7, 9]);
    }
}
