//! Lives counted by span of age: who came under observation, who ended, who was last seen alive.

use crate::curve::{EDGES, SPANS, span_of};
use crate::seen::Life;

/// A life as spans of age.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spans {
    first: u8,
    last: u8,
    ended: bool,
}

impl Spans {
    pub fn of(life: &Life) -> Self {
        // Who was last seen before it was first seen was not seen at all.
        let last = span_of(life.last_seen_s.max(life.first_seen_s));
        Self { first: span_of(life.first_seen_s) as u8, last: last as u8, ended: life.ended }
    }
}

#[derive(Clone, Debug)]
pub struct Counts {
    came: [f32; SPANS],
    ended: [f32; SPANS],
    left: [f32; SPANS],
}

impl Counts {
    pub const NONE: Counts = Counts { came: [0.0; SPANS], ended: [0.0; SPANS], left: [0.0; SPANS] };

    pub fn of<'a>(lives: impl IntoIterator<Item = &'a Spans>) -> Self {
        let mut counts = Self::NONE;
        lives.into_iter().for_each(|life| counts.add(life));
        counts
    }

    pub fn add(&mut self, life: &Spans) {
        self.came[life.first as usize] += 1.0;
        let out = if life.ended { &mut self.ended } else { &mut self.left };
        out[life.last as usize] += 1.0;
    }

    pub fn add_all(&mut self, other: &Counts) {
        let add = |to: &mut [f32; SPANS], from: &[f32; SPANS]| {
            to.iter_mut().zip(from).for_each(|(to, from)| *to += from);
        };
        add(&mut self.came, &other.came);
        add(&mut self.ended, &other.ended);
        add(&mut self.left, &other.left);
    }

    pub fn without(&self, other: &Counts) -> Counts {
        let less = |of: &[f32; SPANS], other: &[f32; SPANS]| {
            let mut rest = *of;
            rest.iter_mut().zip(other).for_each(|(of, other)| *of -= other);
            rest
        };
        Counts {
            came: less(&self.came, &other.came),
            ended: less(&self.ended, &other.ended),
            left: less(&self.left, &other.left),
        }
    }

    pub fn lives(&self) -> f32 {
        self.came.iter().sum()
    }

    /// Who ended in each span but the last, and who could have: those that leave or come during a
    /// span count as half of it.
    pub fn by_span(&self) -> impl Iterator<Item = (f64, f64)> + '_ {
        let mut present = 0.0f64;
        (0..EDGES).map(move |span| {
            let [came, ended, left] =
                [&self.came, &self.ended, &self.left].map(|counts| f64::from(counts[span]));
            let whole = present - left;
            present += came - ended - left;
            // At birth everybody is there for the whole of the first span.
            let came = if span == 0 { came } else { came / 2.0 };
            (ended, (whole + left / 2.0 + came).max(ended))
        })
    }

    /// The likelihood of what happened, with the hazards that make it largest.
    pub fn likelihood(&self) -> f64 {
        let entropy =
            |part: f64, whole: f64| if part > 0.0 { part * (part / whole).ln() } else { 0.0 };
        self.by_span().map(|(ended, all)| entropy(ended, all) + entropy(all - ended, all)).sum()
    }

    /// Spans in which somebody ended.
    pub fn eventful(&self) -> usize {
        self.ended[..EDGES].iter().filter(|ended| **ended > 0.0).count()
    }

    /// The share that ends in each span, drawn to `usual` as if that had been seen on `strength`
    /// lives.
    pub fn hazards(&self, usual: &[f64; EDGES], strength: f64) -> [f64; EDGES] {
        let mut hazards = *usual;
        for (hazard, (ended, all)) in hazards.iter_mut().zip(self.by_span()) {
            *hazard = (ended + strength * *hazard) / (all + strength);
        }
        hazards
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::curve::EDGE_S;
    use crate::seen::Traits;

    fn life(first_seen_s: u64, last_seen_s: u64, ended: bool) -> Spans {
        Spans::of(&Life { traits: Traits::default(), first_seen_s, last_seen_s, ended })
    }

    #[test]
    fn who_was_seen_leaving_is_not_taken_for_dead() {
        let lives = [life(0, 30, true), life(0, 30, false), life(0, 70, true), life(0, 70, true)];
        let spans: Vec<(f64, f64)> = Counts::of(&lives).by_span().take(3).collect();
        assert_eq!(spans, [(1.0, 3.5), (2.0, 2.0), (0.0, 0.0)]);
    }

    #[test]
    fn who_was_adopted_says_nothing_about_youth() {
        let old = EDGE_S[10];
        let lives = [life(old, EDGE_S[12], true), life(0, 30, true)];
        let spans: Vec<(f64, f64)> = Counts::of(&lives).by_span().collect();
        assert_eq!(spans[0], (1.0, 1.0));
        assert_eq!(spans[5], (0.0, 0.0));
        assert_eq!((spans[12], spans[13]), ((0.0, 1.0), (1.0, 1.0)));
    }

    #[test]
    fn taking_away_undoes_adding() {
        let lives = [life(0, 100, true), life(0, 9_000, false)];
        let mut both = Counts::of(&lives[..1]);
        both.add_all(&Counts::of(&lives[1..]));
        let rest = both.without(&Counts::of(&lives[1..]));
        assert_eq!(rest.lives(), 1.0);
        assert_eq!(rest.likelihood(), Counts::of(&lives[..1]).likelihood());
    }

    #[test]
    fn nonsense_is_counted_without_harm() {
        let counts = Counts::of(&[life(900, 5, true), life(u64::MAX, u64::MAX, true)]);
        assert!(counts.likelihood().is_finite());
        assert!(counts.hazards(&[0.1; EDGES], 5.0).iter().all(|h| (0.0..=1.0).contains(h)));
    }
}
