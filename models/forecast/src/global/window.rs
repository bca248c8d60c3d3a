//! What global models see of a series: its last samples, in units of their own.

/// Which samples before now a model looks at. Lag 0 is the last sample.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    pub lags: Vec<usize>,
    /// Samples that have to be known.
    pub span: usize,
}

/// Where a window lies and how large it is: `(value - centre) / unit` is what models see.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Units {
    pub centre: f64,
    pub unit: f64,
}

/// A longer window would have more coefficients than most fleets have lessons.
const MOST_LAGS: usize = 256;

impl Layout {
    /// The longest season that fits and one more of the shortest, so that every sample of the
    /// horizon has its counterparts a day and a week before; without seasons, 48 samples.
    pub fn new(seasons: &[usize], horizon: usize) -> Self {
        let usable = || seasons.iter().copied().filter(|&m| m > 1);
        let Some(shortest) = usable().min() else { return Self::dense(48.max(2 * horizon)) };
        let longest = usable().max().unwrap_or(shortest);
        if longest + shortest <= MOST_LAGS {
            return Self::dense(longest + shortest);
        }
        // Too long to look at everything: the last samples, and what was around each season.
        let mut lags: Vec<usize> = (0..(2 * horizon).clamp(24, 96)).collect();
        for season in usable() {
            let around = season.saturating_sub(horizon + 6)..season + 6;
            lags.extend(around.filter(|lag| lag % (1 + horizon / 24) == 0));
        }
        lags.sort_unstable();
        lags.dedup();
        Self { span: lags.last().map_or(1, |lag| lag + 1), lags }
    }

    fn dense(span: usize) -> Self {
        Self { lags: (0..span).collect(), span }
    }

    /// What a model sees at the end of `known`, which holds at least `span` samples.
    pub fn look(&self, known: &[f64], units: Units, out: &mut Vec<f64>) {
        let last = known.len() - 1;
        out.extend(self.lags.iter().map(|lag| units.inside(known[last - lag])));
    }

    pub fn units(&self, known: &[f64]) -> Units {
        Units::of(&known[known.len() - self.span..])
    }
}

impl Units {
    pub fn of(window: &[f64]) -> Self {
        let n = window.len().max(1) as f64;
        let centre = window.iter().sum::<f64>() / n;
        let unit = (window.iter().map(|v| (v - centre).powi(2)).sum::<f64>() / n).sqrt();
        // A flat window has no unit of its own; anything will do that is not 0.
        Self { centre, unit: if unit > 1e-9 * centre.abs().max(1e-9) { unit } else { 1.0 } }
    }

    pub fn inside(&self, value: f64) -> f64 {
        (value - self.centre) / self.unit
    }

    pub fn outside(&self, value: f64) -> f64 {
        self.centre + value * self.unit
    }
}

/// The last `span` samples, with the first one repeated where fewer are known.
pub fn tail(history: &[f64], span: usize) -> Vec<f64> {
    let known = history.len().min(span);
    let first = history[history.len() - known..].first().copied().unwrap_or(0.0);
    let mut values = vec![first; span - known];
    values.extend_from_slice(&history[history.len() - known..]);
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_reach_a_season_back() {
        assert_eq!(Layout::new(&[24, 168], 48).lags.len(), 192);
        assert_eq!(Layout::new(&[], 12).span, 48);
        let long = Layout::new(&[288, 2016], 12);
        assert!(long.lags.len() <= MOST_LAGS && long.span > 2016, "{}", long.span);
        assert!(long.lags.contains(&287) && long.lags.contains(&(2016 - 12)));
    }

    #[test]
    fn units_go_in_and_out() {
        let units = Units::of(&[1.0, 3.0]);
        assert_eq!((units.inside(4.0), units.outside(2.0)), (2.0, 4.0));
        assert_eq!(Units::of(&[5.0, 5.0]).inside(6.0), 1.0);
        let mut seen = Vec::new();
        Layout { lags: vec![0, 2], span: 3 }.look(&[9.0, 1.0, 2.0, 3.0], units, &mut seen);
        assert_eq!(seen, [1.0, -1.0]);
    }

    #[test]
    fn short_histories_are_repeated_to_the_left() {
        assert_eq!(tail(&[1.0, 2.0], 4), [1.0, 1.0, 1.0, 2.0]);
        assert_eq!(tail(&[1.0, 2.0, 3.0], 2), [2.0, 3.0]);
        assert_eq!(tail(&[], 2), [0.0, 0.0]);
    }
}
