//! Labels: sorted pairs of names, small enough to search by halving.

use crate::Name;
use serde::{Deserialize, Serialize};

/// Key-value pairs, sorted by key, each key once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Labels(Vec<(Name, Name)>);

impl Labels {
    pub fn get(&self, key: &str) -> Option<&Name> {
        let row = self.0.binary_search_by(|(k, _)| k.as_str().cmp(key)).ok()?;
        Some(&self.0[row].1)
    }

    pub fn insert(&mut self, key: Name, value: Name) {
        match self.0.binary_search_by(|(k, _)| k.cmp(&key)) {
            Ok(row) => self.0[row].1 = value,
            Err(row) => self.0.insert(row, (key, value)),
        }
    }

    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&Name, &Name)> {
        self.0.iter().map(|(key, value)| (key, value))
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromIterator<(Name, Name)> for Labels {
    fn from_iter<I: IntoIterator<Item = (Name, Name)>>(pairs: I) -> Self {
        let mut labels = Self::default();
        for (key, value) in pairs {
            labels.insert(key, value);
        }
        labels
    }
}
