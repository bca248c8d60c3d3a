//! Makes a history without gaps from samples as they come, and says what was done to them.
//!
//! Models are never shown anything that is not a number. What was found is kept as counts, so
//! that whoever shows a forecast can show beside it what it rests on.

use std::fmt;

/// Values beyond this are taken for broken: their squares would not be numbers any more.
const LARGEST: f64 = 1e120;
/// A spike is this many times farther from its neighbours than samples usually are.
const SPIKE: f64 = 25.0;
/// Spikes are an exception: above one sample in this many they are what the series is like.
const SPIKES_ARE_RARE: usize = 200;

/// A history that models can learn from.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Prepared {
    /// Oldest first, all of them numbers.
    pub values: Vec<f64>,
    pub findings: Findings,
}

/// What was wrong with the samples, by count of samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// Missing at the start: left out.
    pub late_start: usize,
    /// Missing in between or at the end: filled from both sides, or from a season before.
    pub gaps: usize,
    /// Infinite or absurdly large: treated as missing.
    pub not_finite: usize,
    /// Single samples far from everything around them: replaced by the mean of their neighbours.
    pub spikes: usize,
    /// A counter that started again: what it had counted before was carried on.
    pub resets: usize,
    pub constant: bool,
    /// Fewer samples than two seasons, or than eight.
    pub short: bool,
}

/// Reads samples, `NaN` for those that are missing.
pub fn prepare(samples: &[f64], seasons: &[usize]) -> Prepared {
    let mut findings = Findings::default();
    let mut known: Vec<Option<f64>> = Vec::with_capacity(samples.len());
    for sample in samples {
        let usable = sample.is_finite() && sample.abs() <= LARGEST;
        if !usable && !sample.is_nan() {
            findings.not_finite += 1;
        }
        if usable || !known.is_empty() {
            known.push(usable.then_some(*sample));
        } else {
            findings.late_start += 1;
        }
    }
    let season = seasons.iter().copied().filter(|&m| m > 1).min();
    let missing = known.iter().filter(|value| value.is_none()).count();
    findings.gaps = missing;
    let mut values =
        if missing > 0 { fill(&known, season) } else { known.iter().flatten().copied().collect() };
    findings.resets = carry_on(&mut values);
    findings.spikes = without_spikes(&mut values);
    findings.constant = values.windows(2).all(|pair| pair[0] == pair[1]);
    findings.short = values.len() < season.map_or(8, |m| 8.max(2 * m));
    Prepared { values, findings }
}

/// Fills short gaps by a line, long ones from the season before where there is one.
fn fill(known: &[Option<f64>], season: Option<usize>) -> Vec<f64> {
    let mut values: Vec<f64> = Vec::with_capacity(known.len());
    let mut place = 0;
    while place < known.len() {
        if let Some(value) = known[place] {
            values.push(value);
            place += 1;
            continue;
        }
        let end = (place..known.len()).find(|&at| known[at].is_some()).unwrap_or(known.len());
        let before = values.last().copied().unwrap_or(0.0);
        let after = known.get(end).copied().flatten();
        let width = end - place;
        let seasonal = season.filter(|&m| place >= m && (width > 3 || after.is_none()));
        for step in 0..width {
            let filled = match (seasonal, after) {
                (Some(season), _) => values[place + step - season],
                (None, Some(after)) => {
                    before + (after - before) * (step + 1) as f64 / (width + 1) as f64
                }
                (None, None) => before,
            };
            values.push(filled);
        }
        place = end;
    }
    values
}

/// Takes the jumps out of a counter that starts again, keeping its last value. Returns how many
/// there were; a series that falls in any other way is not a counter and stays as it is.
fn carry_on(values: &mut [f64]) -> usize {
    let n = values.len();
    if n < 20 || values[0] < 0.0 {
        return 0;
    }
    let falls: Vec<usize> = (1..n).filter(|&at| values[at] < values[at - 1]).collect();
    let climbs = (1..n).filter(|&at| values[at] > values[at - 1]).count();
    let starts_again = |&at: &usize| values[at] >= 0.0 && values[at] <= 0.1 * values[at - 1];
    let rare = falls.len() * 50 <= n && climbs * 2 >= n;
    if falls.is_empty() || !rare || !falls.iter().all(starts_again) {
        return 0;
    }
    // From the newest back, so that the last values are those that the counter shows.
    let mut offset = 0.0;
    let mut next = falls.len();
    for at in (0..n).rev() {
        values[at] -= offset;
        if next > 0 && falls[next - 1] == at {
            // What the counter had before it started again is below what it shows now.
            offset += values[at - 1];
            next -= 1;
        }
    }
    falls.len()
}

