//! The exact number of bundles, where the combinations that matter can be listed.
//!
//! After each host, all combinations of counts are kept of which no other has as many of every
//! shape. The best of the last host's is the answer. Their number can explode, so it is limited,
//! and then there is no exact answer.

use super::{Fleet, Host};
use rustc_hash::FxHashMap;

/// Combinations that are kept, or that one host can be filled with.
const MOST_KEPT: usize = 4_000;
/// Combinations that are made over all hosts.
const MOST_MADE: usize = 4_000_000;

type Counts = Vec<u64>;

/// The most bundles that fit, if it can be told.
pub(super) fn exact(fleet: &Fleet) -> Option<u64> {
    if fleet.per_bundle.len() == 1 {
        let (sure, most) = (fleet.alone(0), fleet.alone_at_most(0));
        let bundles = |count: u64| count / fleet.per_bundle[0].max(1);
        return (bundles(sure) == bundles(most)).then(|| bundles(sure));
    }
    if fleet.parts {
        // Which parts are left depends on the order in which VMs came.
        return None;
    }
    // More of a shape than the scarcest allows is of no use, and cutting it off keeps lists short.
    let most = (0..fleet.per_bundle.len()).map(|shape| fleet.alone(shape)).collect::<Counts>();
    let bundles = fleet.bundles(&most);
    let enough: Counts = fleet.per_bundle.iter().map(|per| per * bundles).collect();
    let mut kept: Vec<Counts> = vec![vec![0; fleet.per_bundle.len()]];
    let mut made = 0;
    let mut known: FxHashMap<Alike<'_>, Vec<Counts>> = FxHashMap::default();
    for host in &fleet.hosts {
        let alike = Alike { free: &host.free, takes: &host.takes };
        if !known.contains_key(&alike) {
            known.insert(alike.clone(), fillings(host)?);
        }
        let fillings = &known[&alike];
        made += kept.len() * fillings.len();
        if made > MOST_MADE {
            return None;
        }
        let sum = |one: &Counts, other: &Counts| -> Counts {
            let sums = one.iter().zip(other).map(|(one, other)| one + other);
            sums.zip(&enough).map(|(sum, enough)| sum.min(*enough)).collect()
        };
        let sums = kept.iter().flat_map(|one| fillings.iter().map(move |other| sum(one, other)));
        kept = best(sums.collect());
        if kept.len() > MOST_KEPT {
            return None;
        }
    }
    kept.iter().map(|counts| fleet.bundles(counts)).max()
}

/// Hosts that are filled in the same ways.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Alike<'a> {
    free: &'a [u64],
    takes: &'a [Option<Vec<u64>>],
}

/// The ways to fill a host to which nothing can be added.
fn fillings(host: &Host) -> Option<Vec<Counts>> {
    let mut all = Vec::new();
    extend(host, &mut Vec::new(), &host.free.clone(), &mut all)?;
    Some(best(all))
}

/// Lists every count of the shapes from here on; the last shape takes all that is left.
fn extend(host: &Host, counts: &mut Counts, free: &[u64], all: &mut Vec<Counts>) -> Option<()> {
    let shape = counts.len();
    let most = host.most(shape, free);
    if shape + 1 == host.takes.len() {
        if all.len() == MOST_KEPT {
            return None;
        }
        all.push([counts.as_slice(), &[most]].concat());
        return Some(());
    }
    for count in 0..=most {
        let mut left = free.to_vec();
        host.take(shape, count, &mut left);
        counts.push(count);
        extend(host, counts, &left, all)?;
        counts.pop();
    }
    Some(())
}

/// Those of which no other has as many of every shape.
fn best(mut all: Vec<Counts>) -> Vec<Counts> {
    // Largest first, so that whatever covers a combination comes before it.
    all.sort_unstable_by(|a, b| b.cmp(a));
    all.dedup();
    let mut kept: Vec<Counts> = Vec::new();
    for counts in all {
        let covers = |other: &Counts| other.iter().zip(&counts).all(|(other, own)| other >= own);
        // One more than can be kept is enough to know that they are too many.
        if kept.len() <= MOST_KEPT && !kept.iter().any(covers) {
            kept.push(counts);
        }
    }
    kept
}
