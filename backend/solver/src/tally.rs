//! Small counters by row number: members by host, members by domain, repellers by domain.

/// Counts by number, sorted; zero counts are not stored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally(Vec<(u32, u32)>);

impl Tally {
    pub(crate) const EMPTY: &Tally = &Tally(Vec::new());

    pub(crate) fn get(&self, number: u32) -> u32 {
        self.0.binary_search_by_key(&number, |entry| entry.0).map_or(0, |row| self.0[row].1)
    }

    pub(crate) fn add(&mut self, number: u32, count: u32) {
        if count == 0 {
            return;
        }
        match self.0.binary_search_by_key(&number, |entry| entry.0) {
            Ok(row) => self.0[row].1 += count,
            Err(row) => self.0.insert(row, (number, count)),
        }
    }

    /// Takes back what was added; what was never added is not taken.
    pub(crate) fn sub(&mut self, number: u32, count: u32) {
        let Ok(row) = self.0.binary_search_by_key(&number, |entry| entry.0) else { return };
        self.0[row].1 = self.0[row].1.saturating_sub(count);
        if self.0[row].1 == 0 {
            self.0.remove(row);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The numbers with a count, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.0.iter().copied()
    }
}
