//! Notices that a series is not what its model learned: the sign to learn anew.
//!
//! Page and Hinkley's test on the size of errors, in units of what was expected: it adds up what
//! goes beyond the usual and alarms when the sum climbs far above its lowest point.

/// Watches the errors of one model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChangeDetector {
    usual: f64,
    seen: u32,
    sum: f64,
    lowest: f64,
    threshold: f64,
}

/// Errors after which the usual size is believed.
const WARM_UP: u32 = 30;
/// What is added up is capped: a single spike is not a change.
const LARGEST: f64 = 6.0;
/// Errors may be larger than usual by this share before that counts.
const ALLOWED: f64 = 0.5;

impl ChangeDetector {
    /// `threshold` is how much surprise is needed, in mean errors: 30 alarms after about ten
    /// errors of four times the usual size, and once in very many samples without a change.
    pub fn new(threshold: f64) -> Self {
        Self { usual: 0.0, seen: 0, sum: 0.0, lowest: 0.0, threshold }
    }

    /// Takes an error; true if the series has changed. After an alarm it starts again.
    pub fn observe(&mut self, error: f64) -> bool {
        let size = error.abs();
        if !size.is_finite() {
            return false;
        }
        self.seen = self.seen.saturating_add(1);
        if self.seen <= WARM_UP {
            self.usual += (size - self.usual) / f64::from(self.seen);
            return false;
        }
        let ratio = if self.usual > 0.0 {
            (size / self.usual).min(LARGEST)
        } else if size > 0.0 {
            LARGEST
        } else {
            0.0
        };
        self.sum += ratio - 1.0 - ALLOWED;
        self.lowest = self.lowest.min(self.sum);
        // Slowly, so that a lasting change is not learned as usual before it is noticed.
        self.usual += 0.002 * (size.min(LARGEST * self.usual) - self.usual);
        if self.sum - self.lowest > self.threshold {
            *self = Self::new(self.threshold);
            return true;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made;

    #[test]
    fn larger_errors_are_noticed_soon_and_usual_ones_never() {
        let mut detector = ChangeDetector::new(30.0);
        assert!((0..20_000).all(|t| !detector.observe(made::noise(1, t))));
        let noticed = (0..200).position(|t| detector.observe(4.0 * made::noise(2, t)));
        assert!(noticed.is_some_and(|after| after < 60), "{noticed:?}");
    }

    #[test]
    fn one_spike_is_not_a_change() {
        let mut detector = ChangeDetector::new(30.0);
        for t in 0..2_000 {
            let spike = if t % 100 == 99 { 1e9 } else { 0.0 };
            assert!(!detector.observe(made::noise(3, t) + spike), "sample {t}");
        }
        assert!(!detector.observe(f64::NAN) && !detector.observe(f64::INFINITY));
    }

    #[test]
    fn the_threshold_sets_how_soon() {
        let after = |threshold: f64| {
            let mut detector = ChangeDetector::new(threshold);
            (0..100).for_each(|t| assert!(!detector.observe(made::noise(4, t))));
            (0..1_000).position(|t| detector.observe(5.0 * made::noise(5, t))).expect("noticed")
        };
        assert!(after(10.0) < after(100.0));
    }
}
