//! Dense indices and the vectors that only they can index.
//!
//! Outside the service everything is named; inside, tables are indexed. A `Column` takes only
//! its own key type, so that a VM's number can never read a host's row.

use serde::{Deserialize, Serialize};
use std::marker::PhantomData;

/// A number that identifies a row of a dense table.
pub trait Index: Copy + Ord {
    fn new(row: usize) -> Self;
    fn row(self) -> usize;
}

macro_rules! index {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(
            Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
        )]
        pub struct $name(pub u32);

        impl Index for $name {
            fn new(row: usize) -> Self {
                assert!(row < u32::MAX as usize, "table has too many rows");
                Self(row as u32)
            }
            fn row(self) -> usize {
                self.0 as usize
            }
        }
    };
}

index! {
    /// A host's row in the dense tables. Reused after the host is removed; `Host::incarnation` is not.
    HostIx
}
index! {
    /// A VM's row in the dense tables. Reused after the VM is gone.
    VmIx
}

/// The cluster's number: how many commands have been applied to reach this state.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Revision(pub u64);

impl Revision {
    /// The revision that the next command will have.
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl std::fmt::Display for Revision {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// How often one host or VM has changed; what `ETag` and `If-Match` carry.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Generation(pub u64);

impl Generation {
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl std::fmt::Display for Generation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// A vector that is indexed by `K` and by nothing else.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Column<K, T> {
    rows: Vec<T>,
    #[serde(skip)]
    key: PhantomData<fn(K)>,
}

impl<K, T> Default for Column<K, T> {
    fn default() -> Self {
        Self { rows: Vec::new(), key: PhantomData }
    }
}

impl<K: Index, T> Column<K, T> {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn len(&self) -> usize {
        self.rows.len()
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    pub fn push(&mut self, value: T) -> K {
        let key = K::new(self.rows.len());
        self.rows.push(value);
        key
    }

    pub fn get(&self, key: K) -> Option<&T> {
        self.rows.get(key.row())
    }

    pub fn get_mut(&mut self, key: K) -> Option<&mut T> {
        self.rows.get_mut(key.row())
    }

    pub fn iter(&self) -> impl ExactSizeIterator<Item = (K, &T)> + DoubleEndedIterator {
        self.rows.iter().enumerate().map(|(row, value)| (K::new(row), value))
    }

    pub fn as_slice(&self) -> &[T] {
        &self.rows
    }

    pub fn as_mut_slice(&mut self) -> &mut [T] {
        &mut self.rows
    }

    /// Grows the column with `value` until `key` is a valid row.
    pub fn reach(&mut self, key: K, value: T)
    where
        T: Clone,
    {
        if self.rows.len() <= key.row() {
            self.rows.resize(key.row() + 1, value);
        }
    }
}

impl<K: Index, T> std::ops::Index<K> for Column<K, T> {
    type Output = T;
    fn index(&self, key: K) -> &T {
        &self.rows[key.row()]
    }
}

impl<K: Index, T> std::ops::IndexMut<K> for Column<K, T> {
    fn index_mut(&mut self, key: K) -> &mut T {
        &mut self.rows[key.row()]
    }
}

impl<K, T> FromIterator<T> for Column<K, T> {
    fn from_iter<I: IntoIterator<Item = T>>(rows: I) -> Self {
        Self { rows: rows.into_iter().collect(), key: PhantomData }
    }
}
