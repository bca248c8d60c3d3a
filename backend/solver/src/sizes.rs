//! Sizes of hosts, to tell what a demand can add to the utilisation of each.
//!
//! That depends on the host's size and, for its highest utilisation, on the dimension that is
//! tightest; up to rounding, on nothing else. Fleets have few sizes, so a bound for each size and
//! tightest dimension, worked out once a demand, is next to exact for every host.

use crate::room::Ask;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// Sizes kept apart. Hosts of further sizes share one that bounds them all.
const LIMIT: usize = 255;

/// The shared one.
const OTHERS: u8 = 0;

/// What bounds depend on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Size {
    /// By dimension; 0 where the host has none.
    pub(crate) allocatable: SmallVec<[u32; 8]>,
    pub(crate) speed_permille: u32,
}

/// Which host has which size.
#[derive(Debug)]
pub(crate) struct Sizes {
    /// By row of the host; empty rows are `OTHERS`.
    class: Vec<u8>,
    /// By class. The first is as small as the smallest of its hosts in every dimension.
    known: Vec<Size>,
    /// Hosts of each class.
    hosts: Vec<u32>,
    by_size: FxHashMap<Size, u8>,
    epoch: u64,
}

/// What taking a demand adds to utilisations, in permille.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Added {
    pub(crate) most_to_mean: i64,
    pub(crate) least_to_mean: i64,
    pub(crate) least_to_highest: i64,
}

impl Default for Sizes {
    fn default() -> Self {
        let others = Size { allocatable: SmallVec::new(), speed_permille: u32::MAX };
        Self {
            class: Vec::new(),
            known: vec![others],
            hosts: vec![0],
            by_size: FxHashMap::default(),
            epoch: 1,
        }
    }
}

impl Sizes {
    pub(crate) fn reach(&mut self, rows: usize) {
        self.class.resize(rows, OTHERS);
    }

    /// Changes with every size that is new; whoever made something of the sizes looks again.
    pub(crate) fn epoch(&self) -> u64 {
        self.epoch
    }

    pub(crate) fn count(&self) -> usize {
        self.known.len()
    }

    pub(crate) fn class(&self, row: usize) -> usize {
        self.class[row].into()
    }

    pub(crate) fn put(&mut self, row: usize, size: Size) {
        self.remove(row);
        let class = match self.by_size.get(&size) {
            Some(&class) => class,
            None => self.learn(size),
        };
        self.class[row] = class;
        self.hosts[usize::from(class)] += u32::from(class != OTHERS);
    }

    pub(crate) fn remove(&mut self, row: usize) {
        let class = std::mem::replace(&mut self.class[row], OTHERS);
        if class == OTHERS {
            return;
        }
        let hosts = &mut self.hosts[usize::from(class)];
        *hosts -= 1;
        if *hosts == 0 {
            self.by_size.remove(&self.known[usize::from(class)]);
        }
    }

    /// A class for a size that is new: a free one, or the shared one.
    fn learn(&mut self, size: Size) -> u8 {
        self.epoch += 1;
        let unused = (1..self.known.len()).find(|&class| self.hosts[class] == 0);
        let class = match unused {
            Some(class) => class,
            None if self.known.len() <= LIMIT => {
                self.known.push(size.clone());
                self.hosts.push(0);
                self.known.len() - 1
            }
            None => {
                self.known[usize::from(OTHERS)].shrink_to(&size);
                return OTHERS;
            }
        };
        self.known[class] = size.clone();
        self.by_size.insert(size, class as u8);
        class as u8
    }

    /// What these asks add to a host of the class whose tightest dimension this is. Holds where
    /// they fit.
    pub(crate) fn added(&self, class: usize, tightest: usize, asks: &[Ask]) -> Added {
        let size = &self.known[class];
        let share = |ask: &Ask| size.permille(ask);
        let dimensions = size.allocatable.iter().filter(|&&room| room > 0).count().max(1) as i64;
        let sum: i64 = asks.iter().map(share).sum();
        // Utilisations before and after are rounded down, so that each can rise by one more than
        // its share, and the mean as well.
        let most_to_mean = 1 + (sum + asks.len() as i64) / dimensions;
        if class == usize::from(OTHERS) {
            return Added { most_to_mean, least_to_mean: 0, least_to_highest: 0 };
        }
        let raised = asks.iter().find(|ask| ask.dim.row() == tightest);
        let least_to_highest = raised.map_or(0, share);
        Added { most_to_mean, least_to_mean: sum / dimensions, least_to_highest }
    }
}

