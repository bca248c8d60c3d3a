//! What is kept of a series between samples: as much as a look needs, in a fixed number of bytes.

use super::lessons::FOLLOW;
use super::sight::{MOST_RECENT, Sight};

/// The last samples, the mean step, and the usual values of a season.
#[derive(Clone, Debug)]
pub struct SeriesState {
    ring: Box<[f32]>,
    /// The usual value at each place of the season; empty without one.
    usual: Box<[f32]>,
    seen: u32,
    steps: f32,
}

impl SeriesState {
    pub fn new(season: Option<usize>) -> Self {
        Self {
            ring: vec![0.0; MOST_RECENT].into(),
            usual: vec![0.0; season.unwrap_or(0)].into(),
            seen: 0,
            steps: 0.0,
        }
    }

    /// Takes one more sample. What is not a number is taken for the sample before: a gap must not
    /// end a series.
    pub fn push(&mut self, value: f32) {
        let last = self.last();
        let value = if value.is_finite() { value } else { last.unwrap_or(0.0) };
        // Squares of larger ones would not be numbers any more.
        let value = value.clamp(-1e18, 1e18);
        let count = self.seen as usize;
        if let Some(last) = last {
            // The mean of all steps; after 4,000 of them, of those lately.
            let weight = 1.0 / count.min(4_000) as f32;
            self.steps += weight * ((value - last).abs() - self.steps);
        }
        let place = count % MOST_RECENT;
        self.ring[place] = value;
        let season = self.usual.len();
        if season > 0 {
            let usual = &mut self.usual[count % season];
            *usual = if count < season { value } else { *usual + FOLLOW * (value - *usual) };
        }
        // The places in ring and season depend on the count, so it goes back by whole turns.
        self.seen = match self.seen.checked_add(1) {
            Some(seen) => seen,
            None => {
                ((MOST_RECENT * season.max(1)) + (count + 1) % (MOST_RECENT * season.max(1))) as u32
            }
        };
    }

    pub fn last(&self) -> Option<f32> {
        let count = self.seen as usize;
        (count > 0).then(|| self.ring[(count - 1) % MOST_RECENT])
    }

    pub fn seen(&self) -> usize {
        self.seen as usize
    }

    /// The series as a network sees it; `recent` is room for the samples in order.
    pub fn sight<'a>(&'a self, recent: &'a mut Vec<f32>) -> Sight<'a> {
        let count = self.seen as usize;
        recent.clear();
        if count < MOST_RECENT {
            recent.extend_from_slice(&self.ring[..count]);
        } else {
            let oldest = count % MOST_RECENT;
            recent.extend_from_slice(&self.ring[oldest..]);
            recent.extend_from_slice(&self.ring[..oldest]);
        }
        let season = self.usual.len();
        let known = season > 0 && count >= season + 12;
        let usual = known.then(|| (&*self.usual, count % season));
        Sight { recent, step: self.steps, usual }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::global::lessons::Course;
    use crate::made;

    #[test]
    fn sample_by_sample_looks_like_the_whole_course() {
        let values = made::daily(1, 700, 48);
        let course = Course::new(&values, Some(48));
        let mut state = SeriesState::new(Some(48));
        let mut room = Vec::new();
        for (place, value) in values.iter().enumerate() {
            state.push(*value as f32);
            let (a, b) = (course.sight(place + 1), state.sight(&mut room));
            let (mut seen, mut kept) = (Vec::new(), Vec::new());
            a.look(a.frame(), 12, &mut seen);
            b.look(b.frame(), 12, &mut kept);
            for (a, b) in seen.iter().zip(&kept) {
                assert!((a - b).abs() < 2e-3, "sample {place}: {a} {b}");
            }
        }
    }

    #[test]
    fn what_is_not_a_number_is_the_sample_before() {
        let mut state = SeriesState::new(None);
        for value in [f32::NAN, 3.0, f32::INFINITY, f32::NEG_INFINITY] {
            state.push(value);
        }
        let mut room = Vec::new();
        assert_eq!(state.sight(&mut room).recent, [0.0, 3.0, 3.0, 3.0]);
        assert_eq!((state.last(), state.seen()), (Some(3.0), 4));
    }
}
