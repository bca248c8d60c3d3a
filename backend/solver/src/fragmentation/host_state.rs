//! What a host has left, in a form in which hosts with equal chances are equal.

use super::shape::{Shape, WHOLE};

/// GPUs that a state can hold; a host with more of them is not scored.
pub const MOST_GPUS: usize = 16;

/// Free amounts of a host. The GPUs are in order of what is left of them, so that it does not
/// matter which of them is which.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HostState {
    pub cpu_millis: u32,
    pub memory_mib: u32,
    holes: [u16; MOST_GPUS],
    gpus: u8,
    pub model: u8,
}

impl HostState {
    /// `free`: thousandths left of each GPU, in any order; `MOST_GPUS` at most.
    pub fn new(cpu_millis: u32, memory_mib: u32, model: u8, free: &[u16]) -> Self {
        let mut holes = [0; MOST_GPUS];
        holes[..free.len()].copy_from_slice(free);
        holes[..free.len()].sort_unstable();
        Self { cpu_millis, memory_mib, holes, gpus: free.len() as u8, model }
    }

    /// Thousandths left of each GPU, rising.
    pub fn holes(&self) -> &[u16] {
        &self.holes[..usize::from(self.gpus)]
    }

    /// GPUs that nobody uses.
    pub fn whole_gpus(&self) -> usize {
        self.holes().iter().rev().take_while(|hole| **hole == WHOLE).count()
    }

    /// Thousandths that are left over all GPUs.
    pub fn idle_millis(&self) -> u32 {
        self.holes().iter().map(|hole| u32::from(*hole)).sum()
    }

    pub fn fits(&self, shape: &Shape) -> bool {
        if self.cpu_millis < shape.cpu_millis || self.memory_mib < shape.memory_mib {
            return false;
        }
        match shape.gpus {
            0 => true,
            _ if !shape.runs_on(self.model) => false,
            1 => self.holes().last().is_some_and(|largest| *largest >= shape.milli),
            gpus => self.whole_gpus() >= usize::from(gpus),
        }
    }

    /// The different ways to take a shape that fits: the place among the holes from which a share
    /// is taken, smallest first. Shapes of no or several GPUs have one way.
    pub fn ways(&self, shape: &Shape) -> impl Iterator<Item = usize> + '_ {
        let (first, last) = match shape.gpus {
            0 => (0, 1),
            1 => (self.holes().partition_point(|hole| *hole < shape.milli), self.holes().len()),
            gpus => {
                (self.holes().len() - usize::from(gpus), self.holes().len() + 1 - usize::from(gpus))
            }
        };
        (first..last).filter(move |at| *at == first || self.holes[*at] != self.holes[*at - 1])
    }

    /// What is left when a shape that fits was taken in one of its `ways`.
    pub fn after(&self, shape: &Shape, way: usize) -> Self {
        let mut after = *self;
        after.cpu_millis -= shape.cpu_millis;
        after.memory_mib -= shape.memory_mib;
        for at in way..way + usize::from(shape.gpus) {
            after.shrink(at, shape.milli);
        }
        after
    }

    /// Takes from one hole and moves it down to its place.
    fn shrink(&mut self, mut at: usize, milli: u16) {
        let left = self.holes[at] - milli;
        while at > 0 && self.holes[at - 1] > left {
            self.holes[at] = self.holes[at - 1];
            at -= 1;
        }
        self.holes[at] = left;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_chances_are_equal_states() {
        assert_eq!(HostState::new(1, 2, 0, &[500, 1000]), HostState::new(1, 2, 0, &[1000, 500]));
    }

    #[test]
    fn a_share_may_come_from_each_hole_of_another_size() {
        let state = HostState::new(8000, 8, 0, &[300, 500, 500, 1000]);
        let share = Shape::of_share(1000, 1, 400);
        let left: Vec<_> =
            state.ways(&share).map(|way| state.after(&share, way).holes().to_vec()).collect();
        assert_eq!(left, [vec![100, 300, 500, 1000], vec![300, 500, 500, 600]]);
    }

    #[test]
    fn several_gpus_are_taken_whole() {
        let state = HostState::new(8000, 8, 0, &[1000, 300, 1000, 1000]);
        let two = Shape::of_whole(1000, 1, 2);
        let left: Vec<_> =
            state.ways(&two).map(|way| state.after(&two, way).holes().to_vec()).collect();
        assert_eq!(left, [vec![0, 0, 300, 1000]]);
        assert!(!state.fits(&Shape::of_whole(1000, 1, 4)));
    }

    #[test]
    fn models_matter_to_those_who_name_them() {
        let state = HostState::new(8000, 8, 2, &[1000]);
        assert!(!state.fits(&Shape::of_share(0, 0, 10).on_models(0b011)));
        assert!(state.fits(&Shape::of_share(0, 0, 10).on_models(0b100)));
        assert!(state.fits(&Shape::without_gpus(8000, 8).on_models(0b011)));
    }
}
