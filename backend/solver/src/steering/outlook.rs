//! What a VM will use, from what it used: soon, and for a while.
//!
//! Exponentially weighted: a level that follows quickly, one that follows slowly, and how far off
//! each was. The first samples weigh as in a plain mean. A VM that was never seen is believed to use
//! a share of what it asked for.

use super::Steering;

/// Means and variances, which add up over the VMs of a host: of the next step, and of those after.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Demand {
    pub(super) soon: [f64; 2],
    pub(super) later: [f64; 2],
}

impl Demand {
    /// This and `times` the other.
    #[inline]
    pub(super) fn plus(&self, other: &Self, times: f64) -> Self {
        let sum =
            |one: [f64; 2], other: [f64; 2]| [one[0] + times * other[0], one[1] + times * other[1]];
        Self { soon: sum(self.soon, other.soon), later: sum(self.later, other.later) }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Outlook {
    seen: u32,
    quick: f64,
    slow: f64,
    quick_error: f64,
    slow_error: f64,
}

/// Samples count fully this often at least: a mean of few is not trusted at once.
const FIRST: f64 = 1.0;

impl Outlook {
    pub(super) fn unseen(requested: u64, settings: &Steering) -> Self {
        let (level, spread) = (settings.unseen, settings.unseen_spread);
        let (level, spread) = (requested as f64 * level, requested as f64 * spread);
        let error = spread * spread;
        Self { seen: 0, quick: level, slow: level, quick_error: error, slow_error: error }
    }

    fn soon(&self, settings: &Steering) -> f64 {
        self.slow + settings.follow * (self.quick - self.slow)
    }

    pub(super) fn observe(&mut self, used: u64, settings: &Steering) {
        let used = used as f64;
        self.seen = self.seen.saturating_add(1);
        let at_first = 1.0 / (f64::from(self.seen) + FIRST);
        let towards =
            |old: &mut f64, new: f64, rate: f64| *old += rate.max(at_first) * (new - *old);
        let off = used - self.soon(settings);
        towards(&mut self.quick_error, off * off, settings.doubt);
        let off = used - self.slow;
        towards(&mut self.slow_error, off * off, settings.doubt);
        towards(&mut self.quick, used, settings.quick);
        towards(&mut self.slow, used, settings.slow);
    }

    pub(super) fn demand(&self, settings: &Steering) -> Demand {
        let later = self.slow + settings.follow * settings.lasting * (self.quick - self.slow);
        Demand { soon: [self.soon(settings), self.quick_error], later: [later, self.slow_error] }
    }
}