fn without_spikes(values: &mut [f64]) -> usize {
    let n = values.len();
    if n < 20 {
        return 0;
    }
    let off = |at: usize| values[at] - (values[at - 1] + values[at + 1]) / 2.0;
    let mut usual: Vec<f64> = (1..n - 1).map(|at| off(at).abs()).collect();
    let place = usual.len() * 9 / 10;
    let (_, ninth, _) = usual.select_nth_unstable_by(place, f64::total_cmp);
    let limit = SPIKE * *ninth;
    if limit <= 0.0 {
        return 0;
    }
    let spikes: Vec<usize> = (1..n - 1)
        .filter(|&at| {
            let neighbours = (values[at - 1] - values[at + 1]).abs();
            off(at).abs() > limit && neighbours < 0.1 * off(at).abs()
        })
        .collect();
    if spikes.len() * SPIKES_ARE_RARE > n {
        return 0;
    }
    for &at in &spikes {
        values[at] = (values[at - 1] + values[at + 1]) / 2.0;
    }
    spikes.len()
}

impl Findings {
    pub fn is_clean(&self) -> bool {
        *self == Self::default()
    }
}

impl fmt::Display for Findings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counted = [
            (self.late_start, "missing at the start and left out"),
            (self.gaps, "missing and filled"),
            (self.not_finite, "not finite and taken for missing"),
            (self.spikes, "single spikes and smoothed over"),
            (self.resets, "resets of a counter and carried on"),
        ];
        let mut said: Vec<String> = counted
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!("{count} {what}"))
            .collect();
        if self.constant {
            said.push("all samples are the same".into());
        }
        if self.short {
            said.push("too short for what was asked, a simpler model answers".into());
        }
        f.write_str(if said.is_empty() { "nothing" } else { "" })?;
        f.write_str(&said.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made;

    const NONE: f64 = f64::NAN;

    #[test]
    fn gaps_are_filled_and_counted() {
        let found = prepare(&[NONE, 1.0, NONE, 3.0, f64::INFINITY, 5.0, 1e200, NONE], &[]);
        assert_eq!(found.values, [1.0, 2.0, 3.0, 4.0, 5.0, 5.0, 5.0]);
        let Findings { late_start, gaps, not_finite, short, .. } = found.findings;
        assert_eq!((late_start, gaps, not_finite, short), (1, 4, 2, true));
        assert!(found.findings.to_string().contains("4 missing and filled"));
    }

    #[test]
    fn long_gaps_are_filled_from_the_season_before() {
        let mut samples = made::daily(1, 120, 24);
        samples[60..90].fill(NONE);
        let found = prepare(&samples, &[24]);
        assert_eq!(found.values[60..84], found.values[36..60]);
        assert_eq!(found.values[85], found.values[61]);
        assert_eq!(found.findings.gaps, 30);
    }

    #[test]
    fn a_counter_goes_on_where_it_started_again() {
        let samples: Vec<f64> = (0..100).map(|t| f64::from(5 * (t % 60))).collect();
        let found = prepare(&samples, &[]);
        assert_eq!(found.findings.resets, 1);
        assert!(found.values.windows(2).all(|pair| pair[1] >= pair[0]), "{:?}", found.values);
        assert_eq!(found.values[99], samples[99]);
        let saw: Vec<f64> = (0..100).map(|t| f64::from(t % 10)).collect();
        assert_eq!(prepare(&saw, &[]).findings.resets, 0);
        assert_eq!(prepare(&made::walk(1, 100), &[]).findings.resets, 0);
    }

    #[test]
    fn a_single_spike_is_smoothed_over_and_a_jump_is_not() {
        let mut samples: Vec<f64> = (0..400).map(|t| 10.0 + made::noise(1, t)).collect();
        samples[50] = 900.0;
        let found = prepare(&samples, &[]);
        assert_eq!(found.findings.spikes, 1);
        assert!(found.values[50] < 20.0);
        samples[50] = 10.0;
        samples[300..].fill(900.0);
        assert_eq!(prepare(&samples, &[]).findings.spikes, 0);
    }

    #[test]
    fn nothing_and_constants_are_named() {
        assert!(prepare(&[], &[]).values.is_empty());
        assert!(prepare(&[NONE, NONE], &[24]).values.is_empty());
        assert!(prepare(&[3.0; 50], &[]).findings.constant);
        assert!(prepare(&made::walk(1, 100), &[24]).findings.is_clean());
        assert_eq!(Findings::default().to_string(), "nothing");
    }
}
