//! What hosts say of themselves, by row, with each distinct value kept once.
//!
//! A predicate that is new asks its question of every distinct value and then reads a column of
//! small numbers. Walking the hosts instead costs milliseconds on a large fleet, because their
//! descriptions lie far apart in memory, and a caller waits for it.

use crate::bits::{Bits, LANES};
use cluster::{Host, HostIx, Index, Name, RegionLatency, Selector, SelectorOp, Taint};
use rustc_hash::FxHashMap;
use std::borrow::Borrow;
use std::hash::Hash;

/// The attributes that predicates read. Empty lists are not kept: they answer no question.
#[derive(Debug, Default)]
pub(crate) struct Attributes {
    pub(crate) pools: Distinct<Name>,
    pub(crate) datastores: Distinct<Vec<Name>>,
    pub(crate) taints: Distinct<Vec<Taint>>,
    pub(crate) latencies: Distinct<Vec<RegionLatency>>,
    labels: FxHashMap<Name, Distinct<Name>>,
}

impl Attributes {
    pub(crate) fn put_host(&mut self, ix: HostIx, host: Option<&Host>) {
        self.pools.put(ix, host.and_then(|host| host.pool.as_ref()));
        self.datastores.put(ix, some(host, |host| &host.datastores));
        self.taints.put(ix, some(host, |host| &host.taints));
        self.latencies.put(ix, some(host, |host| &host.latencies));
        let labels = host.map(|host| &host.labels);
        for (key, column) in &mut self.labels {
            column.put(ix, labels.and_then(|labels| labels.get(key.as_str())));
        }
        for (key, value) in labels.into_iter().flat_map(|labels| labels.iter()) {
            if !self.labels.contains_key(key) {
                self.labels.entry(key.clone()).or_default().put(ix, Some(value));
            }
        }
        self.labels.retain(|_, column| !column.is_empty());
    }

    /// The hosts among `present` that a selector matches.
    pub(crate) fn selected(&self, selector: &Selector, present: &Bits) -> Bits {
        let having = |test: &dyn Fn(&Name) -> bool| {
            self.labels.get(&selector.key).map_or_else(Bits::default, |column| column.select(test))
        };
        let others = |hosts: &Bits| {
            let mut others = present.clone();
            others.subtract(hosts);
            others
        };
        match &selector.op {
            SelectorOp::In(values) => having(&|value| values.contains(value)),
            SelectorOp::NotIn(values) => others(&having(&|value| values.contains(value))),
            SelectorOp::Exists => having(&|_| true),
            SelectorOp::Missing => others(&having(&|_| true)),
        }
    }
}

fn some<'a, T>(host: Option<&'a Host>, list: impl Fn(&'a Host) -> &'a Vec<T>) -> Option<&'a [T]> {
    host.map(list).filter(|list| !list.is_empty()).map(Vec::as_slice)
}

/// One attribute of every host as the number of its value. Values that no host has any more are
/// forgotten and their numbers given out again.
#[derive(Debug)]
pub(crate) struct Distinct<T> {
    rows: Vec<u32>,
    /// By number; 0 stands for hosts without a value.
    values: Vec<Option<Value<T>>>,
    numbers: FxHashMap<T, u32>,
    unused: Vec<u32>,
}

#[derive(Debug)]
struct Value<T> {
    value: T,
    hosts: u32,
}

const NOTHING: u32 = 0;

impl<T> Default for Distinct<T> {
    fn default() -> Self {
        let (rows, values, unused) = (Vec::new(), vec![None], Vec::new());
        Self { rows, values, numbers: FxHashMap::default(), unused }
    }
}

impl<T: Clone + Eq + Hash> Distinct<T> {
    pub(crate) fn put<Q>(&mut self, ix: HostIx, value: Option<&Q>)
    where
        T: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = T> + ?Sized,
    {
        let number = value.map_or(NOTHING, |value| self.number(value));
        if self.rows.len() <= ix.row() {
            if number == NOTHING {
                return;
            }
            self.rows.resize((ix.row() + 1).next_multiple_of(LANES), NOTHING);
        }
        let before = std::mem::replace(&mut self.rows[ix.row()], number);
        self.count(number, 1);
        self.count(before, -1);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }

    /// The hosts that have a value which passes.
    pub(crate) fn select(&self, test: impl Fn(&T) -> bool) -> Bits {
        let passes = self.ask(false, test);
        let word = |rows: &[u32; LANES]| {
            let lanes = rows.iter().enumerate();
            lanes.fold(0, |word, (lane, &row)| word | u64::from(passes[row as usize]) << lane)
        };
        self.rows.as_chunks().0.iter().map(word).collect()
    }

    /// What becomes of each host's value, by row; `nothing` for hosts without one, and for rows
    /// beyond the column's end.
    pub(crate) fn map<U: Copy>(&self, nothing: U, answer: impl Fn(&T) -> U) -> Vec<U> {
        let answers = self.ask(nothing, answer);
        self.rows.iter().map(|&row| answers[row as usize]).collect()
    }

    fn ask<U: Copy>(&self, nothing: U, answer: impl Fn(&T) -> U) -> Vec<U> {
        let values = self.values.iter();
        values.map(|kept| kept.as_ref().map_or(nothing, |kept| answer(&kept.value))).collect()
    }

    /// The number of a value, which no host may have yet.
    fn number<Q>(&mut self, value: &Q) -> u32
    where
        T: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = T> + ?Sized,
    {
        if let Some(&number) = self.numbers.get(value) {
            return number;
        }
        let kept = Some(Value { value: value.to_owned(), hosts: 0 });
        let number = match self.unused.pop() {
            Some(number) => {
                self.values[number as usize] = kept;
                number
            }
            None => {
                self.values.push(kept);
                self.values.len() as u32 - 1
            }
        };
        self.numbers.insert(value.to_owned(), number);
        number
    }

    fn count(&mut self, number: u32, change: i32) {
        let slot = &mut self.values[number as usize];
        let Some(kept) = slot else { return };
        kept.hosts = kept.hosts.saturating_add_signed(change);
        if kept.hosts == 0 {
            self.numbers.remove(&kept.value);
            *slot = None;
            self.unused.push(number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bits::ones;

    fn rows(bits: &Bits) -> Vec<u32> {
        let words = bits.words().iter().enumerate();
        words.flat_map(|(word, &bits)| ones(word, bits)).map(|host| host.0).collect()
    }

    #[test]
    fn a_value_that_no_host_has_any_more_is_forgotten() {
        let mut column: Distinct<String> = Distinct::default();
        column.put(HostIx(70), Some("a"));
        column.put(HostIx(2), Some("b"));
        column.put(HostIx(70), Some("b"));
        assert_eq!(rows(&column.select(|value| value == "b")), [2, 70]);
        assert_eq!(rows(&column.select(|value| value == "a")), [0u32; 0]);
        assert_eq!((column.numbers.len(), column.values.len()), (1, 3));
        column.put(HostIx(2), Some("c"));
        assert_eq!(column.values.len(), 3, "the number of the value that went is used again");
        column.put(HostIx(2), None::<&str>);
        column.put(HostIx(70), None::<&str>);
        assert!(column.is_empty());
        assert_eq!(column.map(7, |_| 9).len(), 128);
    }
}