impl Size {
    /// The share of an ask, rounded down. Nothing of what the host does not have fits, so what is
    /// said of it does not matter.
    fn permille(&self, ask: &Ask) -> i64 {
        let room = self.allocatable.get(ask.dim.row()).copied().unwrap_or(0);
        let taken = ask.taken_at(self.speed_permille).min(room.into());
        if room == 0 { 1000 } else { (taken * 1000 / u64::from(room)) as i64 }
    }

    /// Takes on what the other has less of, so that no demand adds more to it than to this one.
    fn shrink_to(&mut self, other: &Size) {
        if self.allocatable.is_empty() {
            self.clone_from(other);
            return;
        }
        let dimensions = self.allocatable.len().max(other.allocatable.len());
        self.allocatable.resize(dimensions, 0);
        for (dim, room) in self.allocatable.iter_mut().enumerate() {
            *room = other.allocatable.get(dim).copied().unwrap_or(0).min(*room);
        }
        self.speed_permille = self.speed_permille.min(other.speed_permille);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::score::FitBy;
    use cluster::{Amounts, Dim, Name, Vm, VmKey};

    fn size(room: u32) -> Size {
        Size { allocatable: [room, 2 * room, 3].into_iter().collect(), speed_permille: 1000 }
    }

    fn asks(amounts: [u64; 2]) -> Vec<Ask> {
        let key = VmKey::in_default_tenant(Name::new("vm").expect("a valid name"));
        let vm = Vm::new(key, Amounts::from_slice(&amounts));
        (0..).zip(amounts).map(|(dim, amount)| Ask::new(Dim(dim), amount, &vm)).collect()
    }

    #[test]
    fn a_host_is_filled_no_more_and_no_less_than_its_size_says() {
        let mut sizes = Sizes::default();
        sizes.reach(1);
        for (room, amounts) in [(100, [7, 13]), (999, [1, 1]), (4096, [0, 4000]), (3, [1, 2])] {
            sizes.put(0, size(room));
            let (class, asks) = (sizes.class(0), asks(amounts));
            let (first, second) = (u64::from(room), 2 * u64::from(room));
            for taken in 0..=first - amounts[0] {
                let beside = taken % (second - amounts[1] + 1);
                let before = [taken * 1000 / first, beside * 1000 / second, 0];
                let after =
                    [(taken + amounts[0]) * 1000 / first, (beside + amounts[1]) * 1000 / second, 0];
                let highest = |used: [u64; 3]| used.into_iter().max().unwrap_or(0) as i64;
                let mean = |used: [u64; 3]| (used.iter().sum::<u64>() / 3) as i64;
                let tightest = usize::from(before[1] > before[0]);
                let added = sizes.added(class, tightest, &asks);
                let to_mean = mean(after) - mean(before);
                assert!((added.least_to_mean..=added.most_to_mean).contains(&to_mean));
                assert!(highest(after) - highest(before) >= added.least_to_highest);
                for fit_by in [FitBy::Evenness, FitBy::Mean, FitBy::Spare] {
                    let rise = fit_by.value(highest(after), mean(after))
                        - fit_by.value(highest(before), mean(before));
                    assert!(rise <= fit_by.most(added), "{fit_by:?} of {room} at {taken}");
                }
            }
        }
    }

    #[test]
    fn sizes_beyond_the_limit_share_the_smallest_of_them() {
        let mut sizes = Sizes::default();
        sizes.reach(400);
        (0..400).for_each(|row| sizes.put(row, size(1000 - row as u32)));
        assert_eq!((sizes.count(), sizes.class(254), sizes.class(255)), (256, 255, 0));
        let asks = asks([60, 60]);
        let (shared, own) = (sizes.added(0, 0, &asks), sizes.added(1, 0, &asks));
        assert!(shared.most_to_mean > own.most_to_mean, "the last one has 601");
        assert_eq!((shared.least_to_mean, shared.least_to_highest), (0, 0));

        let epoch = sizes.epoch();
        sizes.put(0, size(5));
        assert_eq!(sizes.class(0), 1, "the only host of its size is gone, so its class is free");
        assert!(sizes.epoch() > epoch);
    }
}
